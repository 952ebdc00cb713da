//! Memory across sessions on this machine: its part in a session, the `/memory` command, and the local model.

mod command;
mod desk;
mod embedder;
mod setup;
mod trial;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use windlass_config::environment;
use windlass_config::settings::{EmbeddingSource, MemorySettings, Settings};
use windlass_core::hook::{CompactionHook, Hook, Hooks, TurnAction, TurnEnd, TurnHook};
use windlass_core::log::{MemoryUnit, Store};
use windlass_core::message::{Fragment, FragmentSource, Message, Part, Role};
use windlass_memory::{
    Embedder, Injection, Memory, MemoryAccess, MemoryLimits, Scopes, VectorCache, catch_up, embed_missing,
    memory_tools,
};
use windlass_service::{ExtensionCommand, ExtensionReply, TurnStart};

pub use self::desk::{MemoryDesk, unit_line};
use self::embedder::{LocalModel, Server};
pub use self::setup::{SetupFrom, set_up};
pub use self::trial::MemoryTrial;
use crate::extension::code::MAP_LABEL;
use crate::extension::{Extension, ExtensionOffer};
use crate::factory::SessionSpec;

/// Maximum time that the end of a session waits for what was said in it to be kept.
const CLOSING: Duration = Duration::from_secs(3);
/// Maximum number of vectors made in one go in the background.
const VECTORS: usize = 100_000;
/// Maximum number of bytes of recalled text that a compaction keeps.
const KEPT: usize = 16 * 1024;

/// The parts of memory that the sessions of a run share, so that the model and the vectors are loaded once.
#[derive(Default)]
pub struct SharedMemory {
    /// Embedders by the settings that ask for them.
    embedders: Mutex<Vec<KnownEmbedder>>,
    vectors: VectorCache,
    problems: Problems,
}

/// Settings, and the embedder that they ask for.
type KnownEmbedder = (MemorySettings, Option<Arc<dyn Embedder>>);

/// Problems with the source of vectors. The user is told each of them once.
type Problems = Arc<Mutex<ProblemList>>;

#[derive(Default)]
struct ProblemList {
    open: Vec<String>,
    told: Vec<String>,
}

impl ProblemList {
    fn add(&mut self, problem: String) {
        if !self.open.contains(&problem) && !self.told.contains(&problem) {
            self.open.push(problem);
        }
    }

    fn take(&mut self) -> Vec<String> {
        self.told.extend(self.open.iter().cloned());
        std::mem::take(&mut self.open)
    }
}

impl SharedMemory {
    /// Returns the search over a store, with the embedder that the settings ask for.
    fn open(&self, settings: &MemorySettings, store: Arc<dyn Store>) -> Memory {
        let mut known = lock(&self.embedders);
        let found = known.iter().find(|(asked, _)| is_same_source(asked, settings));
        let embedder = match found {
            Some((_, embedder)) => embedder.clone(),
            None => {
                let made = embedder(settings, &self.problems);
                known.push((settings.clone(), made.clone()));
                made
            }
        };
        Memory::new(store, embedder, environment::clock()).sharing(&self.vectors)
    }

    /// Takes the problems that nobody has been told yet.
    fn take_problems(&self) -> Vec<String> {
        lock(&self.problems).take()
    }
}

/// Returns true if settings ask for the same embedder.
fn is_same_source(one: &MemorySettings, other: &MemorySettings) -> bool {
    let source = |settings: &MemorySettings| {
        let MemorySettings {
            embeddings,
            server,
            server_model,
            server_key_env,
            ..
        } = settings.clone();
        (embeddings, server, server_model, server_key_env)
    };
    source(one) == source(other)
}

