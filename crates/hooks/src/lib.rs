//! The user's hooks: files of Claude Code, Codex and Windlass, their matching, their processes and their answers.
//!
//! A hook is a program of the user that runs at an [`Occasion`]: before a call, after one, when a session starts. The
//! types to know are [`HookFile`], a file that was read; [`HookSet`], the hooks of all files, which chooses those that
//! apply, runs them at the same time and combines their answers into a [`Combined`]; [`HookAnswer`], the answer of one
//! hook; [`HookRun`], the record of a run; and [`claude`], which translates calls into the names and fields of Claude
//! Code, for which most existing hooks are written.
//!
//! This crate does not decide about calls. A hook's answer can refuse a call, ask a person, or change arguments that
//! are then judged like the model's own; no answer lifts a rule.

mod answer;
mod check;
pub mod claude;
mod file;
mod matcher;
mod occasion;
mod process;
mod record;
mod report;
mod script;
mod session;
mod set;

pub use self::answer::{Combined, HookAnswer, HookChoice};
pub use self::check::check;
pub use self::file::{Handler, HookFile, HookOrigin, HookProgram};
pub use self::matcher::Matcher;
pub use self::occasion::Occasion;
pub use self::process::{HookCommand, HookEnd, HookOutput};
pub use self::record::{HookRun, HookRuns};
pub use self::report::report;
pub use self::script::HookScript;
pub use self::session::{SessionFacts, SessionHooks};
pub use self::set::{Fired, HookHost, HookSet, HookShared, Trigger};
