//! `/diff`: the file changes of a session, turn by turn; and the branch of its folder.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use windlass_checkpoint::Tracker;
use windlass_core::checkpoint::{Changed, Checkpoint, Checkpoints, FileChange};
use windlass_service::ExtensionReply;
use windlass_service::format::cut;

/// Number of characters shown of the user's message.
const PROMPT: usize = 70;
/// Maximum number of lines of all diffs together.
const MAX_LINES: usize = 5_000;
/// Maximum size of Git's small files, in bytes.
const MAX_HEAD: u64 = 4 * 1024;
/// Number of characters shown of a commit.
const COMMIT: usize = 8;

/// CMD-1: shows the changes of all turns, of the last one, or of one checkpoint.
pub(crate) async fn command(tracker: Option<&Tracker>, arguments: &str) -> Result<ExtensionReply, String> {
    let tracker = tracker.ok_or("Checkpoints are off here, so that file changes are not recorded.")?;
    let all = tracker.list().await.map_err(|error| error.to_string())?;
    let live: Vec<&Checkpoint> = all.iter().filter(|checkpoint| !checkpoint.undone).collect();
    let wanted: Vec<&Checkpoint> = match arguments {
        "" | "all" => live,
        "last" => live
            .into_iter()
            .rev()
            .find(|checkpoint| checkpoint.files > 0)
            .into_iter()
            .collect(),
        number => {
            let number = number.parse::<u64>().map_err(
                |_| "write it as /diff, /diff last, or /diff N with a number from /checkpoint list",
            )?;
            let found = all.iter().find(|checkpoint| checkpoint.number == number);
            vec![
                found
                    .ok_or_else(|| format!("there is no checkpoint {number}; /checkpoint list shows them"))?,
            ]
        }
    };
    let mut text = String::new();
    let mut left = MAX_LINES;
    for checkpoint in wanted {
        let changes = tracker
            .show(checkpoint.number)
            .await
            .map_err(|error| error.to_string())?;
        if !changes.is_empty() {
            let _ = writeln!(
                text,
                "Turn {}: {}",
                checkpoint.number,
                cut(&checkpoint.prompt, PROMPT)
            );
            changes
                .iter()
                .for_each(|change| append(&mut text, change, &mut left));
        }
    }
    if text.is_empty() {
        text.push_str("This session has changed no files.");
    }
    Ok(ExtensionReply::text(text.trim_end()))
}

fn append(text: &mut String, change: &FileChange, left: &mut usize) {
    let what = match change.what {
        Changed::Created => "created",
        Changed::Modified => "modified",
        Changed::Mode => "permissions changed",
        Changed::Deleted => "deleted",
        Changed::Replaced => "replaced",
    };
    let _ = writeln!(text, "diff {}: {what}", change.path);
    let diff = change.diff.as_deref().unwrap_or_default();
    let hunks = diff.find("@@ ").and_then(|at| diff.get(at..)).unwrap_or(diff);
    let lines = hunks.lines().count();
    for line in hunks.lines().take(*left) {
        let _ = writeln!(text, "{line}");
    }
    if lines > *left {
        let _ = writeln!(text, "… {} more lines: /checkpoint show N", lines - *left);
    }
    *left = left.saturating_sub(lines);
    text.push('\n');
}

/// Returns the branch that is checked out in the repository around a folder, or the start of the commit.
pub(crate) fn branch(cwd: &Path) -> Option<String> {
    let git = cwd
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists())?;
    let head = read(&git_folder(&git)?.join("HEAD"))?;
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None => Some(head.chars().take(COMMIT).collect()),
    }
}

/// Returns the folder that `.git` is, or that it names: in a worktree and a submodule it is a file.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = read(git)?;
    let named = Path::new(text.trim().strip_prefix("gitdir: ")?);
    Some(git.parent()?.join(named))
}

fn read(path: &Path) -> Option<String> {
    let bytes = windlass_sandbox::read_regular(path, MAX_HEAD).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: the branch is found from any folder of a repository, of a worktree, and without a branch.
    #[test]
    fn the_branch_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, copy) = (folder.path().join("root"), folder.path().join("copy"));
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        assert_eq!(branch(&root), None);
        std::fs::create_dir_all(root.join(".git/worktrees/copy")).unwrap();
        std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(branch(&root.join("src/deep")).as_deref(), Some("feature/x"));
        std::fs::create_dir_all(&copy).unwrap();
        std::fs::write(copy.join(".git"), "gitdir: ../root/.git/worktrees/copy\n").unwrap();
        std::fs::write(root.join(".git/worktrees/copy/HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(branch(&copy).as_deref(), Some("01234567"));
    }
}
