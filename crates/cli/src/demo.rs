//! `windlass demo`: the simulated model finds, fixes and verifies a bug with real tools over real HTTP.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use windlass_providers::Wire;
use windlass_sim::{Brain, DEMO_FILES, demo_script};

use crate::exec::{Extras, Job, run};
use crate::exit::Exit;
use crate::output::Style;
use crate::session_choice::{SessionChoice, SessionStore};
use crate::terminal::say;
use windlass_args::{DemoOptions, DemoWire, OutputFormat};
use windlass_config::environment;
use windlass_config::environment::Given;
use windlass_config::{Problem, ProblemKind};
use windlass_host::connect::{connect_sim, start_sim};
use windlass_host::models::Models;
use windlass_host::watch::Watch;

const PROMPT: &str = "The test in this folder fails. Find out why, fix it, and show that the test passes.";

/// Runs the demonstration. Succeeds only if the test that failed before now passes.
pub(crate) async fn demo(options: &DemoOptions) -> Result<Exit, Problem> {
    let (folder, _temporary) = folder(options.keep.as_deref())?;
    write_project(&folder)?;
    say!("A small project with a failing test is in {}", folder.display());
    say!("The tools and the HTTP are real; only the model is not. A script plays its part.\n");
    if test_passes(&folder)? {
        return Err(Problem::new(
            ProblemKind::Failed,
            "the demo's test should fail before the fix, but it passes",
        ));
    }
    say!("$ sh test.sh      (fails)\n> {PROMPT}\n");

    let settings = environment::settings(&Given::default(), &folder)?;
    let settings = Arc::new(settings);
    let sim = start_sim(Brain::script(demo_script())).await?;
    let connection = connect_sim(&settings, sim, wire(options.wire)).await?;
    let style = Style {
        live: true,
        ..Style::detect(false, &environment::var)
    };
    let job = Job {
        prompt: PROMPT.to_owned(),
        is_command: false,
        schema: None,
        format: OutputFormat::Text,
        require_done: false,
        style,
        interactive: false,
        which: SessionChoice::Ephemeral,
        fork: false,
        given: Given::default(),
        watch: Watch::default(),
        extras: Extras::default(),
    };
    let result = run(
        &settings,
        &Models::with(&settings, connection),
        folder.clone(),
        job,
        SessionStore::open(&SessionChoice::Ephemeral)?,
    )
    .await?;
    if result.exit != Exit::Ok {
        return Ok(result.exit);
    }
    if !test_passes(&folder)? {
        return Err(Problem::new(
            ProblemKind::Failed,
            "the model said it was done, but the test still fails",
        ));
    }
    say!("\n$ sh test.sh      (passes, verified again after the model finished)\n");
    say!("This was Windlass with a simulated model. To use a real one:\n");
    say!("  export ANTHROPIC_API_KEY=…     or OPENAI_API_KEY, or see `windlass doctor`");
    say!("  windlass exec \"fix the failing test\"\n");
    say!("Without a key: `windlass exec --provider sim \"list the files here\"`. More: `windlass --help`.");
    Ok(Exit::Ok)
}

fn folder(keep: Option<&Path>) -> Result<(PathBuf, Option<tempfile::TempDir>), Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(
            ProblemKind::Failed,
            format!("cannot create a folder for the demo: {error}"),
        )
    };
    match keep {
        Some(path) => {
            let occupied = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
            if occupied {
                return Err(Problem::usage(format!(
                    "--keep {}: this folder is not empty",
                    path.display()
                )));
            }
            std::fs::create_dir_all(path).map_err(failed)?;
            Ok((std::fs::canonicalize(path).map_err(failed)?, None))
        }
        None => {
            let cache = environment::folders()?.cache;
            std::fs::create_dir_all(&cache).map_err(failed)?;
            let temporary = tempfile::Builder::new()
                .prefix("windlass-demo-")
                .tempdir_in(std::fs::canonicalize(cache).map_err(failed)?)
                .map_err(failed)?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}

fn write_project(folder: &Path) -> Result<(), Problem> {
    for (name, content) in DEMO_FILES {
        let path = folder.join(name);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, content));
        written.map_err(|error| {
            Problem::new(
                ProblemKind::Failed,
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
    }
    Ok(())
}

fn test_passes(folder: &Path) -> Result<bool, Problem> {
    let status = Command::new("/bin/sh")
        .arg("test.sh")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status
        .map(|status| status.success())
        .map_err(|error| Problem::new(ProblemKind::Failed, format!("cannot run `sh test.sh`: {error}")))
}

fn wire(wire: DemoWire) -> Wire {
    match wire {
        DemoWire::Anthropic => Wire::Anthropic,
        DemoWire::Chat => Wire::Chat,
        DemoWire::Responses => Wire::Responses,
    }
}
