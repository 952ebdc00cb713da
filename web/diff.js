// Differences between files, drawn from unified diffs.

import { add, clean, fill, h, icon } from './dom.js';
import { plural } from './format.js';
import { copyText } from './ui.js';

// Lines of one file that are shown before "show all".
const DIFF_SHOWN = 200;

// Parses a unified diff into hunks of lines with their numbers.
export function parseDiff(text) {
  const hunks = [];
  let [old, now, hunk] = [0, 0, null];
  for (const line of String(text ?? '').replace(/\n$/, '').split('\n')) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (head) {
      [old, now] = [Number(head[1]), Number(head[2])];
      hunks.push(hunk = { title: head[3].trim(), lines: [] });
    } else if (hunk === null && /^(---|\+\+\+|diff |index )/.test(line)) continue;
    else {
      if (!hunk) { hunks.push(hunk = { title: '', lines: [] }); [old, now] = [1, 1]; }
      const kind = { '+': 'added', '-': 'removed', '\\': 'meta' }[line[0]] ?? 'same';
      const row = { kind, text: clean(kind === 'same' && line[0] !== ' ' ? line : line.slice(1)) };
      if (kind === 'added') row.now = now++;
      else if (kind === 'removed') row.old = old++;
      else if (kind === 'same') { row.old = old++; row.now = now++; }
      hunk.lines.push(row);
    }
  }
  for (const { lines } of hunks) markWords(lines);
  return hunks;
}

// Marks the part of a changed line that differs from its counterpart.
function markWords(lines) {
  for (let at = 0; at < lines.length;) {
    const removed = run(lines, at, 'removed');
    const added = run(lines, at + removed, 'added');
    if (removed && removed === added) {
      for (let index = at; index < at + removed; index++) markPair(lines[index], lines[index + removed]);
    }
    at += Math.max(1, removed + added);
  }
}

function run(lines, from, kind) {
  let length = 0;
  while (lines[from + length]?.kind === kind) length++;
  return length;
}

function markPair(before, after) {
  const [a, b] = [before.text, after.text];
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start++;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  if (start + end < most * 0.2) return;
  before.mark = [start, a.length - end];
  after.mark = [start, b.length - end];
}

function lineContent(row) {
  if (!row.mark || row.mark[0] >= row.mark[1]) return row.text || '\u200b';
  const [from, to] = row.mark;
  return [row.text.slice(0, from), h('mark', row.text.slice(from, to)), row.text.slice(to)];
}

const SIGNS = { added: '+', removed: '−', same: ' ', meta: ' ' };

// The line between two parts of a file. Nothing is above the first one, unless it has a name.
const divider = (title, at) => (title || at ? h('div.hunk', title || ' ') : null);

function unified(hunks) {
  return hunks.map(({ title, lines }, index) => [
    divider(title, index),
    lines.map((row) => h(`div.line.${row.kind}`, h('span.no', String(row.old ?? '')), h('span.no', String(row.now ?? '')), h('span.sign', SIGNS[row.kind]), h('code', lineContent(row)))),
  ]);
}

function sideBySide(hunks) {
  const half = (row, number) => (row ? [h('span.no', String(row[number] ?? '')), h('code', { class: row.kind }, lineContent(row))] : [h('span.no'), h('code.none')]);
  return hunks.map(({ title, lines }, index) => {
    const rows = [];
    for (let at = 0; at < lines.length;) {
      if (lines[at].kind === 'same' || lines[at].kind === 'meta') { rows.push([lines[at], lines[at]]); at++; continue; }
      const removed = run(lines, at, 'removed');
      const added = run(lines, at + removed, 'added');
      for (let row = 0; row < Math.max(removed, added); row++) {
        rows.push([row < removed ? lines[at + row] : null, row < added ? lines[at + removed + row] : null]);
      }
      at += Math.max(1, removed + added);
    }
    return [divider(title, index), rows.map(([left, right]) => h('div.pair', half(left, 'old'), half(right, 'now')))];
  });
}

export function counts(hunks) {
  const all = hunks.flatMap((hunk) => hunk.lines);
  return { added: all.filter((row) => row.kind === 'added').length, removed: all.filter((row) => row.kind === 'removed').length };
}

export function stat(added, removed) {
  return h('span.stat', h('span.added', `+${added}`), ' ', h('span.removed', `−${removed}`), h('span.sr', ` ${plural(added, 'line')} added, ${removed} removed`));
}

let isSplit = localStorage.getItem('windlass.split') === '1';

// The changes of one file: its name, its counts, and its lines.
export function fileDiff({ path, what, diff }, { open = true, isAlone = false } = {}) {
  const hunks = diff ? parseDiff(diff) : [];
  const total = hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  const { added, removed } = counts(hunks);
  const body = h('div.diff', { tabindex: 0, role: 'region', 'aria-label': `Changes in ${clean(path)}` });
  let isWhole = total <= DIFF_SHOWN;
  const draw = () => {
    const shown = isWhole ? hunks : cut(hunks, DIFF_SHOWN);
    body.classList.toggle('split', isSplit);
    fill(body, isSplit ? sideBySide(shown) : unified(shown));
    if (!isWhole) body.append(h('button.quiet', { onclick: () => { isWhole = true; draw(); } }, `Show all ${total} lines`));
  };
  const node = isAlone && diff ? h('div.file-diff', body) : h('details.file-diff', { open },
    h('summary', icon('right'), h('bdi.path', clean(path)), what && what !== 'modified' ? h('span.tag', what) : null, diff ? stat(added, removed) : null),
    diff ? body : h('p.muted', 'Too large or not text; no lines to show.'));
  if (diff) draw();
  node.redraw = diff ? draw : () => {};
  return node;
}

function cut(hunks, limit) {
  const kept = [];
  for (const hunk of hunks) {
    if (limit <= 0) break;
    kept.push({ ...hunk, lines: hunk.lines.slice(0, limit) });
    limit -= hunk.lines.length;
  }
  return kept;
}

// Changes of several files, with the switch between one and two columns and a copy as a patch.
export function diffView(changes) {
  const files = changes.map((change, index) => fileDiff(change, { open: changes.length <= 6 || index < 3 }));
  const toggle = h('button.quiet', { 'aria-pressed': String(isSplit), onclick: () => {
    isSplit = !isSplit;
    localStorage.setItem('windlass.split', isSplit ? '1' : '0');
    toggle.setAttribute('aria-pressed', String(isSplit));
    for (const file of files) file.redraw();
  } }, 'Side by side');
  const copy = h('button.quiet', { onclick: () => copyText(patchText(changes), copy) }, icon('copy'), h('span', 'Copy patch'));
  return add(h('div.diffs'), [h('div.row.tools', toggle, copy), files]);
}

function patchText(changes) {
  return changes.filter((change) => change.diff).map(({ path, diff }) => (/^---/.test(diff) ? diff : `--- a/${path}\n+++ b/${path}\n${diff}`)).join('');
}
