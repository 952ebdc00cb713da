//! Description of a project's effects, for the user who decides whether to trust it.
//!
//! All of its content was written by others. Each value is put on one line, and nothing in it can move the
//! cursor, so that no file can forge a line of this text.

use std::fmt::Write;

use windlass_core::text::count;
use windlass_core::tool::Category;
use windlass_hooks::{HookFile, HookOrigin};
use windlass_tools::declared::{Declarations, Outline, Source};

use crate::terminal::plain;
use windlass_config::folders::{FOREIGN_HOOKS, Project};
use windlass_config::settings::{self, SettingsError, quote};
use windlass_config::trust::Snapshot;
use windlass_host::skill_sources::needs_trust;
use windlass_mcp::{McpServerConfig, McpTransport};

/// Returns the description. Fails if the settings are invalid: they would stop every run in this folder.
pub(super) fn review(project: &Project, snapshot: &Snapshot) -> Result<String, SettingsError> {
    let mut text = format!("{}\n", line(&project.root.display().to_string()));
    settings(project, snapshot, &mut text)?;
    tools(project, snapshot, &mut text);
    commands(project, snapshot, &mut text);
    servers(project, snapshot, &mut text);
    skills(snapshot, &mut text);
    hooks(project, snapshot, &mut text);
    text.push_str("\nFiles (trust ends when one of them changes)\n");
    for file in snapshot.files() {
        let (path, size) = (file.path.display().to_string(), count(file.bytes.len(), "byte"));
        let _ = writeln!(text, "  {}  ({size})", line(&path));
    }
    Ok(text)
}

/// Lists everything in skills that has an effect by itself.
fn skills(snapshot: &Snapshot, text: &mut String) {
    let files = snapshot
        .files()
        .iter()
        .filter(|file| file.path.ends_with("SKILL.md"));
    let effects = files.flat_map(|file| needs_trust(&file.path, &String::from_utf8_lossy(&file.bytes)));
    let effects: Vec<String> = effects.collect();
    if !effects.is_empty() {
        text.push_str("\nSkills\n");
    }
    for effect in effects {
        let _ = writeln!(text, "  {}", line(&effect));
    }
}

fn settings(project: &Project, snapshot: &Snapshot, text: &mut String) -> Result<(), SettingsError> {
    let path = project.config_file();
    let Some(bytes) = snapshot.bytes(project, &path) else {
        return Ok(());
    };
    let preview = settings::preview(&path, bytes)?;
    text.push_str("\nSettings\n");
    if preview.assignments.is_empty() {
        text.push_str("  none\n");
    }
    for assignment in preview.assignments {
        let _ = writeln!(text, "  {}", line(&assignment));
    }
    for warning in preview.warnings {
        let _ = writeln!(text, "  {}", line(&warning));
    }
    Ok(())
}

fn tools(project: &Project, snapshot: &Snapshot, text: &mut String) {
    let Some(file) = snapshot.tools(project) else {
        return;
    };
    text.push_str("\nTools\n");
    let name = project.tools_file().display().to_string();
    match Declarations::parse(file, &name, Source::Project) {
        Ok(declarations) => {
            let outlines = declarations.outlines();
            if outlines.is_empty() {
                text.push_str("  none\n");
            }
            for outline in &outlines {
                tool(outline, text);
            }
        }
        Err(error) => {
            text.push_str("  none, because the file is invalid:\n");
            for problem in error.problems() {
                let _ = writeln!(text, "  {}", line(&problem.to_string()));
            }
        }
    }
}

/// Lists the commands. They have no effect until the user types them; then their text goes to the model.
fn commands(project: &Project, snapshot: &Snapshot, text: &mut String) {
    let files = snapshot.below(project, &project.commands_folder());
    if files.is_empty() {
        return;
    }
    text.push_str("\nCommands (each sends a text to the model when you type its name)\n");
    for (path, _) in files {
        let name = path.with_extension("").display().to_string().replace('/', ":");
        let _ = writeln!(text, "  /{}", line(&name));
    }
}

