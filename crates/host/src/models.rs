//! PROV-7: the models of a run: the available ones, the selected one, and switching between them.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use windlass_api::{FailureKind, Offer};
use windlass_core::clock::Clock;
use windlass_core::log::{SharedRecorder, UserName};
use windlass_core::model::Price;
use windlass_core::provider::{Provider, ProviderErrorKind};
use windlass_providers::Effort;
use windlass_providers::preset::{Preset, presets};
use windlass_providers::registry;
use windlass_service::{ChooseError, Chosen, EffortSwitch, ModelChoice, ModelSwitch, NotReady, Titles};

use crate::backoff::{Backoff, Watched};
use crate::connect::Process;
use crate::connect::{
    Choice, Connection, Surroundings, choose, connect, connect_unsent, offers, price_of, window_of,
};
use crate::fallback::fallback;
use crate::model_preference::{ModelPreference, Named};
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_users::{BudgetGate, DailyBudget};

/// The models of a run. Clones share the selection.
#[derive(Clone)]
pub struct Models {
    settings: Arc<Settings>,
    now: Arc<Mutex<Selection>>,
    remembered: Option<ModelPreference>,
    /// Records the wire traffic.
    recorder: Option<SharedRecorder>,
    /// DIST-7: limits of the user's day.
    budget: Option<DailyBudget>,
    clock: Arc<dyn Clock>,
}

#[derive(Default, Clone)]
struct Selection {
    /// The selection that overrides the settings.
    chosen: Option<Named>,
    /// The effort that overrides the settings.
    effort: Option<Option<Effort>>,
    active: Option<Arc<ActiveProvider>>,
}

/// A connected provider.
pub struct ActiveProvider {
    /// Keeps the simulated model alive.
    _connection: Connection,
    /// Notices that the user has not seen yet.
    notices: Mutex<Vec<String>>,
    /// The provider.
    pub provider: Arc<dyn Provider>,
    backoff: Arc<Backoff>,
}

impl ActiveProvider {
    /// Returns notices for the user, once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Models {
    /// The models that settings and environment offer. Connects to nothing yet.
    pub fn new(settings: &Arc<Settings>, remembered: Option<ModelPreference>) -> Self {
        Self {
            settings: Arc::clone(settings),
            now: Arc::default(),
            remembered,
            recorder: None,
            budget: None,
            clock: windlass_config::environment::clock(),
        }
    }

    /// Returns the models of a command that shows requests and sends none. A provider without a key will do.
    pub async fn unsent(settings: &Arc<Settings>) -> Self {
        let models = Self::new(settings, None);
        match models.connect().await {
            Err(problem) if problem.kind.is_of_provider() => match connect_unsent(settings).await {
                Ok(connection) => Self::with(settings, connection),
                Err(_) => models,
            },
            _ => models,
        }
    }

    /// Records all wire traffic. Must be called before a provider is connected.
    pub fn recorded(self, recorder: Option<SharedRecorder>) -> Self {
        Self { recorder, ..self }
    }

    /// DIST-7: returns the same models and selection under the limits of a user.
    #[must_use]
    pub fn limited(self, budget: Option<DailyBudget>) -> Self {
        Self { budget, ..self }
    }

    /// Puts the limits of the user in front of a provider.
    pub fn gated(&self, provider: &Arc<dyn Provider>) -> Arc<dyn Provider> {
        match &self.budget {
            Some(budget) => Arc::new(BudgetGate::new(Arc::clone(provider), budget.clone())),
            None => Arc::clone(provider),
        }
    }

    /// Returns the limits of the user's day.
    pub fn budget(&self) -> Option<&DailyBudget> {
        self.budget.as_ref()
    }

    /// Uses a provider that is already connected.
    pub fn with(settings: &Arc<Settings>, connection: Connection) -> Self {
        let models = Self::new(settings, None);
        models.lock().active = Some(models.activate(connection));
        models
    }

