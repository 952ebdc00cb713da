//! State of a workspace during a session, and the changes made to it. Everything here blocks on the disk.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windlass_core::checkpoint::{Checkpoint, CheckpointError, FileChange, Force, Restored, WHOLE_SESSION};
use windlass_core::clock::Clock;
use windlass_core::id::{CallId, MessageId};

use super::ChangeObserver;
use super::access::Access;
use super::describe::{CallEnd, call_changes, shown};
use super::journal::{self, History, Journal, Record, Seen, merge};
use super::node::{Bytes, Change, Node};
use super::pack::Packs;
use super::restore;
use super::scan::Report;
use super::share::Share;
use super::survey::Survey;
use super::tree::{CheckpointLimits, Tree};
use windlass_sandbox::Workspace;

/// Reason that the changes of an interrupted call are not known.
const FORGOTTEN: &str =
    "changes made by an interrupted command: the state of the folder before it is not known any more";

/// Records the changes that a session makes to files. Nothing is read or written until a call may change a
/// file.
pub(super) struct Files {
    pub(super) workspace: Workspace,
    pub(super) folder: PathBuf,
    pub(super) session: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: CheckpointLimits,
    /// Held during disk access, which may take long; lock it only on threads that may block.
    pub(super) state: Mutex<State>,
    /// Never held across a wait.
    pub(super) notes: Mutex<Notes>,
    pub(super) observer: OnceLock<Arc<dyn ChangeObserver>>,
    /// The workspace as of the last time it was looked at. Locked after the state, if both are.
    pub(super) survey: Mutex<Option<Survey>>,
    /// The store that gets the state of the workspace, if several servers share it.
    pub(super) share: OnceLock<Share>,
}

/// Data shared between async code, which must not block, and code that works on the disk.
#[derive(Default)]
pub(super) struct Notes {
    /// Message and prompt of the turn that has started, until one of its calls may change files.
    pub(super) begun: Option<(MessageId, String)>,
    /// Notices for the user.
    pub(super) notices: Vec<String>,
    /// Calls that run, with what is known of the files they name.
    pub(super) calls: HashMap<CallId, io::Result<Option<Vec<Seen>>>>,
}

#[derive(Default)]
pub(super) struct State {
    tree: Option<Arc<Tree>>,
    /// True if the workspace was looked at in this turn.
    pub(super) is_current: bool,
    /// True if the workspace has more files than the limit. It is not looked at again then.
    pub(super) is_too_large: bool,
    /// True if the user was told that commands are not covered.
    is_told: bool,
    /// Changes made since that scan by tools that name their files.
    pub(super) recorded: BTreeMap<Bytes, Option<Node>>,
    /// Tool of the last call that ended.
    pub(super) ended: Option<String>,
    /// Number of this turn, once assigned.
    pub(super) turn: Option<u64>,
    /// Number of the last turn that has one; `None` until it was looked up.
    last: Option<u64>,
    /// Message and prompt of the turn.
    about: (Option<MessageId>, String),
    /// True once the leftovers of an earlier process have been handled.
    is_recovered: bool,
}

impl State {
    /// Ends the turn: later changes belong to another one, and others may change files in the meantime.
    fn leave_turn(&mut self) {
        self.turn = None;
        self.is_current = false;
        self.recorded.clear();
    }
}

/// Files that a call can change.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    /// Only these paths.
    Paths(Vec<Bytes>),
    /// Any file.
    Everything,
}

