// Builds and updates the page. Every text goes in as a text node or an attribute; no HTML string is ever parsed.

const SVG = 'http://www.w3.org/2000/svg';

// Creates an element: h('button.primary', {onclick, 'aria-label': 'Send'}, 'Send', icon). A button submits no form
// unless told so.
// `style` is an object, because the content security policy forbids style attributes.
export function h(selector, props, ...children) {
  const [tag, ...classes] = selector.split('.');
  const node = document.createElement(tag || 'div');
  if (tag === 'button') node.type = 'button';
  if (classes.length) node.className = classes.join(' ');
  if (isContent(props)) children.unshift(props);
  else set(node, props);
  add(node, children);
  return node;
}

function isContent(value) {
  return typeof value === 'string' || value instanceof Node || Array.isArray(value);
}

// Sets properties of an element; `false`, `null` and `undefined` remove an attribute.
export function set(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, of] of Object.entries(value)) node.style.setProperty(key, of);
    else if (name === 'class') { if (value) node.classList.add(...value.split(' ').filter(Boolean)); }
    else if (name === 'value' || name === 'checked' || name === 'indeterminate') node[name] = value;
    else if (value === false || value == null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  return node;
}

// Appends children: nodes, texts and lists of them. Empty values are left out.
export function add(node, children) {
  for (const child of children.flat(4)) {
    if (child == null || child === false || child === '') continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// Replaces the children of an element.
export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

// Makes the children of `parent` match a list of items by key. Nodes of known keys are kept and moved, never
// rebuilt, so focus, selection and scroll positions inside them survive.
export function patch(parent, items, keyOf, create, update) {
  const nodes = parent.keyed ?? (parent.keyed = new Map());
  const seen = new Set();
  let at = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    seen.add(key);
    let node = nodes.get(key);
    if (!node) {
      node = create(item);
      nodes.set(key, node);
    } else if (update) {
      const next = update(node, item) ?? node;
      if (next !== node) {
        if (at === node) at = next;
        node.replaceWith(next);
        nodes.set(key, next);
        node = next;
      }
    }
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  for (const [key, node] of nodes) {
    if (seen.has(key)) continue;
    if (node === at) at = at.nextSibling;
    node.remove();
    nodes.delete(key);
  }
}

// Paths of the icons, drawn on a grid of 24 with round strokes.
const ICONS = {
  send: 'M12 19V5M5 12l7-7 7 7', stop: 'M7 7h10v10H7z', plus: 'M12 5v14M5 12h14', close: 'M6 6l12 12M18 6L6 18',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4', back: 'M15 5l-7 7 7 7', down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6', check: 'M5 13l4 4L19 7', dots: 'M5 12h.01M12 12h.01M19 12h.01',
  file: 'M14 3H6v18h12V7zM14 3v4h4', edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4', terminal: 'M5 7l5 5-5 5M12 18h7',
  list: 'M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01',
  folder: 'M3 6h7l2 2h9v11H3z', tool: 'M14 6a5 5 0 0 0-6 6L3 17l4 4 5-5a5 5 0 0 0 6-6l-3 3-3-1-1-3z', spark: 'M12 3l2 7 7 2-7 2-2 7-2-7-7-2 7-2z',
  undo: 'M9 6L4 11l5 5M4 11h10a5 5 0 0 1 5 5v2', redo: 'M15 6l5 5-5 5M20 11H10a5 5 0 0 0-5 5v2', copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  clip: 'M20 11l-8 8a5 5 0 0 1-7-7l8-8a3 3 0 0 1 5 5l-8 8a1 1 0 0 1-2-2l7-7',
  gear: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4',
  diff: 'M12 4v10M7 9h10M7 19h10', agents: 'M6 5v14M6 14h6a5 5 0 0 0 5-5V5M17 3v2M6 3v2', warn: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  hand: 'M12 3l8 4v5c0 5-4 8-8 9-4-1-8-4-8-9V7zM12 8v4M12 15h.01', trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  bolt: 'M13 3L5 14h6l-1 7 8-11h-6z', clock: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2', link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  fleet: 'M4 5h7v6H4zM13 5h7v6h-7zM4 13h7v6H4zM13 13h7v6h-7z',
};

// Draws an icon. It is decoration: the control around it carries the name.
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  const attributes = { viewBox: '0 0 24 24', 'aria-hidden': 'true', class: `icon icon-${name}` };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name] ?? ICONS.tool);
  svg.append(path);
  return svg;
}

// Draws a ring that is filled to `share` (0 to 1), for the context gauge.
export function ring(share) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('class', 'ring');
  svg.setAttribute('aria-hidden', 'true');
  const around = 2 * Math.PI * 8;
  for (const [name, length] of [['track', around], ['fill', around * Math.min(1, Math.max(0, share))]]) {
    const circle = document.createElementNS(SVG, 'circle');
    for (const [key, value] of Object.entries({ cx: 10, cy: 10, r: 8, class: name, 'stroke-dasharray': `${length} ${around}` })) {
      circle.setAttribute(key, String(value));
    }
    svg.append(circle);
  }
  return svg;
}

// A button with an icon and a name that a screen reader hears and a tooltip shows.
export function iconButton(name, label, onclick, more = {}) {
  return h('button.icon-button', { 'aria-label': label, title: label, onclick, ...more }, icon(name));
}

// Control characters, which have no place in a text, and the marks that change its direction.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ufeff]/g;
// Colours and other sequences of terminals.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*\u001b\\|[@-Z\\-_])/g;

// Returns a text with control characters made visible: nothing in it can hide or reorder what is shown.
export function clean(text) {
  return String(text ?? '').replace(/\r\n/g, '\n').replace(UNSEEN, shown);
}

// Everything that nobody sees: format characters, default ignorables, and blanks other than a space.
const HIDDEN = /[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// Returns a text that somebody is to agree to, with everything made visible that nobody sees.
export function revealed(text) {
  return clean(text).replace(HIDDEN, shown);
}

// Returns the output of a program without the sequences that only a terminal understands. A line that was
// rewritten with carriage returns, as progress bars do, appears in its last form.
export function cleanOutput(text) {
  const plain = String(text ?? '').replace(ESCAPES, '').replace(/\r+\n/g, '\n');
  const lines = plain.includes('\r') ? plain.split('\n').map((line) => line.slice(line.lastIndexOf('\r') + 1)).join('\n') : plain;
  return lines.replace(UNSEEN, shown);
}

function shown(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

// Shows foreign text, such as a title or a file name, without letting its direction spill into its surroundings.
export function bdi(text, selector = 'bdi') {
  return h(selector, clean(text));
}
