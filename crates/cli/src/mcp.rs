//! `windlass mcp`: the MCP servers that Windlass uses.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_config::environment;
use windlass_config::settings::{KeyCommand, Settings};
use windlass_config::{Problem, ProblemKind};
use windlass_host::extension::mcp::{
    ConfiguredServers, GIVES_UP, ServerApprovals, is_unconfined, server_environment,
};
use windlass_host::mcp_files::{ServersFile, claude_servers, codex_servers};
use windlass_mcp::oauth::{ServerLogin, TokenFile, login};
use windlass_mcp::{McpServerConfig, McpTransport, Phase, ServerSet};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say, tell};
use windlass_args::{McpAddOptions, McpClientCommand, McpImportFrom, SettingsOptions};

/// Text in place of an empty list.
const NONE: &str = "No MCP servers; `windlass mcp add NAME -- COMMAND` adds one.";

/// Runs a subcommand.
pub(crate) async fn command(command: McpClientCommand) -> Result<Exit, Problem> {
    match command {
        McpClientCommand::Add(options) => add(&options),
        McpClientCommand::List { json, settings } => list(json, &settings),
        McpClientCommand::Remove { name } => remove(&name),
        McpClientCommand::Test { name, settings } => test(name.as_deref(), &settings).await,
        McpClientCommand::Login {
            name,
            scope,
            client_id,
            client_secret_env,
            settings,
        } => {
            let secret = client_secret_env.as_deref().and_then(environment::var);
            let client = (client_id.as_deref(), secret.as_deref());
            log_in(&name, &scope, client, &settings).await
        }
        McpClientCommand::Logout { name, settings } => log_out(&name, &settings),
        McpClientCommand::Approve { name, settings } => approve(&name, &settings),
        McpClientCommand::Import { from, file } => {
            let cwd = working_directory(None)?;
            let found = match from {
                McpImportFrom::Claude => claude_servers(file.as_deref(), &cwd)?,
                McpImportFrom::Codex => codex_servers(file.as_deref())?,
            };
            let total = found.len();
            let target = user_file()?;
            let added = target.add_all(found)?;
            say!(
                "added {} of {total} to {}: {}",
                added.len(),
                target.path().display(),
                plain(&added.join(", "))
            );
            Ok(Exit::Ok)
        }
    }
}

fn user_file() -> Result<ServersFile, Problem> {
    Ok(ServersFile::new(environment::folders()?.servers_file()))
}

fn add(options: &McpAddOptions) -> Result<Exit, Problem> {
    let usage = |text: &str| Problem::new(ProblemKind::Usage, text.to_owned());
    let mut entry = Map::new();
    match (&options.url, options.command.split_first()) {
        (Some(url), _) => {
            entry.insert("type".to_owned(), json!("http"));
            entry.insert("url".to_owned(), json!(url));
        }
        (None, Some((program, arguments))) => {
            entry.insert("command".to_owned(), json!(program));
            entry.insert("args".to_owned(), json!(arguments));
        }
        (None, None) => return Err(usage("name a command after `--`, or an address with --url")),
    }
    let pairs = |texts: &[String], between: char, example: &str| {
        let mut map = Map::new();
        for text in texts {
            let (name, value) = text
                .split_once(between)
                .ok_or_else(|| usage(&format!("`{text}`: write it as {example}")))?;
            map.insert(name.trim().to_owned(), json!(value.trim()));
        }
        Ok::<_, Problem>(map)
    };
    if !options.env.is_empty() {
        entry.insert(
            "env".to_owned(),
            Value::Object(pairs(&options.env, '=', "NAME=VALUE")?),
        );
    }
    if !options.header.is_empty() {
        entry.insert(
            "headers".to_owned(),
            Value::Object(pairs(&options.header, ':', "\"Name: value\"")?),
        );
    }
    if options.no_network {
        entry.insert("network".to_owned(), json!(false));
    }
    let target = match options.project {
        true => ServersFile::new(working_directory(None)?.join(".mcp.json")),
        false => user_file()?,
    };
    target.add(&options.name, Value::Object(entry))?;
    say!("added {} to {}", plain(&options.name), target.path().display());
    say!("`windlass mcp test {}` starts it once", plain(&options.name));
    Ok(Exit::Ok)
}

fn remove(name: &str) -> Result<Exit, Problem> {
    let target = user_file()?;
    target.remove(name)?;
    say!("removed {} from {}", plain(name), target.path().display());
    Ok(Exit::Ok)
}

/// Reads the servers of this folder, and reports what is not used.
fn configured(options: &SettingsOptions) -> Result<(Arc<Settings>, ConfiguredServers), Problem> {
    let cwd = working_directory(None)?;
    let settings = Arc::new(environment::settings(&options.given(), &cwd)?);
    let found = ConfiguredServers::read(&settings, &cwd)?;
    for warning in settings.warnings.iter().chain(&found.warnings) {
        tell!("{}", plain(warning));
    }
    Ok((settings, found))
}

fn find(name: &str, options: &SettingsOptions) -> Result<(Arc<Settings>, McpServerConfig), Problem> {
    let (settings, found) = configured(options)?;
    let names: Vec<String> = found.servers.iter().map(|server| server.name.clone()).collect();
    match found.servers.into_iter().find(|server| server.name == name) {
        Some(server) => Ok((settings, server)),
        None => Err(Problem::new(
            ProblemKind::Usage,
            format!("there is no MCP server {name}; there are: {}", names.join(", ")),
        )),
    }
}

