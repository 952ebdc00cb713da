//! Events of a session as updates for the editor. Pure: events go in, updates come out.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_api::{
    CallId, DeltaKind, Event, FailureKind, GoalEvent, Message, MessageId, NoteKind, Part, PlanStep, Role,
    SessionEvent, StepState, Waiting, goal_note,
};
use windlass_core::event::AgentEvent;

use crate::card::Card;
use crate::client::ClientAbilities;
use crate::content::{block, text_block};

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Screen of a session in the editor.
pub(crate) struct View {
    client: ClientAbilities,
    place: PathBuf,
    /// True while the past is shown: the user's messages are part of it then.
    is_past: bool,
    /// The reply that is being received.
    reply: Reply,
    /// Calls that have not ended, by their id in the editor.
    cards: HashMap<String, Card>,
    /// Ids of past messages that were shown.
    shown: HashSet<MessageId>,
    context: Context,
    compactions: u64,
    /// True if the turn has an answer on the screen.
    has_answer: bool,
}

/// Parts of a reply that were sent already.
#[derive(Default)]
struct Reply {
    text: String,
    thought: String,
    /// Ids of the message and of the thoughts in the editor; empty before the first piece.
    text_id: String,
    thought_id: String,
}

/// Tokens in the context, and the cost so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Context {
    /// Size of the context window in tokens; 0 if it is not known.
    pub(crate) window: u64,
    pub(crate) used: u64,
    pub(crate) cost: f64,
}

impl View {
    pub(crate) fn new(client: ClientAbilities, place: &Path, context: Context) -> Self {
        Self {
            client,
            place: place.to_owned(),
            is_past: false,
            reply: Reply::default(),
            cards: HashMap::new(),
            shown: HashSet::new(),
            context,
            compactions: 0,
            has_answer: false,
        }
    }

    /// Switches between the past, which is shown with the user's messages, and the present.
    pub(crate) fn show_past(&mut self, is_past: bool) {
        self.is_past = is_past;
        self.shown.clear();
    }

