//! `windlass doctor`: reports the configuration, whether the provider is reachable, and the sandbox support
//! of this machine.

pub(crate) mod security;

use windlass_providers::preset::presets;

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_args::SettingsOptions;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::settings::Settings;
use windlass_config::trust::{self, TrustState};
use windlass_host::connect::Process;
use windlass_host::connect::{KeysFile, SIM, choose};
use windlass_host::extension::mcp::ConfiguredServers;
use windlass_host::instructions::Instructions;
use windlass_host::sandbox_access::SandboxAccess;
use windlass_host::skill_sources::SkillSources;

/// Prints the report. The exit code is 0 if a prompt could run now.
pub(crate) async fn doctor(options: &SettingsOptions, offline: bool) -> Result<Exit, Problem> {
    say!("windlass {}\n", env!("CARGO_PKG_VERSION"));
    let cwd = working_directory(None)?;
    let folders = environment::folders()?;
    say!("Settings");
    row("user file", &present(&folders.user_file()));
    match folders.project_file(&cwd) {
        Some(path) => row("project file", &present(&path)),
        None => row("project file", "none in this folder or its parents"),
    }
    if let Some(project) = folders.project(&cwd) {
        let is_trusted = matches!(trust::look(&folders, &project), TrustState::Trusted(_));
        let (root, not) = (project.root.display(), if is_trusted { "" } else { "not " });
        row("project", &format!("{root} is {not}trusted"));
    }
    row("data", &folders.data.display().to_string());
    row("state", &folders.state.display().to_string());
    row("cache", &folders.cache.display().to_string());
    let settings = match environment::settings(&options.given(), &cwd) {
        Ok(settings) => settings,
        Err(problem) => {
            row("problem", &problem.message.replace('\n', "\n                  "));
            return Ok(problem.kind.into());
        }
    };
    for warning in &settings.warnings {
        row("warning", warning);
    }
    parts(&settings, &folders, &cwd);
    say!("\nKeys");
    for preset in presets().filter(|preset| !preset.key_variables.is_empty()) {
        let found = preset
            .key_variables
            .iter()
            .find(|variable| environment::var(variable).is_some());
        let text = match found {
            Some(variable) => format!("{variable} is set"),
            None => format!("not set ({})", preset.key_variables.join(" or ")),
        };
        row(&preset.name, &text);
    }
    let local: Vec<_> = presets()
        .filter(|preset| preset.key_variables.is_empty())
        .map(|preset| preset.name.as_str())
        .collect();
    row("no key needed", &local.join(", "));
    let keys = KeysFile::new(&folders);
    match keys.read() {
        Ok(kept) if kept.is_empty() => {}
        Ok(kept) => {
            let names: Vec<String> = kept.into_keys().collect();
            row(
                "keys file",
                &format!("{}: {}", keys.path().display(), names.join(", ")),
            );
        }
        Err(problem) => row("keys file", &problem.message),
    }
    hooks(&settings)?;
    say!("\nModel");
    let exit = model(&settings, offline).await;
    servers(&settings, offline).await?;
    say!("\nThis machine");
    machine();
    Ok(exit)
}

/// MCP-1: starts every MCP server once.
async fn servers(settings: &Settings, offline: bool) -> Result<(), Problem> {
    let found = match ConfiguredServers::read(settings, &working_directory(None)?) {
        Ok(found) => found,
        Err(problem) => {
            say!("\nMCP servers");
            row("problem", &problem.message);
            return Ok(());
        }
    };
    if found.servers.is_empty() {
        return Ok(());
    }
    say!("\nMCP servers");
    for warning in &found.warnings {
        row("warning", warning);
    }
    if offline {
        row("servers", "not tried (--offline)");
        return Ok(());
    }
    for (is_ready, line) in crate::mcp::check(&std::sync::Arc::new(settings.clone()), found.servers).await? {
        row(
            if is_ready { "server" } else { "problem" },
            &crate::terminal::plain(&line),
        );
    }
    Ok(())
}

/// Prints the instructions, skills and plugins of this folder, and the mistakes in them.
fn parts(settings: &Settings, folders: &Folders, cwd: &std::path::Path) {
    say!("\nInstructions and skills");
    let access = SandboxAccess::new(&settings.security, cwd);
    let denied = access
        .as_ref()
        .map(|access| access.denied().to_vec())
        .unwrap_or_default();
    match Instructions::new(folders, cwd, &denied) {
        Ok(mut instructions) => {
            let (_, notices) = instructions.refresh();
            let names = instructions.names();
            let text = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            row("instructions", &plain(&text));
            notices.iter().for_each(|notice| row("problem", &plain(notice)));
        }
        Err(error) => row("instructions", &error.to_string()),
    }
    let catalog = SkillSources::new(folders.clone(), cwd).read();
    row("skills", &catalog.skills.len().to_string());
    let problems = catalog.problems.iter();
    problems.for_each(|problem| row("problem", &plain(&problem.to_string())));
    let plugins = windlass_host::plugins::enabled(folders);
    row("plugins", &format!("{} enabled", plugins.plugins.len()));
}

/// Prints what is wrong with the hooks, if there are any.
fn hooks(settings: &Settings) -> Result<(), Problem> {
    let (number, wrong) = crate::hooks::problems(settings)?;
    if number > 0 || !wrong.is_empty() {
        say!("\nHooks");
        row("in effect", &number.to_string());
    }
    for problem in wrong {
        row("problem", &plain(&problem));
    }
    Ok(())
}

async fn model(settings: &Settings, offline: bool) -> Exit {
    let choice = match choose(settings, &Process) {
        Ok(choice) => choice,
        Err(problem) => {
            row("none", problem.message.lines().next().unwrap_or_default());
            row("try", "windlass exec --provider sim \"list the files here\"");
            return problem.kind.into();
        }
    };
    row("provider", &choice.name);
    row("model", &choice.model);
    row("wire", choice.wire.name());
    if choice.name == SIM && choice.base_url.is_empty() {
        row("reachable", "built in, no network needed");
        return Exit::Ok;
    }
    row("address", &choice.base_url);
    if offline {
        row("reachable", "not tried (--offline)");
        return Exit::Ok;
    }
    match windlass_host::connect::reach(&choice.base_url).await {
        Ok(()) => {
            row("reachable", "yes");
            Exit::Ok
        }
        Err(why) => {
            row("reachable", &format!("no: {why}"));
            Exit::Provider
        }
    }
}

/// Prints the sandbox features of this kernel.
fn machine() {
    let support = windlass_sandbox::support();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let landlock = match support.landlock_abi {
        Some(abi) => format!("yes (version {abi})"),
        None => "no: commands cannot be sandboxed here".to_owned(),
    };
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    row("kernel", &format!("{} {release}", std::env::consts::OS));
    row("landlock", &landlock);
    row("seccomp", yes_no(support.seccomp));
    row("tcp rules", yes_no(support.network));
    row("scopes", yes_no(support.scopes));
    row("namespaces", yes_no(support.user_namespaces));
}

fn present(path: &std::path::Path) -> String {
    format!(
        "{}{}",
        path.display(),
        if path.exists() { "" } else { " (does not exist)" }
    )
}

fn row(what: &str, text: &str) {
    say!("  {what:<16}{text}");
}
