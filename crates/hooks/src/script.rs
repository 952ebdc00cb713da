//! Scripts inside the workspace that hooks run. A model can change them, and hooks run outside the sandbox: a script
//! that changed after its hook was read does not run.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::file::HookProgram;

/// Endings of scripts, which an interpreter runs without the executable bit.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua",
];

/// A script as it was when its hook was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookScript {
    path: PathBuf,
    stamp: Stamp,
}

/// Device, inode, size and time of the last change, which programs cannot set.
type Stamp = (u64, u64, u64, i64, i64);

impl HookScript {
    /// Finds the scripts of a program below `root`.
    pub(crate) fn find(program: &HookProgram, root: &Path) -> Vec<Self> {
        let Ok(real_root) = root.canonicalize() else {
            return Vec::new();
        };
        let texts = std::iter::once(&program.command).chain(program.args.iter().flatten());
        let mut found: Vec<Self> = Vec::new();
        for text in texts {
            let shown = root.display().to_string();
            let text = text
                .replace("${CLAUDE_PROJECT_DIR}", &shown)
                .replace("$CLAUDE_PROJECT_DIR", &shown)
                .replace(['"', '\''], "");
            let ends = |letter: char| letter.is_whitespace() || ";&|<>()".contains(letter);
            for word in text
                .split(ends)
                .filter(|word| !word.is_empty())
                .chain([text.as_str()])
            {
                let path = root.join(word);
                let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(&real_root));
                let is_known = found.iter().any(|known| known.path == path);
                if is_inside
                    && !is_known
                    && let Some(stamp) = stamp(&path)
                {
                    found.push(Self { path, stamp });
                }
            }
        }
        found
    }

    /// Returns the path of the script.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Explains that the script changed, if it did.
    pub(crate) fn change(&self) -> Option<String> {
        let is_same = stamp(&self.path) == Some(self.stamp);
        (!is_same).then(|| format!("{} changed since its hook was read", self.path.display()))
    }
}

/// Returns the stamp of a script; `None` for other files.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let is_script = found.mode() & 0o111 != 0 || ENDINGS.contains(&ending);
    is_script.then(|| {
        (
            found.dev(),
            found.ino(),
            found.size(),
            found.ctime(),
            found.ctime_nsec(),
        )
    })
}