    /// Sets the window of the model.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.context.window = window;
    }

    /// Returns the updates of an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::Delta { kind, text } => self.delta(*kind, text),
            Event::Message { message } => self.message(message),
            Event::StepStart { .. }
            | Event::ToolCall { .. }
            | Event::ToolResult { .. }
            | Event::ToolOutput { .. } => self.call(event, None),
            Event::Usage {
                usage,
                cost_usd,
                cause,
            } => {
                self.context.cost += cost_usd.unwrap_or_default();
                if cause == "turn" {
                    self.context.used = usage.total_input().saturating_add(usage.output);
                }
                self.usage()
            }
            Event::Retry {
                attempt,
                max_attempts,
                message,
                discard,
                ..
            } => {
                if *discard {
                    self.reply = Reply::default();
                }
                let title = format!("Retry {attempt} of {max_attempts}: {message}");
                self.notice(Severity::Warning, &title)
            }
            Event::Warning { message } => self.notice(Severity::Warning, message),
            Event::Error { message } => self.notice(Severity::Error, message),
            Event::Final { content, .. } => self.ended(content),
            Event::Canceled { .. } => self.ended(""),
            Event::Failed { reason, message, .. } => match reason {
                FailureKind::PermissionDenied => self.ended(message),
                _ => self.ended(""),
            },
            Event::Session(event) => self.session(event),
            Event::Waiting(Waiting::PermissionRequest {
                call_id, tool, agent, ..
            }) => self.asked(call_id, tool, agent.as_deref()),
            Event::Start { .. }
            | Event::Reasoning { .. }
            | Event::Text { .. }
            | Event::StepComplete { .. }
            | Event::Status { .. }
            | Event::Waiting(_) => Vec::new(),
        }
    }

    fn delta(&mut self, kind: DeltaKind, text: &str) -> Vec<Value> {
        if text.is_empty() {
            return Vec::new();
        }
        match kind {
            DeltaKind::Text => {
                self.reply.text.push_str(text);
                vec![self.said(text)]
            }
            DeltaKind::Thinking => {
                self.reply.thought.push_str(text);
                vec![self.thought(text)]
            }
            DeltaKind::ToolInput => Vec::new(),
        }
    }

    fn said(&mut self, text: &str) -> Value {
        if self.reply.text_id.is_empty() {
            self.reply.text_id = new_id();
        }
        chunk("agent_message_chunk", text_block(text), &self.reply.text_id)
    }

    fn thought(&mut self, text: &str) -> Value {
        if self.reply.thought_id.is_empty() {
            self.reply.thought_id = new_id();
        }
        chunk("agent_thought_chunk", text_block(text), &self.reply.thought_id)
    }

    /// A stored message: whatever of it was not shown yet.
    fn message(&mut self, message: &Message) -> Vec<Value> {
        if self.is_past && !self.shown.insert(message.id.clone()) {
            return Vec::new();
        }
        match message.role {
            Role::User => self.user_message(message),
            Role::Assistant => self.reply(message),
            Role::System | Role::Tool => Vec::new(),
        }
    }

    /// The editor shows new messages of the user itself.
    fn user_message(&self, message: &Message) -> Vec<Value> {
        let is_summary = |part: &Part| matches!(part, Part::Compaction(_));
        if !self.is_past || message.parts.iter().any(is_summary) {
            return Vec::new();
        }
        let blocks = message.parts.iter().filter_map(block);
        blocks
            .map(|block| chunk("user_message_chunk", block, message.id.as_str()))
            .collect()
    }

    fn reply(&mut self, message: &Message) -> Vec<Value> {
        let (mut text, mut thought) = (String::new(), String::new());
        for part in &message.parts {
            match part {
                Part::Text(part) => text.push_str(&part.text),
                Part::Reasoning(part) => thought.push_str(&part.text),
                _ => {}
            }
        }
        let mut updates = Vec::new();
        if let Some(rest) = missing(&self.reply.thought, &thought) {
            if !self.reply.thought.is_empty() && rest.len() == thought.len() {
                self.reply.thought_id.clear();
            }
            updates.push(self.thought(rest));
        }
        if let Some(rest) = missing(&self.reply.text, &text) {
            if !self.reply.text.is_empty() && rest.len() == text.len() {
                self.reply.text_id.clear();
            }
            updates.push(self.said(rest));
        }
        self.reply = Reply::default();
        self.has_answer |= !text.trim().is_empty();
        for call in message.calls().filter(|call| call.finished) {
            let args = serde_json::from_str(&call.input).unwrap_or_else(|_| json!({ "_raw": call.input }));
            let card = self.card(call.id.as_str(), &call.name, args);
            updates.push(card.announced("pending"));
            self.cards.insert(call.id.to_string(), card);
        }
        updates
    }

    fn card(&self, id: &str, name: &str, args: Value) -> Card {
        Card::new(id, name, args, &self.place).on_terminal(self.client.terminal)
    }

    /// A call of the session, or of one of its sub-agents.
    fn call(&mut self, event: &Event, agent: Option<&str>) -> Vec<Value> {
        let id = |call: &CallId| card_id(call, agent);
        match event {
            Event::StepStart { call_id, title, .. } => {
                let id = id(call_id);
                let known = self.cards.contains_key(&id);
                if !known {
                    // The tool follows with the next event.
                    let card = self.card(&id, "", Value::Null);
                    self.cards.insert(id.clone(), card);
                }
                if let Some(card) = self.cards.get_mut(&id) {
                    card.set_title(title);
                }
                Vec::new()
            }
            Event::ToolCall { call_id, name, args } => {
                let id = id(call_id);
                match self.cards.get_mut(&id) {
                    Some(card) if card.name() == name => {
                        card.set_args(args.clone());
                        vec![card.running()]
                    }
                    unnamed => {
                        let title = unnamed.map(|card| card.own_title()).unwrap_or_default();
                        let mut card = self.card(&id, name, args.clone());
                        card.set_title(&title);
                        if let Some(agent) = agent {
                            card = card.of_agent(agent.to_owned());
                        }
                        let update = card.announced("in_progress");
                        self.cards.insert(id, card);
                        vec![update]
                    }
                }
            }
            Event::ToolOutput { call_id, text } => {
                let card = self.cards.get_mut(&id(call_id));
                card.and_then(|card| card.add_output(text)).into_iter().collect()
            }
            Event::ToolResult {
                call_id,
                name,
                content,
                is_error,
                details,
            } => {
                let Some(card) = self.cards.remove(&id(call_id)) else {
                    return Vec::new();
                };
                let mut updates = card.ended(content, *is_error, details.as_ref());
                if name == "todo" && agent.is_none() && !is_error {
                    updates.extend(todos(details.as_ref()));
                }
                updates
            }
            _ => Vec::new(),
        }
    }

    /// Announces a call that a person is asked about, if it was not announced.
    fn asked(&mut self, call: &CallId, tool: &str, agent: Option<&str>) -> Vec<Value> {
        let id = card_id(call, agent);
        if self.cards.contains_key(&id) {
            return Vec::new();
        }
        let mut card = self.card(&id, tool, json!({}));
        if let Some(agent) = agent {
            card = card.of_agent(agent.to_owned());
        }
        let update = card.announced("pending");
        self.cards.insert(id, card);
        vec![update]
    }

    /// Returns the card of a call that has not ended.
    pub(crate) fn open_card(&self, call: &CallId, agent: Option<&str>) -> Option<&Card> {
        self.cards.get(&card_id(call, agent))
    }

    fn session(&mut self, event: &SessionEvent) -> Vec<Value> {
        match event {
            SessionEvent::Compacting { .. } => {
                self.compactions += 1;
                self.compaction("in_progress")
            }
            SessionEvent::Compaction { after, .. } => {
                self.context.used = *after;
                let mut updates = self.compaction("completed");
                updates.extend(self.usage());
                updates
            }
            SessionEvent::Rewind { .. } if self.is_past => Vec::new(),
            SessionEvent::Rewind { .. } => self.notice(
                Severity::Info,
                "The conversation was taken back to an earlier state",
            ),
            SessionEvent::Title { title } if !self.is_past => {
                vec![json!({ "sessionUpdate": "session_info_update", "title": title })]
            }
            SessionEvent::Title { .. } => Vec::new(),
            SessionEvent::Goal { text, .. } => {
                let meta = json!({ "windlass": { "goal": text } });
                vec![json!({ "sessionUpdate": "session_info_update", "_meta": meta })]
            }
            SessionEvent::GoalCompleted { text, .. } => {
                self.notice(Severity::Info, &format!("Goal reached: {text}"))
            }
            SessionEvent::Moved { .. } => {
                let line = event.moved_line().unwrap_or_default();
                self.notice(Severity::Info, &line)
            }
            SessionEvent::Agent(event) => self.agent(event),
            SessionEvent::Work(event) => self.work(event),
        }
    }

    fn compaction(&mut self, status: &str) -> Vec<Value> {
        if self.client.has_compaction {
            let id = format!("c{}", self.compactions);
            return vec![
                json!({ "sessionUpdate": "compaction_update", "compactionId": id, "status": status }),
            ];
        }
        match status {
            "completed" => self.notice(Severity::Info, "The conversation was compacted"),
            _ => Vec::new(),
        }
    }

    fn agent(&mut self, event: &AgentEvent) -> Vec<Value> {
        if let Some((_, cost)) = event.usage() {
            self.context.cost += cost.unwrap_or_default();
            return self.usage();
        }
        let AgentEvent::Subagent {
            number,
            name,
            event: inner,
            ..
        } = event
        else {
            return Vec::new();
        };
        match &**inner {
            Event::StepStart { .. }
            | Event::ToolCall { .. }
            | Event::ToolOutput { .. }
            | Event::ToolResult { .. } => self.call(inner, Some(&format!("{number} {name}"))),
            _ => match event.line() {
                Some(line) => self.notice(Severity::Info, &line),
                None => Vec::new(),
            },
        }
    }

    fn work(&mut self, event: &GoalEvent) -> Vec<Value> {
        if let GoalEvent::Plan(plan) = event {
            return vec![plan_update(plan.steps.iter().map(step).collect())];
        }
        match goal_note(event) {
            Some((NoteKind::Bad, text)) => self.notice(Severity::Warning, &text),
            Some((_, text)) => self.notice(Severity::Info, &text),
            None => Vec::new(),
        }
    }

    fn usage(&self) -> Vec<Value> {
        let Context { window, used, cost } = self.context;
        if window == 0 || self.is_past {
            return Vec::new();
        }
        vec![json!({
            "sessionUpdate": "usage_update",
            "used": used,
            "size": window,
            "cost": { "amount": cost, "currency": "USD" },
        })]
    }

    /// Notices are not part of the past.
    fn notice(&self, severity: Severity, text: &str) -> Vec<Value> {
        if self.is_past || text.trim().is_empty() {
            return Vec::new();
        }
        vec![notice(self.client, severity, text)]
    }

    /// The turn ended. Calls without a result have failed; an answer that no message contained is shown.
    fn ended(&mut self, answer: &str) -> Vec<Value> {
        let mut open: Vec<(String, Card)> = self.cards.drain().collect();
        open.sort_by(|(one, _), (other, _)| one.cmp(other));
        let failed = open.iter().flat_map(|(_, card)| card.ended("", true, None));
        let mut updates: Vec<Value> = failed.collect();
        self.reply = Reply::default();
        if !self.has_answer && !answer.trim().is_empty() {
            updates.push(self.said(answer));
            self.reply = Reply::default();
        }
        self.has_answer = false;
        updates
    }
}

