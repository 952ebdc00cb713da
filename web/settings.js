// The page's own settings: theme, notifications, signing out.

import { get, post, request } from './api.js';
import { clean, fill, h } from './dom.js';
import { ago } from './format.js';
import { askPermission, canNotify, isAllowed, settings } from './notify.js';
import { complain, dialog } from './ui.js';

const THEME = 'windlass.theme';

export function applyTheme(value = localStorage.getItem(THEME) ?? 'auto') {
  document.documentElement.dataset.theme = value;
}

export function openSettings() {
  const current = localStorage.getItem(THEME) ?? 'auto';
  const theme = h('fieldset', h('legend', 'Appearance'), h('div.row', [['auto', 'As the system'], ['light', 'Light'], ['dark', 'Dark']].map(([value, label]) => h('label.choice', h('input', { type: 'radio', name: 'theme', value, checked: value === current, onchange: () => { localStorage.setItem(THEME, value); applyTheme(value); } }), label))));
  const logins = h('div');
  dialog('Settings', (close) => [theme, notifications(), h('fieldset', h('legend', 'Signed-in browsers'), logins), keys(), h('div.row.end', h('button', { onclick: async () => { try { await post('logout'); } catch (error) { complain(error); } close(); location.reload(); } }, 'Sign out'))]);
  showLogins(logins);
}

function notifications() {
  const box = h('div');
  const draw = () => {
    const all = settings.all;
    const check = (name, label) => h('label.choice', h('input', { type: 'checkbox', checked: all[name], onchange: (event) => settings.save({ [name]: event.target.checked }) }), label);
    const time = (name, label) => h('label.choice', label, h('input', { type: 'time', value: all[name] ?? '', onchange: (event) => settings.save({ [name]: event.target.value }) }));
    if (!canNotify()) fill(box, h('p.muted', 'Notifications need HTTPS or localhost. From another device, put it behind HTTPS, for example:'), h('pre.command', 'tailscale serve --bg http://127.0.0.1:PORT'));
    else if (!isAllowed()) fill(box, h('p.muted', 'An open page can tell you when Windlass needs you or has finished.'), h('button', { onclick: async () => { await askPermission(); draw(); } }, 'Allow notifications'));
    else fill(box, h('div.row', check('asks', 'Needs me'), check('finished', 'Finished'), check('failed', 'Failed')), h('div.row', time('from', 'Quiet from'), time('to', 'until')));
  };
  draw();
  return h('fieldset', h('legend', 'Notifications'), box);
}

async function showLogins(box) {
  let found;
  try { found = await get('credentials'); } catch { box.closest('fieldset').hidden = true; return; }
  fill(box, h('ul.facts-list', found.credentials.map((row) => h('li', h('bdi', clean(row.name)), ' ', h('span.muted', row.id === found.own ? 'this browser' : row.used_at ? ago(row.used_at) : ''), ' ',
    row.id === found.own ? null : h('button.quiet', { onclick: async () => { try { await request('DELETE', `credentials/${encodeURIComponent(row.id)}`); } catch (error) { complain(error); } showLogins(box); } }, 'Revoke')))));
}

const KEYS = [['Ctrl K', 'Search'], ['Enter', 'Send, or queue while it works'], ['Ctrl Enter', 'Give it to the running turn'], ['Shift Enter', 'New line'], ['Esc Esc', 'Stop'], ['Ctrl J', 'To the message field'], ['Alt N', 'New session'], ['y s a n t', 'Answer a request'], ['Ctrl B', 'Changes']];

function keys() {
  return h('details', h('summary', 'Keys'), h('dl.keys', KEYS.map(([key, what]) => [h('dt', key.split(' ').map((one) => h('kbd', one))), h('dd', what)])));
}
