//! Requests of a server to the session's model. They are off unless the server's entry allows them, each is shown to the
//! person as a whole and sent only after a yes, and the turn books it.

#![allow(deprecated, reason = "sampling is for servers of earlier revisions")]

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult, ErrorCode, Role,
    SamplingContent, SamplingMessage, SamplingMessageContentBlock,
};
use windlass_core::clock::Timestamp;
use windlass_core::message::{self, Binary, Message, Part};
use windlass_core::permission::Question;
use windlass_core::provider::{Completion, StopReason};
use windlass_core::tool::{CallRequest, SAMPLING};

use crate::client::CallLink;
use crate::config::SamplingLimits;
use crate::content::{line, plain};

/// Longest prompt, in characters. The person reads all of it.
const MAX_PROMPT: usize = 20_000;
/// Maximum number of messages of a request.
const MAX_MESSAGES: usize = 100;
/// Maximum number of images of a request.
const MAX_IMAGES: usize = 4;
/// Maximum size of an image, in bytes of base64.
const MAX_IMAGE: usize = 2_000_000;
/// Maximum number of sequences that end a reply.
const MAX_STOPS: usize = 16;
/// The answer that sends the request.
const SEND: &str = "send";
/// Code for a request that the user refused.
const REJECTED: ErrorCode = ErrorCode(-1);

/// A request, as the person sees it and as it is sent: both are made from the same texts.
#[derive(Debug, Default, PartialEq)]
struct Prompt {
    system: String,
    turns: Vec<(message::Role, Vec<Part>)>,
    shown: String,
}

/// Answers a server that asks for a completion.
///
/// # Errors
/// If the server may not ask, the request cannot be sent, nobody agrees to it, or the model fails.
pub(crate) async fn sample(
    server: &str,
    limits: Option<SamplingLimits>,
    request: CreateMessageRequestParams,
    link: Option<CallLink>,
) -> Result<CreateMessageResult, ErrorData> {
    let limits = limits.ok_or_else(ErrorData::method_not_found::<CreateMessageRequestMethod>)?;
    let rejected = |why: &str| ErrorData::new(REJECTED, why.to_owned(), None);
    let link = link.ok_or_else(|| rejected("Completions are available during a call only."))?;
    let prompt = Prompt::read(&request).map_err(|why| ErrorData::invalid_params(why, None))?;
    let tokens = u64::from(request.max_tokens).clamp(1, limits.tokens);
    let cause = format!("{SAMPLING}{server}");
    let Some(model) = link.model.model().map(|model| model.id.clone()) else {
        return Err(rejected("This call has no model."));
    };
    if !link.model.admits(&cause, limits.requests) {
        return Err(rejected(&format!(
            "The limit of {} completions in a turn is reached.",
            limits.requests
        )));
    }
    let question = Question {
        text: format!(
            "The MCP server {server} asks your model {model} for an answer, at your cost, with at most {tokens} tokens. \
             This is the whole request; the answer goes to the server.\n{}",
            prompt.shown
        ),
        options: vec![SEND.to_owned(), "decline".to_owned()],
    };
    match link.person.ask(&question).await.as_deref().map(str::trim) {
        Some(SEND) => {}
        Some(_) => return Err(rejected("The user declined the request.")),
        None => return Err(rejected("Nobody is there to allow the request.")),
    }
    let session = link.session.clone().unwrap_or_else(|| "mcp".into());
    let messages = prompt
        .turns
        .into_iter()
        .map(|(role, parts)| Arc::new(Message::new(&session, role, parts, Timestamp(0))));
    let request_to_model = CallRequest {
        system: prompt.system,
        messages: messages.collect(),
        max_output: tokens,
        session: session.clone(),
        cancel: link.cancel.clone(),
    };
    match link.model.send(request_to_model, &cause).await {
        Some(Ok(completion)) => Ok(answer(&completion, &model, request.stop_sequences.as_deref())),
        Some(Err(error)) => Err(ErrorData::internal_error(
            line(&format!("The model did not answer: {error}"), 500),
            None,
        )),
        None => Err(rejected("This call has no model.")),
    }
}

