//! SRV-3: login links, browsers and tokens. Only hashes are stored.

mod streams;

use std::collections::HashSet;
use std::sync::Arc;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::log::{LogError, Preferences, UserName};

use self::streams::Streams;

/// Scope of the store's small values under which credentials are kept.
const SCOPE: &str = "server.credential";
/// Start of every credential, so that scanners recognize one.
const PREFIX: &str = "wl_";
/// Time a login link works, in milliseconds.
const LINK_TERM: u64 = 10 * 60 * 1000;
/// Time a browser stays signed in, in milliseconds.
const BROWSER_TERM: u64 = 90 * 24 * 60 * 60 * 1000;

/// Something that a credential allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read sessions and their events.
    Read,
    /// Send messages, run commands, change sessions.
    Write,
    /// Answer permission requests and questions.
    Approve,
    /// All of these, and the management of credentials.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Approve, Self::Admin];

    /// Returns the name of the scope.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// A bearer token of a program.
    Token,
    /// The cookie of a browser that signed in.
    Browser,
    /// A link that signs a browser in, once.
    Link,
    /// A person whom a trusted proxy has signed in. Nothing is stored.
    Proxy,
}

/// A stored credential, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    /// Id, part of the secret text.
    pub id: String,
    /// Kind of credential.
    pub kind: CredentialKind,
    /// Name for people.
    pub name: String,
    /// Its permissions.
    pub scopes: Vec<Scope>,
    /// User it belongs to.
    #[serde(default, skip_serializing_if = "UserName::is_local")]
    pub user: UserName,
    /// Time of creation, in milliseconds since 1970.
    pub created_at: Timestamp,
    /// Time after which it no longer works.
    pub expires_at: Option<Timestamp>,
}

impl Credential {
    /// Returns true if the credential allows something.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

/// A credential to be created.
#[derive(Debug, Clone)]
pub struct NewCredential {
    /// Kind of credential.
    pub kind: CredentialKind,
    /// Name for people.
    pub name: String,
    /// Its permissions.
    pub scopes: Vec<Scope>,
    /// User it belongs to.
    pub user: UserName,
    /// Time it works, in milliseconds; the default of its kind if `None`.
    pub term: Option<u64>,
}

/// A row of the store.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(flatten)]
    credential: Credential,
    hash: String,
}

/// The credentials of this user's servers.
#[derive(Clone)]
pub struct Credentials {
    store: Arc<dyn Preferences>,
    clock: Arc<dyn Clock>,
    /// Allows one sign-in at a time, so that a link works once.
    signing_in: Arc<tokio::sync::Mutex<()>>,
    streams: Arc<Streams>,
}

impl Credentials {
    /// Uses the credentials in a store.
    pub fn new(store: Arc<dyn Preferences>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            signing_in: Arc::default(),
            streams: Arc::default(),
        }
    }

    /// Creates a credential and returns its secret text, which is not stored.
    ///
    /// # Errors
    /// When the store cannot be written, or the system has no random numbers.
    pub async fn create(&self, new: NewCredential) -> Result<(Credential, String), LogError> {
        let id = random_hex(6)?;
        let secret = format!("{PREFIX}{id}_{}", random_hex(32)?);
        let now = self.clock.now();
        let term = new.term.or(match new.kind {
            CredentialKind::Token | CredentialKind::Proxy => None,
            CredentialKind::Browser => Some(BROWSER_TERM),
            CredentialKind::Link => Some(LINK_TERM),
        });
        let row = Row {
            credential: Credential {
                id: id.clone(),
                kind: new.kind,
                name: new.name,
                scopes: new.scopes,
                user: new.user,
                created_at: now,
                expires_at: term.map(|term| Timestamp(now.0.saturating_add(term))),
            },
            hash: hash(&secret),
        };
        let text = serde_json::to_string(&row).map_err(|error| LogError::Failed(error.to_string()))?;
        self.store.set_preference(SCOPE, &id, Some(&text)).await?;
        Ok((row.credential, secret))
    }

    /// Returns the credential with this secret text, unless it is unknown, revoked or expired.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find(&self, secret: &str) -> Result<Option<Credential>, LogError> {
        let Some((id, _)) = secret.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
            return Ok(None);
        };
        let Some(row) = self.row(id).await? else {
            return Ok(None);
        };
        let is_right = is_same(row.hash.as_bytes(), hash(secret).as_bytes());
        let is_over = |until: Timestamp| self.clock.now() >= until;
        let is_old = row.credential.expires_at.is_some_and(is_over);
        Ok((is_right && !is_old).then_some(row.credential))
    }

    /// Returns true if a credential has not been revoked and is not too old.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_valid(&self, id: &str) -> Result<bool, LogError> {
        let now = self.clock.now();
        let is_young = |row: Row| row.credential.expires_at.is_none_or(|until| now < until);
        Ok(self.row(id).await?.is_some_and(is_young))
    }

    /// Returns the ids of all credentials that work.
    async fn valid(&self) -> Result<HashSet<String>, LogError> {
        let now = self.clock.now();
        let stored = self.store.preferences(SCOPE).await?;
        let rows = stored
            .into_iter()
            .filter_map(|(id, text)| Some((id, serde_json::from_str::<Row>(&text).ok()?)));
        let works = |row: &Row| row.credential.expires_at.is_none_or(|until| now < until);
        Ok(rows.filter(|(_, row)| works(row)).map(|(id, _)| id).collect())
    }

    /// Exchanges a login link for the cookie of a browser. `None` if the link is unknown, used or too old.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn sign_in(&self, link: &str, name: String) -> Result<Option<(Credential, String)>, LogError> {
        let _one_at_a_time = self.signing_in.lock().await;
        let Some(found) = self
            .find(link)
            .await?
            .filter(|found| found.kind == CredentialKind::Link)
        else {
            return Ok(None);
        };
        self.store.set_preference(SCOPE, &found.id, None).await?;
        let new = NewCredential {
            kind: CredentialKind::Browser,
            name,
            scopes: found.scopes,
            user: found.user,
            term: None,
        };
        self.create(new).await.map(Some)
    }

    /// Returns all credentials that still work, oldest first. Removes the others.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self) -> Result<Vec<Credential>, LogError> {
        let now = self.clock.now();
        let mut found = Vec::new();
        for (id, text) in self.store.preferences(SCOPE).await? {
            match serde_json::from_str::<Row>(&text) {
                Ok(row) if row.credential.expires_at.is_none_or(|until| now < until) => {
                    found.push(row.credential);
                }
                _ => self.store.set_preference(SCOPE, &id, None).await?,
            }
        }
        found.sort_by_key(|credential| credential.created_at);
        Ok(found)
    }

    /// Revokes a credential by its id or its name. Returns the revoked ones.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn revoke(&self, called: &str) -> Result<Vec<Credential>, LogError> {
        let mut found = self.list().await?;
        found.retain(|credential| credential.id == called || credential.name == called);
        for credential in &found {
            self.store.set_preference(SCOPE, &credential.id, None).await?;
        }
        Ok(found)
    }

    async fn row(&self, id: &str) -> Result<Option<Row>, LogError> {
        let text = self.store.preference(SCOPE, id).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// Returns random bytes as hexadecimal digits.
fn random_hex(bytes: usize) -> Result<String, LogError> {
    let mut random = vec![0; bytes];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| LogError::Failed("the system has no random numbers".to_owned()))?;
    Ok(hex(&random))
}

/// Returns the hash of a secret. A secret has 256 random bits, so that a plain hash does.
pub(crate) fn hash(secret: &str) -> String {
    hex(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in constant time.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(other)
        .fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}
