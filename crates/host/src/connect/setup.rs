//! Setting up a provider: lists the providers, and tests a key before it is stored.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, Message, Offer, ProviderErrorKind, SessionId};
use windlass_core::provider::{Prefix, ProviderError, Request, ToolChoice};
use windlass_providers::key::Secret;
use windlass_providers::preset::presets;
use windlass_service::ModelSwitch;

use super::key::{Source, key_source};
use super::keys_file::StoredKey;
use super::probe::reach;
use super::{Choice, KeysFile, SIM, StoredKeys, Surroundings, connect, listed};
use crate::connect::Process;
use crate::model_preference::Named;
use crate::models::Models;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;

/// Timeout of the test request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Output limit of the test request. No wire format accepts less.
const FEW_TOKENS: u64 = 16;
/// Placeholder model for requests that need none.
const SOME_MODEL: &str = "-";
/// Maximum number of a server's other models that are listed.
const OTHERS: usize = 8;

/// Sets up providers.
pub struct ProviderSetup {
    models: Models,
    /// The model to use, if one was named.
    model: Option<String>,
}

impl ProviderSetup {
    /// Sets up providers for these models.
    pub fn new(models: Models) -> Self {
        Self { models, model: None }
    }

    /// Sets the model to use.
    pub fn asking(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    /// Returns every known provider, the usable ones first.
    pub fn offers(&self) -> Vec<Offer> {
        offers(&self.models)
    }

    /// Tests a key, stores it where only this user can read it, and selects the provider from the next turn
    /// on. `key` is empty for a provider that needs none. Returns a message for the user, which never contains
    /// the key.
    ///
    /// # Errors
    /// Fails if there is no such provider or the key does not work. Then nothing was stored or changed.
    pub async fn connect(&self, provider: &str, key: &str) -> Result<String, ClientError> {
        let Some(name) = self.models.known(provider) else {
            let names: Vec<String> = self.offers().into_iter().map(|offer| offer.name).collect();
            return Err(refused(&format!(
                "there is no provider `{provider}`; known are {}",
                names.join(", ")
            )));
        };
        let key = key.trim();
        if key.contains(|sign: char| sign.is_whitespace() || sign.is_control()) {
            return Err(refused(
                "a key has no white space and no control characters in it",
            ));
        }
        let models = self.test(&name, key).await?;
        let model = self.model.as_deref().or(models.first().map(String::as_str));
        let mut told = self.keep(&name, key, model).await?;
        told.push_str(&others(&name, &models));
        Ok(told)
    }

    /// Sends a minimal request with this key, or with the existing one if `key` is empty. If no model is known
    /// for a local server, uses the first that it lists. Returns the listed models.
    async fn test(&self, name: &str, key: &str) -> Result<Vec<String>, ClientError> {
        let mut settings = test_settings(&self.models, name, self.model.clone());
        let typed = Typed { name, key };
        let env: &dyn Surroundings = if key.is_empty() {
            &Process
        } else {
            if let Some(entry) = settings.providers.get_mut(name) {
                (entry.key_env, entry.key_command) = (None, None);
            }
            &typed
        };
        let models = pick(name, &mut settings, env).await?;
        let choice = Choice::of(name, &settings, env).map_err(told)?;
        match key_source(&choice, env).map_err(told)? {
            Source::Missing(why) => return Err(refused(&why)),
            Source::NotNeeded if choice.base_url.is_empty() => return Ok(models),
            // A local server may have to load its model first, so a timeout does not mean that it is down.
            Source::NotNeeded if is_local(&choice.base_url) => {
                reached(name, &choice.base_url).await?;
                return Ok(models);
            }
            _ => {}
        }
        let base_url = choice.base_url.clone();
        let connection = connect(&settings, env, None).await.map_err(told)?;
        let asked = tokio::time::timeout(PATIENCE, connection.provider.send(one_word())).await;
        match asked {
            Ok(Ok(_)) => Ok(models),
            Ok(Err(error)) => Err(failed(name, &base_url, &error)),
            Err(_) => {
                let why = format!("no answer within {} s", PATIENCE.as_secs());
                Err(not_reached(name, &base_url, &why))
            }
        }
    }

    /// Stores the key and selects the provider from the next turn on; if selecting fails, removes the key
    /// again.
    async fn keep(&self, name: &str, key: &str, model: Option<&str>) -> Result<String, ClientError> {
        let file = KeysFile::new(&environment::folders().map_err(told)?);
        let kept = match key {
            "" => None,
            key => Some(file.keep(name, key).map_err(told)?),
        };
        let chosen = match self.models.clone().choose(Some(name), model).await {
            Ok(chosen) => chosen,
            Err(error) => return Err(taken_back(&file, kept.as_ref(), &error.to_string())),
        };
        let mut text = format!(
            "Connected to {}: {} is used from the next turn.",
            chosen.provider, chosen.model
        );
        if kept.is_some() {
            text.push_str(&format!("\nThe key is kept in {}.", file.path().display()));
            let settings = self.models.settings_with(&named(name));
            text.push_str(&note_first(Choice::of(name, &settings, &Process)));
        }
        for notice in &chosen.notices {
            text.push_str(&format!("\n{notice}"));
        }
        Ok(text)
    }
}

/// PROV-7: for a local server without a configured model, asks the server for its models and selects the
/// first.
async fn pick(
    name: &str,
    settings: &mut Settings,
    env: &dyn Surroundings,
) -> Result<Vec<String>, ClientError> {
    let Err(unnamed) = Choice::of(name, settings, env) else {
        return Ok(Vec::new());
    };
    settings.model = Some(SOME_MODEL.to_owned());
    let choice = Choice::of(name, settings, env).map_err(told)?;
    if !is_local(&choice.base_url) {
        return Err(told(unnamed));
    }
    let base_url = choice.base_url.clone();
    reached(name, &base_url).await?;
    let models = match tokio::time::timeout(PATIENCE, listed(settings, env, &choice)).await {
        Ok(listed) => listed.map_err(|problem| problem.message),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    let models = models.map_err(|why| {
        refused(&format!(
            "{name} did not list its models: {}. Name one, as in `/model {name}/NAME`",
            why.trim_end_matches('.')
        ))
    })?;
    let Some(first) = models.first() else {
        return Err(refused(&no_models(name, &base_url)));
    };
    settings.model = Some(first.clone());
    Ok(models)
}

fn no_models(name: &str, base_url: &str) -> String {
    let how = match name {
        "ollama" => "get one with `ollama pull NAME`, as in `ollama pull qwen3`",
        "lmstudio" => "get one with `lms get NAME`, or in LM Studio itself",
        _ => "start it with one",
    };
    format!("the server of {name} at {base_url} has no models: {how}, then connect again")
}

/// Lists the server's other models, and how to select one.
fn others(name: &str, models: &[String]) -> String {
    let Some((_, others)) = models.split_first().filter(|(_, others)| !others.is_empty()) else {
        return String::new();
    };
    let named: Vec<&str> = others.iter().take(OTHERS).map(String::as_str).collect();
    let more = match others.len().saturating_sub(OTHERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "\nIt also has {}{more}: choose one with `/model {name}/NAME`.",
        named.join(", ")
    )
}

/// Returns every known provider, the usable ones first.
pub fn offers(models: &Models) -> Vec<Offer> {
    let own = models.settings().providers.keys();
    let known = presets().map(|preset| &preset.name);
    let mut names: Vec<&String> = own.collect();
    for name in known {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut offers: Vec<Offer> = names.into_iter().map(|name| offer(models, name)).collect();
    offers.sort_by_key(|offer| !offer.is_ready);
    offers
}

fn offer(models: &Models, name: &str) -> Offer {
    let mut settings = models.settings_with(&named(name));
    let model = Choice::of(name, &settings, &Process).map(|choice| choice.model);
    if model.is_err() {
        settings.model = Some(SOME_MODEL.to_owned());
    }
    let choice = Choice::of(name, &settings, &Process);
    // A server that the user did not set up may or may not be running.
    let address = choice.as_ref().ok().filter(|choice| choice.entry.is_none());
    let address = address.map(|choice| choice.base_url.clone()).unwrap_or_default();
    let source = choice.and_then(|choice| key_source(&choice, &Process));
    let (needs_key, is_ready, hint) = match source {
        Err(problem) => (false, false, first_line(&problem)),
        Ok(Source::Variable { name, .. }) => (true, true, format!("key from {name}")),
        Ok(Source::Command(_)) => (true, true, format!("key from `providers.{name}.key_command`")),
        Ok(Source::File(_)) => (true, true, "key from keys.toml".to_owned()),
        Ok(Source::NotNeeded) if !address.is_empty() => (
            false,
            false,
            format!("needs no key; a server must run at {address}"),
        ),
        Ok(Source::NotNeeded) => (false, true, "needs no key".to_owned()),
        Ok(Source::Missing(why)) => {
            let hint = why.split_once(": ").map_or(why.as_str(), |(_, hint)| hint);
            (true, false, hint.to_owned())
        }
    };
    match model {
        Ok(model) => Offer {
            name: name.to_owned(),
            model,
            needs_key,
            is_ready,
            hint,
        },
        Err(problem) => Offer {
            name: name.to_owned(),
            model: String::new(),
            needs_key,
            is_ready: false,
            // The models of a local server are requested when it is set up.
            hint: if is_local(&address) {
                hint
            } else {
                first_line(&problem)
            },
        },
    }
}

/// Environment for testing a typed key: the process's variables, with the typed key in place of the stored
/// ones.
struct Typed<'a> {
    name: &'a str,
    key: &'a str,
}

impl Surroundings for Typed<'_> {
    fn var(&self, name: &str) -> Option<String> {
        let is_key = |variables: &[String]| variables.iter().any(|variable| variable == name);
        let holds_keys = presets().any(|preset| is_key(&preset.key_variables));
        environment::var(name).filter(|_| !holds_keys)
    }

    fn keys(&self) -> Result<StoredKeys, Problem> {
        Ok(StoredKeys::from([(self.name.to_owned(), Secret::new(self.key))]))
    }
}

/// Settings of a test: one request without retries.
fn test_settings(models: &Models, name: &str, model: Option<String>) -> Settings {
    let mut settings = models.settings_with(&Named { model, ..named(name) });
    settings.retry.max_retries = 0;
    settings.agent.reasoning = None;
    settings
}

fn named(provider: &str) -> Named {
    Named {
        provider: Some(provider.to_owned()),
        model: None,
    }
}

/// A request that costs next to nothing.
fn one_word() -> Request {
    let session = SessionId::from("connect");
    let now = environment::clock().now();
    Request {
        prefix: Arc::new(Prefix::default()),
        messages: vec![Arc::new(Message::user(&session, "Say ok.", now))],
        tool_choice: ToolChoice::None,
        max_output: Some(FEW_TOKENS),
        session,
        cancel: CancellationToken::new(),
    }
}

/// Error for a provider that could not be selected after its key was stored: reports that the key was
/// removed, or why it could not be.
fn taken_back(file: &KeysFile, kept: Option<&StoredKey>, why: &str) -> ClientError {
    match kept.map(|kept| file.put_back(kept)) {
        None | Some(Ok(())) => refused(why),
        Some(Err(problem)) => ClientError::Command(format!(
            "{}. The key was stored in {} and could not be removed again: {problem}",
            why.trim_end_matches('.'),
            file.path().display()
        )),
    }
}

/// Note about another key that takes precedence over the stored one. A failure here does not undo the setup.
fn note_first(choice: Result<Choice<'_>, Problem>) -> String {
    match choice.map(|choice| goes_first(&choice)) {
        Ok(None) => String::new(),
        Ok(Some(first)) => format!("\nBut the key of {first} goes first."),
        Err(problem) => format!("\nWhether another key goes first could not be told: {problem}"),
    }
}

/// Returns the source of a key that takes precedence over the keys file.
fn goes_first(choice: &Choice<'_>) -> Option<String> {
    match key_source(choice, &Process) {
        Ok(Source::Variable { name, .. }) => Some(name),
        Ok(Source::Command(_)) => Some(format!("`providers.{}.key_command`", choice.name)),
        _ => None,
    }
}

fn is_local(base_url: &str) -> bool {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}

fn failed(name: &str, base_url: &str, error: &ProviderError) -> ClientError {
    match error.kind {
        ProviderErrorKind::Auth => refused(&format!("{name} rejected the key: {}", error.message)),
        ProviderErrorKind::Network => not_reached(name, base_url, &error.message),
        _ => refused(&format!("{name} answered with an error: {}", error.message)),
    }
}

/// Checks that a server listens at the address.
async fn reached(name: &str, base_url: &str) -> Result<(), ClientError> {
    let reached = reach(base_url).await;
    reached.map_err(|why| not_reached(name, base_url, &why))
}

fn not_reached(name: &str, base_url: &str, why: &str) -> ClientError {
    let place = if base_url.is_empty() { SIM } else { base_url };
    refused(&format!("{name} could not be reached at {place}: {why}"))
}

fn told(problem: Problem) -> ClientError {
    refused(&problem.to_string())
}

fn refused(why: &str) -> ClientError {
    ClientError::Command(format!("{}. Nothing was stored.", why.trim_end_matches('.')))
}

fn first_line(problem: &Problem) -> String {
    problem.message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use windlass_config::ProblemKind;

    use windlass_config::folders::Folders;

    /// PROV-11: "nothing was stored" is reported only if it is true: a key that cannot be removed again is
    /// reported.
    #[test]
    fn what_is_kept_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let file = KeysFile::new(&Folders {
            config: path("config"),
            data: path("data"),
            state: path("state"),
            cache: path("cache"),
            home: None,
        });
        let text = |error: ClientError| error.to_string();
        let failed = text(taken_back(&file, None, "no such model."));
        assert!(failed.ends_with("no such model. Nothing was stored."), "{failed}");

        let kept = file.keep("anthropic", "sk-1").unwrap();
        let failed = text(taken_back(&file, Some(&kept), "no such model"));
        assert!(failed.ends_with("Nothing was stored."), "{failed}");
        assert!(file.read().unwrap().is_empty());

        // A folder at its path can neither be read nor written as a file.
        fs::remove_file(file.path()).unwrap();
        fs::create_dir_all(file.path().join("in the way")).unwrap();
        let failed = text(taken_back(&file, Some(&kept), "no such model"));
        let path = file.path().display().to_string();
        assert!(
            failed.contains("no such model. The key was stored in"),
            "{failed}"
        );
        assert!(
            failed.contains(&path) && !failed.contains("Nothing was stored"),
            "{failed}"
        );
    }

    /// PROV-11: a problem found after the key was stored is a note, not a failure.
    #[test]
    fn a_remark_does_not_fail() {
        let noted = note_first(Err(Problem::new(ProblemKind::Config, "no model")));
        assert!(noted.contains("could not be told: no model"), "{noted}");
    }
}
