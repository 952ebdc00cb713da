// The page's own settings: theme, notifications, signing out.

import { get, inSession, post, query, request } from './api.js';
import { clean, fill, h, icon } from './dom.js';
import { ago } from './format.js';
import { askPermission, canNotify, isAllowed, pushed, setPush, settings } from './notify.js';
import { store } from './store.js';
import { complain, dialog } from './ui.js';

const THEME = 'windlass.theme';

export function applyTheme(value = localStorage.getItem(THEME) ?? 'auto') {
  document.documentElement.dataset.theme = value;
}

// `run(line)` runs a command of the open session.
export function openSettings(run) {
  const current = localStorage.getItem(THEME) ?? 'auto';
  const theme = h('fieldset', h('legend', 'Appearance'), h('div.row', [['auto', 'Same as system'], ['light', 'Light'], ['dark', 'Dark']].map(([value, label]) => h('label.choice', h('input', { type: 'radio', name: 'theme', value, checked: value === current, onchange: () => { localStorage.setItem(THEME, value); applyTheme(value); } }), label))));
  const [logins, session] = [h('div'), h('fieldset', { hidden: true })];
  dialog('Settings', (close) => [session, theme, notifications(), h('fieldset', h('legend', 'Signed-in browsers'), logins), keys(), h('div.row.end', h('button', { onclick: async () => { try { await post('logout'); } catch (error) { complain(error); } close(); location.reload(); } }, 'Sign out'))]);
  showLogins(logins);
  if (store.conversation) showSession(session, store.conversation, run);
}

// What may be changed of the open session, by the same commands as everywhere.
async function showSession(box, it, run) {
  const choice = async ([name, label]) => {
    const { completions } = await get(`${inSession(it.id, 'commands')}${query({ complete: `/${name} ` })}`);
    const current = it.overview[name] || '';
    const values = [...new Set([current, ...completions.map((line) => line.slice(name.length + 2).trim())])].filter(Boolean);
    return h('label.field', h('span', label), h('select', { onchange: (event) => run(`/${name} ${event.target.value}`) }, values.map((value) => h('option', { value, selected: value === current }, clean(value)))));
  };
  try {
    fill(box, h('legend', 'This session'), await Promise.all([['model', 'Model'], ['effort', 'Reasoning'], ['mode', 'Permissions']].map(choice)));
    box.hidden = false;
  } catch { /* A session that another program runs can only be read. */ }
}

function notifications() {
  const box = h('div');
  const draw = () => {
    const all = settings.all;
    const check = (name, label) => h('label.choice', h('input', { type: 'checkbox', checked: all[name], onchange: (event) => settings.save({ [name]: event.target.checked }) }), label);
    const time = (name, label) => h('label.choice', label, h('input', { type: 'time', value: all[name] ?? '', onchange: (event) => settings.save({ [name]: event.target.value }) }));
    if (!canNotify()) fill(box, h('p.muted', 'Notifications need HTTPS or localhost. From another device, put it behind HTTPS, for example:'), h('pre.command', 'tailscale serve --bg http://127.0.0.1:PORT'));
    else if (!isAllowed()) fill(box, h('p.muted', 'An open page can tell you when Windlass needs you or has finished.'), h('button', { onclick: async () => { await askPermission(); draw(); } }, 'Allow notifications'));
    else fill(box, push(), h('div.row', check('asks', 'Needs me'), check('finished', 'Finished'), check('failed', 'Failed')), h('div.row', time('from', 'Quiet from'), time('to', 'until')));
  };
  draw();
  return h('fieldset', h('legend', 'Notifications'), box);
}

// Notifications while no page is open, by the push service of the browser's maker.
function push() {
  if (!('PushManager' in window)) return null;
  const input = h('input', { type: 'checkbox', disabled: true, onchange: async () => {
    input.disabled = true;
    try { await setPush(input.checked); } catch (error) { input.checked = !input.checked; complain(error); }
    input.disabled = false;
  } });
  pushed().then((known) => { input.checked = Boolean(known); input.disabled = false; });
  return h('label.choice', input, 'Also when this page is closed');
}

async function showLogins(box) {
  let found;
  try { found = await get('credentials'); } catch { box.closest('fieldset').hidden = true; return; }
  fill(box, h('ul.facts-list', found.credentials.map((row) => h('li', h('bdi', browserName(clean(row.name))), ' ', h('span.muted', row.id === found.own ? 'this browser' : row.used_at ? ago(row.used_at) : ''), ' ',
    row.id === found.own ? null : h('button.quiet', { onclick: async () => { try { await request('DELETE', `credentials/${encodeURIComponent(row.id)}`); } catch (error) { complain(error); } showLogins(box); } }, 'Revoke')))));
}

// Shortens what a browser calls itself: `Firefox 140, Linux`.
function browserName(name) {
  const found = /(Firefox|Edg|OPR|Chrome|Version)\/(\d+)/.exec(name);
  const system = /Android|iPhone|iPad|Windows|Mac OS|Linux/.exec(name);
  return found && name.startsWith('Mozilla/') ? `${{ Edg: 'Edge', OPR: 'Opera', Version: 'Safari' }[found[1]] ?? found[1]} ${found[2]}${system ? `, ${system[0]}` : ''}` : name;
}

const KEYS = [['Ctrl K', 'Search'], ['Enter', 'Send, or queue while it works'], ['Ctrl Enter', 'Give it to the running turn'], ['Shift Enter', 'New line'], ['Esc Esc', 'Stop'], ['Ctrl J', 'To the message field'], ['Alt N', 'New session'], ['y s a n t', 'Answer a request'], ['Ctrl B', 'Changes']];

function keys() {
  return h('details', h('summary', icon('right'), 'Keys'), h('dl.keys', KEYS.map(([key, what]) => [h('dt', key.split(' ').map((one) => h('kbd', one))), h('dd', what)])));
}