fn list(json: bool, options: &SettingsOptions) -> Result<Exit, Problem> {
    let (_, found) = configured(options)?;
    if json {
        let row = |server: &McpServerConfig| json!({ "name": server.name, "from": server.origin.word(), "enabled": server.enabled, "line": server.line() });
        let rows: Vec<Value> = found.servers.iter().map(row).collect();
        say!("{}", Value::Array(rows));
        return Ok(Exit::Ok);
    }
    if found.servers.is_empty() {
        say!("{NONE}");
    }
    for server in &found.servers {
        let off = if server.enabled { "" } else { ", off" };
        say!(
            "{}  [{}{off}] {}",
            plain(&server.name),
            server.origin.word(),
            plain(&server.line())
        );
    }
    Ok(Exit::Ok)
}

async fn test(name: Option<&str>, options: &SettingsOptions) -> Result<Exit, Problem> {
    let (settings, servers) = match name {
        Some(name) => {
            let (settings, server) = find(name, options)?;
            (settings, vec![server])
        }
        None => {
            let (settings, found) = configured(options)?;
            if found.servers.is_empty() {
                say!("{NONE}");
            }
            (settings, found.servers)
        }
    };
    let lines = check(&settings, servers).await?;
    let mut exit = Exit::Ok;
    for (is_ready, line) in lines {
        say!("{}", plain(&line));
        if !is_ready {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Starts servers, and describes each on one line. The first value is false if it does not work.
pub(crate) async fn check(
    settings: &Arc<Settings>,
    servers: Vec<McpServerConfig>,
) -> Result<Vec<(bool, String)>, Problem> {
    let around = server_environment(settings, &working_directory(None)?, "test")?;
    let set = ServerSet::new(servers, around);
    let approvals = ServerApprovals::of_user();
    for server in set.servers() {
        if !is_unconfined(server.config()) || approvals.has(server.config()) {
            server.start();
        }
    }
    let mut lines = Vec::new();
    for server in set.servers() {
        let phase = server.settled().await;
        let report = server.report();
        let (name, config) = (&report.name, server.config());
        lines.push(match phase {
            Phase::Ready => (true, format!("{name}: ready, {}; tools: {}", report.about, report.tools.join(", "))),
            Phase::Failed(error) => (false, format!("{name}: {error}")),
            Phase::Off | Phase::Starting if !config.enabled => (true, format!("{name}: off")),
            Phase::Off | Phase::Starting => (
                false,
                format!("{name}: not started, because it runs without a sandbox: {GIVES_UP}; `windlass mcp approve {name}` allows it"),
            ),
        });
        lines.extend(
            report
                .left_out
                .into_iter()
                .map(|line| (true, format!("{name}: {line}"))),
        );
        server.stop();
    }
    Ok(lines)
}

async fn log_in(
    name: &str,
    scopes: &[String],
    (client_id, client_secret): (Option<&str>, Option<&str>),
    options: &SettingsOptions,
) -> Result<Exit, Problem> {
    let (settings, server) = find(name, options)?;
    let McpTransport::Http(http) = &server.transport else {
        return Err(Problem::new(
            ProblemKind::Usage,
            format!("{name} is a program: it has no login"),
        ));
    };
    let request = ServerLogin {
        url: &http.url,
        client_id,
        client_secret,
        scopes,
    };
    let browser = settings.tools.mcp.browser.clone();
    let tokens = TokenFile::new(environment::folders()?.server_tokens());
    let show = |url: &str| {
        say!("Open this page to log in:\n{}", plain(url));
        open(browser.as_ref(), url);
    };
    login(&tokens, &request, show)
        .await
        .map_err(|why| Problem::new(ProblemKind::Failed, format!("{name}: the login failed: {why}")))?;
    say!("logged in to {}", plain(name));
    Ok(Exit::Ok)
}

/// Opens a page in the browser. The user can open it by hand if this fails.
fn open(browser: Option<&KeyCommand>, url: &str) {
    let mut command = match browser {
        Some(KeyCommand::Program(words)) => {
            let Some((program, arguments)) = words.split_first() else {
                return;
            };
            let mut command = std::process::Command::new(program);
            command.args(arguments);
            command
        }
        Some(KeyCommand::Shell(line)) => {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &format!("{line} \"$1\""), "sh"]);
            command
        }
        None => std::process::Command::new("xdg-open"),
    };
    let quiet = std::process::Stdio::null;
    let _ = command
        .arg(url)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn();
}

fn log_out(name: &str, options: &SettingsOptions) -> Result<Exit, Problem> {
    let (_, server) = find(name, options)?;
    let McpTransport::Http(http) = &server.transport else {
        return Err(Problem::new(
            ProblemKind::Usage,
            format!("{name} is a program: it has no login"),
        ));
    };
    let tokens = TokenFile::new(environment::folders()?.server_tokens());
    let issuers = tokens
        .forget(&http.url)
        .map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
    if issuers.is_empty() {
        say!("there was no token");
    }
    for issuer in issuers {
        say!("forgot the token for {} from {}", plain(name), plain(&issuer));
    }
    Ok(Exit::Ok)
}

fn approve(name: &str, options: &SettingsOptions) -> Result<Exit, Problem> {
    let (_, server) = find(name, options)?;
    if !is_unconfined(&server) {
        say!("{} runs in the sandbox, and needs no approval", plain(name));
        return Ok(Exit::Ok);
    }
    let added = ServerApprovals::of_user().add(&server);
    added.map_err(|why| Problem::new(ProblemKind::Failed, why))?;
    say!("{} may run without a sandbox: {GIVES_UP}", plain(name));
    Ok(Exit::Ok)
}
