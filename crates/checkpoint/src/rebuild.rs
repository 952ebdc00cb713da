//! DIST-5: rebuilds a folder from its description in the store, on a server that never had it.
//!
//! The folder is made beside its place under another name, and renamed when it is complete. So a place has all of it or
//! nothing, whenever the process is stopped, and the next attempt starts anew.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, SharedFolders};
use windlass_sandbox::Roots;

use super::index::Index;
use super::journal::Record;
use super::node::{Bytes, Change, Digest, Node};
use super::pack::Packs;
use super::restore;
use super::share::{Description, VERSION, addresses, batches, needed};
use super::tree::{CheckpointLimits, Tree, is_version_control};
use super::{data_of, file_name};

/// Start of the name under which a folder is made.
const UNFINISHED: &str = ".windlass-move-";
/// Folder of the checkpoint data with a file for each folder that is being made.
const MOVES: &str = "moves";
/// Most lines about parts that were not restored.
const LINES: usize = 100;

/// A folder to be rebuilt.
#[derive(Clone)]
pub struct Rebuild {
    /// The store.
    pub store: Arc<dyn SharedFolders>,
    /// The session whose folder it is.
    pub session: SessionId,
    /// Folder of all checkpoint data, as for a tracker.
    pub data: PathBuf,
}

/// A folder that was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltFolder {
    /// Its real path.
    pub folder: PathBuf,
    /// False if it was there already, with the same files.
    pub is_new: bool,
    /// Number of files.
    pub files: u64,
    /// Time of the state.
    pub as_of: Timestamp,
    /// Tool of the last call before that.
    pub after: Option<String>,
    /// Parts that were not restored, one line each.
    pub left: Vec<String>,
}

/// Reason that a folder was not rebuilt. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The store has no description of the folder.
    #[error(
        "its folder is not in the store: no call has changed a file since the session is in a shared store"
    )]
    Missing,
    /// There is something at the place of the folder.
    #[error("{} is not empty; files there are never overwritten: name another folder", .0.display())]
    Taken(PathBuf),
    /// The stored data cannot be used.
    #[error("the stored state of the folder is damaged: {0}")]
    Damaged(String),
    /// The folder cannot be written.
    #[error("{}: {why}", path.display())]
    Failed {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] LogError),
}

/// The state to restore.
struct Plan {
    target: PathBuf,
    description: Description,
    journal: Vec<u8>,
    state: BTreeMap<Bytes, Node>,
    /// Contents to fetch, with their sizes.
    contents: HashMap<Digest, u64>,
}

impl Rebuild {
    /// Rebuilds the folder at a path that is free, or an empty folder.
    ///
    /// # Errors
    /// When there is something at the path, the store has no complete state, or the folder cannot be written.
    pub async fn run(&self, target: &Path) -> Result<RebuiltFolder, RebuildError> {
        let document = self.store.description(&self.session).await?;
        let document = document.ok_or(RebuildError::Missing)?;
        let description: Description =
            serde_json::from_str(&document).map_err(|error| RebuildError::Damaged(error.to_string()))?;
        if description.version != VERSION {
            let version = description.version;
            return Err(RebuildError::Damaged(format!(
                "version {version} of its description is not known to this program"
            )));
        }
        let index = self.ordered(&description.index).await?;
        let journal = self.ordered(&description.journal).await?.concat();
        let (this, wanted) = (self.clone(), target.to_owned());
        let plan = blocking(target, move || this.plan(&wanted, description, &index, journal)).await?;
        self.fetch(&plan).await?;
        let this = self.clone();
        blocking(target, move || this.build(&plan)).await
    }

    /// Returns contents that must be there, in order.
    async fn ordered(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, RebuildError> {
        let mut ordered = Vec::with_capacity(digests.len());
        for some in digests.chunks(32) {
            let found: HashMap<String, Vec<u8>> =
                self.store.contents(&addresses(some)).await?.into_iter().collect();
            for digest in some {
                let content = found
                    .get(&digest.to_string())
                    .filter(|content| Digest::of(content) == *digest);
                let content = content.ok_or_else(|| RebuildError::Damaged(format!("{digest} is missing")))?;
                ordered.push(content.clone());
            }
        }
        Ok(ordered)
    }

    fn packs(&self, target: &Path) -> Packs {
        Packs::new(data_of(&self.data, target).join("packs"))
    }

    fn tree(&self, root: &Path, target: &Path) -> io::Result<Tree> {
        let (files, packs) = (Roots::new(&[], &[])?, self.packs(target));
        Tree::open(
            root,
            Arc::new(files),
            &data_of(&self.data, target),
            packs,
            CheckpointLimits::default(),
        )
    }

    fn plan(
        &self,
        target: &Path,
        description: Description,
        index: &[Vec<u8>],
        journal: Vec<u8>,
    ) -> Result<Plan, RebuildError> {
        let failed = |why| RebuildError::Failed {
            path: target.to_owned(),
            why,
        };
        let state = state(&self.data, index, &description)
            .map_err(|error| RebuildError::Damaged(error.to_string()))?;
        let target = real(target).map_err(failed)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        let tree = self.tree(parent, &target).map_err(failed)?;
        let file = |node: &Node| match node {
            Node::File { digest, size, .. } => Some((*digest, *size)),
            _ => None,
        };
        let mut contents: HashMap<Digest, u64> = state.values().filter_map(file).collect();
        for line in journal.split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Record>(line) {
                contents.extend(needed(&tree, &record));
            }
        }
        let is_free = is_free(&target).map_err(failed)?;
        if !is_free && !self.has_only(&target, &state).map_err(failed)? {
            return Err(RebuildError::Taken(target));
        }
        let packed = tree.packs.contents().map_err(failed)?;
        contents.retain(|digest, _| !packed.has(digest));
        Ok(Plan {
            target,
            description,
            journal,
            state,
            contents,
        })
    }

