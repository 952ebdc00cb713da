//! Files with hooks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::matcher::Matcher;
use crate::occasion::Occasion;
use crate::script::HookScript;

/// Maximum number of hooks in a file.
const MAX_HOOKS: usize = 200;
/// Longest time limit that a file can set.
const MAX_TIME: f64 = 3_600.0;

/// Owner of a hook file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    /// The user's own file.
    User,
    /// A file of the project, which the user trusts.
    Project,
}

/// A hook file that was read.
#[derive(Debug, Clone)]
pub struct HookFile {
    /// Its path.
    pub path: PathBuf,
    /// Its owner.
    pub origin: HookOrigin,
    /// Its hooks, in order.
    pub handlers: Vec<Handler>,
    /// Parts of it that are not in effect, each with the reason.
    pub problems: Vec<String>,
}

/// A hook.
#[derive(Debug, Clone)]
pub struct Handler {
    /// The point at which it runs.
    pub occasion: Occasion,
    /// Calls, sources or agent types that it is for.
    pub matcher: Matcher,
    /// A permission rule that the call must fit, as it was written.
    pub condition: Option<String>,
    /// The program.
    pub program: HookProgram,
    /// Maximum time of a run.
    pub limit: Option<Duration>,
    /// True if nobody waits for it.
    pub is_async: bool,
    /// True if it runs in the sandbox.
    pub is_confined: bool,
    /// True if it runs once per session.
    pub once: bool,
    /// File that it is from.
    pub file: PathBuf,
    /// Scripts in the workspace that it runs, as they were when it was read.
    pub scripts: Vec<HookScript>,
}

/// The program of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HookProgram {
    /// A command line for `sh`, or a program if there are arguments.
    pub command: String,
    /// Arguments; with them there is no shell.
    pub args: Option<Vec<String>>,
}

impl fmt::Display for HookProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        for argument in self.args.iter().flatten() {
            write!(f, " {argument}")?;
        }
        Ok(())
    }
}

