//! DIST-3: no tool starts after the server's own deadline.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::hook::{CallAction, CallHook, Hook};
use windlass_core::permission::Proposal;

use crate::state::Shared;

/// A hook of every turn.
pub(crate) struct Guard(pub(crate) Arc<Shared>);

impl Hook for Guard {
    fn name(&self) -> &str {
        "cluster"
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }
}

#[async_trait]
impl CallHook for Guard {
    async fn before_call(&self, _: &Proposal) -> CallAction {
        match self.0.holds() {
            true => CallAction::Proceed,
            false => CallAction::Deny("this server has lost contact with the store".to_owned()),
        }
    }
}
