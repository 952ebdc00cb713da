//! Creates a big session: turns with tool calls, recorded as Windlass records them, and summarized now and
//! then.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::{Event, SessionEvent, StepStatus};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Batch, Durability, Lease, NewSession, Store};
use windlass_core::message::{
    Compaction, Finish, FinishReason, Message, Origin, Part, Role, ToolCall, ToolResult,
};
use windlass_core::model::Usage;

/// Options of the session to create.
#[derive(Debug, Clone, Args)]
pub(crate) struct FillOptions {
    /// Path of the database.
    #[arg(long)]
    pub(crate) database: PathBuf,
    /// Id of the session.
    #[arg(long)]
    pub(crate) session: String,
    /// Folder the session works in.
    #[arg(long)]
    pub(crate) place: PathBuf,
    /// Number of messages.
    #[arg(long)]
    pub(crate) messages: usize,
}

/// Number of messages from one summary to the next.
const EVERY: usize = 1_000;
/// Number of messages after the last summary. More would not fit the model's window and would be summarized
/// before the first request.
const SINCE: usize = 200;
/// Number of messages that a summary leaves unchanged.
const KEPT: usize = 6;
/// Number of calls in a turn.
const CALLS: usize = 12;
/// Number of bytes in a tool result.
const ANSWER: usize = 5_000;
/// Number of entries in a batch.
const TOGETHER: usize = 400;

pub(crate) fn fill(options: &FillOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let store = windlass_store::open(&options.database, Arc::new(SystemClock::default()))?;
        let place = options.place.canonicalize()?;
        let new = NewSession {
            id: Some(options.session.as_str().into()),
            place: place.display().to_string(),
            time: Timestamp(1),
            ..NewSession::default()
        };
        let opened = store.create(new, &windlass_store::owner()).await?;
        let mut session = Session::new(options.session.as_str().into(), options.messages);
        let mut written = 0;
        while session.messages < options.messages {
            session.turn()?;
            if session.events.len() >= TOGETHER {
                written += write(&*store, &opened.lease, written, &mut session.events).await?;
            }
        }
        write(&*store, &opened.lease, written, &mut session.events).await?;
        store.release(&opened.lease).await?;
        Ok(())
    })
}

/// Writes the pending events and returns their number.
async fn write(store: &dyn Store, lease: &Lease, written: u64, events: &mut Vec<Event>) -> Result<u64> {
    let events = std::mem::take(events);
    let count = events.len() as u64;
    let batch = Batch {
        first_seq: written + 1,
        events,
        time: Timestamp(1),
        durability: Durability::Process,
        ..Batch::default()
    };
    store.append(lease, batch).await?;
    Ok(count)
}

/// A growing session.
struct Session {
    id: SessionId,
    /// Events not written yet.
    events: Vec<Event>,
    /// Messages the model sees next.
    history: Vec<(MessageId, Role)>,
    messages: usize,
    /// Number of messages after which the next summary is due.
    due: usize,
    calls: usize,
}

impl Session {
    fn new(id: SessionId, messages: usize) -> Self {
        Self {
            id,
            events: Vec::new(),
            history: Vec::new(),
            messages: 0,
            due: messages.saturating_sub(SINCE) % EVERY,
            calls: 0,
        }
    }

    fn turn(&mut self) -> Result<()> {
        let asked = format!("Look into part {} and fix what is wrong there.", self.messages);
        self.say(Role::User, vec![Part::text(asked)], None);
        self.events.push(Event::Start {
            provider: "anthropic".to_owned(),
            model: "claude-sonnet-4-5".to_owned(),
        });
        if self.messages >= self.due {
            self.summarize();
            self.due += EVERY;
        }
        for _ in 0..CALLS {
            self.call()?;
        }
        let content = prose(self.messages, 100);
        self.say(
            Role::Assistant,
            vec![Part::text(content.clone()), ended(FinishReason::EndTurn)],
            None,
        );
        self.used();
        self.events.push(Event::Final {
            content,
            finish: FinishReason::EndTurn,
        });
        Ok(())
    }

