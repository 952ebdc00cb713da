//! The environment a session works in: its folder, settings, trust, tools, models, sandbox and permissions.
//!
//! The service runs sessions and is handed this crate's implementation of its ports; the binary chooses the
//! folder and the settings. Nothing here reads arguments, prints, or knows a front end.

mod agent_copies;
mod agent_role;
pub mod agent_types;
mod autonomy;
pub mod backoff;
pub mod command_files;
pub mod connect;
pub mod context_parts;
pub mod factory;
pub mod grants;
pub mod instructions;
pub mod local_env;
pub mod model_preference;
pub mod models;
pub mod prompt;
pub mod sandbox_access;
mod sandbox_ahead;
mod scheduled_jobs;
pub mod settings_reload;
pub mod tool_catalog;
pub mod watch;
