//! The file layers: read, parsed, and matched against the table of keys.

mod lines;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::{Document, Item, TableLike};
use windlass_core::text::in_plain_words;
use windlass_sandbox::read_given;

use self::lines::Lines;
use super::keys::{self, Key, Place, render};
use super::layers::{Layers, SettingOrigin};
use super::problem::SettingsProblem;
use super::suggest::{self, Found};
use super::value::{Value, clip, describe};

/// Size limit of a settings file in bytes.
const MAX_BYTES: u64 = 1 << 20;
const TOO_LARGE: &str = "is larger than 1 MiB, expected a settings file";

/// Maximum number of warnings listed per file; the rest is counted.
const MAX_WARNINGS: usize = 20;

/// Author of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    /// The authors of the repository.
    Project,
}

/// Reads the user's file, if it exists.
pub(super) fn read_user(path: &Path, layers: &mut Layers) {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => read(path, layers),
        Ok(found) if found.is_dir() => refuse(path, "is a folder, expected a file", layers),
        // Opening a pipe would block until a process writes to it.
        Ok(_) => refuse(path, "is not a regular file", layers),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) => {}
        Err(error) => refuse(path, &format!("cannot be read: {error}"), layers),
    }
}

/// Reads the file that the user named: it must exist, and may be a pipe.
pub(super) fn read_named(path: &Path, layers: &mut Layers) {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => refuse(path, "is a folder, expected a file", layers),
        Ok(_) => read(path, layers),
        Err(error) => refuse(path, &format!("cannot be read: {error}"), layers),
    }
}

/// Reads the project's file. `bytes` is its trusted content; `None` if the trusted content has no such file.
///
/// Even if it is trusted, a repository must not redirect keys to its own server, run a command or widen
/// permissions: entries that could are ignored with a warning.
pub(super) fn read_project(path: &Path, bytes: Option<&[u8]>, layers: &mut Layers) {
    match bytes {
        Some(bytes) => take(path, bytes.to_vec(), Author::Project, layers),
        None if path.is_dir() => refuse(path, "is a folder, expected a file", layers),
        None => {}
    }
}

fn refuse(path: &Path, message: &str, layers: &mut Layers) {
    let place = path.display().to_string();
    layers.problem(|| SettingsProblem {
        place,
        key: String::new(),
        message: message.to_owned(),
    });
}

fn read(path: &Path, layers: &mut Layers) {
    match read_given(path, MAX_BYTES) {
        Ok(bytes) => take(path, bytes, Author::User, layers),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => refuse(path, TOO_LARGE, layers),
        Err(error) => refuse(path, &in_plain_words(&format!("cannot be read: {error}")), layers),
    }
}

fn take(path: &Path, bytes: Vec<u8>, author: Author, layers: &mut Layers) {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return refuse(path, TOO_LARGE, layers);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let place = Lines::new(&text).place(path, valid);
            let message = "not UTF-8 text; save the file as UTF-8".to_owned();
            return layers.problem(|| SettingsProblem {
                place,
                key: String::new(),
                message,
            });
        }
    };
    parse(
        path,
        text.strip_prefix('\u{feff}').unwrap_or(&text),
        author,
        layers,
    );
}

fn parse(path: &Path, text: &str, author: Author, layers: &mut Layers) {
    let lines = Lines::new(text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let place = lines.place(path, error.span().map_or(0, |span| span.start));
            let message = format!("not valid TOML: {}", error.message());
            return layers.problem(|| SettingsProblem {
                place,
                key: String::new(),
                message,
            });
        }
    };
    let path = Arc::new(path.to_owned());
    let mut walk = Walk {
        path,
        lines,
        author,
        layers,
        at: Vec::new(),
        warned: 0,
    };
    walk.table(document.as_table());
    if walk.warned > MAX_WARNINGS {
        let unlisted = walk.warned - MAX_WARNINGS;
        let warning = format!(
            "{}: … and {unlisted} more that a project may not set",
            walk.path.display()
        );
        walk.layers.warn(warning);
    }
}

/// A walk through the tables of one file.
struct Walk<'a> {
    path: Arc<PathBuf>,
    lines: Lines<'a>,
    author: Author,
    layers: &'a mut Layers,
    /// Path to the current table.
    at: Vec<String>,
    warned: usize,
}

/// An entry of a table, with the location of its name.
#[derive(Clone, Copy)]
struct Entry<'a> {
    item: &'a Item,
    name_at: usize,
}

impl Entry<'_> {
    /// Location of a table: its header, of which only the name can be wrong.
    fn value_at(&self) -> usize {
        let span = self.item.as_value().and_then(toml_edit::Value::span);
        span.map_or(self.name_at, |span| span.start)
    }
}

