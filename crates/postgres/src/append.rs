//! The statement that appends batches, with the fence checked in it.

use std::collections::HashSet;

use deadpool_postgres::{GenericClient, Object};
use windlass_core::event::{AgentEvent, Event, SessionEvent, Waiting};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{Batch, Booking, DraftChange, Lease, LogError, event_kind, is_milestone};
use windlass_core::message::Role;
use windlass_core::tool::SAMPLING;

use super::failure::{Fault, damaged};
use super::sql::{clean, cleaned, rows, run, signed};
use super::{agents, goals};

/// Maximum age in milliseconds of a session's time of change during a turn.
const LAG: i64 = 1000;

/// Cause of the bookings that count as turns.
const TURN: &str = "turn";

/// Appends batches of many sessions.
const APPEND: &str = include_str!("append.sql");

/// Replaces the drafts of many sessions. Their rows are not written: this happens several times a second.
const DRAFTS: &str = "WITH want AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) \
AS w(id, owner, fence, payload, time)), \
up AS (SELECT s.id FROM session s JOIN want w ON s.id = w.id AND s.owner = w.owner AND s.fence = w.fence), \
ins AS (INSERT INTO draft (session, fence, payload, time) SELECT w.id, w.fence, w.payload, w.time FROM want w JOIN up ON up.id = w.id \
ON CONFLICT (session) DO UPDATE SET payload = excluded.payload, time = excluded.time, fence = excluded.fence \
WHERE draft.fence <= excluded.fence) SELECT id FROM up";

/// A batch, ready to be sent.
pub(super) struct Prepared {
    pub(super) lease: Lease,
    batch: Batch,
    /// Events as JSON, in order.
    payloads: Vec<String>,
    /// Draft as JSON.
    draft: Option<String>,
    /// Ids of the bookings.
    bookings: Vec<String>,
}

impl Prepared {
    pub(super) fn new(lease: Lease, batch: Batch) -> Result<Self, LogError> {
        let payloads = batch.events.iter().map(serde_json::to_string);
        let payloads = payloads
            .collect::<Result<_, _>>()
            .map_err(|error| damaged("an event", error))?;
        let draft = match &batch.draft {
            DraftChange::Set(message) => Some(serde_json::to_string(message)),
            DraftChange::Keep | DraftChange::Clear => None,
        };
        let draft = draft.transpose().map_err(|error| damaged("a draft", error))?;
        let bookings = batch.bookings.iter().map(|_| booking_id()).collect();
        Ok(Self {
            lease,
            batch,
            payloads,
            draft,
            bookings,
        })
    }

    pub(super) fn first(&self) -> u64 {
        self.batch.first_seq
    }

    pub(super) fn last(&self) -> u64 {
        (self.batch.first_seq + self.payloads.len() as u64).saturating_sub(1)
    }

    pub(super) fn is_without_entries(&self) -> bool {
        self.payloads.is_empty()
    }

    /// Returns the id of a booking, by which a batch without entries is recognized.
    pub(super) fn booking_id(&self) -> Option<&str> {
        self.bookings.first().map(String::as_str)
    }

    fn is_draft_only(&self) -> bool {
        self.payloads.is_empty() && self.bookings.is_empty() && self.draft.is_some()
    }

    /// Returns the events that change more than one statement can, with their numbers.
    fn special(&self) -> Vec<(u64, &Event)> {
        let has_state = self.batch.events.iter().any(is_agent_state);
        (self.batch.first_seq..)
            .zip(&self.batch.events)
            .filter(|(_, event)| {
                is_special(event) || (has_state && matches!(event, Event::ToolResult { .. }))
            })
            .collect()
    }
}

/// Returns a new id for a booking.
pub(super) fn booking_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// Returns true for events that change the state of a sub-agent.
fn is_agent_state(event: &Event) -> bool {
    matches!(
        event,
        Event::Start { .. } | Event::Waiting(_) | Event::Session(SessionEvent::Agent(_))
    )
}

