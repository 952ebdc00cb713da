//! One use of a skill: its text with arguments and the output of its commands, and the folder it may be read from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_config::environment;
use windlass_core::dispatch::{Calls, call};
use windlass_core::event::{Event, EventSink, SinkError};
use windlass_core::message::{ToolCall, ToolResult};
use windlass_core::permission::Rule;
use windlass_core::tool::{CallModel, ToolContext, ToolError, ToolOutput};
use windlass_skills::{Piece, Skill, SkillOrigin, SkillVariables, Template};

use super::{SkillState, inside};
use crate::agent_types::foreign;
use crate::skill_copy;

/// Maximum number of files of a skill that are listed, and of folders that are searched for them.
const LISTED: usize = 50;
/// Time limit of a command in a skill, in seconds.
const COMMAND_SECONDS: u64 = 60;

/// One use of a skill.
pub(super) struct Activation<'a> {
    state: &'a SkillState,
    skill: &'a Skill,
    folder: Option<PathBuf>,
    problem: Option<String>,
    template: Template,
}

impl<'a> Activation<'a> {
    /// Prepares the text and makes the folder of the skill readable.
    pub(super) fn new(state: &'a SkillState, skill: &'a Skill, arguments: &'a str) -> Self {
        let (folder, problem) = match open_folder(state, skill) {
            Ok(folder) => (folder, None),
            Err(why) => (None, Some(why)),
        };
        let plugin = match &skill.origin {
            SkillOrigin::Plugin(_) => folder.clone(),
            _ => None,
        };
        let template = Template::new(
            skill,
            &SkillVariables {
                arguments,
                folder: folder.as_deref().unwrap_or(&skill.folder),
                project: &state.cwd,
                session: &state.session,
                plugin: plugin.as_deref(),
            },
        );
        Self {
            state,
            skill,
            folder,
            problem,
            template,
        }
    }

    /// Returns true if commands will run.
    pub(super) fn has_commands(&self) -> bool {
        self.skill.is_trusted && self.template.has_commands()
    }

    /// Returns the text for the model. Commands run first.
    pub(super) async fn text(&self, cancel: &CancellationToken) -> String {
        self.allow();
        let mut text = String::new();
        for piece in &self.template.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Command(command) if self.skill.is_trusted => {
                    text.push_str(&self.output(command, cancel).await);
                }
                Piece::Command(command) => {
                    let why = "commands of a skill run only if the project is trusted";
                    text.push_str(&format!("[not run: `{command}`: {why}]"));
                }
            }
        }
        if let Some(folder) = &self.folder {
            let files = files(folder);
            text.push_str(&format!("\n\nFolder of this skill: {}", folder.display()));
            if !files.is_empty() {
                text.push_str(&format!("\nIts files: {}", files.join(", ")));
            }
        }
        if let Some(problem) = &self.problem {
            text.push_str(&format!(
                "\n\n[the files of this skill cannot be read: {problem}]"
            ));
        }
        text
    }

    /// Records that the text is in the conversation.
    pub(super) fn activate(&self, text: &str) {
        let mut inner = self.state.lock();
        inner.loaded.retain(|(name, _)| *name != self.skill.name);
        inner.loaded.push((self.skill.name.clone(), text.to_owned()));
    }

    /// Puts the rules of a trusted skill into effect, for this turn.
    fn allow(&self) {
        if !self.skill.is_trusted {
            return;
        }
        let rules = self.skill.options.allowed_tools.iter();
        let rules: Vec<Rule> = rules.filter_map(|text| rule(text)).collect();
        self.state.lock().rules.extend(rules);
    }

    /// Runs a command as a call of the bash tool: it is judged, sandboxed and limited like any other.
    async fn output(&self, command: &str, cancel: &CancellationToken) -> String {
        let input = json!({ "command": command, "timeout_secs": COMMAND_SECONDS });
        match self.call("bash", input.to_string(), cancel).await {
            Some(result) if result.is_error => format!("[`{command}` failed: {}]", result.content.trim()),
            Some(result) => result.content.trim_end().to_owned(),
            None => format!("[not run: `{command}`: the session is not ready]"),
        }
    }

    async fn call(&self, tool: &str, input: String, cancel: &CancellationToken) -> Option<ToolResult> {
        let own = self.state.host.calls()?;
        let events: Arc<dyn EventSink> = Arc::new(Unseen);
        let clock = environment::clock();
        let deps = Calls {
            config: &own.config,
            hooks: &own.hooks,
            approver: &own.approver,
            model: &CallModel::none(),
            outputs: own.outputs.as_ref(),
            clock: &clock,
            events: &events,
            cancel,
            tasks: &TaskTracker::new(),
        };
        let id = format!("skill-{}", uuid::Uuid::now_v7());
        let made = ToolCall {
            id: id.into(),
            name: tool.to_owned(),
            input,
            finished: true,
        };
        Some(call(&deps, made).await)
    }

    /// Runs the skill in a sub-agent.
    pub(super) async fn fork(&self, text: &str, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut input = json!({ "task": text, "name": self.skill.name });
        if let (Some(kind), Some(fields)) = (&self.skill.options.agent, input.as_object_mut()) {
            fields.insert("type".to_owned(), json!(kind));
        }
        let result = self.call("agent", input.to_string(), &cx.cancel).await;
        let result = result.ok_or_else(|| ToolError::Permanent("the session is not ready".to_owned()))?;
        match result.is_error {
            true => Err(ToolError::Permanent(result.content)),
            false => Ok(ToolOutput {
                details: result.metadata,
                ..ToolOutput::text(result.content)
            }),
        }
    }
}