    /// Returns the same models for another session: it starts with the same selection, and can change its
    /// own.
    #[must_use]
    pub fn of_session(&self) -> Self {
        let selection = self.lock().clone();
        Self {
            now: Arc::new(Mutex::new(selection)),
            ..self.clone()
        }
    }

    /// DIST-7: returns the models of another session. A named user starts with the selection of their own last session.
    pub async fn of_user(&self, user: &UserName) -> Self {
        if user.is_local() {
            return self.of_session();
        }
        let remembered = self.remembered.as_ref();
        let own = Self {
            now: Arc::default(),
            remembered: remembered.map(|remembered| remembered.of_user(user)),
            ..self.clone()
        };
        own.restore().await;
        own
    }

    /// SUB-1: returns the same models with another selection, written `model` or `provider/model`.
    #[must_use]
    pub fn choosing(&self, model: &str) -> Self {
        let split = model
            .split_once('/')
            .and_then(|(name, model)| Some((self.known(name)?, model)));
        let active = self.active().ok().map(|(provider, _)| provider);
        let chosen = match split {
            Some((provider, model)) => Named {
                provider: Some(provider),
                model: Some(model.to_owned()),
            },
            None => Named {
                provider: active,
                model: Some(model.to_owned()),
            },
        };
        let selection = Selection {
            chosen: Some(chosen),
            effort: self.lock().effort,
            active: None,
        };
        Self {
            now: Arc::new(Mutex::new(selection)),
            remembered: None,
            ..self.clone()
        }
    }

    /// SUB-1: returns the same models and selection with another reasoning effort.
    #[must_use]
    pub fn reasoning(&self, effort: &str) -> Self {
        let reasoning = Effort::from_name(effort);
        if self.settings.agent.reasoning == reasoning {
            return self.clone();
        }
        let mut settings = Settings::clone(&self.settings);
        settings.agent.reasoning = reasoning;
        let selection = Selection {
            active: None,
            ..self.lock().clone()
        };
        Self {
            settings: Arc::new(settings),
            now: Arc::new(Mutex::new(selection)),
            ..self.clone()
        }
    }

    /// Returns the models of another folder. Connects to nothing yet.
    #[must_use]
    pub fn of_folder(&self, settings: &Arc<Settings>) -> Self {
        Self {
            settings: Arc::clone(settings),
            now: Arc::default(),
            remembered: None,
            ..self.clone()
        }
    }

    /// Restores the last selection, unless its provider no longer exists.
    pub async fn restore(&self) {
        let Some(remembered) = &self.remembered else {
            return;
        };
        let Some(chosen) = remembered.read().await else {
            return;
        };
        if choose(&self.settings_with(&chosen), &Process).is_ok() {
            self.lock().chosen = Some(chosen);
        }
    }

    /// Returns the active provider, connecting it if necessary. A restored selection that can no longer be
    /// used is replaced by the one in the settings. A selection made while this connects is kept.
    pub async fn connect(&self) -> Result<Arc<ActiveProvider>, Problem> {
        if let Some(active) = self.lock().active.clone() {
            return Ok(active);
        }
        let chosen = self.lock().chosen.clone();
        let restored = match &chosen {
            Some(chosen) => self.open(&self.settings_with(chosen)).await.ok(),
            None => None,
        };
        let is_restored = restored.is_some();
        let opened = match restored {
            Some(active) => Ok(active),
            None => self.open(&self.with_effort((*self.settings).clone())).await,
        };
        let mut now = self.lock();
        if let Some(active) = &now.active {
            return Ok(Arc::clone(active));
        }
        if !is_restored {
            now.chosen = None;
        }
        let active = opened?;
        now.active = Some(Arc::clone(&active));
        Ok(active)
    }

    /// Returns the provider for the next turn, or an error shortly after a connection failure.
    pub async fn ready(&self) -> Result<Arc<ActiveProvider>, NotReady> {
        let active = self.connect().await.map_err(not_connected)?;
        active.backoff.check()?;
        Ok(active)
    }

