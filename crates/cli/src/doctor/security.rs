//! `windlass doctor --security`: what is protected in this folder, what this machine enforces, and what is not
//! covered.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_core::permission::Mode;
use windlass_sandbox::{Gap, Network, ProtectedPaths, Sandbox, SandboxError, SandboxPolicy};

use super::row;
use crate::args::SettingsOptions;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_host::sandbox_access::SandboxAccess;

/// Gaps of the guards, whatever the kernel.
const NOT_COVERED: &[&str] = &[
    "hard links to a denied file that exist before a command starts",
    "files with a denied name that appear while a session runs; a new session hides them",
    "a new .git in a subfolder of the workspace, and editor settings there: file tools ask, commands do not",
    "protected and denied files that you replace while a command is running, which may then change or read them",
    "programs that you run yourself in the workspace afterwards: build files, tests, package scripts",
    "files outside the workspace that are not denied can be read by commands",
];

/// Prints the report. The exit code is 0 if commands are confined.
pub(crate) fn report(options: &SettingsOptions) -> Result<Exit, Problem> {
    let cwd = working_directory(None)?;
    let settings = environment::settings(&options.given(), &cwd)?;
    let access = SandboxAccess::of(&settings, &cwd)?;
    let workspace = access.workspace()?;
    let mut policy = access.policy(&workspace);
    let is_complete = workspace.hide_in(&mut policy);
    for warning in &settings.warnings {
        row("warning", &plain(warning));
    }
    say!("This machine");
    super::machine();
    let hidden = policy.hidden.clone();
    let network = policy.network;
    let exit = enforced(policy, &cwd);
    say!("\nWhat asks first");
    asks(&settings, network, is_complete);
    say!("\nDenied: neither file tools nor commands can reach these");
    for path in access.denied() {
        let is_there = !path.is_absolute() || path.exists();
        let note = if is_there { "" } else { " (does not exist)" };
        say!("  {}{note}", plain(&path.display().to_string()));
    }
    for path in hidden {
        say!("  {} (its name is denied)", plain(&path.display().to_string()));
    }
    say!("\nProtected: commands cannot change these, and file tools ask, in every mode");
    let mut by_program: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, program) in ProtectedPaths::listed() {
        by_program.entry(program).or_default().push(path);
    }
    for (program, paths) in by_program {
        say!("  {program} runs: {}", paths.join(", "));
    }
    say!("\nNot covered");
    for text in NOT_COVERED {
        say!("  {text}");
    }
    Ok(exit)
}

/// Starts the sandbox of this folder and reports what holds in it.
fn enforced(policy: SandboxPolicy, cwd: &Path) -> Exit {
    let sandbox = match Sandbox::new(policy) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            row("sandbox", &format!("no: {error}; {}", without(&error)));
            return Exit::Failed;
        }
    };
    row("sandbox", "yes: commands run in it");
    let scratch = environment::folders()
        .map(|folders| folders.cache)
        .unwrap_or_default();
    match sandbox.isolation(cwd, &scratch) {
        Ok(parts) => {
            for part in parts {
                let text = if part.is_own {
                    "own"
                } else {
                    "shared with this machine"
                };
                row(part.what, text);
            }
        }
        Err(error) => row("isolation", &format!("unknown: {error}")),
    }
    for gap in sandbox.gaps() {
        match gap {
            Gap::Open(path) => row(
                "gap",
                &format!("{} cannot be protected: every command asks", path.display()),
            ),
            Gap::Shared => row("gap", "no namespaces: every command asks"),
            Gap::Frozen(path) => row(
                "gap",
                &format!("nothing new can be created in {}", path.display()),
            ),
        }
    }
    Exit::Ok
}

fn without(error: &SandboxError) -> &'static str {
    match error {
        SandboxError::NoLandlock | SandboxError::NoFilter => "every command asks",
        _ => "no command runs",
    }
}

fn asks(settings: &Settings, network: Network, is_complete: bool) {
    let security = &settings.security;
    row(
        "protected files",
        "always, in every mode; without a person they are refused",
    );
    let other = match security.mode {
        Mode::Full => "never: mode full",
        Mode::Plan | Mode::Unattended => "never: the mode refuses",
        _ => "yes",
    };
    row("outside", &format!("{other}, for writing outside the workspace"));
    match network {
        Network::On => row("network", "no: security.network is on"),
        Network::Hosts => row(
            "network",
            &format!("{other}, for hosts that security.network does not list"),
        ),
        Network::Off => row("network", &format!("{other}, for commands that need it")),
    }
    row("destructive", &format!("{other}, for what cannot be undone"));
    if !is_complete {
        row(
            "every command",
            "this folder has too many files to find all with denied names",
        );
    }
}
