//! CTX-14: memory that starts empty, to try out what it recalls.

use std::sync::Arc;
use std::time::Duration;

use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind, environment};
use windlass_core::id::SessionId;
use windlass_core::log::MemorySource;
use windlass_core::message::{Fragment, Message};
use windlass_memory::{MemoryAccess, MemoryLimits, Scopes, embed_missing, units_of_session};

use super::{SharedMemory, limits, recalled};

/// Name of the only project.
const PROJECT: &str = "trial";

/// Nobody waits for a trial, so a busy machine must not change its result.
const PATIENCE: Duration = Duration::from_secs(60);

/// Memory in a store of its own, with the settings and the embedder of the user.
pub struct MemoryTrial {
    access: MemoryAccess,
    limits: MemoryLimits,
}

impl MemoryTrial {
    /// Creates an empty memory. Without `vectors`, it is searched by words only.
    ///
    /// # Errors
    /// Fails if the store cannot be created.
    pub fn new(settings: &Settings, vectors: bool) -> Result<Self, Problem> {
        let failed = |error: &dyn std::fmt::Display| Problem::new(ProblemKind::Failed, error.to_string());
        let store =
            windlass_store::open("ephemeral:", environment::clock()).map_err(|error| failed(&error))?;
        let mut memory = settings.context.memory.clone();
        if !vectors {
            memory.embeddings = windlass_config::settings::EmbeddingSource::Off;
        }
        Ok(Self {
            access: MemoryAccess {
                memory: SharedMemory::default().open(&memory, store),
                project: PROJECT.to_owned(),
                session: SessionId::from(PROJECT),
            },
            limits: MemoryLimits {
                time: PATIENCE,
                ..limits(&memory)
            },
        })
    }

    /// Returns true if memory is searched by meaning, too.
    pub fn has_vectors(&self) -> bool {
        self.access.memory.embedder().is_some()
    }

    /// Returns the fragment that a turn of a session starts with.
    pub async fn recall(&self, session: &SessionId, history: &[Arc<Message>]) -> Option<Fragment> {
        let access = MemoryAccess {
            session: session.clone(),
            ..self.access.clone()
        };
        recalled(&access, history, self.limits).await?.fragment
    }

    /// Keeps what was said in a session.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn keep(&self, session: &SessionId, messages: &[Arc<Message>]) -> Result<(), String> {
        let memory = &self.access.memory;
        let source = MemorySource {
            scope: PROJECT.to_owned(),
            session: Some(session.clone()),
        };
        let units = units_of_session(session, messages);
        let kept = memory
            .store()
            .keep_units(&source, units, messages.len() as u64)
            .await;
        kept.map_err(|error| error.to_string())?;
        let scopes = Scopes::of(PROJECT);
        if let Some(embedder) = memory.embedder() {
            let made = embed_missing(&**memory.store(), &**embedder, scopes.names(), usize::MAX).await;
            made.map_err(|error| error.to_string())?;
            let read = memory.load_vectors(&scopes).await;
            read.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
