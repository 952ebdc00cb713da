//! Token estimates and a model of prompt caching.
//!
//! A request is a row of items: tools, system blocks, then message blocks. Each has a hash, and each prefix
//! of the row has a rolling one. On the Anthropic wire a prefix is stored at each `cache_control` marker and
//! found again by looking back at most [`LOOKBACK`] blocks from a marker, as in the real service; on the
//! OpenAI wires every prefix is stored and found. Cache markers themselves do not change a hash.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::answer::{Answer, UsageOverride};
use crate::wire::Protocol;

/// Number of blocks before a marker in which the Anthropic service looks for a stored prefix.
const LOOKBACK: usize = 20;

/// Token counts of one exchange. `input` counts tokens that were neither read from nor written to the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
}

impl Usage {
    /// Returns the size of the whole prompt, as the OpenAI wires count it.
    pub(crate) const fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Adds the answer's tokens and applies the counts that a script fixed.
    pub(crate) fn complete(mut self, answer: &Answer) -> Self {
        let UsageOverride {
            input,
            output,
            cache_read,
            cache_write,
        } = answer.usage;
        self.input = input.unwrap_or(self.input);
        self.output = output.unwrap_or_else(|| answer.tokens());
        self.cache_read = cache_read.unwrap_or(self.cache_read);
        self.cache_write = cache_write.unwrap_or(self.cache_write);
        self.reasoning = answer.thinking_tokens().min(self.output);
        self
    }
}

/// Prefixes this server has seen.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    prefixes: HashSet<u64>,
}

/// One prefix of a request.
struct Prefix {
    hash: u64,
    characters: usize,
    marked: bool,
}

impl PromptCache {
    /// Compares a request with earlier ones, and remembers it.
    pub(crate) fn measure(&mut self, wire: Protocol, body: &Value) -> Usage {
        let prefixes = Row::of(wire, body).prefixes;
        let total = prefixes.last().map_or(0, Prefix::tokens);
        let (read_end, write_end) = match wire {
            Protocol::Anthropic => self.anthropic(&prefixes),
            Protocol::Chat | Protocol::Responses | Protocol::Gemini => self.automatic(&prefixes),
        };
        let tokens_at = |end: usize| {
            end.checked_sub(1)
                .and_then(|index| prefixes.get(index))
                .map_or(0, Prefix::tokens)
        };
        let cache_read = tokens_at(read_end);
        let cache_write = tokens_at(write_end).saturating_sub(cache_read);
        Usage {
            input: total - cache_read - cache_write,
            cache_read,
            cache_write,
            ..Usage::default()
        }
    }

    /// Returns the number of items read from and written to the cache.
    fn anthropic(&mut self, prefixes: &[Prefix]) -> (usize, usize) {
        let markers = || (0..prefixes.len()).filter(|index| prefixes[*index].marked);
        let read = markers()
            .rev()
            .flat_map(|marker| (marker.saturating_sub(LOOKBACK)..=marker).rev())
            .find(|index| self.prefixes.contains(&prefixes[*index].hash))
            .map_or(0, |index| index + 1);
        let write = markers().next_back().map_or(0, |index| index + 1);
        for marker in markers() {
            self.prefixes.insert(prefixes[marker].hash);
        }
        (read, write)
    }

    fn automatic(&mut self, prefixes: &[Prefix]) -> (usize, usize) {
        let read = prefixes
            .iter()
            .take_while(|prefix| self.prefixes.contains(&prefix.hash))
            .count();
        for prefix in prefixes.iter().skip(read) {
            self.prefixes.insert(prefix.hash);
        }
        (read, read)
    }
}

impl Prefix {
    fn tokens(&self) -> u64 {
        (self.characters as u64).div_ceil(4)
    }
}

/// A request as a row of prefixes.
struct Row {
    prefixes: Vec<Prefix>,
    rolling: u64,
    characters: usize,
}

impl Row {
    fn of(wire: Protocol, body: &Value) -> Self {
        // Caches are not shared between models or wires.
        let mut hasher = DefaultHasher::new();
        (wire, body["model"].as_str()).hash(&mut hasher);
        let mut row = Self {
            prefixes: Vec::new(),
            rolling: hasher.finish(),
            characters: 0,
        };
        row.add_all("tool", &body["tools"]);
        match wire {
            Protocol::Anthropic => {
                row.add_all("system", &body["system"]);
                for message in body["messages"].as_array().into_iter().flatten() {
                    let role = message["role"].as_str().unwrap_or_default();
                    row.add_all(role, &message["content"]);
                }
            }
            Protocol::Chat => row.add_all("message", &body["messages"]),
            Protocol::Gemini => {
                row.add_all("system", &body["systemInstruction"]);
                row.add_all("content", &body["contents"]);
            }
            Protocol::Responses => {
                row.add_all("system", &body["instructions"]);
                row.add_all("item", &body["input"]);
            }
        }
        row
    }

