//! Events to put into a store.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::event::Event;
use windlass_core::id::SessionId;
use windlass_core::log::{Batch, Lease, Store};
use windlass_core::message::{FinishReason, Message, Part, Role};

pub(crate) fn said(role: Role, text: &str) -> Event {
    let message = Message::new(&SessionId::from("s"), role, vec![Part::text(text)], Timestamp(1));
    Event::Message {
        message: Arc::new(message),
    }
}

pub(crate) fn the_end(text: &str) -> Event {
    Event::Final {
        content: text.into(),
        finish: FinishReason::EndTurn,
    }
}

pub(crate) fn batch(first_seq: u64, events: Vec<Event>) -> Batch {
    Batch {
        first_seq,
        events,
        time: Timestamp(100 + first_seq),
        ..Batch::default()
    }
}

pub(crate) async fn append(store: &Arc<dyn Store>, lease: &Lease, first_seq: u64, events: Vec<Event>) {
    store.append(lease, batch(first_seq, events)).await.unwrap();
}
