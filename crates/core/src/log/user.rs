//! Users of a store: the owners of sessions, memory and spending.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Name of the local user in texts.
const LOCAL: &str = "local";
/// Maximum length of a name in bytes.
const LONGEST: usize = 128;

/// DIST-7: name of a user. The default is the local user, who owns everything that nobody else does; in JSON it is an
/// empty string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserName(String);

/// Reason a text is not the name of a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name of a user: 1 to {LONGEST} visible characters, without spaces and without any of : / \\ = , @ at its start"
)]
pub struct UserNameError(String);

impl UserName {
    /// Returns true for the local user.
    pub fn is_local(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name as it is stored: empty for the local user.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name under which something of this user is stored beside those of other users: a folder in memory, a
    /// key, a preference. Names of the local user stay as they are.
    pub fn scoped(&self, name: &str) -> String {
        match self.is_local() {
            true => name.to_owned(),
            false => format!("@{}:{name}", self.0),
        }
    }

    /// Splits a name made by [`Self::scoped`]. A name that starts with `@` and has no user is the local user's.
    pub fn split(scoped: &str) -> (Self, &str) {
        let named = scoped.strip_prefix('@').and_then(|rest| rest.split_once(':'));
        match named {
            Some((user, name)) => (Self(user.to_owned()), name),
            None => (Self::default(), scoped),
        }
    }

    /// Reads a name from the store.
    pub fn stored(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl FromStr for UserName {
    type Err = UserNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |sign: char| {
            !sign.is_whitespace() && !sign.is_control() && !matches!(sign, ':' | '/' | '\\' | '=' | ',')
        };
        match text {
            LOCAL => Ok(Self::default()),
            // `*` means all users.
            "" | "*" => Err(UserNameError(text.to_owned())),
            text if text.len() <= LONGEST
                && !text.starts_with('@')
                && text.chars().all(is_allowed)
                && crate::text::hidden(text).is_none() =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(UserNameError(
                text.chars()
                    .filter(|sign| !sign.is_control())
                    .take(LONGEST)
                    .collect(),
            )),
        }
    }
}

impl TryFrom<String> for UserName {
    type Error = UserNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "" => Ok(Self::default()),
            text => text.parse(),
        }
    }
}

impl From<UserName> for String {
    fn from(user: UserName) -> Self {
        user.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_local() { LOCAL } else { &self.0 })
    }
}

impl JsonSchema for UserName {
    fn schema_name() -> Cow<'static, str> {
        "UserName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIST-7: names of two users never meet, and the local user's names stay as they were.
    #[test]
    fn names_are_kept_apart() {
        let ann: UserName = "ann@example.com".parse().unwrap();
        for name in ["", "/home/x", "agent:a:main", "@bob:/home/x"] {
            assert_eq!(UserName::split(&ann.scoped(name)), (ann.clone(), name));
        }
        assert_eq!(UserName::default().scoped("/home/x"), "/home/x");
        assert_eq!(UserName::split("/home/x"), (UserName::default(), "/home/x"));
        assert!("local".parse::<UserName>().unwrap().is_local());
        for wrong in [
            "",
            "*",
            "@ann",
            "a b",
            "a:b",
            "a/b",
            "a\u{7}",
            "a\u{200b}nn",
            "a\u{202e}nn",
            &"x".repeat(129),
        ] {
            assert!(wrong.parse::<UserName>().is_err(), "{wrong:?}");
        }
    }
}
