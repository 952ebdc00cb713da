//! Reads the file of jobs.

use std::path::PathBuf;
use std::time::Duration;

use toml_edit::{Document, Item, TableLike};

use super::{JobFileContext, JobFileError, JobProblem};
use crate::job::{
    CronJob, DISABLE_AFTER, DeliveryTarget, JobAction, JobLimits, JobPolicy, JobWork, KEEP_SESSIONS,
    MAX_ITERATIONS, Missed, Overlap, TIMEOUT, check_id,
};
use crate::schedule::{Schedule, ScheduleError, duration};

/// Maximum number of jobs.
const MAX_JOBS: usize = 1_000;

/// Every key of a job, with its meaning.
#[rustfmt::skip]
pub const KEYS: &[(&str, &str)] = &[
    ("schedule", "Times at which the job is due: a cron pattern with 5 fields (6 with seconds), `@daily`, `every 15m`, `daily at 09:00`, `weekdays at 09:00`, `mon,thu at 18:30`. Required."),
    ("timezone", "Time zone of the schedule, such as `Europe/Berlin`. Default: the zone of this machine."),
    ("prompt", "Prompt for the model. A job has either a prompt or a command."),
    ("command", "Command that runs without a model, in the sandbox."),
    ("when", "Command that decides whether the prompt runs: with exit code 0 it runs, and gets the output."),
    ("folder", "Folder of the run. Required; `~/` is your home folder."),
    ("enabled", "Whether the job runs. Default: true."),
    ("session", "`fresh` for a new session each time, `continue` for one session for all runs. Default: fresh."),
    ("allowed_tools", "Permission rules for calls that do more than read, such as `write_file` or `bash(cargo test*)`. Others are refused. Default: none."),
    ("max_iterations", "Maximum number of model requests of a run. Default: 20."),
    ("max_cost_usd", "Maximum cost of a run, in US dollars. Default: no limit."),
    ("max_cost_per_day_usd", "Maximum cost of all runs of a day, in US dollars. Default: no limit."),
    ("timeout", "Maximum time of a run. Default: 1h."),
    ("missed", "What happens to a slot at which no Windlass was running: `skip`, `once` (the last one runs late), `once within 2h`. Default: once within half the interval."),
    ("overlap", "What happens to a slot at which the previous run has not ended: `skip`, `queue` (one waits), `parallel`. Default: skip."),
    ("on_interrupted", "What happens to a run whose process ended: `leave` (it is marked), `continue` (its session is resumed). Default: leave."),
    ("jitter", "Maximum random delay of a run. Default: none."),
    ("disable_after", "Number of failed runs in a row after which the job is disabled; 0 for never. Default: 5."),
    ("keep_sessions", "Number of runs whose sessions are kept; older ones are deleted, unless you worked in them; 0 keeps all. Default: 100."),
    ("deliver", "Places where results go: `notice`, `file:PATH`, `webhook:URL`, `session:KEY`."),
    ("provider", "Provider of the run. Default: that of the folder's settings."),
    ("model", "Model of the run. Default: that of the folder's settings."),
];

/// Reads the jobs of a file.
///
/// # Errors
/// Fails with every mistake in the file; a file with a mistake has no jobs.
pub fn parse(text: &str, context: &JobFileContext) -> Result<Vec<CronJob>, JobFileError> {
    let mut reader = Reader {
        text,
        context,
        problems: Vec::new(),
    };
    let jobs = reader.file();
    match reader.problems.is_empty() {
        true => Ok(jobs),
        false => Err(JobFileError {
            problems: reader.problems,
        }),
    }
}

struct Reader<'a> {
    text: &'a str,
    context: &'a JobFileContext,
    problems: Vec<JobProblem>,
}

/// A table of one job.
struct Entry<'a> {
    id: &'a str,
    at: usize,
    table: &'a dyn TableLike,
}

