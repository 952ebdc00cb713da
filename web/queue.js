// Messages that wait for their turn.

import { clean, h, icon, iconButton, patch } from './dom.js';
import { store, unqueue } from './store.js';
import { complain } from './ui.js';

export class Queue {
  // `actions`: edit(text), steer(message).
  constructor(actions) {
    this.actions = actions;
    this.list = h('ul');
    this.node = h('section.queue', { 'aria-label': 'Waiting messages', hidden: true }, this.list);
  }

  draw(it) {
    const all = [...it.steers.map((message) => ({ message, isSteer: true })), ...it.queue.map((message) => ({ message }))];
    this.node.hidden = !all.length;
    patch(this.list, all, ({ message, isSteer }) => `${message.id}${isSteer ? ' steer' : ''}`, (entry) => this.row(it, entry), () => {});
  }

  row(it, { message, isSteer }) {
    const text = message.parts.filter((part) => part.type === 'text').map((part) => part.data.text).join('\n');
    const images = message.parts.filter((part) => part.type === 'binary').length;
    const label = clean(text).split('\n')[0].slice(0, 200) || `${images} images`;
    const take = async (then) => {
      try { await unqueue(it.id, message.id); then?.(); } catch (error) { complain(error); }
    };
    return h('li', icon(isSteer ? 'bolt' : 'clock'), h('span.label', { dir: 'auto' }, h('span.sr', isSteer ? 'For the running turn: ' : 'Waiting: '), label),
      isSteer ? null : [
        store.conversation?.isBusy ? iconButton('bolt', 'Give it to the running turn now', () => take(() => this.actions.steer(message))) : null,
        iconButton('edit', 'Edit', () => take(() => this.actions.edit(text))), iconButton('close', 'Remove', () => take())]);
  }
}
