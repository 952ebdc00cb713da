//! Questions to the user: permission requests, and questions of the model.

use serde_json::{Map, Value, json};
use windlass_api::{Answer, UserReply, Waiting};
use windlass_core::text::with_signs;

use crate::card::Card;
use crate::client::ClientAbilities;

use windlass_jsonrpc::{Outbox, RpcError};

/// Maximum length of the subjects in the name of an option.
const MAX_SCOPE: usize = 120;

/// Answer to a form that was declined.
const DECLINE: &str = "decline";

/// Outcome of a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Reply(UserReply),
    /// The user stops the turn.
    Cancel,
    /// The client cannot ask, with its reason.
    Nobody(String),
}

/// A question to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Question {
    method: &'static str,
    params: Value,
    /// Answers by option; a form has none.
    options: Vec<String>,
}

/// Returns the request of a waiting turn; `None` if the client has no way to ask.
pub(crate) fn question(
    client: ClientAbilities,
    session: &str,
    waiting: &Waiting,
    card: Option<&Card>,
) -> Option<Question> {
    match waiting {
        Waiting::PermissionRequest { .. } => permission(session, waiting, card?),
        Waiting::Question {
            call_id,
            text,
            options,
        } if client.has_forms => Some(form(session, call_id.as_str(), text, options)),
        Waiting::Question {
            call_id,
            text,
            options,
        } if !options.is_empty() => Some(choice(session, call_id.as_str(), text, options)),
        _ => None,
    }
}

fn permission(session: &str, waiting: &Waiting, card: &Card) -> Option<Question> {
    let Waiting::PermissionRequest {
        subjects,
        reasons,
        preview,
        once_only,
        agent,
        tool,
        ..
    } = waiting
    else {
        return None;
    };
    let mut call = card.asked(preview.as_deref(), subjects);
    let asker = agent.as_ref().map(|agent| format!("Agent {agent} asks."));
    let sentence = |reason: &String| format!("It needs approval: {reason}.");
    let reasons: Vec<String> = asker.into_iter().chain(reasons.iter().map(sentence)).collect();
    let content = card.preview(preview.as_deref(), &reasons);
    call.insert("content".to_owned(), Value::Array(content));
    let scope = scope(tool, subjects);
    let mut options = vec![option("once", "Allow once", "allow_once")];
    if !once_only {
        let name = format!("Allow for this session: {scope}");
        options.push(option("session", &name, "allow_always"));
        let name = format!("Always allow in this folder: {scope}");
        options.push(option("always", &name, "allow_always"));
    }
    options.push(option("reject", "Reject", "reject_once"));
    Some(Question {
        method: "session/request_permission",
        params: json!({ "sessionId": session, "toolCall": call, "options": options }),
        options: Vec::new(),
    })
}

fn option(id: &str, name: &str, kind: &str) -> Value {
    json!({ "optionId": id, "name": with_signs(name), "kind": kind })
}

/// SAFE-6: names what a lasting yes covers.
fn scope(tool: &str, subjects: &[String]) -> String {
    let all = subjects.join(" · ");
    if all.is_empty() || all.len() > MAX_SCOPE {
        return format!("exactly this {tool} call");
    }
    format!("{tool}({all})")
}

/// A question with suggested answers, in a client without forms.
fn choice(session: &str, call: &str, text: &str, answers: &[String]) -> Question {
    let ids = (1..).map(|number: u32| number.to_string());
    let mut options: Vec<Value> = ids
        .zip(answers)
        .map(|(id, answer)| option(&id, answer, "allow_once"))
        .collect();
    options.push(option("none", "No answer", "reject_once"));
    let call = json!({ "toolCallId": call, "title": text, "kind": "other", "status": "pending" });
    Question {
        method: "session/request_permission",
        params: json!({ "sessionId": session, "toolCall": call, "options": options }),
        options: answers.to_vec(),
    }
}

fn form(session: &str, call: &str, text: &str, answers: &[String]) -> Question {
    let mut fields = Map::new();
    if answers.is_empty() {
        fields.insert(
            "answer".to_owned(),
            json!({ "type": "string", "title": "Answer" }),
        );
    } else {
        let choice = json!({ "type": "string", "title": "Answer", "enum": answers });
        fields.insert("answer".to_owned(), choice);
        let other = json!({ "type": "string", "title": "Another answer" });
        fields.insert("other".to_owned(), other);
    }
    let schema = json!({ "type": "object", "properties": fields });
    Question {
        method: "elicitation/create",
        params: json!({
            "sessionId": session,
            "toolCallId": call,
            "mode": "form",
            "message": text,
            "requestedSchema": schema,
        }),
        options: Vec::new(),
    }
}

impl Question {
    /// Sends the question and waits for the answer.
    pub(crate) async fn ask(&self, outbox: &Outbox) -> Asked {
        self.read(outbox.request(self.method, self.params.clone()).await)
    }

    fn read(&self, answer: Result<Value, RpcError>) -> Asked {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Asked::Nobody(error.message),
        };
        if self.method == "elicitation/create" {
            return Asked::Reply(UserReply::Text(entered(&answer)));
        }
        let text = |path: &str| answer.pointer(path).and_then(Value::as_str);
        match (text("/outcome/outcome"), text("/outcome/optionId")) {
            (Some("cancelled"), _) => Asked::Cancel,
            (Some("selected"), Some(id)) => Asked::Reply(self.chosen(id)),
            _ => Asked::Nobody("the answer has no outcome".to_owned()),
        }
    }

    fn chosen(&self, id: &str) -> UserReply {
        if !self.options.is_empty() {
            let number = id.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let answer = number.and_then(|number| self.options.get(number));
            return UserReply::Text(answer.cloned().unwrap_or_default());
        }
        let offered = self.params.pointer("/options").and_then(Value::as_array);
        let is_offered = |option: &Value| option.get("optionId").and_then(Value::as_str) == Some(id);
        let is_offered = offered.is_some_and(|options| options.iter().any(is_offered));
        UserReply::Permission(match id {
            "once" if is_offered => Answer::Once,
            "session" if is_offered => Answer::Session,
            "always" if is_offered => Answer::Always,
            // Nothing that was not offered is a yes.
            _ => Answer::No,
        })
    }
}

/// Returns the text that was entered into a form. An empty one would mean the default of a field, so a form that was
/// declined or closed answers as a person declines elsewhere.
fn entered(answer: &Value) -> String {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return DECLINE.to_owned();
    }
    let text = |path: &str| answer.pointer(path).and_then(Value::as_str);
    let given = text("/content/other").filter(|text| !text.trim().is_empty());
    given
        .or_else(|| text("/content/answer"))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
