//! All hooks together: choosing, running, combining.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::task::JoinSet;
use windlass_core::clock::Clock;

use crate::answer::{Combined, HookAnswer, HookChoice};
use crate::file::{Handler, HookFile, HookProgram};
use crate::occasion::Occasion;
use crate::process::{HookCommand, HookEnd, HookOutput};
use crate::record::HookRun;
use crate::script::HookScript;

/// Maximum number of hooks that run at one event.
const MAX_AT_ONCE: usize = 64;
/// Maximum number of asynchronous hooks that run at the same time.
const MAX_ASYNC: usize = 8;

/// Surroundings of hooks.
#[derive(Clone)]
pub struct HookHost {
    /// Working directory.
    pub cwd: PathBuf,
    /// Environment.
    pub env: BTreeMap<String, String>,
    /// Path of our own program, which runs hooks in the sandbox that ask for it.
    pub sandbox: Option<PathBuf>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// Something happened that hooks may be for.
pub struct Trigger<'a> {
    /// The event.
    pub occasion: Occasion,
    /// Names that matchers are compared with; the first is the one that hooks see.
    pub names: Vec<String>,
    /// Input of the hooks.
    pub input: &'a Value,
    /// Further environment variables.
    pub env: BTreeMap<String, String>,
    /// Returns true if the call fits a hook's condition.
    pub fits: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// Programs that do not run this time.
    pub except: &'a HashSet<HookProgram>,
}

/// Result of an event.
#[derive(Debug, Default)]
pub struct Fired {
    /// The combined answer.
    pub answer: Combined,
    /// Records of the hooks, also of those that did not run.
    pub records: Vec<HookRun>,
    /// Programs that changed the arguments.
    pub rewriters: Vec<HookProgram>,
}

/// State that the events of a session share.
#[derive(Default)]
pub struct HookShared {
    /// Programs that run once and did.
    once: Mutex<HashSet<HookProgram>>,
    /// Asynchronous hooks.
    pub(crate) background: Mutex<JoinSet<()>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hooks of all files.
#[derive(Debug, Clone, Default)]
pub struct HookSet {
    files: Vec<HookFile>,
}

impl HookSet {
    /// Puts the hooks of these files together; all of them count.
    pub fn new(files: Vec<HookFile>) -> Self {
        Self { files }
    }

    /// Notes the scripts below `root` as they are now. A hook does not run once one of its scripts has changed.
    #[must_use]
    pub fn watching(mut self, root: &Path) -> Self {
        for handler in self.files.iter_mut().flat_map(|file| &mut file.handlers) {
            handler.scripts = HookScript::find(&handler.program, root);
        }
        self
    }

    /// The files.
    pub fn files(&self) -> &[HookFile] {
        &self.files
    }

    /// Returns all hooks, in order.
    pub fn handlers(&self) -> impl Iterator<Item = &Handler> {
        self.files.iter().flat_map(|file| &file.handlers)
    }

    /// Returns true if there is a hook for the event.
    pub fn has(&self, occasion: Occasion) -> bool {
        self.handlers().any(|handler| handler.occasion == occasion)
    }

    /// The longest time that the hooks of one event can take.
    pub fn longest(&self) -> Duration {
        let limits = self.handlers().map(limit);
        limits.max().unwrap_or_default() + Duration::from_secs(5)
    }

    /// Returns the hooks for an event, and the reasons why others for the same event do not run.
    fn chosen(
        &self,
        trigger: &Trigger<'_>,
        once: &mut HashSet<HookProgram>,
    ) -> (Vec<&Handler>, Vec<HookRun>) {
        let (mut chosen, mut skipped): (Vec<&Handler>, _) = (Vec::new(), Vec::new());
        for handler in self
            .handlers()
            .filter(|handler| handler.occasion == trigger.occasion)
        {
            let fits = trigger.occasion.ignores_matcher() || handler.matcher.fits(&trigger.names);
            let condition = handler
                .condition
                .as_deref()
                .filter(|condition| !(trigger.fits)(condition));
            let is_known = |known: &&Handler| known.program == handler.program;
            let why = match condition {
                _ if !fits => Some(format!(
                    "the matcher `{}` does not fit {}",
                    handler.matcher.text(),
                    trigger.names.join(" or ")
                )),
                Some(condition) => Some(format!("the call does not fit `if`: `{condition}`")),
                None if trigger.except.contains(&handler.program) => {
                    Some("it changed the arguments of this call before".to_owned())
                }
                None if chosen.iter().any(is_known) => {
                    Some("the same command runs for this event already".to_owned())
                }
                None if handler.once && once.contains(&handler.program) => {
                    Some("`once`: it ran in this session before".to_owned())
                }
                None if chosen.len() >= MAX_AT_ONCE => {
                    Some(format!("at most {MAX_AT_ONCE} hooks run at an event"))
                }
                None => None,
            };
            match why {
                Some(why) => skipped.push(record(trigger, handler, None, HookChoice::None, Some(why))),
                None => {
                    if handler.once {
                        once.insert(handler.program.clone());
                    }
                    chosen.push(handler);
                }
            }
        }
        (chosen, skipped)
    }

