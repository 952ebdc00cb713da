//! For tests only: folders to work in, runs of the binary, a simulated model to talk to.
//!
//! The types to know:
//!
//! - [`Workspace`]: a temporary folder with a home of its own, and the binary pointed at it.
//! - [`Run`]: one start of the binary with a clean environment and a time limit. [`Run::output`] waits for its end,
//!   [`Run::start`] gives a [`Running`] that can be watched, signalled and left without a reader.
//! - [`Screen`]: one start of the binary on a terminal of its own, made by [`Run::on_screen`]: keys in, what a person sees
//!   out.
//! - [`Output`]: exit code, both streams, and the events of `--output-format stream-json`.
//! - [`SimServer`]: the simulated model on a thread of its own, with its request log.
//! - [`eventually`] and [`processes_with`]: wait for something to become true, look into the process table.
//!
//! ```no_run
//! use windlass_sim::{Reply, Script, Wire};
//! use windlass_testkit::{SimServer, Workspace};
//!
//! let sim = SimServer::script(Script::new().reply(Reply::text("hello")));
//! let workspace = Workspace::new("path/to/windlass");
//! workspace.use_sim(&sim, Wire::Chat);
//! let output = workspace.run(&["exec", "hi"]).output();
//! assert_eq!((output.code, output.stdout.as_str()), (Some(0), "hello\n"));
//! ```
//!
//! A test kit panics where a product would return an error: a test has nobody to hand it to.

mod corpus;
mod output;
mod process;
mod run;
mod screen;
mod server;
mod threads;
mod wait;
mod workspace;

pub use self::corpus::failing_inputs;
pub use self::output::Output;
pub use self::process::processes_with;
pub use self::run::{Run, Running};
pub use self::screen::Screen;
pub use self::server::SimServer;
pub use self::threads::at_once;
pub use self::wait::{PATIENCE, eventually};
pub use self::workspace::{WIRES, Workspace, settings_name};
pub use rustix::process::Signal;
pub use vt100;

/// The value, or the end of the test.
fn must<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
