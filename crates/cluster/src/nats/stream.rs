//! One stream of events: its publisher at the owner, and its reader.
//!
//! The reader acknowledges pieces, so a slow one is never far behind: its publisher then waits, and the owner drops live
//! events, as for any slow reader. Acknowledgements and empty pieces are also signs of life.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use windlass_api::{Envelope, EventStream};

use super::link::{Incoming, Link, Outgoing, Piece};
use crate::lines::{Lines, line};
use crate::port::Answer;

/// Time in which events are gathered.
const FLUSH: Duration = Duration::from_millis(25);
/// Time between two signs of life.
const ALIVE: Duration = Duration::from_secs(3);
/// Time without a sign of life after which a stream counts as broken.
const SILENCE: Duration = Duration::from_secs(10);
/// Pieces that may be on their way.
const WINDOW: u64 = 64;
/// Pieces after which the reader acknowledges.
const EVERY: u64 = 16;
/// Acknowledgement of a reader that leaves.
const LEAVES: u64 = u64::MAX;

/// Returns an interval that starts now and never catches up.
fn every(time: Duration) -> Interval {
    let mut interval = interval(time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval.reset();
    interval
}

fn acknowledgements(stream: &str) -> String {
    format!("{stream}.ack")
}

/// Sends events to a reader until they end, the reader leaves or falls silent, or `stop` is cancelled.
pub(super) async fn publish(link: &Link, to: String, mut events: EventStream, stop: &CancellationToken) {
    let back = acknowledgements(&to);
    let Ok(mut heard) = link.client().subscribe(back.clone()).await else {
        return;
    };
    let mut outgoing = Outgoing::new(link, to);
    let accepted = serde_json::to_vec(&Answer::Ok(Value::Null)).unwrap_or_default();
    let (mut flush, mut alive, mut silence) = (every(FLUSH), every(ALIVE), every(SILENCE));
    let (mut text, mut known, mut is_over) = (Vec::new(), 0, false);
    let mut sent = outgoing.send(&accepted, false).await;
    while sent.is_ok() {
        let has_room = outgoing.sent.saturating_sub(known) < WINDOW;
        tokio::select! {
            () = stop.cancelled() => {
                let _ = outgoing.send(&text, true).await;
                return;
            }
            _ = silence.tick() => return,
            message = heard.next() => match message.map(|message| acknowledged(link, &back, &message.payload)) {
                None | Some(Some(LEAVES)) => return,
                Some(Some(count)) => {
                    known = known.max(count);
                    silence.reset();
                }
                Some(None) => {}
            },
            event = events.next(), if !is_over && text.len() < link.piece() => match event {
                Some(event) => text.extend_from_slice(&line(&event)),
                None => is_over = true,
            },
            // The first event after a pause is sent at once.
            _ = flush.tick(), if has_room && (is_over || !text.is_empty()) => {
                sent = outgoing.send(&std::mem::take(&mut text), is_over).await;
                alive.reset();
                if is_over {
                    return;
                }
            }
            _ = alive.tick(), if has_room => sent = outgoing.send(&[], false).await,
        }
    }
}

fn acknowledged(link: &Link, subject: &str, frame: &[u8]) -> Option<u64> {
    let (_, text) = link.open(subject, frame)?;
    text.try_into().ok().map(u64::from_be_bytes)
}

/// Passes events on to their reader, until they end or the reader is gone.
pub(super) async fn follow(mut incoming: Incoming, events: mpsc::Sender<Envelope>) {
    let back = acknowledgements(&incoming.subject);
    let link = std::sync::Arc::clone(&incoming.link);
    let acknowledge = async |count: u64| {
        // One that is lost is made up for by the next one.
        let _ = link.send(&back, count.to_be_bytes().to_vec()).await;
    };
    let (mut alive, mut silence) = (every(ALIVE), every(SILENCE));
    let (mut lines, mut ready, mut is_over) = (Lines::default(), None, false);
    loop {
        ready = ready.or_else(|| lines.next_event());
        if is_over && ready.is_none() {
            return;
        }
        tokio::select! {
            () = events.closed() => break,
            _ = alive.tick() => acknowledge(incoming.next).await,
            _ = silence.tick(), if ready.is_none() => break,
            permit = events.reserve(), if ready.is_some() => {
                if let (Ok(permit), Some(event)) = (permit, ready.take()) {
                    permit.send(event);
                }
                silence.reset();
            }
            piece = incoming.next(), if ready.is_none() => match piece {
                Piece::Text { text, is_last } if lines.add(&text) => {
                    is_over = is_last;
                    silence.reset();
                    if incoming.next.is_multiple_of(EVERY) {
                        acknowledge(incoming.next).await;
                    }
                }
                Piece::Text { .. } | Piece::Nobody | Piece::Lost => break,
            },
        }
    }
    acknowledge(LEAVES).await;
}
