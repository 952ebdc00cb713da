// The input: text, images, long pastes, commands. Drafts are kept per session.

import { clean, h, icon, iconButton, patch } from './dom.js';
import { plural } from './format.js';
import { Completion } from './complete.js';
import { announce, dialog, toast } from './ui.js';

const LONG_PASTE = 2_000;
const MOST_IMAGES = 8;
const LARGEST_IMAGE = 5 * 1024 * 1024;
const IMAGES = /^image\/(png|jpeg|gif|webp)$/;

export class Composer {
  // `actions`: send(message), command(line), stop(), history(), session().
  constructor(actions) {
    this.actions = actions;
    this.images = [];
    this.pastes = [];
    this.at = -1;
    this.input = h('textarea', { rows: 1, 'aria-label': 'Message', placeholder: 'Ask for a change, or type / for commands', enterkeyhint: 'send', autocomplete: 'off', oninput: () => this.typed(), onkeydown: (event) => this.key(event), onpaste: (event) => this.pasted(event) });
    this.completion = new Completion(this.input, actions.session);
    this.chips = h('div.chips');
    this.picker = h('input', { type: 'file', accept: 'image/png,image/jpeg,image/gif,image/webp', multiple: true, hidden: true, 'aria-label': 'Choose images', tabindex: -1, onchange: () => { this.addFiles(this.picker.files); this.picker.value = ''; } });
    this.stop = h('button.stop', { 'aria-label': 'Stop', title: 'Stop (Esc twice)', hidden: true, onclick: () => actions.stop() }, icon('stop'));
    this.go = h('button.send', { type: 'submit', 'aria-label': 'Send', title: 'Send (Enter)', disabled: true }, icon('send'));
    this.steer = h('button.quiet.steer', { hidden: true, title: 'Give it to the running turn (Ctrl+Enter)', onclick: () => this.send('steer') }, icon('bolt'), 'Steer');
    this.node = h('form.composer', { onsubmit: (event) => { event.preventDefault(); this.send(); } },
      this.completion.node, this.chips, this.input,
      h('div.composer-row', iconButton('clip', 'Attach images', () => this.picker.click()), this.picker, h('span.spring'), this.steer, this.stop, this.go));
    this.node.addEventListener('dragover', (event) => event.preventDefault());
    this.node.addEventListener('drop', (event) => { event.preventDefault(); this.addFiles(event.dataTransfer.files); });
  }

  // Switches to the draft of a session.
  open(id) {
    this.id = id;
    this.images = [];
    this.pastes = [];
    this.put(localStorage.getItem(`windlass.draft.${id}`) ?? '');
    this.drawChips();
  }

  put(text) {
    this.input.value = text;
    this.typed();
  }

  busy(isBusy) {
    this.isBusy = isBusy;
    this.stop.hidden = !isBusy;
    this.go.setAttribute('aria-label', isBusy ? 'Queue' : 'Send');
    this.go.title = isBusy ? 'Queue until the turn ends (Enter)' : 'Send (Enter)';
    this.ready();
  }

  ready() {
    const isEmpty = !this.input.value.trim() && !this.images.length && !this.pastes.length;
    this.go.disabled = isEmpty;
    this.go.hidden = this.isBusy && isEmpty;
    this.steer.hidden = !this.isBusy || isEmpty;
  }

