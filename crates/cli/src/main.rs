//! Windlass: an agent runtime in one binary.
//!
//! This crate is the assembly: the command line ([`windlass_args`]), the settings ([`settings`]), and the few lines
//! that put a provider, tools and the loop together ([`connect`], [`engine`]). The output of a run is in
//! [`output`].

mod acp;
mod agents;
mod asking;
mod attach;
mod audit;
mod channel;
mod cluster;
mod code;
mod connect;
mod cron;
mod db;
mod demo;
mod desktop;
mod doctor;
mod editor;
mod engine;
mod exec;
mod exit;
mod export;
mod file_walk;
mod first_message;
mod hooks;
mod interactive;
mod lab;
mod mcp;
mod mcp_serve;
mod memory;
mod observe;
mod output;
mod permissions;
mod plugins;
mod repl;
mod replay;
mod sandbox;
mod serve;
mod session_choice;
mod session_folder;
mod sessions;
mod signals;
mod sim;
mod skills;
mod terminal;
mod terminal_ui;
mod tools;
mod trust;
mod verify;

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::exit::Exit;
use crate::terminal::tell;
use windlass_args::{
    Cli, Command, ConfigCommand, McpCommand, PermissionsCommand, SettingsOptions, SimCommand,
};
use windlass_config::{Problem, ProblemKind};
use windlass_config::{environment, settings};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == windlass_sandbox::HELPER)
    {
        // The launcher holds no secret. It hides itself once it has entered its namespaces, which a process that
        // is hidden already cannot do.
        windlass_sandbox::enter(arguments);
    }
    windlass_sandbox::protect_process();
    let cli = Cli::of_process().unwrap_or_else(|error| wrong_arguments(&error));
    // This command needs no runtime: the sandboxed process takes over this thread.
    if let Some(Command::Sandbox(options)) = &cli.command {
        return sandbox::sandbox(options).map_or_else(|problem| fail(&problem), ExitCode::from);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tell!("error: cannot start: {error}");
            return ExitCode::from(Exit::Failed as u8);
        }
    };
    let result = runtime.block_on(dispatch(cli));
    // A thread that waits for standard input must not keep the program from ending.
    runtime.shutdown_background();
    windlass_sandbox::release_placeholders();
    match terminal::Stdout::error().filter(|_| is_fine(&result)) {
        Some(error) => fail(&Problem::new(
            ProblemKind::Failed,
            format!("standard output: {error}"),
        )),
        None => result.map_or_else(|problem| fail(&problem), |exit| ExitCode::from(exit as u8)),
    }
}

/// Returns true if nothing failed, except perhaps the output.
fn is_fine(result: &Result<Exit, Problem>) -> bool {
    match result {
        Ok(exit) => matches!(exit, Exit::Ok | Exit::BrokenPipe),
        Err(problem) => problem.kind == ProblemKind::BrokenPipe,
    }
}

/// Reports wrong arguments, which an error repeats, without anything that affects a terminal.
fn wrong_arguments(error: &clap::Error) -> ! {
    let text = error.to_string();
    if terminal::plain(&text) != text {
        tell!("{}", terminal::plain(&text).trim_end());
    } else if let Err(full) = error.print()
        && full.kind() != std::io::ErrorKind::BrokenPipe
        && !error.use_stderr()
    {
        tell!("error: standard output: {full}");
        std::process::exit(Exit::Failed as i32);
    }
    std::process::exit(error.exit_code())
}

fn fail(problem: &Problem) -> ExitCode {
    tell!("error: {}", terminal::plain(&problem.message));
    ExitCode::from(Exit::from(problem.kind) as u8)
}

async fn dispatch(cli: Cli) -> Result<Exit, Problem> {
    windlass_providers::install_tls();
    // Best effort: without it, processes that escape their parent are still found by their marker.
    let _ = windlass_sandbox::process::adopt_orphans();
    session_choice::choose_store(&cli)?;
    match (cli.command, cli.print) {
        (Some(command), _) => command_line(command).await,
        (None, Some(prompt)) => {
            // `-p` may stand before other options, with the prompt after them.
            let first = (prompt != "-" || cli.prompt.is_empty()).then_some(prompt);
            let words: Vec<String> = first.into_iter().chain(cli.prompt).collect();
            exec::exec(&words, &cli.exec).await
        }
        (None, None) if cli.prompt.is_empty() => interactive::interactive(&cli.exec, &cli.front, None).await,
        (None, None) => first_message::run(cli.prompt, &cli.exec, &cli.front).await,
    }
}

