//! Events of a session over HTTP. A broken connection is opened again where it ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use reqwest::Method;
use windlass_api::{ClientError, Envelope, Event, EventStream, MessageId, SessionId};

use super::{RemoteBackend, failed, path};

/// Delay before a connection is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// Attempts in a row to open a connection again: ten minutes.
const ATTEMPTS: u32 = 600;
/// Time without a byte after which a connection counts as broken; the server sends a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// A connection and what was read from it.
struct Follower {
    remote: RemoteBackend,
    session: SessionId,
    /// Number of the last state event.
    after: Option<u64>,
    response: Option<reqwest::Response>,
    text: Vec<u8>,
    ready: VecDeque<Envelope>,
}

/// Follows a session after a number, or from now on.
pub(super) async fn follow(
    remote: RemoteBackend,
    session: SessionId,
    after: Option<u64>,
) -> Result<EventStream, ClientError> {
    let mut follower = Follower {
        remote,
        session,
        after,
        response: None,
        text: Vec::new(),
        ready: VecDeque::new(),
    };
    follower.open().await?;
    // The hello names the number from which on nothing may be missed.
    while follower.after.is_none() && follower.response.is_some() {
        follower.read().await;
    }
    Ok(EventStream::new(stream::unfold(
        follower,
        |mut follower| async move {
            let envelope = follower.next().await?;
            Some((envelope, follower))
        },
    )))
}

impl Follower {
    async fn open(&mut self) -> Result<(), ClientError> {
        let query = self
            .after
            .map(|after| format!("?after={after}"))
            .unwrap_or_default();
        let path = path(&self.session, &format!("/events{query}"));
        let sent = self.remote.request(Method::GET, &path, None).send().await;
        let response = sent.map_err(|error| self.remote.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(failed(response, Some(&self.session)).await);
        }
        self.text.clear();
        self.response = Some(response);
        Ok(())
    }

    async fn next(&mut self) -> Option<Envelope> {
        let mut attempts = 0;
        loop {
            if let Some(envelope) = self.ready.pop_front() {
                return Some(envelope);
            }
            if self.response.is_some() {
                self.read().await;
                continue;
            }
            match self.open().await {
                Ok(()) => {}
                Err(ClientError::Setup(_)) if attempts < ATTEMPTS => {
                    attempts += 1;
                    self.remote.clock.sleep(AGAIN).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Reads the next piece. A broken connection is dropped.
    async fn read(&mut self) {
        let Some(response) = &mut self.response else {
            return;
        };
        match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(Ok(Some(chunk))) => self.text.extend_from_slice(&chunk),
            _ => self.response = None,
        }
        while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.text.drain(..end + 2).collect();
            self.block(&String::from_utf8_lossy(&block));
        }
    }

    fn block(&mut self, block: &str) {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let Some(data) = field("data: ") else { return };
        match field("event: ") {
            None => {
                if let Ok(envelope) = serde_json::from_str::<Envelope>(data) {
                    if !envelope.event.is_live() {
                        self.after = Some(envelope.seq);
                    }
                    self.ready.push_back(envelope);
                }
            }
            Some("hello") if self.after.is_none() => {
                let hello: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
                self.after = hello["seq"].as_u64();
            }
            Some("resync") => {
                let resync: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
                let last = resync["seq"].as_u64();
                self.after = last
                    .map(|last| self.after.map_or(last, |after| after.min(last)))
                    .or(self.after);
                self.response = None;
            }
            Some("bye") => self.response = None,
            Some(_) => {}
        }
    }
}

/// Returns the events of one turn: from its message on, or from the start if there is none, up to its end. Before
/// the message it returns only requests to the user.
pub(super) fn turn(events: EventStream, mut waits: Option<MessageId>) -> EventStream {
    let own = events.filter_map(move |envelope| {
        let is_own = match (&waits, &envelope.event) {
            (Some(id), Event::Message { message }) => message.id == *id,
            (waits, _) => waits.is_none(),
        };
        if is_own {
            waits = None;
        }
        let is_shown = is_own || matches!(envelope.event, Event::Waiting(_));
        std::future::ready(is_shown.then_some(envelope))
    });
    EventStream::new(Ending {
        events: own.boxed(),
        is_over: false,
    })
}

/// Ends directly after a terminal event, without waiting for another one.
struct Ending {
    events: BoxStream<'static, Envelope>,
    is_over: bool,
}

impl Stream for Ending {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = self.events.as_mut().poll_next(cx);
        if let Poll::Ready(Some(envelope)) = &next {
            self.is_over = envelope.event.is_terminal();
        }
        next
    }
}
