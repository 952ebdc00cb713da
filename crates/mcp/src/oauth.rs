//! OAuth for servers behind a URL: discovery, registration, PKCE, and tokens in a file that only the user can read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    StoredCredentials,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Time for the person to log in.
const LOGIN_LIMIT: Duration = Duration::from_secs(300);
/// Longest request of a browser that is read.
const MAX_REQUEST: usize = 16_000;
/// Requests of a browser before the login is given up.
const MAX_REQUESTS: usize = 20;

/// The file with the tokens of all servers, by address. Nobody but the user can read it.
#[derive(Debug, Clone, Default)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// Uses this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns true if there is a token for the server at this address.
    pub fn has(&self, url: &str) -> bool {
        self.read().contains_key(url)
    }

    /// Forgets the token of a server. Returns false if there was none.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&self, url: &str) -> std::io::Result<bool> {
        let mut all = self.read();
        let had = all.remove(url).is_some();
        if had {
            self.write(&all)?;
        }
        Ok(had)
    }

    /// Returns the scopes that a server was given, and then the wanted ones, each once.
    fn scopes(&self, url: &str, wanted: &[String]) -> Vec<String> {
        let mut all = self
            .read()
            .remove(url)
            .map(|stored| stored.granted_scopes)
            .unwrap_or_default();
        for scope in wanted {
            if !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }

    fn read(&self) -> BTreeMap<String, StoredCredentials> {
        let text = fs::read_to_string(&self.path).ok();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn write(&self, all: &BTreeMap<String, StoredCredentials>) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let text = serde_json::to_vec(all)?;
        let draft = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let _ = fs::remove_file(&draft);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)
    }
}

/// The credentials of one server in the file.
struct OfServer {
    file: TokenFile,
    url: String,
}

#[async_trait]
impl CredentialStore for OfServer {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.file.read().remove(&self.url))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let mut all = self.file.read();
        all.insert(self.url.clone(), credentials);
        let stored = self.file.write(&all);
        stored.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let forgotten = self.file.forget(&self.url);
        forgotten
            .map(drop)
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

/// Returns what adds the token to every request, if there is one.
pub(crate) async fn manager(file: &TokenFile, url: &str) -> Option<AuthorizationManager> {
    if !file.has(url) {
        return None;
    }
    let mut manager = new_manager(file, url).await.ok()?;
    manager.initialize_from_store().await.ok()?.then_some(manager)
}

async fn new_manager(file: &TokenFile, url: &str) -> Result<AuthorizationManager, AuthError> {
    // The user's own servers are often on this machine or in a private network.
    let mut manager = AuthorizationManager::new_allowing_private_addresses(url).await?;
    manager.set_credential_store(OfServer {
        file: file.clone(),
        url: url.to_owned(),
    });
    Ok(manager)
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
    let mut request = AuthorizationRequest::new(redirect.clone()).with_client_name("Windlass");
    let challenge = challenge(login.url).await;
    if let Some(challenge) = &challenge {
        request = request.with_challenge(challenge.clone());
    }
    request = match login.scopes.is_empty() {
        true => request.with_initial_scope_selection(),
        // A step up keeps the rights that there are.
        false => request.with_scopes(file.scopes(login.url, login.scopes)),
    };
    if let Some(id) = login.client_id {
        request = request.with_preregistered_client(id);
    }
    if let Some(secret) = login.client_secret {
        request = request.with_client_secret(secret);
    }
    let mut manager = new_manager(file, login.url)
        .await
        .map_err(|error| error.to_string())?;
    let found = manager
        .resolve_metadata_from_challenge(challenge.as_deref())
        .await;
    let found = found.map_err(|error| format!("its authorization server cannot be used: {error}"))?;
    manager.set_metadata(found.metadata);
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
