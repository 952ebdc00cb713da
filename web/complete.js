// The menu above the composer: commands after a slash, files after an at sign.

import { get, inSession, query } from './api.js';
import { clean, fill, h } from './dom.js';

const OFFERED = 8;

export class Completion {
  constructor(input, session) {
    Object.assign(this, { input, session });
    this.rows = [];
    this.chosen = 0;
    this.node = h('ul.completions', { id: 'completions', role: 'listbox', 'aria-label': 'Suggestions', hidden: true });
    input.setAttribute('aria-autocomplete', 'list');
    input.setAttribute('aria-controls', 'completions');
    input.addEventListener('blur', () => setTimeout(() => this.close(), 150));
  }

  get isOpen() {
    return !this.node.hidden;
  }

  // Looks for the word before the cursor. A later key makes an earlier answer void.
  async typed() {
    const asked = this.asked = {};
    const before = this.input.value.slice(0, this.input.selectionStart);
    const mention = /(?:^|\s)@([^\s@]{0,100})$/.exec(before);
    try {
      let rows = [];
      if (before.startsWith('/') && !before.includes('\n')) rows = await this.commands(before);
      else if (mention) rows = await this.files(mention[1], before.length - mention[1].length - 1, before.length);
      if (this.asked === asked) this.show(rows);
    } catch { if (this.asked === asked) this.close(); }
  }

  async commands(line) {
    const id = this.session();
    if (!id) return [];
    if (this.catalogOf !== id) {
      this.catalog = (await get(inSession(id, 'commands'))).commands;
      this.catalogOf = id;
    }
    const name = line.slice(1);
    if (!/\s/.test(name)) {
      const fits = this.catalog.filter((command) => command.name.startsWith(name) || command.aliases.some((alias) => alias.startsWith(name)));
      if (fits.length === 1 && fits[0].name === name) return [];
      return fits.map((command) => ({ text: `/${command.name} `, label: `/${command.name}`, note: command.help, from: 0, to: this.input.value.length }));
    }
    const { completions } = await get(`${inSession(id, 'commands')}${query({ complete: line })}`);
    return completions.filter((text) => text !== line).map((text) => ({ text, label: text, note: '', from: 0, to: this.input.value.length }));
  }

  async files(word, from, to) {
    const { files } = await get(`files${query({ session: this.session(), q: word, limit: OFFERED })}`);
    return files.map((path) => ({ text: `@${path} `, label: path, note: '', from, to }));
  }

  show(rows) {
    this.rows = rows.slice(0, OFFERED);
    this.shownFor = this.input.value;
    this.chosen = 0;
    if (!this.rows.length) { this.close(); return; }
    this.node.hidden = false;
    this.draw();
  }

  draw() {
    fill(this.node, this.rows.map((row, index) => h('li', {
      id: `completion-${index}`, role: 'option', 'aria-selected': String(index === this.chosen),
      onmousedown: (event) => { event.preventDefault(); this.chosen = index; this.accept(); },
    }, h('bdi.label', clean(row.label)), row.note ? h('span.note', clean(row.note)) : null)));
    this.input.setAttribute('aria-activedescendant', `completion-${this.chosen}`);
  }

  close() {
    this.node.hidden = true;
    this.rows = [];
    this.input.removeAttribute('aria-activedescendant');
  }

  // Handles a key while the menu is open. Returns true if the key was meant for it.
  key(event) {
    // Suggestions for what was typed before are no answer to what is there now.
    if (this.shownFor !== this.input.value) this.close();
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.chosen = (this.chosen + step + this.rows.length) % this.rows.length;
    else if (event.key === 'Escape') this.close();
    else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && this.rows[this.chosen].text.trim() !== this.input.value.trim())) this.accept();
    else return false;
    event.preventDefault();
    if (step) this.draw();
    return true;
  }

  accept() {
    const { text, from, to } = this.rows[this.chosen];
    const { input } = this;
    input.setRangeText(text, from, to, 'end');
    this.close();
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }
}
