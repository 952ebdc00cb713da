//! The environment a session works in: its folder, settings, trust, tools, models, sandbox and permissions.
//!
//! The service runs sessions and is handed this crate's implementation of its ports; the binary chooses the
//! folder and the settings. Nothing here reads arguments, prints, or knows a front end.

pub mod account;
mod agent_copies;
mod agent_role;
pub mod agent_types;
mod autonomy;
pub mod backoff;
pub mod command_files;
pub mod compat;
pub mod compress;
pub mod connect;
pub mod context_parts;
pub mod extension;
pub mod factory;
pub mod fallback;
mod folder_files;
pub mod grants;
pub mod import;
pub mod instructions;
pub mod job_courier;
pub mod local_env;
pub mod mcp_files;
pub mod memory;
pub mod model_preference;
pub mod models;
mod open_work;
pub mod plugins;
pub mod prompt;
mod run_here;
pub mod sandbox_access;
mod sandbox_ahead;
mod scheduled_jobs;
mod session_diff;
pub mod session_fixture;
pub mod settings_reload;
pub mod skill_copy;
pub mod skill_sources;
pub mod tool_catalog;
pub mod watch;
pub mod web_search;
