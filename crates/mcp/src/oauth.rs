//! OAuth for servers behind a URL: discovery, registration, PKCE, and tokens in a file that only the user can read.

mod tokens;

use std::time::Duration;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, StoredCredentials,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub use self::tokens::TokenFile;
use self::tokens::TokenPlace;

/// Time for the person to log in.
const LOGIN_LIMIT: Duration = Duration::from_secs(300);
/// Longest request of a browser that is read.
const MAX_REQUEST: usize = 16_000;
/// Requests of a browser before the login is given up.
const MAX_REQUESTS: usize = 20;

/// Returns what adds the token to every request, if the authorization server that the server names now gave one.
pub(crate) async fn manager(file: &TokenFile, url: &str) -> Option<AuthorizationManager> {
    if !file.has(url) {
        return None;
    }
    let mut manager = new_manager(url).await.ok()?;
    let found = manager.resolve_metadata().await.ok()?;
    let issuer = found.metadata.issuer.clone().unwrap_or_default();
    // The server may have moved to another authorization server, which must not see the token of the earlier one.
    file.find(&issuer, url).ok()??;
    manager.set_metadata(found.metadata);
    manager.set_credential_store(place(file, issuer, url));
    manager.initialize_from_store().await.ok()?.then_some(manager)
}

async fn new_manager(url: &str) -> Result<AuthorizationManager, AuthError> {
    // The user's own servers are often on this machine or in a private network.
    AuthorizationManager::new_allowing_private_addresses(url).await
}

fn place(file: &TokenFile, issuer: String, url: &str) -> TokenPlace {
    TokenPlace {
        file: file.clone(),
        issuer,
        url: url.to_owned(),
    }
}

/// Returns the scopes that a server was given, and then the wanted ones, each once.
fn scopes(stored: Option<StoredCredentials>, wanted: &[String]) -> Vec<String> {
    let mut all = stored.map(|stored| stored.granted_scopes).unwrap_or_default();
    for scope in wanted {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

/// A login.
pub struct ServerLogin<'a> {
    /// Address of the server.
    pub url: &'a str,
    /// Client that is registered with the authorization server already, if any.
    pub client_id: Option<&'a str>,
    /// Its secret, if it has one.
    pub client_secret: Option<&'a str>,
    /// Scopes to ask for; those that the server names if empty.
    pub scopes: &'a [String],
}

/// Logs in: `show` receives the address that the person opens in a browser. Returns when the token is stored.
///
/// # Errors
/// If the server or its authorization server refuses, does not follow the rules, or the person takes too long.
pub async fn login(file: &TokenFile, login: &ServerLogin<'_>, show: impl FnOnce(&str)) -> Result<(), String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let redirect = format!("http://127.0.0.1:{port}/callback");
    let mut manager = new_manager(login.url).await.map_err(|error| error.to_string())?;
    let challenge = challenge(login.url).await;
    let found = manager
        .resolve_metadata_from_challenge(challenge.as_deref())
        .await;
    let found = found.map_err(|error| format!("its authorization server cannot be used: {error}"))?;
    let issuer = found.metadata.issuer.clone().unwrap_or_default();
    let stored = file.find(&issuer, login.url).map_err(|error| error.to_string())?;
    manager.set_metadata(found.metadata);
    manager.set_credential_store(place(file, issuer, login.url));
    let mut request = AuthorizationRequest::new(redirect.clone()).with_client_name("Windlass");
    if let Some(challenge) = &challenge {
        request = request.with_challenge(challenge.clone());
    }
    request = match login.scopes.is_empty() {
        true => request.with_initial_scope_selection(),
        // A step up keeps the rights that there are.
        false => request.with_scopes(scopes(stored, login.scopes)),
    };
    if let Some(id) = login.client_id {
        request = request.with_preregistered_client(id);
    }
    if let Some(secret) = login.client_secret {
        request = request.with_client_secret(secret);
    }
    let session = AuthorizationSession::new(manager, request)
        .await
        .map_err(|(_, error)| error.to_string())?;
    show(session.get_authorization_url());
    let answered = tokio::time::timeout(LOGIN_LIMIT, callback(listener, &redirect)).await;
    let url = answered.map_err(|_| "nobody logged in within five minutes".to_owned())??;
    session
        .handle_callback_url(&url)
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Returns the challenge of a server that wants a token.
async fn challenge(url: &str) -> Option<String> {
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(15))
        .build()
        .ok()?;
    let probe = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let answer = client
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(probe)
        .send()
        .await
        .ok()?;
    let header = answer.headers().get("www-authenticate")?;
    header.to_str().ok().map(str::to_owned)
}

/// Waits for the browser to come back. Returns the whole address.
async fn callback(listener: TcpListener, redirect: &str) -> Result<String, String> {
    for _ in 0..MAX_REQUESTS {
        let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let mut bytes = vec![0; MAX_REQUEST];
        let mut length = 0;
        while length < bytes.len() {
            let rest = bytes.get_mut(length..).unwrap_or_default();
            match tokio::time::timeout(Duration::from_secs(10), stream.read(rest)).await {
                Ok(Ok(read)) if read > 0 => length += read,
                _ => break,
            }
            if bytes
                .get(..length)
                .is_some_and(|read| read.windows(4).any(|end| end == b"\r\n\r\n"))
            {
                break;
            }
        }
        let text = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
        let target = text.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let is_callback = target.starts_with("/callback?");
        let (status, body) = match is_callback {
            true => ("200 OK", "You can close this page and return to Windlass."),
            false => ("404 Not Found", "Nothing here."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if is_callback {
            let base = redirect.trim_end_matches("/callback");
            return Ok(format!("{base}{target}"));
        }
    }
    Err("the browser did not come back with an answer".to_owned())
}
