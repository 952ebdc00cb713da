//! A limit for what a server sends without being asked.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that a server may send between two requests of ours.
const MAX_BYTES: u64 = 64 << 20;

/// Text about a server that sent more.
pub(crate) const TOO_MUCH: &str = "the server sent too much";

/// Counts the bytes since the last request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Begins a new request.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns true if the server was cut off because it sent too much.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_BYTES
    }

    /// Counts bytes. Returns false if the server sent too much.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_BYTES
    }

    /// Returns the reader with a limit.
    pub(crate) fn limit<R>(&self, reader: R) -> Metered<R> {
        Metered {
            reader,
            meter: self.clone(),
        }
    }
}

/// A reader that ends with an error after too many bytes.
pub(crate) struct Metered<R> {
    reader: R,
    meter: Meter,
}

impl<R: AsyncRead + Unpin> AsyncRead for Metered<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(cx, buf);
        let read = buf.filled().len().saturating_sub(before);
        match self.meter.admits(read) {
            true => polled,
            false => Poll::Ready(Err(io::Error::other(TOO_MUCH))),
        }
    }
}
