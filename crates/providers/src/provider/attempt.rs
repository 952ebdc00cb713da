//! One attempt at a request: sends, reads, decodes, and ends exactly once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;
use windlass_core::message::Message;
use windlass_core::provider::{Completion, ProviderError, ProviderErrorKind, ProviderEvent};

use super::Shared;
use super::taping::RecordingStream;
use crate::failure;
use crate::transport::{Call, next_chunk, read_body};
use crate::wire::ReplyDecoder;

/// Maximum time to wait for the end of a body after the reply is complete.
const DRAIN: Duration = Duration::from_secs(5);
/// Times the limit of silence that a server may send keep-alives only.
const KEEP_ALIVES: u32 = 10;
/// Header that is the same when a request is sent again.
const IDEMPOTENCY: HeaderName = HeaderName::from_static("idempotency-key");

/// Starts an attempt. Dropping the stream, or firing `cancel`, drops the connection.
pub(super) fn attempt(
    shared: Arc<Shared>,
    outgoing: (Bytes, Option<HeaderValue>),
    history: Arc<Vec<Arc<Message>>>,
    taping: Option<RecordingStream>,
    cancel: CancellationToken,
) -> BoxStream<'static, ProviderEvent> {
    let decoder = ReplyDecoder::new(
        shared.encoder.wire,
        &shared.name,
        &shared.quirks,
        shared.limits.stream,
        history,
    );
    let attempt = Attempt {
        heard: shared.clock.elapsed(),
        shared,
        cancel,
        decoder,
        taping,
        phase: Phase::Send(outgoing.0, outgoing.1),
        fresh: Vec::new(),
        ready: VecDeque::new(),
    };
    // Boxed, because the state is moved with every event.
    stream::unfold(Box::new(attempt), |mut attempt| async move {
        attempt.next().await.map(|event| (event, attempt))
    })
    .boxed()
}

struct Attempt {
    shared: Arc<Shared>,
    cancel: CancellationToken,
    decoder: ReplyDecoder,
    /// Records the response. Writes to the tape when the attempt ends or is dropped.
    taping: Option<RecordingStream>,
    phase: Phase,
    /// Time of the last piece of the reply.
    heard: Duration,
    /// Events the decoder has just produced.
    fresh: Vec<ProviderEvent>,
    /// Events waiting to be handed out.
    ready: VecDeque<ProviderEvent>,
}

enum Phase {
    /// The body of the request and its idempotency key.
    Send(Bytes, Option<HeaderValue>),
    Read(Response),
    Done,
}

/// Format of a response body.
enum Form {
    Stream,
    Whole,
}

