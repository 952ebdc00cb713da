//! Where a key comes from: a named variable, a command, or the preset's usual variables. Never a file of ours.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use windlass_providers::key::Secret;

use super::{Choice, Env};
use crate::exit::{Exit, Problem};
use crate::settings::KeyCommand;

/// A key and the variable it came from.
pub(super) struct Found {
    pub(super) secret: Secret,
    pub(super) variable: String,
}

const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// The key for `choice`, or `None` when its server needs none.
pub(super) async fn find_key(choice: &Choice<'_>, env: Env<'_>) -> Result<Option<Found>, Problem> {
    let entry = choice.entry;
    if let Some(variable) = entry.and_then(|entry| entry.key_env.as_ref()) {
        return match env(variable) {
            Some(key) => Ok(Some(Found {
                secret: Secret::new(&key),
                variable: variable.clone(),
            })),
            None => {
                let text = format!(
                    "`providers.{}.key_env` names {variable}, which is not set",
                    choice.name
                );
                Err(Problem::new(Exit::Provider, text))
            }
        };
    }
    if let Some(command) = entry.and_then(|entry| entry.key_command.as_ref()) {
        let secret = run_key_command(&choice.name, command).await?;
        return Ok(Some(Found {
            secret,
            variable: String::new(),
        }));
    }
    let variables = choice
        .preset
        .map(|preset| preset.key_variables.as_slice())
        .unwrap_or_default();
    let found = variables
        .iter()
        .find_map(|variable| env(variable).map(|key| (variable, key)));
    match found {
        Some((variable, key)) => Ok(Some(Found {
            secret: Secret::new(&key),
            variable: variable.clone(),
        })),
        None if variables.is_empty() || entry.is_some_and(|entry| entry.base_url.is_some()) => Ok(None),
        None => {
            let text = format!("no key for provider `{}`: {}", choice.name, choice.key_hint());
            Err(Problem::new(Exit::Provider, text))
        }
    }
}

async fn run_key_command(name: &str, command: &KeyCommand) -> Result<Secret, Problem> {
    let failed = |why: String| Problem::new(Exit::Provider, format!("`providers.{name}.key_command` {why}"));
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