fn is_special(event: &Event) -> bool {
    match event {
        Event::Session(event) => match event {
            SessionEvent::Compaction { .. }
            | SessionEvent::Rewind { .. }
            | SessionEvent::Work(_)
            | SessionEvent::Moved { .. }
            | SessionEvent::GoalCompleted { .. } => true,
            SessionEvent::Agent(event) => !matches!(event, AgentEvent::Subagent { .. }),
            _ => false,
        },
        event => is_agent_state(event),
    }
}

/// Sends batches in one transaction. Returns the sessions whose batch was stored.
pub(super) async fn send(client: &mut Object, batches: &[&Prepared]) -> Result<HashSet<String>, Fault> {
    let (drafts, others): (Vec<&Prepared>, Vec<&Prepared>) =
        batches.iter().copied().partition(|batch| batch.is_draft_only());
    if others.iter().all(|batch| batch.special().is_empty()) {
        // One statement is a transaction of its own.
        let client: &deadpool_postgres::Object = client;
        let (mut stored, drafted) =
            futures_util::try_join!(append(client, &others), replace(client, &drafts))?;
        stored.extend(drafted);
        return Ok(stored);
    }
    let transaction = client.transaction().await?;
    let mut stored = append(&transaction, &others).await?;
    for batch in others {
        let session = &batch.lease.session;
        if !stored.contains(session.as_str()) {
            continue;
        }
        for (seq, event) in batch.special() {
            reflect(&transaction, session, seq, event).await?;
            agents::reflect(&transaction, session, batch.batch.time, event).await?;
            goals::reflect(&transaction, session, batch.batch.time, event).await?;
        }
    }
    stored.extend(replace(&transaction, &drafts).await?);
    transaction.commit().await?;
    Ok(stored)
}

/// Columns of the sessions of a group.
#[derive(Default)]
struct Want<'a> {
    ids: Vec<&'a str>,
    owners: Vec<&'a str>,
    fences: Vec<i64>,
    firsts: Vec<i64>,
    counts: Vec<i64>,
    times: Vec<i64>,
    lags: Vec<i64>,
    folds: Vec<Fold>,
    drafts: Vec<Option<&'a str>>,
    clears: Vec<bool>,
    /// Ids of inputs that these entries take from the inbox.
    taken: Vec<&'a str>,
}

impl<'a> Want<'a> {
    /// Notes the inputs that an event records.
    fn takes(&mut self, event: &'a Event) {
        match event {
            Event::Message { message } if message.role == Role::User => self.taken.push(message.id.as_str()),
            Event::Waiting(Waiting::Queue { messages, steers }) => {
                let inputs = messages.iter().chain(steers);
                self.taken.extend(inputs.map(|message| message.id.as_str()));
            }
            _ => {}
        }
    }
}

/// Changes to the row of a session that follow from its events, whatever it contained.
#[derive(Default)]
struct Fold {
    standing: Option<&'static str>,
    model: Option<(String, String)>,
    context: Option<i64>,
    title: Option<String>,
    prompt: i64,
    completion: i64,
    cost: f64,
    turns: i64,
    seen: bool,
    awake: bool,
    /// True if a turn has begun that has not ended, false if it ended.
    wants: Option<bool>,
    /// True if inputs wait that would start by themselves.
    queued: Option<bool>,
}

