// The page: puts the views together and follows the address.

import { command, get, inSession, post } from './api.js';
import { Asks, askLine } from './approval.js';
import { Composer } from './composer.js';
import { clean, fill, h, icon } from './dom.js';
import { drawFleet } from './fleet.js';
import { elapsed, sentence, when } from './format.js';
import { Head } from './head.js';
import { showLogin, useLink } from './login.js';
import { drawBadge, notify, startWorker } from './notify.js';
import { openPalette } from './palette.js';
import { PANEL_TABS, Panel } from './panels.js';
import { Queue } from './queue.js';
import { SessionList, mark, titleOf } from './sessions.js';
import { applyTheme, openSettings } from './settings.js';
import { begin, cancel, close, connect, disconnect, loadSessions, older, on, open, outbox, refreshFacts, reply, send, store } from './store.js';
import { Transcript } from './transcript.js';
import { announce, complain, confirm, copyText, perFrame, toast } from './ui.js';

const root = document.getElementById('app');

const go = (hash) => { location.hash = hash; };
const link = (id, seq) => `#/s/${encodeURIComponent(id)}${seq ? `/m/${seq}` : ''}`;
const panel = new Panel(runCommand);
const sessionList = new SessionList({ create: newSession, settings: showSettings });
const asks = new Asks({ answer: answerAsk });
const composer = new Composer({ send: (message) => { send(message); transcript.toEnd(); }, command: runCommand, stop, session: () => store.conversation?.id, history: () => store.conversation?.items.filter((item) => item.kind === 'user').map((item) => item.text) ?? [] });
const queue = new Queue({ edit: (text) => { composer.put(text); composer.input.focus(); }, steer: (message) => outbox.add(store.conversation.id, { text: '', parts: message.parts, onBusy: 'steer' }) });
const head = new Head({ panel: (tab) => panel.toggle(tab), command: runCommand, go, search: palette, fillIn: (text) => { composer.put(text); composer.input.focus(); } });
const transcript = new Transcript({ older: older, changes: (point) => panel.open('changes', point), permalink: (item) => copyText(location.href.split('#')[0] + link(store.conversation.id, item.seq)), rewind });
const banner = h('div.banner', { role: 'status', hidden: true });
const session = h('main.chat', { id: 'main', tabindex: -1 }, head.node, h('div.stage', transcript.node, transcript.below), h('div.dock', asks.node, queue.node, composer.node));
const welcome = h('main.welcome', { id: 'main', tabindex: -1 });
const fleet = h('main.fleet', { id: 'main', tabindex: -1 });

async function newSession() {
  try {
    const made = await begin(store.conversation?.info?.place ?? '');
    loadSessions();
    go(link(made.session.id));
    composer.input.focus();
  } catch (error) { complain(error); }
}

// Imports a session file of Windlass or of another agent.
function chooseImport() {
  const input = h('input', { type: 'file', accept: '.json,.jsonl', onchange: () => importFile(input.files[0]) });
  input.click();
}

async function importFile(file, lenient = false) {
  const done = toast(`Importing ${clean(file.name)}…`, { ms: 120_000 });
  try {
    if (file.size > 30e6) throw new Error(`${clean(file.name)} is larger than 30 MB. Import it on the server: windlass sessions import FILE`);
    const { id, messages } = await post('sessions/import', { name: file.name, text: await file.text(), lenient }, { timeout: 120_000 });
    loadSessions();
    go(link(id));
    toast(`Imported ${messages} messages`);
  } catch (error) {
    if (error.body?.title !== 'damaged') complain(error);
    else if (await confirm('Import what can be read?', error.message, 'Import')) importFile(file, true);
  }
  done();
}

async function answerAsk(call, answer) {
  const it = store.conversation;
  try { await reply(it.id, call, answer); } catch (error) {
    // Somebody else was faster, or the turn is over: the card has no meaning any more.
    if (error.status === 409 || error.status === 404) { it.asks.delete(call); draw(); toast(error.message); return; }
    complain(error);
    throw error;
  }
  it.asks.delete(call);
  draw();
  composer.input.focus();
}

async function stop() {
  const it = store.conversation;
  it.status = 'Stopping';
  draw();
  announce('Stopping');
  try { await cancel(it.id); } catch (error) { complain(error); }
}

async function runCommand(line) {
  const it = store.conversation;
  let result;
  try { result = await command(store.conversation.id, line); } catch (error) {
    it.note({}, 'bad', `${line}: ${error.message}`);
    draw();
    return;
  }
  const { follow } = result;
  if (result.text) it.push({ kind: 'text', text: result.text, isAside: true }, {});
  if (follow?.type === 'submit') send({ text: textOf(follow.data), parts: follow.data, onBusy: 'queue' });
  else if (follow?.type === 'session') go(link(follow.data.id));
  else if (follow?.type === 'edit') composer.put(follow.data);
  else if (follow?.type === 'leave') it.note({}, 'quiet', 'Close this tab whenever you like; the session continues.');
  announce(result.text ? clean(result.text).slice(0, 200) : 'Done');
  await refreshFacts(it);
  draw();
}

