//! Requests to Gemini. The model and the choice between a stream and one piece are in the address, not in the body.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windlass_core::message::Role;
use windlass_core::provider::{Prefix, Request, ToolChoice};
use windlass_core::tool::ToolSpec;

use crate::wire::content::{Content, contents, result_images, result_text, sent_role};
use crate::wire::encoder::{Encoder, Outgoing};
use crate::wire::json::{append_item, field, object_text, push, tool_name};

/// Signature of a call that another model made. Google documents it for conversations that were started elsewhere;
/// Gemini 3 refuses calls of the current turn without a signature.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Returns true for models whose thinking has levels, and whose calls need a signature.
fn has_levels(model: &str) -> bool {
    model.trim_start_matches("models/").starts_with("gemini-3")
}

pub(crate) fn head(encoder: &Encoder, request: &Request) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let mut config = Map::new();
    if let Some(most) = request.max_output {
        config.insert("maxOutputTokens".to_owned(), json!(most.max(1)));
    }
    let thinking = match encoder.reasoning {
        Some(effort) if has_levels(&encoder.model.id) => {
            Some(json!({"includeThoughts": true, "thinkingLevel": effort.name()}))
        }
        Some(effort) => Some(json!({"includeThoughts": true, "thinkingBudget": effort.budget()})),
        None if encoder.model.reasoning => Some(json!({"includeThoughts": true})),
        None => None,
    };
    config.extend(thinking.map(|thinking| ("thinkingConfig".to_owned(), thinking)));
    if !config.is_empty() {
        field(&mut out, "generationConfig", &config);
    }
    let choice = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    };
    if let Some(choice) = choice.filter(|_| !request.prefix.tools.is_empty()) {
        field(&mut out, "toolConfig", &json!({"functionCallingConfig": choice}));
    }
    out
}

pub(crate) fn prefix(prefix: &Prefix) -> Vec<u8> {
    let mut out = Vec::new();
    if !prefix.system.trim().is_empty() {
        let parts = [Part::Text(Text { text: &prefix.system })];
        field(&mut out, "systemInstruction", &System { parts });
    }
    if !prefix.tools.is_empty() {
        field(&mut out, "tools", &tools(&prefix.tools));
    }
    out.extend_from_slice(b"\"contents\":[");
    out
}

pub(crate) fn tools(tools: &[ToolSpec]) -> [Declarations<'_>; 1] {
    let tools = tools.iter().map(|tool| Declaration {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: &tool.schema,
    });
    [Declarations {
        function_declarations: tools.collect(),
    }]
}

/// Tool definitions on this wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Declarations<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

/// Encodes one message; empty if it has no content on this wire.
pub(crate) fn message(outgoing: &Outgoing<'_>) -> Vec<u8> {
    let mut parts = Vec::new();
    match outgoing.items {
        Some(items) => items.iter().for_each(|item| append_item(&mut parts, item)),
        None => from_parts(&mut parts, outgoing),
    }
    if parts.is_empty() {
        return parts;
    }
    let role = match sent_role(outgoing.message) {
        Role::Assistant => "model",
        Role::User | Role::Tool | Role::System => "user",
    };
    let mut out = format!("{{\"role\":\"{role}\",\"parts\":[").into_bytes();
    out.append(&mut parts);
    out.extend_from_slice(b"]}");
    out
}

fn from_parts(out: &mut Vec<u8>, outgoing: &Outgoing<'_>) {
    let images = outgoing.model.images;
    let mut names = outgoing.names.namer();
    let mut needs_signature = has_levels(&outgoing.model.id);
    let mut shown = Vec::new();
    for content in contents(outgoing.message, images) {
        match content {
            Content::Text(text) => push(out, &Part::Text(Text { text: &text })),
            Content::Image { mime, data } => push(out, &inline(mime, data)),
            Content::ImageUrl { url, .. } => {
                let text = format!("[image not shown: {url}]");
                push(out, &Part::Text(Text { text: &text }));
            }
            Content::Call(call) => {
                let args = object_text(&call.input);
                // `object_text` always gives JSON; if it ever does not, the call still needs some value.
                let args = serde_json::from_str::<&RawValue>(&args).unwrap_or(RawValue::NULL);
                let signature = std::mem::take(&mut needs_signature).then_some(FOREIGN_CALL);
                push(
                    out,
                    &Part::Call {
                        function_call: Call {
                            id: &names.name(call.id.as_str()),
                            name: &tool_name(&call.name),
                            args,
                        },
                        thought_signature: signature,
                    },
                );
            }
            Content::Result(result) => {
                let text = result_text(result, images);
                let key = if result.is_error { "error" } else { "output" };
                let response = Map::from_iter([(key.to_owned(), Value::String(text.into_owned()))]);
                push(
                    out,
                    &Part::Response {
                        function_response: Response {
                            id: &names.name(result.call_id.as_str()),
                            name: &tool_name(&result.name),
                            response,
                        },
                    },
                );
                shown.extend(result_images(result, images));
            }
        }
    }
    // All responses come first, directly after their calls.
    for image in shown {
        push(out, &inline(&image.mime, &image.data));
    }
}

fn inline<'a>(mime_type: &'a str, data: &'a str) -> Part<'a> {
    Part::Data {
        inline_data: Data { mime_type, data },
    }
}

/// Returns the ids of the calls among the provider's own items.
pub(crate) fn item_calls(items: &[Box<RawValue>]) -> Vec<String> {
    let calls = items.iter().filter_map(|item| {
        serde_json::from_str::<ItemHead<'_>>(item.get())
            .ok()?
            .function_call
    });
    calls.filter_map(|call| call.id.map(Cow::into_owned)).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemHead<'a> {
    #[serde(borrow)]
    function_call: Option<CallHead<'a>>,
}

#[derive(Deserialize)]
struct CallHead<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct System<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Part<'a> {
    Text(Text<'a>),
    Data {
        inline_data: Data<'a>,
    },
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    Response {
        function_response: Response<'a>,
    },
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct Response<'a> {
    id: &'a str,
    name: &'a str,
    response: Map<String, Value>,
}
