// Permission requests and questions: pinned above the composer until somebody answers.

import { clean, fill, h, icon, patch, revealed } from './dom.js';
import { fileDiff } from './diff.js';
import { elapsed, sentence } from './format.js';

// Time without another key after which a letter is an answer. Words typed by mistake approve nothing.
const HOLD = 250;

const MOST_RULES = 6;

const QUESTIONS = { bash: 'Run this command?', write_file: 'Write this file?', edit_file: 'Change this file?', apply_patch: 'Apply this patch?', read_file: 'Read this file?', fetch: 'Fetch this page?' };
const RISKS = { read: 'reads', write: 'changes files here', admin: 'reaches beyond this folder' };

// The answers, with the same letters as in the terminal.
const CHOICES = [
  ['once', 'y', 'Yes, once'], ['session', 's', 'For this session'], ['always', 'a', 'Always here'],
  ['no', 'n', 'No'], ['tell', 't', 'Do this instead…'],
];

export class Asks {
  // `answer(call, reply)` sends an answer; it returns a promise.
  constructor({ answer }) {
    this.answer = answer;
    this.node = h('section.asks', { 'aria-label': 'Needs your answer', hidden: true });
    document.addEventListener('keydown', (event) => this.key(event));
  }

  draw(conversation) {
    const asks = [...conversation.asks.values()];
    this.node.hidden = !asks.length;
    patch(this.node, asks, (ask) => `${conversation.id} ${ask.call_id} ${ask.isInterrupted}`, (ask) => this.card(ask, conversation), () => {});
  }

  card(ask, conversation) {
    const node = ask.type === 'question' ? questionCard(ask, this.send(ask)) : permissionCard(ask, conversation, this.send(ask));
    node.dataset.call = ask.call_id;
    return node;
  }

  send(ask) {
    return async (reply, card) => {
      card.dataset.answered = 'true';
      for (const control of card.querySelectorAll('button, input, textarea')) control.disabled = true;
      try { await this.answer(ask.call_id, reply); } catch {
        delete card.dataset.answered;
        for (const control of card.querySelectorAll('button, input, textarea')) control.disabled = false;
        card.refresh?.();
      }
    };
  }

