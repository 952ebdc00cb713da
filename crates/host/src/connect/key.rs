//! Sources of an API key: a named variable, a command, the preset's usual variables, or the user's keys file.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use windlass_providers::key::Secret;

use super::keyring::{self, Kept};
use super::{Choice, Env};
use windlass_config::settings::KeyCommand;
use windlass_config::{Problem, ProblemKind};

/// A key and the variable it came from, if it came from one.
pub(super) struct Found {
    pub(super) secret: Secret,
    pub(super) variable: String,
}

const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// Source of an API key.
pub(super) enum Source {
    /// A variable that is set.
    Variable { name: String, key: String },
    /// A command from the user's settings.
    Command(KeyCommand),
    /// The user's keys file.
    File(Secret),
    /// No key, and the server needs none.
    NotNeeded,
    /// No key; holds the instructions for the user.
    Missing(String),
}

/// Returns the source of the key for `choice`. Sources given for this run take precedence over the keys file.
///
/// # Errors
/// Fails if the keys file is needed and cannot be used.
pub(super) fn key_source(choice: &Choice<'_>, env: Env<'_>) -> Result<Source, Problem> {
    let entry = choice.entry;
    let named = entry.and_then(|entry| entry.key_env.as_ref());
    let command = entry.and_then(|entry| entry.key_command.as_ref());
    let usual = choice
        .preset
        .map(|preset| preset.key_variables.as_slice())
        .unwrap_or_default();
    let variables = match (named, command) {
        (Some(named), _) => std::slice::from_ref(named),
        (None, Some(command)) => return Ok(Source::Command(command.clone())),
        (None, None) => usual,
    };
    let found = variables
        .iter()
        .find_map(|name| Some((name, env.var(name).filter(|key| !key.trim().is_empty())?)));
    if let Some((name, key)) = found {
        return Ok(Source::Variable {
            name: name.clone(),
            key,
        });
    }
    if let Some(key) = env.keys()?.remove(&choice.name) {
        return Ok(Source::File(key));
    }
    Ok(match named {
        Some(variable) => Source::Missing(format!(
            "`providers.{}.key_env` names {variable}, which is not set",
            choice.name
        )),
        None if usual.is_empty() || entry.is_some_and(|entry| entry.base_url.is_some()) => Source::NotNeeded,
        None => Source::Missing(format!(
            "no key for provider `{}`: {}",
            choice.name,
            choice.key_hint()
        )),
    })
}

/// Returns the key for `choice`, or `None` if its server needs none.
pub(super) async fn find_key(choice: &Choice<'_>, env: Env<'_>) -> Result<Option<Found>, Problem> {
    let (secret, variable) = match key_source(choice, env)? {
        Source::Variable { name, key } => (Secret::new(&key), name),
        Source::Command(command) => (run_key_command(&choice.name, &command).await?, String::new()),
        Source::File(secret) => (secret, String::new()),
        Source::NotNeeded => return Ok(None),
        Source::Missing(text) => match keyring::lookup(&choice.name, env).await {
            Kept::Key(secret) => (secret, String::new()),
            Kept::Nothing(tried) => {
                let text = format!("{text} ({tried})");
                return Err(Problem::new(ProblemKind::Auth, text));
            }
        },
    };
    Ok(Some(Found { secret, variable }))
}

async fn run_key_command(name: &str, command: &KeyCommand) -> Result<Secret, Problem> {
    let failed = |why: String| {
        Problem::new(
            ProblemKind::Provider,
            format!("`providers.{name}.key_command` {why}"),
        )
    };
    let mut process = match command {
        KeyCommand::Shell(line) => {
            let mut process = Command::new("/bin/sh");
            process.args(["-c", line]);
            process
        }
        KeyCommand::Program(words) => {
            let Some((program, arguments)) = words.split_first() else {
                return Err(failed("is empty: name a program that prints the key".to_owned()));
            };
            let mut process = Command::new(program);
            process.args(arguments);
            process
        }
    };
    process
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(COMMAND_LIMIT, process.output()).await {
        Err(_) => return Err(failed(format!("took longer than {} s", COMMAND_LIMIT.as_secs()))),
        Ok(Err(error)) => return Err(failed(format!("could not be started: {error}"))),
        Ok(Ok(output)) => output,
    };
    if !output.status.success() {
        return Err(failed(format!("failed ({})", output.status)));
    }
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if key.is_empty() {
        return Err(failed("printed nothing; it must print the key".to_owned()));
    }
    Ok(Secret::new(&key))
}
