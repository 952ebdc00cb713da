//! SRV-4: `windlass attach`: the terminal as a front end of a server.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{Backend, Begin, ClientError, Connections, Find, Label, Offer, SessionId, SessionInfo};
use windlass_config::{Problem, environment};
use windlass_core::clock::SystemClock;
use windlass_core::log::Preferences;
use windlass_server::{CredentialKind, Credentials, Login, NewCredential, RemoteBackend, Scope};

use crate::cron::News;
use crate::engine::{not_begun, working_directory};
use crate::exit::Exit;
use crate::interactive::{NEWS, Notices, Scene, front_end};
use crate::output::Style;
use crate::session_choice::{self, SessionChoice, SessionStore, problem};
use crate::{asking, repl};
use windlass_args::{AttachOptions, SettingsOptions};

/// Scope of the store's small values under which running servers are registered, by their name as owners.
const RUNNING: &str = "server.running";
/// Time a terminal of this machine may use its own server without signing in, in milliseconds.
const TERM: u64 = 24 * 60 * 60 * 1000;

/// Registers the address of a running server, or removes it.
pub(crate) async fn register(
    store: &(impl Preferences + ?Sized),
    owner: &str,
    url: Option<&str>,
) -> Result<(), Problem> {
    store.set_preference(RUNNING, owner, url).await.map_err(problem)
}

/// A session that a server of this user has open.
pub(crate) struct Held {
    session: SessionInfo,
    url: String,
}

/// Returns the session to resume, if a server on this machine has it open.
pub(crate) async fn holder(
    keeper: &SessionStore,
    which: &SessionChoice,
    fork: bool,
    cwd: &Path,
) -> Result<Option<Held>, Problem> {
    if fork {
        return Ok(None);
    }
    let store = &*keeper.store;
    let Some(session) = session_choice::found(store, which, cwd).await? else {
        return Ok(None);
    };
    let Some(owner) = store.holder(&session.id).await.map_err(problem)? else {
        return Ok(None);
    };
    let url = store.preference(RUNNING, &owner).await.map_err(problem)?;
    Ok(url.map(|url| Held { session, url }))
}

/// Uses a session that this user's own server has open. The store is the proof: who can read it may do everything.
pub(crate) async fn to_own_server(
    keeper: &SessionStore,
    held: Held,
    settings: &SettingsOptions,
    (style, is_plain, full_screen): (Style, bool, bool),
) -> Result<Exit, Problem> {
    let pass = Pass::create(keeper).await?;
    let login = Login::Token(pass.secret.clone());
    let front = Front {
        keeper,
        settings,
        style,
        is_plain,
        full_screen,
    };
    let ran = front.run(&held.url, login, Begin::Resume(held.session.id)).await;
    pass.revoke().await;
    ran
}

/// Runs `windlass attach`.
pub(crate) async fn attach(options: &AttachOptions) -> Result<Exit, Problem> {
    let is_plain = options.plain || environment::var("TERM").is_some_and(|term| term == "dumb");
    let detected = Style::detect(false, &environment::var);
    let style = Style {
        color: detected.color && !is_plain,
        spinner: detected.spinner && !is_plain,
        ..detected
    };
    let keeper = SessionStore::begin(&SessionChoice::New)?;
    let (url, link) = match options.url.split_once("/#t=") {
        Some((url, secret)) => (url, Some(secret.to_owned())),
        None => (options.url.as_str(), None),
    };
    let is_own = is_own_server(&keeper, url).await?;
    let token = environment::var("WINDLASS_TOKEN");
    if !is_own && link.is_none() && token.is_none() {
        return Err(no_credential(url));
    }
    repl::check_input()?;
    let mut pass = None;
    let login = match (link, token) {
        (Some(secret), _) => Login::Link(secret),
        (None, Some(token)) => Login::Token(token),
        (None, None) => {
            let created = Pass::create(&keeper).await?;
            let secret = created.secret.clone();
            pass = Some(created);
            Login::Token(secret)
        }
    };
    let front = Front {
        keeper: &keeper,
        settings: &options.settings,
        style,
        is_plain,
        full_screen: options.full_screen,
    };
    let ran = front.run_chosen(url, login, options).await;
    if let Some(pass) = pass {
        pass.revoke().await;
    }
    ran
}

fn no_credential(url: &str) -> Problem {
    Problem::usage(format!(
        "no server of your own runs at {url}: start one with `windlass serve`. Any other server needs a credential: give a \
         login link (`windlass token link` there), or a token in WINDLASS_TOKEN"
    ))
}

/// Returns true if a running server of this user has this address.
async fn is_own_server(keeper: &SessionStore, url: &str) -> Result<bool, Problem> {
    let running = keeper.store.preferences(RUNNING).await.map_err(problem)?;
    Ok(running
        .iter()
        .any(|(_, known)| known == url.trim_end_matches('/')))
}

