//! A scheduled job.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::schedule::{Schedule, duration, duration_text};

/// LOOP-9: maximum number of model requests of a run, unless the job says otherwise.
pub const MAX_ITERATIONS: u32 = 20;
/// Maximum time of a run, unless the job says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(3_600);
/// Number of failed runs after which a job is disabled, unless the job says otherwise.
pub const DISABLE_AFTER: u32 = 5;
/// Number of runs whose sessions are kept, unless the job says otherwise.
pub(crate) const KEEP_SESSIONS: u32 = 100;

/// A scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct CronJob {
    /// Name of the job.
    pub id: String,
    /// Times at which it is due.
    pub schedule: Schedule,
    /// True if it runs.
    pub enabled: bool,
    /// Its work.
    pub work: JobWork,
    /// Limits of a run.
    pub limits: JobLimits,
    /// Rules for a run that cannot start or end as planned.
    pub policy: JobPolicy,
    /// Places that get the results.
    pub deliver: Vec<DeliveryTarget>,
}

/// Work of a job, and its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWork {
    /// The work itself.
    pub action: JobAction,
    /// Command that must succeed before a prompt runs; the prompt gets its output.
    pub when: Option<String>,
    /// Folder of the run.
    pub folder: PathBuf,
    /// True if all runs are in one session.
    pub continues: bool,
    /// Provider, if it is not the one of the settings.
    pub provider: Option<String>,
    /// Model, likewise.
    pub model: Option<String>,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAction {
    /// A prompt for a model.
    Prompt(String),
    /// A command, without a model.
    Command(String),
}

/// Limits of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLimits {
    /// SAFE-5: rules for calls that do more than read; others are refused.
    pub allowed_tools: Vec<String>,
    /// LOOP-9: maximum number of model requests.
    pub max_iterations: u32,
    /// Maximum cost of a run, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Maximum cost of all runs of a day, in US dollars.
    pub max_cost_per_day_usd: Option<f64>,
    /// Maximum time of a run.
    pub timeout: Duration,
}

/// Rules for a run that cannot start or end as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPolicy {
    /// Slots at which no process was there.
    pub missed: Missed,
    /// Slots at which the previous run has not ended.
    pub overlap: Overlap,
    /// True if a run whose process ended is continued in its session.
    pub continues_interrupted: bool,
    /// Maximum delay of a run; the same for the same slot.
    pub jitter: Duration,
    /// Number of failed runs in a row after which the job is disabled; 0 for never.
    pub disable_after: u32,
    /// Number of runs whose sessions are kept; 0 for all.
    pub keep_sessions: u32,
}

/// Policy for a slot at which no process was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// It is left out.
    Skip,
    /// The last one runs, however late.
    Once,
    /// The last one runs, unless it is later than this.
    Within(Duration),
    /// The last one runs, unless it is later than half the interval to the next.
    #[default]
    HalfInterval,
}

/// Policy for a slot at which the previous run has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It is left out.
    #[default]
    Skip,
    /// It runs as soon as the other has ended; at most one waits.
    Queue,
    /// Both run.
    Parallel,
}

impl Overlap {
    /// Every policy with its name.
    pub(crate) const NAMES: [(&'static str, Self); 3] = [
        ("skip", Self::Skip),
        ("queue", Self::Queue),
        ("parallel", Self::Parallel),
    ];
}

impl FromStr for Missed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match (text, text.strip_prefix("once within ")) {
            ("skip", _) => Ok(Self::Skip),
            ("once", _) => Ok(Self::Once),
            (_, Some(limit)) => Ok(Self::Within(duration(limit)?)),
            _ => Err(format!("expected skip, once or `once within 2h`, found `{text}`")),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skip => f.write_str("skip"),
            Self::Once => f.write_str("once"),
            Self::Within(limit) => write!(f, "once within {}", duration_text(*limit)),
            Self::HalfInterval => f.write_str("once within half the interval"),
        }
    }
}

/// Place where a result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryTarget {
    /// A file, replaced by each result. `{job}` and `{slot}` in its path stand for the job and its time.
    File(String),
    /// An address that gets the result as JSON.
    Webhook(String),
    /// A notice on the desktop.
    Notice,
    /// The session with this key, which gets the result as a message.
    Session(String),
}

impl FromStr for DeliveryTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let expected = "expected `notice`, `file:PATH`, `webhook:URL` or `session:KEY`";
        match text.split_once(':') {
            None if text == "notice" => Ok(Self::Notice),
            Some((_, rest)) if rest.trim().is_empty() => Err(format!("`{text}` names nothing; {expected}")),
            Some(("file", path)) => Ok(Self::File(path.to_owned())),
            Some(("webhook", url)) if url.starts_with("https://") || url.starts_with("http://") => {
                Ok(Self::Webhook(url.to_owned()))
            }
            Some(("webhook", url)) => Err(format!(
                "`{url}` is not an address of a webhook: expected one that starts with https:// or http://"
            )),
            Some(("session", key)) => match key.parse::<windlass_core::log::SessionKey>() {
                Ok(key) => Ok(Self::Session(key.to_string())),
                Err(error) => Err(error.to_string()),
            },
            _ => Err(format!("`{text}` is no place for results; {expected}")),
        }
    }
}

impl fmt::Display for DeliveryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{path}"),
            Self::Webhook(url) => write!(f, "webhook:{url}"),
            Self::Notice => f.write_str("notice"),
            Self::Session(key) => write!(f, "session:{key}"),
        }
    }
}

impl CronJob {
    /// Returns everything that decides about the slots of the job, as text. A change starts a new count of slots.
    pub fn definition(&self) -> String {
        format!(
            "{} | {} | {}",
            self.schedule.text(),
            self.schedule.zone(),
            self.enabled
        )
    }

    /// Returns the key of the session in which all runs are.
    pub fn session_key(&self) -> Option<String> {
        let key = || windlass_core::log::SessionKey::group("main", "cron", &self.id).ok();
        self.work.continues.then(key).flatten().map(|key| key.to_string())
    }
}

/// Checks the name of a job.
pub(crate) fn check_id(id: &str) -> Result<(), String> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_';
    match !id.is_empty() && id.len() <= 64 && id.chars().all(is_plain) {
        true => Ok(()),
        false => Err("expected a name of at most 64 letters, digits, `-` and `_`".to_owned()),
    }
}
