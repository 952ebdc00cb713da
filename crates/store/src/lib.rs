//! Stores sessions: their logs, their costs, an index for search, and contents too large for the log.
//!
//! This crate implements the ports of [`windlass_core::log`] on SQLite. It is the only implementation. No SQL
//! and no file path leaves the crate, so another database can replace SQLite.
//!
//! - [`SqliteStore::open`] opens or creates a database.
//! - [`check`], [`backup`] and [`vacuum`] maintain one.
//!
//! One thread writes. Writes that arrive while it is busy share the next transaction, so many sessions cost
//! little more than one. Readers never wait for it. `docs/store.md` describes the tables.

mod sqlite;

pub use self::sqlite::{Health, SqliteStore, backup, check, vacuum};
