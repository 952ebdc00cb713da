//! EXT-1: instructions of folders below the working directory, read when a tool first uses a file there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_core::hook::{AdmittedCall, CallHook, CompactionHook, Hook, TurnAction, TurnHook};
use windlass_core::message::{Fragment, FragmentSource, Message, Part};
use windlass_core::permission::Subject;
use windlass_core::tool::{ToolContext, ToolError, ToolOutput};

use super::import::Reading;
use super::{InstructionReader, MOST};

/// Text before instructions in the result of a call.
const LEAD: &str = "[instructions for this folder, as those in the system prompt]";
/// Start and end of one file.
const START: &str = "<instructions from=\"";
const END: &str = "\n</instructions>";

/// Adds instructions to the result of the call that first uses their folder.
pub(super) struct NestedInstructions {
    reader: Arc<InstructionReader>,
    /// Names and texts that are in the conversation.
    told: Mutex<Vec<(String, String)>>,
}

impl NestedInstructions {
    pub(super) fn new(reader: Arc<InstructionReader>) -> Self {
        Self {
            reader,
            told: Mutex::default(),
        }
    }

    /// Takes over the instructions in a conversation, which may have been resumed or rewound.
    fn recall(&self, history: &[Arc<Message>]) {
        let mut told = self.told();
        // Files that cannot be read are reported once.
        told.retain(|(_, text)| text.is_empty());
        told.extend(blocks(history));
    }

    fn told(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files that were read.
    pub(super) fn names(&self) -> Vec<String> {
        self.told().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the folders of a path below the working directory, the outermost first.
    fn folders(&self, path: &str) -> Vec<PathBuf> {
        let cwd = &self.reader.cwd;
        let path = cwd.join(path);
        let mut folders: Vec<PathBuf> = path
            .ancestors()
            .take_while(|folder| folder.starts_with(cwd) && *folder != cwd)
            .filter(|folder| folder.is_dir())
            .map(Path::to_owned)
            .collect();
        folders.reverse();
        folders
    }

    /// Reads the instructions for a path that are not in the conversation. The second value has notices.
    fn news(&self, path: &str) -> (String, Vec<String>) {
        let (mut text, mut notices) = (String::new(), Vec::new());
        for file in self
            .folders(path)
            .iter()
            .flat_map(|folder| self.reader.in_folder(folder))
        {
            let name = self.reader.shown(&file);
            let mut told = self.told();
            if told.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let used: usize = told.iter().map(|(_, text)| text.len()).sum();
            let mut reading = Reading::new(&self.reader, MOST.saturating_sub(used));
            let block = match reading.file(&file) {
                Ok(found) => self.reader.blocks(&found),
                Err(error) => {
                    notices.push(format!("{name}: not read: {error}"));
                    String::new()
                }
            };
            notices.extend(reading.notices);
            text.push_str(&block);
            told.push((name, block));
        }
        (text, notices)
    }
}

impl Hook for NestedInstructions {
    fn name(&self) -> &str {
        "instructions"
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
impl TurnHook for NestedInstructions {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        self.recall(history);
        TurnAction::default()
    }
}

#[async_trait]
impl CallHook for NestedInstructions {
    async fn after_call(
        &self,
        call: &AdmittedCall,
        _: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let mut output = result?;
        for subject in &call.proposal.subjects {
            let Subject::Path(path) = subject else { continue };
            let (text, notices) = self.news(path);
            if !text.is_empty() {
                output.content.push_str(&format!("\n\n{LEAD}{text}"));
            }
            if !notices.is_empty() {
                let warning = output.warning.get_or_insert_default();
                warning.push_str(&notices.join("\n"));
            }
        }
        Ok(output)
    }
}

#[async_trait]
impl CompactionHook for NestedInstructions {
    async fn before_compact(&self, history: &[Arc<Message>]) -> Option<String> {
        self.recall(history);
        None
    }

    async fn after_compact(&self, history: &[Arc<Message>]) -> Vec<Fragment> {
        let kept = blocks(history);
        let told = self.told();
        let is_gone = |(name, text): &&(String, String)| {
            !text.is_empty() && !kept.iter().any(|(known, _)| known == name)
        };
        let gone = told.iter().filter(is_gone);
        gone.map(|(_, text)| Fragment::new(FragmentSource::Reminder, text.trim_start()))
            .collect()
    }
}

/// Returns the names and texts of the instructions that calls and compactions put into a conversation.
fn blocks(history: &[Arc<Message>]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for part in history.iter().flat_map(|message| &message.parts) {
        let mut rest = match part {
            Part::Context(fragment) if fragment.text.starts_with(START) => fragment.text.as_str(),
            Part::ToolResult(result) => match result.content.split_once(LEAD) {
                Some((_, text)) => text,
                None => continue,
            },
            _ => continue,
        };
        while let Some((block, after)) = rest.split_once(END) {
            let named = block.trim_start().strip_prefix(START);
            if let Some((name, _)) = named.and_then(|block| block.split_once("\">")) {
                found.retain(|(known, _)| known != name);
                found.push((name.to_owned(), format!("{block}{END}")));
            }
            rest = after;
        }
    }
    found
}
