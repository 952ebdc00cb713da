// Ctrl+K: finds a session by any word that was said in it, a place in the open session, and what can be done here.

import { clean, fill, h, icon } from './dom.js';
import { ago, place, when } from './format.js';
import { sorted, titleOf } from './sessions.js';
import { findPlaces, findSessions, store } from './store.js';
import { dialog } from './ui.js';

const SIGNS_OF = { user: 'edit', answer: 'spark', reasoning: 'spark', call: 'terminal' };

// `jump(seq)` shows a place of the open session.
export function openPalette(actions, jump) {
  if (document.querySelector('dialog.palette')) return;
  let [rows, chosen] = [[], 0];
  const list = h('ul.palette-list', { id: 'palette-list', role: 'listbox', 'aria-label': 'Results' });
  const input = h('input.wide', { type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-label': 'Search sessions and actions', placeholder: 'Search sessions and actions', autocomplete: 'off', oninput: () => look(), onkeydown: (event) => key(event) });
  const { close } = dialog('Search', [input, list], { kind: 'palette' });

  const draw = () => {
    fill(list, rows.map((row, index) => h('li', { id: `found-${index}`, role: 'option', 'aria-selected': String(index === chosen), onclick: () => run(index) }, icon(row.sign), h('span.label', { dir: 'auto' }, row.label), h('span.note', row.note ?? ''))));
    if (!rows.length) fill(list, h('li.muted', { role: 'option', 'aria-selected': 'false', 'aria-disabled': 'true' }, 'Nothing found.'));
    input.setAttribute('aria-activedescendant', rows.length ? `found-${chosen}` : '');
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
  };
  const run = (index) => { const row = rows[index]; close(); row?.run(); };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.length) { event.preventDefault(); chosen = (chosen + step + rows.length) % rows.length; draw(); }
    else if (event.key === 'Enter') { event.preventDefault(); run(chosen); }
  };
  const asRow = (row) => ({ sign: 'right', label: titleOf(row), note: `${place(clean(row.place ?? ''))} · ${row.updated_at ? ago(row.updated_at) : ''}`, run: () => { location.hash = `#/s/${encodeURIComponent(row.id)}`; } });
  const asPlace = ({ seq, time, kind, excerpt }) => ({ sign: SIGNS_OF[kind], label: clean(excerpt), note: `here · ${when(time)}`, run: () => jump(seq) });

  let asked;
  const look = async () => {
    const words = input.value.trim();
    const mine = asked = {};
    const offered = actions.filter((action) => action.label.toLowerCase().includes(words.toLowerCase()));
    if (!words) rows = [...offered.slice(0, 6), ...sorted(store.sessions.values()).slice(0, 20).map(asRow)];
    else {
      const [found, places] = await Promise.all([findSessions(words).catch(() => []), findPlaces(words).catch(() => [])]);
      if (asked !== mine) return;
      rows = [...offered, ...places.map(asPlace), ...found.map(asRow)];
    }
    chosen = 0;
    draw();
  };
  look();
  input.focus();
}
