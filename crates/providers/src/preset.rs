//! Known vendors: their addresses, wires and quirks.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::wire::{AuthStyle, MaxTokensField, Quirks, ReasoningEcho, Wire};

/// A vendor from the built-in table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// Name in the settings.
    pub name: String,
    /// Wire format the vendor speaks.
    pub wire: Wire,
    /// Base URL; empty if it is known only at run time.
    pub base_url: String,
    /// Environment variables that may hold the key, in order of preference. Empty if no key is needed.
    pub key_variables: Vec<String>,
    /// Environment variables that may hold another base URL.
    pub base_url_variables: Vec<String>,
    /// Model to use when none is set; empty if only the user can know.
    pub default_model: String,
    /// Deviations from the wire's documentation.
    pub quirks: Quirks,
    /// Note for the user about this vendor.
    pub note: String,
}

/// Returns all presets, in table order.
pub fn presets() -> impl Iterator<Item = &'static Preset> + Clone {
    entries().iter().filter_map(Entry::read)
}

/// Returns the preset called `name`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    entries().iter().find(|entry| entry.name == name)?.read()
}

/// Returns the environment variables that may hold a key, of all presets. Parses none of them.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    let lines = entries().iter().flat_map(|entry| entry.text.lines());
    // Every other piece between quotation marks is a name.
    let listed = lines.filter(|line| line.starts_with("keys = "));
    listed.flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// An entry of the table: its name, and its remaining text unparsed. An entry is parsed on first use, because
/// parsing the whole table would delay the first request.
struct Entry {
    name: &'static str,
    text: &'static str,
    preset: OnceLock<Option<Preset>>,
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let texts = include_str!("../data/presets.toml").split("[[preset]]").skip(1);
        texts
            .map(|text| Entry {
                // The name comes first, between the first quotation marks.
                name: text.split('"').nth(1).unwrap_or_default(),
                text,
                preset: OnceLock::new(),
            })
            .collect()
    })
}

impl Entry {
    /// Parses the entry. The table is part of the program and a test parses all of it; a broken entry yields
    /// `None`.
    fn read(&self) -> Option<&Preset> {
        let read = || {
            let row: Row = toml_edit::de::from_str(self.text).ok()?;
            (row.name == self.name).then(|| Preset::from(row))
        };
        self.preset.get_or_init(read).as_ref()
    }
}

impl Preset {
    /// Hint for the user when the key is missing or refused.
    pub fn key_hint(&self) -> String {
        match self.key_variables.as_slice() {
            [] => String::new(),
            variables => format!("set {}", variables.join(" or ")),
        }
    }

    /// Returns the preset's quirks for a key found in `variable`.
    pub fn quirks_for_key(&self, variable: &str) -> Quirks {
        // This variable holds a token of another kind, which is sent in another header.
        let auth = if variable == "ANTHROPIC_AUTH_TOKEN" {
            AuthStyle::Bearer
        } else {
            self.quirks.auth
        };
        Quirks { auth, ..self.quirks }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    wire: RowWire,
    base_url: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    base_url_variables: Vec<String>,
    #[serde(default)]
    model: String,
    #[serde(default)]
    quirks: Vec<RowQuirk>,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RowWire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RowQuirk {
    MaxCompletionTokens,
    EchoReasoningContent,
    EchoReasoningDetails,
    CacheKey,
    ShortCallIds,
    NoStreamOptions,
    PlainToolChoice,
}

impl From<Row> for Preset {
    fn from(row: Row) -> Self {
        let mut quirks = Quirks::default();
        for quirk in row.quirks {
            match quirk {
                RowQuirk::MaxCompletionTokens => quirks.max_tokens = MaxTokensField::MaxCompletionTokens,
                RowQuirk::EchoReasoningContent => quirks.echo = ReasoningEcho::Content,
                RowQuirk::EchoReasoningDetails => quirks.echo = ReasoningEcho::Details,
                RowQuirk::CacheKey => quirks.cache_key = true,
                RowQuirk::ShortCallIds => quirks.short_call_ids = true,
                RowQuirk::NoStreamOptions => quirks.no_stream_options = true,
                RowQuirk::PlainToolChoice => quirks.plain_tool_choice = true,
            }
        }
        let wire = match row.wire {
            RowWire::Anthropic => Wire::Anthropic,
            RowWire::Chat => Wire::Chat,
            RowWire::Responses => Wire::Responses,
            RowWire::Gemini => Wire::Gemini,
        };
        Self {
            name: row.name,
            wire,
            base_url: row.base_url,
            key_variables: row.keys,
            base_url_variables: row.base_url_variables,
            default_model: row.model,
            quirks,
            note: row.note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PROV-4: the table is well-formed and contains the common servers.
    #[test]
    fn the_table_is_well_formed() {
        let presets: Vec<&Preset> = presets().collect();
        assert_eq!(presets.len(), entries().len());
        let variables = presets.iter().flat_map(|preset| &preset.key_variables);
        assert!(variables.eq(key_variables()));
        for name in [
            "anthropic",
            "openai",
            "openai-chat",
            "openrouter",
            "ollama",
            "llama.cpp",
            "vllm",
            "lmstudio",
            "groq",
            "mistral",
            "deepseek",
            "xai",
            "gemini",
            "cerebras",
            "together",
            "fireworks",
            "sim",
        ] {
            assert_eq!(
                presets.iter().filter(|preset| preset.name == name).count(),
                1,
                "{name}"
            );
            assert_eq!(preset(name).map(|preset| preset.name.as_str()), Some(name));
        }
        for preset in presets {
            assert!(
                preset.base_url.is_empty() || reqwest::Url::parse(&preset.base_url).is_ok(),
                "{}",
                preset.name
            );
            assert_eq!(preset.base_url.is_empty(), preset.name == "sim");
        }
    }

    /// PROV-11: hints name the variable that holds the key, and an auth token goes in its own header.
    #[test]
    fn keys_are_named() {
        let anthropic = preset("anthropic").unwrap();
        assert_eq!(
            anthropic.key_hint(),
            "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
        );
        assert_eq!(
            anthropic.quirks_for_key("ANTHROPIC_AUTH_TOKEN").auth,
            AuthStyle::Bearer
        );
        assert_eq!(
            anthropic.quirks_for_key("ANTHROPIC_API_KEY").auth,
            AuthStyle::Wire
        );
        assert_eq!(preset("ollama").unwrap().key_hint(), "");
    }
}
