//! The types of keys: validation, description and destination.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use toml_edit::Item;
use windlass_core::permission::Mode;

use super::Settings;
use super::suggest;
use super::typed::{KeyCommand, NetworkAccess, Word};
use super::value::{Value, describe, quote};

/// PROV-11: the part of a message that explains where API keys belong.
pub(super) const NO_SECRETS: &str =
    "keys never live in config files; use `key_env` (the name of an environment variable) or `key_command`";

/// Stores a value in the settings. The path distinguishes the keys of several providers or models.
pub(super) type Set<T> = fn(&mut Settings, &[String], T);

/// Type of a key, with its default and its destination in [`Settings`].
pub(super) enum Kind {
    /// Text that follows a rule.
    Text { rule: TextRule, set: Set<String> },
    /// `true` or `false`.
    Switch { default: Option<bool>, set: Set<bool> },
    /// An integer; both limits are inclusive.
    Integer {
        min: u64,
        max: Option<u64>,
        default: Option<u64>,
        set: Set<u64>,
    },
    /// A number; both limits are inclusive.
    Number {
        min: f64,
        max: Option<f64>,
        default: Option<f64>,
        set: Set<f64>,
    },
    /// A duration; both limits are inclusive. Fractions are allowed.
    Seconds {
        min: f64,
        max: f64,
        default: u64,
        set: Set<Duration>,
    },
    /// One of a fixed set of words.
    Choice {
        words: fn() -> Vec<&'static str>,
        default: Option<&'static str>,
        set: fn(&mut Settings, &[String], &str),
    },
    /// `true`, `false`, or a list of hosts.
    Network { set: Set<NetworkAccess> },
    /// A permission mode, by any of its names.
    Mode { set: Set<Mode> },
    /// A shell command line, or a program and its arguments.
    Command { set: Set<KeyCommand> },
    /// A list of texts, each of which passes a check.
    List {
        default: &'static [&'static str],
        check: fn(&str) -> Result<(), String>,
        set: Set<Vec<String>>,
    },
}

/// Rule for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextRule {
    /// Any text.
    Free,
    /// Not empty, on one line.
    Name,
    /// The name of an environment variable.
    Variable,
    /// Address of a server.
    Url,
    /// A valid HTTP header value.
    Header,
    /// Name of an HTTP header.
    HeaderName,
    /// IP address and port.
    Socket,
    /// IP address.
    Ip,
}

fn host(text: &str) -> Result<(), String> {
    let example = "write a name such as \"example.org\", \"*.example.org\" or \"example.org:8443\"";
    match windlass_sandbox::is_host(text) {
        true => Ok(()),
        false => Err(format!("{} is not a host; {example}", quote(text))),
    }
}

/// Returns the names of the modes.
pub(super) fn mode_names() -> Vec<&'static str> {
    Mode::ALL.iter().map(|mode| mode.name()).collect()
}

/// Returns the words of a choice.
pub(super) fn words<W: Word>() -> Vec<&'static str> {
    W::WORDS.iter().map(|(word, _)| *word).collect()
}

impl Kind {
    /// Returns the default value.
    pub(super) fn default(&self) -> Option<Value> {
        match self {
            Self::Text { .. } | Self::Command { .. } => None,
            Self::List { default, .. } => Some(Value::List(
                default.iter().map(|text| (*text).to_owned()).collect(),
            )),
            Self::Switch { default, .. } => default.map(Value::Switch),
            Self::Integer { default, .. } => default.map(Value::Integer),
            Self::Number { default, .. } => default.map(Value::Number),
            Self::Seconds { default, .. } => Some(Value::Integer(*default)),
            Self::Choice { default, .. } => default.map(|word| Value::Text(word.to_owned())),
            Self::Network { .. } => Some(Value::Switch(false)),
            Self::Mode { .. } => Some(Value::Text(Mode::default().name().to_owned())),
        }
    }

    /// Stores a checked value in the settings.
    pub(super) fn apply(&self, settings: &mut Settings, path: &[String], value: &Value) {
        match (self, value) {
            (Self::Text { set, .. }, Value::Text(text)) => set(settings, path, text.clone()),
            (Self::Switch { set, .. }, Value::Switch(on)) => set(settings, path, *on),
            (Self::Integer { set, .. }, Value::Integer(integer)) => set(settings, path, *integer),
            (Self::Number { set, .. }, Value::Number(number)) => set(settings, path, *number),
            (Self::Seconds { set, .. }, Value::Integer(seconds)) => {
                set(settings, path, Duration::from_secs(*seconds));
            }
            (Self::Seconds { set, .. }, Value::Number(seconds)) => {
                set(
                    settings,
                    path,
                    Duration::try_from_secs_f64(*seconds).unwrap_or_default(),
                );
            }
            (Self::Choice { set, .. }, Value::Text(word)) => set(settings, path, word.as_str()),
            (Self::Network { set }, Value::Switch(true)) => set(settings, path, NetworkAccess::On),
            (Self::Network { set }, Value::Switch(false)) => set(settings, path, NetworkAccess::Off),
            (Self::Network { set }, Value::List(hosts)) => {
                set(settings, path, NetworkAccess::Hosts(hosts.clone()));
            }
            (Self::Mode { set }, Value::Text(name)) => {
                set(settings, path, name.parse().unwrap_or_default());
            }
            (Self::Command { set }, Value::Text(line)) => {
                set(settings, path, KeyCommand::Shell(line.clone()));
            }
            (Self::Command { set }, Value::List(list)) => {
                set(settings, path, KeyCommand::Program(list.clone()));
            }
            (Self::List { set, .. }, Value::List(list)) => set(settings, path, list.clone()),
            // `check` produces no other combinations.
            _ => {}
        }
    }

