//! SRV-2: server-sent events. A connection follows any number of sessions, and the list of all of them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::{Interval, MissedTickBehavior, interval};
use windlass_api::{EVENT_VERSION, Envelope, SessionId};

use crate::app::{App, Shared};
use crate::checks::Who;
use crate::credentials::{Credential, CredentialKind};
use crate::hub::frame;
use crate::problem::Problem;
use crate::push::user_of;
use crate::queue::{Queue, SharedQueue, event};

/// Time between two comments that keep a connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Sessions that one connection follows at most.
const SESSIONS: usize = 32;
/// Events behind which a connection reads the state instead.
const FARTHEST: u64 = 5_000;
/// Entries read from the record at a time.
const PAGE: u64 = 256;

/// A session that a connection follows.
struct Followed {
    session: SessionId,
    after: Option<u64>,
}

pub(crate) async fn one(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    who: Extension<Who>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut asked = Asked::parse(query.as_deref().unwrap_or_default())?;
    if !asked.sessions.is_empty() {
        return Err(Problem::field(
            "session",
            "the path names the session; use /api/events for several",
        ));
    }
    // A browser that connects again repeats the address, and adds the number of the last event it saw.
    let given = asked.after.take();
    let after = last_event_id(&headers).or(given);
    asked.sessions.push(Followed { session: id, after });
    stream(&app, asked, false, &who.0.0).await
}

pub(crate) async fn all(
    State(app): State<Shared>,
    who: Extension<Who>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut asked = Asked::parse(query.as_deref().unwrap_or_default())?;
    if asked.after.is_some() {
        return Err(Problem::field(
            "after",
            "it follows the `session` that it belongs to",
        ));
    }
    if let [only] = asked.sessions.as_mut_slice() {
        // A browser that reconnects by itself repeats the address, and knows better in this header.
        only.after = last_event_id(&headers).or(only.after);
    }
    stream(&app, asked, true, &who.0.0).await
}

/// Query of a stream.
#[derive(Default)]
struct Asked {
    sessions: Vec<Followed>,
    /// `after` that belongs to no `session`.
    after: Option<u64>,
    epoch: Option<String>,
}

impl Asked {
    /// Parses `session=ID&after=N`, repeated for each session, and `epoch=E`.
    fn parse(query: &str) -> Result<Self, Problem> {
        let mut asked = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "session" => asked.sessions.push(Followed {
                    session: SessionId::from(value),
                    after: None,
                }),
                "after" if value.is_empty() => {}
                "after" => {
                    let number = value.parse();
                    let number =
                        number.map_err(|_| Problem::field("after", format!("`{value}` is not a number")))?;
                    match asked.sessions.last_mut() {
                        Some(followed) => followed.after = Some(number),
                        None => asked.after = Some(number),
                    }
                }
                "epoch" => asked.epoch = Some(value.to_owned()),
                other => return Err(Problem::field(other, "no such parameter: session, after, epoch")),
            }
        }
        if asked.sessions.len() > SESSIONS {
            return Err(Problem::field("session", format!("at most {SESSIONS} sessions")));
        }
        Ok(asked)
    }
}

fn last_event_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

