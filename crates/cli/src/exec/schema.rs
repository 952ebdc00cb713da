//! `--output-schema`: the answer must be JSON that matches, or the run fails.

use std::path::{Path, PathBuf};

use serde_json::Value;

use windlass_config::Problem;
use windlass_sandbox::read_given_text;

/// The schema that an answer must match.
pub(crate) struct AnswerSchema {
    path: PathBuf,
    text: String,
    validator: jsonschema::Validator,
}

const MOST_COMPLAINTS: usize = 5;
/// Size of the largest schema.
const MAX_BYTES: u64 = 1 << 20;

impl AnswerSchema {
    /// Reads a schema: a file, or the JSON itself.
    pub(super) fn read(given: &str) -> Result<Self, Problem> {
        let is_inline = given.trim_start().starts_with('{');
        let path = Path::new(if is_inline { "the schema" } else { given });
        let problem = |what: String| match is_inline {
            true => Problem::usage(format!("--output-schema: {what}")),
            false => Problem::usage(format!("--output-schema {given}: {what}")),
        };
        let text = match is_inline {
            true => given.to_owned(),
            false => read_given_text(path, MAX_BYTES).map_err(|error| problem(error.to_string()))?,
        };
        let schema: Value =
            serde_json::from_str(&text).map_err(|error| problem(format!("not JSON: {error}")))?;
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| problem(format!("not a JSON Schema: {error}")))?;
        Ok(Self {
            path: path.to_owned(),
            text: schema.to_string(),
            validator,
        })
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the instruction that is added to the prompt.
    pub(super) fn instruction(&self) -> String {
        format!(
            "Your final answer must be one JSON value that matches this JSON Schema, and nothing else — no prose, no code fence:\n{}",
            self.text
        )
    }

    /// Returns the message for the model when its answer does not match.
    pub(super) fn repair_prompt(&self, complaint: &str) -> String {
        format!(
            "Your answer does not match the JSON Schema: {complaint}\n\
             Answer again with one JSON value that matches this JSON Schema, and nothing else:\n{}",
            self.text
        )
    }

    /// Returns the answer as a value, or the reasons why it does not match.
    pub(super) fn check(&self, answer: &str) -> Result<Value, String> {
        let value: Value =
            serde_json::from_str(unfenced(answer)).map_err(|error| format!("it is not JSON ({error})"))?;
        let complaints: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(MOST_COMPLAINTS)
            .map(|error| {
                let place = error.instance_path().to_string();
                format!("{}: {error}", if place.is_empty() { "/" } else { &place })
            })
            .collect();
        if complaints.is_empty() {
            Ok(value)
        } else {
            Err(complaints.join("; "))
        }
    }
}

/// Removes the code fence that many models put around JSON.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let Some(inner) = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return answer;
    };
    match inner.split_once('\n') {
        Some((language, body)) if !language.contains(['{', '[', '"']) => body.trim(),
        _ => inner.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-3: code fences are removed, anything else stays as it is.
    #[test]
    fn fences() {
        for (answer, expected) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("```\n[1]\n```\n", "[1]"),
            ("```{\"a\": 1}```", "{\"a\": 1}"),
            ("Here: {\"a\": 1}", "Here: {\"a\": 1}"),
        ] {
            assert_eq!(unfenced(answer), expected);
        }
    }
}
