//! Selects the provider and model to use, from settings and environment, and connects to it.

mod key;
mod keyring;
mod keys_file;
mod probe;
mod setup;

use std::sync::Arc;

use windlass_core::log::SharedRecorder;
use windlass_core::model::{Model, Price};
use windlass_core::provider::Provider;
use windlass_providers::preset::{Preset, preset, presets};
use windlass_providers::registry::{self, ModelOverride};
use windlass_providers::{
    HttpProvider, NextRecorded, ProviderConfig, Quirks, RecordedOrder, RetryPolicy, Transport,
    TransportLimits, Wire,
};
use windlass_sim::{Brain, Sim, SimConfig, SimHandle};

use self::key::{Found, find_key};
pub use self::keys_file::{KeysFile, StoredKeys};
pub use self::probe::reach;
pub use self::setup::{ProviderSetup, offers};
use windlass_config::settings::{ProviderEntry, Settings};
use windlass_config::{Problem, ProblemKind, environment};

/// Name of the simulated model's provider.
pub const SIM: &str = "sim";

/// A provider that is ready for requests.
pub struct Connection {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// Notices to show the user first.
    pub notices: Vec<String>,
    /// Keeps the simulated model alive.
    _sim: Option<SimHandle>,
}

/// The variables of a process, and the API keys that the user has stored.
pub trait Surroundings: Sync {
    /// Returns the variable if it is set and not empty.
    fn var(&self, name: &str) -> Option<String>;

    /// Returns the stored keys by provider, read at the time of the call.
    ///
    /// # Errors
    /// Fails if there are keys that cannot be used.
    fn keys(&self) -> Result<StoredKeys, Problem>;
}

/// The environment variables of this process, and the user's stored keys.
pub struct Process;

impl Surroundings for Process {
    fn var(&self, name: &str) -> Option<String> {
        environment::var(name)
    }

    fn keys(&self) -> Result<StoredKeys, Problem> {
        KeysFile::new(&environment::folders()?).read()
    }
}

/// Variables without stored keys.
impl<F: Fn(&str) -> Option<String> + Sync> Surroundings for F {
    fn var(&self, name: &str) -> Option<String> {
        self(name)
    }

    fn keys(&self) -> Result<StoredKeys, Problem> {
        Ok(StoredKeys::default())
    }
}

/// Source of variables and keys.
pub type Env<'a> = &'a dyn Surroundings;

/// An empty environment.
const NOTHING: fn(&str) -> Option<String> = |_| None;

/// Creates the provider that the settings name, or the first one that has a key in the environment.
pub async fn connect(
    settings: &Settings,
    env: Env<'_>,
    recorder: Option<&SharedRecorder>,
) -> Result<Connection, Problem> {
    let choice = choose(settings, env)?;
    let sim = if choice.name == SIM && choice.base_url.is_empty() {
        Some(start_sim(Brain::rules()).await?)
    } else {
        None
    };
    let base_url = sim
        .as_ref()
        .map_or_else(|| choice.base_url.clone(), SimHandle::url);
    connect_to(settings, env, choice, base_url, sim, recorder).await
}

/// Creates a provider for a simulated model that is already running.
pub async fn connect_sim(settings: &Settings, sim: SimHandle, wire: Wire) -> Result<Connection, Problem> {
    let choice = Choice {
        wire,
        ..Choice::of(SIM, settings, &NOTHING)?
    };
    let base_url = sim.url();
    connect_to(settings, &NOTHING, choice, base_url, Some(sim), None).await
}

/// Creates a provider whose requests are shown and never sent, so that it needs no key.
pub(crate) async fn connect_unsent(settings: &Settings) -> Result<Connection, Problem> {
    let mut settings = settings.clone();
    let name = choose(&settings, &Process)?.name.to_owned();
    if let Some(entry) = settings.providers.get_mut(&name) {
        entry.key_command = None;
    }
    let choice = choose(&settings, &Process)?;
    let base_url = choice.base_url.clone();
    let key = |_: &str| Some("unsent".to_owned());
    connect_to(&settings, &key, choice, base_url, None, None).await
}

