//! Fields of a chat stream chunk, parsed as tolerantly as servers write them.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::model::Usage;

use crate::wire::json::{Fields, argument_text, if_readable, token_count};

#[derive(Deserialize)]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) model: Option<String>,
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u64>,
    pub(super) delta: Option<Delta>,
    /// The whole message, sent by servers that do not stream.
    pub(super) message: Option<Delta>,
    pub(super) finish_reason: Option<String>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) usage: Option<Counts>,
}

#[derive(Deserialize)]
pub(super) struct Delta {
    content: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) reasoning_details: Option<Vec<Box<RawValue>>>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Option<Vec<Fragment>>,
}

/// A piece of a tool call.
pub(super) struct Fragment {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<Function>,
    /// Other fields the vendor sent with the call, such as a thought signature it wants back.
    pub(super) rest: Fields,
}

impl<'de> Deserialize<'de> for Fragment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut rest = Fields::deserialize(deserializer)?;
        Ok(Self {
            index: rest.take("index").and_then(|index| position(index.get())),
            id: taken(&mut rest, "id")?,
            function: taken(&mut rest, "function")?,
            rest,
        })
    }
}

/// Reads the place of a call. Some servers send it in quotes, and others a number that is none.
fn position(index: &str) -> Option<u64> {
    index.trim_matches('"').parse().ok()
}

fn taken<T: DeserializeOwned, E: Error>(fields: &mut Fields, name: &str) -> Result<Option<T>, E> {
    match fields.take(name) {
        Some(value) => serde_json::from_str(value.get()).map_err(E::custom),
        None => Ok(None),
    }
}

#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Counts {
    #[serde(default, deserialize_with = "token_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "if_readable")]
    prompt_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "if_readable")]
    completion_tokens_details: Option<OutputDetails>,
    #[serde(default, deserialize_with = "token_count")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "token_count")]
    reasoning_tokens: Option<u64>,
}

impl Counts {
    fn reasoning(&self) -> u64 {
        let details = self.completion_tokens_details.as_ref();
        let reasoning = details.and_then(|details| details.reasoning_tokens).unwrap_or(0);
        reasoning.min(self.completion_tokens.unwrap_or(0))
    }

    /// Returns the counts without overlap: on this wire, cached tokens are part of the prompt's count.
    pub(super) fn usage(&self) -> Usage {
        let prompt = self.prompt_tokens.unwrap_or(0);
        let details = self
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens);
        let cached = details.or(self.prompt_cache_hit_tokens).unwrap_or(0).min(prompt);
        Usage {
            input: prompt - cached,
            output: self.completion_tokens.unwrap_or(0),
            cache_read: cached,
            reasoning: self.reasoning(),
            ..Usage::default()
        }
    }
}

impl Delta {
    pub(super) fn text(&self) -> String {
        match &self.content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => joined(blocks, "text"),
            _ => String::new(),
        }
    }

    /// Returns the reasoning text, under any of its names.
    pub(super) fn reasoning(&self) -> String {
        for place in [&self.reasoning_content, &self.reasoning] {
            if let Some(Value::String(text)) = place
                && !text.is_empty()
            {
                return text.clone();
            }
        }
        match &self.content {
            Some(Value::Array(blocks)) => blocks
                .iter()
                .filter_map(|block| block.get("thinking"))
                .map(|thinking| match thinking {
                    Value::Array(inner) => joined(inner, "text"),
                    other => other.as_str().unwrap_or_default().to_owned(),
                })
                .collect(),
            _ => String::new(),
        }
    }
}

impl Function {
    /// Returns the arguments as text; some servers send the object itself.
    pub(super) fn arguments(&self) -> String {
        let Some(arguments) = self.arguments.as_deref().map(RawValue::get) else {
            return String::new();
        };
        argument_text(arguments)
    }
}

fn joined(blocks: &[Value], name: &str) -> String {
    blocks
        .iter()
        .filter_map(|block| block.get(name))
        .filter_map(Value::as_str)
        .collect()
}
