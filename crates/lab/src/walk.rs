//! Simulation of one session with one strategy.

mod measure;
mod reading;
mod rig;

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Message, Part, Role, Usage};
use windlass_core::clock::Clock;
use windlass_core::compact::{CompactionPorts, Strategy, compact, extract};
use windlass_core::context::Context;
use windlass_core::message::ToolResult;
use windlass_core::middleware::{Depth, Flow, IterationView, Shrink, Stage};
use windlass_core::script::call_part;

use self::measure::Meter;
use self::rig::Rig;
use super::{Experiment, Need, Sent, Session, Side, StrategyOutcome, Stretch};

/// State of the simulation.
pub(super) struct Walk<'a> {
    session: &'a Session,
    watch: &'a mut (dyn FnMut(&[Arc<Message>]) + Send),
    rig: Rig,
    history: Vec<Arc<Message>>,
    context: Context,
    meter: Meter,
    /// Iteration within the turn, starting at 1.
    iteration: u32,
    /// Number of consecutive compactions.
    compacted: u32,
    /// True if a compaction of this turn freed nothing.
    is_exhausted: bool,
    /// Usage that a provider would have reported for the last request.
    last_usage: Option<Usage>,
    /// Number of calls added by the simulation.
    made_up: usize,
    outcome: StrategyOutcome,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        session: &'a Session,
        strategy: Strategy,
        setup: &Experiment,
        watch: &'a mut (dyn FnMut(&[Arc<Message>]) + Send),
    ) -> Self {
        Self {
            session,
            watch,
            rig: Rig::new(strategy, setup),
            history: Vec::new(),
            context: Context::default(),
            meter: Meter::new(&session.prefix),
            iteration: 0,
            compacted: 0,
            is_exhausted: false,
            last_usage: None,
            made_up: 0,
            outcome: StrategyOutcome {
                strategy,
                requests: Vec::new(),
                usage: Usage::default(),
                side: Side::default(),
                bytes: 0,
                reused: 0,
                facts: super::Facts::default(),
                compactions: 0,
                failures: 0,
                repairs: 0,
            },
        }
    }

    pub(super) async fn run(mut self) -> StrategyOutcome {
        let mut needs: HashMap<usize, Vec<&Need>> = HashMap::new();
        for need in &self.session.needs {
            needs.entry(need.at).or_default().push(need);
        }
        let session = self.session;
        for (place, message) in session.messages.iter().enumerate() {
            self.rig.clock.set(message.created_at);
            match message.role {
                Role::User => {
                    self.end_turn().await;
                    self.iteration = 0;
                    self.compacted = 0;
                    self.is_exhausted = false;
                }
                Role::Assistant => {
                    self.focus(place).await;
                    self.ask(place).await;
                    for need in needs.remove(&place).unwrap_or_default() {
                        self.need(need).await;
                    }
                    self.replied(message);
                }
                Role::Tool | Role::System => {}
            }
            self.append(Arc::clone(message));
        }
        self.outcome.side = self.rig.provider.side();
        let side = self.outcome.side;
        self.outcome.usage.input += side.input;
        self.outcome.usage.output += side.output;
        self.outcome
    }

    fn append(&mut self, message: Arc<Message>) {
        self.rig.log.message(&message);
        self.rig.open.see(&message);
        self.history.push(message);
    }

    fn replied(&mut self, message: &Arc<Message>) {
        let output = self.rig.gauge.tokens([message]);
        self.outcome.usage.output += output;
        if let Some(usage) = &mut self.last_usage {
            usage.output = output;
        }
    }

    /// Runs the work that happens between turns.
    async fn end_turn(&mut self) {
        if self.history.is_empty() {
            return;
        }
        self.rig.focus.turn_ended();
        if matches!(self.outcome.strategy, Strategy::Subgoal | Strategy::SubgoalByGain) {
            let clock = Arc::clone(&self.rig.clock) as Arc<dyn Clock>;
            let cancel = CancellationToken::new();
            // The offline provider counts the usage.
            let _ = extract(
                &self.rig.subgoals,
                &self.history,
                &self.rig.provider,
                clock,
                cancel,
            )
            .await;
        }
    }

    /// Makes and measures one request as the loop would.
    async fn ask(&mut self, place: usize) {
        self.iteration += 1;
        self.press().await;
        let ready = self.context.prepare(&self.history);
        (self.watch)(ready);
        let measured = self.meter.measure(ready, &self.rig.gauge);
        let tokens = self.rig.gauge.prefix(&self.session.prefix) + measured.tokens;
        self.outcome.repairs += self.context.repairs();
        self.outcome.requests.push(Sent { at: place, tokens });
        self.outcome.bytes += measured.bytes;
        self.outcome.reused += measured.reused;
        let cached = measured.share(tokens);
        self.outcome.usage.cache_read += cached;
        // Tokens that are not in the provider's cache yet are written to it, because they will be sent again.
        self.outcome.usage.cache_write += tokens - cached;
        self.last_usage = Some(Usage {
            input: tokens,
            ..Usage::default()
        });
    }

    /// Compacts the context once before a request if the pipeline asks for it. Like the loop, it then sends
    /// the request whatever the result.
    async fn press(&mut self) {
        let view = IterationView {
            history: &self.history,
            iteration: self.iteration,
            last_usage: self.last_usage,
            cost_usd: 0.0,
            model: self.rig.model(),
            prefix: &self.session.prefix,
        };
        let limit = self.rig.limits.context_prep_timeout;
        let hooks = &self.rig.hooks;
        let (verdict, _) = hooks
            .iteration(&*self.rig.clock, Stage::Before, view, limit)
            .await;
        let Flow::Compact(shrink) = verdict.flow else {
            self.compacted = 0;
            return;
        };
        let is_hard = shrink.depth == Depth::Hard;
        if is_hard && (self.is_exhausted || self.compacted >= self.rig.limits.max_compactions) {
            return;
        }
        self.compacted += u32::from(is_hard);
        let has_shrunk = self.shrink(shrink).await;
        self.is_exhausted |= is_hard && !has_shrunk;
    }

    async fn shrink(&mut self, shrink: Shrink) -> bool {
        let (clock, cancel): (Arc<dyn Clock>, _) =
            (Arc::clone(&self.rig.clock) as _, CancellationToken::new());
        let deps = CompactionPorts {
            provider: &self.rig.provider,
            compactor: self.rig.compactor.as_deref(),
            hooks: &self.rig.hooks,
            clock: &clock,
            events: &*self.rig.log,
            cancel: &cancel,
        };
        let limit = self.rig.limits.context_prep_timeout;
        match compact(&deps, &self.history, shrink, limit).await {
            Ok(smaller) => {
                self.outcome.compactions += 1;
                self.history = smaller.history;
                true
            }
            Err(_) => {
                self.outcome.failures += u64::from(shrink.depth == Depth::Hard);
                false
            }
        }
    }

    /// Simulates an agent with focus tools, which declares its investigations and results. Each is a call and
    /// a request.
    async fn focus(&mut self, place: usize) {
        if self.outcome.strategy != Strategy::Focus {
            return;
        }
        let session = self.session;
        let is_at = |stretch: &&Stretch| stretch.range.end == place;
        for stretch in session.stretches.iter().filter(is_at) {
            let done = session.messages.get(stretch.range.clone()).unwrap_or_default();
            let summary = self.rig.said(done);
            let input = serde_json::json!({ "summary": summary });
            self.mark(place, "complete_focus", input).await;
        }
        for stretch in session.stretches.iter().filter(|next| next.range.start == place) {
            let input = serde_json::json!({ "scope": stretch.scope });
            self.mark(place, "start_focus", input).await;
        }
    }

    async fn mark(&mut self, place: usize, tool: &str, input: serde_json::Value) {
        self.ask(place).await;
        let call = self
            .calls(tool, [input.to_string()])
            .pop()
            .unwrap_or_else(|| "".into());
        let said = self.rig.mark(tool, input, &call).await;
        self.answer(tool, vec![(call, said)]);
    }

    /// Adds a reply that the session does not have, with calls of one tool.
    fn calls(&mut self, tool: &str, inputs: impl IntoIterator<Item = String>) -> Vec<CallId> {
        let (mut ids, mut parts) = (Vec::new(), Vec::new());
        for input in inputs {
            self.made_up += 1;
            let id = format!("lab_{}", self.made_up);
            parts.push(call_part(&id, tool, &input));
            ids.push(CallId::from(id));
        }
        let message = self.made(Role::Assistant, parts);
        self.replied(&message);
        self.append(message);
        ids
    }

    fn answer(&mut self, tool: &str, answers: Vec<(CallId, String)>) {
        let result = |(call_id, content)| {
            Part::ToolResult(ToolResult {
                call_id,
                name: tool.to_owned(),
                content,
                metadata: None,
                is_error: false,
                images: Vec::new(),
            })
        };
        let message = self.made(Role::Tool, answers.into_iter().map(result).collect());
        self.append(message);
    }

    fn made(&self, role: Role, parts: Vec<Part>) -> Arc<Message> {
        let session = self.history.first().map(|message| message.session_id.clone());
        let session = session.unwrap_or_else(|| "lab".into());
        Arc::new(Message::new(&session, role, parts, self.rig.clock.now()))
    }
}