impl Walk<'_> {
    fn table(&mut self, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let span = table.key(name).and_then(toml_edit::Key::span);
            self.at.push(name.to_owned());
            self.entry(Entry {
                item,
                name_at: span.map_or(0, |span| span.start),
            });
            self.at.pop();
        }
    }

    fn entry(&mut self, found: Entry<'_>) {
        let place = keys::find(&self.at);
        match (place, found.item.as_table_like()) {
            (Place::Section, Some(table)) => self.table(table),
            (place, _) if self.is_refused(&place) => self.refused(found),
            (Place::Key(key), _) => self.value(key, found),
            (Place::Section, None) => self.no_table(found),
            (Place::Unknown, Some(table)) => self.unknown_table(table, found),
            (Place::Unknown, None) => self.unknown(found),
        }
    }

    fn value(&mut self, key: &'static Key, found: Entry<'_>) {
        let names = key.check_names(&self.at);
        let checked = names.map_err(|message| (found.name_at, message)).and_then(|()| {
            let at = found.value_at();
            key.kind.check(found.item).map_err(|message| (at, message))
        });
        match checked {
            Ok(value) => {
                let line = self.lines.line(found.name_at);
                if let (Author::Project, Value::List(entries)) = (self.author, &value) {
                    let path = Arc::clone(&self.path);
                    return self.layers.add(key, entries.clone(), path, line);
                }
                let origin = SettingOrigin::File {
                    path: Arc::clone(&self.path),
                    line,
                };
                self.layers.set(key, &self.at, value, origin);
            }
            Err((at, message)) => {
                let section = found
                    .item
                    .as_table_like()
                    .and_then(|_| suggest::nearest_section(key.name));
                let hint = section.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                self.problem(at, || message + &hint);
            }
        }
    }

    /// Reports a value in place of a table: `[providers] base_url = …`.
    fn no_table(&mut self, found: Entry<'_>) {
        let at = found.value_at();
        let path = self.at.clone();
        self.problem(at, || {
            let leaf = path.last().map_or("", String::as_str);
            let meant = keys::all().find(|key| key.is_pattern() && key.leaf() == leaf);
            let hint = meant.map_or_else(String::new, |key| format!("; did you mean `{}`?", key.name));
            format!("expected a table, found {}{hint}", describe(found.item))
        });
    }

    /// Reports an unknown table. A misspelled table is one problem; in a table that resembles no known one,
    /// each entry is reported, because it may belong elsewhere.
    fn unknown_table(&mut self, table: &dyn TableLike, found: Entry<'_>) {
        let is_near = || suggest::nearest_key(&self.at, Found::Table).is_some();
        if table.is_empty() || self.at.len() > 1 || is_near() {
            let path = self.at.clone();
            return self.problem(found.name_at, || suggest::unknown(&path, Found::Table));
        }
        for (name, item) in table.iter() {
            let span = table.key(name).and_then(toml_edit::Key::span);
            self.at.push(name.to_owned());
            self.unknown(Entry {
                item,
                name_at: span.map_or(found.name_at, |span| span.start),
            });
            self.at.pop();
        }
    }

    fn unknown(&mut self, found: Entry<'_>) {
        let path = self.at.clone();
        let kind = if found.item.is_table_like() {
            Found::Table
        } else {
            Found::Value
        };
        self.problem(found.name_at, || suggest::unknown(&path, kind));
    }

    /// Returns true if a project may not set this. Mistakes in sections closed to projects are not reported
    /// either.
    fn is_refused(&self, place: &Place) -> bool {
        let section = self.at.first().map_or("", String::as_str);
        let mut of_section = keys::all().filter(|key| key.section() == section).peekable();
        let closed = of_section.peek().is_some() && !of_section.any(|key| key.project_ok);
        let allowed = match place {
            Place::Key(key) => key.project_ok,
            Place::Section | Place::Unknown => !closed,
        };
        self.author == Author::Project && !allowed
    }

    fn refused(&mut self, found: Entry<'_>) {
        self.warned += 1;
        if self.warned <= MAX_WARNINGS {
            let place = self.lines.place(&self.path, found.name_at);
            let key = clip(&render(&self.at));
            let instead = "set it in your own config file, the environment or a flag";
            self.layers.warn(format!(
                "{place}: {key}: ignored: a project may not set it; {instead}"
            ));
        }
    }

    fn problem(&mut self, at: usize, message: impl FnOnce() -> String) {
        let (lines, path, key) = (&self.lines, &self.path, &self.at);
        self.layers.problem(|| SettingsProblem {
            place: lines.place(path, at),
            key: clip(&render(key)),
            message: message(),
        });
    }
}