const textOf = (parts) => parts.filter((part) => part.type === 'text').map((part) => part.data.text).join('\n');

async function rewind(item) {
  const it = store.conversation;
  const later = it.items.filter((one) => one.kind === 'user');
  const number = later.length - later.indexOf(item);
  if (!await confirm('Go back to before this message?', 'The conversation continues from there, and files go back as well. The record keeps everything.', 'Go back')) return;
  const listed = await command(it.id, '/rewind').catch(() => null);
  const rows = (listed?.text.match(/^\s*\d+/gm) ?? []).map(Number);
  const chosen = rows.length ? rows[rows.length - number] ?? rows[0] : number;
  composer.put(item.text);
  runCommand(`/rewind ${chosen}`);
}

// Shows a place of the open session.
function jump(seq) {
  const it = store.conversation;
  if (!it?.isLoaded) return;
  if (transcript.conversation !== it) transcript.show(it);
  transcript.jump(seq);
}

function showSettings() {
  openSettings(runCommand);
}

function palette() {
  const it = store.conversation;
  openPalette([
    { sign: 'plus', label: 'New session', run: newSession }, { sign: 'fleet', label: 'Overview', run: () => go('#/fleet') },
    { sign: 'gear', label: 'Settings', run: showSettings }, { sign: 'clip', label: 'Import a session', run: chooseImport },
    ...(it ? PANEL_TABS.map(([name, label, sign]) => ({ sign, label, run: () => panel.open(name) })) : []),
  ], (seq) => { go(link(it.id, seq)); jump(seq); });
}

// Draws what the open conversation has to show.
const draw = perFrame(() => {
  const it = store.conversation;
  if (!it) return;
  if (it.problem) { showProblem(it.problem); return; }
  if (!it.isLoaded) return;
  const changed = new Set(it.changed);
  transcript.conversation === it ? transcript.drawNow() : transcript.show(it);
  head.draw(it);
  asks.draw(it);
  queue.draw(it);
  composer.busy(it.isBusy);
  transcript.drawPending(outbox.of(it.id).filter((one) => !it.knows(one.id)));
  if (changed.has('plan')) panel.refresh('tasks');
  drawBadge(titleOf(it.info));
  tick();
});

function showProblem(problem) {
  head.title.textContent = problem.status === 404 ? 'No such session' : 'This session cannot be shown';
  fill(head.under);
  fill(transcript.list, h('p.empty', sentence(problem.message)));
}

// Elapsed times move once a second, and only while something runs.
let ticking = 0;
function tick() {
  clearTimeout(ticking);
  const it = store.conversation;
  if (document.hidden || (!store.lostAt && !it?.isBusy)) return;
  for (const node of document.querySelectorAll('.elapsed')) node.textContent = elapsed(Date.now() - Number(node.dataset.since));
  if (it?.isBusy) askWhy(it);
  ticking = setTimeout(tick, 1000);
}

// After ten seconds of waiting, the server is asked what for.
async function askWhy(it) {
  const last = it.items.at(-1);
  const quiet = Date.now() - Math.max(it.since, it.heardAt ?? 0);
  if (quiet < 10_000 || last?.isLive || it.isAsking) { if (quiet < 10_000) it.why = ''; return; }
  it.isAsking = true;
  try {
    const wait = (await get(inSession(it.id, 'why'))).waits.at(-1);
    it.why = wait ? `for ${wait.on}: ${wait.what}; ends ${wait.ends}` : '';
    transcript.drawActivity(it);
  } catch { it.why = ''; }
  setTimeout(() => { it.isAsking = false; }, 5000);
}

function drawWelcome() {
  const rows = [...store.sessions.values()].filter((row) => !row.parent);
  fill(welcome, h('div.hello', mark(), h('h1', 'Windlass'), h('p.muted', rows.length ? 'Choose a session, or start a new one.' : 'Start a session to work in a folder on this machine.'),
    h('div.row.center', h('button.primary', { onclick: newSession }, icon('plus'), 'New session'), h('button', { onclick: palette }, icon('search'), 'Search'), h('button', { onclick: chooseImport }, icon('clip'), 'Import'))));
}

// Follows the address: #/, #/fleet, #/s/ID, #/s/ID/m/SEQ, #/approve/CALL.
async function route() {
  const [, name, id, , seq] = location.hash.split('/').map((part) => decodeURIComponent(part ?? ''));
  const view = name === 's' && id ? 'session' : name === 'fleet' ? 'fleet' : 'home';
  document.body.dataset.view = view;
  if (name === 'approve') { await openAsk(id); return; }
  const main = { session, fleet, home: welcome }[view];
  const shown = root.querySelector('main');
  if (shown !== main) shown.replaceWith(main);
  if (view !== 'session') {
    composer.saveDraft();
    panel.close();
    if (store.conversation) close();
    if (view === 'fleet') drawFleet(fleet); else drawWelcome();
    sessionList.draw();
    drawBadge('');
    return;
  }
  if (store.conversation?.id !== id) {
    composer.saveDraft();
    composer.open(id);
    const row = store.sessions.get(id);
    if (row) delete row.isUnread;
    await open(id);
    if (!matchMedia('(pointer: coarse)').matches) composer.input.focus();
  }
  if (seq) jump(Number(seq));
  sessionList.draw();
}

