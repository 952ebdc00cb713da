//! Definitions in languages without a grammar: lines that start with a usual keyword.

use std::sync::LazyLock;

use regex::Regex;

use super::{Definition, DefinitionKind, MAX_DEFINITIONS};

const PATTERN: &str = r"(?xm)
    ^[\ \t]*
    (?:(?:export|default|public|private|protected|internal|static|final|abstract|async|override|virtual|sealed|open|
        inline|pure|partial|local|pub|unsafe|extern|data|case|lazy|implicit|declare|readonly|mutating|
        create|or|replace|temporary)[\ \t]+){0,6}
    (?P<keyword>def|defp|defmacro|defn|defn-|defun|func|fun|function|fn|sub|proc|procedure|method|
        class|struct|enum|interface|trait|protocol|type|record|object|union|table|view|message|service|
        module|defmodule|namespace|package|
        const|val|let)
    [\ \t]+(?:\([^)\n]{0,80}\)[\ \t]*)?
    (?P<name>[A-Za-z_$][A-Za-z0-9_$]*(?:(?:\.|::|:)[A-Za-z_$][A-Za-z0-9_$]*){0,6}[?!]?)";

static DEFINITION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?i-u:){PATTERN}")).ok());

/// Returns the definitions that a text seems to have.
pub(super) fn scan(text: &str) -> Vec<Definition> {
    let Some(pattern) = DEFINITION.as_ref() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut line: u32 = 1;
    let mut counted = 0;
    for parts in pattern.captures_iter(text).take(MAX_DEFINITIONS) {
        let (Some(keyword), Some(name)) = (parts.name("keyword"), parts.name("name")) else {
            continue;
        };
        let between = text.as_bytes().get(counted..name.start()).unwrap_or_default();
        let breaks = between.iter().filter(|byte| **byte == b'\n').count();
        line = line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
        counted = name.start();
        let whole = name.as_str();
        found.push(Definition {
            name: whole.rsplit(['.', ':']).next().unwrap_or(whole).to_owned(),
            kind: kind(keyword.as_str()),
            line,
        });
    }
    found
}

fn kind(keyword: &str) -> DefinitionKind {
    match keyword {
        "class" | "struct" | "enum" | "interface" | "trait" | "protocol" | "type" | "record" | "object"
        | "union" | "table" | "view" | "message" | "service" => DefinitionKind::Type,
        "module" | "defmodule" | "namespace" | "package" => DefinitionKind::Module,
        "const" | "val" | "let" => DefinitionKind::Constant,
        _ => DefinitionKind::Function,
    }
}
