//! The events of a run as a stream.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::event::{Event, EventSink, SinkError};

/// The events of one run, ending with exactly one terminal event. Dropping it cancels the run.
pub struct RunStream {
    receiver: UnboundedReceiver<Event>,
    cancel: CancellationToken,
    over: bool,
    _guard: DropGuard,
}

impl RunStream {
    pub(super) fn new(receiver: UnboundedReceiver<Event>, cancel: CancellationToken) -> Self {
        Self {
            receiver,
            _guard: cancel.clone().drop_guard(),
            cancel,
            over: false,
        }
    }

    /// Stops the run when this token is canceled. Keep reading: the stream still ends with `canceled`.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

impl Stream for RunStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // An abandoned tool may hold the sender forever; the stream ends with the terminal event.
        if self.over {
            return Poll::Ready(None);
        }
        let event = self.receiver.poll_recv(cx);
        self.over = matches!(&event, Poll::Ready(Some(event)) if event.is_terminal());
        event
    }
}

pub(super) fn channel() -> (ChannelSink, UnboundedReceiver<Event>) {
    let (sender, receiver) = unbounded_channel();
    (
        ChannelSink {
            sender,
            terminal: Mutex::new(None),
        },
        receiver,
    )
}

/// Passes events to a [`RunStream`]; the terminal one only on request.
pub(super) struct ChannelSink {
    sender: UnboundedSender<Event>,
    terminal: Mutex<Option<Event>>,
}

impl ChannelSink {
    pub(super) fn send(&self, event: Event) {
        if event.is_terminal() {
            *self.terminal.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
            return;
        }
        // A dropped receiver is not a failure: dropping the stream cancels the run.
        let _ = self.sender.send(event);
    }

    pub(super) fn release(&self) {
        let terminal = self
            .terminal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(event) = terminal {
            let _ = self.sender.send(event);
        }
    }
}

#[async_trait]
impl EventSink for ChannelSink {
    fn live(&self, event: Event) {
        self.send(event);
    }

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        self.send(event);
        Ok(())
    }
}
