// The service worker: opens the page at the session a notification tells of. It caches nothing, so the page is
// always the one of the running server.

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

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
