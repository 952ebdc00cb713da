// A conversation as a fold over the events of its session. Pure: no network, no DOM.
//
// Every state event has a number and is applied once; live events have none and may be lost. The same events
// always give the same items, whether they came live, by a resumed stream or from the record.

// Longest live output that is kept of one call.
const LIVE_LIMIT = 200_000;

export class Conversation {
  constructor(id) {
    this.id = id;
    this.seq = 0;
    this.first = Infinity;
    this.hasOlder = false;
    this.items = [];
    this.info = null;
    this.overview = {};
    this.isBusy = false;
    this.since = 0;
    this.status = '';
    this.asks = new Map();
    this.queue = [];
    this.steers = [];
    this.todos = null;
    this.plan = null;
    this.goal = null;
    this.goalState = null;
    this.turn = null;
    this.jumps = [];
    this.changed = new Set();
    this.calls = new Map();
    this.early = new Map();
    this.lanes = new Map();
    this.live = { text: null, thinking: null };
    this.nextKey = 0;
  }

  // Applies an event of the stream. Returns false for a state event that is already known.
  apply(event, isLive, time = Date.now()) {
    if (!isLive) {
      if (event.seq <= this.seq) return false;
      this.seq = event.seq;
    }
    this.take(event, time);
    return true;
  }

  // Folds the newest entries of the record, which a snapshot carries.
  load(entries) {
    for (const entry of entries) if (entry.type === 'rewind') this.jumps.push({ seq: entry.seq, to: entry.to });
    const end = entries.length ? entries[entries.length - 1].seq : 0;
    for (const entry of entries) {
      this.first = Math.min(this.first, entry.seq);
      if (entry.type === 'rewind') this.note(entry, 'quiet', 'The conversation continues from an earlier point.');
      else if (alive(this.jumps, end, entry.seq)) this.take(entry, entry.time);
      this.seq = Math.max(this.seq, entry.seq);
    }
    this.hasOlder = this.first > 1 && entries.length > 0;
  }

  // Puts older entries before the known ones. A call that began in them may have ended in the known part.
  prepend(entries) {
    const older = new Conversation(this.id);
    older.nextKey = this.nextKey + 100_000 * (1 + this.items.length);
    older.jumps = this.jumps.concat(entries.filter((entry) => entry.type === 'rewind').map(({ seq, to }) => ({ seq, to })));
    for (const entry of entries) {
      older.first = Math.min(older.first, entry.seq);
      if (entry.type !== 'rewind' && alive(older.jumps, this.seq, entry.seq)) older.take(entry, entry.time);
    }
    this.jumps = older.jumps;
    this.first = Math.min(this.first, older.first);
    this.hasOlder = entries.length > 0 && this.first > 1;
    const ended = new Map(this.items.filter((item) => item.kind === 'call' && item.isHalf).map((item) => [item.id, item]));
    for (const item of older.items) {
      const rest = item.kind === 'call' && item.state === 'running' && ended.get(item.id);
      if (!rest) continue;
      Object.assign(item, { result: rest.result, details: rest.details, isError: rest.isError, state: rest.state, duration: rest.duration });
      this.items.splice(this.items.indexOf(rest), 1);
    }
    this.items = older.items.concat(this.items);
    if (!this.todos) this.todos = older.todos;
    if (!this.plan) this.plan = older.plan;
  }

  take(event, time) {
    const known = HANDLERS[event.type];
    if (known) known(this, event, time);
  }

  push(item, event) {
    item.key = `k${this.nextKey++}`;
    item.seq = event.seq ?? this.seq;
    this.items.push(item);
    this.changed.add(item.key);
    return item;
  }

  // True if a message is part of the conversation, or waits in its queue.
  knows(id) {
    return [...this.items, ...this.queue, ...this.steers].some((one) => one.id === id);
  }

  touch(item) {
    if (item) this.changed.add(item.key);
  }

  drop(item) {
    const at = item ? this.items.lastIndexOf(item) : -1;
    if (at >= 0) this.items.splice(at, 1);
    this.changed.add('list');
  }

  note(event, tone, text, more = {}) {
    return this.push({ kind: 'note', tone, text, time: event.time, ...more }, event);
  }

  begin(time) {
    this.isBusy = true;
    this.since = time;
    this.turn ??= { since: time, cost: 0, input: 0, output: 0, calls: 0, message: null };
  }

