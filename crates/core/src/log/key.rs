//! Session keys: the origin of a session's messages, written so that a key identifies one session.
//!
//! | origin | key |
//! |---|---|
//! | the direct conversation with an agent | `agent:<agent>:main` |
//! | a group of a channel | `agent:<agent>:<channel>:group:<group>` |
//! | a person who writes to an account of a channel | `<agent>:<account>:<channel>:dm:<sender>` |
//! | a group that an account of a channel is in | `<agent>:<account>:<channel>:group:<group>` |
//! | a sub-agent started by an agent | `agent:<agent>:subagent:<uuid>` |
//! | a sub-agent started by a sub-agent, `n` levels down | `agent:<agent>:subagent:<uuid>:depth:<n>` |
//! | a sub-agent `n` levels down, with the key or the id of the session above | `agent:<id>:sub:<n>:<parent>` |
//!
//! Each key has one spelling. `<agent>` consists of letters, digits, `_`, `-` and `.`; `<channel>` consists
//! of lowercase letters, digits, `_` and `-`, and is not `subagent` or `sub`; `<account>` is like `<agent>`; `<group>`
//! and `<sender>` are the rest of the key, in the channel's own naming, colons included. In keys with an account, no
//! agent is called `agent`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Maximum length of a key in bytes.
const LONGEST: usize = 512;

/// Origin of a session's messages. In JSON it is the string it is written as.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionKey {
    agent: String,
    route: Route,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Route {
    Main,
    Group {
        channel: String,
        group: String,
    },
    /// A conversation of one account of a channel.
    Account {
        account: String,
        channel: String,
        kind: &'static str,
        name: String,
    },
    SubAgent {
        id: Uuid,
        depth: u8,
    },
    /// A sub-agent below the session with this key or id.
    Sub {
        depth: u8,
        parent: String,
    },
}

/// Reason a text is not a session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a session key: {why}")]
pub struct SessionKeyError {
    text: String,
    why: String,
}

impl SessionKey {
    /// Returns the key of the direct conversation with an agent.
    ///
    /// # Errors
    /// Fails if the agent's name cannot be part of a key.
    pub fn main(agent: &str) -> Result<Self, SessionKeyError> {
        format!("agent:{agent}:main").parse()
    }

    /// Returns the key of a group of a channel.
    ///
    /// # Errors
    /// Fails if one of the names cannot be part of a key.
    pub fn group(agent: &str, channel: &str, group: &str) -> Result<Self, SessionKeyError> {
        format!("agent:{agent}:{channel}:group:{group}").parse()
    }

    /// Returns the key of a sub-agent; depth 1 is a sub-agent started by the agent itself.
    ///
    /// # Errors
    /// Fails if the agent's name cannot be part of a key, the id is not a UUID, or the depth is 0.
    pub fn subagent(agent: &str, id: &str, depth: u8) -> Result<Self, SessionKeyError> {
        match depth {
            1 => format!("agent:{agent}:subagent:{id}").parse(),
            depth => format!("agent:{agent}:subagent:{id}:depth:{depth}").parse(),
        }
    }

    /// Returns the key of a sub-agent. `parent` is the key of the session above, or its id.
    ///
    /// # Errors
    /// Fails if the id or the parent cannot be part of a key, or the depth is 0.
    pub fn sub(id: &str, depth: u8, parent: &str) -> Result<Self, SessionKeyError> {
        format!("agent:{id}:sub:{depth}:{parent}").parse()
    }

    /// Returns the key or the id of the session above; `None` unless the key contains it.
    pub fn parent(&self) -> Option<&str> {
        match &self.route {
            Route::Sub { parent, .. } => Some(parent),
            _ => None,
        }
    }

