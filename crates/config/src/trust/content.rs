//! The content that trust is bound to: every file below `.windlass`, the project's files that its tools and hooks
//! name, and its agent types and hooks for other agents.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use windlass_sandbox::sha256_hex;
use windlass_tools::declared::{Declarations, Source};

use super::hooks;
use crate::folders::{FOREIGN_HOOKS, Project};

/// SUB-7: folders of other agents with types of agents, below the project's root.
pub const FOREIGN_AGENTS: [&str; 4] = [
    ".claude/agents",
    ".codex/agents",
    ".opencode/agent",
    ".opencode/agents",
];

/// SKILL-2: folders of other agents with skills, below the project's root. Trust covers them if it can; a folder with
/// links or too many files is left out, and its skills are used as those of a project that is not trusted.
const FOREIGN_SKILLS: [&str; 2] = [".agents/skills", ".claude/skills"];

const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 10_000_000;
/// Maximum depth: each level holds a file descriptor during the walk.
const MAX_DEPTH: usize = 20;

/// Open flags: never follow a link, and never block on a pipe.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// The content of a project's files at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Hash of all the files.
    pub hash: String,
    files: Vec<Covered>,
}

/// A file covered by trust.
#[derive(Debug)]
pub struct Covered {
    /// Path relative to the project's root.
    pub path: PathBuf,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

impl Snapshot {
    /// Reads a project's files. The error explains why they cannot be trusted.
    pub fn read(project: &Project) -> Result<Self, String> {
        let mut reader = Reader::default();
        let folder = project.folder();
        let own = relative(project, &folder);
        let opened = rustix::fs::open(&folder, FLAGS, Mode::empty());
        reader.hooks(project)?;
        reader.servers(project)?;
        match opened {
            // A project may consist of hooks for other agents, or of MCP servers.
            Err(Errno::NOENT) if !reader.files.is_empty() => {}
            Err(error) => return Err(refused(&own, error)),
            Ok(opened) => reader.entry(opened, &own, 0)?,
        }
        for name in FOREIGN_AGENTS {
            if let Ok(opened) = rustix::fs::open(project.root.join(name), FLAGS, Mode::empty()) {
                reader.entry(opened, Path::new(name), 0)?;
            }
        }
        for name in FOREIGN_SKILLS {
            if let Ok(opened) = rustix::fs::open(project.root.join(name), FLAGS, Mode::empty()) {
                let mut skills = Reader::default();
                if skills.entry(opened, Path::new(name), 0).is_ok() {
                    reader.files.extend(skills.files);
                }
            }
        }
        let mut named = programs(project, &reader.files)?;
        named.extend(hook_programs(project, &reader.files));
        named.extend(server_programs(project, &reader.files));
        for program in named {
            reader.program(&program)?;
        }
        let mut files = reader.files;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|one, other| one.path == other.path);
        Ok(Self {
            hash: hash(&files),
            files,
        })
    }

    /// Returns all files, by path.
    pub fn files(&self) -> &[Covered] {
        &self.files
    }

    /// Returns the bytes of a file below the project's root.
    pub fn bytes(&self, project: &Project, path: &Path) -> Option<&[u8]> {
        let path = relative(project, path);
        let file = self.files.iter().find(|file| file.path == path);
        file.map(|file| file.bytes.as_slice())
    }

    /// Returns the files below a folder of the project, each with its path relative to that folder.
    pub fn below(&self, project: &Project, folder: &Path) -> Vec<(PathBuf, &[u8])> {
        let folder = relative(project, folder);
        let found = self.files.iter().filter_map(|file| {
            let path = file.path.strip_prefix(&folder).ok()?;
            Some((path.to_owned(), file.bytes.as_slice()))
        });
        found.collect()
    }

    /// MCP-1: returns the text of the file with MCP servers.
    pub fn servers(&self, project: &Project) -> Option<&str> {
        let bytes = self.bytes(project, &project.servers_file())?;
        std::str::from_utf8(bytes).ok()
    }

    /// Returns the text of the tools file.
    pub fn tools(&self, project: &Project) -> Option<&str> {
        let bytes = self.bytes(project, &project.tools_file())?;
        std::str::from_utf8(bytes).ok()
    }
}

