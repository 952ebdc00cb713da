//! The methods of the protocol.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_api::{Backend, Begin, Entry, Find, Label, SessionId, SessionInfo};
use windlass_core::log::counting;

use crate::client::ClientAbilities;
use crate::options::{self, Choices};

use crate::prompt::refused;
use crate::rpc;
use crate::session::{Screen, Session, title};
use crate::view::{self, Context, Severity};
use crate::{Host, NotAdmitted};
use windlass_jsonrpc::{Outbox, RpcError, params};

/// The version of the protocol that we speak.
const VERSION: u64 = 1;
/// Number of sessions on a page of a list.
const PAGE: usize = 50;
/// Number of entries that are read at a time.
const ENTRIES: usize = 512;
/// Maximum time that a closed session's prompts have to end.
const CLOSING: Duration = Duration::from_secs(10);
/// Id of the way to set up a model.
const CONNECT: &str = "connect";

/// A connection to an editor.
pub(crate) struct Connection {
    backend: Arc<dyn Backend>,
    host: Arc<dyn Host>,
    pub(crate) outbox: Outbox,
    client: Mutex<Option<ClientAbilities>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialize {
    protocol_version: u64,
    #[serde(default)]
    client_capabilities: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Open {
    #[serde(default)]
    session_id: Option<String>,
    cwd: PathBuf,
    #[serde(default)]
    mcp_servers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompted {
    session_id: String,
    prompt: Vec<Value>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetMode {
    session_id: String,
    mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetOption {
    session_id: String,
    config_id: String,
    value: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authenticate {
    method_id: String,
}

impl Connection {
    pub(crate) fn new(backend: Arc<dyn Backend>, host: Arc<dyn Host>, outbox: Outbox) -> Self {
        Self {
            backend,
            host,
            outbox,
            client: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> Option<ClientAbilities> {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn screen(&self) -> Screen {
        Screen {
            backend: Arc::clone(&self.backend),
            outbox: self.outbox.clone(),
            client: self.client().unwrap_or_default(),
        }
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, RpcError> {
        let found = self.sessions().get(id).cloned();
        found.ok_or_else(|| rpc::unknown_session(id))
    }

    /// Ends everything: the client is gone.
    pub(crate) async fn end(&self) {
        let sessions: Vec<Arc<Session>> = self.sessions().drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.cancel_prompts();
            self.backend.cancel(&session.current()).await;
            session.stop();
        }
    }

    /// Registers a prompt while messages are still handled in order, so that a cancellation that follows it finds it.
    pub(crate) fn prepare(
        &self,
        method: &str,
        params: &Value,
        cancel: &CancellationToken,
    ) -> Option<Prepared> {
        if method != "session/prompt" {
            return None;
        }
        let id = params.get("sessionId").and_then(Value::as_str)?;
        let session = self.session(id).ok()?;
        let token = session.work.token();
        let prompt = session.begin_prompt(cancel.clone());
        Some(Prepared {
            session,
            prompt,
            _token: token,
        })
    }

    pub(crate) async fn notified(&self, method: &str, given: Value) {
        if method != "session/cancel" {
            return;
        }
        if let Ok(Named { session_id }) = params(given)
            && let Ok(session) = self.session(&session_id)
        {
            session.cancel_prompts();
            // A turn may run without a prompt.
            self.backend.cancel(&session.current()).await;
        }
    }

    /// Answers a request. The answer is sent here, because some updates follow it.
    pub(crate) async fn requested(
        &self,
        id: Value,
        method: &str,
        given: Value,
        prepared: Option<Prepared>,
        cancel: CancellationToken,
    ) {
        let is_prompt = prepared.is_some();
        let handled = self.handle(method, given, prepared);
        let result = tokio::select! {
            biased;
            // A prompt has its own answer.
            () = cancel.cancelled(), if !is_prompt => Err(rpc::canceled()),
            result = handled => result,
        };
        let (result, after) = match result {
            Ok(Done { result, after }) => (Ok(result), after),
            Err(error) => (Err(error), None),
        };
        if self.outbox.answer(id, result).await.is_err() {
            return;
        }
        if let Some((session, updates)) = after {
            for update in updates {
                let _ = rpc::update(&self.outbox, &session, update).await;
            }
        }
    }

    async fn handle(&self, method: &str, given: Value, prepared: Option<Prepared>) -> Result<Done, RpcError> {
        if method == "initialize" {
            return self.initialize(params(given)?).map(Done::of);
        }
        if self.client().is_none() {
            return Err(RpcError::invalid_request(
                "the first request must be `initialize`",
            ));
        }
        match method {
            "authenticate" => self.authenticate(&params(given)?).map(Done::of),
            "session/new" => self.new_session(params(given)?).await,
            "session/load" => self.load(params(given)?).await.map(Done::of),
            "session/resume" => self.resume(params(given)?).await.map(Done::of),
            "session/list" => self.list(params(or_empty(given))?).await.map(Done::of),
            "session/delete" => self.delete(params(given)?).await.map(Done::of),
            "session/close" => self.close(params(given)?).await.map(Done::of),
            "session/set_mode" => self.set_mode(params(given)?).await.map(Done::of),
            "session/set_config_option" => self.set_option(params(given)?).await.map(Done::of),
            "session/prompt" => self.prompt(params(given)?, prepared).await.map(Done::of),
            "_session/steering" => {
                let Prompted { session_id, prompt } = params(given)?;
                let session = self.session(&session_id)?;
                self.screen().steer(&session, &prompt).await.map(Done::of)
            }
            _ => Err(RpcError::unknown_method(method)),
        }
    }

    fn initialize(&self, given: Initialize) -> Result<Value, RpcError> {
        if given.protocol_version == 0 {
            return Err(RpcError::invalid_params(
                "protocolVersion: 0 is not supported; the version is 1",
            ));
        }
        let client = ClientAbilities::read(&given.client_capabilities);
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
        Ok(json!({
            "protocolVersion": VERSION,
            "agentInfo": { "name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION") },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": true, "sse": false },
                "sessionCapabilities": { "list": {}, "delete": {}, "resume": {}, "close": {} },
            },
            "authMethods": [login(client)],
            "_meta": { "steering": { "supported": true } },
        }))
    }

    /// The user sets a model up outside of the protocol; this checks that it was done.
    fn authenticate(&self, given: &Authenticate) -> Result<Value, RpcError> {
        if given.method_id != CONNECT {
            let text = format!(
                "methodId: there is no `{}`; there is `{CONNECT}`",
                given.method_id
            );
            return Err(RpcError::invalid_params(text));
        }
        self.host.ready().map_err(rpc::sign_in)?;
        Ok(json!({}))
    }

    async fn new_session(&self, given: Open) -> Result<Done, RpcError> {
        let place = self.admitted(&given.cwd)?;
        let begin = Begin::New {
            id: None,
            place: place.display().to_string(),
            label: Label::default(),
            parent: None,
        };
        let info = self.backend.begin(begin).await.map_err(refused)?;
        let (session, choices) = self.open(&info).await?;
        let after = self.first_updates(&session, &given.mcp_servers).await;
        let result = json!({
            "sessionId": session.id,
            "modes": choices.modes(),
            "configOptions": choices.options(),
        });
        Ok(Done {
            result,
            after: Some((session.id.clone(), after)),
        })
    }

    fn admitted(&self, cwd: &Path) -> Result<PathBuf, RpcError> {
        if !cwd.is_absolute() {
            let text = format!("cwd: {} is not an absolute path", cwd.display());
            return Err(RpcError::invalid_params(text));
        }
        self.host.admit(cwd).map_err(|refusal| match refusal {
            NotAdmitted::NoModel(text) => rpc::sign_in(text),
            NotAdmitted::Place(text) => RpcError::invalid_params(format!("cwd: {text}")),
        })
    }

    /// Opens a session in this connection and follows it.
    async fn open(&self, info: &SessionInfo) -> Result<(Arc<Session>, Choices), RpcError> {
        let choices = Choices::read(&*self.backend, &info.id).await;
        let session = Arc::new(Session::new(info, choices.clone()));
        let screen = self.screen();
        let context = Context {
            window: choices.window,
            used: info.totals.context_tokens,
            cost: info.totals.cost_usd,
        };
        let events = self
            .backend
            .subscribe(&info.id, info.last_seq)
            .await
            .map_err(refused)?;
        let view = screen.view(&session, context);
        session.start(screen, events, view, info.last_seq);
        self.sessions().insert(session.id.clone(), Arc::clone(&session));
        Ok((session, choices))
    }

    /// Returns the updates at the start of a session: its commands, and what does not work yet.
    async fn first_updates(&self, session: &Session, servers: &[Value]) -> Vec<Value> {
        let catalog = self.backend.catalog(&session.current()).await;
        let mut updates = vec![options::commands(&catalog)];
        for text in self.host.attach(&session.current(), servers) {
            let client = self.client().unwrap_or_default();
            updates.push(view::notice(client, Severity::Warning, &text));
        }
        updates
    }

    async fn reopen(&self, given: Open) -> Result<(SessionInfo, Vec<Value>), RpcError> {
        let id = given
            .session_id
            .ok_or_else(|| RpcError::invalid_params("missing field `sessionId`"))?;
        if let Ok(session) = self.session(&id) {
            self.forget(&session).await;
        }
        let begin = Begin::Resume(SessionId::from(id));
        let info = self.backend.begin(begin).await.map_err(refused)?;
        Ok((info, given.mcp_servers))
    }

    /// Shows the whole past, then answers.
    async fn load(&self, given: Open) -> Result<Value, RpcError> {
        let (info, servers) = self.reopen(given).await?;
        let entries = self.entries(&info).await?;
        let (session, choices) = self.open(&info).await?;
        let mut view = self.screen().view(&session, Context::default());
        view.show_past(true);
        for entry in counting(&entries) {
            for update in view.event(&entry.event) {
                let sent = rpc::update(&self.outbox, &session.id, update).await;
                sent.map_err(|_| RpcError::internal("the client is gone"))?;
            }
        }
        self.answer_open(&session, &choices, &servers).await
    }

    async fn resume(&self, given: Open) -> Result<Value, RpcError> {
        let (info, servers) = self.reopen(given).await?;
        let (session, choices) = self.open(&info).await?;
        self.answer_open(&session, &choices, &servers).await
    }

    async fn answer_open(
        &self,
        session: &Session,
        choices: &Choices,
        servers: &[Value],
    ) -> Result<Value, RpcError> {
        for update in self.first_updates(session, servers).await {
            let _ = rpc::update(&self.outbox, &session.id, update).await;
        }
        Ok(json!({ "modes": choices.modes(), "configOptions": choices.options() }))
    }

    async fn entries(&self, info: &SessionInfo) -> Result<Vec<Entry>, RpcError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut after = 0;
        while after < info.last_seq {
            let end = info.last_seq.min(after + ENTRIES as u64);
            let count = usize::try_from(end - after).unwrap_or(ENTRIES);
            let page = self.backend.tail(&info.id, Some(end + 1), count).await;
            entries.extend(page.map_err(refused)?);
            after = end;
        }
        Ok(entries)
    }

    async fn list(&self, given: List) -> Result<Value, RpcError> {
        let skipped = match &given.cursor {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| RpcError::invalid_params(format!("cursor: `{cursor}` is not one of ours")))?,
        };
        let find = Find {
            user: Some(windlass_api::UserName::default()),
            // Sessions are stored under the real path of their folder.
            place: given
                .cwd
                .map(|cwd| self.host.admit(&cwd).unwrap_or(cwd).display().to_string()),
            limit: skipped.saturating_add(PAGE + 1),
            ..Find::default()
        };
        let found = self.backend.sessions(&find).await.map_err(refused)?;
        let has_more = found.len() > skipped.saturating_add(PAGE);
        let used = |info: &&SessionInfo| info.last_seq > 0 || info.label.name.is_some();
        let page = found.iter().skip(skipped).take(PAGE).filter(used);
        let mut result = json!({ "sessions": page.map(listed).collect::<Vec<_>>() });
        if let (true, Some(map)) = (has_more, result.as_object_mut()) {
            map.insert("nextCursor".to_owned(), json!((skipped + PAGE).to_string()));
        }
        Ok(result)
    }

    async fn delete(&self, given: Named) -> Result<Value, RpcError> {
        if let Ok(session) = self.session(&given.session_id) {
            self.forget(&session).await;
        }
        let id = SessionId::from(given.session_id);
        self.host.delete(&id).await.map_err(RpcError::internal)?;
        Ok(json!({}))
    }

    async fn close(&self, given: Named) -> Result<Value, RpcError> {
        let session = self.session(&given.session_id)?;
        self.forget(&session).await;
        self.host.leave(&session.current());
        Ok(json!({}))
    }

    /// Stops the work of a session, waits until its prompts are answered, and forgets it.
    async fn forget(&self, session: &Arc<Session>) {
        session.cancel_prompts();
        self.backend.cancel(&session.current()).await;
        session.work.close();
        let _ = tokio::time::timeout(CLOSING, session.work.wait()).await;
        session.stop();
        self.sessions().remove(&session.id);
    }

    async fn set_mode(&self, given: SetMode) -> Result<Value, RpcError> {
        let session = self.session(&given.session_id)?;
        self.set(&session, "mode", &given.mode_id).await?;
        Ok(json!({}))
    }

    async fn set_option(&self, given: SetOption) -> Result<Value, RpcError> {
        let session = self.session(&given.session_id)?;
        let value = given.value.as_str();
        let value = value.ok_or_else(|| RpcError::invalid_params("value: expected a string"))?;
        self.set(&session, &given.config_id, value).await?;
        Ok(json!({ "configOptions": session.choices().options() }))
    }

    async fn set(&self, session: &Session, option: &str, value: &str) -> Result<(), RpcError> {
        let line = session.choices().command(option, value);
        let line = line.map_err(RpcError::invalid_params)?;
        let ran = self.backend.command(&session.current(), &line).await;
        ran.map_err(refused)?;
        self.screen().refresh(session).await;
        Ok(())
    }

    async fn prompt(&self, given: Prompted, prepared: Option<Prepared>) -> Result<Value, RpcError> {
        let prepared = prepared.ok_or_else(|| rpc::unknown_session(&given.session_id))?;
        let screen = self.screen();
        screen
            .prompt(&prepared.session, &prepared.prompt, &given.prompt)
            .await
    }
}

/// A prompt that was registered.
pub(crate) struct Prepared {
    session: Arc<Session>,
    prompt: crate::session::Prompt,
    _token: tokio_util::task::task_tracker::TaskTrackerToken,
}

/// A result, and the updates of a session that follow it.
struct Done {
    result: Value,
    after: Option<(String, Vec<Value>)>,
}

impl Done {
    fn of(result: Value) -> Self {
        Self { result, after: None }
    }
}

/// Parameters may be left out where all of them are optional.
fn or_empty(params: Value) -> Value {
    if params.is_null() { json!({}) } else { params }
}

/// Returns the way to set up a model.
fn login(client: ClientAbilities) -> Value {
    let mut method = json!({
        "id": CONNECT,
        "name": "Set up a model",
        "description": "Run `windlass connect` in a terminal, or set the key's variable, such as ANTHROPIC_API_KEY",
    });
    if let (true, Some(map)) = (client.has_terminal_login, method.as_object_mut()) {
        map.insert("type".to_owned(), json!("terminal"));
        map.insert("args".to_owned(), json!(["connect"]));
    }
    method
}

fn listed(info: &SessionInfo) -> Value {
    let time = i64::try_from(info.updated_at.0).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or_default();
    json!({
        "sessionId": info.id,
        "cwd": info.place,
        "title": title(info),
        "updatedAt": time.to_string(),
    })
}