    /// Fetches the contents of files into the packs of the folder. One that is missing is noticed later.
    async fn fetch(&self, plan: &Plan) -> Result<(), RebuildError> {
        let wanted = plan.contents.iter().map(|(digest, size)| (*digest, *size));
        let packs = Arc::new(self.packs(&plan.target));
        for batch in batches(wanted.collect()) {
            let wanted: Vec<Digest> = batch.into_iter().map(|(digest, _)| digest).collect();
            let found = self.store.contents(&addresses(&wanted)).await?;
            let packs = Arc::clone(&packs);
            let path = self.data.clone();
            let keep = move || {
                for (address, content) in found {
                    let digest = Digest::parse(&address).filter(|digest| Digest::of(&content) == *digest);
                    let kept = digest.map_or(Ok(()), |digest| packs.keep(digest, &content));
                    kept.map_err(|why| RebuildError::Failed {
                        path: path.clone(),
                        why,
                    })?;
                }
                Ok(())
            };
            blocking(&self.data, keep).await?;
        }
        Ok(())
    }

    fn build(&self, plan: &Plan) -> Result<RebuiltFolder, RebuildError> {
        let target = &plan.target;
        let built = self.built(plan);
        built.map_err(|why| match why.kind() {
            // Somebody else was faster.
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                RebuildError::Taken(target.clone())
            }
            _ => RebuildError::Failed {
                path: target.clone(),
                why,
            },
        })
    }

    fn built(&self, plan: &Plan) -> io::Result<RebuiltFolder> {
        let target = &plan.target;
        let contents = self.packs(target).contents()?;
        let mut left: Vec<String> = Vec::new();
        let mut changes: Vec<Change> = Vec::new();
        for (path, node) in &plan.state {
            match node {
                Node::File { digest, .. } if !contents.has(digest) => {
                    left.push(format!("{path}: its content is not in the store"));
                }
                node => changes.push(Change {
                    path: path.clone(),
                    before: None,
                    after: Some(node.clone()),
                }),
            }
        }
        let is_new = is_free(target)?;
        if is_new {
            self.keep_journal(target, &plan.journal)?;
            let unfinished = self.begin(target)?;
            let tree = self.tree(&unfinished, target)?;
            left.extend(restore::restore(&tree, &contents, &changes)?.left);
            fs::set_permissions(&unfinished, Permissions::from_mode(0o755))?;
            fs::rename(&unfinished, target)?;
            fs::remove_file(self.marker())?;
        } else {
            // What an attempt left that was stopped before the session was moved: it must be all of it.
            let tree = self.tree(target, target)?;
            for change in &changes {
                match change.uncovered() {
                    Some(why) => left.push(format!("{}: {}", change.path, why.reason())),
                    None if tree.glance(&change.path)? == change.after => {}
                    None => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
                }
            }
            self.keep_journal(target, &plan.journal)?;
        }
        left.sort();
        left.extend(plan.description.hidden.iter().map(hidden_line));
        if left.len() > LINES {
            let more = left.split_off(LINES).len();
            left.push(format!("and {more} more"));
        }
        let is_file = |change: &&Change| matches!(change.after, Some(Node::File { .. }));
        Ok(RebuiltFolder {
            folder: target.clone(),
            is_new,
            files: changes.iter().filter(is_file).count() as u64,
            as_of: plan.description.time,
            after: plan.description.after.clone(),
            left,
        })
    }

    /// Makes the folder under another name, and remembers it so that it is removed if this process is stopped.
    pub(super) fn begin(&self, target: &Path) -> io::Result<PathBuf> {
        let parent = target.parent().unwrap_or(Path::new("/"));
        let unfinished = parent.join(format!("{UNFINISHED}{}", file_name(&self.session)));
        remove_tree(&unfinished)?;
        private_folder(&self.data.join(MOVES))?;
        write_private(&self.marker(), unfinished.as_os_str().as_bytes())?;
        fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
        Ok(unfinished)
    }

    fn marker(&self) -> PathBuf {
        self.data.join(MOVES).join(file_name(&self.session))
    }

    /// Stores the journal, with which the turns can be undone here.
    fn keep_journal(&self, target: &Path, journal: &[u8]) -> io::Result<()> {
        let sessions = data_of(&self.data, target).join("sessions");
        private_folder(&sessions)?;
        let file = sessions.join(format!("{}.jsonl", file_name(&self.session)));
        let new = sessions.join(format!("{}.new", file_name(&self.session)));
        write_private(&new, journal)?;
        fs::rename(new, file)
    }

    /// Returns true if a folder has no names but those of the state, and names that are not covered.
    fn has_only(&self, target: &Path, state: &BTreeMap<Bytes, Node>) -> io::Result<bool> {
        if !fs::symlink_metadata(target)?.is_dir() {
            return Ok(false);
        }
        let tree = self.tree(target, target)?;
        let mut folders = vec![Bytes::default()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(target.join(folder.path()))? {
                let (entry, is_covered) = {
                    let entry = entry?;
                    let is_covered = !tree.hides(&folder.0, entry.file_name().as_bytes());
                    (entry, is_covered)
                };
                let path = Bytes::join(&folder.0, entry.file_name().as_bytes());
                match state.get(&path) {
                    Some(Node::Folder { .. }) => folders.push(path),
                    Some(_) => {}
                    None if is_covered => return Ok(false),
                    None => {}
                }
            }
        }
        Ok(true)
    }

    /// Removes a folder that was rebuilt, because the session stays where it was.
    pub async fn discard(&self, rebuilt: &RebuiltFolder) {
        if rebuilt.is_new {
            let folder = rebuilt.folder.clone();
            let _ = tokio::task::spawn_blocking(move || remove_tree(&folder)).await;
        }
    }
}

