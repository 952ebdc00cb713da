//! `windlass tools`: what a model can call, and your own tools tried without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::id::{CallId, SessionId};
use windlass_core::tool::{Progress, ToolContext};
use windlass_tools::declared::{Declarations, Paths, Source};

use crate::args::{SettingsOptions, ToolsCommand};
use crate::assemble::{Purpose, execution_context, tools};
use crate::environment;
use crate::exec::working_directory;
use crate::exit::{Exit, Problem};
use crate::signals::Signals;
use crate::terminal::{plain, say, tell};

/// The user's own tools.
pub(crate) fn user_file() -> Result<PathBuf, Problem> {
    Ok(environment::folders()?.config.join("tools.yaml"))
}

/// A project's tools. They do nothing until the folder is trusted.
fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(".windlass").join("tools.yaml")
}

/// Runs a subcommand.
pub(crate) async fn command(command: ToolsCommand) -> Result<Exit, Problem> {
    match command {
        ToolsCommand::List { settings } => list(&settings),
        ToolsCommand::Check { file } => check(file),
        ToolsCommand::Run {
            name,
            arguments,
            settings,
        } => run(&name, &arguments, &settings).await,
    }
}

fn purpose() -> Result<Purpose, Problem> {
    Ok(Purpose {
        cwd: working_directory(None)?,
        session: SessionId::from("tools"),
        require_done: true,
    })
}

fn list(options: &SettingsOptions) -> Result<Exit, Problem> {
    let purpose = purpose()?;
    let settings = environment::settings(options, &purpose.cwd, Vec::new())?;
    let place = execution_context(&purpose);
    let (tools, _) = tools(&settings, &purpose, &place)?;
    for spec in tools.specs() {
        let first = spec.description.split_inclusive(". ").next().unwrap_or_default();
        say!("{:<18} {}", spec.name, plain(first.trim()));
    }
    let project = project_file(&purpose.cwd);
    if project.exists() {
        tell!(
            "{}: the tools of this project do nothing, because the folder is not trusted",
            project.display()
        );
    }
    Ok(Exit::Ok)
}

fn check(file: Option<PathBuf>) -> Result<Exit, Problem> {
    let file = match file {
        Some(file) => file,
        None => user_file()?,
    };
    if !file.exists() {
        return Err(Problem::usage(format!(
            "{}: there is no such file",
            file.display()
        )));
    }
    let paths = Paths {
        user: Some(file.clone()),
        project: None,
    };
    match Declarations::read(&paths) {
        Ok(declarations) => {
            say!(
                "{}: {} tools, nothing wrong",
                file.display(),
                declarations.names().len()
            );
            Ok(Exit::Ok)
        }
        Err(error) => Err(Problem::new(Exit::Config, error.to_string())),
    }
}

async fn run(name: &str, arguments: &str, options: &SettingsOptions) -> Result<Exit, Problem> {
    let purpose = purpose()?;
    let settings = environment::settings(options, &purpose.cwd, Vec::new())?;
    let place = execution_context(&purpose);
    let (tools, _) = tools(&settings, &purpose, &place)?;
    let Some(tool) = tools.get(name) else {
        let known: Vec<_> = tools.specs().into_iter().map(|spec| spec.name).collect();
        return Err(Problem::usage(format!(
            "there is no tool `{name}`; there are {}",
            known.join(", ")
        )));
    };
    let call = Arc::clone(tool)
        .prepare(arguments)
        .map_err(|error| Problem::usage(error.to_string()))?;
    let cancel = CancellationToken::new();
    let cx = ToolContext {
        call_id: CallId::from("run"),
        cancel: cancel.clone(),
        execution: place,
        progress: Progress::none(),
    };
    let signals = Signals::listen();
    let running = call.run(cx);
    tokio::pin!(running);
    let result = tokio::select! {
        result = &mut running => result,
        () = signals.interrupted() => {
            cancel.cancel();
            running.await
        }
    };
    windlass_tools::process::settle(std::time::Duration::from_secs(3)).await;
    match result {
        Ok(output) => {
            say!("{}", output.content);
            Ok(if output.failed { Exit::Failed } else { Exit::Ok })
        }
        Err(error) => Err(Problem::new(Exit::Failed, error.to_string())),
    }
}

/// The user's declared tools, if there are any.
pub(crate) fn declared() -> Result<Declarations, Problem> {
    let paths = Paths {
        user: Some(user_file()?),
        project: None,
    };
    let declarations =
        Declarations::read(&paths).map_err(|error| Problem::new(Exit::Config, error.to_string()))?;
    Ok(declarations.only(Source::User))
}
