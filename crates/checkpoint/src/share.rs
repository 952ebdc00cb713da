//! DIST-5: describes the workspace in a store that several servers share, so that another server can rebuild it.
//!
//! The description names contents of the store by their digests: the files, the parts of the index, and the pieces of
//! the journal. Only what changed is stored. It is done in the background, after every call that may have changed files;
//! a call waits for it only where it would have to look at the workspace itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{FolderRecord, KeptFor, LogError, SharedFolders};

use super::files::Files;
use super::index::IndexPart;
use super::journal::{Record, Seen};
use super::node::{Bytes, Change, Digest, Node};
use super::scan::Report;
use super::tree::Tree;

/// Size of a piece of the journal.
const PIECE: u64 = 64 << 10;
/// Bytes that are sent at once; a larger content is sent alone.
const BATCH: u64 = 4 << 20;
/// Contents that are asked for at once.
const ASKED: usize = 1_000;
/// Maximum time for which the end of a session waits.
const SETTLING: Duration = Duration::from_secs(5);
/// Pauses before further attempts, after a failure. The next change tries again.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// Store that several servers share, and the session in it.
#[derive(Clone)]
pub struct Sharing {
    /// The store.
    pub store: Arc<dyn SharedFolders>,
    /// The session.
    pub session: SessionId,
    /// Name under which this process owns it.
    pub owner: String,
    /// Name of this machine: sessions in one folder of it share contents.
    pub machine: String,
}

/// The description of a workspace, as the store keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) version: u32,
    /// Time of the state.
    pub(super) time: Timestamp,
    /// Tool of the last call before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
    /// Parts of the index, in order.
    pub(super) index: Vec<Digest>,
    /// Changes since the index.
    pub(super) recorded: Vec<Seen>,
    /// Pieces of the journal, in order.
    pub(super) journal: Vec<Digest>,
    /// Files and folders that are never stored.
    pub(super) hidden: Vec<Bytes>,
}

/// Version of descriptions.
pub(super) const VERSION: u32 = 1;

/// The state that is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// That after the last call of the turn, as it was recorded.
    Recorded,
    /// The present one, also with changes of others. No call may run.
    Now,
}

/// State of the work.
pub(super) struct Share {
    sharing: Sharing,
    progress: Mutex<Progress>,
    /// True if something may have changed since the last description.
    is_due: AtomicBool,
}

/// Parts that the store has already.
#[derive(Default)]
struct Progress {
    known: HashSet<Digest>,
    index: Vec<Digest>,
    journal: Vec<Digest>,
    /// Bytes of the journal whose contents are stored, up to the end of a line.
    read: u64,
    /// The last failure that the user was told.
    told: Option<String>,
}

/// Data to be stored.
struct Taken {
    tree: Arc<Tree>,
    description: Description,
    parts: BTreeMap<usize, IndexPart>,
    /// Pieces of the journal from a number on.
    pieces: (usize, Vec<Vec<u8>>),
    read: u64,
    /// Contents of files that the store may not have, with their sizes.
    files: HashMap<Digest, u64>,
}

impl Share {
    pub(super) fn new(sharing: Sharing) -> Self {
        Self {
            sharing,
            progress: Mutex::default(),
            is_due: AtomicBool::new(false),
        }
    }
}

