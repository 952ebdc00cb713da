//! Recognizes corrections and preferences in the user's words, without asking a model.

use windlass_core::log::MemoryKind;

/// Maximum length of a correction in characters. A longer message is a task.
const LONGEST: usize = 600;

/// Starts of messages that correct the answer before them.
const STARTS: &[&str] = &[
    "no,",
    "no.",
    "no ",
    "no!",
    "nope",
    "wrong",
    "that's wrong",
    "that is wrong",
    "that's not",
    "that is not",
    "this is not",
    "this is wrong",
    "not like that",
    "don't",
    "do not",
    "stop ",
    "never ",
    "you shouldn't",
    "you should not",
    "you should have",
    "you forgot",
    "i said",
    "i told you",
    "i meant",
    "i asked",
    "actually",
    "nein",
    "falsch",
    "das ist falsch",
    "nicht so",
    "please don't",
    "please do not",
    "i didn't ask",
];

/// Phrases that correct wherever they are.
const INSIDE: &[&str] = &[
    "instead of",
    "next time",
    "as i said",
    "i already told you",
    "not what i",
    "you keep ",
    "you misunderstood",
    "use it instead",
    "that broke",
    "undo that",
    "should be ",
    "statt dessen",
    "das war falsch",
];

/// Phrases of a lasting preference.
const LASTING: &[&str] = &[
    "i prefer",
    "i always",
    "i never",
    "always use",
    "always run",
    "always write",
    "never use",
    "from now on",
    "in the future",
    "remember that",
    "remember to",
    "my preference",
    "i like it when",
    "i don't like",
    "i hate ",
    "ab jetzt",
    "ich bevorzuge",
    "immer ",
];

/// Returns the kind of lesson in a message of the user: a correction of the answer before it, if there is one, or a
/// preference. Questions and long messages are neither.
pub fn lesson(text: &str, follows_answer: bool) -> Option<MemoryKind> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > LONGEST || text.starts_with('/') {
        return None;
    }
    let lower = text.to_lowercase().replace('’', "'");
    if LASTING.iter().any(|phrase| lower.contains(phrase)) && !lower.ends_with('?') {
        return Some(MemoryKind::Preference);
    }
    if !follows_answer || lower.ends_with('?') || lower.split_whitespace().count() < 3 {
        return None;
    }
    let corrects = STARTS.iter().any(|start| lower.starts_with(start))
        || INSIDE.iter().any(|phrase| lower.contains(phrase));
    // Thanks and refusals without content teach nothing.
    let is_polite = [
        "no problem",
        "no worries",
        "no thanks",
        "no, thanks",
        "no need",
        "actually, that",
    ]
    .iter()
    .any(|start| lower.starts_with(start));
    (corrects && !is_polite).then_some(MemoryKind::Lesson)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-6: corrections and preferences are recognized by their form.
    #[test]
    fn corrections_are_recognized() {
        let found = |text: &str| lesson(text, true);
        assert_eq!(found("No, use pnpm here, not npm."), Some(MemoryKind::Lesson));
        assert_eq!(
            found("That's wrong: the tests live in spec/."),
            Some(MemoryKind::Lesson)
        );
        assert_eq!(
            found("Use tabs instead of spaces in Makefiles"),
            Some(MemoryKind::Lesson)
        );
        assert_eq!(
            found("I prefer short commit messages."),
            Some(MemoryKind::Preference)
        );
        assert_eq!(found("No problem, go on with it"), None);
        assert_eq!(found("Now add a test for the parser."), None);
        assert_eq!(found("Is that not wrong?"), None);
        assert_eq!(lesson("No, use pnpm here, not npm.", false), None);
        assert_eq!(found(&format!("no, {}", "x ".repeat(400))), None);
    }
}
