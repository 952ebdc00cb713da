//! Model data: a built-in table and the user's overrides.

use std::sync::OnceLock;

use serde::Deserialize;
use windlass_core::model::{Model, Price};

/// Context window assumed for an unknown model.
const SAFE_WINDOW: u64 = 128_000;

/// Reply length assumed for an unknown model.
const SAFE_OUTPUT: u64 = 8_192;

/// The user's settings for a model. Fields left out come from the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelOverride {
    /// Model name, as sent to the provider.
    pub id: String,
    /// Maximum number of tokens of a request and its reply together.
    pub context_window: Option<u64>,
    /// Maximum number of tokens of a reply.
    pub max_output: Option<u64>,
    /// Prices.
    pub price: Option<Price>,
    /// True if the model reads images.
    pub images: Option<bool>,
    /// True if the model supports reasoning.
    pub reasoning: Option<bool>,
}

/// Returns the model called `id`, found in the table by its name, an alias, its name without a date or a
/// vendor, or its family, with the user's overrides applied. An unknown model gets safe defaults and `known:
/// false`.
///
/// ```
/// let model = windlass_providers::registry::lookup("anthropic/claude-sonnet-4-5-20250929", &[]);
/// assert_eq!((model.context_window, model.known), (200_000, true));
/// ```
pub fn lookup(id: &str, overrides: &[ModelOverride]) -> Model {
    let row = find(id, entries()).and_then(Entry::read);
    let mut model = row.map_or_else(|| unknown(id), |row| row.model(id));
    if let Some(said) = overrides.iter().rev().find(|said| said.id == id) {
        model.context_window = said.context_window.unwrap_or(model.context_window);
        model.max_output = said.max_output.unwrap_or(model.max_output);
        model.price = said.price.or(model.price);
        model.images = said.images.unwrap_or(model.images);
        model.reasoning = said.reasoning.unwrap_or(model.reasoning);
        model.known |= said.context_window.is_some();
    }
    model
}

/// Returns the names in the table, for completion and hints.
pub fn known_ids() -> impl Iterator<Item = &'static str> {
    entries().iter().filter_map(|entry| entry.names.first().copied())
}

/// Returns up to three names that start like `id`, for the hint beside "model not found".
pub fn similar(id: &str) -> Vec<&'static str> {
    let shared = |other: &str| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<(usize, &str)> = known_ids().map(|other| (shared(other), other)).collect();
    near.retain(|(length, _)| *length >= 4);
    near.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    near.into_iter().take(3).map(|(_, other)| other).collect()
}

fn unknown(id: &str) -> Model {
    Model {
        id: id.to_owned(),
        context_window: SAFE_WINDOW,
        max_output: SAFE_OUTPUT,
        price: None,
        images: false,
        reasoning: false,
        known: false,
    }
}

/// An entry of the table: its names, and its remaining text unparsed. Only the requested entry is parsed,
/// because parsing the whole table would delay the first request.
struct Entry {
    /// The id, followed by the aliases.
    names: Vec<&'static str>,
    text: &'static str,
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| split(include_str!("../data/models.toml")))
}

fn split(table: &'static str) -> Vec<Entry> {
    let texts = table.split("[[model]]").skip(1);
    texts
        .map(|text| {
            let named = text
                .lines()
                .filter(|line| line.starts_with("id = ") || line.starts_with("aliases = "));
            // Every other piece between quotation marks is a name.
            let names = named
                .flat_map(|line| line.split('"').skip(1).step_by(2))
                .collect();
            Entry { names, text }
        })
        .collect()
}

impl Entry {
    /// Parses the entry. The table is part of the program and a test parses all of it; a broken entry counts
    /// as an unknown model.
    fn read(&self) -> Option<Row> {
        let row: Row = toml_edit::de::from_str(self.text).ok()?;
        let names = std::iter::once(&row.id).chain(&row.aliases);
        names.eq(self.names.iter()).then_some(row)
    }
}

fn find<'a>(id: &str, entries: &'a [Entry]) -> Option<&'a Entry> {
    let id = id.to_ascii_lowercase();
    let whole = std::iter::once(id.as_str());
    // `vendor/model` and `accounts/vendor/models/model`: the last segment is the model. A suffix such as
    // `:free` or `:8b` tells how it is served.
    let bare = id.rsplit('/').next().unwrap_or_default();
    let plain = bare.split(':').next().unwrap_or_default();
    whole
        .chain([bare, plain, without_date(plain)])
        .find_map(|name| exact(name, entries))
        .or_else(|| {
            let longest = |entry: &&Entry| {
                let family = entry.names.iter().filter(|name| is_family(name, plain));
                family.map(|name| name.len()).max()
            };
            entries
                .iter()
                .filter(|entry| longest(entry).is_some())
                .max_by_key(longest)
        })
}

fn exact<'a>(name: &str, entries: &'a [Entry]) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.names.contains(&name))
}

/// Returns true if `name` starts with `family` and the match ends at a word boundary: `gpt-5x` is not in
/// `gpt-5`.
fn is_family(family: &str, name: &str) -> bool {
    name.strip_prefix(family)
        .is_some_and(|rest| rest.starts_with(['-', '.', ':', '@', '_']))
}

/// Removes the end of `claude-x-20250929`, `claude-x@20250929`, `gpt-x-2024-08-06` and `x-latest`.
fn without_date(name: &str) -> &str {
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let is_number =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((start, date)) = name.rsplit_once(['-', '@'])
        && is_number(date, 8)
    {
        return start;
    }
    let mut ends = name.rsplitn(4, '-');
    let (day, month, year, start) = (ends.next(), ends.next(), ends.next(), ends.next());
    let dated = [(day, 2), (month, 2), (year, 4)];
    let is_dated = dated
        .into_iter()
        .all(|(part, length)| part.is_some_and(|part| is_number(part, length)));
    start.filter(|_| is_dated).unwrap_or(name)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    #[serde(default)]
    aliases: Vec<String>,
    window: u64,
    output: u64,
    /// Prices for input, output, cache read and cache write.
    price: Option<[f64; 4]>,
    #[serde(default)]
    images: bool,
    #[serde(default)]
    reasoning: bool,
}

impl Row {
    fn model(&self, id: &str) -> Model {
        let price = self.price.map(|[input, output, cache_read, cache_write]| Price {
            input,
            output,
            cache_read,
            cache_write,
        });
        Model {
            id: id.to_owned(),
            context_window: self.window,
            max_output: self.output,
            price,
            images: self.images,
            reasoning: self.reasoning,
            known: true,
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
