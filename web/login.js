// Signing in by a link that works once, and what to do when a check fails.

import { post } from './api.js';
import { clean, fill, h } from './dom.js';
import { sentence } from './format.js';
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

// Says which check failed and what fixes it, in the server's words.
export function showLogin(node, error) {
  const { detail = 'You are not signed in on this browser.', fix = 'windlass token link' } = error?.body ?? {};
  const input = h('input.wide', { type: 'url', 'aria-label': 'Sign-in link', placeholder: 'http://127.0.0.1:…/#t=…', autocomplete: 'off' });
  const note = h('p.hint', { role: 'status' });
  fill(node, h('main.login', h('div.login-card', mark(), h('h1', 'Sign in to Windlass'), h('p', sentence(clean(detail))),
    h('p.muted', 'Windlass prints a sign-in link where it runs. It works once, for ten minutes. For a new one, run there:'), h('pre.command', clean(fix)),
    h('form', { onsubmit: async (event) => {
      event.preventDefault();
      const token = /#t=([^&\s]+)/.exec(input.value)?.[1] ?? input.value.trim();
      if (!token) return;
      try { await post('login', { token: decodeURIComponent(token) }); location.reload(); } catch (problem) { note.textContent = problem.message; }
    } }, input, h('button.primary', { type: 'submit' }, 'Sign in')), note)));
  input.focus();
}
