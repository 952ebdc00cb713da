//! The sandbox around real processes, and the command analyser against a real shell in it.

#![allow(
    clippy::expect_used,
    reason = "a test stops at the first surprise, in what its cases share too"
)]

#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/environment.rs"]
mod environment;
#[path = "suite/rules.rs"]
mod rules;
#[path = "suite/shell.rs"]
mod shell;
#[path = "suite/wall.rs"]
mod wall;