/// Converts a rule of `allowed-tools`, in which `Bash(git:*)` is `bash(git *)` here.
fn rule(text: &str) -> Option<Rule> {
    let (tool, pattern) = match text.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (text, None),
    };
    let tool = foreign::tool(tool);
    let text = match pattern {
        None | Some("*") => tool,
        Some(pattern) => match pattern.strip_suffix(":*") {
            Some(start) => format!("{tool}({start} *)"),
            None => format!("{tool}({pattern})"),
        },
    };
    text.parse().ok()
}

/// Makes the folder of a skill readable, and returns its path. Windlass's own folders stay closed to tools, so skills
/// in them are read from a copy.
fn open_folder(state: &SkillState, skill: &Skill) -> Result<Option<PathBuf>, String> {
    if skill.origin == SkillOrigin::BuiltIn {
        return Ok(None);
    }
    let folders = environment::folders().map_err(|error| error.to_string())?;
    let real = skill.folder.canonicalize().map_err(|error| error.to_string())?;
    let is_own = [&folders.config, &folders.data, &folders.state]
        .into_iter()
        .filter_map(|own| own.canonicalize().ok())
        .any(|own| real.starts_with(own));
    let folder = match is_own {
        true => skill_copy::copied(&real, &folders.cache.join("skills"))?,
        false => skill.folder.clone(),
    };
    // A project's folder is in the workspace, or above it in the same repository.
    state.host.workspace.allow_reading(&folder);
    Ok(Some(folder))
}

/// Lists the files beside SKILL.md.
fn files(folder: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut looked = 0;
    while let Some(next) = folders.pop() {
        looked += 1;
        if looked > LISTED || found.len() >= LISTED {
            break;
        }
        let entries = std::fs::read_dir(&next)
            .into_iter()
            .flatten()
            .flatten()
            .take(4 * LISTED);
        for entry in entries {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(_) if entry.file_name() != "SKILL.md" => found.extend(inside(&path, folder)),
                _ => {}
            }
        }
    }
    found.sort();
    found.truncate(LISTED);
    found
}

/// Calls inside a call are not events of their own.
struct Unseen;

#[async_trait]
impl EventSink for Unseen {
    fn live(&self, _: Event) {}

    async fn record(&self, _: Event) -> Result<(), SinkError> {
        Ok(())
    }
}