impl Fold {
    fn of(batch: &Prepared) -> Self {
        let mut fold = Self::default();
        let has_state = batch.batch.events.iter().any(is_agent_state);
        for event in &batch.batch.events {
            match event {
                Event::Start { provider, model } => {
                    fold.wants = Some(true);
                    fold.standing = Some("working");
                    fold.model = Some((clean(provider), clean(model)));
                }
                // A request that a tool made says nothing about the conversation.
                Event::Usage { cause, .. } if cause.starts_with(SAMPLING) => {}
                Event::Usage { usage, .. } => {
                    fold.context = Some(signed(usage.total_input().saturating_add(usage.output)));
                }
                Event::Session(SessionEvent::Title { title }) => fold.title = Some(clean(title)),
                Event::Final { .. } => (fold.standing, fold.wants) = (Some("answered"), Some(false)),
                Event::Canceled { .. } => {
                    (fold.standing, fold.wants, fold.queued) = (Some("canceled"), Some(false), Some(false));
                }
                Event::Failed { .. } => (fold.standing, fold.wants) = (Some("failed"), Some(false)),
                Event::Message { message } => {
                    fold.seen = true;
                    fold.wants = (message.role == Role::User).then_some(true).or(fold.wants);
                }
                Event::Waiting(Waiting::Queue { messages, .. }) => fold.queued = Some(!messages.is_empty()),
                Event::ToolResult { .. } if !has_state => (fold.seen, fold.awake) = (true, true),
                _ => {}
            }
        }
        for booking in &batch.batch.bookings {
            fold.prompt += signed(booking.usage.total_input());
            fold.completion += signed(booking.usage.output);
            fold.cost += booking.cost_usd.unwrap_or_default();
            fold.turns += i64::from(booking.cause == TURN);
        }
        fold
    }
}

async fn append(client: &impl GenericClient, batches: &[&Prepared]) -> Result<HashSet<String>, Fault> {
    if batches.is_empty() {
        return Ok(HashSet::new());
    }
    let mut want = Want::default();
    for batch in batches {
        let is_milestone = batch.batch.events.iter().any(is_milestone);
        want.ids.push(batch.lease.session.as_str());
        want.owners.push(&batch.lease.owner);
        want.fences.push(signed(batch.lease.fence));
        want.firsts.push(signed(batch.first()));
        want.counts.push(signed(batch.payloads.len() as u64));
        want.times.push(signed(batch.batch.time.0));
        want.lags.push(if is_milestone { 0 } else { LAG });
        want.folds.push(Fold::of(batch));
        want.drafts.push(batch.draft.as_deref());
        want.clears.push(batch.batch.draft == DraftChange::Clear);
        batch.batch.events.iter().for_each(|event| want.takes(event));
    }
    let events = Events::of(batches);
    let books = Books::of(batches.iter().flat_map(|batch| {
        let ids = batch.bookings.iter().map(String::as_str);
        let session = batch.lease.session.as_str();
        ids.zip(&batch.batch.bookings)
            .map(move |(id, booking)| (id, session, booking))
    }));
    let folds = &want.folds;
    let stored = rows(
        client,
        APPEND,
        &[
            &want.ids,
            &want.owners,
            &want.fences,
            &want.firsts,
            &want.counts,
            &want.times,
            &want.lags,
            &column(folds, |fold| fold.standing),
            &column(folds, |fold| {
                fold.model.as_ref().map(|(provider, _)| provider.as_str())
            }),
            &column(folds, |fold| fold.model.as_ref().map(|(_, model)| model.as_str())),
            &column(folds, |fold| fold.context),
            &column(folds, |fold| fold.title.as_deref()),
            &column(folds, |fold| fold.prompt),
            &column(folds, |fold| fold.completion),
            &column(folds, |fold| fold.cost),
            &column(folds, |fold| fold.turns),
            &column(folds, |fold| fold.seen),
            &column(folds, |fold| fold.awake),
            &want.drafts,
            &want.clears,
            &events.sessions,
            &events.numbers,
            &events.kinds,
            &events.messages,
            &events.payloads,
            &events.times,
            &books.ids,
            &books.sessions,
            &books.times,
            &books.providers,
            &books.models,
            &books.causes,
            &books.inputs,
            &books.outputs,
            &books.cache_reads,
            &books.cache_writes,
            &books.costs,
            &column(folds, |fold| fold.wants),
            &column(folds, |fold| fold.queued),
            &want.taken,
        ],
    )
    .await?;
    Ok(stored.iter().map(|row| row.get(0)).collect())
}

fn column<'a, T>(folds: &'a [Fold], value: impl Fn(&'a Fold) -> T) -> Vec<T> {
    folds.iter().map(value).collect()
}

/// Columns of the entries of a group.
#[derive(Default)]
struct Events<'a> {
    sessions: Vec<&'a str>,
    numbers: Vec<i64>,
    kinds: Vec<&'a str>,
    messages: Vec<Option<String>>,
    payloads: Vec<&'a str>,
    times: Vec<i64>,
}

