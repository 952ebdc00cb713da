//! The body of the last request, from which the next one goes on.
//!
//! A conversation grows at its end, so the next body is the last one with a few pieces more: what is there is neither
//! encoded nor copied again. Whatever does not fit that picture — another prefix, a compacted history — starts over.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use windlass_core::message::Message;

use super::anthropic;
use super::ids::Naming;

/// A body and the pieces it was made of.
#[derive(Debug, Default)]
pub(crate) struct Body {
    head: Vec<u8>,
    prefix: Bytes,
    /// The messages so far. Holding them keeps their addresses from being used again.
    messages: Vec<Arc<Message>>,
    pub(crate) naming: Naming,
    pieces: Vec<Bytes>,
    /// The message of each piece, by its place; `None` for one that belongs to none.
    owners: Vec<Option<usize>>,
    /// Where each piece, with the comma before it, begins in `bytes`.
    starts: Vec<usize>,
    /// How many pieces stand in `bytes` as they will stand in the next body too.
    settled: usize,
    bytes: Bytes,
}

/// What stays of bodies from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// How many bytes stand in this one as they stood in the one before.
    pub(crate) shared: usize,
    /// How many will stand in the next as they stand in this one.
    pub(crate) lasting: usize,
}

impl Body {
    /// An empty conversation behind `head` and `prefix`.
    pub(crate) fn new(head: Vec<u8>, prefix: Bytes) -> Self {
        Self {
            head,
            prefix,
            ..Self::default()
        }
    }

    /// The messages that are new, if the request is this conversation and more.
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

    /// Adds a message that says nothing on this wire.
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

    /// Where each piece begins in the last body, and whose it is.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, Option<&Arc<Message>>)> {
        let owner = |owner: &Option<usize>| owner.and_then(|owner| self.messages.get(owner));
        self.starts.iter().copied().zip(self.owners.iter().map(owner))
    }

    /// The pieces so far.
    pub(crate) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The whole body. With `markers`, cache breakpoints stand where they help most, and a reply in last place loses
    /// its trailing blanks; both belong to this request alone, so the next body goes on from before them. The second value
    /// is how many bytes stand in it as they stood in the body before, and how many will in the next.
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

    /// Where the next body may be another one than this.
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

    /// The last body up to where it changes; its memory is used again unless somebody still holds it.
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
