//! Worktrees of real folders and real git repositories.

#![allow(
    clippy::unwrap_used,
    reason = "a test stops at the first surprise, in what its cases share too"
)]

#[path = "suite/changes.rs"]
mod changes;
#[path = "suite/create.rs"]
mod create;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/lab.rs"]
mod lab;
#[path = "suite/merge.rs"]
mod merge;
#[path = "suite/property.rs"]
mod property;
#[path = "suite/repositories.rs"]
mod repositories;
