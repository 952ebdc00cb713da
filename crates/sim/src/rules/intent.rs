//! Recognizes the user's intent with a table of patterns.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// Intent of the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Intent {
    Hello,
    WhoAreYou,
    List { path: String },
    Read { path: String },
    Find { pattern: String },
    Search { pattern: String, path: Option<String> },
    Run { command: String },
    RunTests,
    Create { path: String, content: String },
    Replace { path: String, old: String, new: String },
    FixTest,
    Json(Value),
    Summarise,
    Title,
    Unknown,
}

type Reading = fn(&Captures<'_>) -> Intent;

/// The patterns, most specific first. All ignore case.
const TABLE: &[(&str, Reading)] = &[
    (
        r"\b(?:fix|repair|mend)\b.*\b(?:tests?|bug|checks?)\b|\btests?\b.*\bfail",
        |_| Intent::FixTest,
    ),
    (r"^(?:run|execute)\s+(?:all\s+|the\s+|my\s+)*tests?\b", |_| {
        Intent::RunTests
    }),
    (r"^(?:run|execute)\s+(?:the\s+)?(?:command\s+)?(.+)$", |found| {
        Intent::Run {
            command: quoted(found, 1),
        }
    }),
    (
        r"^(?:create|make|add)\s+(?:a\s+|the\s+)?(?:new\s+)?file\s+(?:named\s+|called\s+)?(\S+)\s+(?:with|containing|that\s+says|saying)\s+(?:the\s+)?(?:(?:contents?|text|words?)\b:?\s+)?(.+)$",
        |found| Intent::Create {
            path: path(found, 1),
            content: quoted(found, 2),
        },
    ),
    (
        r"^(?:write|put|save)\s+(.+)\s+(?:to|into|in)\s+(?:the\s+)?(?:file\s+)?(\S+)$",
        |found| Intent::Create {
            path: path(found, 2),
            content: quoted(found, 1),
        },
    ),
    (
        r"^(?:replace|change)\s+(.+?)\s+(?:with|by|to)\s+(.+?)\s+in\s+(?:the\s+)?(?:file\s+)?(\S+)$",
        |found| Intent::Replace {
            path: path(found, 3),
            old: quoted(found, 1),
            new: quoted(found, 2),
        },
    ),
    (
        r"^find\s+(?:all\s+)?(?:the\s+)?(?:files?\s+)?(?:(?:matching|named|called|like)\s+)?(?:the\s+pattern\s+)?(\S*[*?.]\S*)$",
        |found| Intent::Find {
            pattern: path(found, 1),
        },
    ),
    (
        r"^(?:search|grep|look)\s+(?:(?:the\s+)?(?:code|files?|project|folder)\s+)?(?:for\s+)?(.+?)(?:\s+in\s+(?:the\s+)?(?:file\s+|folder\s+)?(\S+))?$",
        |found| Intent::Search {
            pattern: quoted(found, 1),
            path: found.get(2).map(|_| place(found, 2)).filter(|path| path != "."),
        },
    ),
    (
        r"^(?:list|show)\s+(?:me\s+)?(?:all\s+|the\s+|my\s+)*(?:files?|director(?:y|ies)|folders?)(?:\s+(?:in|of)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(\S+).*|\s+here\b.*)?$|^ls(?:\s+(\S+))?$",
        |found| Intent::List {
            path: place(found, if found.get(2).is_some() { 2 } else { 1 }),
        },
    ),
    (
        r"^what(?:'s|\s+is|\s+are|\s+files\s+are)\b.*\b(?:folder|directory|project|here|files)\b",
        |_| Intent::List { path: ".".to_owned() },
    ),
    (
        r"^(?:read|cat|show|open|print|display)\s+(?:me\s+)?(?:the\s+)?(?:(?:file|contents?\s+of)\s+)*(?:the\s+)?(?:file\s+)?(\S+)$",
        |found| Intent::Read { path: path(found, 1) },
    ),
    (
        r"^what(?:'s|\s+is)\s+in\s+(?:the\s+)?(?:file\s+)?(\S*[./]\S*)$",
        |found| Intent::Read { path: path(found, 1) },
    ),
    (
        r"\bsummar(?:y|i[sz]e)\b.*\b(?:conversation|session|transcript|so\s+far|work|context)\b",
        |_| Intent::Summarise,
    ),
    (r"\btitle\b", |_| Intent::Title),
    (
        r"\b(?:who|what)\s+are\s+you\b|\bwhat\s+can\s+you\s+do\b|^help$",
        |_| Intent::WhoAreYou,
    ),
    (
        r"^(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day))\b",
        |_| Intent::Hello,
    ),
];

static PATTERNS: LazyLock<Vec<(Regex, Reading)>> = LazyLock::new(|| {
    TABLE
        .iter()
        .filter_map(|(pattern, reading)| Some((Regex::new(&format!("(?is){pattern}")).ok()?, *reading)))
        .collect()
});

static POLITE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:please|now|then|ok|okay|and|can you|could you|would you|i want you to)[,\s]+").ok()
});

static DONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:call|use|using|calling|invoke|with)\s+(?:the\s+)?[`'\x22]?done\b|\bdone[`'\x22]?\s+tool\b",
    )
    .ok()
});

/// Recognizes the intent of a text. Summaries and titles are only wanted if no tools are offered.
pub(crate) fn read(ask: &str, tools: bool) -> Intent {
    if let Some(schema) = json_schema(ask) {
        return Intent::Json(schema);
    }
    let text = without_politeness(ask);
    PATTERNS
        .iter()
        .find_map(|(pattern, reading)| pattern.captures(text).map(|found| reading(&found)))
        .filter(|intent| !tools || !matches!(intent, Intent::Summarise | Intent::Title))
        .unwrap_or(Intent::Unknown)
}

/// Returns true if a text asks to finish with the `done` tool.
pub(crate) fn demands_done(text: &str) -> bool {
    DONE.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Removes the tagged blocks that a harness puts around the user's text.
pub(crate) fn without_fragments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    // Tags that are not closed are looked for once: a large input may be full of them.
    let mut unclosed = BTreeSet::new();
    while let Some((before, after)) = rest.split_once('<') {
        let name: String = after
            .chars()
            .take_while(|character| character.is_ascii_alphanumeric() || "-_".contains(*character))
            .collect();
        let is_tag = !name.is_empty() && !unclosed.contains(&name);
        let end = format!("</{name}>");
        let block = is_tag.then(|| after.split_once(&end)).flatten();
        out.push_str(before);
        match block {
            Some((_, tail)) => rest = tail,
            None => {
                unclosed.insert(name);
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// Returns the first JSON object in a text that mentions JSON and a schema.
fn json_schema(ask: &str) -> Option<Value> {
    let lower = ask.to_lowercase();
    if !lower.contains("json") || !lower.contains("schema") {
        return None;
    }
    ask.match_indices('{').find_map(|(start, _)| {
        let tail = ask.get(start..)?;
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        values.next()?.ok().filter(|value| {
            ["type", "properties", "$ref", "enum", "anyOf", "oneOf"]
                .iter()
                .any(|key| value.get(key).is_some())
        })
    })
}

fn without_politeness(ask: &str) -> &str {
    let mut text = ask.trim();
    if let Some(pattern) = POLITE.as_ref() {
        while let Some(found) = pattern.find(text) {
            text = text.get(found.end()..).unwrap_or_default();
        }
    }
    text.trim_end_matches(|character: char| character.is_whitespace() || "?!.".contains(character))
}

/// Returns a captured text without its quotes; if only a part of it is quoted, that part.
fn quoted(found: &Captures<'_>, group: usize) -> String {
    let text = found.get(group).map_or("", |found| found.as_str()).trim();
    for quote in ['`', '"', '\''] {
        if let Some(inner) = text
            .strip_prefix(quote)
            .and_then(|text| text.split_once(quote))
            .map(|(inner, _)| inner)
        {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

fn path(found: &Captures<'_>, group: usize) -> String {
    found
        .get(group)
        .map_or("", |found| found.as_str())
        .trim_matches(|character: char| "`\"',;:!?()".contains(character))
        .to_owned()
}

/// Returns a captured directory; words for the current one give a dot.
fn place(found: &Captures<'_>, group: usize) -> String {
    match path(found, group).as_str() {
        "" | "this" | "here" | "current" | "the" | "project" | "it" => ".".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{PATTERNS, TABLE};

    /// PROV-5: a pattern that does not compile would silently be missing.
    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), TABLE.len());
        assert!(super::POLITE.is_some() && super::DONE.is_some());
    }
}
