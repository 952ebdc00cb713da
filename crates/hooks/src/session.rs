//! The hooks of one session, on the list of the core.

mod points;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use windlass_core::id::CallId;
use windlass_core::message::{Fragment, FragmentSource};
use windlass_core::permission::{Mode, Proposal};

use crate::answer::{Combined, HookChoice};
use crate::claude;
use crate::file::HookProgram;
use crate::occasion::Occasion;
use crate::record::{HookRun, HookRuns};
use crate::set::{HookHost, HookSet, HookShared, Trigger, lock};

/// Facts about the session of the hooks.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// Id of the session.
    pub session: String,
    /// Id and type of the sub-agent, if the session is one.
    pub agent: Option<(String, String)>,
    /// True if a person can be asked.
    pub is_attended: bool,
    /// File in which hooks at the start of the session leave environment variables for later commands.
    pub env_file: PathBuf,
}

/// The hooks of one session. Cheap to clone.
#[derive(Clone)]
pub struct SessionHooks(Arc<Inner>);

struct Inner {
    facts: SessionFacts,
    host: HookHost,
    shared: HookShared,
    state: Mutex<State>,
    /// Called with every record of a run.
    log: Box<dyn Fn(&HookRun) + Send + Sync>,
}

#[derive(Default)]
struct State {
    set: Arc<HookSet>,
    runs: HookRuns,
    /// Context of hooks that waits for the next turn.
    pending: Vec<Fragment>,
    /// Messages for the user.
    warnings: Vec<String>,
    turn: TurnState,
    calls: HashMap<CallId, CallState>,
    /// Variables that hooks set for later commands.
    env: BTreeMap<String, String>,
}

#[derive(Default)]
struct TurnState {
    id: Option<String>,
    model: Option<String>,
    mode: Mode,
    /// Number of times that hooks kept the turn from ending.
    stops: u32,
    /// Reason to end the turn.
    stop: Option<String>,
    /// True for a compaction that the user asked for.
    is_manual: bool,
}

/// Answers of hooks to a call so far.
#[derive(Debug, Clone, Default)]
struct CallState {
    choice: HookChoice,
    reasons: Vec<String>,
    context: Vec<Fragment>,
    /// Hooks that changed the arguments. They do not judge their own change.
    rewriters: HashSet<HookProgram>,
}