  grow(kind, text, time) {
    const item = this.live[kind] ?? (this.live[kind] = this.push({ kind, text: '', isLive: true, since: time }, {}));
    item.text += text;
    this.touch(item);
  }

  // Completes a streamed text; without one, the record's text is shown as it is.
  settle(kind, event, text, time) {
    const item = this.live[kind];
    this.live[kind] = null;
    if (!text && !item) return;
    const done = item ?? this.push({ kind, since: time }, event);
    Object.assign(done, { text: text || done.text, isLive: false, seq: event.seq, took: time - done.since });
    this.touch(done);
  }

  stopLive() {
    for (const kind of ['text', 'thinking']) {
      const item = this.live[kind];
      this.live[kind] = null;
      if (item) { item.isLive = false; this.touch(item); }
    }
  }

  call(event, time) {
    const known = this.calls.get(event.call_id);
    if (known && known.state === 'running') return known;
    const item = this.push({ kind: 'call', id: event.call_id, title: '', name: event.name ?? '', state: 'running', since: time, output: this.early.get(event.call_id) ?? '' }, event);
    this.early.delete(event.call_id);
    this.calls.set(event.call_id, item);
    return item;
  }

  end(event, time, kind) {
    showUnsaid(this);
    this.stopLive();
    this.closeCalls();
    // The record has it before the answer, the stream after its first words.
    if (this.reached) this.note(event, 'good', this.reached);
    this.reached = '';
    this.push({ kind: 'end', how: kind, event, time, turn: this.turn && { ...this.turn, took: time - this.turn.since } }, event);
    this.isBusy = false;
    this.status = '';
    this.turn = null;
    this.early.clear();
    // What an agent asks does not end with this turn, and what a stopped program asked can still be answered.
    const isInterrupted = event.reason === 'interrupted';
    for (const [call, ask] of this.asks) {
      if (isInterrupted) ask.isInterrupted = true;
      else if (!call.startsWith('agent-')) this.asks.delete(call);
    }
    this.changed.add('asks');
  }

  // No call outlives its turn.
  closeCalls() {
    for (const item of this.items) {
      if (item.kind === 'call' && item.state === 'running') { item.state = 'stopped'; this.touch(item); }
    }
  }
}

// Returns true if an entry is part of the conversation: it lies on the way from the current end back to the
// beginning, where each rewind jumps over what it took back.
function alive(jumps, end, seq) {
  let at = end;
  for (const jump of [...jumps].sort((a, b) => b.seq - a.seq)) {
    if (jump.seq > at) continue;
    if (seq >= jump.seq) return seq <= at;
    at = jump.to;
  }
  return seq <= at;
}

const texts = (message, type) => message.parts.filter((part) => part.type === type).map((part) => part.data);

// Notes that events tell the turn: its messages need not be shown.
function told(it) {
  it.unsaid = null;
  it.isTold = true;
}

// Shows the last reply if no event told it: imported sessions have nothing but messages.
function showUnsaid(it) {
  const reply = it.unsaid;
  it.unsaid = null;
  if (!reply) return;
  const { event, time } = reply;
  const joined = (type) => texts(event.message, type).map((part) => part.text).join('\n');
  for (const [kind, type] of [['thinking', 'reasoning'], ['text', 'text']]) if (joined(type)) it.settle(kind, event, joined(type), time);
  for (const { id, name, input } of texts(event.message, 'tool_call')) {
    let args = {};
    try { args = JSON.parse(input); } catch { /* Shown without. */ }
    const what = Object.values(args).find((value) => typeof value === 'string') ?? '';
    Object.assign(it.call({ call_id: id, name, seq: event.seq }, time), { args, title: `${name} ${what}`.split('\n')[0] });
  }
}

