//! SRV-4: a server as a backend: `windlass attach` uses it like a service of its own process.

mod events;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::{
    AgentRow, Answer, Begin, CallId, Changed, Checkpoint, Client, ClientError, CommandInfo, CommandReply,
    Commands, ContextReport, Entry, EventStream, FileChange, Find, Follow, Message, MessageId, Overview,
    Presence, Records, SessionId, SessionInfo, Submission, UserReply, Wait,
};

use windlass_core::clock::Clock;

use self::events::{follow, turn};

/// Entries of one request.
const PAGE: usize = 1_000;
/// Sessions of one request.
const SESSIONS: usize = 500;

/// Way to prove who one is.
#[derive(Clone)]
pub enum Login {
    /// A bearer token.
    Token(String),
    /// The secret of a login link.
    Link(String),
}

/// A server that is reached over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct RemoteBackend {
    http: reqwest::Client,
    /// Address without a slash at its end.
    url: Arc<str>,
    clock: Arc<dyn Clock>,
    /// Header that carries the credential, and its value.
    credential: Arc<(&'static str, String)>,
}

impl RemoteBackend {
    /// Connects to a server and signs in.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses the credential; the message says which check failed.
    pub async fn connect(url: &str, login: Login, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let built = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(std::time::Duration::from_secs(10))
            .build();
        let mut remote = Self {
            http: built.map_err(|error| ClientError::Setup(error.to_string()))?,
            url: url.trim_end_matches('/').into(),
            clock,
            credential: Arc::new(("authorization", String::new())),
        };
        match login {
            Login::Token(token) => remote.credential = Arc::new(("authorization", format!("Bearer {token}"))),
            Login::Link(secret) => {
                let body = json!({ "token": secret, "name": "windlass attach" });
                let request = remote.request(Method::POST, "/api/login", Some(&body));
                let response = request.send().await.map_err(|error| remote.unreachable(&error))?;
                let cookie = response
                    .headers()
                    .get("set-cookie")
                    .and_then(|cookie| cookie.to_str().ok());
                let cookie = cookie
                    .and_then(|cookie| cookie.split(';').next())
                    .map(str::to_owned);
                let Some(cookie) = cookie else {
                    return Err(failed(response, None).await);
                };
                remote.credential = Arc::new(("cookie", cookie));
            }
        }
        // Finds a wrong credential before anything is drawn.
        let _: Value = remote.get("/api/sessions?limit=1").await?;
        Ok(remote)
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> reqwest::RequestBuilder {
        let (name, value) = &*self.credential;
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if !value.is_empty() {
            request = request.header(*name, value);
        }
        request = request
            .header("x-windlass", "1")
            .header("content-type", "application/json");
        match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let cause = cause.to_string();
        let hint = match cause.contains("certificate") {
            true => "; if your own CA signed it, set SSL_CERT_FILE to the file of the CA",
            false => "",
        };
        ClientError::Setup(format!(
            "the server {} cannot be reached: {cause}{hint}",
            self.url
        ))
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ClientError> {
        let sent = self.request(method, path, body).send().await;
        let response = sent.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(failed(response, None).await);
        }
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let text = if text.is_empty() { "null" } else { &text };
        serde_json::from_str(text).map_err(|error| ClientError::Store(format!("{path}: {error}")))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, None).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, ClientError> {
        self.call(Method::POST, path, Some(body)).await
    }
}

/// Converts a refusal.
async fn failed(response: reqwest::Response, session: Option<&SessionId>) -> ClientError {
    #[derive(Deserialize)]
    struct Refusal {
        detail: String,
        fix: Option<String>,
        error: Option<ClientError>,
    }
    let status = response.status();
    let text = response.text().await.unwrap_or_default();
    let Ok(refusal) = serde_json::from_str::<Refusal>(&text) else {
        return ClientError::Setup(format!("the server answers {status}"));
    };
    match (refusal.error, refusal.fix) {
        (Some(error), _) => error,
        (None, _) if status == StatusCode::NOT_FOUND && session.is_some() => session
            .map_or(ClientError::Empty, |session| {
                ClientError::Unknown(session.clone())
            }),
        (None, Some(fix)) => ClientError::Setup(format!("{}; {fix}", refusal.detail)),
        (None, None) => ClientError::Setup(refusal.detail),
    }
}

/// Returns the path of a session's route. Ids of other forms than ours are encoded.
fn path(session: &SessionId, rest: &str) -> String {
    format!("/api/sessions/{}{rest}", encoded(session.as_str()))
}

/// Encodes a text for a path or a query.
fn encoded(text: &str) -> String {
    let sign = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(sign).collect()
}

#[async_trait]
impl Client for RemoteBackend {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        #[derive(Deserialize)]
        struct Begun {
            session: SessionInfo,
        }
        let body = match begin {
            Begin::Instead { begin, .. } | Begin::As { begin, .. } => return self.begin(*begin).await,
            Begin::New { id, place, label, .. } => {
                json!({ "id": id, "place": place, "title": label.title, "name": label.name })
            }
            Begin::Keyed { key, place } => json!({ "key": key.to_string(), "place": place }),
            Begin::Resume(session) => json!({ "resume": session }),
            Begin::Fork { of, after, id, place } => {
                json!({ "fork": of, "after": after, "id": id, "place": place })
            }
        };
        let begun: Begun = self.post("/api/sessions", &body).await?;
        Ok(begun.session)
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let session = submission.session;
        let id = submission.id.unwrap_or_else(MessageId::generate);
        // Followed first, so that no event of the turn is missed.
        let events = follow(self.clone(), session.clone(), None).await?;
        let body = json!({ "id": id, "parts": submission.parts, "on_busy": submission.on_busy });
        let _: Value = self.post(&path(&session, "/messages"), &body).await?;
        Ok(turn(events, Some(id)))
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        let answer: Result<Value, _> = self.post(&path(session, "/cancel"), &json!({})).await;
        answer.is_ok_and(|answer| answer["was_running"] == true)
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool {
        let body = match reply {
            UserReply::Text(text) => json!({ "text": text }),
            UserReply::Permission(answer) => match answer {
                Answer::Once => json!({ "answer": "once" }),
                Answer::Session => json!({ "answer": "session" }),
                Answer::Always => json!({ "answer": "always" }),
                Answer::AlwaysFor(rules) => json!({ "answer": "always", "rules": rules }),
                Answer::No => json!({ "answer": "no" }),
                Answer::NoBecause(note) => json!({ "answer": "no", "note": note }),
            },
        };
        let path = path(session, &format!("/replies/{}", encoded(call.as_str())));
        self.post::<Value>(&path, &body).await.is_ok()
    }

    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        follow(self.clone(), session.clone(), Some(after)).await
    }

    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError> {
        let reply = self.command(session, "/compact").await?;
        match reply.follow {
            Follow::Watch(events) => Ok(events),
            _ => Ok(EventStream::default()),
        }
    }
}

