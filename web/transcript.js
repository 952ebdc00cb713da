// The conversation on the screen: a window of items that follows the end only while the reader is there.

import { bdi, clean, fill, h, icon, iconButton, patch } from './dom.js';
import { mark } from './sessions.js';
import { callCard, output } from './cards.js';
import { elapsed, moment, money, span, tokens, when } from './format.js';
import { renderMarkdown } from './markdown.js';
import { copyText, disclosure, perFrame } from './ui.js';

// Items in the document at first, how many are added at its upper end, and the most that stay while following.
const WINDOW = 120;
const STEP = 80;
const ITEMS_MOST = 240;
// Items kept in memory; older ones are read from the server again.
const MEMORY = 3_000;
const AT_END = 64;

export class Transcript {
  // `actions`: older(), undo(turn), changes(turn), edit(item), permalink(item).
  constructor(actions) {
    this.actions = actions;
    this.list = h('div.items');
    this.top = h('div.top');
    this.pending = h('div.pending');
    this.activity = h('div.activity');
    this.node = h('div.scroller', { tabindex: -1 }, h('section.log', { role: 'log', 'aria-live': 'off', 'aria-label': 'Conversation' }, this.top, this.list, this.pending, this.activity));
    this.below = h('button.below', { hidden: true, onclick: () => this.toEnd() }, icon('down'), h('span', 'New below'));
    this.isFollowing = true;
    this.shown = WINDOW;
    // The last item in the document; null for the end of the conversation.
    this.last = null;
    this.draw = perFrame(() => this.drawNow());
    this.node.addEventListener('scroll', () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.follow()).observe(this.node);
  }

  // Shows a conversation from its end, or, if it was only read again, where the reader is.
  show(conversation) {
    const isSame = this.conversation?.id === conversation.id && !this.isFollowing;
    const top = this.node.getBoundingClientRect().top;
    const seen = isSame && [...this.list.children].find((node) => node.getBoundingClientRect().bottom > top);
    this.conversation = conversation;
    this.list.keyed?.clear();
    this.list.replaceChildren();
    this.shown = WINDOW;
    this.last = null;
    this.isFollowing = true;
    this.drawNow();
    this.toEnd();
    if (seen) this.jump(Number(seen.dataset.seq), true);
  }

  drawNow() {
    const it = this.conversation;
    if (!it) return;
    if (this.isFollowing && it.items.length > MEMORY) {
      it.items.splice(0, it.items.length - MEMORY);
      it.first = it.items[0].seq;
      it.hasOlder = true;
    }
    if (this.isFollowing && this.shown > ITEMS_MOST) this.shown = WINDOW;
    const end = this.end();
    const items = it.items.slice(Math.max(0, end - this.shown), end);
    this.pending.hidden = Boolean(this.last);
    const changed = it.changed;
    it.changed = new Set();
    patch(this.list, items, (item) => item.key, (item) => this.create(item), (node, item) => { if (changed.has(item.key) || (changed.has('lanes') && item.kind === 'call')) node.update?.(item); });
    this.drawTop(it);
    this.drawActivity(it);
    this.follow();
  }

  // Returns the number of items up to the last one in the document.
  end() {
    const { items } = this.conversation;
    const end = this.last ? items.indexOf(this.last) + 1 : 0;
    if (!end || end === items.length) this.last = null;
    return end || items.length;
  }

  create(item) {
    const node = item.kind === 'call' ? callCard(item, this.conversation) : KINDS[item.kind](item, this.actions, this.conversation);
    node.id = `m${item.seq}-${item.key}`;
    node.dataset.seq = item.seq;
    return node;
  }

  drawTop(it) {
    const hidden = this.end() - this.shown;
    if (hidden > 0 || it.hasOlder) {
      if (!this.top.firstChild) fill(this.top, h('button.quiet', { onclick: () => this.older() }, 'Show earlier messages'));
    } else fill(this.top, it.items.length || it.isBusy ? null : empty(it));
  }

  // The line below the last item: what runs now, and for how long.
  drawActivity(it) {
    const last = it.items.at(-1);
    const isShown = it.isBusy && !this.last && !(last?.isLive && last.kind === 'text');
    this.activity.hidden = !isShown;
    if (!isShown) return;
    const running = it.items.findLast((item) => item.kind === 'call' && item.state === 'running');
    const text = it.asks.size ? 'Waiting for you' : it.status || (running ? 'Working' : last?.kind === 'thinking' && last.isLive ? 'Thinking' : 'Waiting for the model');
    fill(this.activity, h('span.pulse'), h('span', text), h('span.time.elapsed', { 'data-since': it.since }, elapsed(Date.now() - it.since)), it.why ? h('span.why', clean(it.why)) : null);
  }

