//! Messages for the model.

use windlass_core::tool::ToolError;

use super::input::EditFileInput;
use super::matching::{Found, How, NoMatch};
use crate::nearest::numbered;
use windlass_checkpoint::diff::Change;

/// Number of lines shown around a change, and of the change itself.
const CONTEXT: usize = 3;
const MAX_SHOWN: usize = 20;
/// The same for several changes together.
const MAX_SHOWN_OF_MANY: usize = 60;
/// Maximum number of places named in a message.
const MAX_PLACES: usize = 10;

impl How {
    /// Returns a remark on the match, to follow a comma.
    fn note(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::TrailingSpace => Some("matched except for blanks at line ends"),
            Self::Indentation => Some("matched except for indentation, which was kept as in the file"),
            Self::Typography => {
                Some("matched except for the form of quotes, dashes or blanks, which was kept as in the file")
            }
        }
    }
}

/// Reports the new lines, and how their place was found.
pub(super) fn report(name: &str, found: &[Found], change: &Change, new: &str) -> String {
    let counts = change.counts();
    if let [found] = found {
        let places = match found.places.len() {
            1 => String::new(),
            number => format!(", {number} places"),
        };
        let how = found.how.note().map(|how| format!(", {how}")).unwrap_or_default();
        return format!("Edited {name} {counts}{places}{how}\n{}", around(found, new));
    }
    let mut text = format!("Edited {name} {counts}, {} edits", found.len());
    for (index, found) in found.iter().enumerate() {
        if let Some(how) = found.how.note() {
            text.push_str(&format!("\nedits[{index}]: {how}"));
        }
    }
    let mut left = MAX_SHOWN_OF_MANY;
    for region in change.regions() {
        let count = region.len().min(MAX_SHOWN).min(left);
        if count == 0 {
            break;
        }
        left -= count;
        text.push('\n');
        text.push_str(&numbered(new, region.start, count));
    }
    text
}

fn around(found: &Found, new: &str) -> String {
    let first = found.first_line;
    let lines = found.replacement.lines().count();
    let from = first.saturating_sub(CONTEXT);
    let count = (first - from + lines + CONTEXT).min(MAX_SHOWN);
    numbered(new, from, count)
}

/// Returns the error for an edit with no place, or several. `text` is the file after the previous edits.
pub(super) fn not_found(
    error: &NoMatch,
    input: &EditFileInput,
    index: usize,
    name: &str,
    text: &str,
) -> ToolError {
    let field = format!("`{}old_string`", input.place(index));
    let after = if index > 0 {
        " after the edits before it"
    } else {
        ""
    };
    let nothing = if input.listed { " Nothing was changed." } else { "" };
    ToolError::Invalid(match error {
        NoMatch::Several { lines, count } => {
            let lines: Vec<String> = lines.iter().take(MAX_PLACES).map(usize::to_string).collect();
            let more = if *count > lines.len() { ", …" } else { "" };
            format!(
                "{field} is in {name}{after} {count} times (lines {}{more}).{nothing} Add lines around it until it is \
                 unique, or set replace_all.",
                lines.join(", ")
            )
        }
        NoMatch::SeveralAlike { count } => format!(
            "{field} is not in {name}{after}; {count} places differ only in blanks or the form of quotes.{nothing} \
             Copy one exactly, with lines around it."
        ),
        NoMatch::Nowhere {
            nearest: Some((from, count)),
        } => format!(
            "{field} is not in {name}{after}.{nothing} The nearest lines are:\n{}",
            numbered(text, *from, *count)
        ),
        NoMatch::Nowhere { nearest: None } => {
            format!("{field} is not in {name}{after}, and nothing similar is.{nothing} Read the file again.")
        }
    })
}
