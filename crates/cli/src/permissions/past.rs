//! SAFE-8: tests the calls of past sessions against the rules in effect now.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use windlass_api::{CallId, Event, is_own_call};
use windlass_core::event::Waiting;
use windlass_core::log::record;
use windlass_core::log::{Entry, SessionInfo, SessionQuery};
use windlass_core::text::count;
use windlass_core::turn::CANCELED_TEXT;

use super::{CallEnv, Recorded, Verdict};
use crate::session_choice::{self, find, problem};
use crate::sessions::short;
use crate::terminal::{plain, say, tell};
use windlass_args::ReplayOptions;
use windlass_config::Problem;
use windlass_config::settings::Settings;

/// Past outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ran,
    /// The user typed the command, which approves it.
    Typed,
    /// The user was asked and approved the call.
    AskedAndRan,
    Denied,
    /// The user was asked and denied the call, or did not answer.
    AskedAndDenied,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Typed => "you ran it",
            Self::AskedAndRan => "asked, ran",
            Self::Denied => "denied",
            Self::AskedAndDenied => "asked, denied",
        }
    }

    /// Returns true if the rules decided so at that time.
    fn is(self, verdict: Verdict) -> bool {
        match self {
            Self::Ran => verdict == Verdict::Allow,
            Self::Typed => verdict != Verdict::Deny,
            Self::AskedAndRan | Self::AskedAndDenied => verdict == Verdict::Ask,
            Self::Denied => verdict == Verdict::Deny,
        }
    }

    /// Returns true if a person was there to be asked.
    fn was_attended(self) -> bool {
        matches!(self, Self::Typed | Self::AskedAndRan | Self::AskedAndDenied)
    }
}

/// Number of calls of each kind.
#[derive(Default)]
struct Counts {
    calls: usize,
    changed: usize,
    unjudged: usize,
    verdicts: HashMap<&'static str, usize>,
}

/// Prints the calls that would be decided differently now, then a count.
pub(super) async fn test(options: &ReplayOptions, settings: &Settings, cwd: &Path) -> Result<(), Problem> {
    let store = session_choice::store()?;
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for called in &options.session {
        sessions.push(find(&*store, called).await?);
    }
    if options.all_sessions {
        let query = SessionQuery {
            children: true,
            ..SessionQuery::default()
        };
        sessions = store.list(&query).await.map_err(problem)?;
    }
    let mut envs: HashMap<PathBuf, CallEnv> = HashMap::new();
    let mut counts = Counts::default();
    for info in &sessions {
        let env = env(&mut envs, settings, &info.place, cwd)?;
        for (call, fate) in calls(&record(&*store, &info.id).await.map_err(problem)?) {
            judge(env, info, &call, fate, &mut counts);
        }
    }
    summary(&counts, sessions.len());
    Ok(())
}

/// Returns the tools and rules of a folder. A folder that no longer exists is replaced by the current one.
fn env<'a>(
    envs: &'a mut HashMap<PathBuf, CallEnv>,
    settings: &Settings,
    place: &str,
    cwd: &Path,
) -> Result<&'a CallEnv, Problem> {
    let place = PathBuf::from(place);
    let place = if place.is_dir() { place } else { cwd.to_owned() };
    match envs.entry(place) {
        std::collections::hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
        std::collections::hash_map::Entry::Vacant(new) => {
            let env = CallEnv::new(settings, new.key())?;
            Ok(new.insert(env))
        }
    }
}

fn judge(env: &CallEnv, info: &SessionInfo, call: &Recorded, fate: Fate, counts: &mut Counts) {
    let mut judged = env.judge(call, fate.was_attended());
    if !fate.is(judged.verdict) {
        // Nothing records if a person was there while a call ran that nobody was asked about.
        let other = env.judge(call, !fate.was_attended());
        if fate.is(other.verdict) {
            judged = other;
        }
    }
    counts.calls += 1;
    if [Verdict::Unknown, Verdict::Invalid].contains(&judged.verdict) {
        counts.unjudged += 1;
        return;
    }
    *counts.verdicts.entry(judged.verdict.word()).or_default() += 1;
    if !fate.is(judged.verdict) {
        counts.changed += 1;
        let line = format!("{:<18} now {judged}  ({})", fate.word(), short(info));
        say!("{}", plain(&line).replace('\n', " "));
    }
}

fn summary(counts: &Counts, sessions: usize) {
    let Counts {
        calls,
        changed,
        unjudged,
        verdicts,
    } = counts;
    let of = |word: &str| verdicts.get(word).copied().unwrap_or_default();
    say!(
        "{} in {}: {changed} changed; now {} allowed, {} ask, {} denied",
        count(*calls, "call"),
        count(sessions, "session"),
        of("allow"),
        of("ask"),
        of("deny")
    );
    if *unjudged > 0 {
        let skipped = count(*unjudged, "call");
        tell!("{skipped} skipped: the tool does not exist here, or it rejects the arguments");
    }
}

/// Returns the calls of a session with their outcomes. Ids repeat, so they are matched in order.
fn calls(entries: &[Entry]) -> Vec<(Recorded, Fate)> {
    let mut calls: Vec<(CallId, Recorded, Fate)> = Vec::new();
    let mut asked: HashMap<&CallId, bool> = HashMap::new();
    for entry in entries {
        match &entry.event {
            Event::Waiting(Waiting::PermissionAnswer { call_id, allowed }) => {
                asked.insert(call_id, *allowed);
            }
            Event::ToolCall { call_id, name, args } => {
                let fate = match asked.remove(call_id) {
                    None if is_own_call(call_id) => Fate::Typed,
                    None => Fate::Ran,
                    Some(true) => Fate::AskedAndRan,
                    Some(false) => Fate::AskedAndDenied,
                };
                let call = Recorded {
                    tool: name.clone(),
                    arguments: args.clone(),
                };
                calls.push((call_id.clone(), call, fate));
            }
            Event::ToolResult {
                call_id,
                content,
                is_error: true,
                details: None,
                ..
            } => {
                let Some(place) = calls.iter().rposition(|(id, _, _)| id == call_id) else {
                    continue;
                };
                // Canceled before the rules decided about it.
                if content == CANCELED_TEXT {
                    calls.remove(place);
                } else if ["Permission denied", "Refused ("]
                    .iter()
                    .any(|begin| content.starts_with(begin))
                    && let Some((_, _, fate @ (Fate::Ran | Fate::Typed))) = calls.get_mut(place)
                {
                    *fate = Fate::Denied;
                }
            }
            _ => {}
        }
    }
    calls.into_iter().map(|(_, call, fate)| (call, fate)).collect()
}