/// Removes what an earlier process of this machine left of folders that it did not finish.
pub fn sweep(data: &Path) {
    let moves = fs::read_dir(data.join(MOVES)).into_iter().flatten().flatten();
    for marker in moves {
        let Ok(unfinished) = fs::read(marker.path()) else {
            continue;
        };
        let unfinished = Path::new(OsStr::from_bytes(&unfinished));
        let name = unfinished.file_name().unwrap_or_default();
        if name.as_bytes().starts_with(UNFINISHED.as_bytes()) && remove_tree(unfinished).is_ok() {
            let _ = fs::remove_file(marker.path());
        }
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, RebuildError> + Send + 'static,
) -> Result<T, RebuildError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(RebuildError::Failed {
            path: path.to_owned(),
            why: io::Error::other(error),
        })
    })
}

/// Returns every path of the described state.
fn state(data: &Path, index: &[Vec<u8>], description: &Description) -> io::Result<BTreeMap<Bytes, Node>> {
    private_folder(data)?;
    let scratch = tempfile::tempdir_in(data)?;
    let index = Index::of_parts(&scratch.path().join("index"), index)?;
    let mut state = BTreeMap::new();
    index.below(b"", |folder, found| {
        for entry in found.entries {
            state.insert(Bytes::join(folder, &entry.name), entry.node);
        }
    })?;
    for seen in &description.recorded {
        if !matches!(seen.node, Some(Node::Folder { .. })) {
            let inside = Bytes::join(&seen.path.0, b"");
            state.retain(|path: &Bytes, _| !path.0.starts_with(&inside.0));
        }
        match &seen.node {
            Some(node) => state.insert(seen.path.clone(), node.clone()),
            None => state.remove(&seen.path),
        };
    }
    Ok(state)
}

/// Returns the real path of a folder that may not exist yet. Makes the folders around it.
fn real(target: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(io::Error::other("this is no folder that can be made"));
    };
    fs::create_dir_all(parent)?;
    Ok(fs::canonicalize(parent)?.join(name))
}

/// Returns true if there is nothing at a path, or an empty folder.
fn is_free(target: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => Ok(fs::read_dir(target)?.next().is_none()),
        Ok(_) => Ok(false),
    }
}

fn hidden_line(path: &Bytes) -> String {
    let name = path.path().file_name().unwrap_or_default();
    match is_version_control(name.as_bytes()) {
        true => format!("{path}: the state of version control is never stored"),
        false => format!("{path}: tools may not access it, so it is never stored"),
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(content)
}

/// Removes a folder with everything in it, also where folders in it are closed to their owner.
fn remove_tree(folder: &Path) -> io::Result<()> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    if gone(fs::remove_dir_all(folder)).is_ok() {
        return Ok(());
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    gone(fs::remove_dir_all(folder))
}