  // A letter answers the first card, unless the reader is writing somewhere.
  key(event) {
    const card = this.node.querySelector('article:not([data-answered])');
    if (!card?.press || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (event.target.closest?.('input, textarea, select, [contenteditable]')) return;
    clearTimeout(this.held);
    if (event.key.length !== 1 || this.isHeld) { this.isHeld = false; return; }
    this.isHeld = true;
    this.held = setTimeout(() => { this.isHeld = false; card.press(event.key.toLowerCase()); }, HOLD);
  }
}

function permissionCard(ask, conversation, send) {
  const isDiff = /^(@@|---|diff )/m.test(ask.preview ?? '') && ask.tool !== 'bash';
  const preview = ask.preview ?? ask.subjects.join('\n');
  const shown = isDiff ? fileDiff({ path: ask.subjects[0] ?? ask.tool, diff: ask.preview }) : h('pre.command', { tabindex: 0, role: 'region', 'aria-label': 'What it wants to run' }, revealed(preview));
  const view = h('div.ask-view', shown);
  const hint = h('p.hint');
  const offered = CHOICES.filter(([name]) => !ask.once_only || (name !== 'session' && name !== 'always'));
  const buttons = new Map(offered.map(([name, letter, label]) => [name, h('button', { class: name === 'once' ? 'primary' : name === 'tell' || name === 'always' ? 'subtle' : '', onclick: () => choose(name) }, h('span', label), h('kbd', letter))]));
  const row = h('div.answers', [...buttons.values()]);
  const node = h('article.ask', { 'aria-labelledby': `ask-${ask.call_id}` },
    h('header', icon('hand'), h('h3', { id: `ask-${ask.call_id}` }, QUESTIONS[ask.tool] ?? `Run ${clean(ask.tool)}?`), h('span.tag', { class: ask.category }, RISKS[ask.category] ?? ask.category), h('span.time.elapsed', { 'data-since': ask.since }, elapsed(Date.now() - ask.since))),
    ask.isInterrupted ? h('p.asker', 'Windlass was stopped while it waited. Your answer continues the work.') : null,
    ask.agent ? h('p.asker', 'Asked by agent ', h('bdi', clean(ask.agent))) : null,
    view,
    conversation.info?.place ? h('p.where', icon('folder'), h('bdi', clean(conversation.info.place))) : null,
    ask.reasons.length ? h('ul.reasons', ask.reasons.map((reason) => h('li', { dir: 'auto' }, sentence(revealed(reason))))) : null,
    hint, row);

  // Nothing can be approved that was not on the screen completely.
  let isSeen = false;
  const look = () => {
    if (isSeen || !node.isConnected) return;
    isSeen = view.scrollTop + view.clientHeight >= view.scrollHeight - 4;
    node.refresh();
  };
  node.refresh = () => {
    for (const name of ['once', 'session', 'always']) { const button = buttons.get(name); if (button) button.disabled = !isSeen || 'answered' in node.dataset; }
    hint.textContent = isSeen ? '' : 'Scroll to the end of it to approve.';
    hint.hidden = isSeen;
  };
  view.addEventListener('scroll', look, { passive: true });
  new ResizeObserver(look).observe(view);
  node.refresh();

  const choose = (name) => {
    if ('answered' in node.dataset || buttons.get(name)?.disabled) return;
    if (name === 'once') send({ answer: 'once' }, node);
    else if (name === 'no') send({ answer: 'no' }, node);
    else if (name === 'tell') tell(row, (text) => send({ answer: 'no', note: text }, node), reset);
    else confirmLasting(name);
  };
  const reset = () => { fill(row, [...buttons.values()]); node.refresh(); buttons.get('once').focus(); };
  const confirmLasting = (name) => {
    const scope = name === 'always' ? 'Never ask again in this folder about' : 'Do not ask again in this session about';
    // A rule of one's own may say more than this call; unchanged, it is exactly this one. What has unseen characters is not offered.
    const first = name === 'always' && ask.subjects.length <= MOST_RULES ? ask.subjects.filter((subject) => revealed(subject) === subject && !subject.includes('\n')).map((subject) => `${ask.tool}(${subject})`) : [];
    const rules = first.length === ask.subjects.length ? first.map((value) => h('input.wide', { type: 'text', value, 'aria-label': 'Rule', spellcheck: 'false', autocomplete: 'off' })) : [];
    const yes = h('button.primary', { type: 'submit' }, 'Yes, do not ask again');
    fill(row, h('form.lasting', { onsubmit: (event) => {
      event.preventDefault();
      const own = rules.map((rule) => rule.value.trim()).filter(Boolean);
      send(own.join('\n') === first.join('\n') || !rules.length ? { answer: name } : { answer: name, rules: own }, node);
    } }, h('p', `${scope}${rules.length ? '; * stands for anything:' : ' '}`, rules.length ? null : h('code', revealed(`${ask.tool} ${ask.subjects.join(' · ')}`))), rules, yes, h('button', { onclick: reset }, 'Back')));
    yes.focus();
  };
  node.press = (letter) => {
    const chosen = offered.find(([, key]) => key === letter);
    if (chosen) choose(chosen[0]);
  };
  return node;
}

function tell(row, done, back) {
  const input = h('input.wide', { type: 'text', 'aria-label': 'What to do instead', placeholder: 'What should it do instead?', maxlength: 4000, onkeydown: (event) => { if (event.key === 'Escape') { event.stopPropagation(); back(); } } });
  fill(row, h('form.tell', { onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) done(input.value.trim()); } }, input, h('button.primary', { type: 'submit' }, 'Say no'), h('button', { onclick: back }, 'Back')));
  input.focus();
}

function questionCard(ask, send) {
  const input = h('input.wide', { type: 'text', 'aria-label': 'Your answer', placeholder: 'Another answer' });
  const node = h('article.ask.question', { 'aria-labelledby': `ask-${ask.call_id}` },
    h('header', icon('hand'), h('h3', { id: `ask-${ask.call_id}`, dir: 'auto' }, clean(ask.text))),
    h('div.answers', ask.options.map((option, index) => h('button', { onclick: () => send({ text: option }, node) }, h('span', { dir: 'auto' }, clean(option)), h('kbd', String(index + 1))))),
    h('form.tell', { onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) send({ text: input.value.trim() }, node); } }, input, h('button.primary', { type: 'submit' }, 'Answer')));
  node.press = (letter) => { const option = ask.options[Number(letter) - 1]; if (option) send({ text: option }, node); };
  return node;
}

// Describes a request in one line, for notifications and the status line.
export function askLine(ask) {
  return ask.type === 'question' ? `Question: ${clean(ask.text)}` : `Approval needed: ${clean(ask.tool)} ${clean(ask.subjects?.join(' ') ?? '')}`;
}