    async fn open(&self, settings: &Settings) -> Result<Arc<ActiveProvider>, Problem> {
        let connection = connect(settings, &Process, self.recorder.as_ref()).await?;
        check_cost_limit(settings, &connection)?;
        let mut connection = connection;
        let others = self.others(settings, &mut connection).await;
        if !others.is_empty() {
            let first = Arc::clone(&connection.provider);
            let pause = settings.retry.fallback_pause;
            connection.provider = Arc::new(fallback(first, others, Arc::clone(&self.clock), pause));
        }
        Ok(self.activate(connection))
    }

    /// PROV-13: connects the models that stand in for the first one. Those that cannot be used are reported.
    async fn others(&self, settings: &Settings, first: &mut Connection) -> Vec<Connection> {
        let mut others = Vec::new();
        let active = format!("{}/{}", first.provider.name(), first.provider.model().id);
        for name in settings.retry.fallback.iter().filter(|name| **name != active) {
            let (provider, model) = match name.split_once('/') {
                Some((provider, model)) => (provider, Some(model.to_owned())),
                None => (name.as_str(), None),
            };
            let named = Named {
                provider: self.known(provider).or_else(|| Some(provider.to_owned())),
                model,
            };
            let settings = self.settings_with(&named);
            let opened = connect(&settings, &Process, self.recorder.as_ref()).await;
            match opened.and_then(|other| check_cost_limit(&settings, &other).map(|()| other)) {
                Ok(other) => others.push(other),
                Err(problem) => first
                    .notices
                    .push(format!("fallback `{name}` is left out: {}", problem.message)),
            }
        }
        others
    }

    fn activate(&self, connection: Connection) -> Arc<ActiveProvider> {
        let window = self.settings.timeouts.no_providers_backoff;
        let backoff = Backoff::new(Arc::clone(&self.clock), window);
        let provider = Arc::new(Watched {
            provider: Arc::clone(&connection.provider),
            backoff: Arc::clone(&backoff),
        });
        Arc::new(ActiveProvider {
            notices: Mutex::new(connection.notices.clone()),
            _connection: connection,
            provider,
            backoff,
        })
    }

    /// Returns the settings that models are selected from.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Selection> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the settings as if they named this selection. Without a model, the provider's own default
    /// applies: the model in the settings belongs to the provider in the settings.
    pub fn settings_with(&self, chosen: &Named) -> Settings {
        let mut settings = (*self.settings).clone();
        let default = choose(&self.settings, &Process).ok();
        let own = default.filter(|choice| Some(&choice.name) == chosen.provider.as_ref());
        settings.model = chosen.model.clone().or_else(|| own.map(|choice| choice.model));
        settings.provider = chosen.provider.clone().or(settings.provider);
        self.with_effort(settings)
    }

    fn with_effort(&self, mut settings: Settings) -> Settings {
        if let Some(effort) = self.lock().effort {
            settings.agent.reasoning = effort;
        }
        settings
    }

    /// Returns the provider of this name, ignoring case.
    pub fn known(&self, name: &str) -> Option<String> {
        let own = self.settings.providers.keys().map(String::as_str);
        let all = own.chain(presets().map(|preset| preset.name.as_str()));
        let exact = all.clone().find(|known| *known == name);
        let found = exact.or_else(|| all.clone().find(|known| known.eq_ignore_ascii_case(name)));
        found.map(str::to_owned)
    }

    fn effective(&self) -> Settings {
        let chosen = self.lock().chosen.clone();
        match chosen {
            Some(chosen) => self.settings_with(&chosen),
            None => self.with_effort((*self.settings).clone()),
        }
    }