/// Lists the hooks: programs that run with the user's rights, outside the sandbox.
fn hooks(project: &Project, snapshot: &Snapshot, text: &mut String) {
    let paths = FOREIGN_HOOKS.iter().map(|name| project.root.join(name));
    let mut is_first = true;
    for path in paths.chain([project.hooks_file()]) {
        let Some(bytes) = snapshot.bytes(project, &path) else {
            continue;
        };
        if std::mem::take(&mut is_first) {
            text.push_str("\nHooks (programs that run outside the sandbox, with your rights)\n");
        }
        let file = HookFile::parse(&path, HookOrigin::Project, &String::from_utf8_lossy(bytes));
        for hook in &file.handlers {
            let (event, matcher) = (hook.occasion.name(), line(hook.matcher.text()));
            let _ = writeln!(text, "  {event} {matcher}: {}", line(&hook.program.to_string()));
        }
        for problem in &file.problems {
            let _ = writeln!(text, "  {}: {}", line(&path.display().to_string()), line(problem));
        }
    }
}

/// MCP-1: describes each MCP server: its command or address, its access, and the variables it gets.
fn servers(project: &Project, snapshot: &Snapshot, text: &mut String) {
    let Some(file) = snapshot.servers(project) else {
        return;
    };
    text.push_str("\nMCP servers (programs that run in the sandbox while you work here, and offer tools)\n");
    // Variables stay as they are written.
    let written = |name: &str| Some(format!("${{{name}}}"));
    let name = project.servers_file().display().to_string();
    match windlass_mcp::file::parse(file, &name, &written) {
        Err(why) => drop(writeln!(text, "  {}", line(&why))),
        Ok((servers, _)) => servers.iter().for_each(|server| server_lines(server, text)),
    }
}

fn server_lines(server: &McpServerConfig, text: &mut String) {
    let _ = writeln!(text, "  {}", line(&server.name));
    match &server.transport {
        McpTransport::Http(http) => {
            let _ = writeln!(text, "      sends data to {}", line(&http.url));
        }
        McpTransport::Stdio(stdio) => {
            let words = std::iter::once(&stdio.command).chain(&stdio.args);
            let words: Vec<String> = words.map(|argument| word(argument)).collect();
            let _ = writeln!(text, "      {}", words.join(" "));
            let network = if stdio.access.network {
                "network"
            } else {
                "no network"
            };
            let sandbox = if stdio.access.sandbox {
                ""
            } else {
                ", WITHOUT A SANDBOX (asks again)"
            };
            let devices: String = stdio
                .access
                .devices
                .iter()
                .map(|device| format!(", {}", line(device)))
                .collect();
            let env: Vec<String> = stdio
                .env
                .iter()
                .map(|(name, value)| format!("{}={}", line(name), word(value)))
                .collect();
            let env = if env.is_empty() {
                "none".to_owned()
            } else {
                env.join(" ")
            };
            let _ = writeln!(
                text,
                "      access: {network}{devices}{sandbox}; environment: {env}"
            );
        }
    }
    if server.roots {
        text.push_str("      may learn the path of this folder\n");
    }
    if server.sampling.is_some() {
        text.push_str("      may ask your model for completions, each after your yes\n");
    }
}

fn tool(outline: &Outline, text: &mut String) {
    let category = category(outline.category);
    let network = if outline.network { ", network" } else { "" };
    let _ = writeln!(
        text,
        "  {} [{category}{network}] {}",
        line(&outline.name),
        line(&outline.description)
    );
    let env = outline.env.iter();
    let env = env.map(|(name, value)| format!("{}={}", line(name), word(value)));
    let command = outline.command.iter().map(|argument| word(argument));
    let groups = outline.optional.iter().map(|group| {
        let words: Vec<String> = group.iter().map(|argument| word(argument)).collect();
        format!("[{}]", words.join(" "))
    });
    let words: Vec<String> = env.chain(command).chain(groups).collect();
    let _ = writeln!(text, "      {}", words.join(" "));
}

/// Returns the word for a category.
fn category(category: Category) -> &'static str {
    match category {
        Category::Read => "read",
        Category::Write => "write",
        Category::Admin => "admin",
    }
}

/// Formats an argument, in quotes unless it is clearly one word.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,@%+{}$".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        plain(&quote(text))
    }
}

/// Puts foreign text on one line.
pub(super) fn line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