impl HookFile {
    /// Reads the text of a hook file: `hooks` in Claude Code's `settings.json`, Codex's and our own `hooks.json`.
    /// Whatever cannot be used becomes a problem and leaves the rest in effect.
    pub fn parse(path: &Path, origin: HookOrigin, text: &str) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            origin,
            handlers: Vec::new(),
            problems: Vec::new(),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match serde_json::from_str::<Value>(text) {
            Err(error) => file.problem(format!(
                "line {}, column {}: not valid JSON: {error}",
                error.line(),
                error.column()
            )),
            Ok(Value::Object(map)) => file.root(&map),
            Ok(other) => file.problem(format!("expected an object with `hooks`, found {}", kind(&other))),
        }
        file
    }

    /// Creates the record of a file that cannot be read.
    pub fn unreadable(path: &Path, origin: HookOrigin, why: String) -> Self {
        Self {
            path: path.to_owned(),
            origin,
            handlers: Vec::new(),
            problems: vec![why],
        }
    }

    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn root(&mut self, map: &Map<String, Value>) {
        if map.get("disableAllHooks") == Some(&Value::Bool(true)) {
            self.problem("`disableAllHooks` is true: no hook of this file runs".to_owned());
            return;
        }
        match map.get("hooks") {
            None | Some(Value::Null) => {}
            Some(Value::Object(events)) => {
                for (name, groups) in events {
                    self.event(name, groups);
                }
            }
            Some(other) => self.problem(format!("`hooks`: expected an object, found {}", kind(other))),
        }
    }

    fn event(&mut self, name: &str, groups: &Value) {
        let Some(occasion) = Occasion::named(name) else {
            let known = Occasion::ALL.map(Occasion::name).join(", ");
            self.problem(format!(
                "`hooks.{name}`: Windlass has no such event, so these hooks never run; it has {known}"
            ));
            return;
        };
        let Value::Array(groups) = groups else {
            self.problem(format!("`hooks.{name}`: expected a list, found {}", kind(groups)));
            return;
        };
        for (number, group) in groups.iter().enumerate() {
            let at = format!("hooks.{name}[{number}]");
            let Value::Object(group) = group else {
                self.problem(format!("`{at}`: expected an object, found {}", kind(group)));
                continue;
            };
            let matcher = match group.get("matcher") {
                None | Some(Value::Null) => Matcher::new(""),
                Some(Value::String(text)) => Matcher::new(text),
                Some(other) => {
                    self.problem(format!(
                        "`{at}.matcher`: expected a text, found {}; it matches everything",
                        kind(other)
                    ));
                    Matcher::new("")
                }
            };
            if let Some(why) = matcher.problem() {
                self.problem(format!(
                    "`{at}.matcher`: `{}` is not a regular expression ({why}); it matches everything",
                    matcher.text()
                ));
            }
            match group.get("hooks") {
                Some(Value::Array(handlers)) => {
                    for (number, handler) in handlers.iter().enumerate() {
                        self.handler(occasion, &matcher, handler, &format!("{at}.hooks[{number}]"));
                    }
                }
                Some(other) => self.problem(format!("`{at}.hooks`: expected a list, found {}", kind(other))),
                None => self.problem(format!("`{at}`: `hooks` is missing, so nothing runs")),
            }
        }
    }

    fn handler(&mut self, occasion: Occasion, matcher: &Matcher, value: &Value, at: &str) {
        if self.handlers.len() >= MAX_HOOKS {
            self.problem(format!(
                "`{at}`: a file has at most {MAX_HOOKS} hooks; the rest is ignored"
            ));
            return;
        }
        let Value::Object(map) = value else {
            self.problem(format!("`{at}`: expected an object, found {}", kind(value)));
            return;
        };
        match map.get("type").map_or(Some("command"), Value::as_str) {
            Some("command") => {}
            Some(other @ ("http" | "mcp_tool" | "prompt" | "agent")) => {
                self.problem(format!(
                    "`{at}`: hooks of type `{other}` are not run; use `command`"
                ));
                return;
            }
            other => {
                let other = other.unwrap_or("?");
                self.problem(format!(
                    "`{at}.type`: `{other}` is not a type of hook; use `command`"
                ));
                return;
            }
        }
        let Some(command) = map
            .get("command")
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
        else {
            self.problem(format!("`{at}.command`: a command line is missing"));
            return;
        };
        let args = match map.get("args") {
            None | Some(Value::Null) => None,
            Some(list) => match serde_json::from_value::<Vec<String>>(list.clone()) {
                Ok(args) => Some(args),
                Err(_) => {
                    self.problem(format!(
                        "`{at}.args`: expected a list of texts, found {}",
                        kind(list)
                    ));
                    return;
                }
            },
        };
        let flag = |name: &str| map.get(name).and_then(Value::as_bool).unwrap_or_default();
        let (is_async, once) = (flag("async") || flag("asyncRewake"), flag("once"));
        let limit = self.limit(map, at);
        self.handlers.push(Handler {
            occasion,
            matcher: matcher.clone(),
            condition: map.get("if").and_then(Value::as_str).map(str::to_owned),
            program: HookProgram {
                command: command.to_owned(),
                args,
            },
            limit,
            is_async,
            is_confined: flag("sandbox"),
            once,
            file: self.path.clone(),
            scripts: Vec::new(),
        });
    }

    /// Reads the time limit in seconds.
    fn limit(&mut self, map: &Map<String, Value>, at: &str) -> Option<Duration> {
        let value = map.get("timeout").filter(|value| !value.is_null())?;
        match value.as_f64() {
            Some(seconds) if seconds > 0.0 => Some(Duration::from_secs_f64(seconds.min(MAX_TIME))),
            _ => {
                self.problem(format!(
                    "`{at}.timeout`: expected a number of seconds above 0, found {value}; the default applies"
                ));
                None
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        HookFile::parse(Path::new("hooks.json"), HookOrigin::User, text).problems
    }

    /// HOOK-3: what cannot be used is reported with its place, and the rest stays in effect.
    #[test]
    fn problems_name_their_place() {
        let cases = [
            ("{", "line 1, column 1: not valid JSON"),
            ("[]", "expected an object with `hooks`, found a list"),
            (r#"{"hooks":[]}"#, "`hooks`: expected an object"),
            (
                r#"{"hooks":{"TaskCreated":[]}}"#,
                "`hooks.TaskCreated`: Windlass has no such event",
            ),
            (r#"{"hooks":{"Stop":{}}}"#, "`hooks.Stop`: expected a list"),
            (r#"{"hooks":{"Stop":[1]}}"#, "`hooks.Stop[0]`: expected an object"),
            (
                r#"{"hooks":{"Stop":[{}]}}"#,
                "`hooks.Stop[0]`: `hooks` is missing",
            ),
            (
                r#"{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"x"}]}]}}"#,
                "type `http` are not run",
            ),
            (
                r#"{"hooks":{"Stop":[{"hooks":[{"type":"magic"}]}]}}"#,
                "`magic` is not a type",
            ),
            (
                r#"{"hooks":{"Stop":[{"hooks":[{"type":"command"}]}]}}"#,
                "a command line is missing",
            ),
            (
                r#"{"hooks":{"Stop":[{"hooks":[{"command":"a","timeout":"x"}]}]}}"#,
                "hooks[0].timeout`: expected a number",
            ),
        ];
        for (text, expected) in cases {
            let problems = problems(text);
            assert!(
                problems.iter().any(|problem| problem.contains(expected)),
                "{text}: {problems:?}"
            );
        }
        let mixed = r#"{"permissions":{},"hooks":{"Odd":[],"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
        let file = HookFile::parse(Path::new("a"), HookOrigin::User, mixed);
        assert_eq!((file.handlers.len(), file.problems.len()), (1, 1));
    }
}
