//! What a session's turns are made with. Whoever knows providers and tools implements this.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::SessionInfo;
use windlass_core::compact::Compactor;
use windlass_core::dispatch::Execution;
use windlass_core::middleware::Middleware;
use windlass_core::permission::{Approver, Asker, Policy};
use windlass_core::provider::{Prefix, Provider};
use windlass_core::run::IncompleteWork;
use windlass_core::tool::{ExecutionContext, Outputs, ToolSet};
use windlass_core::turn::Limits;

/// Makes benches.
#[async_trait]
pub trait Workshop: Send + Sync {
    /// The bench of a session that becomes live. `asker` reaches whoever answers its questions.
    ///
    /// # Errors
    /// Says, for people, why there is none.
    async fn bench(&self, session: &SessionInfo, asker: Arc<dyn Asker>) -> Result<Box<dyn Bench>, String>;
}

/// What one live session works with. It lives as long as the session does: tools know what the model has seen.
#[async_trait]
pub trait Bench: Send + Sync {
    /// The fixed things of the next turn. Files that changed since the last one count from here on.
    async fn setup(&mut self) -> Setup;

    /// Ends what the session has left running.
    async fn close(&mut self) {}
}

/// The fixed things of one turn.
pub struct Setup {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The tools.
    pub tools: ToolSet,
    /// System prompt and tool list, the same value as long as they are the same.
    pub prefix: Arc<Prefix>,
    /// The caps.
    pub limits: Limits,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
    /// How calls are run.
    pub calls: CallSettings,
    /// Steps around every iteration.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// Makes the history smaller; `None` when that is off.
    pub compactor: Option<Arc<dyn Compactor>>,
    /// Has a say before an answer is accepted.
    pub incomplete: Option<Arc<dyn IncompleteWork>>,
    /// Makes titles; `None` leaves what the first message says.
    pub titles: Option<Titles>,
    /// What the user should know before the turn.
    pub notices: Vec<String>,
}

/// How calls are run.
#[derive(Clone)]
pub struct CallSettings {
    /// Where they run.
    pub execution: Arc<ExecutionContext>,
    /// Rules and mode.
    pub policy: Policy,
    /// Asks whoever is there.
    pub approver: Arc<dyn Approver>,
    /// Which may overlap.
    pub mode: Execution,
    /// How long each may take.
    pub timeout: Duration,
    /// The most characters of a result.
    pub max_result_chars: usize,
    /// Keeps what is longer.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Whether a read that failed for a moment is tried again.
    pub retry_transient: bool,
}

/// Makes titles.
#[derive(Clone)]
pub struct Titles {
    /// The model for it.
    pub provider: Arc<dyn Provider>,
}
