//! Keeps one try at a request as it went over the wire.

use std::sync::{Arc, PoisonError};

use bytes::{Bytes, BytesMut};
use windlass_core::clock::Clock;
use windlass_core::id::SessionId;
use windlass_core::log::{Answer, Exchange, SharedTape};
use windlass_core::message::Message;

use super::Shared;
use crate::key::Secret;

/// The most bytes of an answer that are kept.
const MOST: usize = 8 << 20;

/// What is kept of a try. Told to the tape when it is over, or when it is dropped in the middle.
pub(super) struct Taping {
    tape: SharedTape,
    clock: Arc<dyn Clock>,
    session: SessionId,
    secrets: Arc<[Secret]>,
    request: Exchange,
    answer: Answer,
    body: BytesMut,
    is_told: bool,
}

impl Taping {
    /// `None` when nothing is kept.
    pub(super) fn new(
        shared: &Shared,
        session: SessionId,
        (body, same): (&Bytes, usize),
        last: Option<&Arc<Message>>,
    ) -> Option<Self> {
        let recording = shared.tape.as_ref()?;
        let digest = blake3::hash(body).to_hex().to_string();
        let before = {
            let mut last = recording.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.replace(digest.clone())
        };
        let request = without(body, &shared.secrets);
        Some(Self {
            tape: Arc::clone(&recording.tape),
            clock: Arc::clone(&shared.clock),
            session,
            secrets: Arc::clone(&shared.secrets),
            request: Exchange {
                time: shared.clock.now(),
                provider: shared.name.clone(),
                model: shared.model.id.clone(),
                // Where a key was taken out, places have moved.
                before: before
                    .filter(|_| request == *body)
                    .map(|digest| (digest, same as u64)),
                request,
                digest,
                last: last.map(|message| message.id.clone()),
                answer: Answer::default(),
                frame: None,
            },
            answer: Answer::default(),
            body: BytesMut::new(),
            is_told: false,
        })
    }

    /// The head of the answer is there.
    pub(super) fn begin(&mut self, status: u16, form: &str) {
        self.answer.status = Some(status);
        form.clone_into(&mut self.answer.form);
    }

    /// A piece of the answer came.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = MOST.saturating_sub(self.body.len());
        if piece.len() > room {
            self.answer.cut = Some("too long to be kept".to_owned());
        }
        self.body.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// The answer is whole.
    pub(super) fn whole(&mut self) {
        self.tell();
    }

    /// There is no more of it.
    pub(super) fn cut(&mut self, why: &str) {
        self.answer.cut.get_or_insert_with(|| why.to_owned());
        self.tell();
    }

    fn tell(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let exchange = Exchange {
            time: self.clock.now(),
            answer: Answer {
                body: without(&self.body.split().freeze(), &self.secrets),
                ..self.answer.clone()
            },
            ..self.request.clone()
        };
        self.tape.keep(&self.session, exchange);
    }
}

/// A further try at the same request.
impl Clone for Taping {
    fn clone(&self) -> Self {
        Self {
            tape: Arc::clone(&self.tape),
            clock: Arc::clone(&self.clock),
            session: self.session.clone(),
            secrets: Arc::clone(&self.secrets),
            request: self.request.clone(),
            answer: Answer::default(),
            body: BytesMut::new(),
            is_told: false,
        }
    }
}

impl Drop for Taping {
    fn drop(&mut self) {
        // One that never began is only a copy to begin from.
        if self.answer.status.is_some() {
            self.cut("canceled");
        }
    }
}

/// The body without keys that got into it.
fn without(body: &Bytes, secrets: &[Secret]) -> Bytes {
    let found = |secret: &Secret| {
        let key = secret.expose().as_bytes();
        // Shorter ones are placeholders.
        key.len() >= 4 && memchr::memmem::find(body, key).is_some()
    };
    if !secrets.iter().any(found) {
        return body.clone();
    }
    let text = String::from_utf8_lossy(body);
    Bytes::from(crate::key::redact(&text, secrets))
}
