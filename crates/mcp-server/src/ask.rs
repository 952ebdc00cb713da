//! Questions of a turn as elicitations, and answers back.

use serde_json::{Map, Value, json};
use windlass_api::{Answer, CallId, UserReply, Waiting};
use windlass_core::text::with_signs;

/// Reason that the model reads if nobody could be asked.
pub(crate) const NOBODY: &str =
    "nobody could be asked: the MCP client of this session shows no questions to a person";
/// Reason that the model reads if a question was not answered in time.
pub(crate) const TOO_LATE: &str = "nobody answered in time";

/// A question that a turn waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) call: CallId,
    /// Number of the event.
    pub(crate) seq: u64,
    waiting: Waiting,
}

impl Question {
    /// Reads the question of an event.
    pub(crate) fn read(seq: u64, waiting: &Waiting) -> Option<Self> {
        match waiting {
            Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. } => Some(Self {
                call: call_id.clone(),
                seq,
                waiting: waiting.clone(),
            }),
            Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => None,
        }
    }

    /// Returns the question in one line.
    pub(crate) fn line(&self) -> String {
        match &self.waiting {
            Waiting::PermissionRequest { tool, subjects, .. } => {
                visible(&format!("{tool}({})", subjects.join(" · "))).replace('\n', " ")
            }
            Waiting::Question { text, .. } => visible(text).replace('\n', " "),
            _ => String::new(),
        }
    }

    /// Returns the parameters of `elicitation/create`.
    pub(crate) fn params(&self) -> Value {
        match &self.waiting {
            Waiting::Question { text, options, .. } => question_form(text, options),
            waiting => permission_form(waiting),
        }
    }

    /// Returns the reply of the client's answer. Everything but a clear yes is a no.
    pub(crate) fn reply(&self, answer: &Value) -> UserReply {
        let is_accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
        let text = |name: &str| {
            let text = answer
                .pointer(&format!("/content/{name}"))
                .and_then(Value::as_str);
            text.filter(|text| is_accepted && !text.trim().is_empty())
        };
        match &self.waiting {
            Waiting::PermissionRequest { once_only, .. } => {
                UserReply::Permission(match (text("decision"), once_only) {
                    (Some("once"), _) => Answer::Once,
                    (Some("session"), false) => Answer::Session,
                    (Some("always"), false) => Answer::Always,
                    _ => match text("instead") {
                        Some(instead) => Answer::NoBecause(instead.to_owned()),
                        None => Answer::No,
                    },
                })
            }
            _ => UserReply::Text(
                text("other")
                    .or_else(|| text("answer"))
                    .unwrap_or_default()
                    .to_owned(),
            ),
        }
    }

    /// Returns the reply if nobody answers, for this reason.
    pub(crate) fn refusal(&self, why: &str) -> UserReply {
        match &self.waiting {
            Waiting::PermissionRequest { .. } => UserReply::Permission(Answer::NoBecause(why.to_owned())),
            _ => UserReply::Text(format!("(no answer: {why})")),
        }
    }
}

fn permission_form(waiting: &Waiting) -> Value {
    let Waiting::PermissionRequest {
        tool,
        subjects,
        reasons,
        preview,
        once_only,
        agent,
        ..
    } = waiting
    else {
        return Value::Null;
    };
    let mut message = match agent {
        Some(agent) => format!("Agent {agent} of Windlass wants to use {tool}."),
        None => format!("Windlass wants to use {tool}."),
    };
    for subject in subjects {
        message.push_str(&format!("\n  {subject}"));
    }
    for reason in reasons {
        message.push_str(&format!("\nIt needs approval: {reason}."));
    }
    if let Some(preview) = preview {
        message.push_str(&format!("\n\n{preview}"));
    }
    let mut choices = vec![("once", "Allow once")];
    if !once_only {
        choices.push(("session", "Allow the same call for the rest of this session"));
        choices.push(("always", "Always allow the same call in this folder"));
    }
    choices.push(("no", "Deny"));
    let (values, names): (Vec<_>, Vec<_>) = choices.into_iter().unzip();
    // No default: a form that is accepted unread must not approve anything.
    let decision = json!({ "type": "string", "title": "Decision", "enum": values, "enumNames": names });
    let instead = json!({
        "type": "string",
        "title": "Instead",
        "description": "If you deny it: what the agent should do instead",
    });
    form(
        &message,
        &json!({ "decision": decision, "instead": instead }),
        &["decision"],
    )
}

fn question_form(text: &str, options: &[String]) -> Value {
    let mut fields = Map::new();
    let mut required: &[&str] = &[];
    if options.is_empty() {
        fields.insert(
            "answer".to_owned(),
            json!({ "type": "string", "title": "Answer" }),
        );
        required = &["answer"];
    } else {
        let answer = json!({ "type": "string", "title": "Answer", "enum": options });
        fields.insert("answer".to_owned(), answer);
        let other = json!({ "type": "string", "title": "Another answer" });
        fields.insert("other".to_owned(), other);
    }
    form(text, &Value::Object(fields), required)
}

fn form(message: &str, fields: &Value, required: &[&str]) -> Value {
    json!({
        "mode": "form",
        "message": visible(message),
        "requestedSchema": { "type": "object", "properties": fields, "required": required },
    })
}

/// Returns a text without escape sequences, which a client may show in a terminal.
pub(crate) fn visible(text: &str) -> String {
    with_signs(text)
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
