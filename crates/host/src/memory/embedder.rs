//! Sources of vectors on this machine: the local model, loaded when it is first needed, and a server.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::sync::Mutex as AsyncMutex;
use windlass_config::environment;
use windlass_config::settings::MemorySettings;
use windlass_core::clock::Timestamp;
use windlass_memory::{EmbedError, EmbedPurpose, Embedder, MINILM_MODEL, MiniLm};
use windlass_providers::embeddings::EmbeddingServer;
use windlass_providers::key::Secret;
use windlass_sandbox::read_regular;

use super::{Problems, lock};

/// Size of the largest model.
const MAX_MODEL: u64 = 1 << 30;

/// Maximum time of a request to a server.
const LIMIT: Duration = Duration::from_secs(10);
/// Time for which a server that failed is not asked, so that turns do not wait for it, in milliseconds.
const PAUSE: u64 = 60_000;

/// The local model, read from its file when the first text needs it, and again when the file is another.
#[derive(Clone)]
pub(super) struct LocalModel(Arc<ModelFile>);

struct ModelFile {
    path: PathBuf,
    /// The model, and the size and time of the file it was read from.
    model: AsyncMutex<Option<(FileStamp, Result<MiniLm, EmbedError>)>>,
    problems: Problems,
}

type FileStamp = (u64, Option<SystemTime>);

impl LocalModel {
    /// Describes the model in a file, which need not exist yet. A file of another kind is reported at once.
    pub(super) fn new(path: PathBuf, problems: &Problems) -> Self {
        let mut start = Vec::new();
        if path.is_file()
            && std::fs::File::open(&path)
                .and_then(|file| file.take(8).read_to_end(&mut start))
                .is_ok()
            && let Err(error) = MiniLm::check_start(&start)
        {
            report(problems, &in_file(&path, error));
        }
        Self(Arc::new(ModelFile {
            path,
            model: AsyncMutex::default(),
            problems: Arc::clone(problems),
        }))
    }
}

impl ModelFile {
    /// Returns the model. A file that cannot be used is reported once.
    async fn get(&self) -> Result<MiniLm, EmbedError> {
        let mut model = self.model.lock().await;
        let stamp = stamp(&self.path).map_err(|error| named(&self.path, &error))?;
        if let Some((_, known)) = model.as_ref().filter(|(known, _)| *known == stamp) {
            return known.clone();
        }
        let path = self.path.clone();
        let read = move || {
            let bytes = read_regular(&path, MAX_MODEL).map_err(|error| named(&path, &error))?;
            MiniLm::read(bytes).map_err(|error| in_file(&path, error))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.unwrap_or_else(|error| Err(EmbedError::Model(error.to_string())));
        if let Err(error) = &read {
            report(&self.problems, error);
        }
        *model = Some((stamp, read.clone()));
        read
    }
}

/// Adds a problem for the user, unless it was told before.
fn report(problems: &Problems, error: &EmbedError) {
    lock(problems).add(format!("memory: {error}; searching by words"));
}

fn stamp(path: &Path) -> std::io::Result<FileStamp> {
    let data = std::fs::metadata(path)?;
    Ok((data.len(), data.modified().ok()))
}

fn named(path: &Path, error: &std::io::Error) -> EmbedError {
    EmbedError::Model(format!("{}: {error}", path.display()))
}

/// Adds the path of the file to an error.
fn in_file(path: &Path, error: EmbedError) -> EmbedError {
    match error {
        EmbedError::Model(text) => EmbedError::Model(format!("{}: {text}", path.display())),
        other => other,
    }
}

#[async_trait]
impl Embedder for LocalModel {
    fn model(&self) -> &str {
        MINILM_MODEL
    }

    fn is_available(&self) -> bool {
        self.0.path.is_file()
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.get().await?.embed(texts, purpose).await
    }
}

/// A server with an OpenAI-compatible interface.
pub(super) struct Server {
    server: EmbeddingServer,
    model: String,
    problems: Problems,
    failure: Mutex<Failure>,
}

/// Failures of a server.
#[derive(Default)]
struct Failure {
    /// True after the first one, which the user was told.
    is_told: bool,
    /// Time until which the server is left alone.
    until: Option<Timestamp>,
}

impl Server {
    pub(super) fn new(settings: &MemorySettings, problems: &Problems) -> Result<Self, String> {
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
            failure: Mutex::default(),
        })
    }
}

#[async_trait]
impl Embedder for Server {
    fn model(&self) -> &str {
        &self.model
    }

    fn is_available(&self) -> bool {
        let until = lock(&self.failure).until;
        until.is_none_or(|until| environment::clock().now() >= until)
    }

    async fn embed(&self, texts: &[String], _: EmbedPurpose) -> Result<Vec<Vec<f32>>, EmbedError> {
        let made = self.server.embed(texts).await.map_err(EmbedError::Server);
        let mut failure = lock(&self.failure);
        let pause = Timestamp(environment::clock().now().0.saturating_add(PAUSE));
        failure.until = made.is_err().then_some(pause);
        if let Err(error) = &made
            && !std::mem::replace(&mut failure.is_told, true)
        {
            report(&self.problems, error);
        }
        drop(failure);
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