/// Returns the embedder that the settings ask for. Problems are added for the user, once.
fn embedder(settings: &MemorySettings, problems: &Problems) -> Option<Arc<dyn Embedder>> {
    match settings.embeddings {
        EmbeddingSource::Off => None,
        EmbeddingSource::Local => {
            let file = environment::folders().ok()?.embedding_model();
            Some(Arc::new(LocalModel::new(file, problems)))
        }
        EmbeddingSource::Server => match Server::new(settings, problems) {
            Ok(server) => Some(Arc::new(server)),
            Err(problem) => {
                lock(problems).add(format!("memory: {problem}; searching by words"));
                None
            }
        },
    }
}

/// Memory of one session.
pub(crate) struct MemoryExtension {
    access: MemoryAccess,
    shared: Arc<Shared>,
    settings: MemorySettings,
}

/// State that the hook, the background task and the command share.
struct Shared {
    access: MemoryAccess,
    limits: MemoryLimits,
    /// Units that were recalled in this session.
    recalled: Mutex<Vec<MemoryUnit>>,
    /// Recalled text that a compaction is about to remove.
    kept: Mutex<Vec<Fragment>>,
    run: Arc<SharedMemory>,
    task: Mutex<Option<JoinHandle<()>>>,
    /// True if something was said since the task looked.
    again: Arc<AtomicBool>,
}

impl MemoryExtension {
    /// Creates the memory of a session; `None` if it is off, or the session is a sub-agent or has no store.
    pub(crate) fn new(settings: &Settings, spec: &SessionSpec) -> Option<Self> {
        let store = spec.store.clone()?;
        let memory = &settings.context.memory;
        if !memory.enabled || spec.agent.is_some() {
            return None;
        }
        let access = MemoryAccess {
            memory: spec.memory.open(memory, store),
            project: spec.account.user.scoped(&project(&spec.cwd)),
            session: spec.session.clone(),
        };
        let shared = Shared {
            access: access.clone(),
            limits: limits(memory),
            recalled: Mutex::default(),
            kept: Mutex::default(),
            run: Arc::clone(&spec.memory),
            task: Mutex::default(),
            again: Arc::default(),
        };
        // While the user types the first prompt, or the rest of the session starts.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (memory, scopes) = (access.memory.clone(), Scopes::of(&access.project));
            runtime.spawn(async move { memory.warm_up(&scopes).await });
        }
        Some(Self {
            access,
            shared: Arc::new(shared),
            settings: memory.clone(),
        })
    }
}

/// Returns the scope of a folder.
pub fn project(folder: &Path) -> String {
    folder.display().to_string()
}

#[async_trait]
impl Extension for MemoryExtension {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn refresh(&mut self, _: &TurnStart, settings: &Settings) -> Vec<String> {
        self.settings = settings.context.memory.clone();
        self.shared.run.take_problems()
    }

    fn offer(&self) -> ExtensionOffer {
        if !self.settings.enabled {
            return ExtensionOffer::default();
        }
        let mut hooks = Hooks::new();
        hooks.push(MemoryHook(Arc::clone(&self.shared)));
        ExtensionOffer {
            tools: memory_tools(&self.access),
            hooks,
            ..ExtensionOffer::default()
        }
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        let desk = MemoryDesk::new(self.access.memory.clone(), &self.access.project);
        let recalled = lock(&self.shared.recalled).clone();
        command::run(&desk, command.arguments, &recalled)
            .await
            .map(ExtensionReply::text)
    }

    async fn close(&mut self) {
        // The last answer is stored after the end of its turn was reported.
        if self.settings.enabled {
            self.shared.work();
        }
        let task = lock(&self.shared.task).take();
        if let Some(mut task) = task {
            let clock = environment::clock();
            tokio::select! {
                _ = &mut task => {}
                () = clock.sleep(CLOSING) => task.abort(),
            }
        }
    }
}

impl Shared {
    /// Starts the background task, or lets the running one look again.
    fn work(self: &Arc<Self>) {
        let mut task = lock(&self.task);
        self.again.store(true, Ordering::Release);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (access, again) = (self.access.clone(), Arc::clone(&self.again));
        *task = Some(tokio::spawn(async move {
            while again.swap(false, Ordering::AcqRel) {
                background(&access).await;
            }
        }));
    }
}