  // Texts that were sent but not heard of yet.
  drawPending(sends) {
    patch(this.pending, sends, (send) => send.id, (send) => {
      const node = userItem({ text: send.text, images: send.images ?? [], time: send.time }, this.actions);
      node.classList.add('unsent');
      node.append(h('p.delivery'));
      return this.delivery(node, send);
    }, (node, send) => { this.delivery(node, send); });
    this.follow();
  }

  delivery(node, send) {
    node.querySelector('.delivery').textContent = send.isWaiting ? 'Waiting for the connection; sent automatically' : 'Sending…';
    return node;
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    const left = scrollHeight - scrollTop - clientHeight;
    const isAtEnd = left < AT_END && !this.last;
    // Layout may move the position by itself; only a reader who moves up stops following.
    if (isAtEnd) this.isFollowing = true;
    else if (scrollTop < (this.lastTop ?? 0) - 2) this.isFollowing = false;
    this.lastTop = scrollTop;
    this.below.hidden = isAtEnd || (this.isFollowing && !this.isHeld);
    if (scrollTop < 400 && !this.isFollowing && this.top.firstChild) this.older();
    if (left < 400 && this.last && !this.isLoading) this.newer();
  }

  // Keeps the end in view, but never pushes the beginning of a reply out of it.
  follow() {
    if (!this.isFollowing) { this.scrolled(); return; }
    const last = this.list.lastElementChild;
    const { node } = this;
    let goal = node.scrollHeight - node.clientHeight;
    this.isHeld = false;
    const reply = last?.classList.contains('end') ? last.previousElementSibling : last;
    if (reply?.classList.contains('reply') && reply.offsetHeight > node.clientHeight * 0.8) {
      const start = reply.getBoundingClientRect().top - node.getBoundingClientRect().top + node.scrollTop - 24;
      if (start < goal) { this.isHeld = goal - start > AT_END; goal = start; }
    }
    if (Math.abs(node.scrollTop - goal) > 1) node.scrollTop = goal;
    this.lastTop = node.scrollTop;
    this.below.hidden = !this.isHeld;
  }

  toEnd() {
    if (!this.conversation) return;
    this.isFollowing = true;
    this.isHeld = false;
    if (this.last) { this.last = null; this.shown = WINDOW; this.drawNow(); }
    this.node.scrollTop = this.node.scrollHeight;
    this.lastTop = this.node.scrollTop;
    this.below.hidden = true;
  }

  // Adds later items below the window, after a jump into the past.
  newer() {
    const { items } = this.conversation;
    this.last = items[this.end() - 1 + STEP] ?? null;
    this.shown += STEP;
    this.drawNow();
  }

  // Adds earlier items above the window. What the reader looks at stays where it is.
  async older() {
    const it = this.conversation;
    if (this.isLoading || !it) return;
    this.isLoading = true;
    try {
      if (this.end() - this.shown < STEP && it.hasOlder) {
        const before = it.items.length;
        await this.actions.older();
        if (this.conversation !== it) return;
        if (it.items.length === before && it.hasOlder) return;
      }
      const anchor = this.list.firstElementChild;
      const from = anchor?.getBoundingClientRect().top ?? 0;
      this.isFollowing = false;
      this.shown = Math.min(this.end(), this.shown + STEP);
      this.drawNow();
      if (anchor) this.node.scrollTop += anchor.getBoundingClientRect().top - from;
      this.lastTop = this.node.scrollTop;
    } finally { this.isLoading = false; }
  }

  // Scrolls to an entry by its number, loading what is needed.
  async jump(seq, isQuiet) {
    const it = this.conversation;
    for (let tries = 0; tries < 200 && it === this.conversation && it.first > seq && it.hasOlder; tries++) await this.actions.older();
    const at = it.items.findIndex((item) => item.seq >= seq);
    if (at < 0) return;
    this.isFollowing = false;
    // What is already in the document stays; otherwise the window moves there.
    if (!this.list.keyed.has(it.items[at].key)) {
      this.last = it.items[at + WINDOW / 2] ?? null;
      this.shown = this.end() - Math.max(0, at - 10);
    }
    this.drawNow();
    const node = this.list.keyed.get(it.items[at].key);
    node?.scrollIntoView({ block: isQuiet ? 'start' : 'center' });
    node?.classList.toggle('found', !isQuiet);
    this.lastTop = this.node.scrollTop;
  }
}

// A session in which nothing was said yet.
function empty(it) {
  const hints = [['/', 'commands'], ['@', 'files'], ['!', 'a shell command']];
  return h('div.hello', mark(), h('h2', 'What should I do?'), h('p.muted', h('bdi', clean(it.info?.place ?? ''))), h('p.row.center.muted', hints.map(([key, what]) => h('span', h('kbd', key), ' ', what))));
}

