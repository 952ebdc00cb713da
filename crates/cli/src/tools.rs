//! `windlass tools`: lists the tools of a model, and checks and runs tools without one.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::id::CallId;
use windlass_core::text::count;
use windlass_core::tool::{CallModel, Person, Progress, ToolContext};
use windlass_tools::declared::{Declarations, Paths, Source};

use crate::args::{SettingsOptions, ToolsCommand};
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::terminal::{plain, say, tell_warnings};
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_host::factory::{SessionSpec, tools};
use windlass_host::tool_catalog::{ToolCatalog, source};

/// Runs a subcommand.
pub(crate) async fn command(command: ToolsCommand) -> Result<Exit, Problem> {
    match command {
        ToolsCommand::List { settings } => list(&settings),
        ToolsCommand::Check { file } => check(file),
        ToolsCommand::Run {
            name,
            arguments,
            yes,
            settings,
        } => run(&name, &arguments, yes, &settings).await,
    }
}

fn spec() -> Result<SessionSpec, Problem> {
    Ok(SessionSpec::looking(&working_directory(None)?, "tools"))
}

/// Returns the tools of this folder, and reports invalid files and files that are not in effect.
fn catalog(options: &SettingsOptions, spec: &SessionSpec) -> Result<ToolCatalog, Problem> {
    let settings = environment::settings(&options.given(), &spec.cwd)?;
    let (catalog, _) = tools(&settings, spec)?;
    tell_warnings(&settings.warnings);
    tell_warnings(catalog.notices());
    Ok(catalog)
}

fn list(options: &SettingsOptions) -> Result<Exit, Problem> {
    let catalog = catalog(options, &spec()?)?;
    let specs = catalog.tools().specs();
    let width = specs.iter().map(|spec| spec.name.chars().count()).max();
    let width = width.unwrap_or_default();
    for spec in specs {
        let first = spec.description.split_inclusive(". ").next().unwrap_or_default();
        let source = source(catalog.declared(), &spec.name);
        say!("{:<width$} {source:<9} {}", spec.name, plain(first.trim()));
    }
    Ok(Exit::Ok)
}

/// Checks a file, or the user's and the project's files together. Nothing runs, so trust does not matter.
fn check(file: Option<PathBuf>) -> Result<Exit, Problem> {
    let paths = match file {
        Some(file) => Paths {
            user: Some(file),
            project: None,
        },
        None => {
            let folders = environment::folders()?;
            let project = folders.project(&working_directory(None)?);
            let project = project.map(|project| project.tools_file());
            Paths {
                user: Some(folders.user_tools()),
                project: project.filter(|file| file.exists()),
            }
        }
    };
    let files = [(&paths.user, Source::User), (&paths.project, Source::Project)];
    let files = files.map(|(file, source)| file.as_ref().filter(|file| file.exists()).zip(Some(source)));
    if files.iter().all(Option::is_none) {
        let name = paths.user.as_deref().map(Path::display);
        let name = name.map(|name| name.to_string()).unwrap_or_default();
        return Err(Problem::usage(format!("{name}: no such file")));
    }
    let declarations =
        Declarations::read(&paths).map_err(|error| Problem::new(ProblemKind::Config, error.to_string()))?;
    for (file, source) in files.into_iter().flatten() {
        let tools = count(declarations.only(source).names().len(), "tool");
        say!("{}: {tools}, no problems", plain(&file.display().to_string()));
    }
    Ok(Exit::Ok)
}

async fn run(name: &str, arguments: &str, yes: bool, options: &SettingsOptions) -> Result<Exit, Problem> {
    let spec = spec()?;
    let catalog = catalog(options, &spec)?;
    let tools = catalog.tools();
    let Some(tool) = tools.get(name) else {
        let known: Vec<_> = tools.specs().into_iter().map(|spec| spec.name).collect();
        return Err(Problem::usage(format!(
            "there is no tool `{name}`; available: {}",
            known.join(", ")
        )));
    };
    let call = Arc::clone(tool)
        .prepare(arguments)
        .map_err(|error| Problem::usage(error.to_string()))?;
    if call.escalation.protected && !yes {
        let reasons = call.reasons.join(", ");
        let why = format!("{name} needs your approval: {}; --yes gives it", plain(&reasons));
        return Err(Problem::new(ProblemKind::Denied, why));
    }
    let cancel = CancellationToken::new();
    let cx = ToolContext {
        call_id: CallId::from("run"),
        cancel: cancel.clone(),
        execution: catalog.execution(),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: yes,
        places: Arc::default(),
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
    windlass_sandbox::process::settle(std::time::Duration::from_secs(3)).await;
    match result {
        Ok(output) => {
            // A pipe gets the output as it is; a terminal must not be controlled by it.
            match std::io::stdout().is_terminal() {
                true => say!("{}", plain(&output.content)),
                false => say!("{}", output.content),
            }
            Ok(if output.failed { Exit::Failed } else { Exit::Ok })
        }
        Err(error) => Err(Problem::new(ProblemKind::Failed, error.to_string())),
    }
}