impl Files {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs disk work on a thread that may block.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&this))
            .await
            .map_err(io::Error::other)?
    }

    pub(super) fn journal(&self) -> Journal {
        Journal::new(
            self.folder
                .join("sessions")
                .join(format!("{}.jsonl", self.session)),
        )
    }

    /// Returns the path of a file that exists while a restoration is in progress.
    pub(super) fn marker(&self) -> PathBuf {
        self.folder
            .join("sessions")
            .join(format!("{}.moving", self.session))
    }

    pub(super) fn tree(&self, state: &mut State) -> io::Result<Arc<Tree>> {
        if let Some(tree) = &state.tree {
            return Ok(Arc::clone(tree));
        }
        let mut maker = fs::DirBuilder::new();
        maker.recursive(true).mode(0o700);
        maker.create(self.folder.join("sessions"))?;
        let root = self.workspace.root();
        let tree = Tree::open(
            root,
            self.workspace.files(),
            &self.folder,
            Packs::new(self.folder.join("packs")),
            self.limits,
        )?;
        let about = self.folder.join("workspace");
        if !about.exists() {
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(about)?;
            file.write_all(root.as_os_str().as_bytes())?;
        }
        let tree = Arc::new(tree);
        state.tree = Some(Arc::clone(&tree));
        Ok(tree)
    }

    /// Finishes work that an earlier process left open: a restoration, or a call whose changes are not
    /// recorded.
    pub(super) fn recover(&self, state: &mut State) -> io::Result<()> {
        if std::mem::replace(&mut state.is_recovered, true) {
            return Ok(());
        }
        let journal = self.journal();
        if !journal.exists() {
            return Ok(());
        }
        let tree = self.tree(state)?;
        let history = journal.read()?;
        if let Some(changes) = &history.moving {
            let outcome = restore::restore(&tree, &tree.packs.contents()?, changes)?;
            journal.add(&Record::Moved)?;
            let _ = fs::remove_file(self.marker());
            self.notes().notices.push(format!(
                "an interrupted restore was completed: {} restored{}",
                outcome.done.len(),
                outcome
                    .left
                    .iter()
                    .map(|left| format!("; {left}"))
                    .collect::<String>()
            ));
        }
        if let Some((tool, paths)) = history.open {
            let (changes, blind) = match paths {
                Some(paths) => (self.changes_at(&tree, paths)?, None),
                None if self.surveyed(|survey| survey.is_known()) => {
                    match self.refresh(state, &tree, Report::Changes)? {
                        Some(changes) => (changes, None),
                        None => (Vec::new(), Some(too_large(&self.limits))),
                    }
                }
                None => (Vec::new(), Some(FORGOTTEN.to_owned())),
            };
            journal.add(&Record::Changed { tool, changes, blind })?;
        }
        Ok(())
    }

    /// Looks at the whole workspace, as the first command of a turn does. Returns the number of files and
    /// folders.
    pub(super) fn survey(&self) -> io::Result<usize> {
        let mut state = self.lock();
        let tree = self.tree(&mut state)?;
        self.refresh(&mut state, &tree, Report::Nothing)?;
        drop(state);
        Ok(self.surveyed(|survey| survey.entries()))
    }

    /// Returns a digest of the workspace as it is now; `None` if it is too large.
    pub(super) fn digest(&self) -> io::Result<Option<String>> {
        let mut state = self.lock();
        // Changes of a call that a stopped process left open are recorded first.
        self.recover(&mut state)?;
        let tree = self.tree(&mut state)?;
        match self.refresh(&mut state, &tree, Report::Nothing)? {
            Some(_) => self.surveyed(|survey| survey.digest()).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn surveyed<T>(&self, work: impl FnOnce(&mut Survey) -> T) -> T {
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        work(survey.get_or_insert_with(|| Survey::open(&self.folder.join("index"))))
    }

    /// Brings the known state of the workspace up to date. After a failure, it is read from the disk again.
    pub(super) fn look_again(&self, tree: &Tree, report: Report) -> io::Result<Option<Vec<Change>>> {
        let refreshed = self.surveyed(|survey| survey.refresh(tree, report));
        if !matches!(refreshed, Ok(Some(_))) {
            // What is known is of no use any more.
            *self.survey.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        refreshed
    }

    /// Brings the known state of the workspace up to date. Returns `None` if the workspace is too large.
    fn refresh(&self, state: &mut State, tree: &Tree, report: Report) -> io::Result<Option<Vec<Change>>> {
        if state.is_too_large {
            return Ok(None);
        }
        let refreshed = self.look_again(tree, report);
        if let Ok(Some(_)) = &refreshed {
            state.is_current = true;
        } else {
            state.is_current = false;
            state.is_too_large = refreshed.is_ok();
        }
        refreshed
    }

    fn changes_at(&self, tree: &Tree, paths: Vec<Seen>) -> io::Result<Vec<Change>> {
        let mut changes = Vec::new();
        for Seen { path, node } in paths {
            let now = tree.look(&path)?;
            if now != node {
                changes.push(Change {
                    path,
                    before: node,
                    after: now,
                });
            }
        }
        Ok(changes)
    }

    /// Records the start of a call. From here on, its changes can be determined.
    pub(super) fn begin(&self, tool: &str, scope: &Scope) -> io::Result<Option<Vec<Seen>>> {
        let mut state = self.lock();
        self.recover(&mut state)?;
        let tree = self.tree(&mut state)?;
        let journal = self.journal();
        if let Some((message, prompt)) = self.notes().begun.take() {
            state.about = (Some(message), prompt);
            state.leave_turn();
        }
        if state.turn.is_none() {
            let last = match state.last {
                Some(last) => last,
                None => journal.read()?.last(),
            };
            let number = last + 1;
            let (message, prompt) = state.about.clone();
            journal.add(&Record::Turn {
                number,
                time: self.clock.now(),
                message,
                prompt,
            })?;
            state.turn = Some(number);
            state.last = Some(number);
        }
        let paths = match scope {
            Scope::Paths(paths) => {
                let see = |path: Bytes| {
                    let node = tree.look(&path)?;
                    Ok(Seen { path, node })
                };
                let paths = with_missing_folders(&tree, paths)?;
                Some(paths.into_iter().map(see).collect::<io::Result<Vec<_>>>()?)
            }
            Scope::Everything => {
                if !state.is_current {
                    self.refresh(&mut state, &tree, Report::Nothing)?;
                    state.recorded.clear();
                }
                None
            }
        };
        journal.add(&Record::Begun {
            tool: tool.to_owned(),
            paths: paths.clone(),
        })?;
        Ok(paths)
    }

    /// Records the end of a call.
    pub(super) fn end(&self, tool: &str, paths: Option<Vec<Seen>>) -> io::Result<CallEnd> {
        let mut state = self.lock();
        let tree = self.tree(&mut state)?;
        let is_scanned = paths.is_none();
        let (changes, blind) = match paths {
            Some(paths) => {
                let changes = self.changes_at(&tree, paths)?;
                for change in &changes {
                    state.recorded.insert(change.path.clone(), change.after.clone());
                }
                (changes, None)
            }
            None => self.scanned(&mut state, &tree)?,
        };
        let is_news = blind.is_some() && !std::mem::replace(&mut state.is_told, true);
        let warning = blind.clone().filter(|_| is_news);
        let touched = changes.iter().map(|change| change.path.path().to_owned());
        let touched = blind.is_none().then(|| touched.collect());
        let changed = if is_scanned {
            call_changes(&tree, &changes)
        } else {
            Vec::new()
        };
        self.journal().add(&Record::Changed {
            tool: tool.to_owned(),
            changes,
            blind,
        })?;
        state.ended = Some(tool.to_owned());
        Ok(CallEnd {
            warning: warning.map(|why| format!("not covered by undo: {why}")),
            changed,
            touched,
        })
    }

    /// Records what a call may have changed that no rewind restores.
    pub(super) fn leave_out(&self, tool: &str, why: String) -> io::Result<()> {
        self.journal().add(&Record::Changed {
            tool: tool.to_owned(),
            changes: Vec::new(),
            blind: Some(why),
        })
    }

    /// Returns the changes since the last scan, except those already recorded.
    fn scanned(&self, state: &mut State, tree: &Tree) -> io::Result<(Vec<Change>, Option<String>)> {
        let changes = match state.is_current {
            true => self.refresh(state, tree, Report::Changes)?,
            false => None,
        };
        let Some(mut changes) = changes else {
            return Ok((Vec::new(), Some(too_large(&self.limits))));
        };
        let mut recorded = std::mem::take(&mut state.recorded);
        for change in &mut changes {
            if let Some(node) = recorded.remove(&change.path) {
                change.before = node;
            }
        }
        // These match the previous scan, but not the state that the recorded change left.
        let left = recorded.into_iter().map(|(path, node)| Seen { path, node });
        changes.extend(self.changes_at(tree, left.collect())?);
        changes.retain(|change| change.before != change.after);
        Ok((changes, None))
    }

    #[cfg(test)]
    pub(super) fn add_for_test(&self, record: &Record) {
        fs::write(self.marker(), []).unwrap();
        self.journal().add(record).unwrap();
    }

    #[cfg(test)]
    pub(super) fn restore_for_test(&self, changes: &[Change]) {
        let tree = self.tree(&mut self.lock()).unwrap();
        restore::restore(&tree, &tree.packs.contents().unwrap(), changes).unwrap();
    }

    pub(super) fn history(&self) -> io::Result<History> {
        self.recover(&mut self.lock())?;
        self.journal().read()
    }

    /// Undoes or redoes changes. They are written to the journal before they are applied.
    fn apply(&self, turns: Vec<u64>, mut changes: Vec<Change>, forth: bool) -> io::Result<restore::Outcome> {
        let mut state = self.lock();
        let tree = self.tree(&mut state)?;
        // The modes of folders that have to be opened up, so that they are not lost if this process is stopped.
        let unchanged = Access::open(&tree, &changes).unchanged(&changes);
        changes.extend(unchanged);
        let journal = self.journal();
        fs::write(self.marker(), [])?;
        journal.add(&Record::Moving {
            turns,
            changes: changes.clone(),
            forth,
        })?;
        // Until this is finished, the next operation has to finish it.
        state.is_recovered = false;
        let outcome = restore::restore(&tree, &tree.packs.contents()?, &changes)?;
        journal.add(&Record::Moved)?;
        fs::remove_file(self.marker())?;
        state.is_recovered = true;
        state.leave_turn();
        state.ended = None;
        Ok(outcome)
    }

    /// Returns the paths that differ from the state the last change left. Their content is stored, so that it
    /// is never lost.
    fn foreign(&self, changes: &[Change]) -> io::Result<Vec<(Bytes, Option<Node>)>> {
        let tree = self.tree(&mut self.lock())?;
        let access = Access::open(&tree, changes);
        let mut foreign = Vec::new();
        for change in changes.iter().filter(|change| change.uncovered().is_none()) {
            let now = access.glance(&change.path)?;
            if now != change.before && now != change.after {
                foreign.push((change.path.clone(), access.look(&change.path)?));
            }
        }
        Ok(foreign)
    }

    fn move_files(
        &self,
        turns: Vec<u64>,
        mut changes: Vec<Change>,
        mut others: Vec<Bytes>,
        force: Force,
        forth: bool,
    ) -> Result<Restored, CheckpointError> {
        let foreign = self.foreign(&changes).map_err(failed)?;
        others.extend(foreign.iter().map(|(path, _)| path.clone()));
        others.sort();
        others.dedup();
        if force == Force::Never && !others.is_empty() {
            let paths = others.iter().map(Bytes::to_string).collect();
            return Err(CheckpointError::Conflict(paths));
        }
        for (path, now) in foreign {
            if let Some(change) = changes.iter_mut().find(|change| change.path == path) {
                change.before = now;
            }
        }
        let outcome = self.apply(turns.clone(), changes, forth).map_err(failed)?;
        let history = self.history().map_err(failed)?;
        let turns: Vec<_> = turns
            .iter()
            .filter_map(|number| history.turns.get(number))
            .collect();
        let mut uncovered = outcome.left;
        for blind in turns.iter().flat_map(|turn| &turn.blind) {
            if !uncovered.contains(blind) {
                uncovered.push(blind.clone());
            }
        }
        Ok(Restored {
            checkpoints: turns.iter().map(|turn| listed(turn)).collect(),
            changes: outcome.done.iter().map(|change| shown(change, None)).collect(),
            uncovered,
        })
    }

    pub(super) fn rewind_to(&self, number: u64, force: Force) -> Result<Restored, CheckpointError> {
        let history = self.history().map_err(failed)?;
        let Some(target) = history.turns.get(&number) else {
            let last = history.last();
            return Err(CheckpointError::Unknown { number, last });
        };
        if target.checkpoint.undone {
            return Err(CheckpointError::Nothing(format!(
                "checkpoint {number} has been undone already"
            )));
        }
        let active: Vec<_> = history
            .turns
            .range(number..)
            .filter(|(_, turn)| !turn.checkpoint.undone)
            .collect();
        let all = active.iter().flat_map(|(_, turn)| turn.calls.iter().flatten());
        let (changes, others) = merge(all);
        let back = changes.iter().map(Change::back).collect();
        let turns = active.into_iter().map(|(number, _)| *number).collect();
        self.move_files(turns, back, others, force, false)
    }

    pub(super) fn redo_last(&self, force: Force) -> Result<Restored, CheckpointError> {
        let history = self.history().map_err(failed)?;
        let Some((turns, changes)) = history.back.last() else {
            let nothing = if history.turns.values().any(|turn| turn.checkpoint.undone) {
                "files have changed since: the undone changes cannot be redone"
            } else {
                "there is nothing to redo"
            };
            return Err(CheckpointError::Nothing(nothing.to_owned()));
        };
        let forth = changes.iter().map(Change::back).collect();
        self.move_files(turns.clone(), forth, Vec::new(), force, true)
    }

    pub(super) fn show_turn(&self, number: u64) -> Result<Vec<FileChange>, CheckpointError> {
        let history = self.history().map_err(failed)?;
        let changes = match (number, history.turns.get(&number)) {
            (WHOLE_SESSION, _) => history.changes(),
            (_, Some(turn)) => turn.changes(),
            (_, None) => {
                let last = history.last();
                return Err(CheckpointError::Unknown { number, last });
            }
        };
        let tree = self.tree(&mut self.lock()).map_err(failed)?;
        let contents = tree.packs.contents().map_err(failed)?;
        Ok(changes
            .iter()
            .map(|change| shown(change, Some(&contents)))
            .collect())
    }
}

pub(super) fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(error.to_string())
}

fn too_large(limits: &CheckpointLimits) -> String {
    format!(
        "changes made by commands: the folder has more than {} files, so only changes made by file tools are recorded",
        limits.entries
    )
}

pub(super) fn listed(turn: &journal::Turn) -> Checkpoint {
    Checkpoint {
        files: turn.changes().len(),
        ..turn.checkpoint.clone()
    }
}

/// Returns the paths, preceded by the missing folders around them that would be created.
fn with_missing_folders(tree: &Tree, paths: &[Bytes]) -> io::Result<Vec<Bytes>> {
    let mut all = Vec::new();
    for path in paths {
        let mut missing = Vec::new();
        let mut folder = path.path();
        while let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            folder = parent;
            let folder = Bytes::of(folder);
            if tree.parent(&folder).is_err() || tree.glance(&folder)?.is_none() {
                missing.push(folder);
            } else {
                break;
            }
        }
        missing.reverse();
        missing.push(path.clone());
        for path in missing {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    Ok(all)
}