/// Creates a provider like those of a recorded session, for another server: the same requests, without a key. Each goes
/// to the provider and model that `next` names.
pub async fn connect_recorded(
    settings: &Settings,
    choices: Vec<(String, String)>,
    next: NextRecorded,
    base_url: String,
) -> Result<Arc<dyn Provider>, Problem> {
    let mut settings = settings.clone();
    settings.retry.max_delay = std::time::Duration::ZERO;
    let mut made: Vec<Arc<dyn Provider>> = Vec::new();
    for (name, model) in choices {
        if let Some(entry) = settings.providers.get_mut(&name) {
            entry.key_command = None;
        }
        match connect_as_recorded(&settings, &name, model, &base_url).await {
            Ok(connection) => made.push(connection.provider),
            Err(problem) if made.is_empty() => return Err(problem),
            // The settings no longer have it. If this turn needs it, its request differs.
            Err(_) => {}
        }
    }
    if made.is_empty() {
        return Err(Problem::new(
            ProblemKind::Failed,
            "the turn has no recorded request",
        ));
    }
    let first = made.remove(0);
    Ok(Arc::new(RecordedOrder::relay(first, made, next)))
}

async fn connect_as_recorded(
    settings: &Settings,
    name: &str,
    model: String,
    base_url: &str,
) -> Result<Connection, Problem> {
    let env: Env<'_> = &environment::var;
    let choice = || -> Result<Choice<'_>, Problem> {
        Ok(Choice {
            model: model.clone(),
            ..Choice::of(name, settings, env)?
        })
    };
    // The name of the variable that holds the key can matter; without one, a placeholder is needed.
    match connect_to(settings, env, choice()?, base_url.to_owned(), None, None).await {
        Err(problem) if problem.kind.is_of_provider() => {
            let key = |_: &str| Some("recorded".to_owned());
            connect_to(settings, &key, choice()?, base_url.to_owned(), None, None).await
        }
        other => other,
    }
}

/// Starts the simulated model on a free port.
pub async fn start_sim(brain: Brain) -> Result<SimHandle, Problem> {
    let config = SimConfig {
        brain,
        keep_bodies: false,
        ..SimConfig::default()
    };
    let failed = |error| {
        Problem::new(
            ProblemKind::Failed,
            format!("cannot start the simulated model: {error}"),
        )
    };
    Sim::start(config).await.map_err(failed)
}

/// Returns the models that the chosen provider's server lists.
async fn listed(settings: &Settings, env: Env<'_>, choice: &Choice<'_>) -> Result<Vec<String>, Problem> {
    let model = registry::lookup(&choice.model, &overrides(settings));
    let provider = http_provider(settings, env, choice, choice.base_url.clone(), model).await?;
    let list = provider.models().await;
    list.map_err(|error| Problem::new(ProblemKind::Provider, error.message))
}

async fn connect_to(
    settings: &Settings,
    env: Env<'_>,
    choice: Choice<'_>,
    base_url: String,
    sim: Option<SimHandle>,
    recorder: Option<&SharedRecorder>,
) -> Result<Connection, Problem> {
    let mut notices = Vec::new();
    if choice.name == SIM {
        notices.push(
            "the simulated model answers: it follows simple rules and is not a language model".to_owned(),
        );
    }
    let model = registry::lookup(&choice.model, &overrides(settings));
    if !model.known {
        notices.push(unknown_model(&model));
    }
    if is_open_line(&base_url) {
        notices.push(format!(
            "{base_url} is not encrypted: everyone on the way can read the key and the conversation"
        ));
    }
    let provider = http_provider(settings, env, &choice, base_url, model).await?;
    let provider = match recorder {
        Some(recorder) => provider.recorded(Arc::clone(recorder)),
        None => provider,
    };
    Ok(Connection {
        provider: Arc::new(provider),
        notices,
        _sim: sim,
    })
}

async fn http_provider(
    settings: &Settings,
    env: Env<'_>,
    choice: &Choice<'_>,
    base_url: String,
    model: Model,
) -> Result<HttpProvider, Problem> {
    let found = find_key(choice, env).await?;
    let quirks = match (&found, choice.preset) {
        (Some(key), Some(preset)) => preset.quirks_for_key(&key.variable),
        (_, preset) => preset.map_or_else(Quirks::default, |preset| preset.quirks),
    };
    let config = ProviderConfig {
        name: choice.name.clone(),
        wire: choice.wire,
        base_url,
        key_hint: found
            .as_ref()
            .map_or_else(|| choice.key_hint(), |key| choice.refused_hint(key)),
        key: found.map(|key| key.secret),
        headers: choice
            .entry
            .map(|entry| entry.headers.clone().into_iter().collect())
            .unwrap_or_default(),
        quirks,
        model,
        reasoning: settings.agent.reasoning,
        limits: TransportLimits {
            connect: settings.timeouts.connect,
            stream_idle: settings.timeouts.stream_idle,
            ..TransportLimits::default()
        },
        retry: RetryPolicy {
            max_retries: settings.retry.max_retries,
            max_delay: settings.retry.max_delay,
            ..RetryPolicy::default()
        },
    };
    HttpProvider::new(config, Transport::new(), windlass_config::environment::clock())
        .map_err(|error| Problem::new(ProblemKind::Config, error.to_string()))
}

