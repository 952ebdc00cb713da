//! DIST-1: work that another server dropped, and sessions that this one has to let go.

use windlass_api::{Event, SessionEvent};
use windlass_core::clock::Timestamp;
use windlass_core::log::{Dropped, Entry, Lease, recover, take_over};
use windlass_core::message::{Message, Role};

use super::{Activity, SessionActor};
use crate::goal::Pursuit;
use crate::queue::Continues;

/// Work that the last owner of a session left.
pub(super) struct Left {
    /// Events that close it.
    pub(super) added: Vec<Event>,
    pub(super) continues: Continues,
}

impl Left {
    /// Closes what was left open. Dropped work continues; other work ends as interrupted.
    pub(super) fn read(
        lease: &Lease,
        (entries, draft): (&[Entry], Option<Message>),
        dropped: Option<Dropped>,
        pursuit: &mut Pursuit,
        now: Timestamp,
    ) -> Self {
        let Some(dropped) = dropped else {
            let mut added = recover(entries, draft, now);
            added.extend(pursuit.orphaned(now));
            return Self {
                added,
                continues: Continues::default(),
            };
        };
        let moved = SessionEvent::Moved {
            from: dropped.from,
            to: lease.owner.clone(),
            fence: lease.fence,
            after_ms: dropped.after_ms,
            folder: None,
        };
        let added = take_over(entries, moved, now);
        Self {
            continues: Continues {
                turn: added.is_some(),
                queue: dropped.is_queued,
            },
            added: added.unwrap_or_default(),
        }
    }
}

impl SessionActor {
    /// Continues the turn that the last owner dropped.
    pub(super) async fn continue_turn(&mut self) -> Activity {
        let asked = self
            .history
            .iter()
            .rev()
            .find(|message| message.role == Role::User && !message.user_text().is_empty());
        let asked = asked.or(self.history.last()).cloned();
        let Some(message) = asked else {
            return Activity::Idle;
        };
        let stop = self.handle.begin();
        self.turn(&message, stop).await
    }
}
