//! WEB-6: web push: notifications for a browser whose page is closed, through the push service of its maker.
//!
//! A message says only that something happened in a session; the page reads the rest. It is encrypted for the browser
//! (RFC 8291) and signed by this server (RFC 8292), so that the push service can neither read nor forge it.

mod encrypt;
mod post;
mod vapid;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::{CallId, SessionInfo, UserName};
use windlass_core::clock::{Clock, Timestamp};

use self::encrypt::Recipient;
use self::post::{Poster, Sent};
use self::vapid::VapidKey;
use crate::app::lock;
use crate::credentials::{Credential, Credentials, Scope};
use crate::identity::TrustedProxy;

/// Subscriptions of one user.
const MOST: usize = 20;
/// Delays before a message is sent again.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];

/// The file that keeps the server's key and the subscriptions. Only the user may read it.
pub trait PushFile: Send + Sync {
    /// Returns the content; `None` if there is none yet.
    ///
    /// # Errors
    /// A sentence for the user, if it cannot be read.
    fn read(&self) -> Result<Option<String>, String>;

    /// Replaces the content, unless the change returns `None`. No other process may change it meanwhile.
    ///
    /// # Errors
    /// A sentence for the user, if it cannot be written.
    fn change(&self, change: &mut dyn FnMut(Option<String>) -> Option<String>) -> Result<(), String>;
}

/// Everything that web push needs from the program.
#[derive(Clone)]
pub struct PushPorts {
    /// Keeps the key and the subscriptions.
    pub file: Arc<dyn PushFile>,
    /// Returns the reason an address is not public.
    pub objection: fn(IpAddr) -> Option<&'static str>,
    /// True if push services may have private addresses, and be reached over HTTP on this machine.
    pub allows_private: bool,
}

/// A subscription, as browsers write it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PushSubscription {
    /// Address at the push service.
    pub(crate) endpoint: String,
    /// Time at which the browser gives it up, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) expiration_time: Option<u64>,
    /// Keys of the browser.
    pub(crate) keys: PushKeys,
}

/// Keys of a browser, in base64url.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PushKeys {
    /// Public key on the curve P-256.
    p256dh: String,
    /// Secret that proves that a message comes from whom the browser told it.
    auth: String,
}

/// A stored subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    endpoint: String,
    keys: PushKeys,
    /// Credential of the browser.
    credential: String,
    user: String,
    /// Time at which the browser gives it up.
    #[serde(default)]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The server's private key, as PKCS #8 in base64url.
    key: Option<String>,
    #[serde(default)]
    subscriptions: Vec<Stored>,
}

/// Reason a subscription or a key is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PushError {
    /// A field of a subscription is wrong.
    #[error("{text}")]
    Field {
        /// The field.
        field: &'static str,
        /// Reason in words.
        text: String,
    },
    /// The file cannot be used.
    #[error("{0}")]
    File(String),
    /// A key cannot be made.
    #[error("the system cannot make keys")]
    Key,
}

/// News of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushNews {
    /// It asks something.
    Asks,
    /// A turn ended.
    Finished,
    /// A turn failed.
    Failed,
}

