// The state of the page: the sessions, the one that is open, and the link to the server.
//
// Views subscribe to topics; nothing here touches the document.

import { Problem, get, inSession, post, query, request, uuid } from './api.js';
import { Conversation } from './fold.js';
import { EventLink } from './stream.js';
import { Outbox } from './outbox.js';

const PAGE = 200;
const OPEN = 60;

const listeners = new Map();

// Calls `run` when a topic changes: sessions, open, conversation, asks, queue, link, sends, refused.
export function on(topic, run) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), run]);
}

export function emit(topic, value) {
  for (const run of listeners.get(topic) ?? []) run(value);
}

export const store = {
  sessions: new Map(),
  conversation: null,
  epoch: '',
  server: {},
  lostAt: null,
};

export const outbox = new Outbox({
  changed: () => emit('sends'),
  refused: (send, problem) => emit('refused', { send, problem }),
});

const eventLink = new EventLink({
  position: () => {
    const it = store.conversation;
    return { session: it?.isLoaded ? it.id : undefined, after: it?.isLoaded ? (it.seq === it.loaded ? it.after : it.seq) : undefined, epoch: store.epoch || undefined };
  },
  hear,
  state: (lostAt) => {
    // Whatever was not sent is sent, and what happened meanwhile to other sessions is read.
    if (!lostAt) { outbox.flush(); if (lostAt === null) loadSessions(); }
    if (lostAt !== undefined) { store.lostAt = lostAt; emit('link'); }
  },
  refused: (answer) => emit('login', answer),
  gone: () => { if (store.conversation) { store.conversation.isLoaded = false; refresh(); } },
});

export const connect = () => eventLink.restart();
export const disconnect = () => { eventLink.isWanted = false; eventLink.stop(); };

// Handles one event of the stream. State events have their number as the id; live events have none.
function hear(name, data, id) {
  const it = store.conversation;
  if (name === 'hello') {
    if (store.epoch && data.epoch !== store.epoch) loadSessions();
    store.epoch = data.epoch;
  } else if (name === 'session') {
    store.sessions.set(data.id, { ...store.sessions.get(data.id), ...data });
    if (it?.isLoaded && it.id === data.id) { it.info = data; emit('conversation', {}); }
    emit('sessions');
  } else if (name === 'deleted') {
    store.sessions.delete(data.session);
    emit('sessions');
  } else if (name === 'bye') {
    if (data.reason === 'revoked') emit('login', { status: 401 });
  } else if (it?.isLoaded && data.session === it.id) {
    if (name === 'resync') refresh();
    else if (name === 'live') { takeLive(it, data.live); emit('conversation', {}); }
    else if (it.apply(data, !id)) after(it, data);
  }
}

// Shows what was being written when this page joined.
function takeLive(it, live) {
  for (const kind of ['thinking', 'text']) {
    if (!live[kind]) continue;
    if (it.live[kind]) it.live[kind].text = '';
    it.grow(kind, live[kind], Date.now());
  }
  for (const [call, text] of Object.entries(live.outputs ?? {})) {
    const item = it.calls.get(call);
    if (item?.state === 'running') { item.output = text; it.touch(item); } else it.early.set(call, text);
  }
  it.status = live.status || it.status;
}

// Events of an agent that change its row.
const AGENT_NEWS = new Set(['start', 'usage', 'final', 'failed', 'canceled', 'permission_request']);

function after(it, event) {
  if (event.type === 'message') outbox.heard(event.message.id);
  if (event.type === 'queue') outbox.heard(...event.messages.map((one) => one.id), ...(event.steers ?? []).map((one) => one.id));
  if (['final', 'canceled', 'failed'].includes(event.type)) { refreshFacts(it); emit('finished', event); }
  if (event.type === 'permission_request' || event.type === 'question') emit('asked', { session: it.id, ask: event });
  if ((event.type === 'step_start' && event.title.startsWith('agent')) || (event.type === 'subagent' && AGENT_NEWS.has(event.event.type))) loadAgents(it);
  emit('conversation', event);
}

export async function loadSessions() {
  try {
    const { sessions } = await get(`sessions${query({ limit: OPEN })}`);
    const before = store.sessions;
    store.sessions = new Map(sessions.map((row) => [row.id, { isUnread: before.get(row.id)?.isUnread, ...row }]));
    emit('sessions');
  } catch (error) { if (error instanceof Problem && error.status === 401) emit('login', error); }
}

// Finds a text in the open session.
export async function findPlaces(words) {
  return store.conversation ? (await get(`${inSession(store.conversation.id, 'search')}${query({ q: words })}`)).found : [];
}

export const findSessions = async (words) => (await get(`sessions${query({ q: words, limit: 30 })}`)).sessions;

