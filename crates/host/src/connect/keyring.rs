//! PROV-11: keys in the keyring of the operating system, through its own command.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use windlass_providers::key::Secret;

use super::Env;

/// A keyring that is locked may ask the user; one that does not answer is not waited for.
const LIMIT: Duration = Duration::from_secs(10);

/// Answer of the keyring.
pub(super) enum Kept {
    /// The key.
    Key(Secret),
    /// No key; the text says what was tried.
    Nothing(String),
}

/// Looks up the key of a provider: service `windlass`, account `<provider>`.
pub(super) async fn lookup(provider: &str, env: Env<'_>) -> Kept {
    let is_mac = cfg!(target_os = "macos");
    // Without a session bus there is no Secret Service, and its command would wait for one.
    if !is_mac && env.var("DBUS_SESSION_BUS_ADDRESS").is_none() {
        return Kept::Nothing("no keyring is running".to_owned());
    }
    let (program, arguments): (&str, &[&str]) = if is_mac {
        (
            "security",
            &["find-generic-password", "-w", "-s", "windlass", "-a", provider],
        )
    } else {
        (
            "secret-tool",
            &["lookup", "service", "windlass", "account", provider],
        )
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(LIMIT, command.output()).await {
        Err(_) => return Kept::Nothing("the keyring did not answer".to_owned()),
        Ok(Err(_)) => return Kept::Nothing(format!("the keyring was not asked: there is no `{program}`")),
        Ok(Ok(output)) => output,
    };
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !key.is_empty() {
        Kept::Key(Secret::new(&key))
    } else {
        Kept::Nothing("the keyring has none".to_owned())
    }
}
