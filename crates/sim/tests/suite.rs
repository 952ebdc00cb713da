//! The simulated model as a client sees it: raw HTTP over a socket, no client library in between.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "suite/client.rs"]
mod client;
#[path = "suite/demo.rs"]
mod demo;
#[path = "suite/errors.rs"]
mod errors;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/streams.rs"]
mod streams;