#[derive(Default)]
struct Reader {
    files: Vec<Covered>,
    entries: usize,
    bytes: usize,
}

impl Reader {
    /// Adds an opened file, or everything below an opened folder.
    fn entry(&mut self, opened: OwnedFd, path: &Path, depth: usize) -> Result<(), String> {
        let file = File::from(opened);
        let kind = file
            .metadata()
            .map_err(|error| unreadable(path, &error))?
            .file_type();
        if kind.is_dir() {
            return self.folder(&file, path, depth);
        }
        if depth == 0 {
            return Err(format!("{} is not a folder", path.display()));
        }
        if !kind.is_file() {
            return Err(format!("{} is neither a file nor a folder", path.display()));
        }
        self.file(file, path)
    }

    fn folder(&mut self, folder: &File, path: &Path, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} is nested too deeply", path.display()));
        }
        let entries = Dir::read_from(folder).map_err(|error| unreadable(path, &error.into()))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(path, &error.into()))?;
            let name = entry.file_name();
            if [b".".as_slice(), b".."].contains(&name.to_bytes()) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_FILES {
                return Err(format!("there are more than {MAX_FILES} files in .windlass"));
            }
            let path = path.join(OsString::from_vec(name.to_bytes().to_vec()));
            let opened = rustix::fs::openat(folder, name, FLAGS, Mode::empty());
            self.entry(opened.map_err(|error| refused(&path, error))?, &path, depth + 1)?;
        }
        Ok(())
    }

    fn file(&mut self, file: File, path: &Path) -> Result<(), String> {
        let left = MAX_BYTES - self.bytes;
        let mut bytes = Vec::new();
        let read = file.take(left as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(path, &error))?;
        if bytes.len() > left {
            return Err(format!(
                "its files exceed {} MB in total, at {}",
                MAX_BYTES / 1_000_000,
                path.display()
            ));
        }
        self.bytes += bytes.len();
        self.files.push(Covered {
            path: path.to_owned(),
            bytes,
        });
        Ok(())
    }

    /// Adds the hooks in files of other agents. Their other settings have no effect here, and may change.
    fn hooks(&mut self, project: &Project) -> Result<(), String> {
        for name in FOREIGN_HOOKS {
            let path = Path::new(name);
            let Ok(opened) = rustix::fs::open(project.root.join(name), FLAGS, Mode::empty()) else {
                continue;
            };
            let file = File::from(opened);
            let is_file = file.metadata().is_ok_and(|found| found.is_file());
            if !is_file {
                return Err(format!("{name} is not a file"));
            }
            self.file(file, path)?;
            let hooks = self.files.pop().and_then(|file| hooks::of_settings(&file.bytes));
            self.files.extend(hooks.map(|bytes| Covered {
                path: path.to_owned(),
                bytes,
            }));
        }
        Ok(())
    }

    /// Adds the file with MCP servers, if there is one.
    fn servers(&mut self, project: &Project) -> Result<(), String> {
        if !project.has_servers() {
            return Ok(());
        }
        let path = project.servers_file();
        let name = relative(project, &path);
        let opened = rustix::fs::open(&path, FLAGS, Mode::empty()).map_err(|error| refused(&name, error))?;
        let file = File::from(opened);
        let found = file.metadata().map_err(|error| unreadable(&name, &error))?;
        match found.is_file() {
            true => self.file(file, &name),
            false => Err(format!("{} is not a file", name.display())),
        }
    }

    /// Adds a file that a tool names. Links are followed here, because the file that would run is what
    /// matters.
    fn program(&mut self, program: &Program) -> Result<(), String> {
        let name = &program.name;
        if self.files.iter().any(|known| known.path == *name) {
            return Ok(());
        }
        let flags = FLAGS.difference(OFlags::NOFOLLOW);
        let opened = rustix::fs::open(&program.path, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| refused(name, error))?);
        let found = file.metadata().map_err(|error| unreadable(name, &error))?;
        if !found.is_file() {
            return Err(format!("{} is not a file", name.display()));
        }
        self.file(file, name)
    }
}

