//! The part of skills that follows turns, calls and compactions.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::event::Event;
use windlass_core::hook::{
    AdmittedCall, CallHook, CompactionHook, Hook, PermissionAction, TurnAction, TurnEnd, TurnHook,
};
use windlass_core::message::{Fragment, FragmentSource, Message, Part};
use windlass_core::permission::{Decision, Proposal, Subject};
use windlass_core::tool::{ToolContext, ToolError, ToolOutput};
use windlass_skills::{glob_matches, listing_line};

use super::SkillState;

/// Maximum number of texts that are injected again after a compaction, and of characters of each.
const MOST: usize = 10;
const LONGEST: usize = 20_000;
/// Maximum length of an announced description.
const ANNOUNCED: usize = 300;

/// Announces skills, keeps their texts in the conversation, and applies their rules.
pub(super) struct SkillHook(pub(super) Arc<SkillState>);

impl Hook for SkillHook {
    fn name(&self) -> &str {
        "skills"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }

    fn compaction(&self) -> Option<&dyn CompactionHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for SkillHook {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        let mut inner = self.0.lock();
        inner.loaded = loaded(history);
        let notes = std::mem::take(&mut inner.notes);
        if notes.is_empty() {
            return TurnAction::default();
        }
        let text = format!("The skills have changed:\n{}", notes.join("\n"));
        TurnAction::Start(vec![Fragment::new(FragmentSource::Reminder, text)])
    }

    async fn turn_ended(&self, _: &TurnEnd<'_>) -> Vec<Event> {
        self.0.lock().rules.clear();
        Vec::new()
    }
}

#[async_trait]
impl CallHook for SkillHook {
    /// The rules of an active skill answer a permission request as rules of the user would: they lift no denial, no
    /// rule that asks, and no limit of the mode.
    async fn on_permission_request(&self, proposal: &Proposal) -> PermissionAction {
        let rules = self.0.lock().rules.clone();
        let Some(calls) = self.0.host.calls().filter(|_| !rules.is_empty()) else {
            return PermissionAction::AskUser;
        };
        let mut policy = calls.config.policy;
        policy.rules.allow = rules;
        match policy.decide(proposal) {
            Decision::Allow => PermissionAction::Allow,
            Decision::Ask | Decision::Deny(_) => PermissionAction::AskUser,
        }
    }

    /// Offers skills that are for the files of a call.
    async fn after_call(
        &self,
        call: &AdmittedCall,
        _: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let mut output = result?;
        let paths = call.proposal.subjects.iter().filter_map(|subject| match subject {
            Subject::Path(path) => Some(path.as_str()),
            _ => None,
        });
        let paths: Vec<&str> = paths.collect();
        let mut inner = self.0.lock();
        let fits = |patterns: &[String]| {
            let fits = |pattern: &String| paths.iter().any(|path| glob_matches(pattern, path));
            patterns.iter().any(fits)
        };
        let found: Vec<_> = inner
            .catalog
            .skills
            .iter()
            .filter(|skill| skill.options.by_model && fits(&skill.options.paths))
            .filter(|skill| !inner.announced.iter().any(|(name, _)| *name == skill.name))
            .cloned()
            .collect();
        for skill in found {
            let line = listing_line(&skill, ANNOUNCED);
            output.content.push_str(&format!(
                "\n\n[a skill is for this file; the skill tool loads it]\n{line}"
            ));
            inner.announced.push((skill.name, skill.description));
        }
        Ok(output)
    }
}

#[async_trait]
impl CompactionHook for SkillHook {
    async fn before_compact(&self, history: &[Arc<Message>]) -> Option<String> {
        // A session may be resumed only to be compacted.
        self.0.lock().loaded = loaded(history);
        None
    }

    async fn after_compact(&self, history: &[Arc<Message>]) -> Vec<Fragment> {
        let kept = loaded(history);
        let inner = self.0.lock();
        let gone = inner
            .loaded
            .iter()
            .filter(|(name, _)| !kept.iter().any(|(known, _)| known == name));
        let mut fragments: Vec<Fragment> = gone
            .rev()
            .take(MOST)
            .map(|(name, text)| {
                let text: String = text.chars().take(LONGEST).collect();
                Fragment::new(FragmentSource::Skill, text).labeled(name)
            })
            .collect();
        fragments.reverse();
        fragments
    }
}

/// Returns the texts of skills in a conversation, the newest last.
fn loaded(history: &[Arc<Message>]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for part in history.iter().flat_map(|message| &message.parts) {
        let text = match part {
            Part::Context(fragment) if fragment.source == FragmentSource::Skill => {
                fragment.label.clone().map(|name| (name, fragment.text.clone()))
            }
            Part::ToolResult(result) if result.name == "skill" && !result.is_error => {
                in_result(&result.content)
            }
            _ => None,
        };
        if let Some((name, text)) = text {
            found.retain(|(known, _)| *known != name);
            found.push((name, text));
        }
    }
    found
}

/// Reads the result of the `skill` tool; `None` if it was shortened.
fn in_result(content: &str) -> Option<(String, String)> {
    let (name, rest) = content
        .strip_prefix("<skill_content name=\"")?
        .split_once("\">\n")?;
    let (text, _) = rest.rsplit_once("\n</skill_content>")?;
    Some((name.to_owned(), text.to_owned()))
}