impl Entry<'_> {
    fn key(&self, name: &str) -> String {
        format!("jobs.{}.{name}", self.id)
    }

    /// Returns a value, with its place.
    fn get(&self, name: &str) -> Option<(&Item, usize)> {
        let item = self.table.get(name)?;
        let span = item.span().or_else(|| self.table.key(name)?.span());
        Some((item, span.map_or(self.at, |span| span.start)))
    }

    fn name_at(&self, name: &str) -> usize {
        let span = self.table.key(name).and_then(toml_edit::Key::span);
        span.map_or(self.at, |span| span.start)
    }
}

impl Reader<'_> {
    fn file(&mut self) -> Vec<CronJob> {
        let document = match Document::parse(self.text) {
            Ok(document) => document,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.problem(at, String::new(), format!("not valid TOML: {}", error.message()));
                return Vec::new();
            }
        };
        let mut jobs = Vec::new();
        for (name, item) in document.as_table().iter() {
            let at = document.as_table().key(name).and_then(toml_edit::Key::span);
            let at = at.map_or(0, |span| span.start);
            match (name, item.as_table_like()) {
                ("jobs", Some(table)) => self.jobs(table, &mut jobs),
                ("jobs", None) => self.problem(
                    at,
                    name.to_owned(),
                    "expected tables such as [jobs.nightly]".to_owned(),
                ),
                _ => self.problem(
                    at,
                    name.to_owned(),
                    "unknown key; each job is a table such as [jobs.nightly]".to_owned(),
                ),
            }
        }
        if jobs.len() > MAX_JOBS {
            self.problem(
                0,
                "jobs".to_owned(),
                format!("at most {MAX_JOBS} jobs are possible"),
            );
        }
        jobs
    }

    fn jobs(&mut self, table: &dyn TableLike, jobs: &mut Vec<CronJob>) {
        for (id, item) in table.iter() {
            let at = table.key(id).and_then(toml_edit::Key::span);
            let at = at.map_or(0, |span| span.start);
            if let Err(why) = check_id(id) {
                self.problem(at, format!("jobs.{id}"), why);
                continue;
            }
            match item.as_table_like() {
                Some(table) => jobs.extend(self.job(&Entry { id, at, table })),
                None => self.problem(
                    at,
                    format!("jobs.{id}"),
                    "expected a table of a job's keys".to_owned(),
                ),
            }
        }
    }

    fn job(&mut self, entry: &Entry<'_>) -> Option<CronJob> {
        for (name, _) in entry.table.iter() {
            if !KEYS.iter().any(|(known, _)| *known == name) {
                self.problem(entry.name_at(name), entry.key(name), unknown(name));
            }
        }
        let schedule = self.schedule(entry);
        let work = self.work(entry);
        let limits = self.limits(entry);
        let policy = self.policy(entry);
        let deliver = self.deliver(entry);
        let enabled = self.flag(entry, "enabled").unwrap_or(true);
        Some(CronJob {
            id: entry.id.to_owned(),
            schedule: schedule?,
            enabled,
            work: work?,
            limits,
            policy,
            deliver,
        })
    }

    fn schedule(&mut self, entry: &Entry<'_>) -> Option<Schedule> {
        let zone = self.text_of(entry, "timezone");
        let Some(text) = self.text_of(entry, "schedule") else {
            self.missing(entry, "schedule", "such as \"daily at 09:00\"");
            return None;
        };
        match Schedule::parse(&text, zone.as_deref()) {
            Ok(schedule) => Some(schedule),
            Err(error) => {
                let name = match error {
                    ScheduleError::Zone { .. } => "timezone",
                    _ => "schedule",
                };
                self.wrong(entry, name, error.to_string());
                None
            }
        }
    }

    fn work(&mut self, entry: &Entry<'_>) -> Option<JobWork> {
        let prompt = self.filled(entry, "prompt");
        let command = self.filled(entry, "command");
        let when = self.filled(entry, "when");
        let continues = self.choice(entry, "session", &[("fresh", false), ("continue", true)]);
        let is_command = command.is_some();
        let action = match (prompt, command) {
            (Some(prompt), None) => Some(JobAction::Prompt(prompt)),
            (None, Some(command)) => Some(JobAction::Command(command)),
            (Some(_), Some(_)) => {
                self.wrong(
                    entry,
                    "command",
                    "a job has either a prompt or a command, not both".to_owned(),
                );
                None
            }
            (None, None) => {
                self.missing(entry, "prompt", "or a command");
                None
            }
        };
        if is_command && when.is_some() {
            let message = "a condition is for a prompt; write it into the command, as in `test … && …`";
            self.wrong(entry, "when", message.to_owned());
        }
        Some(JobWork {
            folder: self.folder(entry)?,
            action: action?,
            when,
            continues: continues.unwrap_or(false),
            provider: self.filled(entry, "provider"),
            model: self.filled(entry, "model"),
        })
    }

    fn folder(&mut self, entry: &Entry<'_>) -> Option<PathBuf> {
        let Some(text) = self.filled(entry, "folder") else {
            self.missing(entry, "folder", "such as \"~/src/project\"");
            return None;
        };
        let below_home = text.strip_prefix("~/").or((text == "~").then_some(""));
        let path = match (below_home, &self.context.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(&text),
        };
        if path.is_absolute() {
            return Some(path);
        }
        let message = format!("`{text}` is relative: expected a full path, or one that starts with ~/");
        self.wrong(entry, "folder", message);
        None
    }

    fn limits(&mut self, entry: &Entry<'_>) -> JobLimits {
        let allowed_tools = self.list(entry, "allowed_tools");
        for rule in &allowed_tools {
            if let Err(error) = rule.parse::<windlass_core::permission::Rule>() {
                self.wrong(entry, "allowed_tools", error.to_string());
            }
        }
        let iterations = self.number(entry, "max_iterations", 1..=10_000);
        JobLimits {
            allowed_tools,
            max_iterations: iterations.unwrap_or(MAX_ITERATIONS),
            max_cost_usd: self.money(entry, "max_cost_usd"),
            max_cost_per_day_usd: self.money(entry, "max_cost_per_day_usd"),
            timeout: self.duration(entry, "timeout").unwrap_or(TIMEOUT),
        }
    }

    fn policy(&mut self, entry: &Entry<'_>) -> JobPolicy {
        let missed = match self.text_of(entry, "missed").map(|text| text.parse::<Missed>()) {
            None => Missed::default(),
            Some(Ok(missed)) => missed,
            Some(Err(why)) => {
                self.wrong(entry, "missed", why);
                Missed::default()
            }
        };
        let interrupted = self.choice(entry, "on_interrupted", &[("leave", false), ("continue", true)]);
        JobPolicy {
            missed,
            overlap: self.choice(entry, "overlap", &Overlap::NAMES).unwrap_or_default(),
            continues_interrupted: interrupted.unwrap_or(false),
            jitter: self.duration(entry, "jitter").unwrap_or_default(),
            disable_after: self
                .number(entry, "disable_after", 0..=1_000)
                .unwrap_or(DISABLE_AFTER),
            keep_sessions: self
                .number(entry, "keep_sessions", 0..=1_000_000)
                .unwrap_or(KEEP_SESSIONS),
        }
    }

    fn deliver(&mut self, entry: &Entry<'_>) -> Vec<DeliveryTarget> {
        let mut targets = Vec::new();
        for text in self.list(entry, "deliver") {
            match text.parse() {
                Ok(target) => targets.push(target),
                Err(why) => self.wrong(entry, "deliver", why),
            }
        }
        targets
    }

    fn text_of(&mut self, entry: &Entry<'_>, name: &str) -> Option<String> {
        let (item, at) = entry.get(name)?;
        match item.as_str() {
            Some(text) => Some(text.to_owned()),
            None => {
                self.problem(
                    at,
                    entry.key(name),
                    format!("expected a text in quotes, found {}", kind(item)),
                );
                None
            }
        }
    }

    /// Returns a text that is not empty.
    fn filled(&mut self, entry: &Entry<'_>, name: &str) -> Option<String> {
        let text = self.text_of(entry, name)?;
        if text.trim().is_empty() {
            self.wrong(entry, name, "is empty".to_owned());
            return None;
        }
        Some(text)
    }

    fn flag(&mut self, entry: &Entry<'_>, name: &str) -> Option<bool> {
        let (item, at) = entry.get(name)?;
        let flag = item.as_bool();
        if flag.is_none() {
            self.problem(
                at,
                entry.key(name),
                format!("expected true or false, found {}", kind(item)),
            );
        }
        flag
    }

    fn number(&mut self, entry: &Entry<'_>, name: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let (item, at) = entry.get(name)?;
        let number = item.as_integer().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let expected = format!(
                "expected a whole number from {} to {}",
                range.start(),
                range.end()
            );
            self.problem(at, entry.key(name), expected);
        }
        number
    }

    fn money(&mut self, entry: &Entry<'_>, name: &str) -> Option<f64> {
        let (item, at) = entry.get(name)?;
        #[allow(clippy::cast_precision_loss)]
        let whole = item.as_integer().map(|number| number as f64);
        let money = item
            .as_float()
            .or(whole)
            .filter(|money| *money > 0.0 && money.is_finite());
        if money.is_none() {
            self.problem(
                at,
                entry.key(name),
                "expected an amount above 0, such as 0.50".to_owned(),
            );
        }
        money
    }

    fn duration(&mut self, entry: &Entry<'_>, name: &str) -> Option<Duration> {
        let text = self.text_of(entry, name)?;
        match duration(&text) {
            Ok(time) => Some(time),
            Err(why) => {
                self.wrong(entry, name, why);
                None
            }
        }
    }

    fn choice<T: Copy>(&mut self, entry: &Entry<'_>, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text_of(entry, name)?;
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.wrong(
                entry,
                name,
                format!("expected {}, found `{text}`", words.join(" or ")),
            );
        }
        found.map(|(_, value)| *value)
    }

    fn list(&mut self, entry: &Entry<'_>, name: &str) -> Vec<String> {
        let Some((item, at)) = entry.get(name) else {
            return Vec::new();
        };
        let texts = item.as_array().and_then(|array| {
            let texts = array.iter().map(|value| value.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        texts.unwrap_or_else(|| {
            self.problem(
                at,
                entry.key(name),
                "expected a list of texts, such as [\"…\"]".to_owned(),
            );
            Vec::new()
        })
    }

    fn wrong(&mut self, entry: &Entry<'_>, name: &str, message: String) {
        let at = entry.get(name).map_or(entry.at, |(_, at)| at);
        self.problem(at, entry.key(name), message);
    }

    /// Reports a missing key, unless the key is there with a wrong value, which is reported already.
    fn missing(&mut self, entry: &Entry<'_>, name: &str, example: &str) {
        if entry.table.get(name).is_none() {
            self.problem(
                entry.at,
                entry.key(name),
                format!("is missing: every job needs it, {example}"),
            );
        }
    }

    fn problem(&mut self, at: usize, key: String, message: String) {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|sign| *sign != '\n').count() + 1;
        let place = format!("{}:{line}:{column}", self.context.path.display());
        self.problems.push(JobProblem { place, key, message });
    }
}

/// Returns the message about an unknown key.
fn unknown(name: &str) -> String {
    let near = KEYS
        .iter()
        .map(|(known, _)| (strsim::osa_distance(name, known), *known))
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.len() / 4);
    match near {
        Some((_, near)) => format!("unknown key; did you mean `{near}`?"),
        None => {
            let names: Vec<&str> = KEYS.iter().map(|(known, _)| *known).collect();
            format!("unknown key; known are {}", names.join(", "))
        }
    }
}

fn kind(item: &Item) -> &'static str {
    match item.type_name() {
        "none" => "nothing",
        "integer" | "float" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "table" | "inline table" => "a table",
        "datetime" => "a date",
        _ => "something else",
    }
}
