// The panel at the side: changes of files, the context, the cost, tasks and agents.

import { get, inSession, post } from './api.js';
import { clean, fill, h, icon, iconButton } from './dom.js';
import { diffView } from './diff.js';
import { todoList } from './cards.js';
import { agentTree } from './fleet.js';
import { count, money, tokens, when } from './format.js';
import { titleOf } from './sessions.js';
import { loadAgents, loadCheckpoints, store } from './store.js';
import { announce, complain, confirm, disclosure, toast } from './ui.js';

export const PANEL_TABS = [['changes', 'Changes', 'diff'], ['tasks', 'Tasks', 'list'], ['agents', 'Agents', 'agents'], ['context', 'Context', 'spark'], ['cost', 'Cost', 'clock']];

export class Panel {
  // `run(line)` runs a command of the session.
  constructor(run) {
    this.run = run;
    this.tab = 'changes';
    this.body = h('div.panel-body', { id: 'panel-body', role: 'tabpanel', tabindex: 0 });
    this.tabs = h('div.tabs', { role: 'tablist', 'aria-label': 'About this session', onkeydown: (event) => this.key(event) });
    this.node = h('aside.panel', { 'aria-label': 'About this session', hidden: true }, h('header', this.tabs, iconButton('close', 'Close the panel', () => this.close())), this.body);
  }

  open(tab = this.tab, detail) {
    this.back ??= document.activeElement;
    this.tab = tab;
    this.node.hidden = false;
    document.body.classList.add('with-panel');
    fill(this.tabs, PANEL_TABS.map(([name, label, sign]) => h('button', { role: 'tab', id: `tab-${name}`, 'aria-controls': 'panel-body', 'aria-selected': String(name === tab), tabindex: name === tab ? 0 : -1, onclick: () => this.open(name) }, icon(sign), h('span', label))));
    this.body.setAttribute('aria-labelledby', `tab-${tab}`);
    this.draw(detail);
  }

  toggle(tab) {
    if (!this.node.hidden && this.tab === tab) this.close();
    else this.open(tab);
  }

  close() {
    this.node.hidden = true;
    document.body.classList.remove('with-panel');
    this.back?.isConnected && this.back.focus();
    this.back = null;
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = PANEL_TABS.findIndex(([name]) => name === this.tab);
    this.open(PANEL_TABS[(at + step + PANEL_TABS.length) % PANEL_TABS.length][0]);
    this.tabs.querySelector('[aria-selected=true]').focus();
  }

  // Draws the tab again, if it is open and shows something that changed.
  refresh(tab, detail) {
    if (!this.node.hidden && tab === this.tab) this.draw(detail);
  }

  async draw(detail) {
    const it = store.conversation;
    if (!it) { this.close(); return; }
    const asked = this.asked = {};
    if (this.shown !== `${it.id} ${this.tab}`) fill(this.body, h('p.muted', 'Loading…'));
    this.shown = `${it.id} ${this.tab}`;
    let content;
    try { content = await DRAW[this.tab](it, this, detail); } catch (error) { content = h('p.muted', error.message); }
    if (this.asked === asked) fill(this.body, content);
  }
}

const DRAW = {
  async changes(it, panel, chosen) {
    const points = (it.checkpoints ?? []).filter((point) => point.files);
    if (!points.length) return h('p.empty', 'No files changed in this session yet.');
    const redo = points.some((point) => point.undone);
    return [
      h('div.row.tools', redo ? h('button', { onclick: () => restore(it, panel, 'redo') }, icon('redo'), 'Redo') : null),
      points.length > 1 ? disclosure([icon('right'), h('span.title', 'The whole session')], () => turnChanges(it, panel, { number: 0 }), { kind: 'turn' }) : null,
      points.reverse().map((point, index) => disclosure(
        [icon('right'), h('span.title', { dir: 'auto' }, clean(point.prompt) || 'Your own command'), point.undone ? h('span.tag', 'undone') : null, h('span.time', `${point.files} ${point.files === 1 ? 'file' : 'files'} · ${when(point.time)}`)],
        () => turnChanges(it, panel, point), { open: chosen ? chosen.number === point.number : index === 0, kind: 'turn' })),
    ];
  },

  async tasks(it, panel) {
    it.plan ??= (await get(inSession(it.id, 'plan')).catch(() => ({}))).plan;
    const goal = it.goal ? h('section', h('h3', 'Goal'), h('p', { dir: 'auto' }, clean(it.goal)), it.goalState ? h('span.tag', it.goalState) : null) : null;
    const plan = it.plan?.steps?.length ? planView(it.plan, panel) : null;
    const todos = it.todos?.length ? h('section', h('h3', 'Tasks'), todoList(it.todos)) : null;
    return goal || plan || todos ? [goal, plan, todos] : h('p.empty', 'No goal, plan or tasks.');
  },

  async agents(it, panel, detail) {
    // What is known is shown at once; a newer list draws it again.
    if (detail !== 'known') loadAgents(it);
    return it.agents?.length ? agentTree(it, () => loadAgents(it)) : h('p.empty', 'This session has no agents.');
  },

  async context(it) {
    const { report } = await get(inSession(it.id, 'context'));
    return [gauge(it), spans(report)];
  },

  async cost(it) {
    const groups = await Promise.all([['model', 'By model'], ['cause', 'By cause'], ['session', 'By session']].map(async ([by, title]) => [title, (await get(`${inSession(it.id, 'cost')}?by=${by}`)).spent]));
    return [gauge(it), groups.map(([title, spent]) => (spent.length ? h('section', costs(spent, title)) : null))];
  },
};

