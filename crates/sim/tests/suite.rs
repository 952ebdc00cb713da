//! The simulated model from a client's point of view: raw HTTP over a socket, without a client library.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "suite/client.rs"]
mod client;
#[path = "suite/demo.rs"]
mod demo;
#[path = "suite/errors.rs"]
mod errors;
#[path = "suite/faults.rs"]
mod faults;
#[path = "suite/other_agents.rs"]
mod other_agents;
#[path = "suite/streams.rs"]
mod streams;