#[async_trait]
impl Commands for RemoteBackend {
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo> {
        #[derive(Deserialize)]
        struct List {
            commands: Vec<CommandInfo>,
        }
        let list: Result<List, _> = self.get(&path(session, "/commands")).await;
        list.map(|list| list.commands).unwrap_or_default()
    }

    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String> {
        #[derive(Deserialize)]
        struct List {
            completions: Vec<String>,
        }
        let query = format!("/commands?complete={}", encoded(line));
        let list: Result<List, _> = self.get(&path(session, &query)).await;
        list.map(|list| list.completions).unwrap_or_default()
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        let events = follow(self.clone(), session.clone(), None).await?;
        let reply: CommandReply = self
            .post(&path(session, "/commands"), &json!({ "line": line }))
            .await?;
        Ok(CommandReply {
            text: reply.text,
            follow: match reply.follow {
                Follow::Watch(_) => Follow::Watch(turn(events, None)),
                follow => follow,
            },
        })
    }
}

#[async_trait]
impl Records for RemoteBackend {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            sessions: Vec<SessionInfo>,
        }
        let limit = if find.limit == 0 {
            SESSIONS
        } else {
            find.limit.min(SESSIONS)
        };
        let mut query = format!("/api/sessions?limit={limit}&q={}", encoded(&find.words));
        if let Some(place) = &find.place {
            query.push_str(&format!("&place={}", encoded(place)));
        }
        let list: List = self.get(&query).await?;
        Ok(list.sessions)
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            entries: Vec<Entry>,
            has_more: bool,
        }
        let mut all: Vec<Entry> = Vec::new();
        let mut before = before;
        while all.len() < limit {
            let count = (limit - all.len()).min(PAGE);
            let from = before
                .map(|before| format!("&before={before}"))
                .unwrap_or_default();
            let page: Page = self
                .get(&path(session, &format!("/entries?limit={count}{from}")))
                .await?;
            before = page.entries.first().map(|entry| entry.seq);
            let is_last = !page.has_more || page.entries.is_empty();
            all.splice(0..0, page.entries);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            checkpoints: Vec<Checkpoint>,
        }
        let list: List = self.get(&path(session, "/checkpoints")).await?;
        Ok(list.checkpoints)
    }

    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError> {
        #[derive(Deserialize)]
        struct Change {
            path: String,
            what: Changed,
            diff: Option<String>,
        }
        #[derive(Deserialize)]
        struct List {
            changes: Vec<Change>,
        }
        let list: List = self.get(&path(session, &format!("/changes/{number}"))).await?;
        let change = |Change { path, what, diff }| FileChange { path, what, diff };
        Ok(list.changes.into_iter().map(change).collect())
    }

    async fn agents(&self, session: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            agents: Vec<AgentRow>,
        }
        let list: List = self.get(&path(session, "/agents")).await?;
        Ok(list.agents)
    }
}

#[async_trait]
impl Presence for RemoteBackend {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        #[derive(Deserialize)]
        struct State {
            overview: Option<Overview>,
            problem: Option<String>,
        }
        let state: State = self.get(&path(session, "/state")).await?;
        let problem = state.problem.unwrap_or_default();
        state.overview.ok_or(ClientError::Setup(problem))
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        #[derive(Deserialize)]
        struct List {
            waits: Vec<Wait>,
        }
        let list: Result<List, _> = self.get(&path(session, "/why")).await;
        list.map(|list| list.waits).unwrap_or_default()
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        #[derive(Deserialize)]
        struct Taken {
            message: Arc<Message>,
        }
        let path = path(session, &format!("/queue/{}", encoded(message.as_str())));
        let taken: Result<Taken, _> = self.call(Method::DELETE, &path, None).await;
        taken.ok().map(|taken| taken.message)
    }

    async fn go_on(&self, session: &SessionId) -> bool {
        self.post::<Value>(&path(session, "/queue"), &json!({}))
            .await
            .is_ok()
    }

    async fn context(&self, session: &SessionId) -> Result<ContextReport, ClientError> {
        #[derive(Deserialize)]
        struct Context {
            next: ContextReport,
        }
        let context: Context = self.get(&path(session, "/context")).await?;
        Ok(context.next)
    }

    async fn delete(&self, session: &SessionId) -> Result<(), ClientError> {
        let deleted: Result<Value, _> = self.call(Method::DELETE, &path(session, ""), None).await;
        deleted.map(drop)
    }
}