impl Attempt {
    async fn next(&mut self) -> Option<ProviderEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if matches!(self.phase, Phase::Done) {
                return None;
            }
            let cancel = self.cancel.clone();
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(failure::canceled()),
                outcome = self.advance() => outcome,
            };
            self.ready.extend(self.fresh.drain(..));
            match outcome {
                Ok(None) => {}
                Ok(Some(completion)) => {
                    self.phase = Phase::Done;
                    if let Some(taping) = &mut self.taping {
                        taping.whole();
                    }
                    self.ready
                        .push_back(ProviderEvent::Complete(Box::new(completion)));
                }
                Err(error) => {
                    self.phase = Phase::Done;
                    if let Some(taping) = &mut self.taping {
                        taping.cut(&error.message);
                    }
                    self.ready
                        .push_back(ProviderEvent::Error(self.shared.tell(error)));
                }
            }
        }
    }

    /// Takes the next step. Returns the reply once it is complete.
    async fn advance(&mut self) -> Result<Option<Completion>, ProviderError> {
        match &mut self.phase {
            Phase::Done => Ok(None),
            Phase::Send(body, key) => {
                let (body, key) = (std::mem::take(body), key.take());
                self.send(body, key).await
            }
            Phase::Read(response) => {
                let shared = &self.shared;
                match next_chunk(response, &shared.limits, &*shared.clock).await {
                    Ok(Some(chunk)) => {
                        if let Some(taping) = &mut self.taping {
                            taping.take(&chunk);
                        }
                        if !self.decoder.push(&chunk, &mut self.fresh)? {
                            return self.keeps_alive().map(|()| None);
                        }
                        let completion = self.decoder.finish(&mut self.fresh);
                        if let Phase::Read(response) = std::mem::replace(&mut self.phase, Phase::Done) {
                            drain(response, &self.shared);
                        }
                        completion.map(Some)
                    }
                    Ok(None) => self.decoder.finish(&mut self.fresh).map(Some),
                    // The reply is already complete, so a connection that breaks after it does no harm.
                    Err(error) => self.decoder.finish(&mut self.fresh).map(Some).map_err(|_| error),
                }
            }
        }
    }

    /// Checks that data brought a part of the reply lately. Some servers send comments while a request waits for its turn.
    fn keeps_alive(&mut self) -> Result<(), ProviderError> {
        let now = self.shared.clock.elapsed();
        let limit = self.shared.limits.stream_idle.saturating_mul(KEEP_ALIVES);
        if !self.fresh.is_empty() {
            self.heard = now;
        }
        match now.saturating_sub(self.heard) > limit {
            true => Err(ProviderError::new(
                ProviderErrorKind::Network,
                format!(
                    "the provider sent nothing but keep-alives for {} s",
                    limit.as_secs_f64()
                ),
            )),
            false => Ok(()),
        }
    }

    async fn send(
        &mut self,
        body: Bytes,
        key: Option<HeaderValue>,
    ) -> Result<Option<Completion>, ProviderError> {
        let shared = Arc::clone(&self.shared);
        let (limits, clock) = (&shared.limits, &*shared.clock);
        let endpoint = &shared.endpoint;
        let mut headers = endpoint.headers.clone();
        if let Some(key) = key {
            // A header of the user's settings wins.
            headers.entry(IDEMPOTENCY).or_insert(key);
        }
        let call = Call {
            url: endpoint.url.clone(),
            headers,
            body,
        };
        let answer = shared.transport.post(call, limits, clock).await;
        let mut response = answer.map_err(|failed| {
            if let (Some(taping), Some((status, body))) = (&mut self.taping, &failed.answer) {
                taping.begin(*status, "application/json");
                taping.take(body);
            }
            shared.was_there(failed.error)
        })?;
        shared.reached.store(true, Ordering::Relaxed);
        if let Some(taping) = &mut self.taping {
            let form = response.headers().get(CONTENT_TYPE);
            let form = form.and_then(|form| form.to_str().ok()).unwrap_or_default();
            taping.begin(response.status().as_u16(), form);
        }
        match form(&response)? {
            Form::Stream => {
                self.phase = Phase::Read(response);
                Ok(None)
            }
            Form::Whole => {
                let body = read_body(&mut response, limits.stream.reply, limits, clock).await?;
                if let Some(taping) = &mut self.taping {
                    taping.take(&body);
                }
                self.decoder.whole(&body, &mut self.fresh).map(Some)
            }
        }
    }
}

/// Reads the bytes after the reply, so that the connection can be reused. They have usually arrived already;
/// the end of the body may come in a packet of its own, which a background task waits for.
fn drain(mut response: Response, shared: &Arc<Shared>) {
    loop {
        match response.chunk().now_or_never() {
            Some(Ok(Some(_))) => {}
            Some(_) => return,
            None => break,
        }
    }
    let clock = Arc::clone(&shared.clock);
    tokio::spawn(async move {
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        tokio::select! {
            () = rest => {}
            () = clock.sleep(DRAIN) => {}
        }
    });
}

fn form(response: &Response) -> Result<Form, ProviderError> {
    let Some(value) = response.headers().get(CONTENT_TYPE) else {
        return Ok(Form::Stream);
    };
    let text = value.to_str().unwrap_or_default().to_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim();
    match kind {
        "text/event-stream" => Ok(Form::Stream),
        "application/json" => Ok(Form::Whole),
        other => {
            let message = format!("the server returned `{other}` instead of an event stream");
            let mut error = ProviderError::new(ProviderErrorKind::Provider, message);
            error.status = Some(response.status().as_u16());
            error.retryable = false;
            Err(error.with_hint("check that base_url points to the API and not to a web page"))
        }
    }
}
