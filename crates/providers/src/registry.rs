//! What is known about models: a built-in table, and what the user says instead.

use std::sync::OnceLock;

use serde::Deserialize;
use windlass_core::model::{Model, Price};

/// The window assumed for a model nobody described.
const SAFE_WINDOW: u64 = 128_000;

/// The reply length assumed for a model nobody described.
const SAFE_OUTPUT: u64 = 8_192;

/// What the user says about a model. What is left out comes from the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelOverride {
    /// The model's name, as it is sent to the provider.
    pub id: String,
    /// The most tokens of a request and its reply together.
    pub context_window: Option<u64>,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
    /// Prices.
    pub price: Option<Price>,
    /// Whether it reads images.
    pub images: Option<bool>,
    /// Whether it can be asked to reason.
    pub reasoning: Option<bool>,
}

/// The model called `id`: from the table by its name, an alias, its name without a date or a vendor, or
/// its family; with the user's overrides on top. An unknown one gets safe defaults and `known: false`.
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

/// The names in the table, for completion and hints.
pub fn known_ids() -> impl Iterator<Item = &'static str> {
    entries().iter().filter_map(|entry| entry.names.first().copied())
}

/// Up to three names that begin like `id`, for a hint beside "model not found".
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

/// An entry of the table: its names, and the rest as it stands there. Only the entry that is asked for is read whole,
/// because the first request waits for it.
struct Entry {
    /// The id, then the aliases.
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
    /// The entry read whole. The table is part of the program and a test reads all of it; a broken entry is unknown.
    fn read(&self) -> Option<Row> {
        let row: Row = toml_edit::de::from_str(self.text).ok()?;
        let names = std::iter::once(&row.id).chain(&row.aliases);
        names.eq(self.names.iter()).then_some(row)
    }
}

fn find<'a>(id: &str, entries: &'a [Entry]) -> Option<&'a Entry> {
    let id = id.to_ascii_lowercase();
    let whole = std::iter::once(id.as_str());
    // `vendor/model` and `accounts/vendor/models/model`: the model is what stands last. A suffix such
    // as `:free` or `:8b` says how it is served.
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

/// Whether `name` begins with `family` and goes on at a word's end: `gpt-5` is no `gpt-5x`.
fn is_family(family: &str, name: &str) -> bool {
    name.strip_prefix(family)
        .is_some_and(|rest| rest.starts_with(['-', '.', ':', '@', '_']))
}

/// `claude-x-20250929`, `claude-x@20250929`, `gpt-x-2024-08-06` and `x-latest` without their ends.
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
    /// Input, output, cache read, cache write.
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
