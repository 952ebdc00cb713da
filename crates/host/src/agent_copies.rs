//! SUB-6: copies of a session's files, in which sub-agents write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_api::SessionInfo;
use windlass_checkpoint::Tracker;
use windlass_config::environment;
use windlass_config::folders::Folders;
use windlass_core::hook::{AdmittedCall, CallHook};
use windlass_core::id::{CallId, MessageId, SessionId};
use windlass_core::permission::{Escalation, Proposal, Subject};
use windlass_core::tool::{CallModel, Category, ExecutionContext, Person, Progress, ToolContext, ToolOutput};
use windlass_sandbox::{ProtectedPaths, child_environment};
use windlass_service::{AgentCopies, MergedCopy};
use windlass_worktree::{MergeOutcome, MergePlan, OnConflict, WorktreeError, Worktrees};

/// Maximum number of paths in a description.
const SHOWN: usize = 20;
/// Maximum number of characters of a diff for the model.
const DIFF: usize = 20_000;

/// Finds the checkpoints of a session that is live.
pub(crate) type Trackers = Arc<dyn Fn(&SessionId) -> Option<Tracker> + Send + Sync>;

/// The copies of this machine.
pub(crate) struct LocalCopies {
    worktrees: Worktrees,
    trackers: Trackers,
}

impl LocalCopies {
    pub(crate) fn new(folders: &Folders, trackers: Trackers) -> Self {
        let own = [&folders.config, &folders.data, &folders.state, &folders.cache];
        let env = child_environment(environment::vars(), Path::new("/"), "");
        let worktrees = Worktrees::new(&folders.worktrees(), &env);
        Self {
            worktrees: worktrees.hiding(own.map(PathBuf::clone).into()),
            trackers,
        }
    }

