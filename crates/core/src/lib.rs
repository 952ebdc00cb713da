//! The core of Windlass: a model, tools, and the loop between them.
//!
//! No IO happens here: no HTTP, no database, no file system, no terminal, and no clock except a port.
//! Everything a turn needs arrives through small traits, and everything it does leaves as events.
//!
//! The types to know:
//!
//! - [`message::Message`] is the content that a model reads and writes, [`event::Event`] reports what
//!   happened.
//! - [`provider::Provider`] is a source of replies, [`tool::Tool`] a capability of the model.
//! - [`turn::Turn`] is the pure machine that decides on the next action; [`run::run`] is the loop that
//!   carries it out.
//! - [`agent::Agent`] combines all of it as a library.
//!
//! A tool is a dozen lines, an agent a few more:
//!
//! ```
//! use std::sync::Arc;
//! use windlass_core::agent::Agent;
//! use windlass_core::provider::Provider;
//! use windlass_core::script::{Scene, ScriptedProvider};
//! use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput};
//!
//! /// Adds two numbers.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Sum {
//!     a: i64,
//!     b: i64,
//! }
//!
//! struct Adder;
//!
//! impl Tool for Adder {
//!     type Input = Sum;
//!     const NAME: &'static str = "add";
//!     fn category(&self, _: &Sum) -> Category {
//!         Category::Read
//!     }
//!     async fn run(&self, sum: Sum, _: ToolContext) -> Result<ToolOutput, ToolError> {
//!         Ok(ToolOutput::text((sum.a + sum.b).to_string()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // A script stands in for a model here; `windlass-providers` has the real ones.
//! let script = [Scene::call("c1", "add", serde_json::json!({"a": 2, "b": 3})), Scene::text("It is 5.")];
//! let provider: Arc<dyn Provider> = Arc::new(ScriptedProvider::new(script));
//! let agent = Agent::builder(provider).tool(Adder).system_prompt("Use the tools.").build();
//! assert_eq!(agent.run("What is 2 + 3?").await.as_deref(), Ok("It is 5."));
//! # }
//! ```
//!
//! Deliberately absent: storage, vendor names, processes, and state between turns.

pub mod agent;
pub mod checkpoint;
pub mod clock;
pub mod compact;
pub mod context;
pub mod dispatch;
pub mod event;
pub mod hook;
pub mod id;
pub mod log;
pub mod message;
pub mod middleware;
pub mod model;
pub mod permission;
pub mod provider;
mod reply;
pub mod run;
pub mod script;
pub mod tokens;
pub mod tool;
pub mod turn;

pub use windlass_text as text;
pub use windlass_text::json;
