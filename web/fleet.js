// All sessions and their agents at a glance: state, cost, and what needs a person first.

import { command, get } from './api.js';
import { clean, fill, h, icon } from './dom.js';
import { ago, money, place, plural, span, tokens } from './format.js';
import { STATE_WORDS, sorted, stateOf, titleOf } from './sessions.js';
import { store } from './store.js';
import { complain, prompt, toast } from './ui.js';

// Draws the overview into `node`.
export function drawFleet(node) {
  const rows = sorted(store.sessions.values());
  const groups = [['asks', 'Needs you'], ['working', 'Working'], ['rest', 'Earlier']];
  const groupOf = (row) => ({ asks: 'asks', working: 'working' })[stateOf(row)] ?? 'rest';
  const total = rows.reduce((sum, row) => sum + (row.parent ? 0 : row.totals?.cost_usd ?? 0), 0);
  fill(node, h('header.fleet-head', h('a.icon-button.back', { href: '#/', 'aria-label': 'All sessions' }, icon('back')), h('h1', 'Overview'), h('p.muted', `${plural(rows.length, 'session')} · ${money(total)}`)),
    groups.map(([name, label]) => {
      const mine = rows.filter((row) => groupOf(row) === name);
      return [name === 'rest' ? agents : null, mine.length ? h('section', h('h2', `${label} `, h('span.count', String(mine.length))), h('div.grid', mine.map(tile))) : null];
    }),
    rows.length ? null : h('p.empty', 'No sessions yet.'));
  drawAgents();
}

// Agents that are at work in any session.
const agents = h('div');
async function drawAgents() {
  if (agents.isReading) return;
  agents.isReading = true;
  const { agents: all } = await get('agents').catch(() => ({ agents: [] }));
  agents.isReading = false;
  const rows = all.filter((row) => RUNNING.has(row.state));
  fill(agents, rows.length ? h('section', h('h2', 'Agents ', h('span.count', String(rows.length))), h('div.grid', rows.map((row) => h('a.tile', { href: `#/s/${encodeURIComponent(row.session)}`, 'data-state': row.waiting_on ? 'asks' : 'working' },
    h('span.state', h('span.dot'), row.waiting_on ? `waits for ${clean(row.waiting_on)}` : row.state), h('strong', clean(`${row.number} ${row.name}`)), h('span.muted', { dir: 'auto' }, clean(row.task).slice(0, 120)), h('span.under', h('span', titleOf(store.sessions.get(row.parent))), row.server ? h('span', clean(row.server)) : null, row.spent?.cost_usd ? h('span', money(row.spent.cost_usd)) : null))))) : null);
}

function tile(row) {
  const state = stateOf(row);
  return h('a.tile', { href: `#/s/${encodeURIComponent(row.id)}`, 'data-state': state },
    h('span.state', h('span.dot'), STATE_WORDS[state] || 'idle', row.parent ? h('span.tag', 'agent') : null), h('strong', { dir: 'auto' }, titleOf(row)),
    row.status ? h('span.muted', { dir: 'auto' }, clean(row.status)) : null,
    h('span.under', h('bdi', place(clean(row.place ?? ''))), h('span', row.updated_at ? ago(row.updated_at) : ''), row.totals?.cost_usd ? h('span', money(row.totals.cost_usd)) : null, row.model ? h('span', clean(row.model[1] ?? row.model)) : null));
}

const RUNNING = new Set(['queued', 'running', 'waiting']);

// The agents below a session as a tree, with what can be done to each.
export function agentTree(it, again) {
  const below = (parent) => (it.agents ?? []).filter((row) => row.parent === parent);
  const run = async (line, done) => {
    try { const answer = await command(it.id, line); toast(clean(answer?.text ?? done).split('\n')[0]); } catch (error) { complain(error); }
    again();
  };
  const branch = (parent) => {
    const rows = below(parent);
    return rows.length ? h('ul.agents', rows.map((row) => h('li', agent(row, run), branch(row.session)))) : null;
  };
  const spent = it.agents.reduce((sum, row) => sum + (row.spent?.cost_usd ?? 0), 0);
  return [h('p.muted', `${plural(it.agents.length, 'agent')} · ${money(spent)}`), branch(it.id)];
}

function agent(row, run) {
  const isRunning = RUNNING.has(row.state);
  const button = (label, sign, action) => h('button.quiet', { onclick: action }, icon(sign), label);
  const seconds = Math.max(1, ((row.ended_at ?? Date.now()) - row.created_at) / 1000);
  const burn = isRunning && row.spent?.cost_usd ? `${money((row.spent.cost_usd / seconds) * 60)}/min` : '';
  const facts = [row.spent?.turns ? plural(row.spent.turns, 'turn') : '', row.spent?.tokens ? `${tokens(row.spent.tokens)} tokens` : '', row.spent?.cost_usd ? money(row.spent.cost_usd) : '', burn, span(seconds * 1000)].filter(Boolean);
  return h('div.agent', { 'data-state': row.state },
    h('div.agent-head', h('span.dot'), h('a', { href: `#/s/${encodeURIComponent(row.session)}` }, h('bdi', clean(`${row.number} ${row.name}`))), h('span.tag', row.state.replaceAll('_', ' ')), row.worktree ? h('span.tag', 'own copy') : null),
    h('p', { dir: 'auto' }, clean(row.task).slice(0, 300)),
    row.waiting_on ? h('p.muted', 'Waits for ', clean(row.waiting_on)) : null,
    row.reason ? h('p.muted', clean(row.reason)) : null,
    h('p.time', facts.join(' · ')),
    h('div.row.tools',
      isRunning ? button('Message', 'bolt', async () => { const text = await prompt(`Tell agent ${row.number}`, '', 'Send'); if (text) run(`/agents send ${row.number} ${text}`, 'Sent.'); }) : null,
      isRunning ? button('Stop', 'stop', () => run(`/agents stop ${row.number}`, 'Stopped.')) : button('Resume', 'redo', () => run(`/agents resume ${row.number}`, 'Resumed.')),
      row.worktree && !isRunning ? [button('Merge', 'check', () => run(`/agents merge ${row.number}`, 'Merged.')), button('Discard', 'trash', () => run(`/agents discard ${row.number}`, 'Discarded.'))] : null));
}
