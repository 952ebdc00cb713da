//! Users of a store: their limits per day, and the audit log of approvals and effects.
//!
//! The store keeps rows ([`AuditLog`](windlass_core::log::AuditLog), [`UserLedger`](windlass_core::log::UserLedger)); this
//! crate says what they contain and what follows from them. An [`Auditor`] adds rows, each with the hash of the one
//! before, and [`verify`] finds rows that were removed or changed. [`AuditHook`] and [`AuditedApprover`] record the calls
//! and approvals of a session: before an effect begins, its row is on the disk. [`DailyBudget`] refuses model calls of
//! a user whose day is spent.
//!
//! Deliberately absent: who a user is. The server knows that from a credential, and the session's row says it.

mod audit;
mod budget;
mod effects;
mod verify;

pub use self::audit::{Auditor, AuditorPorts, row_hash};
pub use self::budget::{BudgetGate, BudgetHook, BudgetLeft, BudgetLimits, DailyBudget, ZoneError, zone};
pub use self::effects::{AuditHook, AuditedApprover, AuditedSession};
pub use self::verify::{AuditFault, PRUNED, Verified, verify};
