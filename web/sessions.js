// The list of sessions: what needs a person first, then what runs, then the rest.

import { clean, fill, h, icon, iconButton, patch, set } from './dom.js';
import { ago, money, place, when } from './format.js';
import { findSessions, store } from './store.js';

export const titleOf = (row) => clean(row?.label?.title || row?.label?.name || row?.title || 'New session');

// The state of a session in one word: never by colour alone.
export function stateOf(row) {
  if (row.asks) return 'asks';
  if (row.standing === 'working') return 'working';
  if (row.standing === 'failed') return 'failed';
  return row.isUnread ? 'finished' : 'idle';
}

// The wait for a place that no server has now.
export function waitsFor(row) {
  if (!row?.waits) return '';
  const { place: wanted, since } = row.waits;
  return clean(`waits for ${wanted.replace(/^host:/, '')}, ${since ? `gone since ${when(since)}` : 'which no server has had'}`);
}

export const STATE_WORDS = { asks: 'needs you', working: 'working', failed: 'failed', finished: 'new answer', idle: '' };
const ORDER = { asks: 0, working: 1, finished: 2, failed: 2, idle: 2 };

export function sorted(rows) {
  return [...rows].sort((a, b) => ORDER[stateOf(a)] - ORDER[stateOf(b)] || (b.updated_at ?? 0) - (a.updated_at ?? 0));
}

export class SessionList {
  // `actions`: create(), settings().
  constructor(actions) {
    this.found = null;
    this.list = h('ul.session-list', { 'aria-label': 'Sessions' });
    this.empty = h('p.muted.empty');
    this.search = h('input.search', { type: 'search', placeholder: 'Search', 'aria-label': 'Search sessions', autocomplete: 'off', oninput: () => this.typed() });
    this.node = h('nav.sidebar', { 'aria-label': 'Sessions' },
      h('div.brand', h('a', { href: '#/', 'aria-label': 'Windlass, all sessions' }, mark(), h('span', 'Windlass')),
        iconButton('fleet', 'Overview of all sessions', () => { location.hash = '#/fleet'; }), iconButton('gear', 'Settings', actions.settings)),
      h('div.list-tools', h('label.search-box', icon('search'), this.search, h('kbd', 'Ctrl K')),
        h('button.primary.new', { onclick: actions.create }, icon('plus'), h('span', 'New session'))),
      this.empty, this.list);
  }

  typed() {
    clearTimeout(this.timer);
    const words = this.search.value.trim();
    if (!words) { this.found = null; this.draw(); return; }
    this.timer = setTimeout(async () => {
      try { this.found = await findSessions(words); } catch { this.found = []; }
      if (this.search.value.trim() === words) this.draw();
    }, 120);
  }

  draw() {
    const rows = this.found ?? sorted(store.sessions.values()).filter((row) => !row.parent);
    const current = store.conversation?.id;
    patch(this.list, rows, (row) => row.id, (row) => this.fillRow(h('li', h('a.session')), row, current), (node, row) => { this.fillRow(node, row, current); });
    this.empty.hidden = rows.length;
    this.empty.textContent = rows.length ? '' : this.found ? 'Nothing found.' : 'No sessions yet. Start one.';
  }

  fillRow(node, row, current) {
    const state = stateOf(row);
    const version = [titleOf(row), state, row.updated_at && ago(row.updated_at), row.place, row.id === current, row.totals?.cost_usd, waitsFor(row)].join('\n');
    if (node.version === version) return node;
    node.version = version;
    const anchor = set(node.firstChild, { href: `#/s/${encodeURIComponent(row.id)}`, 'aria-current': row.id === current ? 'page' : null });
    anchor.dataset.state = state;
    fill(anchor, h('span.dot'), h('span.title', { dir: 'auto' }, titleOf(row)), h('span.age', row.updated_at ? ago(row.updated_at) : ''),
      h('span.under', STATE_WORDS[state] ? h('span.word', STATE_WORDS[state]) : null, waitsFor(row) ? h('span.word', waitsFor(row)) : null, h('bdi', place(clean(row.place ?? ''))), row.totals?.cost_usd ? h('span', money(row.totals.cost_usd)) : null));
    return node;
  }
}

// The mark of the program: a winch seen from its side.
export function mark() {
  const svg = icon('spark');
  svg.firstChild.setAttribute('d', 'M12 12m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0M12 3v5M12 16v5M3 12h5M16 12h5M6 6l3 3M15 15l3 3M18 6l-3 3M9 15l-3 3');
  svg.setAttribute('class', 'mark');
  return svg;
}