/// Returns the price of a model, if the settings or the registry have one.
pub fn price_of(settings: &Settings, model: &str) -> Option<Price> {
    registry::lookup(model, &overrides(settings)).price
}

/// Returns the context window of a model in tokens, from the settings or the registry.
pub fn window_of(settings: &Settings, model: &str) -> u64 {
    registry::lookup(model, &overrides(settings)).context_window
}

/// Returns true for an address without encryption on another machine.
fn is_open_line(base_url: &str) -> bool {
    let Some(rest) = base_url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let is_own = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|own| authority.starts_with(own));
    !is_own && !authority.is_empty()
}

fn unknown_model(model: &Model) -> String {
    format!(
        "the model `{}` is not in the registry: assuming a window of {} tokens and no known price \
         (set `models.\"{}\".context_window` and `.price` to change that)",
        model.id, model.context_window, model.id
    )
}

/// The provider and model that were chosen, before a key is looked up.
pub struct Choice<'a> {
    /// Name of the provider.
    pub name: String,
    /// Id of the model.
    pub model: String,
    /// Wire format of the server.
    pub wire: Wire,
    /// Address of the server.
    pub base_url: String,
    entry: Option<&'a ProviderEntry>,
    preset: Option<&'static Preset>,
}

/// Chooses the provider and the model.
pub fn choose<'a>(settings: &'a Settings, env: Env<'_>) -> Result<Choice<'a>, Problem> {
    if let Some(name) = &settings.provider {
        return Choice::of(name, settings, env);
    }
    // `anthropic/claude-…` names both; a slash can also be part of a model's id.
    if let Some((name, model)) = settings.model.as_deref().and_then(|model| model.split_once('/'))
        && (settings.providers.contains_key(name) || preset(name).is_some())
    {
        return Ok(Choice {
            model: model.to_owned(),
            ..Choice::of(name, settings, env)?
        });
    }
    let has_key = |preset: &&Preset| {
        preset
            .key_variables
            .iter()
            .any(|variable| env.var(variable).is_some())
    };
    if let Some(found) = presets().find(has_key) {
        return Choice::of(&found.name, settings, env);
    }
    let kept = env.keys()?;
    let known = presets().map(|preset| &preset.name);
    let mut kept = known
        .chain(settings.providers.keys())
        .filter(|name| kept.contains_key(*name));
    kept.find_map(|name| Choice::of(name, settings, env).ok())
        .ok_or_else(|| Problem::new(ProblemKind::Auth, no_key()))
}

fn no_key() -> String {
    "no model is configured: no key was found and no provider is set.\n\
     Do one of these:\n  \
       export ANTHROPIC_API_KEY=…                    use Anthropic\n  \
       export OPENAI_API_KEY=…                       use OpenAI\n  \
       windlass connect openai < KEYFILE             test a key, and store it\n  \
       windlass exec --provider ollama --model NAME  use a server on this machine\n  \
       windlass exec --provider sim                  use the simulated model: no key, no network\n\
     `windlass doctor` lists every provider and its variable."
        .to_owned()
}

