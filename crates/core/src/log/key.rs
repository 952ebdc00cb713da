//! Session keys: the origin of a session's messages, written so that a key identifies one session.
//!
//! | origin | key |
//! |---|---|
//! | the direct conversation with an agent | `agent:<agent>:main` |
//! | a group of a channel | `agent:<agent>:<channel>:group:<group>` |
//! | a sub-agent started by an agent | `agent:<agent>:subagent:<uuid>` |
//! | a sub-agent started by a sub-agent, `n` levels down | `agent:<agent>:subagent:<uuid>:depth:<n>` |
//! | a sub-agent `n` levels down, with the key or the id of the session above | `agent:<id>:sub:<n>:<parent>` |
//!
//! Each key has one spelling. `<agent>` consists of letters, digits, `_`, `-` and `.`; `<channel>` consists
//! of lowercase letters, digits, `_` and `-`, and is not `subagent` or `sub`; `<group>` is the rest of the key, in the
//! channel's own naming, colons included.

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

    /// Returns the agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the number of agents above the session: 0 unless it belongs to a sub-agent.
    pub fn depth(&self) -> u8 {
        match self.route {
            Route::Main | Route::Group { .. } => 0,
            Route::SubAgent { depth, .. } | Route::Sub { depth, .. } => depth,
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent:{}:", self.agent)?;
        match &self.route {
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
    let rest = text
        .strip_prefix("agent:")
        .ok_or("it does not start with `agent:`")?;
    let (agent, rest) = rest
        .split_once(':')
        .ok_or("the agent must be followed by `:main`, `:<channel>:group:<group>`, `:subagent:<uuid>` or `:sub:<depth>:<parent>`")?;
    let in_agent = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if agent.is_empty() || !agent.chars().all(in_agent) {
        return Err("an agent's name consists of letters, digits, `_`, `-` and `.`".to_owned());
    }
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

fn group(channel: &str, rest: &str) -> Result<Route, String> {
    let in_channel =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-');
    if channel.is_empty() || !channel.chars().all(in_channel) {
        return Err("a channel's name consists of lowercase letters, digits, `_` and `-`".to_owned());
    }
    let group = rest
        .strip_prefix("group:")
        .ok_or("the channel must be followed by `:group:<group>`")?;
    if group.is_empty() {
        return Err("the group has no name".to_owned());
    }
    if group.chars().any(char::is_control) {
        return Err("the group's name contains control characters".to_owned());
    }
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