function userItem(item, actions) {
  const body = h('div.bubble', { dir: 'auto' });
  const text = clean(item.text);
  const long = text.length > 3_000 || text.split('\n').length > 40;
  body.append(h('div.words', long ? text.slice(0, 2_000) : text));
  if (long) {
    const more = h('button.quiet', { onclick: () => { body.firstChild.textContent = text; more.remove(); } }, `Show all ${text.length.toLocaleString()} characters`);
    body.append(more);
  }
  const images = (item.images ?? []).map((image) => picture(image));
  const tools = item.seq ? h('div.item-tools',
    iconButton('copy', 'Copy message', () => copyText(item.text)),
    iconButton('link', 'Copy link to this message', () => actions.permalink(item)),
    iconButton('undo', 'Go back to before this message', () => actions.rewind(item))) : null;
  return h('article.item.user', h('h2.sr', 'You'), images.length ? h('div.images', images) : null, text ? body : null,
    h('div.meta', tools, item.time ? h('time', { datetime: new Date(item.time).toISOString(), title: moment(item.time) }, when(item.time)) : null));
}

const SHOWN_IMAGES = /^image\/(png|jpeg|gif|webp|avif)$/;

export function picture(image) {
  const name = clean(image.path || 'image').split('/').pop();
  if (!SHOWN_IMAGES.test(image.mime ?? '') || !/^[A-Za-z0-9+/=\s]*$/.test(image.data ?? '-')) return h('span.chip', icon('file'), bdi(name));
  return h('img', { src: `data:${image.mime};base64,${image.data}`, alt: name, loading: 'lazy' });
}

function replyItem(item) {
  const body = h('div.prose');
  const node = h('article.item.reply', { class: item.isAside ? 'aside' : '' }, h('h2.sr', 'Windlass'), body);
  node.update = (next) => {
    node.classList.toggle('live', Boolean(next.isLive));
    renderMarkdown(body, next.text);
  };
  node.update(item);
  return node;
}

function thinkingItem(item) {
  const label = h('span');
  const text = h('div.thought', { dir: 'auto' });
  const node = h('article.item.thinking', h('details', h('summary', icon('spark'), label, icon('down')), text));
  node.update = (next) => {
    label.textContent = next.isLive ? 'Thinking' : next.took >= 1000 ? `Thought for ${span(next.took)}` : 'Thought';
    text.textContent = clean(next.text.slice(-40_000));
    node.classList.toggle('live', Boolean(next.isLive));
  };
  node.update(item);
  return node;
}

const TONES = { warn: ['warn', 'Warning'], bad: ['warn', 'Error'], good: ['check', 'Done'], quiet: ['right', 'Note'] };

function noteItem(item) {
  const [sign, word] = TONES[item.tone] ?? TONES.quiet;
  const text = clean(item.text);
  const [first, ...rest] = text.split('\n');
  const body = item.body || rest.join('\n').trim();
  const head = [icon(sign), h('span.sr', `${word}: `), h('span', { dir: 'auto' }, first.slice(0, 2_000))];
  return h(`article.item.note.${item.tone}`, body ? disclosure(head, () => output(body)) : h('p', head));
}

// The end of a turn: how it ended, how long it took, what it cost, and what it changed.
function endItem(item, actions) {
  const { event, how, turn } = item;
  const facts = turn ? [turn.took >= 1000 && turn.took < 864e5 ? span(turn.took) : '', turn.cost ? money(turn.cost) : '', turn.input ? `${tokens(turn.input + turn.output)} tokens` : ''].filter(Boolean) : [];
  const node = h(`article.item.end.${how}`);
  if (event.reason === 'permission_denied') node.append(h('p.stopped', icon('hand'), h('span', { dir: 'auto' }, clean(event.message))));
  else if (how === 'failed') node.append(h('div.failure', { role: 'group', 'aria-label': 'Failure' }, icon('warn'), h('div', h('p', { dir: 'auto' }, clean(event.message)), event.hint ? h('p.hint', { dir: 'auto' }, clean(event.hint)) : null)));
  if (how === 'canceled') node.append(h('p.stopped', icon('stop'), 'Stopped'));
  if (how === 'final' && !['end_turn', 'tool_use', undefined].includes(event.finish)) node.append(h('p.stopped', icon('warn'), `The turn ended early: ${String(event.finish).replaceAll('_', ' ')}`));
  node.changes = h('span.turn-changes');
  const tools = h('div.item-tools', how === 'final' ? iconButton('copy', 'Copy the answer', () => copyText(event.content)) : null, iconButton('link', 'Copy link to this turn', () => actions.permalink(item)));
  node.append(h('div.facts', node.changes, facts.length ? h('span.time', facts.join(' · ')) : null, tools));
  node.update = () => {
    const point = item.checkpoint;
    fill(node.changes);
    if (!point || !point.files) return;
    fill(node.changes, h('button.quiet', { onclick: () => actions.changes(point) }, icon('diff'), `${point.files} ${point.files === 1 ? 'file' : 'files'} changed${point.undone ? ', undone' : ''}`));
  };
  node.update();
  return node;
}

const KINDS = { user: userItem, text: replyItem, thinking: thinkingItem, note: noteItem, end: endItem };
