//! The table of keys, one file per section, and the lookup of a dotted path in it.
//!
//! Adding a key means adding an entry; everything else follows from it.

mod agent;
mod agents;
mod checkpoints;
mod code;
mod context;
mod goal;
mod mcp;
mod memory;
mod models;
mod providers;
mod retry;
mod security;
mod server;
mod session;
mod telemetry;
mod timeouts;
mod tools;
mod top;
mod tui;

use super::kind::{Kind, NO_SECRETS};
use super::value::quote;

/// CFG-3: a self-describing key.
pub(super) struct Key {
    /// Dotted name; a part such as `<name>` matches any name.
    pub name: &'static str,
    /// Type, range, default, and destination in the settings.
    pub kind: Kind,
    /// Description of the key.
    pub help: &'static str,
    /// Effect of changing the value.
    pub effect: &'static str,
    /// Example value, as TOML.
    pub example: &'static str,
    /// True if a project's file may set the key. A cloned repository is not trusted, so this is limited to
    /// keys that cannot send keys or data elsewhere, widen permissions or replace instructions.
    pub project_ok: bool,
}

/// A group of keys.
pub(super) struct Section {
    /// First part of the section's keys; empty for keys without a section.
    pub name: &'static str,
    /// Description of the section.
    pub help: &'static str,
    /// Keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// CFG-3: every section, in the order of the reference.
pub(super) static SECTIONS: &[&Section] = &[
    &top::SECTION,
    &agent::SECTION,
    &agents::SECTION,
    &goal::SECTION,
    &goal::AUTONOMY,
    &tools::SECTION,
    &retry::SECTION,
    &timeouts::SECTION,
    &context::SECTION,
    &memory::SECTION,
    &code::SECTION,
    &security::SECTION,
    &session::SECTION,
    &server::SECTION,
    &server::CHANNEL,
    &checkpoints::SECTION,
    &tui::SECTION,
    &telemetry::SECTION,
    &telemetry::LOG,
    &providers::SECTION,
    &models::SECTION,
    &mcp::SECTION,
    &mcp::SERVERS,
];

/// A day, in seconds: an upper limit for every timeout.
const DAY: f64 = 86_400.0;

/// Result of looking up a path.
pub(super) enum Place {
    /// A key.
    Key(&'static Key),
    /// A table of keys.
    Section,
    /// Neither a key nor a table.
    Unknown,
}

/// Headers that carry an API key.
const KEY_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
];

/// Every key, in the order of the reference.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|section| section.keys)
}

/// Looks up a path.
pub(super) fn find(path: &[String]) -> Place {
    let mut place = Place::Unknown;
    for key in all() {
        let fits = key
            .parts()
            .zip(path)
            .all(|(part, name)| is_pattern(part) || part == name);
        match key.parts().count().cmp(&path.len()) {
            std::cmp::Ordering::Equal if fits => return Place::Key(key),
            std::cmp::Ordering::Greater if fits => place = Place::Section,
            _ => {}
        }
    }
    place
}

/// Formats a path as written in a file.
pub(super) fn render(path: &[String]) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let part = |name: &String| {
        let bare = !name.is_empty() && name.chars().all(is_bare);
        if bare { name.clone() } else { quote(name) }
    };
    path.iter().map(part).collect::<Vec<_>>().join(".")
}

/// Returns true if a part of a key matches any name.
pub(super) fn is_pattern(part: &str) -> bool {
    part.starts_with('<')
}

/// PROV-11: returns true if a name suggests that its value is an API key.
pub(super) fn names_secret(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let whole = ["key", "token", "secret", "password", "bearer"];
    let endings = ["apikey", "authtoken", "accesstoken", "secretkey"];
    whole.contains(&name.as_str()) || endings.iter().any(|ending| name.ends_with(ending))
}

impl Key {
    /// Returns the parts between the dots.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.name.split('.')
    }

    /// Returns the last part.
    pub(super) fn leaf(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Returns true if the entry describes many keys, one per provider or model.
    pub(super) fn is_pattern(&self) -> bool {
        self.name.contains('<')
    }

    /// Name of the section.
    pub(super) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// CFG-1: name of the environment variable that sets the key.
    pub(super) fn env_name(&self) -> Option<String> {
        let name = || format!("WINDLASS_{}", self.name.replace('.', "_").to_uppercase());
        (!self.is_pattern()).then(name)
    }

    /// Checks the names at the key's patterns.
    pub(super) fn check_names(&self, path: &[String]) -> Result<(), String> {
        for (part, name) in self.parts().zip(path) {
            match part {
                "<header>" => check_header(name)?,
                part if is_pattern(part) && name.trim().is_empty() => {
                    return Err(format!("expected a name for {part}, found an empty one"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn check_header(name: &str) -> Result<(), String> {
    if KEY_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("this header carries a key, and {NO_SECRETS}"));
    }
    let is_token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err("expected the name of a header: letters, digits and `-`".to_owned());
    }
    Ok(())
}

/// Converts a limit. A limit beyond the range of `u32` is no limit, so it may be cut.
fn small(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
