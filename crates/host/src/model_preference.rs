//! PROV-8: the provider and model that were last chosen in a channel, stored beside its sessions.
//!
//! All front ends on this machine share one channel, whatever the folder. A flag or a variable overrides it, and so does a settings file that has changed since the choice was made. Errors here never
//! stop a run.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass_core::clock::Clock;
use windlass_core::log::{Preferences, UserName};

use windlass_config::settings::Settings;

/// Timeout for reading the preference at startup.
const LIMIT: Duration = Duration::from_secs(2);

/// Key that the preference is stored under.
const NAME: &str = "model";

/// A provider, and a model if one was named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Named {
    /// Name of the provider.
    pub provider: Option<String>,
    /// Id of the model.
    pub model: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    chosen: Named,
    /// The settings at the time of the choice.
    over: Named,
}

/// Storage of a channel's choice.
#[derive(Clone)]
pub struct ModelPreference {
    store: Arc<dyn Preferences>,
    clock: Arc<dyn Clock>,
    scope: String,
    settings: Named,
    /// True if this run names its model explicitly, so that nothing is restored.
    is_told: bool,
}

impl ModelPreference {
    /// The preference of the front ends on this machine: they share one, as a channel with an empty id. `None` if
    /// `session.provider_persistence` is off.
    pub fn of_local(settings: &Settings, store: Arc<dyn Preferences>) -> Option<Self> {
        settings.agent.session.provider_persistence.then(|| Self {
            store,
            clock: windlass_config::environment::clock(),
            scope: "channel:local:".to_owned(),
            settings: Named {
                provider: settings.provider.clone(),
                model: settings.model.clone(),
            },
            is_told: ["provider", "model"].iter().any(|key| settings.is_told(key)),
        })
    }

    /// DIST-7: returns the preference of a user.
    #[must_use]
    pub fn of_user(&self, user: &UserName) -> Self {
        Self {
            scope: user.scoped(&self.scope),
            ..self.clone()
        }
    }

    /// Returns the last choice, if it is still valid.
    pub async fn read(&self) -> Option<Named> {
        if self.is_told {
            return None;
        }
        let text = tokio::select! {
            biased;
            read = self.store.preference(&self.scope, NAME) => read.ok()??,
            () = self.clock.sleep(LIMIT) => return None,
        };
        let kept: Kept = serde_json::from_str(&text).ok()?;
        (kept.over == self.settings).then_some(kept.chosen)
    }

    /// Stores a choice. The choice takes effect even if storing it fails.
    pub async fn write(&self, chosen: Named) {
        let kept = Kept {
            chosen,
            over: self.settings.clone(),
        };
        let Ok(text) = serde_json::to_string(&kept) else {
            return;
        };
        tokio::select! {
            biased;
            _ = self.store.set_preference(&self.scope, NAME, Some(&text)) => {}
            () = self.clock.sleep(LIMIT) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use windlass_core::log::LogError;

    use super::*;
    use crate::backoff::tests::ManualClock;

    /// A store that always returns this value, or never answers if there is none.
    struct Saying(Option<Result<Option<String>, LogError>>);

    #[async_trait]
    impl Preferences for Saying {
        async fn preference(&self, _: &str, _: &str) -> Result<Option<String>, LogError> {
            match &self.0 {
                Some(said) => said.clone(),
                None => std::future::pending().await,
            }
        }

        async fn set_preference(&self, _: &str, _: &str, _: Option<&str>) -> Result<(), LogError> {
            self.preference("", "").await.map(drop)
        }

        async fn settle_preference(&self, _: &str, _: &str, value: &str) -> Result<String, LogError> {
            Ok(value.to_owned())
        }

        async fn preferences(&self, _: &str) -> Result<Vec<(String, String)>, LogError> {
            Ok(Vec::new())
        }
    }

    fn remembered(said: Option<Result<Option<String>, LogError>>) -> ModelPreference {
        ModelPreference {
            store: Arc::new(Saying(said)),
            clock: Arc::new(ManualClock::default()),
            scope: "channel:test:x".to_owned(),
            settings: Named {
                provider: Some("first".to_owned()),
                model: None,
            },
            is_told: false,
        }
    }

    /// PROV-8: a store that fails, returns garbage or never answers is ignored, and so is a choice that was
    /// made under other settings.
    #[tokio::test]
    async fn a_store_that_fails_is_passed_over() {
        let kept = |over: &str| {
            let text =
                format!(r#"{{"provider":"other","model":null,"over":{{"provider":"{over}","model":null}}}}"#);
            Some(Ok(Some(text)))
        };
        let failed = Some(Err(LogError::Locked("for long".to_owned())));
        let useless = Some(Ok(Some("not JSON".to_owned())));
        for said in [failed, useless, Some(Ok(None)), kept("second"), None] {
            let remembered = remembered(said);
            assert_eq!(remembered.read().await, None);
            remembered.write(Named::default()).await;
        }
        let other = Named {
            provider: Some("other".to_owned()),
            model: None,
        };
        assert_eq!(remembered(kept("first")).read().await, Some(other));
        let told = ModelPreference {
            is_told: true,
            ..remembered(kept("first"))
        };
        assert_eq!(told.read().await, None);
    }
}
