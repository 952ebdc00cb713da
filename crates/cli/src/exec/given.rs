//! Settings that the options of a run give.

use std::path::Path;

use windlass_config::environment::{self, Given};
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::compat;
use windlass_host::prompt::SYSTEM_PROMPT;

use windlass_args::ExecOptions;

/// Returns the settings given on the command line. Flags that add to a list add to the settings in effect.
pub(crate) fn given(options: &ExecOptions, cwd: &Path) -> Result<Given, Problem> {
    let mut given = options.settings.given_with(flags(options));
    let guide = &options.guide;
    let is_plain = guide.append_system_prompt.is_none()
        && guide.allowed_tools.is_empty()
        && guide.disallowed_tools.is_empty()
        && guide.add_dir.is_empty();
    if is_plain {
        return Ok(given);
    }
    let settings = environment::settings(&given, cwd)?;
    if let Some(text) = &guide.append_system_prompt {
        let base = settings.agent.system_prompt.as_deref().unwrap_or(SYSTEM_PROMPT);
        let whole = literal(&format!("{base}\n\n{text}"))?;
        given
            .flags
            .push(("agent.system_prompt", "--append-system-prompt", whole));
    }
    extend(&mut given, &settings, options)?;
    Ok(given)
}

/// Adds the entries of flags to lists of the settings.
fn extend(given: &mut Given, settings: &Settings, options: &ExecOptions) -> Result<(), Problem> {
    let guide = &options.guide;
    let security = &settings.security;
    let mut folders = Vec::new();
    for folder in &guide.add_dir {
        let path = std::fs::canonicalize(folder).ok().filter(|path| path.is_dir());
        let path = path.ok_or_else(|| {
            Problem::usage(format!("--add-dir {}: there is no such folder", folder.display()))
        })?;
        folders.push(path.display().to_string());
    }
    let lists = [
        (
            "security.allow",
            "--allowed-tools",
            &security.allow,
            compat::rules(&guide.allowed_tools, "--allowed-tools")?,
        ),
        (
            "security.deny",
            "--disallowed-tools",
            &security.deny,
            compat::rules(&guide.disallowed_tools, "--disallowed-tools")?,
        ),
        (
            "security.allowed_paths",
            "--add-dir",
            &security.allowed_paths,
            folders,
        ),
    ];
    for (key, flag, before, more) in lists {
        if !more.is_empty() {
            let all: Vec<&String> = before.iter().chain(&more).collect();
            given.flags.push((key, flag, literal(&all)?));
        }
    }
    Ok(())
}

/// Returns a value as the settings read it.
fn literal(value: &(impl serde::Serialize + ?Sized)) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))
}

/// Returns the settings that have a dedicated flag.
pub(crate) fn flags(options: &ExecOptions) -> Vec<(&'static str, &'static str, String)> {
    let mut flags = Vec::new();
    let mut add = |key, flag, value: Option<String>| {
        if let Some(value) = value {
            flags.push((key, flag, value));
        }
    };
    let guide = &options.guide;
    let when = |is_given: bool| is_given.then(|| "true".to_owned());
    let iterations = options.max_iterations.map(|iterations| iterations.to_string());
    let mode = options.mode.permission_mode.map(|mode| mode.name().to_owned());
    let has_goal = options.goal.goal.is_some();
    // For a goal, it is the limit of all its turns.
    let cost = options.max_cost.filter(|_| !has_goal);
    // As JSON: a prompt may start with a quotation mark.
    let prompt = guide.system_prompt.as_ref().and_then(|text| literal(text).ok());
    add("agent.max_iterations", "--max-iterations", iterations);
    add("security.mode", "--mode", options.mode.mode.clone());
    add("security.allow_home", "--allow-home", when(options.allow_home));
    add("security.mode", "--permission-mode", mode);
    add("agent.goal.autonomous_enabled", "--goal", when(has_goal));
    add(
        "agent.max_cost_usd",
        "--max-cost",
        cost.map(|cost| format!("{cost:?}")),
    );
    add("agent.system_prompt", "--system-prompt", prompt);
    add("security.network", "--network", when(guide.network));
    add("agent.reasoning", "--effort", guide.effort.map(str::to_owned));
    flags
}