async fn command_line(command: Command) -> Result<Exit, Problem> {
    match command {
        Command::Exec(command) => exec::exec(&command.prompt, &command.options).await,
        Command::Acp(options) => acp::acp(&options).await,
        Command::Mcp { command } => match command {
            McpCommand::Serve(options) => mcp_serve::serve(&options).await,
            McpCommand::Client(command) => mcp::command(command).await,
        },
        Command::Demo(options) => demo::demo(&options).await,
        Command::Connect(options) => connect::command(&options).await,
        Command::Doctor {
            settings,
            offline: _,
            security: true,
        } => doctor::security::report(&settings),
        Command::Doctor {
            settings, offline, ..
        } => doctor::doctor(&settings, offline).await,
        Command::Sessions { command } => sessions::command(command).await,
        Command::Memory { command } => memory::command(command).await,
        Command::Agents(options) => agents::command(options).await,
        Command::Checkpoint { command } => {
            let (line, session) = command.into_line();
            exec::kept(line, session, SettingsOptions::default()).await
        }
        Command::Undo(options) => {
            let (line, session) = options.into_line("/undo");
            exec::kept(line, session, SettingsOptions::default()).await
        }
        Command::Redo { force, of } => {
            let line = if force { "/redo --force" } else { "/redo" };
            exec::kept(line.to_owned(), of.session, SettingsOptions::default()).await
        }
        Command::Verify { session, settings } => verify::command(session, settings).await,
        Command::Context { command } => {
            let (line, session, settings) = command.into_line();
            exec::kept(line, session, settings).await
        }
        Command::Replay(options) => replay::replay(&options).await,
        Command::Export { command } => export::command(command).await,
        Command::Lab { command } => lab::command(command).await,
        Command::Cron { command } => cron::command(command).await,
        Command::Channel { command } => channel::command(command).await,
        Command::Serve(options) => serve::serve(&options).await,
        Command::Cluster { command } => cluster::command(&command).await,
        Command::Attach(options) => attach::attach(&options).await,
        Command::Token { command } => serve::token(command).await,
        Command::Audit { command } => audit::command(command).await,
        Command::Code { command } => code::command(command),
        Command::Db { command } => db::command(&command).await,
        Command::Config { command } => config(command),
        Command::Tools { command } => tools::command(command).await,
        Command::Skills { command } => skills::command(command),
        Command::Plugins { command } => plugins::command(command).await,
        Command::Trust(options) => audit::trusted(trust::command(&options)?).await,
        Command::Hooks { command } => hooks::command(command).await,
        // Handled before the runtime was created.
        Command::Sandbox(_) => Ok(Exit::Ok),
        Command::Permissions { command } => match command {
            PermissionsCommand::List { settings } => permissions::list(&settings),
            PermissionsCommand::Forget => permissions::forget(),
            PermissionsCommand::Test(options) => permissions::test(&options).await,
        },
        Command::Sim {
            command:
                SimCommand::Serve {
                    script,
                    port,
                    api_key,
                },
        } => sim::serve(script.as_deref(), port, api_key).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "windlass", &mut script);
            print_text(&String::from_utf8_lossy(&script))
        }
        Command::Man { command } => manual(command.as_deref()),
    }
}

fn config(command: ConfigCommand) -> Result<Exit, Problem> {
    match command {
        ConfigCommand::Show {
            origin,
            settings: options,
        } => {
            let cwd = engine::working_directory(None)?;
            let settings = environment::settings(&options.given(), &cwd)?;
            terminal::tell_warnings(&settings.warnings);
            print_text(&settings::show(&settings, origin))
        }
        ConfigCommand::Schema => print_text(&format!("{:#}\n", settings::schema())),
        ConfigCommand::Reference => print_text(&settings::reference_markdown()),
        ConfigCommand::Explain { key } => match settings::explain(&key) {
            Ok(text) => print_text(&text),
            Err(message) => Err(Problem::usage(message)),
        },
        ConfigCommand::Path => {
            let folders = environment::folders()?;
            let cwd = engine::working_directory(None)?;
            let mut text = format!("{}\n", folders.user_file().display());
            if let Some(project) = folders.project_file(&cwd) {
                text.push_str(&format!("{}\n", project.display()));
            }
            print_text(&text)
        }
    }
}

fn manual(name: Option<&str>) -> Result<Exit, Problem> {
    let whole = Cli::command();
    let command = match name {
        None => whole,
        Some(name) => match whole.find_subcommand(name) {
            Some(command) => command
                .clone()
                .display_name(format!("windlass-{name}"))
                .bin_name(format!("windlass {name}")),
            None => {
                return Err(Problem::usage(format!(
                    "there is no command `{name}`: see `windlass --help`"
                )));
            }
        },
    };
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
    print_text(&String::from_utf8_lossy(&page))
}

/// Prints a text. A reader that is gone is no error worth reporting.
pub(crate) fn print_text(text: &str) -> Result<Exit, Problem> {
    let mut out = terminal::Stdout;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Ok),
        Err(_) => Ok(Exit::BrokenPipe),
    }
}
