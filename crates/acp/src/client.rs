//! Abilities of the client, as far as they change our messages.

use serde_json::Value;

/// Key of `_meta` for the output of a display terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalKey {
    Whole,
    Delta,
}

impl TerminalKey {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "terminal_output",
            Self::Delta => "terminal_output_delta",
        }
    }
}

/// Abilities of the client. What it does not declare, it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientAbilities {
    /// Shows a form and returns what the user entered.
    pub(crate) has_forms: bool,
    /// Shows notices.
    pub(crate) has_notices: bool,
    /// Shows compactions.
    pub(crate) has_compaction: bool,
    /// Runs our program in a terminal to set up a model.
    pub(crate) has_terminal_login: bool,
    /// Shows the output of a command that runs here as a terminal.
    pub(crate) terminal: Option<TerminalKey>,
}

impl ClientAbilities {
    /// Reads `clientCapabilities`.
    pub(crate) fn read(value: &Value) -> Self {
        let is_object = |path: &str| value.pointer(path).is_some_and(Value::is_object);
        let is_true = |path: &str| value.pointer(path) == Some(&Value::Bool(true));
        let terminal = if is_true("/_meta/terminal_output") {
            Some(TerminalKey::Whole)
        } else {
            is_true("/_meta/terminal_output_delta").then_some(TerminalKey::Delta)
        };
        Self {
            has_forms: is_object("/elicitation/form"),
            has_notices: is_object("/session/notices"),
            has_compaction: is_object("/session/compaction"),
            has_terminal_login: is_true("/auth/terminal"),
            terminal,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// ACP-1 (CLIENTCAP): a marker is an object or `true`; null, absent and `{}` one level too high are nothing.
    #[test]
    fn markers_are_read_strictly() {
        let none = json!({ "elicitation": {}, "session": { "notices": null }, "auth": { "terminal": 1 } });
        assert_eq!(ClientAbilities::read(&none), ClientAbilities::default());
        assert_eq!(ClientAbilities::read(&Value::Null), ClientAbilities::default());
        let all = json!({
            "elicitation": { "form": {} },
            "session": { "notices": {}, "compaction": {} },
            "auth": { "terminal": true },
            "_meta": { "terminal_output_delta": true },
        });
        let expected = ClientAbilities {
            has_forms: true,
            has_notices: true,
            has_compaction: true,
            has_terminal_login: true,
            terminal: Some(TerminalKey::Delta),
        };
        assert_eq!(ClientAbilities::read(&all), expected);
    }
}
