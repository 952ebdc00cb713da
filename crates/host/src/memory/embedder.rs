//! Sources of vectors on this machine: the local model, loaded when it is first needed, and a server.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use windlass_config::environment;
use windlass_config::settings::MemorySettings;
use windlass_memory::{EmbedError, Embedder, MINILM_MODEL, MiniLm};
use windlass_providers::embeddings::EmbeddingServer;
use windlass_providers::key::Secret;
use windlass_sandbox::read_regular;

use super::lock;

/// Size of the largest model.
const MAX_MODEL: u64 = 1 << 30;

/// Maximum time of a request to a server.
const LIMIT: Duration = Duration::from_secs(10);

/// The local model, read from its file when the first text needs it.
pub(super) struct LocalModel {
    file: PathBuf,
    model: OnceCell<Result<MiniLm, EmbedError>>,
    problems: Arc<Mutex<Vec<String>>>,
}

impl LocalModel {
    pub(super) fn new(file: PathBuf, problems: &Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            file,
            model: OnceCell::new(),
            problems: Arc::clone(problems),
        }
    }

    async fn read(&self) -> Result<MiniLm, EmbedError> {
        let file = self.file.clone();
        let read = move || {
            let named =
                |error: &dyn std::fmt::Display| EmbedError::Model(format!("{}: {error}", file.display()));
            let bytes = read_regular(&file, MAX_MODEL).map_err(|error| named(&error))?;
            MiniLm::read(&bytes).map_err(|error| named(&error))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.unwrap_or_else(|error| Err(EmbedError::Model(error.to_string())));
        if let Err(error) = &read {
            lock(&self.problems).push(format!("memory: {error}; searching by words"));
        }
        read
    }
}

#[async_trait]
impl Embedder for LocalModel {
    fn model(&self) -> &str {
        MINILM_MODEL
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        match self.model.get_or_init(|| self.read()).await {
            Ok(model) => model.embed(texts).await,
            Err(error) => Err(error.clone()),
        }
    }
}

/// A server with an OpenAI-compatible interface.
pub(super) struct Server {
    server: EmbeddingServer,
    model: String,
    problems: Arc<Mutex<Vec<String>>>,
    /// The first failure, after which the user is not told again.
    failed: Mutex<bool>,
}

impl Server {
    pub(super) fn new(settings: &MemorySettings, problems: &Arc<Mutex<Vec<String>>>) -> Result<Self, String> {
        let address = settings.server.as_deref().ok_or("`memory.server` is not set")?;
        let model = settings
            .server_model
            .as_deref()
            .ok_or("`memory.server_model` is not set")?;
        let key: Option<String> = settings.server_key_env.as_deref().and_then(environment::var);
        let key = key.map(|key| Secret::new(&key));
        Ok(Self {
            server: EmbeddingServer::new(address, model, key, LIMIT)?,
            model: format!("server:{model}"),
            problems: Arc::clone(problems),
            failed: Mutex::new(false),
        })
    }
}

#[async_trait]
impl Embedder for Server {
    fn model(&self) -> &str {
        &self.model
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let made = self.server.embed(texts).await.map_err(EmbedError::Server);
        let mut failed = lock(&self.failed);
        if let Err(error) = &made
            && !std::mem::replace(&mut *failed, true)
        {
            lock(&self.problems).push(format!("memory: {error}; searching by words"));
        }
        let scaled = |mut vector: Vec<f32>| {
            let length = vector
                .iter()
                .map(|value| value * value)
                .sum::<f32>()
                .sqrt()
                .max(f32::MIN_POSITIVE);
            vector.iter_mut().for_each(|value| *value /= length);
            vector
        };
        made.map(|vectors| vectors.into_iter().map(scaled).collect())
    }
}
