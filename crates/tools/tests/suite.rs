//! Tests the built-in tools through the interface that the loop uses: arguments as text in, content and
//! details out.

#![allow(
    clippy::expect_used,
    reason = "a test stops at the first surprise, in what its cases share too"
)]

#[path = "suite/command.rs"]
mod command;
#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/declared.rs"]
mod declared;
#[path = "suite/desk.rs"]
mod desk;
#[path = "suite/fetch.rs"]
mod fetch;
#[path = "suite/files.rs"]
mod files;
#[path = "suite/jobs.rs"]
mod jobs;
#[path = "suite/kill.rs"]
mod kill;
#[path = "suite/notes.rs"]
mod notes;
#[path = "suite/outputs.rs"]
mod outputs;
#[path = "suite/patch.rs"]
mod patch;
#[path = "suite/search.rs"]
mod search;
#[path = "suite/specs.rs"]
mod specs;