  typed() {
    const { input } = this;
    input.style.setProperty('height', 'auto');
    input.style.setProperty('height', `${Math.min(input.scrollHeight, innerHeight * 0.4)}px`);
    this.ready();
    this.at = -1;
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.saveDraft(), 300);
    this.completion.typed();
  }

  saveDraft() {
    clearTimeout(this.saving);
    if (!this.id) return;
    try {
      if (this.input.value) localStorage.setItem(`windlass.draft.${this.id}`, this.input.value);
      else localStorage.removeItem(`windlass.draft.${this.id}`);
    } catch { /* The browser's storage is full; the text stays in the field. */ }
  }

  key(event) {
    // An input method uses Enter to choose a word.
    if (event.isComposing || event.keyCode === 229) return;
    if (this.completion.key(event)) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      if (matchMedia('(pointer: coarse)').matches && !event.ctrlKey) return;
      event.preventDefault();
      this.send(event.ctrlKey || event.metaKey ? 'steer' : undefined);
    } else if (event.key === 'Escape') this.escape();
    else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') this.recall(event);
  }

  escape() {
    if (!this.isBusy) return;
    if (Date.now() - (this.escapedAt ?? 0) < 1500) { this.actions.stop(); return; }
    this.escapedAt = Date.now();
    announce('Press Escape again to stop');
    toast('Press Esc again to stop', { ms: 1500 });
  }

  // Walks through the earlier messages of the session.
  recall(event) {
    const isUp = event.key === 'ArrowUp';
    if (this.at < 0 && (!isUp || this.input.value)) return;
    const earlier = this.actions.history();
    const next = this.at < 0 ? earlier.length - 1 : this.at + (isUp ? -1 : 1);
    if (next < 0) return;
    event.preventDefault();
    this.put(earlier[next] ?? '');
    this.at = next < earlier.length ? next : -1;
    this.input.setSelectionRange(this.input.value.length, this.input.value.length);
  }

  pasted(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length) { event.preventDefault(); this.addFiles(files); return; }
    const text = event.clipboardData?.getData('text/plain') ?? '';
    if (text.length < LONG_PASTE) return;
    event.preventDefault();
    this.pastes.push({ key: `p${Date.now()}${this.pastes.length}`, text });
    this.drawChips();
  }

  async addFiles(files) {
    for (const file of files) {
      if (!IMAGES.test(file.type)) { toast(`${file.name} is not an image that models read (PNG, JPEG, GIF, WebP).`, { tone: 'bad' }); continue; }
      if (file.size > LARGEST_IMAGE) { toast(`${file.name} is larger than 5 MB.`, { tone: 'bad' }); continue; }
      if (this.images.length >= MOST_IMAGES) { toast(`A message carries at most ${MOST_IMAGES} images.`, { tone: 'bad' }); break; }
      this.images.push({ key: `i${Date.now()}${this.images.length}`, path: file.name || 'pasted.png', mime: file.type, size: file.size, data: await base64(file) });
    }
    this.drawChips();
    this.input.focus();
  }

  drawChips() {
    const all = [...this.images, ...this.pastes];
    patch(this.chips, all, (chip) => chip.key, (chip) => {
      const remove = iconButton('close', 'Remove', () => {
        this.images = this.images.filter((one) => one !== chip);
        this.pastes = this.pastes.filter((one) => one !== chip);
        this.drawChips();
        this.input.focus();
      });
      const open = chip.text !== undefined
        ? h('button.quiet', { onclick: () => this.editPaste(chip) }, icon('file'), `Pasted text, ${plural(chip.text.split('\n').length, 'line')}`)
        : h('span', h('img', { src: `data:${chip.mime};base64,${chip.data}`, alt: '' }), h('bdi', clean(chip.path)));
      return h('span.chip', open, remove);
    });
    this.ready();
  }

  editPaste(chip) {
    const area = h('textarea.paste', { value: chip.text, 'aria-label': 'Pasted text' });
    dialog('Pasted text', (close) => [area, h('div.row.end',
      h('button', { onclick: () => { this.pastes = this.pastes.filter((one) => one !== chip); this.input.value += area.value; this.drawChips(); this.typed(); close(); } }, 'Put into the message'),
      h('button.primary', { onclick: () => { chip.text = area.value; chip.key += 'x'; this.drawChips(); close(); } }, 'Save'))]);
  }

  send(onBusy) {
    const typed = this.input.value;
    const text = [typed.trim() ? typed : '', ...this.pastes.map((paste) => paste.text)].filter(Boolean).join('\n\n');
    if (!text && !this.images.length) return;
    if (!this.id) return;
    const line = commandLine(typed);
    if (line && !this.images.length && !this.pastes.length) {
      this.clear();
      this.actions.command(line);
      return;
    }
    const parts = text ? [{ type: 'text', data: { text } }] : [];
    const images = this.images.map(({ path, mime, data }) => ({ path, mime, data }));
    this.clear();
    this.actions.send({ text, parts, images, onBusy: onBusy && this.isBusy ? onBusy : 'queue' });
  }

  clear() {
    this.images = [];
    this.pastes = [];
    this.put('');
    this.saveDraft();
    this.drawChips();
  }
}

// Returns the command line of an input, or null for text that goes to the model: the same rule as in the terminal.
export function commandLine(text) {
  if (text.startsWith('!')) return `/shell ${text.slice(1).trim()}`.trimEnd();
  return /^\/[a-z][a-z0-9_:-]*(?:\s|$)/.test(text) ? text.trim() : null;
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',')[1] ?? '');
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
