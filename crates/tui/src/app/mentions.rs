//! Completion menus: commands after `/`, files and folders after `@`.

use super::App;
use crate::menu::{Choice, MOST, Menu, best};
use crate::text::one_line;

impl App {
    pub(super) fn offer_commands(&mut self, line: &str) {
        if line.contains(char::is_whitespace) {
            return self.jobs.complete(&self.session.info.id, line);
        }
        let letters = line.trim_start_matches('/').to_ascii_lowercase();
        let mut found = best(&letters, &self.caches.commands, |command| &command.name);
        // A name that starts with the letters is meant before one that merely contains them.
        found.sort_by_key(|command| !command.name.starts_with(&letters));
        let choice = |command: &&windlass_api::CommandInfo| Choice {
            insert: format!("/{} ", command.name),
            label: format!("/{}", command.name),
            arguments: command.arguments.clone(),
            detail: command.help.clone(),
        };
        self.menu = Menu::new(found.iter().take(MOST).map(choice).collect());
    }

    pub(super) fn offer_files(&mut self, typed: &str) {
        let (letters, lines) = split_lines(typed);
        if is_outside(letters) {
            return self.offer_outside(letters, lines);
        }
        let Some(files) = &self.caches.files else {
            self.menu = Some(Menu::empty("looking for files…"));
            if !self.caches.is_reading_files {
                self.caches.is_reading_files = true;
                self.jobs.files(&self.session.info, None);
            }
            return;
        };
        let found = best(letters, files, |file| file);
        self.menu = Some(listed(&found, lines));
    }

    /// Offers the entries of a folder outside the session's: `@/abs`, `@../` and `@~/`.
    fn offer_outside(&mut self, letters: &str, lines: &str) {
        let folder = letters
            .rfind('/')
            .map_or(letters, |at| letters.get(..=at).unwrap_or_default());
        match &self.caches.outside {
            Some((of, entries)) if of == folder => {
                let found: Vec<&String> = entries
                    .iter()
                    .filter(|entry| entry.starts_with(letters))
                    .collect();
                self.menu = Some(listed(&found, lines));
            }
            _ => {
                self.menu = Some(Menu::empty("looking for files…"));
                self.jobs.files(&self.session.info, Some(folder.to_owned()));
            }
        }
    }

    /// Takes the files below the session's folder, and adds their folders.
    pub(super) fn take_files(&mut self, of: Option<String>, mut files: Vec<String>) {
        match of {
            Some(folder) => self.caches.outside = Some((folder, files)),
            None => {
                let mut folders: Vec<String> = files.iter().flat_map(|file| folders(file)).collect();
                folders.sort();
                folders.dedup();
                folders.append(&mut files);
                self.caches.files = Some(folders);
            }
        }
        self.written();
    }
}

fn listed(found: &[&String], lines: &str) -> Menu {
    let choice = |file: &&String| Choice {
        insert: match file.ends_with('/') {
            true => (*file).clone(),
            false => format!("{file}{lines}"),
        },
        label: one_line(file),
        arguments: String::new(),
        detail: String::new(),
    };
    let menu = Menu::new(found.iter().take(MOST).map(choice).collect());
    menu.unwrap_or_else(|| Menu::empty("no file or folder matches"))
}

/// True if a path does not start in the session's folder.
fn is_outside(path: &str) -> bool {
    path.starts_with('/') || path.starts_with("../") || path == ".." || path.starts_with('~')
}

/// Returns the folders of a path, each with a slash at its end.
fn folders(file: &str) -> impl Iterator<Item = String> {
    file.match_indices('/')
        .filter_map(|(at, _)| file.get(..=at))
        .map(str::to_owned)
}

/// Splits a line or a range of lines from a path: `src/main.rs:10-20`.
fn split_lines(typed: &str) -> (&str, &str) {
    let Some((path, lines)) = typed.rsplit_once(':') else {
        return (typed, "");
    };
    let is_range = lines
        .chars()
        .all(|letter| letter.is_ascii_digit() || letter == '-');
    match is_range && !path.is_empty() {
        true => (path, typed.get(path.len()..).unwrap_or_default()),
        false => (typed, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a mention may end with lines, which are not part of the name.
    #[test]
    fn lines_are_split_from_paths() {
        let cases = [
            ("src/main.rs", ("src/main.rs", "")),
            ("src/main.rs:10-20", ("src/main.rs", ":10-20")),
            ("main.rs:7", ("main.rs", ":7")),
            ("main.rs:", ("main.rs", ":")),
            ("a:b", ("a:b", "")),
            (":3", (":3", "")),
        ];
        for (typed, expected) in cases {
            assert_eq!(split_lines(typed), expected, "{typed}");
        }
        let all: Vec<String> = folders("a/b/c.rs").collect();
        assert_eq!(all, ["a/", "a/b/"]);
    }
}