    /// Runs the hooks for an event, all at the same time, and combines their answers in the order of the files.
    /// Asynchronous hooks continue in the background.
    pub async fn fire(&self, host: &HookHost, trigger: &Trigger<'_>, shared: &HookShared) -> Fired {
        let (chosen, records) = self.chosen(trigger, &mut lock(&shared.once));
        let mut fired = Fired {
            records,
            ..Fired::default()
        };
        if chosen.is_empty() {
            return fired;
        }
        let input = trigger.input.to_string();
        let mut waited = Vec::new();
        for handler in chosen {
            let mut env = host.env.clone();
            env.extend(trigger.env.clone());
            let command = HookCommand {
                program: if handler.is_confined {
                    confined(&handler.program, host)
                } else {
                    handler.program.clone()
                },
                cwd: host.cwd.clone(),
                env,
                input: input.clone(),
                limit: limit(handler),
            };
            if !handler.is_async {
                waited.push((handler, command));
                continue;
            }
            let mut background = lock(&shared.background);
            while background.try_join_next().is_some() {}
            if background.len() >= MAX_ASYNC {
                let why = format!("{MAX_ASYNC} asynchronous hooks run already");
                fired
                    .records
                    .push(record(trigger, handler, None, HookChoice::None, Some(why)));
                continue;
            }
            if let Some(why) = handler.scripts.iter().find_map(HookScript::change) {
                fired.answer.messages.push(format!(
                    "the hook `{}` did not run: {why}",
                    short(&handler.program)
                ));
                continue;
            }
            let mut started = record(trigger, handler, None, HookChoice::None, None);
            started.exit = "in the background".to_owned();
            fired.records.push(started);
            let clock = Arc::clone(&host.clock);
            background.spawn(async move {
                command.run(&clock).await;
            });
        }
        let runs = waited.iter().map(|(handler, command)| async move {
            match handler.scripts.iter().find_map(HookScript::change) {
                Some(why) => HookOutput::not_started(why),
                None => command.run(&host.clock).await,
            }
        });
        let outputs = join_all(runs).await;
        for ((handler, _), output) in waited.iter().zip(outputs) {
            let name = short(&handler.program);
            let answer = HookAnswer::read(trigger.occasion, &name, &output);
            fired
                .records
                .push(record(trigger, handler, Some(&output), answer.choice, None));
            if answer.input.is_some() {
                fired.rewriters.push(handler.program.clone());
            }
            fired.answer.add(&name, answer);
        }
        fired
    }
}

/// Returns the command that runs a program in the sandbox, with the project's folder in its environment.
fn confined(program: &HookProgram, host: &HookHost) -> HookProgram {
    let own = host
        .sandbox
        .as_ref()
        .map_or_else(|| "windlass".to_owned(), |path| path.display().to_string());
    let root = host.env.get("CLAUDE_PROJECT_DIR").map_or("", String::as_str);
    let mut args: Vec<String> = ["sandbox", "--", "env"].map(str::to_owned).to_vec();
    args.push(format!("CLAUDE_PROJECT_DIR={root}"));
    match &program.args {
        Some(more) => {
            args.push(program.command.clone());
            args.extend(more.iter().cloned());
        }
        None => args.extend(["/bin/sh".to_owned(), "-c".to_owned(), program.command.clone()]),
    }
    HookProgram {
        command: own,
        args: Some(args),
    }
}

fn limit(handler: &Handler) -> Duration {
    let default = handler.occasion.time_limit();
    let limit = handler.limit.unwrap_or(default);
    if handler.occasion == Occasion::SessionEnd {
        limit.min(default)
    } else {
        limit
    }
}

/// A name for messages.
fn short(program: &HookProgram) -> String {
    let text = program.to_string();
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn record(
    trigger: &Trigger<'_>,
    handler: &Handler,
    output: Option<&HookOutput>,
    choice: HookChoice,
    skipped: Option<String>,
) -> HookRun {
    let exit = match output.map(|output| &output.end) {
        None => String::new(),
        Some(HookEnd::Exited(code)) => code.to_string(),
        Some(HookEnd::Signaled(signal)) => format!("signal {signal}"),
        Some(HookEnd::TimedOut(_)) => "timeout".to_owned(),
        Some(HookEnd::NotStarted(_)) => "not started".to_owned(),
    };
    let ms = output.map_or(0, |output| output.took.as_millis());
    HookRun {
        event: trigger.occasion.name().to_owned(),
        subject: trigger.names.first().cloned().unwrap_or_default(),
        matcher: handler.matcher.text().to_owned(),
        command: short(&handler.program),
        file: handler.file.display().to_string(),
        ms: u64::try_from(ms).unwrap_or(u64::MAX),
        exit,
        decision: choice.name().to_owned(),
        skipped,
    }
}