/// A token of this terminal for the user's own server.
struct Pass {
    credentials: Credentials,
    id: String,
    secret: String,
}

impl Pass {
    async fn create(keeper: &SessionStore) -> Result<Self, Problem> {
        let credentials = Credentials::new(Arc::clone(&keeper.store) as _, Arc::new(SystemClock::default()));
        let new = NewCredential {
            kind: CredentialKind::Token,
            name: "terminal".to_owned(),
            scopes: vec![Scope::Admin],
            user: windlass_core::log::UserName::default(),
            term: Some(TERM),
        };
        let (created, secret) = credentials.create(new).await.map_err(problem)?;
        Ok(Self {
            credentials,
            id: created.id,
            secret,
        })
    }

    async fn revoke(self) {
        // It expires anyway.
        let _ = self.credentials.revoke(&self.id).await;
    }
}

/// The terminal.
struct Front<'a> {
    keeper: &'a SessionStore,
    settings: &'a SettingsOptions,
    style: Style,
    is_plain: bool,
    full_screen: bool,
}

impl Front<'_> {
    /// Runs the terminal on the session that the options name.
    async fn run_chosen(&self, url: &str, login: Login, options: &AttachOptions) -> Result<Exit, Problem> {
        let remote = RemoteBackend::connect(url, login, Arc::new(SystemClock::default()))
            .await
            .map_err(not_begun)?;
        let find = Find {
            words: options.session.clone().unwrap_or_default(),
            place: None,
            user: None,
            limit: 1,
        };
        let found = match options.new {
            true => None,
            false => {
                let backend: &dyn Backend = &remote;
                backend
                    .sessions(&find)
                    .await
                    .map_err(not_begun)?
                    .into_iter()
                    .next()
            }
        };
        let begin = match (found, &options.session) {
            (Some(info), _) => Begin::Resume(info.id),
            (None, Some(called)) => {
                return Err(Problem::usage(format!("the server has no session `{called}`")));
            }
            (None, None) => Begin::New {
                id: Some(SessionId::generate()),
                // The server chooses its own folder.
                place: String::new(),
                label: Label::default(),
                parent: None,
            },
        };
        self.run_on(remote, begin).await
    }

    async fn run(&self, url: &str, login: Login, begin: Begin) -> Result<Exit, Problem> {
        let remote = RemoteBackend::connect(url, login, Arc::new(SystemClock::default()))
            .await
            .map_err(not_begun)?;
        self.run_on(remote, begin).await
    }

    async fn run_on(&self, remote: RemoteBackend, begin: Begin) -> Result<Exit, Problem> {
        let cwd = working_directory(None)?;
        let settings = Arc::new(environment::settings(&self.settings.given(), &cwd)?);
        let backend: Arc<dyn Backend> = Arc::new(remote);
        let session = backend.begin(begin).await.map_err(not_begun)?;
        let overview = backend.overview(&session.id).await.ok();
        let preferences: Arc<dyn Preferences> = Arc::clone(&self.keeper.store) as _;
        let connections: Arc<dyn Connections> = Arc::new(Elsewhere);
        let scene = Scene {
            backend: &backend,
            session: &session,
            past: None,
            settings: &settings,
            model: overview.map(|overview| format!("{} {}", overview.provider, overview.model)),
            connections: &connections,
            preferences: &preferences,
            notices: Notices {
                first: &[],
                later: &News::new(NEWS),
            },
            style: self.style,
            is_plain: self.is_plain,
            is_somebody_there: asking::somebody_is_there(),
            keeps: true,
        };
        let spoken = front_end(&scene, self.full_screen).await?;
        Ok(spoken.exit)
    }
}

/// Providers are set up where the sessions run.
struct Elsewhere;

#[async_trait]
impl Connections for Elsewhere {
    fn offers(&self, _: &SessionId) -> Vec<Offer> {
        Vec::new()
    }

    async fn connect(&self, _: &SessionId, _: &str, _: &str) -> Result<String, ClientError> {
        let text = "providers are set up on the server's machine: `windlass connect` there";
        Err(ClientError::Setup(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SRV-4: a server is recognized by its address, with or without a slash at its end.
    #[tokio::test]
    async fn own_servers_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            windlass_store::open(folder.path().join("test.db"), Arc::new(SystemClock::default())).unwrap();
        let keeper = SessionStore { store };
        register(&*keeper.store, "me", Some("http://127.0.0.1:1"))
            .await
            .unwrap();
        assert!(is_own_server(&keeper, "http://127.0.0.1:1/").await.unwrap());
        assert!(!is_own_server(&keeper, "http://127.0.0.1:2").await.unwrap());
        register(&*keeper.store, "me", None).await.unwrap();
        assert!(!is_own_server(&keeper, "http://127.0.0.1:1").await.unwrap());
    }
}
