//! The user's keys file: `keys.toml` in the settings folder, readable only by this user.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use toml_edit::{Document, DocumentMut, Item, Table, TableLike, Value};
use windlass_providers::key::Secret;

use windlass_config::folders::Folders;
use windlass_config::private_file::PrivateFile;
use windlass_config::{Problem, ProblemKind};

/// Keys by the name of their provider.
pub type StoredKeys = BTreeMap<String, Secret>;

/// The table in the file.
const TABLE: &str = "keys";

/// A keys file. It is read on every use, so that a new key takes effect immediately.
pub struct KeysFile {
    file: PrivateFile,
}

/// The key that was stored for a provider, and the one it replaced.
pub struct StoredKey {
    provider: String,
    key: SecretString,
    before: Option<SecretString>,
}

impl KeysFile {
    /// Returns the keys file of the user.
    pub fn new(folders: &Folders) -> Self {
        Self {
            file: PrivateFile::new(folders.keys_file()),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the keys; none if the file does not exist.
    ///
    /// # Errors
    /// Fails if other users can read the file, or if it cannot be read or parsed.
    pub fn read(&self) -> Result<StoredKeys, Problem> {
        self.parsed(self.text()?.expose_secret())
    }

    /// Stores a key beside the existing ones. Returns the value that [`KeysFile::put_back`] needs.
    ///
    /// # Errors
    /// Fails if the existing file cannot be used or cannot be written. The file is then unchanged.
    pub fn keep(&self, provider: &str, key: &str) -> Result<StoredKey, Problem> {
        self.change(|keys| {
            let before = key_of(keys, provider).map(SecretString::from);
            set(keys, provider, key);
            StoredKey {
                provider: provider.to_owned(),
                key: SecretString::from(key),
                before,
            }
        })
    }

    /// Restores a provider's previous key, unless another process has changed it since.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn put_back(&self, kept: &StoredKey) -> Result<(), Problem> {
        let StoredKey {
            provider,
            key,
            before,
        } = kept;
        self.change(|keys| {
            if key_of(keys, provider) != Some(key.expose_secret()) {
                return;
            }
            match before {
                Some(before) => set(keys, provider, before.expose_secret()),
                None => {
                    keys.remove(provider);
                }
            }
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut dyn TableLike) -> T) -> Result<T, Problem> {
        let held = self.file.hold().map_err(|error| self.failed(&error))?;
        let text = self.text()?;
        let text = text.expose_secret();
        // An invalid file is reported with the line of the error and never overwritten.
        self.parsed(text)?;
        let mut document: DocumentMut = text.parse().map_err(|_| self.wrong("it is not TOML"))?;
        let keys = document.entry(TABLE).or_insert(Item::Table(Table::new()));
        let keys = keys
            .as_table_like_mut()
            .ok_or_else(|| self.wrong("`keys` is not a table"))?;
        let changed = change(keys);
        held.write(&document.to_string())
            .map_err(|error| self.failed(&error))?;
        Ok(changed)
    }

    fn parsed(&self, text: &str) -> Result<StoredKeys, Problem> {
        parse(text).map_err(|(line, why)| self.wrong(&format!("line {line}: {why}")))
    }

    fn text(&self) -> Result<SecretString, Problem> {
        let mode = match fs::metadata(self.path()) {
            Ok(found) => found.mode(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SecretString::default()),
            Err(error) => return Err(self.failed(&error)),
        };
        if mode & 0o077 != 0 {
            let why = format!(
                "other users can read your keys, so none is used: chmod 600 {}",
                self.path().display()
            );
            return Err(self.wrong(&why));
        }
        let text = self.file.read().map_err(|error| self.failed(&error))?;
        Ok(SecretString::from(text.unwrap_or_default()))
    }

    fn failed(&self, error: &io::Error) -> Problem {
        self.wrong(&error.to_string())
    }

    fn wrong(&self, why: &str) -> Problem {
        Problem::new(ProblemKind::Config, format!("{}: {why}", self.path().display()))
    }
}

fn key_of<'a>(keys: &'a dyn TableLike, provider: &str) -> Option<&'a str> {
    keys.get(provider).and_then(Item::as_str)
}

/// Writes a key and keeps the comments that the user has written beside the previous one.
fn set(keys: &mut dyn TableLike, provider: &str, key: &str) {
    let mut value = Value::from(key);
    if let Some(before) = keys.get(provider).and_then(Item::as_value) {
        *value.decor_mut() = before.decor().clone();
    }
    keys.insert(provider, Item::Value(value));
}

/// Parses the keys, or returns the invalid line and the reason. The line is not quoted: it may contain a key.
fn parse(text: &str) -> Result<StoredKeys, (usize, String)> {
    let line = |start: Option<usize>| {
        let before = text.bytes().take(start.unwrap_or(0));
        before.filter(|byte| *byte == b'\n').count() + 1
    };
    let form = "write it as `provider = \"key\"` below `[keys]`";
    let document = Document::parse(text).map_err(|error| {
        let start = error.span().map(|span| span.start);
        (line(start), format!("this is not TOML; {form}"))
    })?;
    let mut keys = StoredKeys::default();
    for (name, item) in document.iter() {
        let start = item.span().map(|span| span.start);
        let table = item.as_table_like().filter(|_| name == TABLE);
        let table =
            table.ok_or_else(|| (line(start), format!("there is only the table `[keys]`; {form}")))?;
        for (provider, item) in table.iter() {
            let start = item.span().map(|span| span.start);
            let key = item.as_str().ok_or_else(|| {
                (
                    line(start),
                    format!("the key of `{provider}` is not a string; {form}"),
                )
            })?;
            if !key.trim().is_empty() {
                keys.insert(provider.to_owned(), Secret::new(key));
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
#[path = "keys_file_tests.rs"]
mod tests;