    /// Adds each element of an array, or a string as if it were one text block.
    fn add_all(&mut self, label: &str, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(label, item)),
            Value::Null => {}
            other => self.add(label, other),
        }
    }

    fn add(&mut self, label: &str, item: &Value) {
        let mut hasher = DefaultHasher::new();
        self.rolling.hash(&mut hasher);
        label.hash(&mut hasher);
        // A plain string and a single text block are the same prompt.
        match (item["type"].as_str(), item["text"].as_str()) {
            (Some("text"), Some(text)) => self.characters += hash_text(text, &mut hasher),
            _ => self.characters += hash_value(item, &mut hasher),
        }
        self.rolling = hasher.finish();
        self.prefixes.push(Prefix {
            hash: self.rolling,
            characters: self.characters,
            marked: item["cache_control"].is_object(),
        });
    }
}

/// Hashes a value without its cache markers and counts the characters of its text.
fn hash_value(value: &Value, hasher: &mut DefaultHasher) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(flag) => {
            flag.hash(hasher);
            1
        }
        Value::Number(number) => {
            number.hash(hasher);
            1
        }
        Value::String(text) => hash_text(text, hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().map(|item| hash_value(item, hasher)).sum()
        }
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "cache_control")
            .map(|(key, item)| {
                key.hash(hasher);
                key.len() + hash_value(item, hasher)
            })
            .sum(),
    }
}

fn hash_text(text: &str, hasher: &mut DefaultHasher) -> usize {
    text.hash(hasher);
    text.chars().count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::{Value, json};

    use super::PromptCache;
    use crate::wire::Protocol;

    fn marked(text: &str) -> Value {
        json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
    }

    fn ask(messages: &Value) -> Value {
        json!({"model": "m", "max_tokens": 9, "messages": messages})
    }

    /// PROV-2: a request reads the prefix that an earlier one wrote up to its marker, even if the marker has
    /// moved.
    #[test]
    fn anthropic_reads_what_a_marker_wrote() {
        let mut cache = PromptCache::default();
        let long = "x".repeat(400);
        let first = ask(&json!([{"role": "user", "content": [marked(&long)]}]));
        let usage = cache.measure(Protocol::Anthropic, &first);
        assert_eq!((usage.cache_read, usage.input), (0, 0));
        assert!(usage.cache_write >= 100);

        let second = ask(&json!([
            {"role": "user", "content": long},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": [marked(&"y".repeat(40))]},
        ]));
        let next = cache.measure(Protocol::Anthropic, &second);
        assert_eq!(next.cache_read, usage.cache_write);
        assert!(next.cache_write >= 10 && next.input == 0);
    }

    /// PROV-2: without a marker nothing is cached, and a changed prefix is not read.
    #[test]
    fn anthropic_needs_a_marker_and_an_equal_prefix() {
        let mut cache = PromptCache::default();
        let plain = ask(&json!([{"role": "user", "content": "hello there"}]));
        for _ in 0..2 {
            let usage = cache.measure(Protocol::Anthropic, &plain);
            assert_eq!((usage.cache_read, usage.cache_write), (0, 0));
        }
        let first = ask(&json!([{"role": "user", "content": [marked("one")]}]));
        let other = ask(&json!([{"role": "user", "content": [marked("two")]}]));
        cache.measure(Protocol::Anthropic, &first);
        assert_eq!(cache.measure(Protocol::Anthropic, &other).cache_read, 0);
    }

    /// PROV-3: the OpenAI wires cache every prefix without a marker.
    #[test]
    fn openai_caches_by_itself() {
        let mut cache = PromptCache::default();
        let first = ask(&json!([{"role": "user", "content": "z".repeat(80)}]));
        assert_eq!(cache.measure(Protocol::Chat, &first).cache_read, 0);
        let again = cache.measure(Protocol::Chat, &first);
        assert_eq!((again.input, again.cache_write), (0, 0));
        assert!(again.cache_read >= 20);
    }
}
