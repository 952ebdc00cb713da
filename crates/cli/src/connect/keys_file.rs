//! The user's file of keys: `keys.toml` in the folder of settings, for this user's eyes alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use toml_edit::{Document, DocumentMut, Item, Table, value};
use windlass_providers::key::Secret;

use crate::exit::{Exit, Problem};
use crate::folders::Folders;

/// Keys by the name of their provider.
pub(crate) type Keys = BTreeMap<String, Secret>;

/// The table of the file.
const TABLE: &str = "keys";

/// A file of keys. Read each time it is asked, so that a key counts as soon as it is there.
pub(crate) struct KeysFile {
    path: PathBuf,
}

/// How the file was before something was kept in it.
pub(crate) struct Before(Option<SecretString>);

impl KeysFile {
    pub(crate) fn new(folders: &Folders) -> Self {
        Self {
            path: folders.keys_file(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The keys; none when there is no such file.
    ///
    /// # Errors
    /// When others can read it, it cannot be read, or is not what it should be.
    pub(crate) fn read(&self) -> Result<Keys, Problem> {
        match self.text()? {
            Some(text) => {
                parse(text.expose_secret()).map_err(|(line, why)| self.wrong(&format!("line {line}: {why}")))
            }
            None => Ok(Keys::default()),
        }
    }

    /// Keeps a key beside those that are there. How it was before, to be put back.
    ///
    /// # Errors
    /// When the file cannot be used as it is, or cannot be written. Then it is as it was.
    pub(crate) fn keep(&self, provider: &str, key: &str) -> Result<Before, Problem> {
        // What is wrong with it is told with its line, and not mended by writing over it.
        self.read()?;
        let before = self.text()?;
        let text = before.as_ref().map_or("", |text| text.expose_secret());
        let mut document: DocumentMut = text.parse().map_err(|_| self.wrong("it is not TOML"))?;
        let table = document.entry(TABLE).or_insert(Item::Table(Table::new()));
        let table = table
            .as_table_like_mut()
            .ok_or_else(|| self.wrong("`keys` is not a table"))?;
        table.insert(provider, value(key));
        self.write(&document.to_string())?;
        Ok(Before(before))
    }

    /// Puts the file back to how it was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn put_back(&self, before: &Before) -> Result<(), Problem> {
        match &before.0 {
            Some(text) => self.write(text.expose_secret()),
            None => match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(self.wrong(&error.to_string())),
                _ => Ok(()),
            },
        }
    }

    fn text(&self) -> Result<Option<SecretString>, Problem> {
        let mode = match fs::metadata(&self.path) {
            Ok(found) => found.mode(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(&error.to_string())),
        };
        if mode & 0o077 != 0 {
            let why = format!(
                "others can read your keys, so none is used: chmod 600 {}",
                self.path.display()
            );
            return Err(self.wrong(&why));
        }
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(SecretString::from(text))),
            Err(error) => Err(self.wrong(&error.to_string())),
        }
    }

    /// All of it or nothing: another process sees the old file or the new one.
    fn write(&self, text: &str) -> Result<(), Problem> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let written = || -> std::io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            // Nobody else can read it from the moment it is there.
            let mut file = tempfile::Builder::new().prefix(".keys-").tempfile_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        written().map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&self, why: &str) -> Problem {
        Problem::new(Exit::Config, format!("{}: {why}", self.path.display()))
    }
}

/// The keys of a text, or the line that is wrong and why. Nothing of the line is quoted: it may hold a key.
fn parse(text: &str) -> Result<Keys, (usize, String)> {
    let line = |start: Option<usize>| {
        let before = text.bytes().take(start.unwrap_or(0));
        before.filter(|byte| *byte == b'\n').count() + 1
    };
    let form = "write it as `provider = \"key\"` below `[keys]`";
    let document = Document::parse(text).map_err(|error| {
        let start = error.span().map(|span| span.start);
        (line(start), format!("this is not TOML; {form}"))
    })?;
    let mut keys = Keys::default();
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