// Opens a session: its snapshot first, then everything after it by the stream.
export async function open(id) {
  const it = new Conversation(id);
  store.conversation = it;
  emit('open', it);
  await refresh();
}

export function close() {
  store.conversation = null;
  emit('open', null);
  eventLink.restart();
}

// Reads the state of the open session again. What is on the screen stays until it has arrived.
export async function refresh() {
  const wanted = store.conversation;
  if (!wanted || wanted.isRefreshing) return;
  wanted.isRefreshing = true;
  let state;
  try { state = await get(inSession(wanted.id, 'state')); } catch (error) {
    wanted.isRefreshing = false;
    if (store.conversation !== wanted) return;
    if (error instanceof Problem && error.status < 500) { wanted.problem = error; emit(error.status === 401 ? 'login' : 'conversation', error); } else setTimeout(refresh, 1000);
    return;
  }
  if (store.conversation !== wanted) return;
  const it = store.conversation = fromState(wanted.id, state);
  outbox.settle(it.id);
  emit('open', it);
  eventLink.restart();
  loadCheckpoints(it);
  loadAgents(it);
}

function fromState(id, state) {
  const it = new Conversation(id);
  // The server's clock may differ from this one's.
  const skew = Date.now() - state.now;
  it.load(state.entries.map((entry) => ({ ...entry, time: entry.time + skew })));
  takeFacts(it, state);
  // The entries may reach further than the number to follow: what comes twice is taken once.
  it.loaded = it.seq = Math.max(it.seq, state.seq);
  it.after = state.seq;
  store.epoch = state.epoch;
  it.hasOlder = state.has_more;
  it.isBusy = Boolean(state.overview?.is_busy);
  it.since = it.turn?.since ?? Date.now();
  it.queue = state.overview?.queue ?? [];
  it.goal = state.overview?.goal ?? it.goal;
  it.asks = new Map(state.questions.map(({ call, request, asked_at, is_interrupted }) => [call, { ...request, since: asked_at + skew, isInterrupted: is_interrupted }]));
  if (it.isBusy) takeLive(it, state.live); else it.closeCalls();
  it.isLoaded = true;
  return it;
}

// Takes over what is not part of the record: totals, model, mode.
function takeFacts(it, state) {
  it.info = state.session;
  it.overview = state.overview ?? { info: state.session, model: state.session.model?.[1] ?? '' };
  it.trouble = state.problem ?? '';
}

// Reads the facts again: a command or the end of a turn changed them.
export async function refreshFacts(it) {
  try { takeFacts(it, await get(inSession(it.id, 'state'))); } catch { /* The next snapshot has them. */ }
  await loadCheckpoints(it);
}

export async function older() {
  const it = store.conversation;
  if (!it?.hasOlder) return;
  const { entries, has_more: hasMore } = await get(`${inSession(it.id, 'entries')}${query({ before: it.first, limit: PAGE })}`);
  it.prepend(entries);
  it.hasOlder = hasMore;
  attachCheckpoints(it);
}

export async function loadCheckpoints(it) {
  try {
    it.checkpoints = (await get(inSession(it.id, 'checkpoints'))).checkpoints;
    attachCheckpoints(it);
    emit('conversation', { type: 'checkpoints' });
  } catch { it.checkpoints = []; }
}

// Puts the file changes of each turn at its end.
function attachCheckpoints(it) {
  const points = new Map((it.checkpoints ?? []).map((point) => [point.message, point]));
  let message = null;
  for (const item of it.items) {
    if (item.kind === 'user') message = item.id;
    if (item.kind !== 'end') continue;
    item.checkpoint = points.get(item.turn?.message ?? message) ?? points.get(message);
    it.touch(item);
  }
}

// Reads the agents again, one request at a time.
export async function loadAgents(it) {
  it.isStale = Boolean(it.isReading);
  if (it.isReading) return;
  it.isReading = true;
  do {
    it.isStale = false;
    try { it.agents = (await get(inSession(it.id, 'agents'))).agents; } catch { it.agents ??= []; }
  } while (it.isStale);
  it.isReading = false;
  it.changed.add('lanes');
  emit('conversation', { type: 'agents' });
}

export const send = (message) => outbox.add(store.conversation.id, message);
export const reply = (session, call, answer) => post(inSession(session, `replies/${encodeURIComponent(call)}`), answer);
export const cancel = (session) => post(inSession(session, 'cancel'));
export const unqueue = (session, message) => request('DELETE', inSession(session, `queue/${encodeURIComponent(message)}`));
export const begin = (place) => post('sessions', { id: uuid(), ...(place ? { place } : {}) });
export const rename = (session, name) => request('PATCH', inSession(session), { title: name });
export const remove = (session) => request('DELETE', inSession(session));
