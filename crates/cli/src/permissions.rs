//! `windlass permissions`: lists the rules, and tests calls against them.

mod past;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use windlass_core::id::CallId;
use windlass_core::permission::{Decision, Policy, Subject};
use windlass_core::text::{count, json_problem};
use windlass_core::tool::{Category, ToolSet};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say, tell_warnings};
use windlass_args::{ReplayOptions, SettingsOptions};
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_host::factory::{SessionSpec, policy, tools};
use windlass_host::grants::{GrantFile, grant_line};
use windlass_sandbox::read_given_text;

/// Size of the largest file of calls.
const MAX_BYTES: u64 = 64 << 20;

/// Prints the mode and the rules in effect, and where they come from.
pub(crate) fn list(options: &SettingsOptions) -> Result<Exit, Problem> {
    let settings = environment::settings(&options.given(), &working_directory(None)?)?;
    for effective in settings
        .origins
        .iter()
        .filter(|entry| entry.key.starts_with("security."))
    {
        let value = effective
            .value
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        say!("{} = {value}  # {}", effective.key, effective.origin);
    }
    for grant in GrantFile::new(&environment::folders()?).read()? {
        say!("always: {}", plain(&grant_line(&grant)));
    }
    Ok(Exit::Ok)
}

/// Revokes all permanent approvals.
pub(crate) fn forget() -> Result<Exit, Problem> {
    let forgotten = GrantFile::new(&environment::folders()?).clear()?;
    say!("forgot {}", count(forgotten, "approval"));
    Ok(Exit::Ok)
}

/// One call in a file: a line of JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    tool: String,
    arguments: Value,
}

/// Tests calls against the rules in effect: those of a file, those of past sessions. Nothing runs.
pub(crate) async fn test(options: &ReplayOptions) -> Result<Exit, Problem> {
    let of_sessions = options.all_sessions || !options.session.is_empty();
    if options.calls.is_none() && !of_sessions {
        return Err(Problem::usage(
            "name a file of calls, or past sessions with --session SESSION or --all-sessions",
        ));
    }
    let cwd = working_directory(None)?;
    let settings = environment::settings(&options.settings.given(), &cwd)?;
    tell_warnings(&settings.warnings);
    if let Some(file) = &options.calls {
        test_file(file, &CallEnv::new(&settings, &cwd)?)?;
    }
    if of_sessions {
        past::test(options, &settings, &cwd).await?;
    }
    Ok(Exit::Ok)
}

fn test_file(file: &Path, env: &CallEnv) -> Result<(), Problem> {
    let text = read_given_text(file, MAX_BYTES)
        .map_err(|error| Problem::usage(format!("{}: {error}", file.display())))?;
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let call: Recorded = serde_json::from_str(line).map_err(|error| {
            let place = format!("{}:{}", file.display(), number + 1);
            let error = json_problem(&error);
            Problem::usage(format!(
                "{place}: {error}; each line is a call, as in {{\"tool\": \"bash\", \"arguments\": {{\"command\": \"ls\"}}}}"
            ))
        })?;
        say!("{}", plain(&env.judge(&call, false).to_string()));
    }
    Ok(())
}

/// Tools and rules, without an environment to run them in.
struct CallEnv {
    tools: ToolSet,
    policy: Policy,
    cwd: PathBuf,
}

impl CallEnv {
    fn new(settings: &Settings, cwd: &Path) -> Result<Self, Problem> {
        let spec = SessionSpec::looking(cwd, "permissions");
        Ok(Self {
            tools: tools(settings, &spec)?.0.tools().clone(),
            policy: policy(settings),
            cwd: cwd.to_owned(),
        })
    }

    /// Judges a call; `attended` says if a person can be asked.
    fn judge(&self, call: &Recorded, attended: bool) -> Judged {
        let judged = |verdict: Verdict, about: String| Judged {
            verdict,
            about: format!("{}{about}", call.tool),
        };
        let Some(tool) = self.tools.get(&call.tool) else {
            return judged(Verdict::Unknown, String::new());
        };
        let prepared = match Arc::clone(tool).prepare(&call.arguments.to_string()) {
            Ok(prepared) => prepared,
            Err(error) => return judged(Verdict::Invalid, format!("  {error}")),
        };
        let proposal = prepared.proposal(&CallId::from(""), &call.tool, &self.cwd);
        let policy = Policy {
            attended,
            ..self.policy.clone()
        };
        let (verdict, why) = match policy.decide(&proposal) {
            Decision::Allow => (Verdict::Allow, String::new()),
            Decision::Ask => (Verdict::Ask, String::new()),
            Decision::Deny(denial) => (
                Verdict::Deny,
                denial.feedback.or(denial.reason).unwrap_or_default(),
            ),
        };
        let category = match proposal.category {
            Category::Read => "read",
            Category::Write => "write",
            Category::Admin => "admin",
        };
        let about: Vec<&str> = proposal.parts().map(Subject::text).collect();
        let tail = if why.is_empty() {
            String::new()
        } else {
            format!("  ({why})")
        };
        judged(verdict, format!(" [{category}] {}{tail}", about.join(" | ")))
    }
}

/// Decision about a call.
struct Judged {
    verdict: Verdict,
    about: String,
}

/// Kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Ask,
    Deny,
    /// The tool does not exist here.
    Unknown,
    /// The tool rejects the arguments.
    Invalid,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
        }
    }
}

impl std::fmt::Display for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<8} {}", self.verdict.word(), self.about)
    }
}
