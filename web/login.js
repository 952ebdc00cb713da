// Signing in by a link that works once, and what to do when a check fails.

import { Problem, post } from './api.js';
import { fill, h } from './dom.js';
import { mark } from './sessions.js';

// Uses the token in the address, if there is one, and removes it from the address at once.
export async function useLink() {
  const token = /^#t=([^&]+)/.exec(location.hash)?.[1];
  if (!token) return null;
  history.replaceState(null, '', location.pathname);
  try {
    await post('login', { token: decodeURIComponent(token) });
    return null;
  } catch (error) {
    return error;
  }
}

const REASONS = {
  401: ['You are not signed in on this browser.', 'windlass token link'],
  403: ['The browser sent this request from another site, or this token may not do it.', ''],
  421: ['This name is not one the server answers to. Open it by the address it printed.', 'windlass serve --help'],
  429: ['Too many failed attempts. Wait a minute and try a new link.', ''],
};

export function showLogin(node, error) {
  const status = error instanceof Problem ? error.status : error?.status ?? 401;
  const [reason, fix] = REASONS[status] ?? REASONS[401];
  const said = error instanceof Problem && error.body.detail;
  const input = h('input.wide', { type: 'url', 'aria-label': 'Sign-in link', placeholder: 'http://127.0.0.1:…/#t=…', autocomplete: 'off' });
  const note = h('p.hint', { role: 'status' });
  fill(node, h('main.login', h('div.login-card', mark(), h('h1', 'Sign in to Windlass'), h('p', reason), said ? h('p.muted', said) : null,
    h('p.muted', 'Windlass prints a sign-in link where it runs. It works once, for ten minutes. For a new one, run there:'), h('pre.command', (error instanceof Problem && error.body.fix) || fix || 'windlass token link'),
    h('form', { onsubmit: async (event) => {
      event.preventDefault();
      const token = /#t=([^&\s]+)/.exec(input.value)?.[1] ?? input.value.trim();
      if (!token) return;
      try { await post('login', { token: decodeURIComponent(token) }); location.reload(); } catch (problem) { note.textContent = problem.message; }
    } }, input, h('button.primary', 'Sign in')), note)));
  input.focus();
}
