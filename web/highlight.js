// Colours comments, strings, numbers and keywords: a small scanner with a table of languages.

import { h } from './dom.js';

const LONGEST = 40_000;
const WORDS = {
  rust: 'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while',
  js: 'async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield',
  python: 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return self True try while with yield',
  go: 'break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var',
  c: 'auto bool break case catch char class const constexpr continue default delete do double else enum extern false float for if include inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual void volatile while',
  java: 'abstract boolean break case catch class const continue default do double else enum extends false final finally float for fun if implements import instanceof int interface long new null override package private protected public return static super switch this throw throws true try val var void when while',
  sh: 'case do done elif else esac exit export fi for function if in local return set then until while',
  sql: 'all alter and as asc begin between by case check commit create default delete desc distinct drop else end exists from group having in index inner insert into is join key left like limit not null on or order primary references returning select set table then union unique update values view when where with',
  data: 'true false null yes no on off',
};
const ALIASES = { rs: 'rust', javascript: 'js', mjs: 'js', jsx: 'js', ts: 'js', typescript: 'js', tsx: 'js', py: 'python', golang: 'go', cpp: 'c', 'c++': 'c', h: 'c', hpp: 'c', cs: 'java', kotlin: 'java', kt: 'java', swift: 'java', bash: 'sh', shell: 'sh', zsh: 'sh', console: 'sh', json: 'data', yaml: 'data', yml: 'data', toml: 'data', ini: 'data', css: 'data' };
const HASH = /python|sh|data/;
const scanners = new Map();

// Returns the nodes of a code text.
export function highlight(text, language) {
  const name = ALIASES[language?.toLowerCase()] ?? language?.toLowerCase();
  if (name === 'diff' || name === 'patch') return text.split('\n').map((line, index) => [index ? '\n' : '', h(`span.${lineKind(line)}`, line)]);
  const words = WORDS[name];
  if (!words || text.length > LONGEST) return [text];
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(scanner(name, words))) {
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

function scanner(name, words) {
  if (!scanners.has(name)) {
    const comments = name === 'sql' ? '--[^\\n]*|/\\*[^]*?\\*/' : HASH.test(name) ? '(?<![\\w$&])#[^\\n]*' : '//[^\\n]*|/\\*[^]*?\\*/';
    const strings = '"""[^]*?"""|"(?:\\\\.|[^"\\\\\\n])*"|`(?:\\\\.|[^`\\\\])*`' + (name === 'rust' ? "|'(?:\\\\.|[^'\\\\\\n])'" : "|'(?:\\\\.|[^'\\\\\\n])*'");
    const flags = name === 'sql' ? 'gi' : 'g';
    scanners.set(name, new RegExp(`(${comments})|(${strings})|\\b(0x[\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?)\\b|\\b(${words.replaceAll(' ', '|')})\\b`, flags));
  }
  return scanners.get(name);
}
