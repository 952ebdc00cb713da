//! Body of the last request, which the next one extends.
//!
//! A conversation grows at its end, so the next body is the last one plus a few pieces, and existing pieces
//! are neither encoded nor copied again. Anything else — another prefix, a compacted history — starts a new
//! body.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windlass_core::message::Message;

use super::anthropic;
use super::ids::Naming;

/// A body and its pieces.
#[derive(Debug, Default)]
pub(crate) struct Body {
    head: Vec<u8>,
    prefix: Bytes,
    /// Messages so far. Holding them keeps their addresses from being reused.
    messages: Vec<Arc<Message>>,
    pub(crate) naming: Naming,
    pieces: Vec<Bytes>,
    /// Index of the message each piece belongs to; `None` for a piece without a message.
    owners: Vec<Option<usize>>,
    /// Offset in `bytes` of each piece, including the comma before it.
    starts: Vec<usize>,
    /// Number of leading pieces whose bytes will be the same in the next body.
    settled: usize,
    bytes: Bytes,
}

/// Number of bytes that consecutive bodies share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Length of the prefix that is the same in the previous body.
    pub(crate) shared: usize,
    /// Length of the prefix that will be the same in the next body.
    pub(crate) lasting: usize,
}

impl Body {
    /// Creates an empty conversation after `head` and `prefix`.
    pub(crate) fn new(head: Vec<u8>, prefix: Bytes) -> Self {
        Self {
            head,
            prefix,
            ..Self::default()
        }
    }

    /// Returns the new messages if the request extends this conversation, `None` if it does not.
    pub(crate) fn new_in<'a>(
        &self,
        head: &[u8],
        prefix: &Bytes,
        messages: &'a [Arc<Message>],
    ) -> Option<&'a [Arc<Message>]> {
        let same_prefix = std::ptr::eq(self.prefix.as_ref(), prefix.as_ref());
        let (known, new) = messages.split_at_checked(self.messages.len())?;
        let same_start = self
            .messages
            .iter()
            .zip(known)
            .all(|(ours, theirs)| Arc::ptr_eq(ours, theirs));
        (self.head == head && same_prefix && same_start).then_some(new)
    }

    /// Adds a message that has no content on this wire.
    pub(crate) fn skip(&mut self, message: &Arc<Message>) {
        self.messages.push(Arc::clone(message));
    }

    /// Adds a message and its piece.
    pub(crate) fn add(&mut self, message: &Arc<Message>, piece: Bytes) {
        self.owners.push(Some(self.messages.len()));
        self.messages.push(Arc::clone(message));
        self.pieces.push(piece);
    }

    /// Adds a piece that belongs to no message.
    pub(crate) fn insert(&mut self, piece: Bytes) {
        self.owners.push(None);
        self.pieces.push(piece);
    }

    /// Returns the offset of each piece in the last body, and its message.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, Option<&Arc<Message>>)> {
        let owner = |owner: &Option<usize>| owner.and_then(|owner| self.messages.get(owner));
        self.starts.iter().copied().zip(self.owners.iter().map(owner))
    }

    /// Returns the pieces so far.
    pub(crate) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// Assembles the whole body. With `markers`, it places the cache breakpoints and removes trailing blanks
    /// from a reply in last place; both belong to this request alone, so the next body continues from before
    /// them. The second value counts the bytes shared with the previous and with the next body.
    pub(crate) fn assemble(&mut self, markers: bool) -> (Bytes, Kept) {
        let (marked, trimmed) = if markers {
            let trimmed = self.pieces.last().and_then(anthropic::without_trailing_blank);
            (anthropic::breakpoints(&self.pieces), trimmed)
        } else {
            (Vec::new(), None)
        };
        let is_first = self.bytes.is_empty();
        let mut bytes = self.settled_bytes();
        let shared = if is_first { 0 } else { bytes.len() };
        self.starts.truncate(self.settled);
        let last = self.pieces.len().saturating_sub(1);
        for (index, piece) in self.pieces.iter().enumerate().skip(self.settled) {
            self.starts.push(bytes.len());
            if bytes.last() != Some(&b'[') {
                bytes.put_u8(b',');
            }
            match &trimmed {
                Some(trimmed) if index == last => bytes.put_slice(trimmed),
                _ if marked.contains(&index) => anthropic::put_marked(&mut bytes, piece),
                _ => bytes.put_slice(piece),
            }
        }
        bytes.put_slice(b"]}");
        let lasting = if trimmed.is_some() {
            last
        } else {
            self.pieces.len()
        };
        self.settled = marked.first().copied().unwrap_or(lasting).min(lasting);
        self.bytes = bytes.freeze();
        let lasting = self.lasting();
        (self.bytes.clone(), Kept { shared, lasting })
    }

    /// Returns the offset at which the next body may start to differ.
    fn lasting(&self) -> usize {
        match self.settled.checked_sub(1) {
            None => self.head.len() + self.prefix.len(),
            Some(_) => self
                .starts
                .get(self.settled)
                .copied()
                .unwrap_or_else(|| self.bytes.len().saturating_sub(2)),
        }
    }

    /// Returns the last body up to the offset where it changes. Its memory is reused unless a caller still
    /// holds it.
    fn settled_bytes(&mut self) -> BytesMut {
        let start = self.head.len() + self.prefix.len();
        let keep = self.lasting();
        if self.bytes.len() < start {
            let mut bytes = BytesMut::new();
            bytes.put_slice(&self.head);
            bytes.put_slice(&self.prefix);
            return bytes;
        }
        match std::mem::take(&mut self.bytes).try_into_mut() {
            Ok(mut bytes) => {
                bytes.truncate(keep);
                bytes
            }
            Err(shared) => {
                let mut bytes = BytesMut::with_capacity(shared.len() * 2);
                bytes.put_slice(shared.get(..keep).unwrap_or_default());
                bytes
            }
        }
    }
}
