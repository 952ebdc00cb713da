//! CTX-14: `windlass lab memory`.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{Message, SessionId};
use windlass_config::environment::{self, Given};
use windlass_config::{Problem, ProblemKind};
use windlass_core::log::SessionQuery;
use windlass_core::message::Fragment;
use windlass_host::memory::{MemoryTrial, project};
use windlass_lab::{Experiment, MemoryReport, Recall, Session, Summarizer, synthetic};
use windlass_providers::tokens;

use super::{load, priced};
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::{print_text, session_choice};
use windlass_args::LabMemoryOptions;

/// Maximum number of sessions of a folder.
const MOST: usize = 500;

/// Window of the simulated model: no session is compacted.
const WINDOW: u64 = 100_000_000;

/// Runs the command.
pub(super) async fn compare(options: &LabMemoryOptions) -> Result<Exit, Problem> {
    let sessions = sessions(options).await?;
    let mut model = priced(&options.model)?;
    model.context_window = WINDOW;
    let setup = Experiment {
        model,
        counters: tokens::counter_for,
        summarizer: Summarizer::Nothing,
    };
    let settings = environment::settings(&Given::default(), &working_directory(None)?)?;
    let trial = MemoryTrial::new(&settings, !options.words)?;
    let search = if trial.has_vectors() {
        "by words and meaning"
    } else {
        "by words"
    };
    let report = MemoryReport::new(&sessions, &Trial(trial), search, &setup).await;
    let failed = |text: String| Problem::new(ProblemKind::Failed, text);
    let report = report.map_err(failed)?;
    if options.json {
        let json = serde_json::to_string_pretty(&report);
        return print_text(&json.map_err(|error| failed(error.to_string()))?);
    }
    print_text(&report.table())
}

/// Returns the sessions in the order in which they took place.
async fn sessions(options: &LabMemoryOptions) -> Result<Vec<Session>, Problem> {
    if let Some(count) = options.synthetic {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        return Ok(synthetic::generate_series(options.seed, count));
    }
    let store = session_choice::store()?;
    let mut found = Vec::new();
    if options.all {
        let query = SessionQuery {
            place: Some(project(&working_directory(None)?)),
            used: true,
            limit: MOST,
            ..SessionQuery::default()
        };
        found = store.list(&query).await.map_err(session_choice::problem)?;
    }
    for called in &options.sessions {
        found.push(session_choice::find(&*store, called).await?);
    }
    if found.is_empty() {
        return Err(Problem::usage(
            "there are no sessions: name some, or use --all in a folder that has sessions, or --synthetic",
        ));
    }
    found.sort_by_key(|info| info.created_at);
    found.dedup_by(|one, other| one.id == other.id);
    let mut sessions = Vec::new();
    for info in found {
        match load(&*store, info.id.as_str()).await {
            Ok(session) => sessions.push(session),
            // A session without messages has nothing to remember.
            Err(_) if options.all => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(sessions)
}

/// The memory of the product, for the lab.
struct Trial(MemoryTrial);

fn id(session: &Session) -> SessionId {
    let first = session.messages.first();
    first.map_or_else(
        || SessionId::from(session.name.as_str()),
        |message| message.session_id.clone(),
    )
}

#[async_trait]
impl Recall for Trial {
    async fn before_turn(&self, session: &Session, history: &[Arc<Message>]) -> Option<Fragment> {
        self.0.recall(&id(session), history).await
    }

    async fn keep(&self, session: &Session) -> Result<(), String> {
        self.0.keep(&id(session), &session.messages).await
    }
}
