//! The sandbox around real processes, and the command analyzer against a real shell in it.

#![allow(
    clippy::expect_used,
    reason = "a test stops at the first surprise, in what its cases share too"
)]

#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/environment.rs"]
mod environment;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/placeholders.rs"]
mod placeholders;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
#[path = "suite/portable.rs"]
mod portable;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/reading.rs"]
mod reading;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/rules.rs"]
mod rules;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/sandbox.rs"]
mod sandbox;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/shell.rs"]
mod shell;
#[cfg(all(target_os = "linux", not(windlass_portable)))]
#[path = "suite/warden.rs"]
mod warden;