impl Files {
    /// Describes the workspace in the background, if it is shared. Must be called on a thread of the runtime.
    pub(super) fn share_soon(self: &Arc<Self>) {
        let Some(share) = self.share.get() else { return };
        if share.is_due.swap(true, Ordering::SeqCst) {
            // Somebody is about to.
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            for pause in PAUSES {
                match this.save(Freshness::Recorded).await {
                    Ok(()) => return,
                    Err(_) => this.clock.sleep(pause).await,
                }
            }
            if let (Err(why), Some(share)) = (this.save(Freshness::Recorded).await, this.share.get()) {
                let notice = format!("the folder was not stored for other servers: {why}");
                let mut progress = share.progress.lock().await;
                if progress.told.replace(why.clone()) != Some(why) {
                    this.notes().notices.push(notice);
                }
            }
        });
    }

    /// Describes the workspace.
    pub(super) async fn save(self: &Arc<Self>, freshness: Freshness) -> Result<(), String> {
        let Some(share) = self.share.get() else {
            return Ok(());
        };
        let mut progress = share.progress.lock().await;
        share.is_due.store(false, Ordering::SeqCst);
        let stored = self.describe(share, &mut progress, freshness).await;
        if stored.is_err() {
            // Changes since the last description are not known any more.
            progress.index.clear();
            progress.journal.clear();
            progress.read = 0;
        }
        stored
    }

    pub(super) async fn settle(self: &Arc<Self>) {
        let Some(share) = self.share.get() else { return };
        let work = async {
            let idle = share.progress.lock().await;
            drop(idle);
            if share.is_due.load(Ordering::SeqCst) {
                let _ = self.save(Freshness::Recorded).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = self.clock.sleep(SETTLING) => {}
        }
    }

    async fn describe(
        self: &Arc<Self>,
        share: &Share,
        progress: &mut Progress,
        freshness: Freshness,
    ) -> Result<(), String> {
        let (index, journal, read) = (progress.index.clone(), progress.journal.clone(), progress.read);
        let taken = self
            .blocking(move |files| files.take((index, journal, read), freshness))
            .await
            .map_err(|error| error.to_string())?;
        let mut taken = taken.ok_or_else(|| format!("it has more than {} files", self.limits.entries))?;
        let sharing = &share.sharing;
        let failed = |error: LogError| error.to_string();
        let folder = format!("{} {}", sharing.machine, self.workspace.root().display());
        let for_folder = KeptFor::Folder(sharing.session.clone(), folder.clone());
        taken.files.retain(|digest, _| !progress.known.contains(digest));
        self.store_files(sharing, &for_folder, &taken).await?;
        progress.known.extend(taken.files.keys());
        let mut parts: Vec<(Digest, Vec<u8>)> = Vec::new();
        for (number, part) in std::mem::take(&mut taken.parts) {
            let digest = Digest::of(&part.bytes);
            if let Some(place) = taken.description.index.get_mut(number) {
                *place = digest;
            }
            parts.push((digest, part.bytes));
        }
        let (first, pieces) = std::mem::take(&mut taken.pieces);
        taken.description.journal.truncate(first);
        for piece in pieces {
            let digest = Digest::of(&piece);
            taken.description.journal.push(digest);
            parts.push((digest, piece));
        }
        let for_session = KeptFor::Session(sharing.session.clone());
        store_parts(sharing, &for_session, parts).await?;
        let description = &taken.description;
        let record = FolderRecord {
            session: sharing.session.clone(),
            owner: sharing.owner.clone(),
            folder,
            document: serde_json::to_string(description).map_err(|error| error.to_string())?,
            parts: addresses(description.index.iter().chain(&description.journal)),
        };
        sharing.store.describe(record).await.map_err(failed)?;
        progress.index = taken.description.index;
        progress.journal = taken.description.journal;
        progress.read = taken.read;
        Ok(())
    }

    /// Stores the contents of files that the store does not have.
    async fn store_files(
        self: &Arc<Self>,
        sharing: &Sharing,
        kept: &KeptFor,
        taken: &Taken,
    ) -> Result<(), String> {
        let failed = |error: LogError| error.to_string();
        let digests: Vec<Digest> = taken.files.keys().copied().collect();
        for asked in digests.chunks(ASKED) {
            let missing = sharing
                .store
                .keep(kept, &addresses(asked))
                .await
                .map_err(failed)?;
            let missing: Vec<(Digest, u64)> = missing
                .iter()
                .filter_map(|address| {
                    let digest = Digest::parse(address)?;
                    Some((digest, taken.files.get(&digest).copied().unwrap_or_default()))
                })
                .collect();
            if missing.is_empty() {
                continue;
            }
            let tree = Arc::clone(&taken.tree);
            let contents = self.blocking(move |_| tree.packs.contents()).await;
            let contents = Arc::new(contents.map_err(|error| error.to_string())?);
            for batch in batches(missing) {
                let contents = Arc::clone(&contents);
                let read = move |_: &Self| {
                    let content =
                        |(digest, _): (Digest, u64)| Some((digest.to_string(), contents.get(&digest)?));
                    Ok(batch.into_iter().filter_map(content).collect())
                };
                let contents = self.blocking(read).await.map_err(|error| error.to_string())?;
                sharing.store.put(kept, contents).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Brings the known state of the workspace up to date, and takes what changed. Returns `None` if there is nothing
    /// to rebuild a folder from: nothing was recorded, or there are too many files.
    fn take(
        &self,
        (index, journal, read): (Vec<Digest>, Vec<Digest>, u64),
        freshness: Freshness,
    ) -> io::Result<Option<Taken>> {
        let mut state = self.lock();
        self.recover(&mut state)?;
        let tree = self.tree(&mut state)?;
        if state.is_too_large {
            return Ok(None);
        }
        if !state.is_current || freshness == Freshness::Now {
            // Calls that name their files continue meanwhile. What they record is newer than what is found here.
            state.recorded.clear();
            let turn = state.turn;
            drop(state);
            let found = self.look_again(&tree, Report::Nothing)?;
            state = self.lock();
            state.is_too_large |= found.is_none();
            state.is_current |= found.is_some() && turn.is_some() && state.turn == turn;
            if found.is_none() {
                return Ok(None);
            }
        }
        let recorded: Vec<Seen> = state
            .recorded
            .iter()
            .filter(|(path, _)| !tree.hides_path(path))
            .map(|(path, node)| Seen {
                path: path.clone(),
                node: node.clone(),
            })
            .collect();
        let after = state.ended.clone();
        let time = self.clock.now();
        let (parts, count) = self.surveyed(|survey| {
            // The parts of an index that was read again say nothing about what changed.
            drop(state);
            let count = match index.len() {
                0 => survey.index().part_count(),
                count => count,
            };
            let parts = survey.index_mut().changed_parts(count, index.is_empty());
            parts.map(|parts| (parts, count))
        })?;
        let mut files: HashMap<Digest, u64> = HashMap::new();
        files.extend(parts.values().flat_map(|part| part.files.iter().copied()));
        files.extend(recorded.iter().filter_map(|seen| file(seen.node.as_ref())));
        let (pieces, read) = self.pieces(&tree, journal.len(), read, &mut files)?;
        let mut index = index;
        index.resize(count, Digest([0; 32]));
        Ok(Some(Taken {
            description: Description {
                version: VERSION,
                time,
                after,
                index,
                recorded,
                journal,
                hidden: tree.hidden_there(),
            },
            tree,
            parts,
            pieces,
            read,
            files,
        }))
    }

    /// Returns the pieces of the journal that changed, and collects the contents that its new records need.
    #[allow(
        clippy::type_complexity,
        reason = "the number of the first piece, and the pieces"
    )]
    fn pieces(
        &self,
        tree: &Tree,
        stored: usize,
        read: u64,
        files: &mut HashMap<Digest, u64>,
    ) -> io::Result<((usize, Vec<Vec<u8>>), u64)> {
        // The last piece may have been incomplete.
        let first = stored.saturating_sub(1);
        let start = first as u64 * PIECE;
        let from = start.min(read);
        let bytes = self.journal().bytes(from)?;
        let new = bytes.get(skip(read, from)..).unwrap_or_default();
        let end = new
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        for line in new.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Record>(line) {
                files.extend(needed(tree, &record));
            }
        }
        let pieces = bytes.get(skip(start, from)..).unwrap_or_default();
        let size = usize::try_from(PIECE).unwrap_or(usize::MAX);
        let pieces = pieces.chunks(size).map(<[u8]>::to_vec).collect();
        Ok(((first, pieces), read + end as u64))
    }
}

