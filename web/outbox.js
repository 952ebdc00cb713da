// Messages on their way to the server. Each has an id, so sending it twice has the effect of once; what could not
// be sent is kept and sent when the server is back, even after the page was closed.

import { Problem, inSession, post, uuid } from './api.js';

const OUTBOX = 'windlass.outbox';

export class Outbox {
  // `changed()` is called when the list changed, `refused(send, problem)` when the server does not want a message.
  constructor({ changed, refused }) {
    Object.assign(this, { changed, refused });
    try { this.sends = JSON.parse(localStorage.getItem(OUTBOX) ?? '[]').map((send) => ({ ...send, isWaiting: true })); } catch { this.sends = []; }
  }

  of(session) {
    return this.sends.filter((send) => send.session === session);
  }

  add(session, { text, parts, images, onBusy }) {
    this.sends.push({ id: uuid(), session, text, parts, images, onBusy, time: Date.now() });
    this.save();
    this.flush();
  }

  // Sends everything that was not sent, in order.
  async flush() {
    if (this.isSending) { this.isAsked = true; return; }
    this.isSending = true;
    try {
      for (let send; (send = this.sends.find((one) => !one.isSent && !one.isBroken));) if (!await this.deliver(send)) break;
    } finally { this.isSending = false; }
    if (this.isAsked) { this.isAsked = false; this.flush(); }
  }

  async deliver(send) {
    try {
      const uploads = [];
      for (const { path, data } of send.images ?? []) uploads.push((await post('uploads', { name: path, data })).id);
      await post(inSession(send.session, 'messages'), { id: send.id, parts: send.parts, uploads, on_busy: send.onBusy });
      send.isSent = true;
      send.isWaiting = false;
      // A command's answer may leave no message behind; nothing stays on the screen for ever.
      setTimeout(() => this.heard(send.id), 10_000);
    } catch (error) {
      if (!(error instanceof Problem) || error.status >= 500 || error.status === 429) {
        send.isWaiting = true;
        this.save();
        return false;
      }
      this.sends = this.sends.filter((one) => one !== send);
      this.refused(send, error);
    }
    this.save();
    return true;
  }

  // The server told of this message.
  heard(...ids) {
    const before = this.sends.length;
    this.sends = this.sends.filter((send) => !ids.includes(send.id));
    if (this.sends.length !== before) this.save();
  }

  // A snapshot contains everything that was sent before it.
  settle(session) {
    this.sends = this.sends.filter((send) => send.session !== session || !send.isSent);
    this.save();
  }

  save() {
    try { localStorage.setItem(OUTBOX, JSON.stringify(this.sends.filter((send) => !send.isSent))); } catch { /* Too large for the browser's storage: it stays in memory. */ }
    this.changed();
  }
}