impl Prompt {
    /// Reads a request. The error says what the server should change.
    fn read(request: &CreateMessageRequestParams) -> Result<Self, String> {
        if request.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return Err("Completions with tools are not supported.".to_owned());
        }
        if request.messages.is_empty() || request.messages.len() > MAX_MESSAGES {
            return Err(format!("messages: expected 1 to {MAX_MESSAGES} messages."));
        }
        let mut prompt = Self::default();
        let mut images = 0;
        if let Some(system) = &request.system_prompt {
            prompt.system = plain(system, MAX_PROMPT);
            prompt.show("system", &prompt.system.clone());
        }
        for message in &request.messages {
            prompt.add(message, &mut images)?;
        }
        if prompt.turns.first().map(|(role, _)| *role) != Some(message::Role::User) {
            return Err("messages: the first message must be one of the user.".to_owned());
        }
        if prompt.shown.chars().count() > MAX_PROMPT {
            return Err(format!(
                "The request is longer than {MAX_PROMPT} characters, more than a person can be asked to read."
            ));
        }
        Ok(prompt)
    }

    fn add(&mut self, message: &SamplingMessage, images: &mut usize) -> Result<(), String> {
        let (role, name) = match message.role {
            Role::Assistant => (message::Role::Assistant, "assistant"),
            Role::User => (message::Role::User, "user"),
        };
        let blocks: Vec<&SamplingMessageContentBlock> = match &message.content {
            SamplingContent::Single(block) => vec![block],
            SamplingContent::Multiple(blocks) => blocks.iter().collect(),
        };
        for block in blocks {
            let part = match block {
                SamplingMessageContentBlock::Text(text) => {
                    let text = plain(&text.text, MAX_PROMPT);
                    self.show(name, &text);
                    Part::text(text)
                }
                SamplingMessageContentBlock::Image(image) if role == message::Role::User => {
                    *images += 1;
                    if *images > MAX_IMAGES || image.data.len() > MAX_IMAGE {
                        return Err(format!(
                            "messages: at most {MAX_IMAGES} images of {MAX_IMAGE} bytes of base64 can be sent."
                        ));
                    }
                    let mime = line(&image.mime_type, 100);
                    self.show(
                        name,
                        &format!("[image: {mime}, {} bytes of base64]", image.data.len()),
                    );
                    Part::Binary(Binary {
                        path: String::new(),
                        mime,
                        data: image.data.clone(),
                    })
                }
                _ => return Err("messages: only text, and images of the user, can be sent.".to_owned()),
            };
            // Providers want the roles to alternate.
            match self.turns.last_mut() {
                Some((last, parts)) if *last == role => parts.push(part),
                _ => self.turns.push((role, vec![part])),
            }
        }
        Ok(())
    }

    fn show(&mut self, name: &str, text: &str) {
        self.shown.push_str(&format!("\n{name}:\n{text}\n"));
    }
}

/// Returns the reply for the server, cut at the first of its stop sequences.
fn answer(completion: &Completion, model: &str, stops: Option<&[String]>) -> CreateMessageResult {
    let texts = completion.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let mut text: String = texts.collect();
    let stops = stops.unwrap_or_default().iter().take(MAX_STOPS);
    let cut = stops
        .filter(|stop| !stop.is_empty())
        .filter_map(|stop| text.find(stop.as_str()))
        .min();
    let reason = match (cut, completion.stop) {
        (Some(_), _) => CreateMessageResult::STOP_REASON_END_SEQUENCE,
        (None, StopReason::MaxTokens) => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        (None, _) => CreateMessageResult::STOP_REASON_END_TURN,
    };
    if let Some(cut) = cut {
        text.truncate(cut);
    }
    CreateMessageResult::new(SamplingMessage::assistant_text(text), model.to_owned()).with_stop_reason(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(request: Value) -> Result<Prompt, String> {
        Prompt::read(&serde_json::from_value(request).expect("a request"))
    }

    fn said(role: &str, text: &str) -> Value {
        json!({ "role": role, "content": { "type": "text", "text": text } })
    }

    /// MCP-5: the person sees every text that is sent, without hidden characters, and nothing else is sent.
    #[test]
    fn what_is_shown_is_what_is_sent() {
        let messages = [
            said("user", "a\u{202e}b"),
            said("user", "c"),
            said("assistant", "d"),
        ];
        let prompt =
            read(json!({ "maxTokens": 9, "systemPrompt": "be\u{1b}[2J brief", "messages": messages }));
        let prompt = prompt.expect("a prompt");
        assert_eq!(prompt.system, "be[2J brief");
        assert_eq!(
            prompt.turns,
            [
                (message::Role::User, vec![Part::text("ab"), Part::text("c")]),
                (message::Role::Assistant, vec![Part::text("d")]),
            ]
        );
        assert_eq!(
            prompt.shown,
            "\nsystem:\nbe[2J brief\n\nuser:\nab\n\nuser:\nc\n\nassistant:\nd\n"
        );
    }

    /// MCP-5: a request that cannot be sent, or that nobody would read, is refused with what is wrong.
    #[test]
    fn requests_are_bounded() {
        let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
        let audio =
            json!({ "role": "user", "content": { "type": "audio", "data": "", "mimeType": "audio/wav" } });
        for (request, expected) in [
            (
                json!({ "maxTokens": 9, "messages": [] }),
                "expected 1 to 100 messages",
            ),
            (
                json!({ "maxTokens": 9, "messages": [said("assistant", "x")] }),
                "the first message",
            ),
            (
                json!({ "maxTokens": 9, "messages": [said("user", &"x".repeat(20_001))] }),
                "longer than 20000",
            ),
            (
                json!({ "maxTokens": 9, "messages": [said("user", "x")], "tools": [tool] }),
                "with tools",
            ),
            (
                json!({ "maxTokens": 9, "messages": [audio] }),
                "only text, and images",
            ),
        ] {
            let error = read(request).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
