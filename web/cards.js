// Tool calls: one line each, with its output, its changes or its list of tasks below.

import { clean, cleanOutput, fill, h, icon } from './dom.js';
import { fileDiff, stat } from './diff.js';
import { elapsed, money, span } from './format.js';
import { copyText } from './ui.js';

// Lines of an output that are shown before "show all", and the most that are ever shown at once.
const OUTPUT_SHOWN = 200;
const TAIL = 8;
const OUTPUT_MOST = 500_000;

// For each tool: its icon, the words while it runs and afterwards, and the argument that tells most.
const TOOLS = {
  bash: ['terminal', 'Running', 'Ran', 'command'], bash_job: ['terminal', 'Checking job', 'Checked job', 'action'],
  read_file: ['file', 'Reading', 'Read', 'path'], list_directory: ['folder', 'Listing', 'Listed', 'path'],
  write_file: ['edit', 'Writing', 'Wrote', 'path'], edit_file: ['edit', 'Editing', 'Edited', 'path'],
  apply_patch: ['edit', 'Patching', 'Patched', ''], grep: ['search', 'Searching', 'Searched', 'pattern'],
  glob: ['search', 'Finding', 'Found', 'pattern'], fetch: ['link', 'Fetching', 'Fetched', 'url'],
  todo: ['list', 'Planning', 'Updated the tasks', ''], ask_user: ['hand', 'Asking', 'Asked', 'question'],
  agent: ['agents', 'Delegating', 'Delegated', 'task'], agent_wait: ['agents', 'Waiting for agents', 'Waited for agents', ''],
  agent_list: ['agents', 'Listing agents', 'Listed agents', ''], agent_send: ['agents', 'Writing to agent', 'Wrote to agent', 'message'],
  agent_stop: ['agents', 'Stopping agent', 'Stopped agent', ''], set_working_directory: ['folder', 'Entering', 'Entered', 'path'],
  done: ['check', 'Finishing', 'Finished', ''], tool_output: ['file', 'Reading output', 'Read output', 'id'],
};

// Describes a call in words: {name, verb, subject}.
export function describe(item) {
  const [sign, doing, did, telling] = TOOLS[item.name] ?? ['tool', item.name, item.name, ''];
  const args = item.args ?? {};
  let subject = telling ? args[telling] : '';
  if (!TOOLS[item.name]) subject = item.title.replace(item.name, '').trim();
  if (!subject && telling && item.title) subject = item.title.replace(item.name, '').trim();
  if (item.name === 'bash' && args.description && item.state !== 'running') subject ||= args.description;
  if (item.name === 'apply_patch') subject = (item.details?.files ?? []).map((file) => file.path).join(', ');
  return { sign, verb: item.state === 'running' ? doing : did, subject: clean(subject ?? ''), isCode: item.name === 'bash' || !TOOLS[item.name] };
}

// Creates the card of a call. `card.update(item)` redraws what changed.
export function callCard(first, conversation) {
  const button = h('button.call-head');
  const body = h('div.call-body');
  const node = h('article.item.call', button, body);
  let [chosen, shownFor] = [null, ''];
  let item = first;
  const isOpen = () => chosen ?? opensItself(item);
  button.addEventListener('click', () => { chosen = !isOpen(); draw(); });
  const draw = () => {
    const { sign, verb, subject, isCode } = describe(item);
    node.dataset.state = item.state;
    const time = item.state === 'running' ? h('span.time.elapsed', { 'data-since': item.since }, elapsed(Date.now() - item.since)) : item.duration >= 1000 ? h('span.time', span(item.duration)) : null;
    const oneLine = subject.split('\n')[0];
    fill(button, h('span.sign', icon(sign)), h('span.verb', verb), subject ? h(isCode ? 'code.subject' : 'bdi.subject', oneLine) : null,
      summary(item), item.state === 'failed' ? h('span.tag.bad', 'failed') : item.state === 'stopped' ? h('span.tag', 'stopped') : null, time,
      hasBody(item, conversation) ? icon('down') : null);
    button.setAttribute('aria-expanded', String(isOpen()));
    body.hidden = !isOpen();
    const version = `${item.state}${isOpen()}${item.result?.length ?? ''}`;
    if (!isOpen()) { fill(body); shownFor = ''; return; }
    if (item.state === 'running') drawLive(body, item, conversation);
    else if (version !== shownFor) fill(body, cardContent(item, conversation));
    shownFor = version;
  };
  node.update = (next) => { item = next; draw(); };
  draw();
  return node;
}

function opensItself(item) {
  if (item.state === 'running') return item.name === 'bash' || item.name === 'agent' || item.name.startsWith('agent_');
  if (item.state === 'failed') return true;
  if (item.name === 'todo' || item.name === 'agent') return true;
  const lines = diffsOf(item).reduce((sum, file) => sum + (file.diff?.split('\n').length ?? 0), 0);
  return lines > 0 && lines <= 40;
}

function hasBody(item, conversation) {
  return item.result || item.output || item.args || lanesOf(item, conversation).length;
}