    /// Runs work that waits for the disk on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Worktrees, &CancellationToken) -> Result<T, WorktreeError> + Send + 'static,
    ) -> Result<T, String> {
        let worktrees = self.worktrees.clone();
        let cancel = CancellationToken::new();
        // Whoever waits may give up; the work ends then.
        let guard = cancel.clone().drop_guard();
        let done = tokio::task::spawn_blocking(move || work(&worktrees, &cancel)).await;
        drop(guard);
        match done {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[async_trait]
impl AgentCopies for LocalCopies {
    async fn make(&self, parent: &SessionInfo, agent: &SessionId) -> Result<String, String> {
        let (source, name) = (PathBuf::from(&parent.place), agent.to_string());
        let made = self.blocking(move |worktrees, cancel| {
            if let Ok(known) = worktrees.open(&name) {
                return Ok(known);
            }
            worktrees.remove(&name, cancel)?;
            worktrees.create(&source, &name, cancel)
        });
        Ok(made.await?.folder().display().to_string())
    }

    async fn changes(&self, agent: &SessionId) -> Result<String, String> {
        let name = agent.to_string();
        let changes = self
            .blocking(move |worktrees, cancel| worktrees.open(&name)?.changes(cancel))
            .await?;
        if changes.is_empty() {
            return Ok(String::new());
        }
        let (added, removed) = changes.lines();
        let diff: String = changes.diff.chars().take(DIFF).collect();
        let cut = if diff.len() < changes.diff.len() {
            "\n[cut]"
        } else {
            ""
        };
        Ok(format!(
            "{} files, +{added} −{removed} lines\n{diff}{cut}",
            changes.files.len()
        ))
    }

    async fn merge(&self, agent: &SessionId, into: &SessionInfo) -> Result<MergedCopy, String> {
        let (name, folder) = (agent.to_string(), PathBuf::from(&into.place));
        let plan = self
            .blocking(move |worktrees, cancel| worktrees.open(&name)?.merge(&folder, cancel))
            .await?;
        if plan.is_empty() {
            return Ok(MergedCopy {
                text: "There is nothing to merge.".to_owned(),
                is_complete: true,
            });
        }
        if let Some(reason) = protected(&plan) {
            let copied = self
                .worktrees
                .open(&agent.to_string())
                .map_err(|error| error.to_string())?;
            return Err(format!(
                "nothing was merged: {reason}. Look at it in {}, and copy it yourself if you want it",
                copied.root().display()
            ));
        }
        let call = admitted(&plan, Path::new(&into.place));
        let cx = context(&call, into);
        let tracker = (self.trackers)(&into.id);
        if let Some(tracker) = &tracker {
            tracker
                .begin_turn(MessageId::generate(), format!("/agents merge {agent}"))
                .await;
            tracker.call_starting(&call, &cx).await;
        }
        let conflicts: Vec<String> = plan
            .conflicts
            .iter()
            .map(|conflict| format!("{}: {}", conflict.path.display(), conflict.reason.text()))
            .collect();
        let outcome = self
            .blocking(move |_, cancel| plan.apply(OnConflict::Keep, cancel))
            .await?;
        let mut text = told(&outcome, &conflicts);
        if let Some(tracker) = &tracker {
            let kept = tracker.after_call(&call, &cx, Ok(ToolOutput::default())).await;
            if let Some(warning) = kept.ok().and_then(|kept| kept.warning) {
                text.push_str(&format!("\n{warning}"));
            }
        }
        Ok(MergedCopy {
            text,
            is_complete: conflicts.is_empty() && outcome.left.is_empty(),
        })
    }

    async fn collisions(&self, agents: &[SessionId]) -> Result<Vec<String>, String> {
        let names: Vec<String> = agents.iter().map(ToString::to_string).collect();
        let changed = self
            .blocking(move |worktrees, cancel| {
                let each = names.iter().filter_map(|name| worktrees.open(name).ok());
                each.map(|worktree| worktree.changed_paths(cancel))
                    .collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let all: Vec<PathBuf> = changed.into_iter().flatten().collect();
        let mut sorted = all;
        sorted.sort();
        let mut twice: Vec<String> = sorted
            .windows(2)
            .filter(|pair| pair.first() == pair.last())
            .filter_map(|pair| pair.first().map(|path| path.display().to_string()))
            .collect();
        twice.dedup();
        Ok(twice)
    }

    async fn discard(&self, agent: &SessionId) -> Result<(), String> {
        let name = agent.to_string();
        self.blocking(move |worktrees, cancel| worktrees.remove(&name, cancel))
            .await
    }
}

/// SAFE-10: returns the reason not to merge: a file that another program would run by itself.
fn protected(plan: &MergePlan) -> Option<String> {
    let folder = plan.into_folder();
    let protected = ProtectedPaths::new(folder, None);
    let mut paths = plan.paths(OnConflict::Keep).into_iter();
    paths.find_map(|path| protected.reason(&folder.join(path)))
}

/// Describes a merge for the user.
fn told(outcome: &MergeOutcome, conflicts: &[String]) -> String {
    let mut lines = vec![format!(
        "Merged {} files; /undo takes it back.",
        outcome.changed.len()
    )];
    let changed = outcome.changed.iter().map(|path| format!("  {}", path.display()));
    lines.extend(changed.take(SHOWN));
    if !conflicts.is_empty() {
        lines.push("Conflicts; your version stays, and the agent's copy is kept:".to_owned());
        lines.extend(
            conflicts
                .iter()
                .take(SHOWN)
                .map(|conflict| format!("  {conflict}")),
        );
    }
    for (path, why) in outcome.left.iter().take(SHOWN) {
        lines.push(format!("  not merged: {}: {why}", path.display()));
    }
    lines.join("\n")
}

/// Returns a merge as a call, for the checkpoints.
fn admitted(plan: &MergePlan, cwd: &Path) -> AdmittedCall {
    let paths = plan.paths(OnConflict::Keep);
    let subjects = paths.iter().map(|path| {
        let whole = plan.into_folder().join(path);
        Subject::Path(whole.display().to_string())
    });
    AdmittedCall {
        proposal: Proposal {
            call_id: CallId::generate(),
            tool: "agents merge".to_owned(),
            category: Category::Write,
            arguments: Value::Null,
            subjects: subjects.collect(),
            refusal: None,
            reasons: Vec::new(),
            escalation: Escalation::default(),
            blocked: None,
            cwd: cwd.to_owned(),
            definition: None,
            preview: None,
        },
        was_confirmed: true,
    }
}

fn context(call: &AdmittedCall, session: &SessionInfo) -> ToolContext {
    let id = call.proposal.call_id.clone();
    ToolContext {
        call_id: id,
        cancel: CancellationToken::new(),
        execution: Arc::new(ExecutionContext {
            cwd: call.proposal.cwd.clone(),
            session: Some(session.id.clone()),
            ..ExecutionContext::default()
        }),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: true,
        places: Arc::default(),
    }
}