impl SessionHooks {
    /// Creates the hooks of a session.
    pub fn new(
        facts: SessionFacts,
        host: HookHost,
        set: HookSet,
        log: impl Fn(&HookRun) + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            set: Arc::new(set),
            ..State::default()
        };
        Self(Arc::new(Inner {
            facts,
            host,
            shared: HookShared::default(),
            state: Mutex::new(state),
            log: Box::new(log),
        }))
    }

    /// Uses these hooks from now on.
    pub fn replace(&self, set: HookSet) {
        lock(&self.0.state).set = Arc::new(set);
    }

    /// Begins a turn.
    pub fn begin(&self, turn: Option<String>, mode: Mode) {
        let mut state = lock(&self.0.state);
        state.turn.is_manual = turn.is_none();
        state.turn.id = turn.or(state.turn.id.take());
        state.turn.mode = mode;
        state.calls.clear();
    }

    /// Returns the current hooks and the last runs.
    pub fn shown(&self) -> (Arc<HookSet>, HookRuns) {
        let state = lock(&self.0.state);
        (Arc::clone(&state.set), state.runs.clone())
    }

    /// Surroundings of the hooks.
    pub fn host(&self) -> &HookHost {
        &self.0.host
    }

    /// Returns the environment variables that hooks set for later commands.
    pub fn environment(&self) -> BTreeMap<String, String> {
        lock(&self.0.state).env.clone()
    }

    /// Returns true if there are no hooks.
    pub fn is_empty(&self) -> bool {
        lock(&self.0.state).set.handlers().next().is_none()
    }

    /// Waits for the asynchronous hooks.
    pub async fn settle(&self) {
        let mut background = std::mem::take(&mut *lock(&self.0.shared.background));
        while background.join_next().await.is_some() {}
    }

    /// Ends the asynchronous hooks.
    pub async fn close(&self) {
        let mut background = std::mem::take(&mut *lock(&self.0.shared.background));
        background.shutdown().await;
    }

    /// Runs the hooks of an event that is not about a call.
    pub async fn fire(&self, occasion: Occasion, subject: &str, more: Value) -> Combined {
        let names = if subject.is_empty() {
            Vec::new()
        } else {
            vec![subject.to_owned()]
        };
        let nothing = HashSet::new();
        let (fired, _) = self.run(occasion, names, more, None, &nothing).await;
        fired
    }

    /// Runs the hooks of an event as if it had happened.
    pub async fn try_out(
        &self,
        occasion: Occasion,
        subject: &str,
        proposal: Option<&Proposal>,
        more: Value,
    ) -> Combined {
        match proposal {
            Some(proposal) => {
                let nothing = HashSet::new();
                let (combined, _) = self.fire_call(occasion, proposal, more, &nothing).await;
                combined
            }
            None => self.fire(occasion, subject, more).await,
        }
    }

    /// Runs the hooks of an event that is about a call. Returns the programs that changed the arguments as well.
    async fn fire_call(
        &self,
        occasion: Occasion,
        proposal: &Proposal,
        more: Value,
        except: &HashSet<HookProgram>,
    ) -> (Combined, Vec<HookProgram>) {
        let call = claude::call(proposal);
        let mut input = Map::new();
        input.insert("tool_name".to_owned(), json!(call.names.first()));
        input.insert("tool_input".to_owned(), call.input);
        if occasion != Occasion::PermissionRequest {
            input.insert("tool_use_id".to_owned(), json!(proposal.call_id.as_str()));
        }
        if let Value::Object(more) = more {
            input.extend(more);
        }
        self.run(occasion, call.names, Value::Object(input), Some(proposal), except)
            .await
    }

    async fn run(
        &self,
        occasion: Occasion,
        names: Vec<String>,
        more: Value,
        proposal: Option<&Proposal>,
        except: &HashSet<HookProgram>,
    ) -> (Combined, Vec<HookProgram>) {
        let set = Arc::clone(&lock(&self.0.state).set);
        if !set.has(occasion) {
            return (Combined::default(), Vec::new());
        }
        let mut env = BTreeMap::new();
        if occasion == Occasion::SessionStart {
            let path = self.0.facts.env_file.display().to_string();
            prepare_file(&self.0.facts.env_file);
            env.insert("CLAUDE_ENV_FILE".to_owned(), path);
        }
        let input = self.input(occasion, more);
        let fits = |condition: &str| proposal.is_none_or(|proposal| claude::fits(condition, proposal));
        let trigger = Trigger {
            occasion,
            names,
            input: &input,
            env,
            fits: &fits,
            except,
        };
        let fired = set.fire(&self.0.host, &trigger, &self.0.shared).await;
        let mut state = lock(&self.0.state);
        for record in fired.records {
            if state.runs.push(record.clone()) {
                (self.0.log)(&record);
            }
        }
        state.warnings.extend(fired.answer.messages.iter().cloned());
        (fired.answer, fired.rewriters)
    }

    /// Returns the input of a hook: the fields of every event, then those of this one.
    fn input(&self, occasion: Occasion, more: Value) -> Value {
        let state = lock(&self.0.state);
        let turn = &state.turn;
        let mode = match turn.mode {
            Mode::Plan => "plan",
            Mode::Ask => "default",
            Mode::Edits => "acceptEdits",
            Mode::Auto => "auto",
            Mode::Full => "bypassPermissions",
            Mode::Unattended => "dontAsk",
        };
        let mut input = json!({
            "session_id": self.0.facts.session,
            "transcript_path": null,
            "cwd": self.0.host.cwd,
            "hook_event_name": occasion.name(),
            "permission_mode": mode,
            "prompt_id": turn.id,
            "turn_id": turn.id,
            "model": turn.model,
        });
        if let Value::Object(input) = &mut input {
            if let Some((id, kind)) = &self.0.facts.agent {
                input.insert("agent_id".to_owned(), json!(id));
                input.insert("agent_type".to_owned(), json!(kind));
            }
            if let Value::Object(more) = more {
                input.extend(more);
            }
        }
        input
    }
}

/// Creates the file for variables, readable only by the user. Hooks find out if that fails.
fn prepare_file(path: &Path) {
    let _ = path.parent().map(std::fs::create_dir_all);
    let mut options = std::fs::OpenOptions::new();
    let _ = options
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
}

/// Returns the texts of hooks as fragments.
fn fragments(context: Vec<(String, String)>) -> Vec<Fragment> {
    let fragment = |(name, text): (String, String)| Fragment::new(FragmentSource::Hook, text).labeled(name);
    context.into_iter().map(fragment).collect()
}

/// Reads the variables that hooks left: lines `export NAME=value` or `NAME=value`.
fn exported(text: &str) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for line in text.lines().take(1_000) {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let value = value.trim();
        let bare = ['"', '\'']
            .iter()
            .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        if is_name {
            env.insert(name.to_owned(), bare.unwrap_or(value).to_owned());
        }
    }
    env
}