fn skip(to: u64, from: u64) -> usize {
    usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)
}

/// Stores contents that belong to one description.
async fn store_parts(sharing: &Sharing, kept: &KeptFor, parts: Vec<(Digest, Vec<u8>)>) -> Result<(), String> {
    let failed = |error: LogError| error.to_string();
    let mut parts: HashMap<String, Vec<u8>> = parts
        .into_iter()
        .map(|(digest, bytes)| (digest.to_string(), bytes))
        .collect();
    let all: Vec<String> = parts.keys().cloned().collect();
    for asked in all.chunks(ASKED) {
        let missing = sharing.store.keep(kept, asked).await.map_err(failed)?;
        let sizes = missing.into_iter().map(|address| {
            let size = parts.get(&address).map_or(0, Vec::len) as u64;
            (address, size)
        });
        for batch in batches(sizes.collect()) {
            let take = |(address, _): (String, u64)| {
                let bytes = parts.remove(&address)?;
                Some((address, bytes))
            };
            let contents = batch.into_iter().filter_map(take).collect();
            sharing.store.put(kept, contents).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// Divides contents so that each batch is small.
pub(super) fn batches<T>(contents: Vec<(T, u64)>) -> Vec<Vec<(T, u64)>> {
    let mut batches: Vec<Vec<(T, u64)>> = Vec::new();
    let mut left = 0;
    for (content, size) in contents {
        match batches.last_mut() {
            Some(batch) if size <= left => batch.push((content, size)),
            _ => {
                batches.push(vec![(content, size)]);
                left = BATCH;
            }
        }
        left = left.saturating_sub(size.max(1));
    }
    batches
}

pub(super) fn addresses<'a>(digests: impl IntoIterator<Item = &'a Digest>) -> Vec<String> {
    digests.into_iter().map(Digest::to_string).collect()
}

/// Returns the content of a file.
fn file(node: Option<&Node>) -> Option<(Digest, u64)> {
    match node {
        Some(Node::File { digest, size, .. }) => Some((*digest, *size)),
        _ => None,
    }
}

/// Returns the contents that undoing and redoing a record needs, without those of files that tools may not access.
pub(super) fn needed(tree: &Tree, record: &Record) -> Vec<(Digest, u64)> {
    let both = |change: &Change| [file(change.before.as_ref()), file(change.after.as_ref())];
    match record {
        Record::Changed { changes, .. } | Record::Moving { changes, .. } => {
            let seen = changes.iter().filter(|change| !tree.hides_path(&change.path));
            seen.flat_map(both).flatten().collect()
        }
        Record::Begun {
            paths: Some(paths), ..
        } => {
            let seen = paths.iter().filter(|seen| !tree.hides_path(&seen.path));
            seen.filter_map(|seen| file(seen.node.as_ref())).collect()
        }
        Record::Begun { paths: None, .. } | Record::Turn { .. } | Record::Moved => Vec::new(),
    }
}
