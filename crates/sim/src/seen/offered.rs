//! The tools that a Responses request offers, those in groups and those added by items included.

use serde_json::Value;

/// Kind of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// True if it takes free text instead of JSON.
    pub(crate) is_custom: bool,
    /// Group that it belongs to.
    pub(crate) namespace: Option<String>,
}

/// Returns the names of all tools.
pub(super) fn names(body: &Value) -> Vec<String> {
    let mut names = Vec::new();
    visit(body, |name, _| names.push(name.to_owned()));
    names
}

/// Returns the kind of the tool with this name.
pub(crate) fn offered(body: &Value, wanted: &str) -> Offered {
    let mut found = None;
    visit(body, |name, tool| {
        if name == wanted {
            found.get_or_insert(tool);
        }
    });
    found.unwrap_or_default()
}

fn visit(body: &Value, mut each: impl FnMut(&str, Offered)) {
    let items = body["input"].as_array().into_iter().flatten();
    let added = items
        .filter(|item| item["type"] == "additional_tools")
        .flat_map(|item| item["tools"].as_array().into_iter().flatten());
    for tool in body["tools"].as_array().into_iter().flatten().chain(added) {
        let name = tool["name"].as_str();
        if tool["type"] != "namespace" {
            if let Some(name) = name {
                each(name, kind(tool, None));
            }
            continue;
        }
        for inner in tool["tools"].as_array().into_iter().flatten() {
            if let Some(inner_name) = inner["name"].as_str() {
                each(inner_name, kind(inner, name));
            }
        }
    }
}

fn kind(tool: &Value, namespace: Option<&str>) -> Offered {
    Offered {
        is_custom: tool["type"] == "custom",
        namespace: namespace.map(str::to_owned),
    }
}