function hearMessage(it, event, time) {
  const message = event.message;
  showUnsaid(it);
  for (const { call_id, name, content, is_error } of texts(message, 'tool_result')) {
    const item = it.calls.get(call_id);
    if (item?.state === 'running' && !it.isTold) Object.assign(item, { name, result: content, isError: is_error, state: is_error ? 'failed' : 'done' });
    it.touch(item);
  }
  if (message.role === 'assistant') {
    const finish = texts(message, 'finish').at(-1)?.reason;
    if (['interrupted', 'canceled', 'error'].includes(finish)) {
      it.settle('text', event, texts(message, 'text').map((part) => part.text).join('\n'), time);
    } else if (!it.isTold) it.unsaid = { event, time };
    return;
  }
  if (message.role !== 'user' || texts(message, 'compaction').length) return;
  if (it.calls.has(`own-${message.id}`)) return;
  const text = texts(message, 'text').map((part) => part.text).join('\n');
  const images = texts(message, 'binary');
  for (const part of texts(message, 'context')) {
    if (part.source === 'reminder') it.note(event, 'quiet', part.text);
    if (part.source === 'child') it.note(event, 'quiet', `Result of agent ${part.label ?? ''}`.trim(), { body: part.text });
  }
  if (!text && !images.length) return;
  if (it.turn && !it.turn.message) it.turn.message = message.id;
  it.push({ kind: 'user', text, images, id: message.id, time: message.created_at ?? time }, event);
}

function hearDelta(it, { kind, text }, time) {
  if (!it.isBusy) it.begin(time);
  if (kind === 'text') it.grow('text', text, time);
  else if (kind === 'thinking') it.grow('thinking', text, time);
  else it.status = 'Preparing a tool call';
}

function hearAgent(it, event) {
  const lane = it.lanes.get(event.agent) ?? { agent: event.agent, number: event.number, name: event.name, depth: event.depth, lines: [], state: 'running', cost: 0 };
  it.lanes.set(event.agent, lane);
  const inner = event.event;
  if (inner.type === 'step_start') lane.lines = lane.lines.concat(inner.title).slice(-20);
  if (inner.type === 'usage') lane.cost += inner.cost_usd ?? 0;
  if (inner.type === 'final') lane.state = 'done';
  if (inner.type === 'failed' || inner.type === 'canceled') lane.state = inner.type;
  if (inner.type === 'start') lane.state = 'running';
  it.changed.add('lanes');
}

const GOAL_WORDS = { active: 'is being worked on', paused: 'is paused', blocked: 'is blocked', completed: 'is reached' };

