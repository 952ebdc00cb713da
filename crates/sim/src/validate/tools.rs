//! Tool definitions and the choice among them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::fields::{Check, Kind, Null, array, fail, join, keys, object, text, tool_name};

/// Shape of the OpenAI tools in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `{type, function: {name, …}}`
    Nested,
    /// `{type, name, …}`
    Flat,
}

const MOST_TOOLS: usize = 128;
/// Tools of the Responses API that the service itself runs or defines. The simulated model never calls them.
const HOSTED: [&str; 14] = [
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "tool_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
];

/// Checks `tools`, `tool_choice` and `parallel_tool_calls` of an Anthropic request.
pub(super) fn anthropic(map: &Map<String, Value>) -> Check {
    let names = anthropic_names(map)?;
    let Some(choice) = map.get("tool_choice") else {
        return Ok(());
    };
    if names.is_empty() {
        return fail("tool_choice", "may only be given together with tools");
    }
    let choice = object("tool_choice", choice)?;
    let known = [
        ("type", Kind::Text),
        ("name", Kind::Text),
        ("disable_parallel_tool_use", Kind::Bool),
    ];
    keys("tool_choice", choice, &known, Null::Refused)?;
    match text("tool_choice", choice, "type")? {
        "auto" | "any" | "none" => Ok(()),
        "tool" => {
            let name = text("tool_choice", choice, "name")?;
            offered("tool_choice.name", &names, name)
        }
        _ => fail("tool_choice.type", "must be auto, any, tool or none"),
    }
}

fn anthropic_names(map: &Map<String, Value>) -> Result<HashSet<&str>, super::Violation> {
    const KNOWN: [(&str, Kind); 9] = [
        ("type", Kind::Text),
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("input_schema", Kind::Object),
        ("cache_control", Kind::Object),
        ("strict", Kind::Bool),
        ("eager_input_streaming", Kind::Bool),
        ("defer_loading", Kind::Bool),
        ("input_examples", Kind::Array),
    ];
    let mut names = HashSet::new();
    let Some(tools) = map.get("tools") else {
        return Ok(names);
    };
    for (index, tool) in array("tools", tools)?.iter().enumerate() {
        let path = format!("tools.{index}");
        let tool = object(&path, tool)?;
        let name = text(&path, tool, "name")?;
        tool_name(&join(&path, "name"), name)?;
        unique(&path, &mut names, name)?;
        // Tools the service itself defines have a dated type and no schema.
        if matches!(tool.get("type"), Some(kind) if kind != "custom") {
            continue;
        }
        keys(&path, tool, &KNOWN, Null::Refused)?;
        let Some(schema) = tool.get("input_schema") else {
            return fail(join(&path, "input_schema"), "field required");
        };
        schema_is_object(&join(&path, "input_schema"), schema)?;
    }
    Ok(names)
}

/// Checks `tools`, `tool_choice` and `parallel_tool_calls` of an OpenAI request.
pub(super) fn openai(map: &Map<String, Value>, shape: Shape) -> Check {
    let names = openai_names(map, shape)?;
    let Some(names) = names else {
        for key in ["tool_choice", "parallel_tool_calls"] {
            if map.get(key).is_some_and(|value| !value.is_null()) && shape == Shape::Nested {
                return fail(key, "is only allowed when tools are given");
            }
        }
        return match map.get("tool_choice") {
            Some(choice) if !choice.is_null() && choice != "auto" && choice != "none" => {
                fail("tool_choice", "is only allowed when tools are given")
            }
            _ => Ok(()),
        };
    };
    match map.get("tool_choice") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" | "none" | "required" => Ok(()),
            _ => fail("tool_choice", "must be auto, none, required or a function"),
        },
        Some(choice) => {
            let choice = object("tool_choice", choice)?;
            let kind = text("tool_choice", choice, "type")?;
            if shape == Shape::Flat && (kind == "allowed_tools" || HOSTED.contains(&kind)) {
                return Ok(());
            }
            let (path, holder) = match (shape, choice.get("function")) {
                (Shape::Nested, Some(function)) => {
                    ("tool_choice.function", object("tool_choice.function", function)?)
                }
                (Shape::Nested, None) => return fail("tool_choice.function", "field required"),
                (Shape::Flat, _) => ("tool_choice", choice),
            };
            offered(path, &names, text(path, holder, "name")?)
        }
    }
}

/// Returns the names of the offered functions, or `None` if the request has no tools.
fn openai_names(map: &Map<String, Value>, shape: Shape) -> Result<Option<HashSet<&str>>, super::Violation> {
    let tools = match map.get("tools") {
        None | Some(Value::Null) => return Ok(None),
        Some(tools) => array("tools", tools)?,
    };
    match (tools.len(), shape) {
        (0, Shape::Nested) => return fail("tools", "must not be an empty array"),
        (0, Shape::Flat) => return Ok(None),
        (count, _) if count > MOST_TOOLS => {
            return fail("tools", format!("has more than {MOST_TOOLS} entries"));
        }
        _ => {}
    }
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        let tool = object(&path, tool)?;
        let name = match (shape, text(&path, tool, "type")?) {
            (Shape::Flat, kind) => flat(&path, tool, kind)?,
            (Shape::Nested, kind @ ("function" | "custom")) => Some(nested(&path, tool, kind)?),
            (Shape::Nested, _) => return fail(join(&path, "type"), "must be function or custom"),
        };
        if let Some(name) = name {
            unique(&path, &mut names, name)?;
        }
    }
    Ok(Some(names))
}

