//! Folders that the parts of a command run in. Paths are relative to the folder that the command starts in.

use super::SandboxFacts;
use super::builtins::is_below;
use super::word::Word;

/// Maximum number of folders that a command may enter before they count as unknown.
const MAX_FOLDERS: usize = 16;

/// Folders that a command may be in, as far as its text tells.
pub(super) struct Place<'r> {
    /// True if git reads the repository of a folder that the command is in.
    pub(super) reads_repository: bool,
    /// Every folder that a part of the command runs in, as written; `None` if only known at run time.
    pub(super) entered: Vec<Option<String>>,
    pub(super) shell: Shell,
    pub(super) facts: &'r SandboxFacts<'r>,
    leaves: bool,
    /// Every folder that the command may have been in; `None` if they are not known.
    folders: Option<Vec<String>>,
}

/// Folder of the shell, and those it can go back to, if every command that changes it succeeds. `None` if only known
/// at run time.
#[derive(Debug, Clone)]
pub(super) struct Shell {
    current: Option<String>,
    previous: Option<String>,
    pushed: Vec<Option<String>>,
}

impl<'r> Place<'r> {
    pub(super) fn new(facts: &'r SandboxFacts<'r>) -> Self {
        Self {
            reads_repository: false,
            entered: Vec::new(),
            shell: Shell {
                current: Some(String::new()),
                previous: None,
                pushed: Vec::new(),
            },
            facts,
            leaves: false,
            folders: Some(vec![String::new()]),
        }
    }

    /// Returns true if some part of the command may run in a folder that needs more access.
    pub(super) fn leaves(&self) -> bool {
        self.leaves
    }

    /// Returns the folders in which git reads a repository; `None` if they are not known.
    pub(super) fn repositories(&self) -> Option<Vec<String>> {
        match self.reads_repository {
            true => self.folders.clone(),
            false => Some(Vec::new()),
        }
    }

    /// Records that one program runs in a folder.
    pub(super) fn enters(&mut self, folder: &Word) {
        let reached = self.joined(folder);
        self.visit(folder, reached.as_deref());
    }

    /// Records that the shell changes its folder. With `physical` it follows the links before `..`.
    pub(super) fn changes(&mut self, folder: &Word, physical: bool, push: bool) {
        let reached = self.joined(folder);
        let reached = reached.map(|path| if physical { path } else { logical(&path) });
        self.visit(folder, reached.as_deref());
        let left = std::mem::replace(&mut self.shell.current, reached);
        if push {
            self.shell.pushed.push(left.clone());
        }
        self.shell.previous = left;
    }

    /// Records that the shell returns to the folder before the current one.
    pub(super) fn returns(&mut self) {
        let back = self.shell.previous.take();
        self.shell.previous = std::mem::replace(&mut self.shell.current, back);
        self.is_back();
    }

    /// Records that the shell returns to the folder that was pushed last.
    pub(super) fn pops(&mut self) {
        self.shell.previous = self.shell.current.take();
        self.shell.current = self.shell.pushed.pop().flatten();
        self.is_back();
    }

    fn is_back(&mut self) {
        let current = self.shell.current.clone();
        self.entered.push(current.clone());
        self.reach(current.as_deref());
        if current.is_none() {
            self.folders = None;
        }
    }

    /// Returns a path as seen from the first folder, if the shell's folder is known.
    pub(super) fn path(&self, path: &str) -> String {
        let current = self.shell.current.as_deref().filter(|_| !path.starts_with('~'));
        current.map_or_else(|| path.to_owned(), |current| join(current, path))
    }

    fn joined(&self, folder: &Word) -> Option<String> {
        let path = named(folder)?;
        match &self.shell.current {
            Some(current) => Some(join(current, path)),
            None => path.starts_with('/').then(|| path.to_owned()),
        }
    }

    fn visit(&mut self, folder: &Word, reached: Option<&str>) {
        let written = folder.fixed().filter(|path| !path.starts_with(['-', '+']));
        self.entered.push(written.map(str::to_owned));
        self.reach(reached);
        let entered = self.folders.take().zip(named(folder)).map(|(mut folders, path)| {
            // The command may still be in any folder that it was in before.
            let inner: Vec<String> = folders.iter().map(|folder| join(folder, path)).collect();
            folders.extend(inner);
            folders.extend(reached.map(str::to_owned));
            folders.sort();
            folders.dedup();
            folders
        });
        self.folders = entered.filter(|folders| folders.len() <= MAX_FOLDERS);
    }

    fn reach(&mut self, folder: Option<&str>) {
        let is_held = |path: &str| path.is_empty() || is_below(path) || (self.facts.holds)(path);
        self.leaves |= !folder.is_some_and(is_held);
    }
}

/// Returns the path of a folder, unless it is only known at run time.
fn named(folder: &Word) -> Option<&str> {
    folder.fixed().filter(|path| !path.starts_with(['~', '-', '+']))
}

fn join(folder: &str, path: &str) -> String {
    match folder {
        "" => path.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        _ if path.is_empty() => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}

/// Returns a path without `.` and `..`, as the shell reads it: `..` undoes the name before it, even that of a link.
pub(super) fn logical(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                None | Some(&"..") if !is_absolute => parts.push(".."),
                _ => drop(parts.pop()),
            },
            name => parts.push(name),
        }
    }
    let joined = parts.join("/");
    if is_absolute { format!("/{joined}") } else { joined }
}
