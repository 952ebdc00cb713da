//! Servers behind a URL.
//!
//! The protocol library drives the exchange; the requests themselves are made here, because its own client reads
//! answers of any size and follows every redirect.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};
use tokio_util::sync::CancellationToken;

use crate::client::{Connection, Failure, Handler, Hub, refused};
use crate::config::{HttpEndpoint, McpError, McpServerConfig};
use crate::content;
use crate::meter::{Meter, TOO_MUCH};
use crate::repair::readable;
use crate::set::Environment;

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const IDEMPOTENCY: &str = "idempotency-key";
/// Key of the metadata of a call with the same value, for servers without headers.
pub(crate) const IDEMPOTENCY_META: &str = "windlass/idempotency-key";
/// Redirects within a server that are followed.
const MAX_REDIRECTS: usize = 5;
/// Bytes of an answer that is an error.
const MAX_ERROR: usize = 64_000;
/// Longest text about a failure.
const MAX_REASON: usize = 500;

pub(crate) type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Connects with a server. The caller limits the time.
pub(crate) async fn open(
    config: &McpServerConfig,
    server: &HttpEndpoint,
    around: &Environment,
    (handler, mode): (Handler, ClientLifecycleMode),
) -> Result<Connection, Failure> {
    let (client, headers) =
        client(config, server, &handler).map_err(|why| Failure::Broken(McpError::Start(why)))?;
    let meter = client.meter.clone();
    let transport = StreamableHttpClientTransportConfig::with_uri(server.url.clone()).custom_headers(headers);
    let served = match crate::oauth::manager(&around.tokens, &server.url).await {
        Some(manager) => {
            let client = AuthClient::new(client, manager);
            let transport = StreamableHttpClientTransport::with_client(client, transport);
            handler.serve_with_lifecycle(transport, mode).await
        }
        None => {
            let transport = StreamableHttpClientTransport::with_client(client, transport);
            handler.serve_with_lifecycle(transport, mode).await
        }
    };
    let service = served.map_err(|error| refused(config, error, None))?;
    let stop = CancellationToken::new().drop_guard();
    Ok(Connection::remote(service, meter, stop))
}

/// Connects with a server over the transport of 2024-11-05. The caller limits the time.
pub(crate) async fn open_old(
    config: &McpServerConfig,
    server: &HttpEndpoint,
    handler: Handler,
) -> Result<Connection, Failure> {
    let start = |why: String| Failure::Broken(McpError::Start(why));
    let (client, headers) = client(config, server, &handler).map_err(start)?;
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let lines = crate::sse::lines(&client, server, headers, stop)
        .await
        .map_err(start)?;
    let served = handler
        .serve_with_lifecycle(lines, ClientLifecycleMode::Initialize)
        .await;
    let service = served.map_err(|error| refused(config, error, None))?;
    Ok(Connection::remote(service, client.meter, guard))
}

fn client(
    config: &McpServerConfig,
    server: &HttpEndpoint,
    handler: &Handler,
) -> Result<(HttpClient, Headers), String> {
    let inner = reqwest::Client::builder()
        .connect_timeout(config.limits.startup)
        .redirect(Policy::custom(redirect))
        .build()
        .map_err(|error| chain(&error))?;
    let client = HttpClient {
        inner,
        meter: Meter::default(),
        hub: Arc::clone(&handler.hub),
    };
    Ok((client, headers(server)?))
}

fn headers(server: &HttpEndpoint) -> Result<Headers, String> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let wrong = || format!("the header {} is not valid", content::line(name, 100));
        let name = name.parse::<HeaderName>().map_err(|_| wrong())?;
        let value = value.parse::<HeaderValue>().map_err(|_| wrong())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Follows a redirect that stays on the server and keeps the request as it is. Another server must not receive the
/// headers and arguments meant for this one.
fn redirect(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let is_same = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    let keeps_request = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    match is_same && keeps_request && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

/// Returns the error with its causes on one line, each once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    content::line(&text, MAX_REASON)
}

/// Returns the reason why a request could not be sent or answered.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<Failed>() {
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => content::line(text, MAX_REASON),
        Some(StreamableHttpError::Client(error)) => chain(error),
        Some(StreamableHttpError::Io(error)) => chain(error),
        _ => chain(error),
    }
}

/// Returns the login that the server wants, if that is why a request failed.
pub(crate) fn wanted_login_of(server: &str, error: &(dyn Error + 'static)) -> Option<McpError> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<AuthRequiredError>() {
            return Some(McpError::NeedsLogin(server.to_owned()));
        }
        if let Some(missing) = cause.downcast_ref::<InsufficientScopeError>() {
            let scopes = missing.required_scope.as_deref().unwrap_or_default();
            return Some(McpError::NeedsRights {
                server: server.to_owned(),
                scopes: scopes.split_whitespace().take(50).map(str::to_owned).collect(),
            });
        }
        next = cause.source();
    }
    None
}

