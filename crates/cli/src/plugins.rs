//! SKILL-3: `windlass plugins`: installs plugins, and lists what they bring before they are enabled.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_config::{Problem, ProblemKind};
use windlass_host::plugins::{self, InstalledPlugin};

use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_args::PluginsCommand;

/// Time limit of one git command.
const GIT_LIMIT: Duration = Duration::from_secs(300);

/// Runs a subcommand.
pub(crate) async fn command(command: PluginsCommand) -> Result<Exit, Problem> {
    let folders = environment::folders()?;
    let done = match command {
        PluginsCommand::Add { source, commit } => add(&folders, &source, commit.as_deref()).await,
        PluginsCommand::List => list(&folders),
        PluginsCommand::Show { name } => show(&folders, &name),
        PluginsCommand::Enable { name, yes } => enable(&folders, &name, yes),
        PluginsCommand::Disable { name } => {
            plugins::set_enabled(&folders, &name, false).map(|()| say!("{name} is disabled"))
        }
        PluginsCommand::Update { name, commit, yes } => update(&folders, &name, commit.as_deref(), yes).await,
        PluginsCommand::Remove { name } => {
            plugins::remove(&folders, &name).map(|()| say!("{name} is removed"))
        }
    };
    done.map(|()| Exit::Ok)
        .map_err(|why| Problem::new(ProblemKind::Failed, why))
}

/// Files of a plugin, as they are at its source.
struct Fetched {
    folder: PathBuf,
    source: String,
    commit: Option<String>,
    /// Holds a clone.
    _temp: Option<TempDir>,
}

fn is_git(source: &str) -> bool {
    source.contains("://")
        || source.starts_with("git@")
        || (source.ends_with(".git") && !Path::new(source).is_dir())
}

async fn fetch(source: &str, commit: Option<&str>) -> Result<Fetched, String> {
    if is_git(source) {
        return clone(source, commit).await;
    }
    if commit.is_some() {
        return Err(format!("--commit is for git URLs, and {source} is a folder"));
    }
    let folder = Path::new(source)
        .canonicalize()
        .map_err(|error| format!("{source}: {error}"))?;
    Ok(Fetched {
        source: folder.display().to_string(),
        folder,
        commit: None,
        _temp: None,
    })
}

async fn clone(source: &str, commit: Option<&str>) -> Result<Fetched, String> {
    let is_hex = |commit: &str| commit.len() >= 7 && commit.chars().all(|letter| letter.is_ascii_hexdigit());
    if source.starts_with('-') || commit.is_some_and(|commit| !is_hex(commit)) {
        return Err("--commit needs the hexadecimal id of a commit, of 7 digits or more".to_owned());
    }
    let temp = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = temp.path().join("plugin");
    let place = folder.display().to_string();
    git(&["clone", "--quiet", "--no-checkout", "--", source, &place]).await?;
    let wanted = commit.unwrap_or("HEAD");
    git(&["-C", &place, "checkout", "--quiet", "--detach", wanted]).await?;
    let commit = git(&["-C", &place, "rev-parse", "HEAD"]).await?;
    Ok(Fetched {
        folder,
        source: source.to_owned(),
        commit: Some(commit.trim().to_owned()),
        _temp: Some(temp),
    })
}

/// Runs git, without anything that a repository names, and without questions.
async fn git(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "protocol.ext.allow=never",
            "-c",
            "core.fsmonitor=false",
        ])
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(GIT_LIMIT, command.output()).await;
    let output = output.map_err(|_| format!("git took more than {} seconds", GIT_LIMIT.as_secs()))?;
    let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "git {}: {}",
            arguments.first().unwrap_or(&""),
            plain(text.trim())
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn add(folders: &Folders, source: &str, commit: Option<&str>) -> Result<(), String> {
    let fetched = fetch(source, commit).await?;
    let name = windlass_host::plugins::name_of(&fetched.folder)?;
    if plugins::find(folders, &name).is_ok() {
        return Err(format!(
            "the plugin `{name}` is installed already; `windlass plugins update {name}` updates it"
        ));
    }
    let installed = plugins::install(
        folders,
        &fetched.folder,
        &fetched.source,
        fetched.commit.clone(),
        false,
    )?;
    describe(folders, &installed)?;
    say!("\nIt is not enabled: `windlass plugins enable {name} --yes` enables all of this.");
    Ok(())
}

