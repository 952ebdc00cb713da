//! Records one attempt at a request as it went over the wire.

use std::sync::{Arc, PoisonError};

use bytes::{Bytes, BytesMut};
use windlass_core::clock::Clock;
use windlass_core::id::SessionId;
use windlass_core::log::{Exchange, RecordedAnswer, SharedRecorder};
use windlass_core::message::Message;

use super::Shared;
use crate::key::{Secret, redact};
use crate::wire::Kept;

/// Maximum number of response bytes to record.
const MOST: usize = 8 << 20;

/// The recording of one attempt. It is written to the tape when the attempt ends or is dropped midway.
pub(super) struct RecordingStream {
    tape: SharedRecorder,
    clock: Arc<dyn Clock>,
    session: SessionId,
    secrets: Arc<[Secret]>,
    request: Exchange,
    answer: RecordedAnswer,
    body: BytesMut,
    is_told: bool,
}

impl RecordingStream {
    /// Starts a recording. Returns `None` if recording is off.
    pub(super) fn new(
        shared: &Shared,
        session: SessionId,
        (body, kept): (&Bytes, Kept),
        last: Option<&Arc<Message>>,
    ) -> Option<Self> {
        let recording = shared.tape.as_ref()?;
        let mut told = recording.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (digest, now) = told.take().unwrap_or_default().go_on(body, kept, &shared.secrets);
        let (before, has_key) = (now.before.clone(), now.has_key);
        let request = if has_key {
            without(body, &shared.secrets)
        } else {
            body.clone()
        };
        *told = Some(now);
        drop(told);
        Some(Self {
            tape: Arc::clone(&recording.tape),
            clock: Arc::clone(&shared.clock),
            session,
            secrets: Arc::clone(&shared.secrets),
            request: Exchange {
                time: shared.clock.now(),
                provider: shared.name.clone(),
                model: shared.model.id.clone(),
                // Redaction moves byte offsets, so a redacted body cannot refer to the one before it.
                before: before
                    .filter(|_| !has_key)
                    .map(|digest| (digest, kept.shared as u64)),
                request,
                digest,
                last: last.map(|message| message.id.clone()),
                answer: RecordedAnswer::default(),
                frame: None,
            },
            answer: RecordedAnswer::default(),
            body: BytesMut::new(),
            is_told: false,
        })
    }

    /// Records the head of the response.
    pub(super) fn begin(&mut self, status: u16, form: &str) {
        self.answer.status = Some(status);
        self.answer.form = redact(form, &*self.secrets);
    }

    /// Records a piece of the response.
    pub(super) fn take(&mut self, piece: &[u8]) {
        let room = MOST.saturating_sub(self.body.len());
        if piece.len() > room {
            self.answer.cut = Some("too long to record".to_owned());
        }
        self.body.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// Finishes the recording of a complete response.
    pub(super) fn whole(&mut self) {
        self.tell();
    }

    /// Finishes the recording of a response that was cut off.
    pub(super) fn cut(&mut self, why: &str) {
        let why = redact(why, &*self.secrets);
        self.answer.cut.get_or_insert(why);
        self.tell();
    }

    fn tell(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let exchange = Exchange {
            time: self.clock.now(),
            answer: RecordedAnswer {
                body: without(&self.body.split().freeze(), &self.secrets),
                ..self.answer.clone()
            },
            ..self.request.clone()
        };
        self.tape.keep(&self.session, exchange);
    }
}

/// Copies the request for another attempt; the response starts out empty.
impl Clone for RecordingStream {
    fn clone(&self) -> Self {
        Self {
            tape: Arc::clone(&self.tape),
            clock: Arc::clone(&self.clock),
            session: self.session.clone(),
            secrets: Arc::clone(&self.secrets),
            request: self.request.clone(),
            answer: RecordedAnswer::default(),
            body: BytesMut::new(),
            is_told: false,
        }
    }
}

impl Drop for RecordingStream {
    fn drop(&mut self) {
        // Without a status this is only the template for further attempts.
        if self.answer.status.is_some() {
            self.cut("canceled");
        }
    }
}

/// State of the last recorded body, kept so that hashing the next one costs only its new bytes.
#[derive(Clone, Default)]
pub(super) struct Told {
    digest: Option<String>,
    /// Digest of the body before this one.
    before: Option<String>,
    /// Hash of the first `hashed` bytes.
    hash: blake3::Hasher,
    hashed: usize,
    /// True if those bytes contain a key.
    has_key: bool,
}

impl Told {
    /// Returns the digest of the next body and its state.
    fn go_on(mut self, body: &Bytes, kept: Kept, secrets: &[Secret]) -> (String, Self) {
        if self.hashed > kept.shared || kept.shared == 0 {
            self.hash = blake3::Hasher::new();
            self.hashed = 0;
            self.has_key = false;
        }
        let longest = secrets
            .iter()
            .flat_map(Secret::forms)
            .map(|form| form.len())
            .max()
            .unwrap_or(0);
        let new = body
            .get(self.hashed.saturating_sub(longest)..)
            .unwrap_or_default();
        let has_key = self.has_key || secrets.iter().any(|secret| has(new, secret));
        let lasting = kept.lasting.clamp(self.hashed, body.len());
        self.hash
            .update(body.get(self.hashed..lasting).unwrap_or_default());
        let mut whole = self.hash.clone();
        whole.update(body.get(lasting..).unwrap_or_default());
        let digest = whole.finalize().to_hex().to_string();
        let told = Self {
            before: self.digest.filter(|_| kept.shared > 0),
            digest: Some(digest.clone()),
            hash: self.hash,
            hashed: lasting,
            has_key,
        };
        (digest, told)
    }
}

fn has(bytes: &[u8], secret: &Secret) -> bool {
    let mut forms = secret.forms().into_iter();
    forms.any(|form| memchr::memmem::find(bytes, form.as_bytes()).is_some())
}

/// Returns the body with any keys redacted.
fn without(body: &Bytes, secrets: &[Secret]) -> Bytes {
    if !secrets.iter().any(|secret| has(body, secret)) {
        return body.clone();
    }
    let text = String::from_utf8_lossy(body);
    Bytes::from(redact(&text, secrets))
}
