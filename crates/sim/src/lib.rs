//! The simulated model: a server that speaks the Anthropic Messages, OpenAI Chat Completions and OpenAI
//! Responses wires over real HTTP on the loopback address.
//!
//! It exists so that everything can be tried, tested and measured without a key and without a network. It is
//! not a language model and never pretends to be one: its name is `sim-1`, and every text of the rules starts
//! with `[simulated model]`.
//!
//! The types to know:
//!
//! - [`Sim`] starts a server, [`SimHandle`] is a running one.
//! - [`Brain`] decides the answers: [`Brain::script`] replays a [`Script`] of [`Reply`]s with conditions on
//!   the request, [`Brain::rules`] answers simple requests with real tool calls, [`Brain::recording`] repeats
//!   recorded answers.
//! - [`Fault`] adds faults to a reply: error statuses, cut or silent streams, odd framings, deviating
//!   dialects.
//! - [`validate`] refuses every request that the real service would refuse.
//! - [`Seen`] is a request in one form for the four wires; [`Seen::outline`] prints it for snapshots.
//!
//! ```
//! use windlass_sim::{Brain, Reply, Script, Sim, SimConfig};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = Script::new().reply(Reply::text("hello"));
//! let sim = Sim::start(SimConfig {
//!     brain: Brain::script(script),
//!     ..SimConfig::default()
//! })
//! .await?;
//! assert!(sim.url().starts_with("http://127.0.0.1:"));
//! assert!(sim.requests().is_empty());
//! sim.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! By design, the server does not store responses (`previous_response_id` is refused), run server-side tools,
//! listen on any address but loopback, or share code with the client side of the wires.
//!
//! # Scripts
//!
//! ```yaml
//! model: sim-1                 # reported instead of the requested model
//! on_end: error                # or repeat, or rules: behavior when no reply is left
//! replies:
//!   - when: { user_contains: hi, has_tool: bash, wire: anthropic }
//!     thinking: "let me see"   # or { text: "...", redacted: true }
//!     text: "I will look."     # may use {{last_result}}, {{last_quoted}}, {{user}}, {{result:1}}
//!     calls:
//!       - { tool: bash, args: { command: ls } }
//!       - { tool: bash, raw: '{"command": "l' }
//!     stop: tool_use
//!     usage: { input: 10, output: 5, cache_read: 0, cache_write: 0 }
//!     delta_chars: 12          # or deltas: 3
//!     times: 2                 # or forever
//!   - fault: { status: 429, headers: { retry-after: "1" } }
//! ```
//!
//! Conditions: `user_contains`, `last_result_contains`, `last_result_not_contains`, `last_tool`,
//! `system_contains`, `has_tool`, `wire`, `no_tools`. Faults: `status`, `headers`, `body`, `error_type`,
//! `message`, `redirect`, `cut_after_events`, `cut_after_bytes`, `stall_after_events`, `delay_ms`, `chunk`,
//! `framing`, `content_type`, `invalid_utf8`, `oversized`, `mid_stream_error`, `no_finish`, `ping`, and for
//! the Chat wire `shared_index`, `missing_index`, `id_per_fragment`, `finish_stop_with_calls`, `no_done`,
//! `usage_missing`, `null_content`.

mod answer;
mod brain;
mod demo;
mod encode;
mod fault;
mod log;
mod rules;
mod script;
mod seal;
mod seen;
mod server;
mod stream;
mod usage;
pub mod validate;
mod wire;

pub use crate::answer::Stop;
pub use crate::brain::{Brain, Recorded, Recording};
pub use crate::demo::{DEMO_FILES, demo_script};
pub use crate::fault::{Deviation, Fault, Framing};
pub use crate::log::Logged;
pub use crate::script::{OnEnd, Reply, Script, ScriptError, When};
pub use crate::seen::{Seen, SeenCall, SeenResult, SeenRole, SeenTurn};
pub use crate::server::{Sim, SimConfig, SimError, SimHandle};
pub use crate::wire::Protocol;