// One function per event. An event that is not here is not shown.
const HANDLERS = {
  start(it, event, time) {
    it.isTold = false;
    it.begin(time);
    for (const [call, ask] of it.asks) if (ask.isInterrupted) it.asks.delete(call);
    it.turn = { since: time, cost: 0, input: 0, output: 0, calls: 0, model: event.model, message: it.items.findLast((item) => item.kind === 'user')?.id };
  },
  message: hearMessage,
  delta: hearDelta,
  reasoning(it, event, time) { told(it); it.settle('thinking', event, event.text, time); },
  text(it, event, time) { told(it); it.settle('text', event, event.text, time); },
  status(it, event) { it.status = event.text; },
  step_start(it, event, time) {
    told(it);
    it.stopLive();
    it.status = '';
    it.calls.delete(event.call_id);
    Object.assign(it.call(event, time), { title: event.title });
    if (it.turn) it.turn.calls += 1;
  },
  tool_call(it, event, time) {
    const item = it.call(event, time);
    Object.assign(item, { name: event.name, args: event.args });
    it.touch(item);
  },
  tool_output(it, event) {
    const item = it.calls.get(event.call_id);
    if (!item || item.state !== 'running') {
      it.early.set(event.call_id, ((it.early.get(event.call_id) ?? '') + event.text).slice(-LIVE_LIMIT));
      return;
    }
    item.output = (item.output + event.text).slice(-LIVE_LIMIT);
    it.touch(item);
  },
  tool_result(it, event, time) {
    const isHalf = !it.calls.has(event.call_id);
    const item = it.call(event, time);
    Object.assign(item, { name: event.name, result: event.content, isError: event.is_error, details: event.details, isHalf });
    if (event.name === 'todo' && event.details?.items) it.todos = event.details.items;
    it.touch(item);
  },
  step_complete(it, event) {
    const item = it.calls.get(event.call_id);
    if (!item) return;
    Object.assign(item, { state: event.status === 'completed' ? 'done' : 'failed', duration: event.duration_ms, output: '' });
    it.touch(item);
  },
  usage(it, event) {
    if (!it.turn) return;
    it.turn.cost += event.cost_usd ?? 0;
    it.turn.input += event.usage.input + event.usage.cache_read + event.usage.cache_write;
    it.turn.output += event.usage.output;
  },
  retry(it, event) {
    if (event.discard) for (const kind of ['text', 'thinking']) { it.drop(it.live[kind]); it.live[kind] = null; }
    const again = event.discard ? '; the reply starts over' : '';
    it.note(event, 'warn', `${event.message}: retry ${event.attempt} of ${event.max_attempts} in ${(event.delay_ms / 1000).toFixed(1)} s${again}`);
  },
  warning: (it, event) => it.note(event, 'warn', event.message),
  error: (it, event) => it.note(event, 'bad', event.message),
  final(it, event, time) {
    told(it);
    it.settle('text', event, event.content, time);
    it.end(event, time, 'final');
  },
  canceled: (it, event, time) => it.end(event, time, 'canceled'),
  failed: (it, event, time) => it.end(event, time, 'failed'),
  permission_request(it, event, time) { it.asks.set(event.call_id, { ...event, since: time }); it.changed.add('asks'); },
  question(it, event, time) { it.asks.set(event.call_id, { ...event, since: time }); it.changed.add('asks'); },
  permission_answer(it, event) {
    if (it.asks.delete(event.call_id)) it.changed.add('asks');
  },
  queue(it, event) {
    it.queue = event.messages;
    it.steers = event.steers ?? [];
    it.changed.add('queue');
  },
  compacting(it) { it.status = 'Compacting the context'; },
  compaction(it, event) {
    it.status = '';
    it.note(event, 'quiet', `Context compacted: ${event.before} → ${event.after} tokens`);
  },
  moved(it, event) {
    const after = Math.floor(event.after_ms / 1000);
    const text = !event.from || event.from === event.to
      ? `The turn continues on server ${event.to} after an interruption of ${after} s.`
      : `The turn continues on server ${event.to}; server ${event.from} stopped ${after} s ago.`;
    // The reply starts over, and no call or question of the lost server is open any more.
    for (const kind of ['text', 'thinking']) { it.drop(it.live[kind]); it.live[kind] = null; }
    it.closeCalls();
    it.asks.clear();
    it.changed.add('asks');
    it.note(event, 'quiet', text);
  },
  rewind(it, event) {
    it.jumps.push({ seq: event.seq, to: event.to });
    it.items = it.items.filter((item) => item.seq <= event.to);
    it.note(event, 'quiet', 'The conversation continues from an earlier point.');
    it.changed.add('list');
  },
  title(it, event) { if (it.info) it.info.label.title = event.title; it.changed.add('head'); },
  goal(it, event) { it.goal = event.text ?? null; it.changed.add('head'); },
  goal_completed(it, event) {
    const text = `Goal reached: ${event.text}`;
    if (it.turn) it.reached = text;
    else it.note(event, 'good', text);
  },
  goal_run(it, event) { it.goalState = 'active'; it.note(event, 'quiet', `Works towards the goal: ${event.text}`); },
  goal_turn: (it, event) => it.note(event, 'quiet', `Turn ${event.number} towards the goal`),
  goal_check(it, event) {
    const { kind, command, path } = event.criterion;
    const what = kind === 'command' ? command : kind === 'file' ? `the file ${path}` : 'your confirmation';
    it.note(event, event.passed ? 'good' : 'warn', `Check ${event.passed ? 'passed' : 'failed'}: ${what}`, { body: event.excerpt });
  },
  goal_verdict: (it, event) => it.note(event, event.achieved ? 'good' : 'quiet', `Supervisor: ${event.reason}`),
  goal_state(it, event) {
    it.goalState = event.state;
    it.changed.add('head');
    it.note(event, event.state === 'blocked' ? 'warn' : 'quiet', `The goal ${GOAL_WORDS[event.state] ?? event.state}${event.message ? `: ${event.message}` : ''}`);
  },
  claim: (it, event) => it.note(event, event.status === 'verified' ? 'good' : 'warn', `Claim ${event.status}: ${event.text} (${event.command})`),
  plan(it, event) { it.plan = event.steps?.length ? event : null; it.changed.add('plan'); },
  subagent: hearAgent,
};
// A question is answered by the result of its call.
const settleQuestion = HANDLERS.tool_result;
HANDLERS.tool_result = (it, event, time) => {
  if (it.asks.get(event.call_id)?.type === 'question' && it.asks.delete(event.call_id)) it.changed.add('asks');
  settleQuestion(it, event, time);
};
