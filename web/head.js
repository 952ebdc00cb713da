// The line above a conversation: its title, model and mode, how full the context is, what it cost, and its menu.

import { command } from './api.js';
import { clean, fill, h, icon, iconButton, ring } from './dom.js';
import { money, tokens } from './format.js';
import { titleOf, waitsFor } from './sessions.js';
import { remove, rename, store } from './store.js';
import { complain, menu, prompt, toast } from './ui.js';

export class Head {
  // `actions`: panel(tab), command(line), go(hash), fillIn(text).
  constructor(actions) {
    this.actions = actions;
    this.title = h('h1.session-title', { dir: 'auto' });
    this.under = h('p.session-under');
    this.gauge = h('button.gauge', { onclick: () => actions.panel('context') });
    this.cost = h('button.quiet.cost', { onclick: () => actions.panel('cost') });
    this.more = iconButton('dots', 'More', () => this.menu(), { 'aria-haspopup': 'menu', 'aria-expanded': 'false' });
    this.node = h('header.head', h('a.icon-button.back', { href: '#/', 'aria-label': 'All sessions' }, icon('back')),
      h('div.titles', this.title, this.under), this.cost, this.gauge,
      iconButton('list', 'Tasks and plan', () => actions.panel('tasks'), { class: 'wide-only' }), iconButton('diff', 'Changes', () => actions.panel('changes')), this.more);
  }

  draw(it) {
    const { info, overview } = it;
    this.title.textContent = titleOf(info);
    const mode = overview.mode ? h('button.quiet.mode', { 'aria-label': `Permission mode: ${overview.mode}`, onclick: (event) => this.modes(event.currentTarget) }, overview.mode) : null;
    const model = overview.model ? h('button.quiet.model', { 'aria-label': `Model: ${overview.provider} ${overview.model}`, onclick: () => this.actions.fillIn('/model ') }, clean(overview.model)) : h('span', 'no model set up');
    fill(this.under, model, mode, h('bdi.where', clean(info?.place ?? '')), waitsFor(info) ? h('span.tag.warn', waitsFor(info)) : null, overview.provider === 'sim' ? h('span.tag', 'simulated') : null, it.trouble ? h('span.tag.warn', { title: clean(it.trouble) }, clean(it.trouble)) : null);
    const used = info?.totals?.context_tokens ?? 0;
    const share = overview.window ? used / overview.window : 0;
    const text = overview.window ? `${Math.round(share * 100)} % of the context used: ${tokens(used)} of ${tokens(overview.window)} tokens` : `${tokens(used)} tokens in the context`;
    fill(this.gauge, ring(share), h('span', overview.window ? `${Math.round(share * 100)} %` : tokens(used)));
    this.gauge.setAttribute('aria-label', text);
    this.gauge.title = text;
    this.gauge.dataset.level = share > 0.85 ? 'high' : share > 0.6 ? 'middle' : 'low';
    const cost = money(info?.totals?.cost_usd, info?.totals?.unpriced);
    this.cost.textContent = cost;
    this.cost.setAttribute('aria-label', cost === '?' ? 'Cost: not known' : `Cost: ${cost}`);
  }

  modes(button) {
    const modes = [['plan', 'Plan: read only'], ['ask', 'Ask: before each change'], ['edits', 'Edits: change files here without asking'], ['auto', 'Auto: ask when it reaches further'], ['full', 'Full: never ask']];
    menu(button, modes.map(([name, label]) => [label, () => this.actions.command(`/mode ${name}`), name === store.conversation?.overview.mode ? 'check' : 'right']));
  }

  menu() {
    const it = store.conversation;
    const { id } = it;
    menu(this.more, [
      ['Search in this session', this.actions.search, 'search'],
      ['Rename', async () => { const name = await prompt('Name of the session', titleOf(it.info), 'Rename'); if (name) { try { await rename(id, name); it.info.label.title = name; this.draw(it); } catch (error) { complain(error); } } }, 'edit'],
      ['Compact the context', () => this.actions.command('/compact'), 'spark'],
      ['Continue in a copy', () => this.actions.command('/session fork'), 'copy'],
      ['Export as Markdown', () => this.export('markdown', 'md'), 'file'], ['Export as JSON', () => this.export('json', 'json'), 'file'],
      ['Plain text view', () => { window.open(`s/${encodeURIComponent(id)}/plain`, '_blank', 'noopener'); }, 'file'],
      ['Delete', () => this.delete(it), 'trash', 'bad'],
    ]);
  }

  async export(format, ending) {
    try {
      const { text } = await command(store.conversation.id, `/session export ${format}`);
      const url = URL.createObjectURL(new Blob([text]));
      h('a', { href: url, download: `session.${ending}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) { complain(error); }
  }

  // Deletes after a delay in which it can be taken back.
  delete(it) {
    const { id } = it;
    const row = store.sessions.get(id);
    store.sessions.delete(id);
    this.actions.go('#/');
    const timer = setTimeout(() => remove(id).catch(complain), 6000);
    toast(`“${titleOf(it.info)}” is deleted.`, { action: () => { clearTimeout(timer); if (row) store.sessions.set(id, row); this.actions.go(`#/s/${encodeURIComponent(id)}`); } });
  }
}