/// Sends requests, and limits what a server answers.
#[derive(Clone)]
pub(crate) struct HttpClient {
    pub(crate) inner: reqwest::Client,
    meter: Meter,
    hub: Arc<Hub>,
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let request = with_headers(
            self.inner.post(uri.as_ref()),
            session_id,
            auth_header,
            custom_headers,
        );
        let request = match idempotency_key(&message) {
            Some(key) => request.header(IDEMPOTENCY, key),
            None => request,
        };
        let response = request.json(&message).send().await?;
        let status = response.status();
        wanted_login(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_redirection() {
            return Err(unexpected(format!("it redirects to another address ({status})")));
        }
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let session = header(&response, SESSION);
        let expects_answer = matches!(message, JsonRpcMessage::Request(_));
        if !status.is_success() {
            let body = self.body(response, MAX_ERROR).await.unwrap_or_default();
            return rejected(&message, status, &body, has_session);
        }
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let body = self.body(response, usize::MAX).await?;
        if !kind.starts_with(JSON) {
            return match expects_answer {
                true => Err(unexpected(format!(
                    "it answered with the content type \"{}\" instead of JSON or events",
                    content::line(&kind, 100)
                ))),
                false => Ok(StreamableHttpPostResponse::Accepted),
            };
        }
        let body = readable(&body, &self.hub).unwrap_or(body);
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) if !expects_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(unexpected(format!("its answer is not a message: {error}"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        self.inner
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let mut request = with_headers(
            self.inner.get(uri.as_ref()),
            session_id,
            auth_header,
            custom_headers,
        );
        if let Some(last) = last_event_id {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await?;
        wanted_login(&response)?;
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        if !response.status().is_success() || !kind.starts_with(EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(self.events(response))
    }
}

impl HttpClient {
    /// Reads a body of at most `limit` bytes.
    async fn body(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, Failed> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if !self.meter.admits(chunk.len()) || body.len().saturating_add(chunk.len()) > limit {
                return Err(StreamableHttpError::Io(io::Error::other(TOO_MUCH)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    pub(crate) fn events(&self, response: Response) -> Events {
        let meter = self.meter.clone();
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(io::Error::other)?;
            match meter.admits(chunk.len()) {
                true => Ok(chunk),
                false => Err(io::Error::other(TOO_MUCH)),
            }
        });
        let hub = Arc::clone(&self.hub);
        let corrected = move |event: Sse| {
            let better = event
                .data
                .as_ref()
                .and_then(|data| readable(data.as_bytes(), &hub));
            match better.and_then(|data| String::from_utf8(data).ok()) {
                Some(data) => Sse {
                    data: Some(data),
                    ..event
                },
                None => event,
            }
        };
        let events = SseStream::from_bytes_stream(bytes);
        events.map(move |event| event.map(&corrected)).boxed()
    }
}

/// Returns the key of a tool call, if a header can carry it.
fn idempotency_key(message: &ClientJsonRpcMessage) -> Option<HeaderValue> {
    let JsonRpcMessage::Request(request) = message else {
        return None;
    };
    let ClientRequest::CallToolRequest(call) = &request.request else {
        return None;
    };
    let key = call.params.meta.as_ref()?.get(IDEMPOTENCY_META)?.as_str()?;
    HeaderValue::from_str(key).ok()
}

fn with_headers(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    let mut request = request.header(ACCEPT, format!("{JSON}, {EVENTS}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    match session {
        Some(session) => request.header(SESSION, session.as_ref()),
        None => request,
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

/// Fails if the server wants a login. Some servers say so without a challenge.
fn wanted_login(response: &Response) -> Result<(), Failed> {
    let challenge = header(response, WWW_AUTHENTICATE.as_str());
    match (response.status(), challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => Err(StreamableHttpError::AuthRequired(
            AuthRequiredError::new(challenge.unwrap_or_default()),
        )),
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let scope = scope(&challenge);
            let error = InsufficientScopeError::new(challenge, scope);
            Err(StreamableHttpError::InsufficientScope(error))
        }
        _ => Ok(()),
    }
}

/// Returns the scope that a challenge names.
pub(crate) fn scope(challenge: &str) -> Option<String> {
    let (_, rest) = challenge.split_once("scope=\"")?;
    let (scope, _) = rest.split_once('"')?;
    Some(scope.to_owned())
}

/// Returns the outcome of a request that was answered with an error status.
fn rejected(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Failed> {
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let text = match content::line(&String::from_utf8_lossy(body), 200) {
        text if text.is_empty() => format!("it answered {status}"),
        text => format!("it answered {status}: {text}"),
    };
    if let JsonRpcMessage::Request(request) = message {
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let may_be_older = is_probe && !has_session && status.is_client_error();
        // The answer belongs to this request, whatever id an older server put into it.
        let error = match said {
            Some(said) => Some(said.error),
            None => may_be_older.then(|| ErrorData::invalid_request(text.clone(), None)),
        };
        if let Some(error) = error {
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    Err(unexpected(text))
}

fn unexpected(text: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}
