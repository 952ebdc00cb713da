//! Arguments of the model: one edit, or a list of edits.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::null_is_default;

/// Maximum number of edits in one call. More are better made in several calls.
const MAX_EDITS: usize = 50;

/// The arguments as written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(alias = "file_path", alias = "filename", alias = "file")]
    path: String,
    #[serde(default, alias = "old_str", alias = "old_text")]
    old_string: Option<String>,
    #[serde(default, alias = "new_str", alias = "new_text")]
    new_string: Option<String>,
    /// Replace it everywhere.
    #[serde(default, deserialize_with = "null_is_default")]
    replace_all: bool,
    /// Several edits instead: all, in order, or none.
    #[serde(default)]
    edits: Option<Vec<Edit>>,
}

/// One replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub(super) struct Edit {
    #[serde(alias = "old_str", alias = "old_text")]
    pub(super) old_string: String,
    #[serde(alias = "new_str", alias = "new_text")]
    pub(super) new_string: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) replace_all: bool,
}

/// Replaces old_string by new_string in a file. old_string must be in the file exactly once, with its indentation
/// and without line numbers; add lines around it until it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Arguments")]
pub(crate) struct EditFileInput {
    pub(super) path: String,
    /// At least one edit. None is empty or without effect.
    pub(super) edits: Vec<Edit>,
    /// True if the edits came as a list, which determines their names in messages.
    pub(super) listed: bool,
}

/// Problem with the arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("give either `edits`, or `old_string` and `new_string`, not both")]
    Both,
    #[error("missing field `{0}`; give `old_string` and `new_string`, or `edits`")]
    Missing(&'static str),
    #[error("`edits` is empty; give 1 to {MAX_EDITS} edits")]
    None,
    #[error("`edits` has {0} entries; give at most {MAX_EDITS} and make the others in another call")]
    Many(usize),
    #[error("`replace_all` belongs in each of the `edits`")]
    Misplaced,
    #[error("`{0}old_string` is empty; write_file writes a whole file")]
    Empty(String),
    #[error("`{0}old_string` and `{0}new_string` are the same; leave the edit out or change one of them")]
    Same(String),
}

impl TryFrom<Arguments> for EditFileInput {
    type Error = Wrong;

    fn try_from(arguments: Arguments) -> Result<Self, Wrong> {
        let Arguments {
            path,
            old_string,
            new_string,
            replace_all,
            edits,
        } = arguments;
        let (edits, listed) = match (old_string, new_string, edits) {
            // Some models fill in every argument. An empty one cannot be intended if the other form has
            // content.
            (Some(old_string), Some(new_string), None) => {
                let edit = Edit {
                    old_string,
                    new_string,
                    replace_all,
                };
                (vec![edit], false)
            }
            (Some(old_string), Some(new_string), Some(edits)) if edits.is_empty() => {
                let edit = Edit {
                    old_string,
                    new_string,
                    replace_all,
                };
                (vec![edit], false)
            }
            (old, new, Some(edits)) if is_blank(old.as_ref()) && is_blank(new.as_ref()) => (edits, true),
            (_, _, Some(_)) => return Err(Wrong::Both),
            (None, _, None) => return Err(Wrong::Missing("old_string")),
            (Some(_), None, None) => return Err(Wrong::Missing("new_string")),
        };
        match edits.len() {
            0 => return Err(Wrong::None),
            number if number > MAX_EDITS => return Err(Wrong::Many(number)),
            _ if listed && replace_all => return Err(Wrong::Misplaced),
            _ => {}
        }
        let input = Self { path, edits, listed };
        for (index, edit) in input.edits.iter().enumerate() {
            if edit.old_string.is_empty() {
                return Err(Wrong::Empty(input.place(index)));
            }
            if edit.old_string == edit.new_string {
                return Err(Wrong::Same(input.place(index)));
            }
        }
        Ok(input)
    }
}

fn is_blank(text: Option<&String>) -> bool {
    text.is_none_or(String::is_empty)
}

impl EditFileInput {
    /// Returns the prefix of an edit's field: `edits[2].`, or nothing if there is only one.
    pub(super) fn place(&self, index: usize) -> String {
        if self.listed {
            format!("edits[{index}].")
        } else {
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(arguments: Value) -> Result<EditFileInput, String> {
        serde_json::from_value(arguments).map_err(|error| error.to_string())
    }

    /// TOOL-2: arguments have one form or the other, and a message names the field.
    #[test]
    fn arguments_are_one_form_or_the_other() {
        let edit = |old: &str, new: &str| json!({ "old_string": old, "new_string": new });
        let refused = [
            (json!({}), "missing field `old_string`"),
            (json!({ "old_string": "a" }), "missing field `new_string`"),
            (json!({ "new_string": "a" }), "missing field `old_string`"),
            (json!({ "edits": [] }), "`edits` is empty"),
            (
                json!({ "edits": vec![edit("a", "b"); 51] }),
                "`edits` has 51 entries",
            ),
            (
                json!({ "edits": [edit("a", "b")], "old_string": "a", "new_string": "b" }),
                "not both",
            ),
            (
                json!({ "edits": [edit("a", "b")], "old_string": "a" }),
                "not both",
            ),
            (
                json!({ "edits": [edit("a", "b")], "replace_all": true }),
                "each of the `edits`",
            ),
            (
                json!({ "edits": [edit("a", "b"), edit("", "b")] }),
                "`edits[1].old_string` is empty",
            ),
            (
                json!({ "edits": [edit("a", "a")] }),
                "`edits[0].old_string` and `edits[0].new_string` are the same",
            ),
            (
                json!({ "old_string": "", "new_string": "b" }),
                "`old_string` is empty",
            ),
            (
                json!({ "edits": [{ "old_string": "a" }] }),
                "missing field `new_string`",
            ),
            (
                json!({ "edits": [{ "old_string": "a", "new_string": "b", "all": true }] }),
                "`all`",
            ),
        ];
        for (mut arguments, word) in refused {
            arguments["path"] = json!("a.txt");
            let error = read(arguments.clone()).map(drop).unwrap_err();
            assert!(error.contains(word), "{arguments}: {error}");
        }
        let taken = [
            (json!({ "old_string": "a", "new_string": "" }), 1, false),
            (
                json!({ "old_string": "a", "new_string": "b", "edits": null, "replace_all": null }),
                1,
                false,
            ),
            (
                json!({ "old_string": "a", "new_string": "b", "edits": [] }),
                1,
                false,
            ),
            (
                json!({ "edits": [edit("a", "b"), { "old_str": "c", "new_str": "d" }] }),
                2,
                true,
            ),
            (
                json!({ "edits": [edit("a", "b")], "old_string": "", "new_string": null }),
                1,
                true,
            ),
        ];
        for (mut arguments, count, listed) in taken {
            arguments["path"] = json!("a.txt");
            let input = read(arguments.clone()).unwrap();
            assert_eq!((input.edits.len(), input.listed), (count, listed), "{arguments}");
        }
    }
}
