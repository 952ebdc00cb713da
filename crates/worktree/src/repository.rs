//! A git repository: the files it tracks, and the objects and refs of a worktree.
//!
//! No command that is run here applies filters or attributes, reads contents of the working tree through
//! them, or writes to the index, the stash or the branch of the working tree that is copied.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use windlass_sandbox::is_placeholder;

use crate::digest::{Algorithm, Digest};
use crate::error::{Context, Result, WorktreeError};
use crate::git::{Git, Place};
use crate::node::Stamp;

/// Ref of a worktree that keeps the base from being collected, whatever happens to the branch.
const BASE: &str = "refs/worktree/windlass-base";

/// A repository with at least one commit.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) git: Git,
    /// Top folder of the working tree.
    pub(crate) top: PathBuf,
    /// Folder that all working trees of the repository share.
    pub(crate) common: PathBuf,
    pub(crate) algorithm: Algorithm,
    /// Commit that is checked out, and its tree.
    pub(crate) head: String,
    head_tree: String,
    /// Index of the working tree.
    index: PathBuf,
}

/// A file in the index of the repository.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// `None` if the file has a merge conflict.
    pub(crate) digest: Option<Digest>,
    /// True if the file is outside of a sparse checkout.
    pub(crate) is_skipped: bool,
    /// Modification time in nanoseconds and size that the file had when git last compared it; `None` if it may
    /// have changed since without a new time.
    pub(crate) known: Option<(i64, u64)>,
}

/// Returns the nearest folder around `folder` that contains `.git`.
pub(crate) fn top_of(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| {
        let found = rustix::fs::lstat(folder.join(".git"));
        found.is_ok_and(|found| !is_placeholder(&found))
    };
    folder.ancestors().find(is_top).map(Path::to_owned)
}

impl Repository {
    /// Opens the repository whose working tree starts at `top`. Returns `None` if it has no commit.
    pub(crate) fn open(git: Git, top: &Path, cancel: &CancellationToken) -> Result<Option<Self>> {
        let arguments = [
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
            "--show-object-format",
            "--git-path",
            "index",
            "HEAD^{commit}",
            "HEAD^{tree}",
        ];
        let found = git.outcome(&Place::of_tree(top), &arguments, Vec::new(), cancel)?;
        let failed = |problem: String| WorktreeError::Git {
            command: "rev-parse".to_owned(),
            problem,
        };
        let mut lines = found.output.split(|byte| *byte == b'\n');
        let mut line = || lines.next().filter(|line| !line.is_empty());
        let (Some(common), Some(format), Some(index)) = (line(), line(), line()) else {
            return Err(failed(found.problem.unwrap_or_default()));
        };
        // An older version repeats options that it does not know, and ignores the settings that keep it from
        // running hooks.
        if !common.starts_with(b"/") {
            return Err(failed("this version of git is older than 2.31".to_owned()));
        }
        if found.problem.is_some() {
            return Ok(None);
        }
        let format = String::from_utf8_lossy(format);
        let algorithm = Algorithm::named(&format).ok_or_else(|| {
            failed(format!(
                "the repository uses the unknown object format `{format}`"
            ))
        })?;
        let mut oid = || line().map(|line| String::from_utf8_lossy(line).into_owned());
        Ok(Some(Self {
            git,
            top: top.to_owned(),
            common: PathBuf::from(OsStr::from_bytes(common)),
            algorithm,
            head: oid().unwrap_or_default(),
            head_tree: oid().unwrap_or_default(),
            index: PathBuf::from(OsStr::from_bytes(index)),
        }))
    }

    fn run(
        &self,
        place: &Place,
        arguments: &[&OsStr],
        input: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>> {
        self.git.run(place, arguments, input, cancel)
    }

    /// Lists the files in the index, in the order of their paths.
    pub(crate) fn tracked(&self, cancel: &CancellationToken) -> Result<Vec<Tracked>> {
        let arguments = ["ls-files", "-z", "-t", "--stage", "--debug"].map(OsStr::new);
        let output = self.run(&Place::of_tree(&self.top), &arguments, Vec::new(), cancel)?;
        let mut tracked = parse_tracked(&output).ok_or_else(|| WorktreeError::Git {
            command: "ls-files".to_owned(),
            problem: "its output is not understood".to_owned(),
        })?;
        let written = rustix::fs::stat(&self.index).map(|data| Stamp::of(&data).mtime);
        let written = written.unwrap_or(i64::MIN);
        for file in &mut tracked {
            file.known = file.known.filter(|(mtime, _)| *mtime < written);
        }
        Ok(tracked)
    }

    /// Creates a branch at the current commit. Fails if there is one of this name.
    pub(crate) fn create_branch(&self, branch: &str, cancel: &CancellationToken) -> Result<()> {
        let input = format!("create refs/heads/{branch} {}\n", self.head);
        let arguments = ["update-ref", "--stdin"].map(OsStr::new);
        self.run(
            &Place::of_repository(&self.common),
            &arguments,
            input.into_bytes(),
            cancel,
        )
        .map(drop)
    }

    /// Adds a working tree without files to the repository. Returns its folder in the repository.
    pub(crate) fn add_worktree(
        &self,
        tree: &Path,
        branch: &str,
        cancel: &CancellationToken,
    ) -> Result<PathBuf> {
        let arguments = [
            OsStr::new("worktree"),
            OsStr::new("add"),
            OsStr::new("--quiet"),
            OsStr::new("--no-checkout"),
            tree.as_os_str(),
            OsStr::new(branch),
        ];
        self.run(&Place::of_tree(&self.top), &arguments, Vec::new(), cancel)?;
        let link = tree.join(".git");
        let text = fs::read(&link).when("read", &link)?;
        let path = text.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii_end);
        let path = path.map(|path| tree.join(Path::new(OsStr::from_bytes(path))));
        path.ok_or_else(|| WorktreeError::Damaged {
            path: link,
            problem: "it does not name a folder of the repository".to_owned(),
        })
    }