    /// Adds one iteration with a call.
    fn call(&mut self) -> Result<()> {
        self.calls += 1;
        let name = "bash".to_owned();
        let id = format!("toolu_{:024}", self.calls);
        let args = json!({"command": format!("sed -n '1,80p' src/part{}.rs", self.calls)});
        let text = prose(self.calls, 40);
        let items = [
            json!({"type": "text", "text": text}),
            json!({"type": "tool_use", "id": id, "name": name, "input": args}),
        ];
        let items: Result<Vec<_>, _> = items.iter().map(serde_json::value::to_raw_value).collect();
        let call = ToolCall {
            id: id.as_str().into(),
            name: name.clone(),
            input: args.to_string(),
            finished: true,
        };
        let parts = vec![
            Part::text(text.clone()),
            Part::ToolCall(call),
            ended(FinishReason::ToolUse),
        ];
        let origin = Origin {
            provider: "anthropic".to_owned(),
            wire: "anthropic-messages".to_owned(),
            items: items.context("a call is not JSON")?,
        };
        self.say(Role::Assistant, parts, Some(origin));
        self.used();
        let content = source(self.calls);
        let details = json!({"exit_code": 0, "bytes": content.len()});
        let call_id = || id.as_str().into();
        self.events.extend([
            Event::Text { text },
            Event::StepStart {
                call_id: call_id(),
                title: format!("bash: sed part{}", self.calls),
                number: 1,
            },
            Event::ToolCall {
                call_id: call_id(),
                name: name.clone(),
                args,
            },
            Event::ToolResult {
                call_id: call_id(),
                name: name.clone(),
                content: content.clone(),
                is_error: false,
                details: Some(details.clone()),
            },
            Event::StepComplete {
                call_id: call_id(),
                status: StepStatus::Completed,
                duration_ms: 3,
            },
        ]);
        let result = ToolResult {
            call_id: call_id(),
            name,
            content,
            metadata: Some(details),
            is_error: false,
            images: Vec::new(),
        };
        self.say(Role::Tool, vec![Part::ToolResult(result)], None);
        Ok(())
    }

    /// Compacts as the summarizing strategy does: the first message, a summary and a tail stay.
    fn summarize(&mut self) {
        let mut start = self.history.len().saturating_sub(KEPT);
        while self
            .history
            .get(start)
            .is_some_and(|(_, role)| *role == Role::Tool)
        {
            start -= 1;
        }
        let tail = self.history.split_off(start);
        self.history.truncate(1);
        let summary = Compaction {
            summary: prose(self.messages, 700),
            tokens_before: 170_000,
            tokens_after: 8_000,
        };
        self.say(Role::User, vec![Part::Compaction(summary)], None);
        self.history.extend(tail);
        self.events.push(Event::Session(SessionEvent::Compaction {
            before: 170_000,
            after: 8_000,
            history: self.history.iter().map(|(id, _)| id.clone()).collect(),
            fidelity: None,
        }));
    }

    fn say(&mut self, role: Role, parts: Vec<Part>, origin: Option<Origin>) {
        let mut message = Message::new(&self.id, role, parts, Timestamp(1));
        message.origin = origin;
        message.model = (role == Role::Assistant).then(|| "claude-sonnet-4-5".to_owned());
        self.history.push((message.id.clone(), role));
        self.messages += 1;
        self.events.push(Event::Message {
            message: Arc::new(message),
        });
    }

    fn used(&mut self) {
        self.events.push(Event::Usage {
            usage: Usage::default(),
            cost_usd: Some(0.01),
            cause: "turn".to_owned(),
        });
    }
}

fn ended(reason: FinishReason) -> Part {
    Part::Finish(Finish {
        reason,
        time: Timestamp(1),
    })
}

/// Returns this many words, different for each seed.
fn prose(seed: usize, count: usize) -> String {
    let word = |number: usize| format!("word{}", (seed * 7_919 + number * 104_729) % 5_003);
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the result of reading a file.
fn source(seed: usize) -> String {
    let mut text = String::with_capacity(ANSWER + 100);
    let mut line = 0;
    while text.len() < ANSWER {
        text.push_str(&format!(
            "{line:>6}\t    let value_{seed} = compute(input, \"name {line}\").map_err(Error::from)?;\n"
        ));
        line += 1;
    }
    text
}
