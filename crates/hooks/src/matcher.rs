//! Matchers: which calls, sources or agent types a hook is for.

use regex::Regex;

/// A matcher of a hook file.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    All,
    Names(Vec<String>),
    Pattern(Box<Regex>),
    /// It cannot be read. It matches everything: a guard with a typo must not stop guarding.
    Broken(String),
}

impl Matcher {
    /// Reads a matcher. An empty text and `*` match everything, a list of names separated by `|` or `,` these names,
    /// and anything else is a regular expression that may match anywhere.
    pub fn new(text: &str) -> Self {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_- ,|".contains(letter);
        let kind = match text.trim() {
            "" | "*" => Kind::All,
            names if names.chars().all(is_plain) => {
                let names = names.split(['|', ',']).map(|name| name.trim().to_owned());
                Kind::Names(names.filter(|name| !name.is_empty()).collect())
            }
            pattern => match Regex::new(pattern) {
                Ok(regex) => Kind::Pattern(Box::new(regex)),
                Err(error) => Kind::Broken(last_line(&error.to_string())),
            },
        };
        Self {
            text: text.to_owned(),
            kind,
        }
    }

    /// The text of the matcher; `*` for one that matches everything.
    pub fn text(&self) -> &str {
        match self.kind {
            Kind::All => "*",
            _ => &self.text,
        }
    }

    /// Returns true if the matcher is for one of these names.
    pub fn fits(&self, names: &[String]) -> bool {
        match &self.kind {
            Kind::All | Kind::Broken(_) => true,
            Kind::Names(wanted) => names.iter().any(|name| wanted.contains(name)),
            Kind::Pattern(regex) => names.iter().any(|name| regex.is_match(name)),
        }
    }

    /// Returns the reason why the matcher cannot be read.
    pub fn problem(&self) -> Option<&str> {
        match &self.kind {
            Kind::Broken(why) => Some(why),
            _ => None,
        }
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-1: names are compared as a whole, lists are split, and everything else is a pattern without anchors.
    #[test]
    fn matchers_follow_claude() {
        let cases = [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashOutput", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Write", true),
            ("Edit|Write", "MultiEdit", false),
            ("Edit.*", "MultiEdit", true),
            ("^Edit", "MultiEdit", false),
            ("mcp__memory__.*", "mcp__memory__store", true),
            ("mcp__.*__write", "mcp__files__read", false),
            ("Bash(", "Read", true),
        ];
        for (matcher, name, expected) in cases {
            let fits = Matcher::new(matcher).fits(&[name.to_owned()]);
            assert_eq!(fits, expected, "{matcher:?} and {name}");
        }
        assert!(Matcher::new("Bash(").problem().is_some());
    }
}
