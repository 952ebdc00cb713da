use serde_json::{Value, json};

use super::{case, run};
use crate::wire::Protocol;

fn base() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "generationConfig": {"maxOutputTokens": 99, "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 1024}},
        "tools": [{"functionDeclarations": [{"name": "bash", "description": "Runs.", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hello"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"id": "a", "name": "bash", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "b", "name": "bash", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "bash", "response": {"output": "x"}}},
                {"functionResponse": {"id": "b", "name": "bash", "response": {"error": "y"}}},
            ]},
        ],
    })
}

/// PROV-4: keys, types, tools and the choice among them.
#[test]
fn top_level_and_tools() {
    let cases = vec![
        case("/unknown", json!(1), "unknown: extra inputs are not permitted"),
        case("/model", json!("m"), "model: extra inputs"),
        case("/contents", json!([]), "must not be an empty array"),
        case("/generationConfig/maxOutputTokens", json!(0), "at least 1"),
        case("/generationConfig/max_tokens", json!(1), "extra inputs"),
        case(
            "/generationConfig/thinkingConfig/thinkingLevel",
            json!("low"),
            "both a budget and a level",
        ),
        case(
            "/tools/0/functionDeclarations/0/parameters",
            json!({}),
            "both parameters",
        ),
        case(
            "/tools/0/functionDeclarations/0/name",
            json!("1x"),
            "must start with",
        ),
        case(
            "/tools/0/functionDeclarations/0/strict",
            json!(true),
            "extra inputs",
        ),
        case(
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY"}}),
            "",
        ),
        case(
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "any"}}),
            "must be AUTO",
        ),
        case(
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["zsh"]}}),
            "there is no function",
        ),
        case(
            "/systemInstruction",
            json!({"parts": []}),
            "must not be an empty array",
        ),
    ];
    run(Protocol::Gemini, &base(), cases);
}

/// PROV-4: parts, calls and their responses, and thought signatures.
#[test]
fn contents_and_parts() {
    let cases = vec![
        case("/contents/0/role", json!("assistant"), "must be user or model"),
        case("/contents/0/role", json!("model"), "starts with the user"),
        case(
            "/contents/0/parts/0",
            json!({"text": "a", "inlineData": {}}),
            "exactly one of",
        ),
        case("/contents/0/parts/0", json!({}), "exactly one of"),
        case("/contents/0/parts/0/text", json!(""), "must not be empty"),
        case(
            "/contents/0/parts/1/inlineData/data",
            json!("x"),
            "not valid base64",
        ),
        case(
            "/contents/0/parts/1/inlineData/mimeType",
            json!("text/html"),
            "must be one of",
        ),
        case(
            "/contents/1/parts/1/thoughtSignature",
            json!("Zm9yZWlnbg=="),
            "not a signature",
        ),
        case(
            "/contents/1/parts/1/functionCall/args",
            json!("{}"),
            "must be an object",
        ),
        case(
            "/contents/2/parts/0/functionResponse/response",
            json!("x"),
            "must be an object",
        ),
        case(
            "/contents/2/parts/0/functionResponse/name",
            json!("grep"),
            "does not fit",
        ),
        case(
            "/contents/2/parts/0/functionResponse/id",
            json!("z"),
            "does not fit",
        ),
        case(
            "/contents/2/parts/1",
            json!({"text": "and?"}),
            "number of function responses (1)",
        ),
        case(
            "/contents/2",
            json!({"role": "user", "parts": [{"text": "and?"}]}),
            "number of function responses (0)",
        ),
        case("/contents/2/role", json!("model"), "responses to the user"),
    ];
    run(Protocol::Gemini, &base(), cases);
}
