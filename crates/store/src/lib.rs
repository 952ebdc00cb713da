//! Keeps sessions: the log of each, what it cost, what was said in it, and contents too large for it.
//!
//! The ports are those of [`windlass_core::log`]; this crate has the one implementation there is, on SQLite. No SQL and no
//! file path leaves it, so that another database can take its place.
//!
//! - [`SqliteStore::open`] opens a database or makes it.
//! - [`check`], [`backup`] and [`vacuum`] are for whoever looks after one.
//!
//! One thread writes. What waits while it writes goes into the next transaction together, so many sessions cost little
//! more than one. Readers never wait for it. `docs/store.md` describes the tables.

mod sqlite;

pub use self::sqlite::{Health, SqliteStore, backup, check, vacuum};