    /// Returns another provider than the active one, named as a provider or as `provider/model`. `None` if it
    /// cannot be used.
    pub async fn other(&self, name: &str) -> Option<Arc<dyn Provider>> {
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) => (provider, Some(model.to_owned())),
            None => (name, None),
        };
        let settings = self.settings_with(&Named {
            provider: Some(self.known(provider)?),
            model,
        });
        let connection = connect(&settings, &Process, self.recorder.as_ref()).await.ok()?;
        Some(self.gated(&connection.provider))
    }

    /// Returns the model that writes titles, if there is one.
    pub fn titles(&self) -> Option<Arc<dyn Titles>> {
        let model = self.settings.agent.session.title_model.clone()?;
        Some(Arc::new(TitleModel {
            model,
            models: self.clone(),
            connection: tokio::sync::Mutex::new(None),
        }))
    }
}

/// The names of efforts, as in the settings.
const EFFORTS: [(&str, Option<Effort>); 4] = [
    ("off", None),
    ("low", Some(Effort::Low)),
    ("medium", Some(Effort::Medium)),
    ("high", Some(Effort::High)),
];

#[async_trait]
impl EffortSwitch for Models {
    fn effort(&self) -> &'static str {
        let effort = self.effective().agent.reasoning;
        let known = EFFORTS.iter().find(|(_, known)| *known == effort);
        known.map_or("off", |(name, _)| name)
    }

    async fn set_effort(&mut self, effort: &str) -> Result<(), ChooseError> {
        let known = EFFORTS.iter().find(|(name, _)| *name == effort);
        let (_, effort) = *known.ok_or(ChooseError::Unknown)?;
        let is_connected = self.lock().active.is_some();
        let mut settings = self.effective();
        settings.agent.reasoning = effort;
        let active = match is_connected {
            true => Some(
                self.open(&settings)
                    .await
                    .map_err(|problem| ChooseError::Failed(problem.to_string()))?,
            ),
            false => None,
        };
        let mut now = self.lock();
        now.effort = Some(effort);
        now.active = active.or(now.active.take());
        Ok(())
    }

    fn choices(&self) -> Vec<String> {
        let mut all = Vec::new();
        for ModelChoice { provider, model, .. } in self.list() {
            if model.is_empty() {
                continue;
            }
            all.push(format!("{provider}/{model}"));
            // Other models of the same family are most likely served as well.
            let family: String = model.chars().take_while(char::is_ascii_alphabetic).collect();
            let known = registry::known_ids().filter(|id| {
                let rest = id.strip_prefix(family.as_str());
                rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
            });
            all.extend(
                known
                    .filter(|id| *id != model && !family.is_empty())
                    .map(|id| format!("{provider}/{id}")),
            );
        }
        all
    }
}

