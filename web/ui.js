// Small pieces of the interface that several views share.

import { add, fill, h, icon } from './dom.js';

// Copies a text and says so on the button.
export async function copyText(text, button) {
  let isDone = true;
  try { await navigator.clipboard.writeText(text); } catch { isDone = false; }
  announce(isDone ? 'Copied' : 'The browser did not allow copying');
  const label = button?.querySelector('span');
  if (!label) return;
  const before = label.textContent;
  label.textContent = isDone ? 'Copied' : 'Not allowed';
  setTimeout(() => { label.textContent = before; }, 1500);
}

// The one line that screen readers hear. Streaming text is never announced; ends and requests are.
let line = null;
export function announce(text) {
  line ??= document.getElementById('announcer');
  if (!line) return;
  // A text that repeats is announced only if the line was empty before.
  line.textContent = '';
  requestAnimationFrame(() => { line.textContent = text; });
}

// Shows a short message at the lower edge, with an optional action such as undo.
export function toast(text, { action, label = 'Undo', tone = '', ms = 6000 } = {}) {
  const box = document.getElementById('toasts');
  const node = h('div.toast', { class: tone }, h('span', text));
  const close = () => { clearTimeout(timer); node.remove(); };
  if (action) node.append(h('button.quiet', { onclick: () => { close(); action(); } }, label));
  node.append(h('button.icon-button', { 'aria-label': 'Close', onclick: close }, icon('close')));
  const timer = setTimeout(close, ms);
  box.append(node);
  while (box.children.length > 3) box.firstChild.remove();
  announce(text);
  return close;
}

// Shows an error of a request.
export function complain(error) {
  toast([error.message, error.hint].filter(Boolean).join(' '), { tone: 'bad', ms: 10_000 });
}

// Opens a modal dialog. The browser keeps the focus inside and gives it back afterwards.
export function dialog(title, content, { onclose, kind = '' } = {}) {
  const node = h('dialog', { class: kind, 'aria-labelledby': 'dialog-title' });
  const close = () => node.close();
  const back = document.activeElement;
  add(node, [
    h('header', h('h2', { id: 'dialog-title' }, title), h('button.icon-button', { 'aria-label': 'Close', onclick: close }, icon('close'))),
    h('div.dialog-body', typeof content === 'function' ? content(close) : content),
  ]);
  node.addEventListener('click', (event) => { if (event.target === node) close(); });
  node.addEventListener('close', () => { node.remove(); back?.isConnected && back.focus(); onclose?.(); });
  document.body.append(node);
  node.showModal();
  return { node, close };
}

// Asks before something that cannot be taken back. Resolves to true or false.
export function confirm(title, text, label) {
  return new Promise((resolve) => {
    let answer = false;
    dialog(title, (close) => [
      h('p', text),
      h('div.row.end', h('button', { onclick: close }, 'Keep'),
        h('button.danger', { onclick: () => { answer = true; close(); } }, label)),
    ], { kind: 'small', onclose: () => resolve(answer) });
  });
}

// Asks for one line of text. Resolves to null if it was closed.
export function prompt(title, value, label) {
  return new Promise((resolve) => {
    let answer = null;
    const input = h('input.wide', { type: 'text', value, 'aria-label': title, maxlength: 200 });
    dialog(title, (close) => h('form', {
      onsubmit: (event) => { event.preventDefault(); answer = input.value.trim(); close(); },
    }, input, h('div.row.end', h('button.primary', { type: 'submit' }, label))), { kind: 'small', onclose: () => resolve(answer) });
    input.select();
  });
}

// A menu under a button: a list of [label, action, icon].
export function menu(button, entries) {
  const list = h('div.menu', { role: 'menu', popover: 'auto' }, entries.filter(Boolean).map(([label, action, name, tone]) =>
    h('button', { role: 'menuitem', class: tone ?? '', onclick: () => { list.hidePopover(); action(); } }, icon(name ?? 'right'), label)));
  document.body.append(list);
  list.addEventListener('toggle', (event) => { if (event.newState === 'closed') { list.remove(); button.setAttribute('aria-expanded', 'false'); } });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const rows = [...list.children];
    rows[(rows.indexOf(document.activeElement) + step + rows.length) % rows.length].focus();
  });
  list.showPopover();
  button.setAttribute('aria-expanded', 'true');
  const at = button.getBoundingClientRect();
  const size = list.getBoundingClientRect();
  list.style.setProperty('left', `${Math.max(8, Math.min(at.right - size.width, innerWidth - size.width - 8))}px`);
  const below = at.bottom + 6;
  list.style.setProperty('top', `${below + size.height > innerHeight ? Math.max(8, at.top - size.height - 6) : below}px`);
  list.firstChild?.focus();
}

// Runs a function at most once per frame. In a hidden tab there are no frames, and nothing needs drawing.
export function perFrame(run) {
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => { isPlanned = false; run(); });
  };
}

// A section that opens and closes, with its content made on first use.
export function disclosure(summary, content, { open = false, kind = '' } = {}) {
  const body = h('div.disclosed');
  const node = h('details', { class: kind }, h('summary', summary), body);
  const make = () => { if (!body.firstChild) fill(body, content()); };
  node.addEventListener('toggle', () => { if (node.open) make(); });
  if (open) { make(); node.open = true; }
  return node;
}
