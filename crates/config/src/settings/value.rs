//! A checked value, and the format of values in messages and files.

use std::fmt;

use toml_edit::Item;

/// Maximum number of characters of a value or key that a message repeats.
const SHOWN_CHARS: usize = 80;

/// A value that is valid for its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any text, including a choice.
    Text(String),
    /// On or off.
    Switch(bool),
    /// A non-negative integer.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// A program and its arguments.
    List(Vec<String>),
}

impl fmt::Display for Value {
    /// Formats the value as TOML, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quote(text)),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Integer(integer) => write!(f, "{integer}"),
            // `{:?}` keeps the point or exponent without which it would be an integer.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// Formats text as a TOML string on one line.
///
/// JSON's escapes are valid TOML. The control characters that JSON leaves bare are escaped as well: TOML
/// forbids one of them, and a terminal would obey the others when a message repeats text from a repository.
pub fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for letter in serde_json::Value::from(text).to_string().chars() {
        if letter.is_control() {
            quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            quoted.push(letter);
        }
    }
    quoted
}

/// Shortens a text that may be long to its start.
pub(super) fn clip(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Describes a value from a file, for "expected …, found …".
pub(super) fn describe(item: &Item) -> String {
    use toml_edit::Value as Toml;
    match item {
        Item::None => "nothing".to_owned(),
        Item::Table(_) | Item::Value(Toml::InlineTable(_)) => "a table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
        Item::Value(Toml::Array(_)) => "an array".to_owned(),
        Item::Value(Toml::String(text)) => format!("string {}", quote(&clip(text.value()))),
        Item::Value(Toml::Integer(integer)) => format!("integer {}", integer.value()),
        Item::Value(Toml::Float(float)) => format!("float {:?}", float.value()),
        Item::Value(Toml::Boolean(boolean)) => format!("boolean {}", boolean.value()),
        Item::Value(Toml::Datetime(datetime)) => format!("datetime {}", datetime.value()),
    }
}
