//! `windlass hooks`: lists the user's hooks, and runs those of an event.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::id::CallId;
use windlass_core::permission::Proposal;
use windlass_hooks::{Combined, HookChoice, HookRun, Occasion, SessionFacts, check, claude, report};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_args::{HookTest, HooksCommand};
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::extension::HookSources;
use windlass_host::factory::{SessionSpec, tools};

/// Runs a subcommand.
pub(crate) async fn command(command: HooksCommand) -> Result<Exit, Problem> {
    match command {
        HooksCommand::List { json } => list(json),
        HooksCommand::Test(options) => test(&options).await,
    }
}

fn sources() -> Result<HookSources, Problem> {
    Ok(HookSources::new(
        environment::folders()?,
        &working_directory(None)?,
    ))
}

fn list(as_json: bool) -> Result<Exit, Problem> {
    let sources = sources()?;
    let (set, untrusted) = sources.read();
    let runs = sources.recorded();
    if !as_json {
        say!("{}", plain(&report(&set, &runs, untrusted.as_deref())));
        return Ok(Exit::Ok);
    }
    let hooks = set.handlers().map(|hook| {
        json!({
            "event": hook.occasion.name(), "matcher": hook.matcher.text(), "command": hook.program.to_string(),
            "file": hook.file, "async": hook.is_async,
        })
    });
    let problems = set.files().iter().flat_map(|file| {
        let problems = file.problems.iter();
        problems.map(|problem| json!({"file": file.path, "problem": problem}))
    });
    let all = json!({
        "hooks": hooks.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "untrusted": untrusted,
        "runs": runs.runs().collect::<Vec<_>>(),
        "skipped": runs.skipped().collect::<Vec<_>>(),
    });
    say!("{all:#}");
    Ok(Exit::Ok)
}

async fn test(options: &HookTest) -> Result<Exit, Problem> {
    let Some(occasion) = Occasion::named(&options.event) else {
        let known = Occasion::ALL.map(Occasion::name).join(", ");
        return Err(Problem::usage(format!(
            "`{}` is not an event; there are {known}",
            options.event
        )));
    };
    let text = options.input.as_deref().unwrap_or("{}");
    let input: Value = serde_json::from_str(text)
        .map_err(|error| Problem::usage(format!("--input is not valid JSON: {error}")))?;
    let cwd = working_directory(None)?;
    let settings = environment::settings(&options.settings.given(), &cwd)?;
    let proposal = match (&options.tool, occasion.is_about_calls()) {
        (Some(tool), true) => Some(proposed(&settings, claude::own_name(tool), &input)?),
        (None, true) => return Err(Problem::usage(format!("{} needs --tool", occasion.name()))),
        (Some(_), false) => return Err(Problem::usage(format!("{} is not about a tool", occasion.name()))),
        (None, false) => None,
    };
    let sources = sources()?;
    let (set, untrusted) = sources.read();
    if let Some(notice) = &untrusted {
        say!("! {}", plain(notice));
    }
    let facts = SessionFacts {
        session: "hooks-test".to_owned(),
        ..SessionFacts::default()
    };
    let hooks = sources.session(&settings, facts, set);
    let more = if proposal.is_some() { Value::Null } else { input };
    let combined = hooks
        .try_out(occasion, &options.subject, proposal.as_ref(), more)
        .await;
    hooks.settle().await;
    let (_, runs) = hooks.shown();
    for run in runs.runs().chain(runs.skipped()) {
        say!("{}", plain(&line(run)));
    }
    if runs.runs().chain(runs.skipped()).next().is_none() {
        say!("no hooks for {}", occasion.name());
    }
    outcome(&combined);
    Ok(match combined.choice {
        HookChoice::Deny | HookChoice::Ask => Exit::Denied,
        HookChoice::Allow | HookChoice::None => Exit::Ok,
    })
}

fn line(run: &HookRun) -> String {
    match &run.skipped {
        Some(why) => format!("did not run  {}  ({why})", run.command),
        None => format!(
            "ran          {}  ({} ms, exit {}, {})",
            run.command, run.ms, run.exit, run.decision
        ),
    }
}

/// Prints the combined answer.
fn outcome(combined: &Combined) {
    if combined.choice != HookChoice::None {
        say!(
            "decision: {} {}",
            combined.choice.name(),
            plain(&combined.reason())
        );
    }
    if let Some(input) = &combined.input {
        say!("new input: {}", plain(&input.to_string()));
    }
    for (_, text) in &combined.context {
        say!("context: {}", plain(text));
    }
    for message in combined.messages.iter().chain(&combined.stop) {
        say!("message: {}", plain(message));
    }
}

/// Returns the call as the hooks of a session would see it.
fn proposed(settings: &Settings, tool: &str, input: &Value) -> Result<Proposal, Problem> {
    let spec = SessionSpec::looking(&working_directory(None)?, "hooks");
    let (catalog, _) = tools(settings, &spec)?;
    let Some(found) = catalog.tools().get(tool) else {
        return Err(Problem::usage(format!(
            "--tool: there is no tool `{tool}`; `windlass tools list` shows them"
        )));
    };
    let prepared = Arc::clone(found).prepare(&input.to_string());
    let prepared = prepared.map_err(|error| Problem::new(ProblemKind::Usage, format!("--input: {error}")))?;
    Ok(prepared.proposal(&CallId::from("test"), tool, &spec.cwd))
}

/// Returns what is wrong with the hooks in this folder, and the number of hooks.
pub(crate) fn problems(settings: &Settings) -> Result<(usize, Vec<String>), Problem> {
    let sources = sources()?;
    let (set, untrusted) = sources.read();
    let mut wrong = check(&set, &sources.host(settings));
    wrong.extend(untrusted);
    Ok((set.handlers().count(), wrong))
}