async fn stream(app: &Shared, asked: Asked, with_list: bool, who: &Credential) -> Result<Response, Problem> {
    let queue: SharedQueue = Arc::new(Queue::default());
    let mut first = VecDeque::from([First::Frame(Bytes::from_static(b"retry: 1000\n\n"))]);
    let has_old_epoch = asked.epoch.is_some_and(|epoch| epoch != app.epoch);
    for followed in asked.sessions {
        join(app, &queue, followed, has_old_epoch, &mut first).await?;
    }
    if with_list {
        app.coarse.join(&queue, &who.user);
    }
    app.metrics.opened();
    // The proxy's own users are not stored, and cannot be revoked here.
    if who.kind != CredentialKind::Proxy {
        let changed = app.ports.changed.clone();
        app.credentials.follow(who.id.clone(), &queue, changed);
    }
    let user = user_of(&who.user);
    app.push.is_present(&user, true);
    let events = Events {
        app: Arc::clone(app),
        queue,
        first,
        reading: None,
        heartbeat: ticking(HEARTBEAT),
        user,
        is_stopped: Box::pin(app.stop.clone().cancelled_owned()),
        is_over: false,
    };
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Adds a session: its hello, what the client missed, and what is being written.
async fn join(
    app: &App,
    queue: &SharedQueue,
    followed: Followed,
    has_old_epoch: bool,
    first: &mut VecDeque<First>,
) -> Result<(), Problem> {
    let Followed { session, after } = followed;
    let hub = app.hubs.hub(&session).await?;
    let joined = hub.join(queue, after.unwrap_or(u64::MAX));
    let hello = json!({ "session": session, "seq": joined.upto, "epoch": app.epoch });
    first.push_back(First::Frame(event("hello", &hello)));
    if let Some(after) = after {
        let behind = joined.upto.checked_sub(after);
        if has_old_epoch || behind.is_none_or(|behind| behind > FARTHEST) {
            let reason = match behind {
                _ if has_old_epoch => "the server was restarted",
                None => "this number is unknown here",
                Some(_) => "too many events were missed",
            };
            let resync = json!({ "session": session, "seq": joined.upto, "reason": reason });
            queue.close_with(event("resync", &resync));
            return Ok(());
        }
        let upto = joined.recent.first().map_or(joined.upto, |(seq, _)| seq - 1);
        first.push_back(First::Record(session.clone(), after, upto));
        first.extend(joined.recent.into_iter().map(|(_, frame)| First::Frame(frame)));
    }
    let live = json!({ "session": session, "live": joined.partial });
    first.push_back(First::Frame(event("live", &live)));
    Ok(())
}

/// Something to send before the queue.
enum First {
    Frame(Bytes),
    /// Entries of a record after one number, up to another.
    Record(SessionId, u64, u64),
}

fn ticking(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate.
    ticks.reset();
    ticks
}

/// The body of a stream.
struct Events {
    app: Shared,
    queue: SharedQueue,
    first: VecDeque<First>,
    reading: Option<BoxFuture<'static, (Bytes, First)>>,
    heartbeat: Interval,
    /// Person behind the credential.
    user: String,
    is_stopped: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
    is_over: bool,
}

impl Events {
    /// Returns what comes before the queue.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let Poll::Ready((frames, rest)) = reading.as_mut().poll(cx) else {
                    return Poll::Pending;
                };
                self.reading = None;
                self.first.push_front(rest);
                if !frames.is_empty() {
                    return Poll::Ready(Some(frames));
                }
                continue;
            }
            match self.first.pop_front() {
                None => return Poll::Ready(None),
                Some(First::Frame(frame)) => return Poll::Ready(Some(frame)),
                Some(First::Record(_, after, upto)) if after >= upto => {}
                Some(First::Record(session, after, upto)) => {
                    let app = Arc::clone(&self.app);
                    self.reading = Some(Box::pin(read(app, session, after, upto)));
                }
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.app.metrics.closed();
        self.app.push.is_present(&self.user, false);
    }
}

impl Stream for Events {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.poll_first(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
            Poll::Ready(None) => {}
        }
        match self.queue.poll(cx) {
            Poll::Ready(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        if self.is_stopped.as_mut().poll(cx).is_ready() {
            self.is_over = true;
            return Poll::Ready(Some(Ok(event("bye", &json!({ "reason": "stopping" })))));
        }
        if self.heartbeat.poll_tick(cx).is_ready() {
            return Poll::Ready(Some(Ok(Bytes::from_static(b": \n\n"))));
        }
        Poll::Pending
    }
}

/// Reads one page of a record as frames, and says where to continue.
async fn read(app: Shared, session: SessionId, after: u64, upto: u64) -> (Bytes, First) {
    let last = upto.min(after.saturating_add(PAGE));
    let count = usize::try_from(last - after).unwrap_or(usize::MAX);
    let entries = app.ports.backend.tail(&session, Some(last + 1), count).await;
    let mut frames = Vec::new();
    for entry in entries.unwrap_or_default() {
        let envelope = Envelope {
            v: EVENT_VERSION,
            session: session.clone(),
            seq: entry.seq,
            event: entry.event,
        };
        frames.extend_from_slice(&frame(&envelope));
    }
    (Bytes::from(frames), First::Record(session, last, upto))
}
