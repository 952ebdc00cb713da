// The one event stream of this tab: the chosen session in full, all others coarsely.
//
// It reads with fetch instead of EventSource, because only then heartbeats are visible and a link that is
// open but dead is noticed. It resumes by number, so a lost link loses nothing.

import { query } from './api.js';

const SILENCE = 40_000;
const FIRST_DELAY = 250;
const LAST_DELAY = 5_000;
const NOTICE = 2_000;

export class EventLink {
  // `position()` returns {session, after, epoch}; `hear(event, data, id)` takes each event; `state(link)` is told
  // when the link is lost for longer than two seconds, and when it is back.
  constructor({ position, hear, state, refused, gone }) {
    Object.assign(this, { position, hear, state, refused, gone });
    this.delay = FIRST_DELAY;
    this.lostAt = 0;
    this.isShown = false;
    this.isOpen = false;
    const wake = () => this.wake();
    for (const name of ['online', 'focus', 'pageshow']) window.addEventListener(name, wake);
    document.addEventListener('visibilitychange', () => { if (!document.hidden) wake(); });
    document.addEventListener('resume', wake);
    window.addEventListener('offline', () => { if (this.isWanted) this.lost(); });
  }

  // Connects anew, at once: another session was chosen, or its state was fetched again.
  restart() {
    this.stop();
    this.isWanted = true;
    this.delay = FIRST_DELAY;
    this.connect();
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.controller?.abort();
    this.controller = null;
    this.isOpen = false;
  }

  // The tab was hidden, frozen or offline. A link that was silent too long is replaced, not waited for.
  wake() {
    if (!this.isWanted) return;
    const isStale = this.isOpen && Date.now() - this.heardAt > SILENCE / 2;
    if (!this.controller || !this.isOpen || isStale) {
      this.delay = FIRST_DELAY;
      this.stop();
      this.connect();
    }
    this.notice();
  }

  async connect() {
    const controller = this.controller = new AbortController();
    const { session, after, epoch } = this.position();
    this.watch(controller);
    try {
      const answer = await fetch(`api/events${query({ session, after, epoch })}`, {
        headers: { Accept: 'text/event-stream', 'X-Windlass': '1' }, cache: 'no-store', signal: controller.signal,
      });
      if (answer.status === 401 || answer.status === 403 || answer.status === 421) {
        this.stop();
        this.isWanted = false;
        this.refused({ status: answer.status, body: await answer.json().catch(() => ({})) });
        return;
      }
      if (answer.status === 404) this.gone();
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      this.found();
      await this.read(answer.body.getReader(), controller);
    } catch { /* Every failure has the same answer: connect again. */ }
    if (this.controller !== controller) return;
    this.stop();
    this.lost();
    this.timer = setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(LAST_DELAY, this.delay * 2);
  }

  async read(reader, controller) {
    const decoder = new TextDecoder();
    let buffer = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.controller !== controller) return;
      this.watch(controller);
      buffer += decoder.decode(value, { stream: true });
      let end;
      while ((end = buffer.indexOf('\n\n')) >= 0) {
        this.frame(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (this.controller !== controller) return;
      }
    }
  }

  frame(text) {
    let [name, id, data] = ['message', '', ''];
    for (const line of text.split('\n')) {
      const at = line.indexOf(':');
      if (at <= 0) continue;
      const [field, value] = [line.slice(0, at), line.slice(line[at + 1] === ' ' ? at + 2 : at + 1)];
      if (field === 'event') name = value;
      else if (field === 'id') id = value;
      else if (field === 'data') data += data ? `\n${value}` : value;
    }
    if (data) this.hear(name, JSON.parse(data), id);
  }

  // Aborts a link on which not even a heartbeat arrived.
  watch(controller) {
    this.heardAt = Date.now();
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => controller.abort(), SILENCE);
  }

  found() {
    this.isOpen = true;
    this.delay = FIRST_DELAY;
    this.lostAt = 0;
    clearTimeout(this.noticing);
    if (this.isShown) { this.isShown = false; this.state(null); }
    else this.state(undefined);
  }

  lost() {
    this.isOpen = false;
    this.lostAt ||= Date.now();
    this.notice();
  }

  // Says that the link is lost only when a person has looked at the page for two seconds meanwhile.
  notice() {
    clearTimeout(this.noticing);
    if (!this.lostAt || document.hidden || this.isShown) return;
    const shownAt = Date.now();
    this.noticing = setTimeout(() => {
      if (!this.lostAt || document.hidden || Date.now() - shownAt < NOTICE) return;
      this.isShown = true;
      this.state(this.lostAt);
    }, NOTICE);
  }
}
