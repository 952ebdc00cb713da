// The service worker: shows notifications that arrive while no page is open, and opens the page at what they tell of.
// It caches no file, so the page is always the one of the running server.

const TEXTS = { asks: 'Needs your answer', finished: 'Has finished', failed: 'Failed' };

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

// The page leaves its settings here, because a worker cannot read its storage.
async function preferences() {
  try { return await (await (await caches.open('windlass')).match('settings')).json(); } catch { return {}; }
}

function isQuiet({ from, to }) {
  if (!from || !to) return false;
  const time = new Date().toTimeString().slice(0, 5);
  return from <= to ? time >= from && time < to : time >= from || time < to;
}

// A message of the server: {kind, session, call, title, body}. The browser decrypts it; whoever relays it sees nothing.
self.addEventListener('push', (event) => event.waitUntil((async () => {
  let message = {};
  try { message = event.data.json(); } catch { /* A message without content still says that something happened. */ }
  const { kind = 'asks', session = '', call = '', title = 'Windlass', body = TEXTS[kind] } = message;
  const [all, pages] = [await preferences(), await self.clients.matchAll({ type: 'window' })];
  // A page that is being looked at tells it itself.
  if (all[kind] === false || pages.some((page) => page.visibilityState === 'visible')) return;
  const hash = call ? `#/approve/${encodeURIComponent(call)}` : session ? `#/s/${encodeURIComponent(session)}` : '#/';
  await self.registration.showNotification(String(title), { body: String(body ?? ''), tag: `${session} ${kind}`, icon: 'icon.svg', silent: isQuiet(all), data: { hash } });
})()));

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const hash = String(event.notification.data?.hash ?? '');
  const address = new URL(hash.startsWith('#/') ? hash : '#/', self.registration.scope).href;
  event.waitUntil((async () => {
    const pages = await self.clients.matchAll({ type: 'window' });
    if (!pages.length) { await self.clients.openWindow(address); return; }
    await pages[0].focus();
    pages[0].postMessage({ hash });
  })());
});