    /// Returns the person of a direct conversation; `None` for any other key.
    pub fn sender(&self) -> Option<&str> {
        match &self.route {
            Route::Account { kind: "dm", name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the number of agents above the session: 0 unless it belongs to a sub-agent.
    pub fn depth(&self) -> u8 {
        match self.route {
            Route::Main | Route::Group { .. } | Route::Account { .. } => 0,
            Route::SubAgent { depth, .. } | Route::Sub { depth, .. } => depth,
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !matches!(self.route, Route::Account { .. }) {
            f.write_str("agent:")?;
        }
        write!(f, "{}:", self.agent)?;
        match &self.route {
            Route::Account {
                account,
                channel,
                kind,
                name,
            } => write!(f, "{account}:{channel}:{kind}:{name}"),
            Route::Main => f.write_str("main"),
            Route::Group { channel, group } => write!(f, "{channel}:group:{group}"),
            Route::Sub { depth, parent } => write!(f, "sub:{depth}:{parent}"),
            Route::SubAgent { id, depth: 1 } => write!(f, "subagent:{}", id.hyphenated()),
            Route::SubAgent { id, depth } => write!(f, "subagent:{}:depth:{depth}", id.hyphenated()),
        }
    }
}

impl From<SessionKey> for String {
    fn from(key: SessionKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for SessionKey {
    type Error = SessionKeyError;

    fn try_from(text: String) -> Result<Self, SessionKeyError> {
        text.parse()
    }
}

impl FromStr for SessionKey {
    type Err = SessionKeyError;

    fn from_str(text: &str) -> Result<Self, SessionKeyError> {
        parse(text).map_err(|why| SessionKeyError {
            text: text.chars().take(100).collect(),
            why,
        })
    }
}

fn parse(text: &str) -> Result<SessionKey, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let Some(rest) = text.strip_prefix("agent:") else {
        return of_account(text);
    };
    let (agent, rest) = rest
        .split_once(':')
        .ok_or("the agent must be followed by `:main`, `:<channel>:group:<group>`, `:subagent:<uuid>` or `:sub:<depth>:<parent>`")?;
    check_name("an agent's name", agent)?;
    let route = match rest.split_once(':') {
        None if rest == "main" => Route::Main,
        None => {
            return Err(format!(
                "`{rest}` is neither `main` nor the start of a group or sub-agent"
            ));
        }
        Some(("subagent", rest)) => subagent(rest)?,
        Some(("sub", rest)) => sub(rest)?,
        Some((channel, rest)) => group(channel, rest)?,
    };
    Ok(SessionKey {
        agent: agent.to_owned(),
        route,
    })
}

/// Parses a key with an account: `<agent>:<account>:<channel>:dm:<sender>`, or `group` in place of `dm`.
fn of_account(text: &str) -> Result<SessionKey, String> {
    let parts: Vec<&str> = text.splitn(5, ':').collect();
    let [agent, account, channel, kind, name] = parts.as_slice() else {
        return Err(
            "it does not start with `agent:`, and is not `<agent>:<account>:<channel>:dm:<sender>` or `…:group:<group>`"
                .to_owned(),
        );
    };
    check_name("an agent's name", agent)?;
    check_name("an account's name", account)?;
    check_channel(channel)?;
    let kind = match *kind {
        "dm" => "dm",
        "group" => "group",
        _ => return Err("the channel must be followed by `:dm:<sender>` or `:group:<group>`".to_owned()),
    };
    check_peer(name)?;
    Ok(SessionKey {
        agent: (*agent).to_owned(),
        route: Route::Account {
            account: (*account).to_owned(),
            channel: (*channel).to_owned(),
            kind,
            name: (*name).to_owned(),
        },
    })
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("{what} consists of letters, digits, `_`, `-` and `.`"));
    }
    Ok(())
}

fn check_channel(channel: &str) -> Result<(), String> {
    let fits =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-');
    if channel.is_empty() || !channel.chars().all(fits) {
        return Err("a channel's name consists of lowercase letters, digits, `_` and `-`".to_owned());
    }
    Ok(())
}

/// Checks the name of a group or a sender.
fn check_peer(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the group has no name".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Err("the group's name contains control characters".to_owned());
    }
    Ok(())
}

fn group(channel: &str, rest: &str) -> Result<Route, String> {
    check_channel(channel)?;
    let group = rest
        .strip_prefix("group:")
        .ok_or("the channel must be followed by `:group:<group>`")?;
    check_peer(group)?;
    Ok(Route::Group {
        channel: channel.to_owned(),
        group: group.to_owned(),
    })
}

fn subagent(rest: &str) -> Result<Route, String> {
    let (id, depth) = match rest.split_once(':') {
        None => (rest, 1),
        Some((id, depth)) => (id, deeper(depth)?),
    };
    let parsed = Uuid::parse_str(id).map_err(|_| format!("`{id}` is not a UUID"))?;
    if parsed.hyphenated().to_string() != id {
        return Err(format!("`{id}` is not written as a lowercase UUID with hyphens"));
    }
    Ok(Route::SubAgent { id: parsed, depth })
}

fn sub(rest: &str) -> Result<Route, String> {
    let (number, parent) = rest
        .split_once(':')
        .ok_or("a sub-agent must be written as `sub:<depth>:<key of the session above>`")?;
    let depth = number.parse::<u8>().ok().filter(|depth| *depth >= 1);
    let depth = depth
        .filter(|depth| depth.to_string() == number)
        .ok_or_else(|| format!("`{number}` is not a depth from 1 to 255"))?;
    if parent.is_empty() || parent.chars().any(char::is_control) {
        return Err("the key of the session above is empty or contains control characters".to_owned());
    }
    Ok(Route::Sub {
        depth,
        parent: parent.to_owned(),
    })
}

fn deeper(text: &str) -> Result<u8, String> {
    let number = text
        .strip_prefix("depth:")
        .ok_or("the sub-agent may only be followed by `:depth:<n>`")?;
    let depth = number.parse::<u8>().ok().filter(|depth| *depth >= 2);
    depth
        .filter(|depth| depth.to_string() == number)
        .ok_or_else(|| format!("`{number}` is not a depth from 2 to 255; depth 1 is left out"))
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
