//! CTX-16: texts that the user pinned, which survive every compaction. They are preferences of the session,
//! not part of its record: a rewind does not lose them.

use windlass_api::{SessionId, SessionInfo};
use windlass_core::log::{LogError, Preferences};

/// Preference name of the pins.
const NAME: &str = "pinned";

/// The pinned texts of a session.
pub(crate) struct Pins {
    session: SessionId,
    /// Oldest first.
    texts: Vec<String>,
}

impl Pins {
    /// Reads the pins of a session. There are none if they cannot be read.
    pub(crate) async fn read(store: &(impl Preferences + ?Sized), info: &SessionInfo) -> Self {
        let mut pins = Self {
            session: info.id.clone(),
            texts: Vec::new(),
        };
        // Only a message can be pinned, and looking costs a read: a new session is usually waited for.
        if info.last_seq > 0 {
            let value = store.preference(&pins.scope(), NAME).await;
            let value = value.ok().flatten().unwrap_or_default();
            pins.texts = serde_json::from_str(&value).unwrap_or_default();
        }
        pins
    }

    /// Returns the pinned texts, oldest first.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Pins a text. If it cannot be stored, it is not pinned.
    pub(crate) async fn add(
        &mut self,
        store: &(impl Preferences + ?Sized),
        text: String,
    ) -> Result<(), LogError> {
        let texts = [self.texts.as_slice(), &[text]].concat();
        let value = serde_json::to_string(&texts).map_err(|error| LogError::Failed(error.to_string()))?;
        let scope = self.scope();
        store.set_preference(&scope, NAME, Some(&value)).await?;
        self.texts = texts;
        Ok(())
    }

    /// Returns the preference scope of the session.
    fn scope(&self) -> String {
        format!("session:{}", self.session)
    }
}