/// Returns a message of the agent, such as the text of a command.
pub(crate) fn message(text: &str) -> Value {
    chunk("agent_message_chunk", text_block(text), &new_id())
}

/// Returns a notice; in an editor without notices, a thought of its own.
pub(crate) fn notice(client: ClientAbilities, severity: Severity, text: &str) -> Value {
    if !client.has_notices {
        return chunk("agent_thought_chunk", text_block(text), &new_id());
    }
    let (title, more) = text.split_once('\n').unwrap_or((text, ""));
    let mut update = json!({ "sessionUpdate": "notice", "severity": severity.name(), "title": title });
    if let (false, Some(map)) = (more.trim().is_empty(), update.as_object_mut()) {
        map.insert("description".to_owned(), json!(more));
    }
    update
}

/// Id of a call in the editor. The requests of a sub-agent have its number before the id of the call.
fn card_id(call: &CallId, agent: Option<&str>) -> String {
    let Some(agent) = agent else {
        return call.to_string();
    };
    let number = agent.split(' ').next().unwrap_or_default();
    let whole = call.as_str();
    let own = whole.strip_prefix(&format!("agent-{number}:")).unwrap_or(whole);
    format!("agent {agent}/{own}")
}

/// Returns the part of a text that was not shown; all of it if something else was shown.
fn missing<'a>(shown: &str, whole: &'a str) -> Option<&'a str> {
    let rest = whole.strip_prefix(shown).unwrap_or(whole);
    let is_shown = rest.len() == whole.len() && shown.trim() == whole.trim();
    Some(rest).filter(|rest| !rest.is_empty() && !is_shown)
}

fn new_id() -> String {
    MessageId::generate().to_string()
}

fn chunk(kind: &str, content: Value, message: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": content, "messageId": message })
}

fn todos(details: Option<&Value>) -> Option<Value> {
    let items = details?.get("items")?.as_array()?;
    let entry = |item: &Value| {
        let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
        let status = item.get("status").and_then(Value::as_str).unwrap_or("pending");
        plan_entry(text, status)
    };
    Some(plan_update(items.iter().map(entry).collect()))
}

fn step(step: &PlanStep) -> Value {
    let status = match step.status {
        StepState::Open => "pending",
        StepState::Active => "in_progress",
        StepState::Done => "completed",
    };
    plan_entry(&step.title, status)
}

fn plan_entry(text: &str, status: &str) -> Value {
    json!({ "content": text, "priority": "medium", "status": status })
}

fn plan_update(entries: Vec<Value>) -> Value {
    json!({ "sessionUpdate": "plan", "entries": entries })
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