impl<'a> Events<'a> {
    fn of(batches: &[&'a Prepared]) -> Self {
        let mut events = Self::default();
        for batch in batches {
            let rows = batch.batch.events.iter().zip(&batch.payloads);
            for (seq, (event, payload)) in (batch.first()..).zip(rows) {
                events.sessions.push(batch.lease.session.as_str());
                events.numbers.push(signed(seq));
                events.kinds.push(event_kind(payload));
                events.messages.push(match event {
                    Event::Message { message } => Some(clean(message.id.as_str())),
                    _ => None,
                });
                events.payloads.push(payload);
                events.times.push(signed(batch.batch.time.0));
            }
        }
        events
    }
}

/// Columns of the bookings of a group.
#[derive(Default)]
struct Books<'a> {
    ids: Vec<&'a str>,
    sessions: Vec<&'a str>,
    times: Vec<i64>,
    providers: Vec<String>,
    models: Vec<String>,
    causes: Vec<String>,
    inputs: Vec<i64>,
    outputs: Vec<i64>,
    cache_reads: Vec<i64>,
    cache_writes: Vec<i64>,
    costs: Vec<Option<f64>>,
}

impl<'a> Books<'a> {
    fn of(bookings: impl Iterator<Item = (&'a str, &'a str, &'a Booking)>) -> Self {
        let mut books = Self::default();
        for (id, session, booking) in bookings {
            books.ids.push(id);
            books.sessions.push(session);
            books.times.push(signed(booking.time.0));
            books.providers.push(clean(&booking.provider));
            books.models.push(clean(&booking.model));
            books.causes.push(clean(&booking.cause));
            books.inputs.push(signed(booking.usage.input));
            books.outputs.push(signed(booking.usage.output));
            books.cache_reads.push(signed(booking.usage.cache_read));
            books.cache_writes.push(signed(booking.usage.cache_write));
            books.costs.push(booking.cost_usd);
        }
        books
    }
}

async fn replace(client: &impl GenericClient, batches: &[&Prepared]) -> Result<HashSet<String>, Fault> {
    if batches.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<&str> = batches.iter().map(|batch| batch.lease.session.as_str()).collect();
    let owners: Vec<&str> = batches.iter().map(|batch| batch.lease.owner.as_str()).collect();
    let fences: Vec<i64> = batches.iter().map(|batch| signed(batch.lease.fence)).collect();
    let drafts: Vec<&str> = batches
        .iter()
        .filter_map(|batch| batch.draft.as_deref())
        .collect();
    let times: Vec<i64> = batches.iter().map(|batch| signed(batch.batch.time.0)).collect();
    let stored = rows(client, DRAFTS, &[&ids, &owners, &fences, &drafts, &times]).await?;
    Ok(stored.iter().map(|row| row.get(0)).collect())
}

/// Updates the row of a session for an event that depends on other entries.
async fn reflect(client: &impl GenericClient, id: &SessionId, seq: u64, event: &Event) -> Result<(), Fault> {
    match event {
        Event::Session(SessionEvent::Compaction { history, .. }) => {
            // From here on the model sees the messages this entry lists and everything after it.
            let base = (!history.is_empty()).then(|| signed(seq));
            let summary = history.get(1).or(history.first()).map(MessageId::as_str);
            run(
                client,
                "UPDATE session SET base_seq = coalesce($2, base_seq), summary = $3 WHERE id = $1",
                &[&id.as_str(), &base, &cleaned(summary)],
            )
            .await
            .map(drop)
        }
        // A rewind to before the last compaction may make any entry count again; the next compaction sets a
        // better base.
        Event::Session(SessionEvent::Rewind { to }) => run(
            client,
            "UPDATE session SET base_seq = 1, summary = NULL WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM entry \
             WHERE entry.session = $1 AND entry.seq = session.base_seq AND entry.seq <= $2 AND entry.kind = 'compaction')",
            &[&id.as_str(), &signed(*to)],
        )
        .await
        .map(drop),
        _ => Ok(()),
    }
}