fn list(folders: &Folders) -> Result<(), String> {
    let all = plugins::read_list(folders)?;
    if all.is_empty() {
        say!("No plugins are installed; `windlass plugins add FOLDER` adds one.");
    }
    for plugin in all {
        say!(
            "{:<24} {:<20} {}",
            plugin.name,
            state(folders, &plugin),
            plain(&origin(&plugin))
        );
    }
    Ok(())
}

fn state(folders: &Folders, plugin: &InstalledPlugin) -> &'static str {
    match (plugin.enabled, plugins::changed_files(folders, plugin)) {
        (false, _) => "disabled",
        (true, Ok(changed)) if changed.is_empty() => "enabled",
        (true, _) => "changed: not used",
    }
}

fn origin(plugin: &InstalledPlugin) -> String {
    match &plugin.commit {
        Some(commit) => format!("{} at {commit}", plugin.source),
        None => plugin.source.clone(),
    }
}

fn describe(folders: &Folders, installed: &InstalledPlugin) -> Result<(), String> {
    let plugin = plugins::describe(folders, &installed.name)?;
    let version = plugin
        .version
        .as_deref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    say!(
        "{}{} ({}), {}",
        plugin.name,
        plain(&version),
        plugin.layout.name(),
        state(folders, installed)
    );
    say!("from {}", plain(&origin(installed)));
    if !plugin.description.is_empty() {
        say!("{}", plain(&plugin.description));
    }
    say!("\nIt brings:");
    plugin
        .inventory()
        .iter()
        .for_each(|line| say!("  {}", plain(line)));
    plugin
        .problems
        .iter()
        .for_each(|problem| say!("  problem: {}", plain(problem)));
    say!("\n{}", windlass_core::text::count(installed.files.len(), "file"));
    for (path, hash) in &installed.files {
        let hash = hash
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .chars()
            .take(12)
            .collect::<String>();
        say!("  {hash}  {}", plain(path));
    }
    Ok(())
}

fn show(folders: &Folders, name: &str) -> Result<(), String> {
    let installed = plugins::find(folders, name)?;
    describe(folders, &installed)?;
    let changed = plugins::changed_files(folders, &installed)?;
    if !changed.is_empty() {
        say!("\nChanged since it was installed or enabled:");
        changed.iter().for_each(|line| say!("  {}", plain(line)));
    }
    Ok(())
}

fn enable(folders: &Folders, name: &str, yes: bool) -> Result<(), String> {
    show(folders, name)?;
    if !yes {
        return Err(format!(
            "not enabled yet: `windlass plugins enable {name} --yes` enables all of this"
        ));
    }
    plugins::set_enabled(folders, name, true)?;
    say!("\n{name} is enabled, from the next turn on");
    Ok(())
}

async fn update(folders: &Folders, name: &str, commit: Option<&str>, yes: bool) -> Result<(), String> {
    let installed = plugins::find(folders, name)?;
    let fetched = fetch(&installed.source, commit).await?;
    let lines = plugins::difference(folders, &installed, &fetched.folder)?;
    if let (Some(old), Some(new)) = (&installed.commit, &fetched.commit) {
        say!("{old} to {new}");
    }
    if lines.is_empty() {
        say!("{name} is up to date");
        return Ok(());
    }
    lines.iter().for_each(|line| say!("{}", plain(line)));
    if !yes {
        return Err(format!(
            "not updated yet: `windlass plugins update {name} --yes` takes these changes over"
        ));
    }
    plugins::install(
        folders,
        &fetched.folder,
        &fetched.source,
        fetched.commit.clone(),
        installed.enabled,
    )?;
    say!("{name} is updated");
    Ok(())
}