    /// Checks a value from a file. The error states what was expected and what was found.
    pub(super) fn check(&self, item: &Item) -> Result<Value, String> {
        let value = match self {
            Self::Text { rule, .. } => match item.as_str() {
                Some(text) => return rule.check(text).map(|()| Value::Text(text.to_owned())),
                None => None,
            },
            Self::Switch { .. } => item.as_bool().map(Value::Switch),
            Self::Integer { min, max, .. } => match item.as_integer() {
                Some(integer) => return in_integer_range(integer, *min, *max),
                None => None,
            },
            Self::Number { min, max, .. } => match number(item) {
                Some(number) => return in_range(number, *min, *max).map(|()| Value::Number(number)),
                None => None,
            },
            Self::Seconds { min, max, .. } => match number(item) {
                Some(seconds) => {
                    return in_range(seconds, *min, Some(*max)).map(|()| whole_or_not(item, seconds));
                }
                None => None,
            },
            Self::Choice { words, .. } => match item.as_str() {
                Some(word) => return one_of(word, &words()),
                None => None,
            },
            Self::Network { .. } => match (item.as_bool(), texts(item)) {
                (Some(on), _) => Some(Value::Switch(on)),
                (None, Some(hosts)) => {
                    hosts.iter().try_for_each(|text| host(text))?;
                    Some(Value::List(hosts))
                }
                (None, None) => None,
            },
            Self::Mode { .. } => match item.as_str() {
                Some(name) => {
                    let known = name.parse::<Mode>().map_or(name, |mode| mode.name());
                    return one_of(known, &mode_names());
                }
                None => None,
            },
            Self::Command { .. } => return command(item),
            Self::List { check, .. } => match texts(item) {
                Some(list) => {
                    list.iter().try_for_each(|text| check(text))?;
                    Some(Value::List(list))
                }
                None => None,
            },
        };
        value.ok_or_else(|| self.mismatch(item))
    }

    /// Checks a value given as text, in a variable or a flag. Strings need no quotes.
    pub(super) fn parse(&self, text: &str) -> Result<Value, String> {
        let is_quoted = text.starts_with(['"', '\'']);
        let is_text = matches!(self, Self::Text { .. } | Self::Choice { .. } | Self::Mode { .. });
        let is_line = matches!(self, Self::Command { .. }) && !text.starts_with('[');
        let literal = || toml_edit::Value::from(text);
        let value = if (is_text || is_line) && !is_quoted {
            literal()
        } else {
            text.trim().parse().unwrap_or_else(|_| literal())
        };
        self.check(&Item::Value(value))
    }

    /// Returns for example "an integer", for "expected …".
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Text { .. } => "a string".to_owned(),
            Self::Switch { .. } => "true or false".to_owned(),
            Self::Integer { .. } => "an integer".to_owned(),
            Self::Number { .. } => "a number".to_owned(),
            Self::Seconds { .. } => "a number of seconds".to_owned(),
            Self::Choice { words, .. } => one_of_words(&words()),
            Self::Network { .. } => "`true`, `false` or an array of host names".to_owned(),
            Self::Mode { .. } => one_of_words(&mode_names()),
            Self::Command { .. } => "a string or an array of strings".to_owned(),
            Self::List { .. } => "an array of strings".to_owned(),
        }
    }

    /// Returns for example "an integer, at least 1", for the reference.
    pub(super) fn described(&self) -> String {
        let expected = self.expected();
        match self {
            Self::Integer {
                min: 0, max: None, ..
            } => expected,
            Self::Integer { min, max: None, .. } => format!("{expected}, at least {min}"),
            Self::Integer {
                min, max: Some(max), ..
            } => format!("{expected} from {min} to {max}"),
            Self::Number { min, max: None, .. } => format!("{expected}, at least {min}"),
            Self::Number {
                min, max: Some(max), ..
            } => format!("{expected} from {min} to {max}"),
            Self::Seconds { min, max, .. } => format!("{expected} from {min} to {max}"),
            Self::Text { .. }
            | Self::Switch { .. }
            | Self::Choice { .. }
            | Self::Network { .. }
            | Self::Mode { .. }
            | Self::Command { .. }
            | Self::List { .. } => expected,
        }
    }

    fn mismatch(&self, item: &Item) -> String {
        format!("expected {}, found {}", self.expected(), describe(item))
    }
}

