//! Test support: folders to work in, runs of the binary, a simulated model to talk to.
//!
//! The types to know:
//!
//! - [`Workspace`]: a temporary folder with its own home, and the binary pointed at it.
//! - [`Run`]: one start of the binary with a clean environment and a timeout. [`Run::output`] waits for its
//!   end, [`Run::start`] gives a [`Running`] that can be watched, signalled and left without a reader.
//! - [`Screen`]: one start of the binary on its own terminal, made by [`Run::on_screen`]: takes keys and
//!   returns the visible screen.
//! - [`Editor`]: one start of `windlass acp` with a client of its protocol, which checks every line against the schema.
//! - [`McpClient`]: one start of `windlass mcp serve` with a client of its protocol.
//! - [`Browser`]: Chromium without a window, for the web page.
//! - [`Output`]: exit code, both streams, and the events of `--output-format stream-json`.
//! - [`SimServer`]: the simulated model on its own thread, with its request log.
//! - [`OtelCollector`]: a collector of traces and metrics, with what it got.
//! - [`HttpServer`]: a running `windlass serve` with a browser that is signed in, [`SseEvents`]: a stream of it.
//! - [`PostgresServer`]: a Postgres server on a private socket, with a database per test.
//! - [`NatsServer`]: a NATS server on a port of its own, which can be killed and started again.
//! - [`FakeEnv`]: the environment of a session, for tests of the service without settings and models.
//! - [`eventually`] and [`processes_with`]: wait for a condition, search the process table.
//!
//! ```no_run
//! use windlass_sim::{Reply, Script, Protocol};
//! use windlass_testkit::{SimServer, Workspace};
//!
//! let sim = SimServer::script(Script::new().reply(Reply::text("hello")));
//! let workspace = Workspace::new("path/to/windlass");
//! workspace.use_sim(&sim, Protocol::Chat);
//! let output = workspace.run(&["exec", "hi"]).output();
//! assert_eq!((output.code, output.stdout.as_str()), (Some(0), "hello\n"));
//! ```
//!
//! The test kit panics where a product would return an error, because a test has no caller to return it to.

mod acp_schema;
mod browser;
mod collector;
mod corpus;
mod editor;
mod fake_checkpoints;
mod fake_env;
mod http;
mod mcp;
mod nats;
mod output;
mod postgres;
mod process;
mod run;
mod screen;
mod server;
mod threads;
mod wait;
mod workspace;

pub use self::browser::{Browser, key};
pub use self::collector::{CollectedPoint, CollectedSpan, OtelCollector, decoded_spans, span_tree};
pub use self::corpus::failing_inputs;
pub use self::editor::Editor;
pub use self::fake_checkpoints::{FakeCheckpoints, Takeover};
pub use self::fake_env::{EnvKit, FakeEnv, FakeFactory};
pub use self::http::{HttpAnswer, HttpServer, SseEvent, SseEvents, http, https, try_http};
pub use self::mcp::McpClient;
pub use self::nats::NatsServer;
pub use self::output::Output;
pub use self::postgres::{Flush, PostgresServer};
pub use self::process::{Process, descendants, processes_with};
pub use self::run::{Run, Running};
pub use self::screen::Screen;
pub use self::server::SimServer;
pub use self::threads::at_once;
pub use self::wait::{PATIENCE, eventually};
pub use self::workspace::{WIRES, Workspace, settings_name};
pub use rustix::process::Signal;
pub use vt100;

/// Returns the value, or fails the test.
fn must<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