// Finds the session that asks, from a link to the request alone.
async function openAsk(call) {
  const { questions } = await get('questions').catch(() => ({ questions: [] }));
  const found = questions.find((ask) => ask.call === call);
  if (!found) toast('This request was already answered, or its turn is over.');
  location.replace(found ? link(found.session) : '#/');
}

function shortcuts(event) {
  const isCommand = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (isCommand && key === 'k') { event.preventDefault(); palette(); }
  else if (isCommand && key === 'j') { event.preventDefault(); composer.input.focus(); }
  else if (isCommand && key === 'b' && store.conversation) { event.preventDefault(); panel.toggle('changes'); }
  else if (event.altKey && key === 'n') { event.preventDefault(); newSession(); }
  else if (event.key === 'Escape' && !panel.node.hidden && panel.node.contains(document.activeElement)) panel.close();
}

// Says what happened in other sessions, once.
let known = new Map();
function attention() {
  for (const row of store.sessions.values()) {
    const before = known.get(row.id);
    const busy = row.standing === 'working';
    if (before && row.asks && !before.asks) { notify('asks', row.id, titleOf(row), 'Needs your answer'); if (row.id !== store.conversation?.id) announce(`${titleOf(row)} needs your answer`); }
    if (before?.busy && !busy) {
      const hasFailed = row.standing === 'failed';
      if (row.id !== store.conversation?.id) row.isUnread = true;
      notify(hasFailed ? 'failed' : 'finished', row.id, titleOf(row), hasFailed ? 'Failed' : 'Has finished');
    }
  }
  known = new Map([...store.sessions.values()].map((row) => [row.id, { asks: Boolean(row.asks), busy: row.standing === 'working' }]));
}

function listen() {
  on('sessions', perFrame(() => { sessionList.draw(); if (document.body.dataset.view === 'fleet') drawFleet(fleet); else if (document.body.dataset.view === 'home') drawWelcome(); drawBadge(store.conversation ? titleOf(store.conversation.info) : ''); }));
  on('sessions', attention);
  on('open', draw);
  on('sends', draw);
  on('conversation', (event) => {
    if (store.conversation) store.conversation.heardAt = Date.now();
    if (event?.type === 'checkpoints') panel.refresh('changes');
    if (event?.type === 'agents') panel.refresh('agents', 'known');
    if (event?.type === 'tool_result' && event.name === 'todo') panel.refresh('tasks');
    draw();
  });
  on('asked', ({ session: id, ask }) => { announce(askLine(ask)); notify('asks', id, titleOf(store.sessions.get(id)), 'Needs your answer'); });
  on('finished', (event) => announce(event.type === 'final' ? `Finished. ${clean(event.content).slice(0, 1000)}` : event.type === 'canceled' ? 'Stopped' : `Failed: ${clean(event.message)}`));
  on('refused', ({ send, problem }) => { if (!composer.input.value) composer.put(send.text); complain(problem); });
  on('link', () => {
    banner.hidden = !store.lostAt;
    if (store.lostAt) { fill(banner, h('span.pulse'), `Reconnecting since ${when(store.lostAt)} · `, h('span.elapsed', { 'data-since': store.lostAt }, elapsed(Date.now() - store.lostAt)), h('span.muted', ' Nothing is lost; what you send is kept.')); announce('Connection lost, reconnecting'); } else announce('Connected again');
    tick();
  });
  on('login', (error) => { disconnect(); showLogin(root, error); });
}

async function start() {
  applyTheme();
  const refused = await useLink();
  if (refused) { showLogin(root, refused); return; }
  fill(root, h('a.skip', { href: '#main', onclick: (event) => { event.preventDefault(); document.getElementById('main').focus(); } }, 'Skip to the conversation'), sessionList.node, welcome, panel.node, banner);
  listen();
  window.addEventListener('hashchange', route);
  document.addEventListener('keydown', shortcuts);
  document.addEventListener('visibilitychange', () => { if (document.hidden) composer.saveDraft(); else { draw(); tick(); sessionList.draw(); } });
  window.addEventListener('pagehide', () => composer.saveDraft());
  navigator.serviceWorker?.addEventListener('message', (event) => { if (String(event.data?.hash).startsWith('#/')) go(event.data.hash); });
  loadSessions();
  await route();
  if (!store.conversation) connect();
  startWorker();
}

start();
