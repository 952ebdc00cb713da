//! Sealed messages, for a carrier that others use too: only servers with the secret of the cluster can read or make them.
//!
//! A frame is the version of the wire, the salt of its sender, a counter, and the encrypted text. The subject that it is
//! sent to is part of what is authenticated, so a frame that is sent again to another subject does not open.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hkdf};

use crate::state::lock;

/// Version of the wire. Frames of another one do not open.
const VERSION: u8 = 1;
/// Size of a salt.
const SALT: usize = 16;
/// Bytes before the encrypted text.
const HEAD: usize = 1 + SALT + 8;
/// Bytes that a frame has more than its text.
pub(crate) const SEAL: usize = HEAD + 16;
/// Counters of a sender that may overtake each other.
const LATE: u64 = 1_024;

/// The salt of a sender and the counter of a frame. They occur once.
pub(crate) type Mark = ([u8; SALT], u64);

/// Seals and opens frames.
pub(crate) struct Seal {
    secret: Arc<str>,
    salt: [u8; SALT],
    key: LessSafeKey,
    counter: AtomicU64,
}

impl Seal {
    /// Creates a seal with a salt of its own. `None` if the system has no random numbers.
    pub(crate) fn new(secret: &str) -> Option<Self> {
        let mut salt = [0; SALT];
        SystemRandom::new().fill(&mut salt).ok()?;
        Some(Self {
            key: key(secret, &salt)?,
            secret: secret.into(),
            salt,
            counter: AtomicU64::new(0),
        })
    }

    /// Seals a text for a subject. `None` if it is too long for the cipher.
    pub(crate) fn seal(&self, subject: &str, mut text: Vec<u8>) -> Option<Bytes> {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let aad = Aad::from(subject.as_bytes());
        self.key
            .seal_in_place_append_tag(nonce(counter), aad, &mut text)
            .ok()?;
        let mut frame = Vec::with_capacity(HEAD + text.len());
        frame.push(VERSION);
        frame.extend_from_slice(&self.salt);
        frame.extend_from_slice(&counter);
        frame.extend_from_slice(&text);
        Some(Bytes::from(frame))
    }

    /// Opens a frame that came to a subject. `None` if it is not from a server of this cluster.
    pub(crate) fn open(&self, subject: &str, frame: &[u8]) -> Option<(Mark, Vec<u8>)> {
        let (head, sealed) = frame.split_at_checked(HEAD)?;
        let (version, head) = head.split_first()?;
        let (salt, counter) = head.split_at_checked(SALT)?;
        if *version != VERSION {
            return None;
        }
        let salt: [u8; SALT] = salt.try_into().ok()?;
        let counter: [u8; 8] = counter.try_into().ok()?;
        let mut text = sealed.to_vec();
        let opened =
            key(&self.secret, &salt)?.open_in_place(nonce(counter), Aad::from(subject.as_bytes()), &mut text);
        let length = opened.ok()?.len();
        text.truncate(length);
        Some(((salt, u64::from_be_bytes(counter)), text))
    }
}

/// Returns the key of a sender.
fn key(secret: &str, salt: &[u8; SALT]) -> Option<LessSafeKey> {
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret.as_bytes());
    let key = secret.expand(&[b"windlass cluster wire"], &CHACHA20_POLY1305);
    Some(LessSafeKey::new(UnboundKey::from(key.ok()?)))
}

fn nonce(counter: [u8; 8]) -> Nonce {
    let mut nonce = [0; 12];
    let (_, end) = nonce.split_at_mut(4);
    end.copy_from_slice(&counter);
    Nonce::assume_unique_for_key(nonce)
}

/// Returns the name of the cluster with this secret, which says nothing about the secret.
pub(crate) fn cluster_name(secret: &str) -> String {
    let text = format!("windlass cluster name {secret}");
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest
        .as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Recognizes frames that somebody recorded and sends again.
#[derive(Default)]
pub(crate) struct Once(Mutex<HashMap<[u8; SALT], BTreeSet<u64>>>);

impl Once {
    /// Returns true if a frame with this mark is new.
    pub(crate) fn is_new(&self, (salt, counter): Mark) -> bool {
        let mut senders = lock(&self.0);
        let seen = senders.entry(salt).or_default();
        let oldest = seen.last().map_or(0, |last| last.saturating_sub(LATE));
        if counter < oldest || !seen.insert(counter) {
            return false;
        }
        let oldest = seen.last().map_or(0, |last| last.saturating_sub(LATE));
        *seen = seen.split_off(&oldest);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(seal: &Seal, subject: &str, frame: &[u8]) -> Option<Vec<u8>> {
        seal.open(subject, frame).map(|(_, text)| text)
    }

    /// DIST-4: a frame opens for a server with the same secret, at the subject it was sent to, unchanged.
    #[test]
    fn only_servers_with_the_secret_open_a_frame() {
        let seal = |secret| Seal::new(secret).unwrap();
        let (ours, theirs) = (seal("one secret of a cluster"), seal("one secret of a cluster"));
        let frame = ours.seal("wl.c.ask.b", b"hello".to_vec()).unwrap();
        assert_eq!(frame.len(), 5 + SEAL);
        assert!(
            !frame.windows(5).any(|bytes| bytes == b"hello"),
            "it is encrypted"
        );
        assert_eq!(open(&theirs, "wl.c.ask.b", &frame), Some(b"hello".to_vec()));
        assert_eq!(open(&theirs, "wl.c.ask.c", &frame), None, "another subject");
        assert_eq!(open(&seal("another secret"), "wl.c.ask.b", &frame), None);
        for place in 0..frame.len() {
            let mut changed = frame.to_vec();
            changed[place] ^= 1;
            assert_eq!(open(&theirs, "wl.c.ask.b", &changed), None, "byte {place}");
            assert_eq!(
                open(&theirs, "wl.c.ask.b", &frame[..place]),
                None,
                "cut at {place}"
            );
        }
    }

    /// DIST-4: a frame counts once, also if frames of one sender overtake each other.
    #[test]
    fn a_frame_that_is_sent_again_is_recognized() {
        let seal = Seal::new("one secret of a cluster").unwrap();
        let frames: Vec<Bytes> = (0..3_000).map(|_| seal.seal("s", Vec::new()).unwrap()).collect();
        let once = Once::default();
        let is_new = |frame: &Bytes| once.is_new(seal.open("s", frame).unwrap().0);
        for pair in frames.chunks(2) {
            assert!(pair.iter().rev().all(is_new));
        }
        assert!(!frames.iter().any(is_new));
    }
}
