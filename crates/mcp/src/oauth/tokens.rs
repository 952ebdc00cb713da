//! The file of tokens: by authorization server, and then by the server that a token is for.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

/// One change at a time in this process.
static CHANGES: Mutex<()> = Mutex::new(());

/// Tokens of the servers that one authorization server gave tokens for, by their addresses.
type OfIssuer = BTreeMap<String, StoredCredentials>;

/// The tokens of all servers. Nobody but the user can read the file.
///
/// A token is found only by both the authorization server that gave it and the server that it is for, so that none of
/// them ever receives the token of another one.
#[derive(Debug, Clone, Default)]
pub struct TokenFile {
    path: PathBuf,
}

/// Contents of the file. An authorization server without a name of its own has an empty one.
#[derive(Default, Serialize, Deserialize)]
struct Contents {
    issuers: BTreeMap<String, OfIssuer>,
}

impl TokenFile {
    /// Uses this file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns true if any authorization server gave a token for the server at this address.
    pub fn has(&self, url: &str) -> bool {
        let contents = self.read().unwrap_or_default();
        contents.issuers.values().any(|of| of.contains_key(url))
    }

    /// Forgets the tokens of a server, and returns the authorization servers that gave them. Tokens of other servers
    /// stay, also those of the same authorization servers.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn forget(&self, url: &str) -> io::Result<Vec<String>> {
        self.change(|contents| {
            let had = |(issuer, of): (&String, &mut OfIssuer)| of.remove(url).map(|_| issuer.clone());
            contents.issuers.iter_mut().filter_map(had).collect()
        })
    }

    /// Returns the credentials that an authorization server gave for a server.
    pub(super) fn find(&self, issuer: &str, url: &str) -> io::Result<Option<StoredCredentials>> {
        let mut contents = self.read()?;
        Ok(contents.issuers.get_mut(issuer).and_then(|of| of.remove(url)))
    }

    fn keep(&self, issuer: &str, url: &str, credentials: StoredCredentials) -> io::Result<()> {
        self.change(|contents| {
            let of = contents.issuers.entry(issuer.to_owned()).or_default();
            of.insert(url.to_owned(), credentials);
        })
    }

    fn remove(&self, issuer: &str, url: &str) -> io::Result<()> {
        self.change(|contents| {
            if let Some(of) = contents.issuers.get_mut(issuer) {
                of.remove(url);
            }
        })
    }

    /// Applies a change to the file.
    fn change<T>(&self, apply: impl FnOnce(&mut Contents) -> T) -> io::Result<T> {
        let _one = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contents = self.read()?;
        let result = apply(&mut contents);
        contents.issuers.retain(|_, of| !of.is_empty());
        if self.path.exists() || !contents.issuers.is_empty() {
            self.write(&contents)?;
        }
        Ok(result)
    }

    fn read(&self) -> io::Result<Contents> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
            Err(error) => return Err(self.wrong(&error)),
        };
        self.close();
        let whole: Result<Contents, _> = serde_json::from_str(&text);
        // Earlier versions named only the server of each token.
        whole.or_else(|error| match serde_json::from_str::<OfIssuer>(&text) {
            Ok(earlier) => Ok(by_issuer(earlier)),
            Err(_) => Err(self.wrong(&format!(
                "not a file of tokens ({error}); move it away and log in again"
            ))),
        })
    }

    /// Makes a file that others can read private again, such as one that was restored from a copy.
    fn close(&self) {
        let Ok(found) = fs::metadata(&self.path) else {
            return;
        };
        if found.permissions().mode() & 0o077 != 0 {
            let _ = fs::set_permissions(&self.path, fs::Permissions::from_mode(0o600));
        }
    }

    fn wrong(&self, why: &dyn std::fmt::Display) -> io::Error {
        io::Error::other(format!("{}: {why}", self.path.display()))
    }

    fn write(&self, contents: &Contents) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let text = serde_json::to_vec(contents)?;
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

/// Sorts tokens by the authorization servers that are named in them.
fn by_issuer(earlier: OfIssuer) -> Contents {
    let mut contents = Contents::default();
    for (url, credentials) in earlier {
        let issuer = credentials.issuer.clone().unwrap_or_default();
        contents
            .issuers
            .entry(issuer)
            .or_default()
            .insert(url, credentials);
    }
    contents
}

/// The place of one server's credentials in the file.
pub(super) struct TokenPlace {
    pub(super) file: TokenFile,
    pub(super) issuer: String,
    pub(super) url: String,
}

impl TokenPlace {
    fn failed(error: &io::Error) -> AuthError {
        AuthError::CredentialStoreError(error.to_string())
    }
}

#[async_trait]
impl CredentialStore for TokenPlace {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let found = self.file.find(&self.issuer, &self.url);
        found.map_err(|error| Self::failed(&error))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let kept = self.file.keep(&self.issuer, &self.url, credentials);
        kept.map_err(|error| Self::failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let removed = self.file.remove(&self.issuer, &self.url);
        removed.map_err(|error| Self::failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MAIL: &str = "https://mail.example/mcp";
    const FILES: &str = "https://files.example/mcp";

    fn file(contents: &Value) -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.json");
        fs::write(&path, contents.to_string()).expect("a file");
        (folder, TokenFile::new(path))
    }

    fn client(file: &TokenFile, issuer: &str, url: &str) -> Option<String> {
        let found = file.find(issuer, url).expect("a file of tokens");
        found.map(|stored| stored.client_id)
    }

    /// MCP-7: a file of an earlier version, which named only the servers, is sorted by authorization server when it is
    /// read, and made private; a token is never found for another authorization server.
    #[test]
    fn earlier_files_are_sorted_by_issuer() {
        let stored = |id: &str, issuer: Option<&str>| json!({ "client_id": id, "token_response": null, "issuer": issuer });
        let (_folder, file) = file(&json!({
            MAIL: stored("a", Some("https://login.example")),
            FILES: stored("b", None),
        }));
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o644)).expect("permissions");
        assert_eq!(client(&file, "https://login.example", MAIL).as_deref(), Some("a"));
        assert_eq!(client(&file, "https://evil.example", MAIL), None);
        assert_eq!(client(&file, "", FILES).as_deref(), Some("b"));
        let mode = fs::metadata(&file.path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// MCP-7: a server with tokens of two authorization servers loses both when the user logs out of it; another server
    /// of the same authorization server keeps its own.
    #[test]
    fn a_logout_forgets_one_server() {
        let (_folder, file) = file(&json!({ "issuers": {} }));
        let new = |id: &str| StoredCredentials::new(id.to_owned(), None, Vec::new(), None);
        file.keep("https://old.example", MAIL, new("a")).expect("kept");
        file.keep("https://new.example", MAIL, new("b")).expect("kept");
        file.keep("https://new.example", FILES, new("c")).expect("kept");
        let mut issuers = file.forget(MAIL).expect("forgotten");
        issuers.sort();
        assert_eq!(issuers, ["https://new.example", "https://old.example"]);
        assert!(!file.has(MAIL) && file.has(FILES));
        assert_eq!(client(&file, "https://new.example", FILES).as_deref(), Some("c"));
    }

    /// MCP-7: a damaged file is reported with its path, and not overwritten.
    #[test]
    fn a_damaged_file_is_kept() {
        let (_folder, file) = file(&json!([1]));
        let error = file.forget(MAIL).expect_err("damaged").to_string();
        assert!(error.contains("tokens.json: not a file of tokens"), "{error}");
        assert_eq!(fs::read_to_string(&file.path).expect("a file"), "[1]");
    }
}
