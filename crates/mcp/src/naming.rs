//! Names of tools as the model and permission rules see them.

use std::collections::BTreeSet;

use windlass_sandbox::sha256_hex;

/// Maximum length of a tool name that all providers accept.
const MAX_NAME: usize = 64;
/// Length of the digest that replaces the end of a name.
const DIGEST: usize = 6;

/// Returns the names `mcp__server__tool` of a server's tools, in order. Each is unique, and none is longer than
/// providers accept. A tool whose name had to be changed gets a digest of its own name at the end, so that the name
/// does not depend on the other tools.
pub(crate) fn tool_names(server: &str, tools: &[&str]) -> Vec<String> {
    let prefix = format!("mcp__{}__", server_part(server));
    let mut taken = BTreeSet::new();
    let named = tools.iter().enumerate().map(|(index, tool)| {
        let plain = format!("{prefix}{}", clean(tool));
        let is_exact = clean(tool) == **tool && plain.len() <= MAX_NAME;
        let mut name = if is_exact { plain } else { marked(&plain, tool) };
        if taken.contains(&name) {
            name = marked(&name, &format!("{index} {tool}"));
        }
        taken.insert(name.clone());
        name
    });
    named.collect()
}

/// Returns the part of tool names that stands for a server. Servers whose names have the same part cannot be told apart
/// by permission rules. Two underscores separate the parts, so that there are none in it or at its ends: a rule for
/// `mcp__a__*` covers no server but `a`.
pub fn server_part(name: &str) -> String {
    let mut part = clean(name);
    while part.contains("__") {
        part = part.replace("__", "_");
    }
    match part.trim_matches('_') {
        "" => "unnamed".to_owned(),
        part => part.to_owned(),
    }
}

/// Replaces what is not allowed in a name.
fn clean(text: &str) -> String {
    let sign = |sign: char| match sign {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => sign,
        _ => '_',
    };
    let mut name: String = text.chars().take(128).map(sign).collect();
    while name.contains("___") {
        name = name.replace("___", "__");
    }
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => name,
    }
}

fn marked(name: &str, original: &str) -> String {
    let digest = sha256_hex(original.as_bytes());
    let start: String = name.chars().take(MAX_NAME - DIGEST - 1).collect();
    let end: String = digest.chars().take(DIGEST).collect();
    format!("{start}_{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MCP-4: every tool gets a unique name that providers accept, and a usual name stays as it is.
    #[test]
    fn names_are_unique_and_valid() {
        let long = "x".repeat(300);
        let tools = ["read", "read", "a b", "a/b", "", "\u{1b}[31mred", "日本", &long];
        let names = tool_names("my server", &tools);
        assert_eq!(names[0], "mcp__my_server__read");
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), tools.len(), "{names:?}");
        for name in &names {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            assert!(name.len() <= MAX_NAME && name.bytes().all(is_plain), "{name}");
        }
        for (server, part) in [
            ("a__b", "a_b"),
            ("_a_", "a"),
            ("a.b", "a_b"),
            ("..", "unnamed"),
            ("a", "a"),
        ] {
            assert_eq!(tool_names(server, &["c"])[0], format!("mcp__{part}__c"));
        }
        // The name of a tool does not depend on the others.
        assert_eq!(tool_names("my server", &["a/b"])[0], names[3]);
    }
}
