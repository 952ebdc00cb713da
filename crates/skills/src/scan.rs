//! Skills below folders. Files that have not changed are not read again.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::front::{Skill, parse_skill};

/// Maximum size of a SKILL.md file, in bytes.
const LARGEST: u64 = 128 * 1024;
/// Maximum depth below a root, and maximum number of folders that are looked into for all roots together.
const DEEPEST: usize = 4;
const MOST_FOLDERS: usize = 2_000;
/// Maximum number of skills.
const MOST_SKILLS: usize = 500;
/// Name of the file.
const FILE: &str = "SKILL.md";

/// Owner of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SkillOrigin {
    /// A folder of the project.
    Project,
    /// A folder of the user.
    User,
    /// A plugin, by its name.
    Plugin(String),
    /// Part of the program.
    BuiltIn,
}

impl fmt::Display for SkillOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("project"),
            Self::User => f.write_str("user"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}

/// A folder with skills in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRoot {
    /// The folder, which need not exist.
    pub folder: PathBuf,
    /// Its owner.
    pub origin: SkillOrigin,
    /// Folder that links must not leave; `None` if they may lead anywhere.
    pub fence: Option<PathBuf>,
}

/// A mistake in a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The mistake, and what would be right.
    pub message: String,
    /// True if the skill is not used because of it.
    pub is_fatal: bool,
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)?;
        if self.is_fatal {
            f.write_str("; the skill is not used")?;
        }
        Ok(())
    }
}

type Stamp = (u64, i64, i64, u64);

/// Reads skills, and remembers the files it has read.
#[derive(Debug, Default)]
pub struct SkillFiles {
    known: HashMap<PathBuf, Known>,
}

#[derive(Debug, Clone)]
struct Known {
    stamp: Stamp,
    skill: Option<Skill>,
    problems: Vec<SkillProblem>,
}

impl SkillFiles {
    /// Returns the skills below these folders, in their order, and the mistakes in them.
    pub fn scan(&mut self, roots: &[SkillRoot]) -> (Vec<Skill>, Vec<SkillProblem>) {
        let mut walk = Walk {
            left: MOST_FOLDERS,
            files: Vec::new(),
            problems: Vec::new(),
            seen: Vec::new(),
        };
        for root in roots {
            walk.folder(&root.folder, root, 0);
        }
        let Walk {
            mut files,
            mut problems,
            left,
            ..
        } = walk;
        if files.len() > MOST_SKILLS || left == 0 {
            let file = files
                .get(MOST_SKILLS)
                .or(files.last())
                .map(|(file, _)| file.clone());
            problems.push(SkillProblem {
                file: file.unwrap_or_default(),
                line: None,
                message: format!("only the first {MOST_SKILLS} skills and {MOST_FOLDERS} folders are read"),
                is_fatal: false,
            });
            files.truncate(MOST_SKILLS);
        }
        let mut skills = Vec::new();
        let mut known = HashMap::new();
        for (file, origin) in files {
            let read = self.read(&file, origin);
            skills.extend(read.skill.clone());
            problems.extend(read.problems.iter().cloned());
            known.insert(file, read);
        }
        self.known = known;
        (skills, problems)
    }

    fn read(&self, file: &Path, origin: SkillOrigin) -> Known {
        let stamp = std::fs::metadata(file)
            .map(|data| (data.size(), data.mtime(), data.mtime_nsec(), data.ino()))
            .unwrap_or_default();
        match self.known.get(file) {
            Some(known) if known.stamp == stamp && stamp != Stamp::default() => return known.clone(),
            _ => {}
        }
        let mut problems = Vec::new();
        let skill = match read_text(file) {
            Ok(text) => parse_skill(file, &text, origin, &mut problems),
            Err(message) => {
                problems.push(SkillProblem {
                    file: file.to_owned(),
                    line: None,
                    message,
                    is_fatal: true,
                });
                None
            }
        };
        Known {
            stamp,
            skill,
            problems,
        }
    }
}

fn read_text(file: &Path) -> Result<String, String> {
    // Looked at before it is opened: opening a pipe waits for its writer.
    let data = file
        .metadata()
        .map_err(|error| format!("cannot be read: {error}"))?;
    if !data.is_file() {
        return Err("is not a file".to_owned());
    }
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    opened
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        let text = format!(
            "is larger than {} KB; move parts into other files of its folder",
            LARGEST / 1024
        );
        return Err(text);
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

struct Walk {
    left: usize,
    files: Vec<(PathBuf, SkillOrigin)>,
    problems: Vec<SkillProblem>,
    /// Folders that were looked into, with links followed.
    seen: Vec<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path, root: &SkillRoot, depth: usize) {
        // Most folders do not exist, which costs less to find out than where they really are.
        if folder.symlink_metadata().is_err() {
            return;
        }
        let Ok(real) = folder.canonicalize() else { return };
        if self.left == 0 || depth > DEEPEST || self.seen.contains(&real) {
            return;
        }
        if let Some(fence) = &root.fence
            && !real.starts_with(fence)
        {
            self.problems.push(SkillProblem {
                file: folder.to_owned(),
                line: None,
                message: "is a link out of the repository, and is not read".to_owned(),
                is_fatal: true,
            });
            return;
        }
        self.left -= 1;
        self.seen.push(real.clone());
        let file = folder.join(FILE);
        if depth > 0 && file.symlink_metadata().is_ok() {
            let is_inside = file
                .canonicalize()
                .is_ok_and(|file| file.starts_with(&real) || root.fence.is_none());
            if is_inside {
                self.files.push((file, root.origin.clone()));
            } else {
                self.problems.push(SkillProblem {
                    file,
                    line: None,
                    message: "is a link out of its folder, and is not read".to_owned(),
                    is_fatal: true,
                });
            }
            return;
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .take(MOST_FOLDERS)
            .filter(|entry| {
                let name = entry.file_name();
                name != ".git" && name != "node_modules"
            })
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        for folder in folders {
            self.folder(&folder, root, depth + 1);
        }
    }
}