impl<'a> Choice<'a> {
    /// Resolves the provider `name` from settings and environment.
    pub fn of(name: &str, settings: &'a Settings, env: Env<'_>) -> Result<Self, Problem> {
        let entry = settings.providers.get(name);
        let preset = base_preset(name, entry)?;
        if entry.is_none() && preset.is_none() {
            return Err(Problem::new(
                ProblemKind::Config,
                unknown_provider(name, settings),
            ));
        }
        let from_env = preset.and_then(|preset| {
            preset
                .base_url_variables
                .iter()
                .find_map(|variable| env.var(variable))
        });
        let configured = entry.and_then(|entry| entry.base_url.clone());
        let base_url = configured
            .or_else(|| from_env.clone())
            .or_else(|| preset.map(|preset| preset.base_url.clone()))
            .ok_or_else(|| incomplete(name, "base_url", "where its server is"))?;
        let wire = match (entry.and_then(|entry| entry.wire), preset) {
            (Some(wire), _) => wire,
            // A server that is merely compatible with OpenAI rarely supports the newer wire format.
            (None, Some(preset))
                if preset.wire == Wire::Responses && from_env.is_some() && !is_openai(&base_url) =>
            {
                Wire::Chat
            }
            (None, Some(preset)) => preset.wire,
            (None, None) => {
                return Err(incomplete(
                    name,
                    "wire",
                    "anthropic-messages, openai-chat, openai-responses or gemini",
                ));
            }
        };
        let model = settings
            .model
            .clone()
            .or_else(|| entry.and_then(|entry| entry.model.clone()));
        let model = model
            .or_else(|| preset.map(|preset| preset.default_model.clone()))
            .unwrap_or_default();
        if model.is_empty() {
            let text = format!(
                "provider `{name}` has no default model: name one with --model or `providers.{name}.model`"
            );
            return Err(Problem::new(ProblemKind::Config, text));
        }
        Ok(Self {
            name: name.to_owned(),
            model,
            wire,
            base_url,
            entry,
            preset,
        })
    }

    /// Explains what to do when the provider refuses this key.
    fn refused_hint(&self, key: &Found) -> String {
        let name = &self.name;
        match (
            &*key.variable,
            self.entry.and_then(|entry| entry.key_command.as_ref()),
        ) {
            ("", Some(_)) => format!("check `providers.{name}.key_command`, whose key was refused"),
            ("", None) => format!("`windlass connect {name} --key` replaces the stored key"),
            (variable, _) => format!("check the key in {variable}"),
        }
    }

    /// Explains what to set when the key is missing.
    fn key_hint(&self) -> String {
        match (self.entry.and_then(|entry| entry.key_env.as_ref()), self.preset) {
            (Some(variable), _) => format!("set {variable}"),
            (None, Some(preset)) => preset.key_hint(),
            (None, None) => format!("set `providers.{}.key_env` or `.key_command`", self.name),
        }
    }
}

fn base_preset(name: &str, entry: Option<&ProviderEntry>) -> Result<Option<&'static Preset>, Problem> {
    match entry.and_then(|entry| entry.preset.as_deref()) {
        None => Ok(preset(name)),
        Some(base) => match preset(base) {
            Some(found) => Ok(Some(found)),
            None => {
                let known: Vec<_> = presets().map(|preset| preset.name.as_str()).collect();
                let text = format!(
                    "`providers.{name}.preset`: there is no preset `{base}`; known are {}",
                    known.join(", ")
                );
                Err(Problem::new(ProblemKind::Config, text))
            }
        },
    }
}

fn unknown_provider(name: &str, settings: &Settings) -> String {
    let mut known: Vec<&str> = presets().map(|preset| preset.name.as_str()).collect();
    known.extend(settings.providers.keys().map(String::as_str));
    let nearest = known
        .iter()
        .copied()
        .max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    let hint = nearest
        .filter(|near| strsim::jaro(near, name) > 0.7)
        .map(|near| format!("; did you mean `{near}`?"));
    format!(
        "there is no provider `{name}`{}\nKnown: {}",
        hint.unwrap_or_default(),
        known.join(", ")
    )
}

fn incomplete(name: &str, key: &str, what: &str) -> Problem {
    Problem::new(
        ProblemKind::Config,
        format!("provider `{name}` is incomplete: set `providers.{name}.{key}` ({what})"),
    )
}

fn is_openai(base_url: &str) -> bool {
    base_url.starts_with("https://api.openai.com")
}

fn overrides(settings: &Settings) -> Vec<ModelOverride> {
    let entries = settings.models.iter();
    entries
        .map(|(id, entry)| {
            let given = entry.price;
            let any = given
                .input
                .or(given.output)
                .or(given.cache_read)
                .or(given.cache_write);
            let price = any.map(|_| Price {
                input: given.input.unwrap_or_default(),
                output: given.output.unwrap_or_default(),
                cache_read: given.cache_read.or(given.input).unwrap_or_default(),
                cache_write: given.cache_write.or(given.input).unwrap_or_default(),
            });
            ModelOverride {
                id: id.clone(),
                context_window: entry.context_window,
                max_output: entry.max_output,
                price,
                images: entry.images,
                reasoning: entry.reasoning,
            }
        })
        .collect()
}