#[async_trait]
impl ModelSwitch for Models {
    fn list(&self) -> Vec<ModelChoice> {
        let mut names: Vec<String> = self.settings.providers.keys().cloned().collect();
        let kept = Process.keys().unwrap_or_default();
        let has_key = |preset: &&Preset| {
            let mut variables = preset.key_variables.iter();
            variables.any(|variable| Process.var(variable).is_some()) || kept.contains_key(&preset.name)
        };
        let found = presets().filter(has_key).map(|preset| preset.name.clone());
        let active = self.active();
        for name in found.chain(active.iter().map(|(provider, _)| provider.clone())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let choice = |provider: String| {
            let named = Named {
                provider: Some(provider.clone()),
                model: active
                    .as_ref()
                    .ok()
                    .filter(|(name, _)| *name == provider)
                    .map(|(_, model)| model.clone()),
            };
            let settings = self.settings_with(&named);
            let found = Choice::of(&provider, &settings, &Process).ok();
            ModelChoice {
                kind: found
                    .as_ref()
                    .map_or("incomplete", |choice| choice.wire.name())
                    .to_owned(),
                model: found.map(|choice| choice.model).unwrap_or_default(),
                provider,
            }
        };
        names.into_iter().map(choice).collect()
    }

    fn active(&self) -> Result<(String, String), String> {
        if let Some(active) = &self.lock().active {
            return Ok((
                active.provider.name().to_owned(),
                active.provider.model().id.clone(),
            ));
        }
        let settings = self.effective();
        let choice = choose(&settings, &Process).map_err(|problem| problem.to_string())?;
        Ok((choice.name, choice.model))
    }

    fn price(&self, model: &str) -> Option<Price> {
        price_of(&self.settings, model)
    }

    fn window(&self, model: &str) -> u64 {
        window_of(&self.settings, model)
    }

    fn offers(&self) -> Vec<Offer> {
        offers(self)
    }

    async fn choose(&mut self, provider: Option<&str>, model: Option<&str>) -> Result<Chosen, ChooseError> {
        // A slash can also be part of a model's id.
        let split = model.and_then(|model| model.split_once('/'));
        let split = split.and_then(|(name, model)| Some((self.known(name)?, model)));
        let (provider, model) = match (provider, split) {
            (Some(name), _) => (self.known(name).ok_or(ChooseError::Unknown)?, model),
            (None, Some((provider, model))) => (provider, Some(model)),
            (None, None) => (self.active().map_err(ChooseError::Failed)?.0, model),
        };
        let chosen = Named {
            provider: Some(provider),
            model: model.map(str::to_owned),
        };
        let opened = self.open(&self.settings_with(&chosen)).await;
        let active = opened.map_err(|problem| ChooseError::Failed(problem.to_string()))?;
        {
            let mut now = self.lock();
            now.chosen = Some(chosen.clone());
            now.active = Some(Arc::clone(&active));
        }
        if let Some(remembered) = &self.remembered {
            remembered.write(chosen).await;
        }
        let mut notices = active.take_notices();
        let model = active.provider.model();
        if !model.known
            && let Some(near) = registry::similar(&model.id).first()
        {
            notices.push(format!("did you mean `{near}`?"));
        }
        Ok(Chosen {
            provider: active.provider.name().to_owned(),
            model: model.id.clone(),
            notices,
        })
    }
}

/// Converts a connection problem into the reason why a turn cannot start.
fn not_connected(problem: Problem) -> NotReady {
    let kind = match problem.kind {
        ProblemKind::Config | ProblemKind::Usage => ProviderErrorKind::InvalidRequest,
        _ => ProviderErrorKind::Auth,
    };
    NotReady {
        kind: FailureKind::Provider(kind),
        message: problem.message,
        hint: None,
    }
}

/// Rejects a cost limit if the price is unknown, because it could not be enforced.
fn check_cost_limit(settings: &Settings, connection: &Connection) -> Result<(), Problem> {
    let model = connection.provider.model();
    if settings.agent.max_cost_usd.is_some() && model.price.is_none() {
        let text = format!(
            "a cost limit is set, but the price of `{0}` is not known: set `models.\"{0}\".price.input` and `.output`",
            model.id
        );
        return Err(Problem::new(ProblemKind::Usage, text));
    }
    Ok(())
}

/// SES-6: the model that writes titles, connected when the first title is needed.
struct TitleModel {
    model: String,
    models: Models,
    connection: tokio::sync::Mutex<Option<Connection>>,
}

impl TitleModel {
    async fn connect(&self) -> Option<Connection> {
        let mut settings = self.models.effective();
        let named = self.model.split_once('/');
        let named = named.and_then(|(name, model)| Some((self.models.known(name)?, model)));
        match named {
            Some((provider, model)) => {
                settings.provider = Some(provider);
                settings.model = Some(model.to_owned());
            }
            None => {
                settings.provider = Some(self.models.active().ok()?.0);
                settings.model = Some(self.model.clone());
            }
        }
        settings.agent.reasoning = None;
        connect(&settings, &Process, self.models.recorder.as_ref())
            .await
            .ok()
    }
}

#[async_trait]
impl Titles for TitleModel {
    async fn provider(&self) -> Option<Arc<dyn Provider>> {
        let mut connection = self.connection.lock().await;
        if connection.is_none() {
            *connection = self.connect().await;
        }
        connection.as_ref().map(|made| self.models.gated(&made.provider))
    }
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
