//! The core of Windlass: the words, the turn machine, the loop. No IO.
#![warn(missing_docs)]
pub mod agent;
pub mod clock;
pub mod compact;
pub mod context;
pub mod dispatch;
pub mod event;
pub mod id;
pub mod message;
pub mod middleware;
pub mod model;
pub mod permission;
pub mod provider;
mod reply;
pub mod run;
pub mod script;
pub mod tool;
pub mod turn;
