//! Suggestions for misspelled keys.

use super::keys::{self, Key, Place, is_pattern, names_secret, render};
use super::kind::NO_SECRETS;
use super::value::clip;

/// Maximum length of compared names: nobody misspells longer ones, and comparing takes quadratic time.
const MAX_COMPARED: usize = 100;

/// Kind of value at an unknown path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A table.
    Table,
    /// Anything else.
    Value,
}

/// Returns the message for an unknown key.
pub(super) fn unknown(path: &[String], found: Found) -> String {
    let leaf = path.last().map_or("", String::as_str);
    if names_secret(leaf) {
        return NO_SECRETS.to_owned();
    }
    if let Some(quoted) = with_quotes(path, found) {
        return format!("unknown key; a name with dots is quoted: `{quoted}`");
    }
    match nearest_key(path, found) {
        Some(near) => format!("unknown key; did you mean `{near}`?"),
        None => format!("unknown key; known here: {}", children(known_start(path))),
    }
}

/// Returns the candidate most similar to a name, if any is close enough.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_COMPARED {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let name = plain(name.strip_prefix("WINDLASS_").unwrap_or(name));
    let limit = (name.chars().count() / 3).clamp(1, 4);
    let distance = |other: &str| {
        let other = plain(other.strip_prefix("WINDLASS_").unwrap_or(other));
        strsim::damerau_levenshtein(&name, &other)
    };
    let scored = candidates.map(|candidate| (distance(candidate), candidate));
    scored
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, near)| near)
}

/// Returns the key that an unknown path probably meant.
///
/// The right name in the wrong section comes first, then a misspelled name in the right section.
pub(super) fn nearest_key(path: &[String], found: Found) -> Option<String> {
    let (leaf, parent) = path.split_last()?;
    let sibling = || {
        let siblings = next_parts(parent).into_iter().filter(|part| !is_pattern(part));
        let near = nearest(leaf, siblings)?.to_owned();
        Some(render(&parent.iter().cloned().chain([near]).collect::<Vec<_>>()))
    };
    if found == Found::Table {
        return sibling();
    }
    let named = || keys::all().filter(|key| !key.is_pattern());
    let same_leaf = |key: &&Key| key.leaf() == leaf;
    let name = |key: &'static Key| key.name.to_owned();
    let near_leaf = || {
        let near = nearest(leaf, named().map(Key::leaf))?;
        named().find(|key| key.leaf() == near)
    };
    let whole = || nearest(&render(path), keys::all().map(|key| key.name)).map(str::to_owned);
    (named().find(same_leaf).map(name))
        .or_else(sibling)
        .or_else(|| keys::all().find(same_leaf).map(name))
        .or_else(whole)
        .or_else(|| near_leaf().map(name))
}

/// Returns the section that was probably meant when a key is used like a section: `[provider.x]`.
pub(super) fn nearest_section(name: &str) -> Option<&'static str> {
    let sections = keys::SECTIONS
        .iter()
        .map(|section| section.name)
        .filter(|section| !section.is_empty());
    nearest(name, sections)
}

/// Lists the names that are valid below a path, for a message.
pub(super) fn children(path: &[String]) -> String {
    next_parts(path).join(", ")
}

/// Suggests quotes: `models.gpt-5.1.images` probably meant `models."gpt-5.1".images`.
fn with_quotes(path: &[String], found: Found) -> Option<String> {
    let (section, rest) = path.split_first()?;
    let (leaf, names) = rest.split_last()?;
    if names.is_empty() || !keys::all().any(|key| key.is_pattern() && key.section() == section) {
        return None;
    }
    let quoted = match found {
        // Only a number follows a dot in the name of a model; other names are misspelled keys.
        Found::Table if leaf.starts_with(|first: char| first.is_ascii_digit()) => {
            vec![section.clone(), rest.join(".")]
        }
        Found::Value if names.len() > 1 => vec![section.clone(), names.join("."), leaf.clone()],
        Found::Table | Found::Value => return None,
    };
    (!matches!(keys::find(&quoted), Place::Unknown)).then(|| clip(&render(&quoted)))
}

/// Returns the longest prefix of a path that is a section.
fn known_start(path: &[String]) -> &[String] {
    let starts = (1..path.len()).rev().filter_map(|length| path.get(..length));
    let mut known = starts.filter(|start| matches!(keys::find(start), Place::Section));
    known.next().unwrap_or_default()
}

/// Returns the parts of keys that follow a path.
fn next_parts(path: &[String]) -> Vec<&'static str> {
    let mut parts = Vec::new();
    for key in keys::all() {
        let fits = key
            .parts()
            .zip(path)
            .all(|(part, name)| is_pattern(part) || part == name);
        if let Some(next) = key
            .parts()
            .nth(path.len())
            .filter(|next| fits && !parts.contains(next))
        {
            parts.push(next);
        }
    }
    parts
}