/// A file of the project that a tool names.
struct Program {
    /// Path relative to the project's root, if the tool names it that way.
    name: PathBuf,
    path: PathBuf,
}

/// Returns the files that the project's tools name. A file that appears later changes the list, and so the
/// hash.
fn programs(project: &Project, files: &[Covered]) -> Result<Vec<Program>, String> {
    let own = relative(project, &project.tools_file());
    let Some(file) = files.iter().find(|file| file.path == own) else {
        return Ok(Vec::new());
    };
    let Ok(text) = std::str::from_utf8(&file.bytes) else {
        return Err(format!("{} is not UTF-8 text", own.display()));
    };
    // Nothing in a broken file takes effect.
    let Ok(declarations) = Declarations::parse(text, "tools.yaml", Source::Project) else {
        return Ok(Vec::new());
    };
    let root = project.root.canonicalize();
    let root = root.map_err(|error| unreadable(&project.root, &error))?;
    let outlines = declarations.outlines();
    let fixed = outlines.iter().flat_map(|outline| &outline.fixed);
    // `--rcfile=scripts/rc` names a file as well.
    let words = fixed.flat_map(|text| [Some(text.as_str()), text.split_once('=').map(|(_, value)| value)]);
    Ok(words.flatten().filter_map(|word| program(&root, word)).collect())
}

/// Returns the files of the project that its hooks name.
fn hook_programs(project: &Project, files: &[Covered]) -> Vec<Program> {
    let Ok(root) = project.root.canonicalize() else {
        return Vec::new();
    };
    let own = relative(project, &project.hooks_file());
    let is_hooks =
        |file: &&Covered| file.path == own || FOREIGN_HOOKS.iter().any(|name| file.path == Path::new(name));
    let words = files
        .iter()
        .filter(is_hooks)
        .flat_map(|file| hooks::words(&file.bytes, &root));
    words.filter_map(|word| program(&root, &word)).collect()
}

/// MCP-1: returns the files of the project that its MCP servers name as programs or arguments.
fn server_programs(project: &Project, files: &[Covered]) -> Vec<Program> {
    let own = relative(project, &project.servers_file());
    let Some(file) = files.iter().find(|file| file.path == own) else {
        return Vec::new();
    };
    let Ok(root) = project.root.canonicalize() else {
        return Vec::new();
    };
    let mut words = Vec::new();
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(&file.bytes) {
        collect_words(&value, &mut words);
    }
    words.iter().filter_map(|word| program(&root, word)).collect()
}

/// Collects every text in a value; the parser limits its depth.
fn collect_words(value: &serde_json::Value, words: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => words.push(text.clone()),
        serde_json::Value::Array(list) => list.iter().for_each(|value| collect_words(value, words)),
        serde_json::Value::Object(map) => map.values().for_each(|value| collect_words(value, words)),
        _ => {}
    }
}

/// Returns the file that a word names, if it belongs to the project.
fn program(root: &Path, word: &str) -> Option<Program> {
    let path = root.join(word);
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let real = path.canonicalize().ok()?;
    let is_inside = clean(&path).starts_with(root) || real.starts_with(root);
    let name = path.strip_prefix(root).or_else(|_| real.strip_prefix(root));
    let name = name.map_or_else(|_| path.clone(), Path::to_owned);
    is_inside.then_some(Program { name, path })
}

/// Removes `.` and `..` from the path.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

fn relative(project: &Project, path: &Path) -> PathBuf {
    path.strip_prefix(&project.root).unwrap_or(path).to_owned()
}

/// Hashes the files. Lengths precede texts, so that no two lists of files have the same encoding.
fn hash(files: &[Covered]) -> String {
    let mut all = b"windlass trust 1\n".to_vec();
    for file in files {
        for piece in [file.path.as_os_str().as_bytes(), &file.bytes] {
            all.extend((piece.len() as u64).to_be_bytes());
            all.extend(piece);
        }
    }
    sha256_hex(&all)
}

fn refused(path: &Path, error: Errno) -> String {
    match error {
        Errno::LOOP => format!("{} is a link, and links are not followed", path.display()),
        Errno::NXIO => format!("{} is neither a file nor a folder", path.display()),
        error => unreadable(path, &error.into()),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