// A plan, with what can be done to it while nothing runs.
function planView(plan, panel) {
  const isOpen = plan.steps.some((step) => step.status !== 'done');
  const list = todoList(plan.steps);
  const act = (label, sign, line) => h('button.quiet', { onclick: () => panel.run(line) }, icon(sign), label);
  if (isOpen) plan.steps.forEach((step, index) => { if (step.status === 'open') list.children[index].append(iconButton('close', `Drop step ${index + 1}`, () => panel.run(`/plan drop ${index + 1}`))); });
  return h('section', h('h3', 'Plan'), plan.goal ? h('p.muted', { dir: 'auto' }, clean(plan.goal)) : null, list,
    h('div.row.tools', isOpen ? [act('Carry out', 'right', '/plan go'), act('Edit', 'edit', '/plan edit')] : null, act('Discard', 'trash', '/plan clear')));
}

function turnChanges(it, panel, point) {
  const box = h('div', h('p.muted', 'Loading…'));
  get(inSession(it.id, `changes/${point.number}`)).then(({ changes }) => {
    fill(box, point.undone || !point.number ? null : h('div.row.tools', h('button', { onclick: () => undo(it, panel, point, changes) }, icon('undo'), 'Undo from here')), diffView(changes));
  }, (error) => fill(box, h('p.muted', error.message)));
  return box;
}

// Undoes a turn and all later ones, after saying what that means.
async function undo(it, panel, point, changes) {
  const later = it.checkpoints.filter((one) => one.number >= point.number && !one.undone && one.files).length;
  const what = later > 1 ? `This and ${later - 1} later ${later === 2 ? 'turn' : 'turns'} are undone.` : `${count(changes.length)} ${changes.length === 1 ? 'file goes' : 'files go'} back to how ${changes.length === 1 ? 'it was' : 'they were'} before this turn.`;
  if (!await confirm('Undo these changes?', `${what} You can redo it.`, 'Undo')) return;
  await restore(it, panel, 'undo', point.number);
}

async function restore(it, panel, how, number) {
  try {
    const answer = await post(inSession(it.id, how), number ? { checkpoint: number } : {});
    const text = clean(answer.text).split('\n')[0];
    toast(text, how === 'undo' ? { action: () => restore(it, panel, 'redo'), label: 'Redo' } : {});
    announce(text);
  } catch (error) { complain(error); }
  await loadCheckpoints(it);
  panel.refresh('changes');
}

function gauge(it) {
  const used = it.info?.totals?.context_tokens ?? 0;
  const window = it.overview.window ?? 0;
  const share = window ? Math.round((used / window) * 100) : null;
  return h('div.gauge-head', h('strong', `${tokens(used)} tokens`), window ? ` of ${tokens(window)} (${share} %)` : '', h('span.muted', ` · ${money(it.info?.totals?.cost_usd, it.info?.totals?.unpriced)} so far`));
}

// The spans of the next request: the lines of `/context show` as a table.
const CONTEXT_ROW = /^ *\d+ +\d+ +(\d+) (.{9,}?) (cached| {6}) (.{9}) {2}(.*)$/;
function spans(report) {
  const lines = report.split('\n');
  const rows = lines.map((line) => CONTEXT_ROW.exec(line)).filter(Boolean);
  const most = Math.max(...rows.map(([, size]) => size), 1);
  return [
    rows.length ? figures('Next request', ['Tokens', 'Age', 'Cached', 'Price'], rows.map(([, size, age, cached, price, what]) => [what.replace(/^(you|model|result|system) +/, '$1: '), size / most, tokens(Number(size)), age, cached && '✓', price])) : null,
    h('p.hint', clean(lines.filter((line) => !CONTEXT_ROW.test(line) && !/^ *# /.test(line)).join('\n'))),
  ];
}

// A table of rows: a name, the length of its bar, and the values.
function figures(title, names, rows) {
  return h('div.table', { tabindex: 0, role: 'region', 'aria-label': title }, h('table.context',
    h('thead', h('tr', h('th', { scope: 'col' }, title), names.map((name) => h('th.align-right', { scope: 'col' }, name)))),
    h('tbody', rows.map(([name, share, ...values]) => h('tr', h('td', { dir: 'auto' }, clean(name).slice(0, 80), h('span.bar', { style: { width: `${share * 100}%` } })), values.map((value) => h('td.align-right', String(value).trim())))))));
}

function costs(spent, title) {
  const most = Math.max(...spent.map((row) => row.cost_usd), 1e-9);
  return figures(title, ['Calls', 'In', 'Cached', 'Out', 'Cost'], spent.map(({ of, calls, usage, cost_usd: cost, unpriced }) => {
    const row = store.sessions.get(of);
    return [row ? titleOf(row) : of, cost / most, calls, tokens(usage.input + usage.cache_read + usage.cache_write), tokens(usage.cache_read), tokens(usage.output), money(cost, unpriced > 0)];
  }));
}
