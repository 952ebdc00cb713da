// Markdown as DOM nodes. The vendored lexer only splits the text into tokens; every node is made here, and HTML in
// the text is shown as text.

import { lexer } from './vendor/marked.js';
import { clean, h, icon } from './dom.js';
import { highlight } from './highlight.js';
import { copyText } from './ui.js';

// Beyond these the text is shown as it is: nobody formats a line of this length by hand.
const TEXT_LONGEST = 100_000;
const LINE_LONGEST = 10_000;
const DEEPEST = 24;

// Shows a Markdown text in `box`. Blocks that did not change keep their nodes, so a growing text costs only its
// last block.
export function renderMarkdown(box, text) {
  const blocks = lex(text);
  const shown = box.blocks ?? (box.blocks = []);
  let level = 2;
  blocks.forEach((token, index) => {
    if (token.type === 'heading') level = token.level = Math.min(6, token.depth + 2, level + 1);
    if (shown[index]?.raw === token.raw) return;
    const node = block(token, 0);
    if (shown[index]) shown[index].node.replaceWith(node);
    else box.append(node);
    shown[index] = { raw: token.raw, node };
  });
  for (const { node } of shown.splice(blocks.length)) node.remove();
  return box;
}

function lex(text) {
  const safe = clean(text);
  if (safe.length > TEXT_LONGEST || longestLine(safe) > LINE_LONGEST) return [{ type: 'plain', raw: safe, text: safe }];
  try {
    return lexer(safe, { gfm: true, breaks: false }).filter((token) => token.type !== 'space' && token.type !== 'def');
  } catch {
    return [{ type: 'plain', raw: safe, text: safe }];
  }
}

function longestLine(text) {
  let [longest, start] = [0, 0];
  for (let at = text.indexOf('\n'); at >= 0; start = at + 1, at = text.indexOf('\n', start)) longest = Math.max(longest, at - start);
  return Math.max(longest, text.length - start);
}

function block(token, depth) {
  if (depth > DEEPEST) return h('p', token.raw);
  switch (token.type) {
    case 'heading': return h(`h${token.level ?? Math.min(6, token.depth + 2)}`, { dir: 'auto' }, inline(token.tokens, depth));
    case 'paragraph': return h('p', { dir: 'auto' }, inline(token.tokens, depth));
    case 'text': return h('span', { dir: 'auto' }, token.tokens ? inline(token.tokens, depth) : unescape(token.text));
    case 'code': return codeBlock(token.text, token.lang);
    case 'blockquote': return h('blockquote', token.tokens.map((inner) => block(inner, depth + 1)));
    case 'list': return listBlock(token, depth);
    case 'table': return table(token, depth);
    case 'hr': return h('hr');
    case 'plain': return plain(token.text);
    default: return h('p.raw', token.raw);
  }
}

function listBlock(token, depth) {
  const items = token.items.map((item) => {
    const content = item.tokens.filter((inner) => inner.type !== 'space' && inner.type !== 'checkbox').map((inner) => block(inner, depth + 1));
    if (!item.task) return h('li', content);
    return h('li.task', h('span.box', { class: item.checked ? 'on' : '', role: 'img', 'aria-label': item.checked ? 'done' : 'open' }, item.checked ? icon('check') : null), content);
  });
  return h(token.ordered ? 'ol' : 'ul', token.ordered && token.start > 1 ? { start: token.start } : {}, items);
}

function table(token, depth) {
  const cell = (tag) => (content, index) => {
    const align = token.align[index];
    return h(tag, { class: align ? `align-${align}` : '', dir: 'auto', ...(tag === 'th' ? { scope: 'col' } : {}) }, inline(content.tokens, depth));
  };
  return h('div.table', { tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table',
    h('thead', h('tr', token.header.map(cell('th')))),
    h('tbody', token.rows.map((row) => h('tr', row.map(cell('td')))))));
}

function inline(list, depth) {
  if (depth > DEEPEST) return [];
  return (list ?? []).map((token) => {
    switch (token.type) {
      case 'strong': return h('strong', inline(token.tokens, depth + 1));
      case 'em': return h('em', inline(token.tokens, depth + 1));
      case 'del': return h('del', inline(token.tokens, depth + 1));
      case 'codespan': return h('code', token.text);
      case 'br': return h('br');
      case 'link': return anchor(token.href, inline(token.tokens, depth + 1), token.text);
      case 'image': return anchor(token.href, ['Image: ', token.text || 'without a description'], '');
      case 'text': return token.tokens ? inline(token.tokens, depth + 1) : unescape(token.text);
      case 'escape': return unescape(token.text);
      default: return token.raw;
    }
  });
}

const ENTITIES = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"', '&#39;': "'", '&nbsp;': '\u00a0' };

// Replaces the few entities that people write in Markdown. Text nodes need no escaping.
function unescape(text) {
  return String(text).replace(/&(?:lt|gt|amp|quot|#39|nbsp);/g, (entity) => ENTITIES[entity]);
}

// A link says where it leads. Anything but the web and mail stays text.
export function anchor(address, content, text) {
  let url = null;
  try { url = new URL(address); } catch { /* A relative address leads nowhere here. */ }
  if (!url || !['http:', 'https:', 'mailto:'].includes(url.protocol)) return h('span.dead-link', { title: clean(address) }, content);
  const host = url.protocol === 'mailto:' ? '' : url.host;
  const said = host && String(text ?? '').toLowerCase().includes(host.toLowerCase());
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, h('bdi', content),
    host && !said ? h('span.host', ` (${host})`) : null);
}

export function codeBlock(text, lang) {
  const language = String(lang ?? '').split(/\s/)[0].slice(0, 24);
  const copy = h('button.quiet.copy', { onclick: () => copyText(text, copy) }, icon('copy'), h('span', 'Copy'));
  return h('figure.code',
    h('figcaption', h('span', language || 'text'), copy),
    h('pre', { tabindex: 0, role: 'region', 'aria-label': language ? `Code, ${language}` : 'Code' }, h('code', highlight(text, language))));
}

// Shows a text that is too long to be formatted, its beginning first.
function plain(text) {
  const first = text.slice(0, 20_000);
  const box = h('pre.plain', { tabindex: 0, role: 'region', 'aria-label': 'Text' }, first);
  if (first.length === text.length) return box;
  const more = h('button.quiet', { onclick: () => { box.textContent = text.slice(0, 1_000_000); more.remove(); } },
    `Show all ${text.length.toLocaleString()} characters`);
  return h('div', box, more);
}
