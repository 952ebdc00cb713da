//! The user's file of keys: `keys.toml` in the folder of settings, for this user's eyes alone.

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

/// StoredKeys by the name of their provider.
pub type StoredKeys = BTreeMap<String, Secret>;

/// The table of the file.
const TABLE: &str = "keys";

/// A file of keys. Read each time it is asked, so that a key counts as soon as it is there.
pub struct KeysFile {
    file: PrivateFile,
}

/// What was kept of a provider, and what was there before it.
pub struct StoredKey {
    provider: String,
    key: SecretString,
    before: Option<SecretString>,
}

impl KeysFile {
    /// The keys file of the user.
    pub fn new(folders: &Folders) -> Self {
        Self {
            file: PrivateFile::new(folders.keys_file()),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The keys; none when there is no such file.
    ///
    /// # Errors
    /// When others can read it, it cannot be read, or is not what it should be.
    pub fn read(&self) -> Result<StoredKeys, Problem> {
        self.parsed(self.text()?.expose_secret())
    }

    /// Keeps a key beside those that are there. Gives what it needs to be put back.
    ///
    /// # Errors
    /// When the file cannot be used as it is, or cannot be written. Then it is as it was.
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

    /// Puts a provider's key back to how it was, unless somebody else has changed it since.
    ///
    /// # Errors
    /// When it cannot be written.
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
        // What is wrong with it is told with its line, and not mended by writing over it.
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
                "others can read your keys, so none is used: chmod 600 {}",
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

/// Writes a key down, with what the user has written beside the one before it.
fn set(keys: &mut dyn TableLike, provider: &str, key: &str) {
    let mut value = Value::from(key);
    if let Some(before) = keys.get(provider).and_then(Item::as_value) {
        *value.decor_mut() = before.decor().clone();
    }
    keys.insert(provider, Item::Value(value));
}

/// The keys of a text, or the line that is wrong and why. Nothing of the line is quoted: it may hold a key.
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
            let key = item
                .as_str()
                .ok_or_else(|| (line(start), format!("the key of `{provider}` is no text; {form}")))?;
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