    /// Writes files as objects. Returns their names.
    pub(crate) fn write_objects(&self, files: &[PathBuf], cancel: &CancellationToken) -> Result<Vec<Digest>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut input = Vec::new();
        for file in files {
            quote(file, &mut input);
            input.push(b'\n');
        }
        let arguments = ["hash-object", "-w", "--no-filters", "--stdin-paths"].map(OsStr::new);
        let output = self.run(&Place::of_repository(&self.common), &arguments, input, cancel)?;
        Ok(output
            .split(|byte| *byte == b'\n')
            .filter_map(Digest::parse)
            .collect())
    }

    /// Writes the commit that holds the files of an index, and returns its name: the current commit, if
    /// nothing differs from it.
    pub(crate) fn commit(&self, index: &Path, message: &str, cancel: &CancellationToken) -> Result<String> {
        let place = Place::of_repository(&self.common).with_index(index);
        let arguments = ["write-tree", "--missing-ok"].map(OsStr::new);
        let tree = text(self.run(&place, &arguments, Vec::new(), cancel)?);
        if tree == self.head_tree {
            return Ok(self.head.clone());
        }
        let arguments = ["commit-tree", &tree, "-p", &self.head, "-m", message].map(OsStr::new);
        Ok(text(self.run(&place, &arguments, Vec::new(), cancel)?))
    }

    /// Moves the branch of a worktree to its base, and protects the base.
    pub(crate) fn set_base(
        &self,
        admin: &Path,
        branch: &str,
        base: &str,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let input = format!(
            "update refs/heads/{branch} {base} {}\ncreate {BASE} {base}\n",
            self.head
        );
        let arguments = ["update-ref", "--stdin"].map(OsStr::new);
        self.run(
            &Place::of_repository(admin),
            &arguments,
            input.into_bytes(),
            cancel,
        )
        .map(drop)
    }
}

/// Reads objects of a repository, in the order of `digests`.
pub(crate) fn read_objects(
    git: &Git,
    common: &Path,
    digests: &[Digest],
    cancel: &CancellationToken,
) -> Result<Vec<Vec<u8>>> {
    let input: String = digests.iter().map(|digest| format!("{digest}\n")).collect();
    let arguments = ["cat-file", "--batch"];
    let output = git.run(
        &Place::of_repository(common),
        &arguments,
        input.into_bytes(),
        cancel,
    )?;
    let mut rest = &output[..];
    let mut contents = Vec::new();
    for digest in digests {
        let missing = || WorktreeError::Git {
            command: "cat-file".to_owned(),
            problem: format!("the object {digest} is missing"),
        };
        let line = rest.split(|byte| *byte == b'\n').next().ok_or_else(missing)?;
        let size = line.rsplit(|byte| *byte == b' ').next();
        let size = size.and_then(|size| std::str::from_utf8(size).ok()?.parse::<usize>().ok());
        let start = line.len() + 1;
        let end = start.checked_add(size.ok_or_else(missing)?).ok_or_else(missing)?;
        contents.push(rest.get(start..end).ok_or_else(missing)?.to_vec());
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(contents)
}

/// Removes a working tree from the records of its repository, and its branch. The files of the working tree
/// are not touched.
pub(crate) fn unregister(
    git: &Git,
    common: &Path,
    tree: &Path,
    branch: &str,
    cancel: &CancellationToken,
) -> Result<()> {
    let all = common.join("worktrees");
    let link = tree.join(".git");
    for folder in fs::read_dir(&all).into_iter().flatten().flatten() {
        let folder = folder.path();
        let file = folder.join("gitdir");
        let is_ours = fs::read(&file).is_ok_and(|named| {
            let named = PathBuf::from(OsString::from_vec(named.trim_ascii_end().to_vec()));
            folder.join(named) == link
        });
        if is_ours {
            fs::remove_dir_all(&folder).when("remove", &folder)?;
        }
    }
    // The folder exists only while there are working trees.
    let _ = fs::remove_dir(&all);
    let arguments = ["update-ref", "-d", &format!("refs/heads/{branch}")];
    git.run(&Place::of_repository(common), &arguments, Vec::new(), cancel)
        .map(drop)
}

fn text(output: Vec<u8>) -> String {
    String::from_utf8_lossy(output.trim_ascii_end()).into_owned()
}

/// Writes a path as git reads it from a line.
fn quote(path: &Path, line: &mut Vec<u8>) {
    let bytes = path.as_os_str().as_bytes();
    let is_odd = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !bytes.iter().any(is_odd) && !bytes.starts_with(b"\"") {
        line.extend_from_slice(bytes);
        return;
    }
    line.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            _ => line.push(*byte),
        }
    }
    line.push(b'"');
}

