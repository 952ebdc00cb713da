//! CTX-14: `windlass lab context`: compares the cost of context strategies and the facts they retain.
//! `windlass lab memory` does the same for memory across sessions.

mod memory;

use std::path::Path;

use windlass_core::log::Store;
use windlass_core::model::Model;
use windlass_core::provider::Prefix;
use windlass_lab::{Experiment, Report, Session, Summarizer, plot, recorded, synthetic};
use windlass_providers::{registry, tokens};

use crate::exit::Exit;
use crate::{print_text, session_choice};
use windlass_args::{LabCommand, LabContextOptions, LabSummarizer};
use windlass_config::{Problem, ProblemKind};

/// Runs the command.
pub(crate) async fn command(command: LabCommand) -> Result<Exit, Problem> {
    match command {
        LabCommand::Context(options) => context(&options).await,
        LabCommand::Memory(options) => memory::compare(&options).await,
    }
}

async fn context(options: &LabContextOptions) -> Result<Exit, Problem> {
    let sessions = sessions(options).await?;
    let mut model = priced(&options.model)?;
    model.context_window = options.window;
    let setup = Experiment {
        model,
        counters: tokens::counter_for,
        summarizer: match options.summarizer {
            LabSummarizer::Extract => Summarizer::Extract,
            LabSummarizer::Nothing => Summarizer::Nothing,
        },
    };
    let report = Report::new(&sessions, &setup).await;
    if let Some(file) = &options.svg {
        write(file, &plot(&report))?;
    }
    if options.json {
        let json = serde_json::to_string_pretty(&report);
        return print_text(&json.map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?);
    }
    print_text(&report.table())
}

/// Returns a model whose prices are known.
fn priced(name: &str) -> Result<Model, Problem> {
    let model = registry::lookup(name, &[]);
    if model.known {
        return Ok(model);
    }
    let near = registry::similar(name);
    let hint = match near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(", ")),
    };
    Err(Problem::usage(format!("no prices are known for {name}{hint}")))
}

fn write(file: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(file, text)
        .map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", file.display())))
}

/// Loads the named sessions, then generates the synthetic ones.
async fn sessions(options: &LabContextOptions) -> Result<Vec<Session>, Problem> {
    let mut sessions = Vec::new();
    if !options.sessions.is_empty() {
        let store = session_choice::store()?;
        for called in &options.sessions {
            sessions.push(load(&*store, called).await?);
        }
    }
    for number in 0..options.synthetic.unwrap_or(0) {
        let calls = usize::try_from(options.calls).unwrap_or(usize::MAX);
        sessions.push(synthetic::generate(options.seed.wrapping_add(number), calls));
    }
    if sessions.is_empty() {
        return Err(Problem::usage(
            "name a session (`windlass sessions list` shows them), or generate some with --synthetic",
        ));
    }
    Ok(sessions)
}

async fn load(store: &dyn Store, called: &str) -> Result<Session, Problem> {
    let info = session_choice::find(store, called).await?;
    let entries = windlass_core::log::record(store, &info.id)
        .await
        .map_err(session_choice::problem)?;
    let name = info.label.name.or(info.label.title);
    let name = name.unwrap_or_else(|| info.id.to_string());
    let session = recorded(&name, &entries, frame(store, &info.id).await?);
    if session.messages.is_empty() {
        return Err(Problem::usage(format!("session {} has no messages", info.id)));
    }
    Ok(session)
}

/// Returns the system prompt and tools of the first recorded request; empty if none was recorded.
async fn frame(store: &dyn Store, session: &windlass_api::SessionId) -> Result<Prefix, Problem> {
    let exchanges = store.exchanges(session).await.map_err(session_choice::problem)?;
    let Some(digest) = exchanges.iter().find_map(|exchange| exchange.frame.clone()) else {
        return Ok(Prefix::default());
    };
    let frame = store.frame(&digest).await.map_err(session_choice::problem)?;
    Ok(frame.map(|frame| frame.prefix()).unwrap_or_default())
}
