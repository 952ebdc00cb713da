// Colours comments, strings, numbers and keywords: a small scanner with one list of words for all languages.

import { h } from './dom.js';

const LONGEST = 40_000;
const WORDS = 'and as async await break case catch class const continue def default defer del do done echo elif else end enum except export extends false False fi final finally fn for from func function go if impl implements import in insert interface into is join lambda let loop match mod move mut new nil None not null of or package pass private protected pub public raise return select self set static struct super switch table then this throw trait true True try type typeof union unsafe update use using val values var void where while with yield';
const PLAIN = /^(|text|txt|plain|markdown|md|html|xml|svg|log|output)$/;
const HASH = /^(py|python|sh|bash|zsh|shell|console|yaml|yml|toml|ini|rb|ruby|make|makefile|dockerfile|perl|r)$/;
const STRINGS = '"""[^]*?"""|"(?:\\\\.|[^"\\\\\\n])*"|`(?:\\\\.|[^`\\\\])*`|\'(?:\\\\.|[^\'\\\\\\n])*\'';
const scanner = (comments, words) => new RegExp(`(${comments})|(${STRINGS})|\\b(\\d[\\w.]*)\\b|\\b(${words.replaceAll(' ', '|')})\\b`, 'g');
const SCANNERS = { hash: scanner('(?<![\\w$&])#[^\\n]*', WORDS), slash: scanner('//[^\\n]*|/\\*[^]*?\\*/', WORDS), sql: scanner('--[^\\n]*', `${WORDS} ${WORDS.toUpperCase()} FROM WHERE ORDER BY GROUP CREATE LEFT`) };

// Returns the nodes of a code text.
export function highlight(text, language) {
  const name = String(language ?? '').toLowerCase();
  if (name === 'diff' || name === 'patch') return text.split('\n').map((line, index) => [index ? '\n' : '', h(`span.${lineKind(line)}`, line)]);
  if (PLAIN.test(name) || text.length > LONGEST) return [text];
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(SCANNERS[HASH.test(name) ? 'hash' : name === 'sql' ? 'sql' : 'slash'])) {
    const kind = found[1] ? 'comment' : found[2] ? 'string' : found[3] ? 'number' : 'word';
    nodes.push(text.slice(at, found.index), h(`span.hl-${kind}`, found[0]));
    at = found.index + found[0].length;
  }
  nodes.push(text.slice(at));
  return nodes;
}

function lineKind(line) {
  return line.startsWith('@@') ? 'hl-comment' : line.startsWith('+') ? 'hl-added' : line.startsWith('-') ? 'hl-removed' : 'hl-text';
}
