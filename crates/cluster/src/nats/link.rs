//! Sealed messages and numbered pieces over one connection.

use std::sync::Arc;

use async_nats::{Client, StatusCode, Subscriber};
use futures_util::StreamExt;
use tokio::sync::watch;

use crate::seal::{Mark, SEAL, Seal};

/// Longest piece.
const PIECE: usize = 256 << 10;
/// Bytes before the text of a piece: its number, and 1 if it is the last.
const HEAD: usize = 9;
/// Bytes of a message that NATS counts besides.
const SPARE: usize = 512;

/// The connection.
pub(super) struct Link {
    client: Client,
    seal: Seal,
    breaks: watch::Receiver<u64>,
}

impl Link {
    pub(super) fn new(client: Client, seal: Seal, breaks: watch::Receiver<u64>) -> Self {
        Self { client, seal, breaks }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Opens a message; see [`Seal::open`].
    pub(super) fn open(&self, subject: &str, frame: &[u8]) -> Option<(Mark, Vec<u8>)> {
        self.seal.open(subject, frame)
    }

    /// Sends a message. While the connection is broken, it waits for it to come back.
    pub(super) async fn send(&self, subject: &str, text: Vec<u8>) -> Result<(), String> {
        let sealed = self.seal.seal(subject, text).ok_or("the message is too long")?;
        let sent = self.client.publish(subject.to_owned(), sealed).await;
        sent.map_err(|error| error.to_string())
    }

    /// Sends a request, and returns what comes to the subject `to`.
    pub(super) async fn request(
        self: &Arc<Self>,
        subject: &str,
        to: String,
        text: Vec<u8>,
    ) -> Result<Incoming, String> {
        // Earlier breaks are not those of this stream.
        let mut breaks = self.breaks.clone();
        breaks.mark_unchanged();
        let subscriber = self.client.subscribe(to.clone()).await;
        let incoming = Incoming {
            link: Arc::clone(self),
            breaks,
            subscriber: subscriber.map_err(|error| error.to_string())?,
            subject: to.clone(),
            next: 0,
        };
        let sealed = self.seal.seal(subject, text).ok_or("the message is too long")?;
        let sent = self
            .client
            .publish_with_reply(subject.to_owned(), to, sealed)
            .await;
        sent.map_err(|error| error.to_string())?;
        Ok(incoming)
    }

    /// Returns the length of a piece that NATS accepts.
    pub(super) fn piece(&self) -> usize {
        let most = self.client.max_payload().saturating_sub(SEAL + HEAD + SPARE);
        most.clamp(1, PIECE)
    }
}

/// Pieces on their way to one subject.
pub(super) struct Outgoing<'a> {
    link: &'a Link,
    subject: String,
    /// Number of pieces so far.
    pub(super) sent: u64,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(link: &'a Link, subject: String) -> Self {
        Self {
            link,
            subject,
            sent: 0,
        }
    }

    /// Sends a text, in as many pieces as necessary.
    pub(super) async fn send(&mut self, text: &[u8], is_last: bool) -> Result<(), String> {
        let mut rest = text;
        loop {
            let (now, later) = rest.split_at(rest.len().min(self.link.piece()));
            let mut piece = Vec::with_capacity(HEAD + now.len() + SEAL);
            piece.extend_from_slice(&self.sent.to_be_bytes());
            piece.push(u8::from(is_last && later.is_empty()));
            piece.extend_from_slice(now);
            self.link.send(&self.subject, piece).await?;
            self.sent += 1;
            rest = later;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }
}

/// A piece that came, or the reason why none comes.
pub(super) enum Piece {
    Text {
        text: Vec<u8>,
        is_last: bool,
    },
    /// Nobody listens to the request.
    Nobody,
    /// A piece is missing, or the connection broke.
    Lost,
}

/// Pieces that come to one subject.
pub(super) struct Incoming {
    pub(super) link: Arc<Link>,
    breaks: watch::Receiver<u64>,
    subscriber: Subscriber,
    pub(super) subject: String,
    /// Number of the next piece.
    pub(super) next: u64,
}

impl Incoming {
    /// Returns the next piece. Nothing is lost if the future is dropped. Messages of strangers and repetitions are left out.
    pub(super) async fn next(&mut self) -> Piece {
        loop {
            let message = tokio::select! {
                biased;
                _ = self.breaks.changed() => return Piece::Lost,
                message = self.subscriber.next() => message,
            };
            let Some(message) = message else {
                return Piece::Lost;
            };
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                return Piece::Nobody;
            }
            let Some((_, text)) = self.link.open(&self.subject, &message.payload) else {
                continue;
            };
            let Some((number, rest)) = text.split_first_chunk() else {
                continue;
            };
            let number = u64::from_be_bytes(*number);
            match (number.cmp(&self.next), rest.split_first()) {
                (std::cmp::Ordering::Equal, Some((is_last, text))) => {
                    self.next += 1;
                    return Piece::Text {
                        text: text.to_vec(),
                        is_last: *is_last == 1,
                    };
                }
                (std::cmp::Ordering::Greater, _) => return Piece::Lost,
                _ => {}
            }
        }
    }
}
