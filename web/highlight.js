// Colours comments, strings, numbers and keywords: a small scanner with one list of words for all languages.

import { h } from './dom.js';

const CODE_LONGEST = 40_000;
const KEYWORDS = 'as async await break case catch class const continue def default do elif else enum except export extends false False fi finally fn for from func function if impl import in interface is let loop match mod mut new nil None not null or package pub public raise return self static struct super switch then this throw trait true True try type use var void where while with yield';
const PLAIN = /^(|text|txt|markdown|md|html|xml|svg)$/;
const HASH = /^(py|python|sh|bash|shell|console|yaml|yml|toml|ruby|makefile|dockerfile)$/;
const STRINGS = '"""[^]*?"""|"(?:\\\\.|[^"\\\\\\n])*"|`(?:\\\\.|[^`\\\\])*`|\'(?:\\\\.|[^\'\\\\\\n])*\'';
const scanner = (comments) => new RegExp(`(${comments})|(${STRINGS})|\\b(\\d[\\w.]*)\\b|\\b(${KEYWORDS.replaceAll(' ', '|')})\\b`, 'g');
const SCANNER_HASH = scanner('(?<![\\w$&])#[^\\n]*');
const SCANNER = scanner('//[^\\n]*|/\\*[^]*?\\*/');

// Returns the nodes of a code text.
export function highlight(text, language) {
  const name = String(language ?? '').toLowerCase();
  if (name === 'diff' || name === 'patch') return text.split('\n').map((line, index) => [index ? '\n' : '', h(`span.${lineKind(line)}`, line)]);
  if (PLAIN.test(name) || text.length > CODE_LONGEST) return [text];
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(HASH.test(name) ? SCANNER_HASH : SCANNER)) {
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