impl PushNews {
    fn name(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// Name of the local user in the file, and start of the names of others.
const OWNER: &str = "owner";
const NAMED: &str = "proxy:";

/// Returns the name of a user in the file.
pub(crate) fn user_of(user: &UserName) -> String {
    match user.is_local() {
        true => OWNER.to_owned(),
        false => format!("{NAMED}{user}"),
    }
}

/// Sends messages to subscribed browsers.
pub(crate) struct Push {
    ports: PushPorts,
    credentials: Credentials,
    proxy: Option<TrustedProxy>,
    clock: Arc<dyn Clock>,
    /// Address of the server, for the push service to complain to.
    contact: String,
    poster: Poster,
    /// Event streams that are open, by user.
    present: Mutex<HashMap<String, usize>>,
}

impl Push {
    pub(crate) fn new(
        ports: PushPorts,
        credentials: Credentials,
        proxy: Option<TrustedProxy>,
        clock: Arc<dyn Clock>,
        contact: String,
    ) -> Self {
        Self {
            poster: Poster::new(ports.objection, ports.allows_private),
            ports,
            credentials,
            proxy,
            clock,
            contact,
            present: Mutex::default(),
        }
    }

    /// Notes that a client of a user has opened a stream, or closed it.
    pub(crate) fn is_present(&self, user: &str, is_open: bool) {
        let mut present = lock(&self.present);
        let count = present.entry(user.to_owned()).or_default();
        *count = if is_open {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
        if *count == 0 {
            present.remove(user);
        }
    }

    fn state(&self) -> Result<State, PushError> {
        let text = self.ports.file.read().map_err(PushError::File)?;
        Ok(parsed(text.as_deref()))
    }

    /// Returns true if a browser is subscribed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.state().is_ok_and(|state| !state.subscriptions.is_empty())
    }

    /// Returns the users with a subscribed browser.
    pub(crate) fn users(&self) -> Vec<UserName> {
        let subscriptions = self.state().map(|state| state.subscriptions).unwrap_or_default();
        let users = subscriptions
            .iter()
            .map(|stored| stored.user.strip_prefix(NAMED).unwrap_or_default());
        users.map(UserName::stored).collect()
    }

    /// Returns the server's key; makes one if there is none.
    fn key(&self) -> Result<VapidKey, PushError> {
        let known = |state: &State| VapidKey::read(&URL_SAFE_NO_PAD.decode(state.key.as_deref()?).ok()?);
        if let Some(key) = known(&self.state()?) {
            return Ok(key);
        }
        let mut made = None;
        let changed = self.ports.file.change(&mut |text| {
            let mut state = parsed(text.as_deref());
            // Another process may have been faster.
            if let Some(key) = known(&state) {
                made = Some(key);
                return None;
            }
            let (key, pkcs8) = VapidKey::generate()?;
            state.key = Some(URL_SAFE_NO_PAD.encode(pkcs8));
            // Browsers subscribed for another key refuse messages of this one.
            state.subscriptions.clear();
            made = Some(key);
            serde_json::to_string(&state).ok()
        });
        changed.map_err(PushError::File)?;
        made.ok_or(PushError::Key)
    }

    /// Returns the server's public key in base64url.
    pub(crate) fn public_key(&self) -> Result<String, PushError> {
        Ok(URL_SAFE_NO_PAD.encode(self.key()?.public()))
    }

    /// Stores a subscription of a browser.
    pub(crate) fn subscribe(&self, given: PushSubscription, who: &Credential) -> Result<(), PushError> {
        let field = |field, text| PushError::Field { field, text };
        self.poster
            .check(&given.endpoint)
            .map_err(|text| field("endpoint", text))?;
        recipient(&given.keys)?;
        let stored = Stored {
            endpoint: given.endpoint,
            keys: given.keys,
            credential: who.id.clone(),
            user: user_of(&who.user),
            expires_at: given.expiration_time.map(Timestamp),
        };
        let changed = self.ports.file.change(&mut |text| {
            let mut state = parsed(text.as_deref());
            state
                .subscriptions
                .retain(|known| known.endpoint != stored.endpoint);
            state.subscriptions.push(stored.clone());
            // The oldest make room: their browsers are long gone.
            let own = state
                .subscriptions
                .iter()
                .filter(|known| known.user == stored.user);
            let mut surplus = own.count().saturating_sub(MOST);
            state.subscriptions.retain(|known| {
                let is_surplus = surplus > 0 && known.user == stored.user;
                surplus -= usize::from(is_surplus);
                !is_surplus
            });
            serde_json::to_string(&state).ok()
        });
        changed.map_err(PushError::File)
    }

    /// Removes a subscription of a user; of any user if `None`. Returns false if there is none.
    pub(crate) fn unsubscribe(&self, endpoint: &str, user: Option<&str>) -> Result<bool, PushError> {
        let mut is_found = false;
        let changed = self.ports.file.change(&mut |text| {
            let mut state = parsed(text.as_deref());
            let before = state.subscriptions.len();
            let is_it =
                |known: &Stored| known.endpoint == endpoint && user.is_none_or(|user| known.user == user);
            state.subscriptions.retain(|known| !is_it(known));
            is_found = state.subscriptions.len() < before;
            is_found.then(|| serde_json::to_string(&state).ok()).flatten()
        });
        changed.map_err(PushError::File)?;
        Ok(is_found)
    }

    /// Tells the browsers of a session's user, unless a page is open. Failures are of no use to anybody here.
    pub(crate) async fn tell(self: Arc<Self>, news: PushNews, session: SessionInfo, call: Option<CallId>) {
        let Ok(state) = self.state() else { return };
        let message = json!({ "kind": news.name(), "session": session.id, "call": call }).to_string();
        let user = user_of(&session.user);
        for stored in state
            .subscriptions
            .into_iter()
            .filter(|stored| stored.user == user)
        {
            if lock(&self.present).contains_key(&stored.user) {
                continue;
            }
            if !self.may_read(&stored).await {
                let _ = self.unsubscribe(&stored.endpoint, None);
                continue;
            }
            self.send(&stored, message.as_bytes(), news).await;
        }
    }

    /// Returns true if the subscription is valid, and the browser may still read sessions.
    async fn may_read(&self, stored: &Stored) -> bool {
        if stored.expires_at.is_some_and(|until| self.clock.now() >= until) {
            return false;
        }
        if let Some(name) = stored.credential.strip_prefix("proxy:") {
            let proxy = self.proxy.as_ref();
            return proxy.is_some_and(|proxy| proxy.allows(name, Scope::Read));
        }
        // An error of the store says nothing about the credential.
        self.credentials
            .is_valid(&stored.credential)
            .await
            .unwrap_or(true)
    }

    async fn send(&self, stored: &Stored, message: &[u8], news: PushNews) {
        let mut delays = AGAIN.into_iter();
        loop {
            let prepared = || -> Option<_> {
                let endpoint = self.poster.check(&stored.endpoint).ok()?;
                let body = recipient(&stored.keys).ok()?.encrypt(message)?;
                let expires = self.clock.now().0 / 1000 + vapid::TERM;
                let authorization =
                    self.key()
                        .ok()?
                        .authorization(&endpoint.origin(), &self.contact, expires)?;
                Some((endpoint, authorization, body))
            };
            let Some((endpoint, authorization, body)) = prepared() else {
                return;
            };
            match self
                .poster
                .post(&endpoint, &authorization, body, news == PushNews::Asks)
                .await
            {
                Sent::Taken | Sent::Refused => return,
                Sent::Gone => {
                    let _ = self.unsubscribe(&stored.endpoint, None);
                    return;
                }
                Sent::Failed => match delays.next() {
                    Some(delay) => self.clock.sleep(delay).await,
                    None => return,
                },
            }
        }
    }
}

fn parsed(text: Option<&str>) -> State {
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Reads the keys of a browser.
fn recipient(keys: &PushKeys) -> Result<Recipient, PushError> {
    let bytes = |field: &'static str, text: &str, expected: &str| {
        // Browsers leave the padding out, some libraries do not.
        let decoded = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        decoded.map_err(|_| PushError::Field {
            field,
            text: format!("{expected} in base64url"),
        })
    };
    let public = bytes("keys.p256dh", &keys.p256dh, "65 bytes of a public key")?;
    let secret = bytes("keys.auth", &keys.auth, "16 bytes")?;
    Recipient::new(public, secret).map_err(|field| PushError::Field {
        field,
        text: "65 bytes of a public key on the curve P-256, and a secret of 16 bytes".to_owned(),
    })
}