impl TextRule {
    fn check(self, text: &str) -> Result<(), String> {
        let fits = match self {
            Self::Free => true,
            Self::Name => !text.trim().is_empty() && !text.contains(char::is_control),
            Self::Variable => is_variable(text),
            Self::Url => return check_url(text),
            Self::Header => !text.contains(|letter: char| letter.is_control() && letter != '\t'),
            Self::HeaderName => {
                let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
                !text.is_empty() && text.chars().all(is_part)
            }
            Self::Socket => text.parse::<SocketAddr>().is_ok(),
            Self::Ip => text.parse::<IpAddr>().is_ok(),
        };
        if fits {
            return Ok(());
        }
        // The message does not repeat the value: it may be an API key in the wrong place.
        Err(match self {
            Self::Variable => format!("expected the name of an environment variable; {NO_SECRETS}"),
            Self::Header => "expected a header value without line breaks and control characters".to_owned(),
            Self::HeaderName => "expected the name of a header: letters, digits and `-`".to_owned(),
            Self::Socket => "expected an address with a port, such as \"127.0.0.1:4747\"".to_owned(),
            Self::Ip => "expected an IP address without a port, such as \"10.0.0.2\"".to_owned(),
            Self::Free | Self::Name | Self::Url => {
                "expected a string of one line that is not empty".to_owned()
            }
        })
    }
}

fn is_variable(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !text.is_empty() && text.chars().all(is_part) && !text.starts_with(|first: char| first.is_ascii_digit())
}

fn check_url(text: &str) -> Result<(), String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest
        .and_then(|rest| rest.split(['/', '?', '#']).next())
        .filter(|host| !host.is_empty());
    if host.is_some_and(|host| host.contains('@')) {
        return Err(format!(
            "an address may not hold a name and password; {NO_SECRETS}"
        ));
    }
    if host.is_none() || text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err("expected an address such as \"https://api.example.com/v1\"".to_owned());
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)]
fn number(item: &Item) -> Option<f64> {
    item.as_float()
        .or_else(|| item.as_integer().map(|integer| integer as f64))
}

/// Formats `60` without a decimal point.
fn whole_or_not(item: &Item, seconds: f64) -> Value {
    let whole = item.as_integer().and_then(|integer| u64::try_from(integer).ok());
    whole.map_or(Value::Number(seconds), Value::Integer)
}

fn in_integer_range(integer: i64, min: u64, max: Option<u64>) -> Result<Value, String> {
    let fits = |value: &u64| *value >= min && max.is_none_or(|max| *value <= max);
    let value = u64::try_from(integer).ok().filter(fits);
    let limits = match max {
        Some(max) => format!("from {min} to {max}"),
        None => format!("at least {min}"),
    };
    value
        .map(Value::Integer)
        .ok_or_else(|| format!("out of range: expected an integer {limits}, found {integer}"))
}

fn in_range(number: f64, min: f64, max: Option<f64>) -> Result<(), String> {
    let fits = number.is_finite() && number >= min && max.is_none_or(|max| number <= max);
    let limits = match max {
        Some(max) => format!("from {min} to {max}"),
        None => format!("at least {min}"),
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "out of range: expected a number {limits}, found {number}"
        ))
    }
}

fn one_of(word: &str, words: &[&'static str]) -> Result<Value, String> {
    if words.contains(&word) {
        return Ok(Value::Text(word.to_owned()));
    }
    let found = describe(&Item::Value(word.into()));
    let hint = match suggest::nearest(word, words.iter().copied()) {
        Some(near) => format!("; did you mean {}?", quote(near)),
        None => String::new(),
    };
    Err(format!("expected {}, found {found}{hint}", one_of_words(words)))
}

fn one_of_words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    format!("one of {}", words.join(", "))
}

/// Returns the strings of an array that contains nothing else.
fn texts(item: &Item) -> Option<Vec<String>> {
    let parts = item.as_array()?.iter();
    parts.map(|part| part.as_str().map(str::to_owned)).collect()
}

fn command(item: &Item) -> Result<Value, String> {
    let value = match item.as_str() {
        Some(line) => Some(Value::Text(line.to_owned())),
        None => texts(item).map(Value::List),
    };
    let is_blank = |text: &str| text.trim().is_empty();
    match value {
        Some(Value::Text(line)) if !is_blank(&line) => Ok(Value::Text(line)),
        Some(Value::List(list)) if list.first().is_some_and(|program| !is_blank(program)) => {
            Ok(Value::List(list))
        }
        Some(_) => Err("expected a command, found an empty one".to_owned()),
        None => Err(format!(
            "expected a string or an array of strings, found {}",
            describe(item)
        )),
    }
}
