//! A reply while it arrives: the only place where deltas become both events and parts, so that the output
//! shown is the output stored.

use serde_json::value::RawValue;
use windlass_core::id::CallId;
use windlass_core::message::{Origin, Part, Reasoning, ToolCall};
use windlass_core::model::Usage;
use windlass_core::provider::{Completion, ProviderEvent, StopReason};

use super::Wire;
use super::ids::CallIds;
use super::json::is_object;

/// Index of a block in the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(usize);

#[derive(Debug)]
pub(crate) struct Draft {
    /// Model that replies, as the provider calls it.
    pub(crate) model: String,
    pub(crate) usage: Usage,
    blocks: Vec<Block>,
    ids: CallIds,
    wire: Wire,
    provider: String,
}

#[derive(Debug)]
enum Block {
    Text {
        text: String,
        open: bool,
    },
    Reasoning(Reasoning),
    Call {
        id: String,
        name: String,
        input: String,
        open: bool,
    },
}

type Events = Vec<ProviderEvent>;

impl Draft {
    pub(crate) fn new(wire: Wire, provider: &str, ids: CallIds) -> Self {
        Self {
            model: String::new(),
            usage: Usage::default(),
            blocks: Vec::new(),
            ids,
            wire,
            provider: provider.to_owned(),
        }
    }

    pub(crate) fn open_text(&mut self, events: &mut Events) -> At {
        events.push(ProviderEvent::ContentStart);
        self.push(Block::Text {
            text: String::new(),
            open: true,
        })
    }

    pub(crate) fn open_reasoning(&mut self) -> At {
        self.push(Block::Reasoning(Reasoning::default()))
    }

    pub(crate) fn open_call(&mut self, id: &str, name: &str, events: &mut Events) -> At {
        let id = self.ids.admit(id);
        events.push(ProviderEvent::ToolUseStart {
            id: id.clone(),
            name: name.to_owned(),
        });
        self.push(Block::Call {
            id,
            name: name.to_owned(),
            input: String::new(),
            open: true,
        })
    }

    /// Appends a piece to a block of any kind.
    pub(crate) fn extend(&mut self, at: At, piece: &str, events: &mut Events) {
        if piece.is_empty() {
            return;
        }
        match self.blocks.get_mut(at.0) {
            Some(Block::Text { text, .. }) => {
                text.push_str(piece);
                events.push(ProviderEvent::ContentDelta(piece.to_owned()));
            }
            Some(Block::Reasoning(reasoning)) => {
                reasoning.text.push_str(piece);
                events.push(ProviderEvent::ThinkingDelta(piece.to_owned()));
            }
            Some(Block::Call { id, input, .. }) => {
                input.push_str(piece);
                events.push(ProviderEvent::ToolUseDelta {
                    id: id.clone(),
                    json: piece.to_owned(),
                });
            }
            None => {}
        }
    }

    /// Closes a block after its last piece. Closing it twice has no effect.
    pub(crate) fn close(&mut self, at: At, events: &mut Events) {
        match self.blocks.get_mut(at.0) {
            Some(Block::Text { open, .. }) if *open => {
                *open = false;
                events.push(ProviderEvent::ContentStop);
            }
            Some(Block::Call { id, open, .. }) if *open => {
                *open = false;
                events.push(ProviderEvent::ToolUseStop { id: id.clone() });
            }
            _ => {}
        }
    }

    /// Stores the data that the provider needs to recognise its own reasoning.
    pub(crate) fn seal(&mut self, at: At, signature: Option<String>, redacted: Option<String>) {
        if let Some(Block::Reasoning(reasoning)) = self.blocks.get_mut(at.0) {
            reasoning.signature = signature;
            reasoning.redacted = redacted;
        }
    }

    /// Returns the text of a block so far.
    pub(crate) fn text(&self, at: At) -> &str {
        match self.blocks.get(at.0) {
            Some(Block::Text { text, .. }) => text,
            Some(Block::Reasoning(reasoning)) => &reasoning.text,
            Some(Block::Call { input, .. }) => input,
            None => "",
        }
    }

    /// Returns the id of a call, which may differ from the id the provider gave it.
    pub(crate) fn call_id(&self, at: At) -> &str {
        match self.blocks.get(at.0) {
            Some(Block::Call { id, .. }) => id,
            _ => "",
        }
    }

    /// Takes the reply. `items` are the provider's own, which go back to it as they came.
    pub(crate) fn complete(&mut self, said: Option<StopReason>, items: Vec<Box<RawValue>>) -> Completion {
        let stop = self.settle(said.unwrap_or(StopReason::EndTurn));
        Completion {
            parts: self.take_parts(stop),
            origin: Some(Origin {
                provider: self.provider.clone(),
                wire: self.wire.name().to_owned(),
                items,
            }),
            stop,
            usage: self.usage,
            model: std::mem::take(&mut self.model),
        }
    }

    /// Returns the name of a call.
    pub(crate) fn call_name(&self, at: At) -> &str {
        match self.blocks.get(at.0) {
            Some(Block::Call { name, .. }) => name,
            _ => "",
        }
    }

    /// Corrects the stop reason by the reply's content: servers send `stop` with calls and `tool_calls`
    /// without.
    fn settle(&self, said: StopReason) -> StopReason {
        let calls = self
            .blocks
            .iter()
            .any(|block| matches!(block, Block::Call { .. }));
        match said {
            StopReason::EndTurn if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::EndTurn,
            said => said,
        }
    }

    /// Takes the parts, without empty ones.
    fn take_parts(&mut self, stop: StopReason) -> Vec<Part> {
        // In a truncated reply, any call whose arguments are not a complete object may have been cut; in a
        // complete reply, the arguments are what the model meant to write, JSON or not.
        let cut = stop == StopReason::MaxTokens;
        let parts = std::mem::take(&mut self.blocks)
            .into_iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => (!text.is_empty()).then(|| Part::text(text)),
                Block::Reasoning(reasoning) => {
                    (reasoning != Reasoning::default()).then_some(Part::Reasoning(reasoning))
                }
                Block::Call {
                    id,
                    name,
                    input,
                    open,
                } => {
                    let finished = !open && (!cut || is_object(&input));
                    Some(Part::ToolCall(ToolCall {
                        id: CallId::from(id),
                        name,
                        input,
                        finished,
                    }))
                }
            });
        parts.collect()
    }

    fn push(&mut self, block: Block) -> At {
        self.blocks.push(block);
        At(self.blocks.len() - 1)
    }
}