// What a call did, in two words behind its title.
function summary(item) {
  const details = item.details ?? {};
  const files = diffsOf(item);
  if (files.length) return stat(files.reduce((sum, file) => sum + (file.added ?? 0), 0), files.reduce((sum, file) => sum + (file.removed ?? 0), 0));
  if (details.matches !== undefined) return h('span.time', details.matches === 1 ? '1 match' : `${details.matches} matches`);
  if (details.entries !== undefined) return h('span.time', `${details.entries} entries`);
  if (item.name === 'read_file' && details.last_line) return h('span.time', `lines ${details.first_line}–${details.last_line}`);
  if (item.name === 'bash' && details.exit_code) return h('span.time', `exit ${details.exit_code}`);
  return null;
}

export function diffsOf(item) {
  const details = item.details ?? {};
  if (details.files) return details.files.map((file) => ({ ...file, what: file.kind }));
  return details.diff ? [{ path: details.path, diff: details.diff, added: details.added, removed: details.removed, what: item.name === 'write_file' ? 'created' : 'modified' }] : [];
}

function lanesOf(item, conversation) {
  if (!item.name?.startsWith('agent')) return [];
  const rows = (conversation.agents ?? []).filter((row) => row.call === item.id);
  if (rows.length) return rows.map((row) => ({ agent: row.session, number: row.number, name: row.name, state: row.state, cost: row.spent?.cost_usd ?? 0, lines: conversation.lanes.get(row.session)?.lines ?? [] }));
  return item.state === 'running' ? [...conversation.lanes.values()].filter((lane) => lane.state === 'running') : [];
}

function drawLive(body, item, conversation) {
  let live = body.querySelector(':scope > .output');
  if (!live) {
    fill(body, commandBlock(item), live = h('pre.output.live', { tabindex: 0, role: 'region', 'aria-label': 'Live output' }), h('div.lanes'));
  }
  const lines = cleanOutput(item.output.slice(-20_000)).replace(/\n$/, '').split('\n');
  live.textContent = lines.slice(-TAIL).join('\n');
  live.hidden = !item.output;
  fill(body.querySelector('.lanes'), lanesOf(item, conversation).map(lane));
}

function lane(entry) {
  return h('div.lane', { 'data-state': entry.state }, icon('agents'),
    h('a', { href: `#/s/${encodeURIComponent(entry.agent)}` }, h('bdi', clean(`${entry.number} ${entry.name}`))),
    h('span.tag', entry.state.replace('_', ' ')), entry.cost ? h('span.time', money(entry.cost)) : null,
    entry.lines.length ? h('div.lane-line', clean(entry.lines.at(-1))) : null);
}

// A command of several lines is shown as it is; its title has only the first.
function commandBlock(item) {
  const command = item.name === 'bash' ? String(item.args?.command ?? '') : '';
  return command.includes('\n') || command.length > 90 ? h('pre.command', { tabindex: 0, role: 'region', 'aria-label': 'Command' }, clean(command)) : null;
}

function cardContent(item, conversation) {
  const files = diffsOf(item);
  if (files.length) return [files.map((file) => fileDiff(file, { isAlone: files.length === 1 })), item.isError ? output(item.result) : null];
  if (item.name === 'todo' && (item.details?.items ?? item.args?.items)) return todoList(item.details?.items ?? item.args.items);
  const lanes = lanesOf(item, conversation).map(lane);
  const args = TOOLS[item.name] || !item.args || !Object.keys(item.args).length ? null : h('pre.command', { tabindex: 0, role: 'region', 'aria-label': 'Arguments' }, clean(JSON.stringify(item.args, null, 2)));
  return [commandBlock(item), args, lanes.length ? h('div.lanes', lanes) : null, item.result ? output(item.result) : h('p.muted', 'No output.')];
}

const TASK = { pending: 'open', in_progress: 'in progress', completed: 'done', open: 'open', active: 'in progress', done: 'done' };

// A list of tasks or of the steps of a plan.
export function todoList(items) {
  return h('ul.todos', items.map((task) => {
    const state = TASK[task.status] ?? 'open';
    return h('li', { 'data-state': state }, h('span.box', { role: 'img', 'aria-label': state }, state === 'done' ? icon('check') : null), h('span', { dir: 'auto' }, clean(task.text ?? task.title)));
  }));
}

// The output of a call: its end first, because errors are there.
export function output(text) {
  const all = cleanOutput(String(text).slice(0, OUTPUT_MOST)).replace(/\n+$/, '');
  const lines = all.split('\n');
  const isLong = lines.length > OUTPUT_SHOWN || all.length > 40_000;
  const short = isLong ? lines.slice(0, OUTPUT_SHOWN).map((line) => line.slice(0, 2_000)).join('\n').slice(0, 40_000) : all;
  const box = h('pre.output', { tabindex: 0, role: 'region', 'aria-label': 'Output' }, short);
  const copy = h('button.quiet.copy', { 'aria-label': 'Copy output', onclick: () => copyText(String(text), copy) }, icon('copy'), h('span', 'Copy'));
  const wrap = h('div.output-box', box, copy);
  if (isLong) {
    const more = h('button.quiet.more', { onclick: () => { box.textContent = all; more.remove(); } },
      lines.length > OUTPUT_SHOWN ? `Show all ${lines.length.toLocaleString()} lines` : `Show all ${String(text).length.toLocaleString()} characters`);
    wrap.append(more);
  }
  return wrap;
}
