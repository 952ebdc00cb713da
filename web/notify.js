// Attention: the title, the badge of an installed page, notifications, and web push for a page that is closed.

import { get, request } from './api.js';
import { stateOf } from './sessions.js';
import { store } from './store.js';

const NOTIFY = 'windlass.notify';

export const settings = {
  get all() {
    try { return { asks: true, finished: true, failed: true, from: '', to: '', ...JSON.parse(localStorage.getItem(NOTIFY) ?? '{}') }; } catch { return { asks: true, finished: true, failed: true }; }
  },
  async save(value) {
    const text = JSON.stringify({ ...this.all, ...value });
    localStorage.setItem(NOTIFY, text);
    // The worker reads them here.
    await (await caches.open('windlass')).put('settings', new Response(text));
  },
};

export const canNotify = () => 'Notification' in window && isSecureContext;
export const isAllowed = () => canNotify() && Notification.permission === 'granted';
export const askPermission = async () => (canNotify() ? Notification.requestPermission() : 'denied');

// Counts the sessions that wait for a person, in the title and on the icon.
export function drawBadge(title) {
  const waiting = [...store.sessions.values()].filter((row) => stateOf(row) === 'asks').length;
  document.title = `${waiting ? `(${waiting}) ` : ''}${title ? `${title} · ` : ''}Windlass`;
  if (!navigator.setAppBadge) return;
  (waiting ? navigator.setAppBadge(waiting) : navigator.clearAppBadge()).catch(() => {});
}

function isQuiet(now = new Date()) {
  const { from, to } = settings.all;
  if (!from || !to) return false;
  const time = `${String(now.getHours()).padStart(2, '0')}:${String(now.getMinutes()).padStart(2, '0')}`;
  return from <= to ? time >= from && time < to : time >= from || time < to;
}

// Notifies of an event of a session that nobody looks at. `kind` is asks, finished or failed.
export async function notify(kind, session, title, text) {
  const isLooking = !document.hidden && store.conversation?.id === session;
  if (isLooking || !isAllowed() || !settings.all[kind] || isQuiet()) return;
  const options = { body: text.slice(0, 200), tag: `${session} ${kind}`, icon: 'icon.svg', data: { hash: `#/s/${encodeURIComponent(session)}` } };
  try {
    const worker = await navigator.serviceWorker?.getRegistration();
    if (worker) { await worker.showNotification(title, options); return; }
    const shown = new Notification(title, options);
    shown.onclick = () => { window.focus(); location.hash = options.data.hash; shown.close(); };
  } catch { /* A browser that forbids notifications still shows the badge. */ }
}

// Returns this browser's subscription to web push, if there is one.
export async function pushed() {
  const worker = await navigator.serviceWorker?.getRegistration();
  return worker?.pushManager?.getSubscription();
}

// Switches web push on or off for this browser. The server's key makes sure that only this server can send.
export async function setPush(isOn) {
  const known = await pushed();
  if (isOn) {
    const { key } = await get('push/key');
    // A subscription for another key is of no use.
    await known?.unsubscribe();
    const { pushManager } = await navigator.serviceWorker.ready;
    const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    try { await request('PUT', 'push/subscriptions', made.toJSON()); } catch (error) { await made.unsubscribe(); throw error; }
    await settings.save({});
  } else if (known) {
    await known.unsubscribe();
    await request('DELETE', 'push/subscriptions', { endpoint: known.endpoint });
  }
}

// Registers the worker that shows notifications on phones. Its address is the only script address this page makes.
export function startWorker() {
  if (!('serviceWorker' in navigator) || !isSecureContext) return;
  const policy = window.trustedTypes?.createPolicy('windlass-sw', { createScriptURL: (url) => { if (url !== './sw.js') throw new TypeError('not the worker'); return url; } });
  navigator.serviceWorker.register(policy ? policy.createScriptURL('./sw.js') : './sw.js').catch(() => {});
}