/// Checks tools that an item of a Responses conversation adds.
pub(super) fn added(path: &str, tools: &[Value]) -> Check {
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let tool = object(&path, tool)?;
        if let Some(name) = flat(&path, tool, text(&path, tool, "type")?)? {
            unique(&path, &mut names, name)?;
        }
    }
    Ok(())
}

/// Checks one tool of the Responses API and returns its name, if it has one.
fn flat<'v>(
    path: &str,
    tool: &'v Map<String, Value>,
    kind: &str,
) -> Result<Option<&'v str>, super::Violation> {
    Ok(match kind {
        "function" => Some(function(path, tool, &[("type", Kind::Text)])?),
        "custom" => Some(custom(path, tool, &[("type", Kind::Text)])?),
        "namespace" => Some(namespace(path, tool)?),
        kind if HOSTED.contains(&kind) => None,
        _ => {
            let known: Vec<&str> = ["function", "custom", "namespace"]
                .into_iter()
                .chain(HOSTED)
                .collect();
            return fail(join(path, "type"), format!("must be one of {}", known.join(", ")));
        }
    })
}

/// Checks one tool of Chat Completions and returns its name.
fn nested<'v>(path: &str, tool: &'v Map<String, Value>, kind: &str) -> Result<&'v str, super::Violation> {
    keys(
        path,
        tool,
        &[("type", Kind::Text), (kind, Kind::Object)],
        Null::Refused,
    )?;
    let path = join(path, kind);
    let Some(inner) = tool.get(kind) else {
        return fail(path, "field required");
    };
    let inner = object(&path, inner)?;
    match kind {
        "custom" => custom(&path, inner, &[]),
        _ => function(&path, inner, &[]),
    }
}

/// Checks one tool that takes free text, and returns its name.
fn custom<'v>(
    path: &str,
    map: &'v Map<String, Value>,
    more: &[(&str, Kind)],
) -> Result<&'v str, super::Violation> {
    let mut known = vec![
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("format", Kind::Object),
        ("defer_loading", Kind::Bool),
    ];
    known.extend_from_slice(more);
    keys(path, map, &known, Null::Absent)?;
    let name = text(path, map, "name")?;
    tool_name(&join(path, "name"), name)?;
    Ok(name)
}

/// Checks a group of tools and returns its name.
fn namespace<'v>(path: &str, map: &'v Map<String, Value>) -> Result<&'v str, super::Violation> {
    let known = [
        ("type", Kind::Text),
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("tools", Kind::Array),
    ];
    keys(path, map, &known, Null::Absent)?;
    let name = text(path, map, "name")?;
    tool_name(&join(path, "name"), name)?;
    let Some(tools) = map.get("tools") else {
        return fail(join(path, "tools"), "field required");
    };
    let mut names = HashSet::new();
    for (index, tool) in array(&join(path, "tools"), tools)?.iter().enumerate() {
        let path = format!("{path}.tools[{index}]");
        let tool = object(&path, tool)?;
        let name = match text(&path, tool, "type")? {
            "function" => function(&path, tool, &[("type", Kind::Text)])?,
            "custom" => custom(&path, tool, &[("type", Kind::Text)])?,
            _ => return fail(join(&path, "type"), "must be function or custom"),
        };
        unique(&path, &mut names, name)?;
    }
    Ok(name)
}

/// Checks one function and returns its name.
fn function<'v>(
    path: &str,
    map: &'v Map<String, Value>,
    more: &[(&str, Kind)],
) -> Result<&'v str, super::Violation> {
    let mut known = vec![
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("parameters", Kind::Object),
        ("strict", Kind::Bool),
        ("defer_loading", Kind::Bool),
    ];
    known.extend_from_slice(more);
    keys(path, map, &known, Null::Absent)?;
    let name = text(path, map, "name")?;
    tool_name(&join(path, "name"), name)?;
    if let Some(schema @ Value::Object(_)) = map.get("parameters") {
        let path = join(path, "parameters");
        schema_is_object(&path, schema)?;
        if map.get("strict") == Some(&Value::Bool(true)) {
            strict_schema(&path, schema)?;
        }
    }
    Ok(name)
}

/// Checks that a strict function closes its schema and requires every property.
fn strict_schema(path: &str, schema: &Value) -> Check {
    if schema["additionalProperties"] != Value::Bool(false) {
        return fail(path, "a strict schema needs \"additionalProperties\": false");
    }
    let required = schema["required"].as_array().map_or(0, Vec::len);
    let properties = schema["properties"].as_object().map_or(0, Map::len);
    if required != properties {
        return fail(path, "a strict schema must require every property");
    }
    Ok(())
}

fn schema_is_object(path: &str, schema: &Value) -> Check {
    if schema["type"] == "object" {
        Ok(())
    } else {
        fail(join(path, "type"), "must be \"object\"")
    }
}

fn unique<'v>(path: &str, names: &mut HashSet<&'v str>, name: &'v str) -> Check {
    if names.insert(name) {
        Ok(())
    } else {
        fail(
            join(path, "name"),
            format!("tool names must be unique, `{name}` is not"),
        )
    }
}

fn offered(path: &str, names: &HashSet<&str>, name: &str) -> Check {
    if names.contains(name) {
        Ok(())
    } else {
        fail(path, format!("there is no tool named `{name}`"))
    }
}
