//! Extracts the message and codes from an error body in any of its many shapes.

use serde_json::{Map, Value};

use super::Signs;

/// Maximum number of characters of a body to show.
const SHOWN: usize = 1000;

/// Message and codes of an error body.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) message: String,
    pub(super) status: Option<u16>,
    /// True if the body declares itself an error.
    pub(super) is_error: bool,
    codes: Vec<String>,
}

impl Said {
    pub(super) fn read(body: &str) -> Self {
        let mut said = Self::default();
        match serde_json::from_str(body) {
            Ok(Value::Array(list)) => {
                // Some gateways wrap the error in a list.
                if let Some(Value::Object(map)) = list.first() {
                    said.object(map);
                }
            }
            Ok(Value::Object(map)) => said.object(&map),
            _ if is_markup(body) => {}
            _ => said.message = body.trim().chars().take(SHOWN).collect(),
        }
        said
    }

    pub(super) fn says(&self, signs: &Signs) -> bool {
        let message = self.message.to_lowercase();
        self.codes.iter().any(|code| signs.codes.contains(&code.as_str()))
            || signs.phrases.iter().any(|phrase| message.contains(phrase))
    }

    fn object(&mut self, map: &Map<String, Value>) {
        match map.get("error") {
            Some(Value::Object(error)) => {
                self.is_error = true;
                self.fields(error);
            }
            Some(Value::String(error)) => {
                self.is_error = true;
                self.message.clone_from(error);
                self.codes.push(error.to_lowercase());
            }
            _ => {}
        }
        if let Some(Value::Object(response)) = map.get("response") {
            self.object(response);
        }
        // Without an error object, only the outer fields are left.
        if !self.is_error || self.message.is_empty() {
            self.fields(map);
        }
        self.message = std::mem::take(&mut self.message).chars().take(SHOWN).collect();
    }

    fn fields(&mut self, map: &Map<String, Value>) {
        for name in ["type", "code", "status"] {
            match map.get(name) {
                Some(Value::String(code)) => self.codes.push(code.to_lowercase()),
                Some(Value::Number(code)) => {
                    let status = code.as_u64().and_then(|code| u16::try_from(code).ok());
                    self.status = status
                        .filter(|status| (400..600).contains(status))
                        .or(self.status);
                }
                _ => {}
            }
        }
        if self.message.is_empty() {
            self.message = message(map).unwrap_or_default();
        }
        // Routers put the upstream's message here, and "Provider returned error" above it.
        if let Some(raw) = map
            .get("metadata")
            .and_then(|meta| meta.get("raw"))
            .and_then(Value::as_str)
        {
            let upstream = Self::read(raw);
            self.message = format!("{}: {}", self.message, upstream.message);
            self.codes.extend(upstream.codes);
        }
        let details = map.get("details").and_then(|details| details.get("error_code"));
        self.codes
            .extend(details.and_then(Value::as_str).map(str::to_lowercase));
    }
}

fn message(map: &Map<String, Value>) -> Option<String> {
    ["message", "detail", "error_description", "msg"]
        .iter()
        .find_map(|name| match map.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(list) => list.first()?.get("msg")?.as_str().map(ToOwned::to_owned),
            Value::Object(inner) => message(inner),
            _ => None,
        })
}

fn is_markup(body: &str) -> bool {
    body.trim_start().starts_with('<')
}