/// Reads the output of `git ls-files -z -t --stage --debug`.
fn parse_tracked(output: &[u8]) -> Option<Vec<Tracked>> {
    let mut rest = output;
    let mut tracked: Vec<Tracked> = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (line, after) = (rest.get(..end)?, rest.get(end + 1..)?);
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (std::str::from_utf8(line.get(..tab)?).ok()?, line.get(tab + 1..)?);
        let mut words = head.split(' ');
        let (tag, mode, digest, stage) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let details = match after.starts_with(b"  ctime:") {
            true => lines(after, 5),
            false => &[],
        };
        rest = after.get(details.len()..)?;
        // A file with a merge conflict has up to three entries.
        if tracked.last().is_some_and(|last| last.path == path) {
            continue;
        }
        tracked.push(Tracked {
            path: path.to_vec(),
            mode: u32::from_str_radix(mode, 8).ok()?,
            digest: Digest::parse(digest.as_bytes()).filter(|_| stage == "0"),
            is_skipped: matches!(tag, "S" | "s"),
            known: std::str::from_utf8(details).ok().and_then(known),
        });
    }
    Some(tracked)
}

/// Returns the first lines of a text.
fn lines(text: &[u8], count: usize) -> &[u8] {
    let mut ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let end = ends.nth(count - 1).map_or(text.len(), |(at, _)| at + 1);
    text.get(..end).unwrap_or_default()
}

/// Reads modification time and size from the details of an entry.
fn known(details: &str) -> Option<(i64, u64)> {
    let after = |name: &str| details.split_once(name).map(|(_, after)| after.trim_start());
    let end = |sign: char| !sign.is_ascii_digit() && sign != ':';
    let (seconds, nanos) = after("mtime:")?.split(end).next()?.split_once(':')?;
    let size = after("size:")?.split(end).next()?;
    let seconds: i64 = seconds.parse().ok()?;
    let mtime = seconds
        .checked_mul(1_000_000_000)?
        .checked_add(nanos.parse().ok()?)?;
    Some((mtime, size.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_tracked_files_is_read() {
        let digest = "ce013625030ba8dba906f756967f9e9ca394464a";
        let details =
            "  ctime: 1:2\n  mtime: 33:4\n  dev: 5\tino: 6\n  uid: 0\tgid: 0\n  size: 77\tflags: 0\n";
        let output = format!(
            "H 100644 {digest} 0\ta\nb\0{details}S 100755 {digest} 0\tc\0{details}M 100644 {digest} 1\td\0\
             M 100644 {digest} 2\td\0H 160000 {digest} 0\tsub\0{details}"
        );
        let tracked = parse_tracked(output.as_bytes()).unwrap();
        let shown: Vec<String> = tracked
            .iter()
            .map(|file| {
                let path = String::from_utf8_lossy(&file.path);
                let (has_digest, known) = (file.digest.is_some(), file.known);
                format!(
                    "{path:?} {:o} {has_digest} {} {known:?}",
                    file.mode, file.is_skipped
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "\"a\\nb\" 100644 true false Some((33000000004, 77))",
                "\"c\" 100755 true true Some((33000000004, 77))",
                "\"d\" 100644 false false None",
                "\"sub\" 160000 true false Some((33000000004, 77))",
            ]
        );
        assert!(parse_tracked(b"nonsense").is_none());
    }

    #[test]
    fn odd_paths_are_quoted() {
        let cases = [
            ("/a b", "/a b"),
            ("/a\nb\"\\", "\"/a\\nb\\\"\\\\\""),
            ("\"x", "\"\\\"x\""),
            ("/a\r", "\"/a\\r\""),
        ];
        for (path, expected) in cases {
            let mut line = Vec::new();
            quote(Path::new(path), &mut line);
            assert_eq!(String::from_utf8_lossy(&line), expected);
        }
    }
}