/// Keeps what was said in the sessions of the project, and makes vectors. Failures are left for the next time.
async fn background(access: &MemoryAccess) {
    let MemoryAccess { memory, project, .. } = access;
    let store: &Arc<dyn Store> = memory.store();
    if let Err(error) = catch_up(&**store, project).await {
        tracing::warn!(%error, "memory could not read sessions");
        return;
    }
    let scopes = Scopes::of(project);
    if let Some(embedder) = memory.embedder() {
        if let Err(error) = embed_missing(&**store, &**embedder, scopes.names(), VECTORS).await {
            tracing::warn!(%error, "memory made no vectors");
        }
        // Also those that other processes made.
        let _ = memory.load_vectors(&scopes).await;
    }
}

/// Recalls before a turn, keeps what was said after it, and carries recalled text over a compaction.
struct MemoryHook(Arc<Shared>);

impl Hook for MemoryHook {
    fn name(&self) -> &str {
        "memory"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }

    fn compaction(&self) -> Option<&dyn CompactionHook> {
        Some(self)
    }
}

/// Returns what a turn starts with; `None` if the user said nothing.
async fn recalled(
    access: &MemoryAccess,
    history: &[Arc<Message>],
    limits: MemoryLimits,
) -> Option<Injection> {
    let question = question(history)?;
    let known = fragments(history)
        .map(|fragment| fragment.text.as_str())
        .collect::<Vec<_>>()
        .join("\n");
    let is_first = !history.iter().any(|message| message.role == Role::Assistant);
    let MemoryAccess {
        memory,
        project,
        session,
    } = access;
    let scopes = Scopes::of(project);
    let about = (session, known.as_str(), is_first);
    Some(memory.recall(&question, &scopes, about, limits).await)
}

/// Returns the limits that the settings ask for.
fn limits(settings: &MemorySettings) -> MemoryLimits {
    MemoryLimits {
        results: settings.max_results,
        budget: settings.budget_tokens,
        time: settings.time_limit,
        threshold: settings.threshold as f32,
    }
}

#[async_trait]
impl TurnHook for MemoryHook {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        let Some(injection) = recalled(&self.0.access, history, self.0.limits).await else {
            return TurnAction::default();
        };
        lock(&self.0.recalled).extend(injection.units);
        TurnAction::Start(injection.fragment.into_iter().collect())
    }

    async fn turn_ended(&self, _: &TurnEnd<'_>) -> Vec<windlass_core::event::Event> {
        self.0.work();
        Vec::new()
    }
}

#[async_trait]
impl CompactionHook for MemoryHook {
    async fn before_compact(&self, history: &[Arc<Message>]) -> Option<String> {
        let mut kept: Vec<Fragment> = Vec::new();
        let mut size = 0;
        for fragment in fragments(history) {
            size += fragment.text.len();
            if size <= KEPT && !kept.contains(fragment) {
                kept.push(fragment.clone());
            }
        }
        *lock(&self.0.kept) = kept;
        None
    }

    async fn after_compact(&self, history: &[Arc<Message>]) -> Vec<Fragment> {
        let kept = std::mem::take(&mut *lock(&self.0.kept));
        let there: Vec<&Fragment> = fragments(history).collect();
        kept.into_iter()
            .filter(|fragment| !there.contains(&fragment))
            .collect()
    }
}

/// Returns the recalled fragments of a conversation, without maps of code, which the next turn makes anew.
fn fragments(history: &[Arc<Message>]) -> impl Iterator<Item = &Fragment> {
    let parts = history.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::Context(fragment) if fragment.source == FragmentSource::Memory => Some(fragment),
            _ => None,
        })
        .filter(|fragment| fragment.label.as_deref() != Some(MAP_LABEL))
}

/// Returns the user's last words.
fn question(history: &[Arc<Message>]) -> Option<String> {
    let message = history.iter().rev().find(|message| message.role == Role::User)?;
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(part) => Some(part.text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some(text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
