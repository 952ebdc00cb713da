//! Recognizes corrections and preferences in the user's words, without asking a model.

use windlass_core::log::MemoryKind;

/// Maximum length of a correction in characters. A longer message is a task.
const LONGEST: usize = 600;

/// Maximum length in characters of a message in which `…, not …` is a correction.
const SHORT: usize = 160;

/// Starts of messages that correct the answer before them.
#[rustfmt::skip]
const STARTS: &[&str] = &[
    "no", "nope", "wrong", "not like that", "not that", "don't", "do not", "please don't", "please do not", "never",
    "that's wrong", "that is wrong", "that's not", "that is not", "that isn't", "this is wrong", "this is not",
    "this isn't", "it's not", "it isn't", "you shouldn't", "you should not", "you should have", "you should use",
    "you forgot", "you missed", "you broke", "you didn't", "you did not", "you used the wrong", "i said", "i told you",
    "i meant", "i asked", "i wanted", "i didn't ask", "actually", "we use", "we don't use", "we do not use",
    "stop using", "stop adding", "stop writing", "stop changing", "stop doing", "stop making", "stop removing",
    "nein", "nee", "nö", "falsch", "nicht so", "so nicht", "das ist falsch", "das ist nicht", "das stimmt nicht",
    "das war nicht", "bitte nicht", "bitte kein", "bitte keine", "bitte keinen", "ich meinte", "ich sagte", "ich wollte",
    "ich habe gesagt", "ich hatte gesagt", "ich hab gesagt", "du hast vergessen", "du solltest", "hör auf", "lass das",
    "wir nutzen", "wir verwenden", "wir benutzen", "nicht",
];

/// Phrases that correct wherever they are.
#[rustfmt::skip]
const INSIDE: &[&str] = &[
    "instead of", "rather than", "next time", "as i said", "i already told you", "i already said", "not what i",
    "you keep", "you misunderstood", "use it instead", "that broke", "undo that", "revert that", "should be",
    "should have been", "statt", "anstatt", "anstelle", "stattdessen", "das war falsch", "wie gesagt", "nächstes mal",
    "beim nächsten mal", "schon gesagt", "nicht das, was",
];

/// Starts of questions that correct.
#[rustfmt::skip]
const QUESTIONS: &[&str] = &[
    "didn't i", "did i not", "haven't i", "have i not", "hatte ich nicht", "habe ich nicht", "hab ich nicht",
    "sagte ich nicht",
];

/// Phrases of a lasting preference wherever they are.
#[rustfmt::skip]
const LASTING: &[&str] = &[
    "i prefer", "i'd prefer", "i would prefer", "we prefer", "i'd rather", "from now on", "going forward", "my preference",
    "i like it when", "i don't like it when", "i hate it when", "i always want", "i always use", "i never want", "i never use",
    "we always use", "we never use", "remember that", "keep in mind", "ab jetzt", "ab sofort", "von nun an",
    "ich bevorzuge", "mir ist lieber", "ich möchte immer", "ich will immer", "merk dir", "merke dir", "denk daran",
    "denk dran", "nie wieder",
];

/// Orders that last, at the start of a clause.
#[rustfmt::skip]
const ORDERS: &[&str] = &[
    "always use", "always run", "always write", "always add", "always put", "always ask", "always check", "always answer",
    "always reply", "always keep", "always prefer", "never use", "never run", "never write", "never add", "never commit",
    "never push", "never touch", "never edit", "never change", "never delete", "remember to", "in the future,",
    "in future,", "i don't like", "in zukunft", "zukünftig", "künftig", "immer", "niemals", "nutze immer",
    "verwende immer", "benutze immer", "schreib immer", "schreibe immer", "mach immer", "mache immer", "führe immer",
    "antworte immer", "nimm immer", "nutze nie", "verwende nie", "benutze nie", "ich mag kein", "ich mag keine",
];

/// Starts of messages that correct nothing: thanks, consent, refusals without content.
#[rustfmt::skip]
const POLITE: &[&str] = &[
    "no problem", "no worries", "no thanks", "no, thanks", "no thank you", "no need", "no idea", "no rush", "no hurry",
    "no, that's fine", "no that's fine", "no, it's fine", "no, that's all", "no, that is all", "no, go on", "no, go ahead",
    "actually, that", "actually that", "actually, let's", "actually, can", "actually, could", "don't worry",
    "do not worry", "don't bother", "that's not bad", "that's not a problem", "never mind", "nein danke", "nein, danke", "nein, passt",
    "nein, alles gut", "nein, das passt", "nicht schlecht", "nicht nötig", "kein problem",
    "immer wenn", "immer noch", "immer wieder",
];

/// Continuations of `should be` that ask for nothing else.
#[rustfmt::skip]
const HOPEFUL: &[&str] = &["possible", "able", "fine", "easy", "enough", "there", "good", "ok", "okay", "done", "ready"];

/// Returns the kind of lesson in a message of the user: a correction of the answer before it, if there is one, or a
/// preference. Other questions and long messages are neither.
pub fn lesson(text: &str, follows_answer: bool) -> Option<MemoryKind> {
    let text = text.trim();
    let length = text.chars().count();
    if text.is_empty() || length > LONGEST || text.starts_with('/') {
        return None;
    }
    let lower = text.to_lowercase().replace('’', "'");
    let is_question = lower.ends_with('?');
    let starts = |phrases: &[&str]| phrases.iter().any(|phrase| starts_with(&lower, phrase));
    if starts(POLITE) || lower.split_whitespace().count() < 3 {
        return None;
    }
    let lasts = LASTING.iter().any(|phrase| occurs(&lower, phrase, |_| true))
        || ORDERS.iter().any(|phrase| occurs(&lower, phrase, starts_clause));
    if lasts && !is_question {
        return Some(MemoryKind::Preference);
    }
    if !follows_answer {
        return None;
    }
    let corrects = match is_question {
        true => starts(QUESTIONS),
        false => {
            let contrast = length <= SHORT && (lower.contains(", not ") || lower.contains(", nicht "));
            starts(STARTS) || contrast || INSIDE.iter().any(|phrase| corrects_inside(&lower, phrase))
        }
    };
    corrects.then_some(MemoryKind::Lesson)
}

fn corrects_inside(text: &str, phrase: &str) -> bool {
    let is_hope = || {
        let rest = text.split_once("should be ").map_or("", |(_, rest)| rest);
        HOPEFUL.iter().any(|word| starts_with(rest, word))
    };
    occurs(text, phrase, |_| true) && !(phrase == "should be" && is_hope())
}

/// Returns true if a text starts with a phrase and not with a longer word.
fn starts_with(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Returns true if whole words of a text are the phrase, after a text that fits.
fn occurs(text: &str, phrase: &str, fits: impl Fn(&str) -> bool) -> bool {
    text.match_indices(phrase).any(|(place, _)| {
        let before = text.get(..place).unwrap_or_default();
        let whole = text.get(place..).is_some_and(|rest| starts_with(rest, phrase));
        whole && !before.ends_with(|sign: char| sign.is_alphanumeric() || sign == '\'') && fits(before)
    })
}

/// Returns true if a clause may start after a text.
fn starts_clause(before: &str) -> bool {
    let before = before.trim_end_matches(' ');
    let last = before.rsplit(|sign: char| !sign.is_alphanumeric()).next();
    before.is_empty()
        || before.ends_with(|sign: char| ".,;:!?-–—(\n\"".contains(sign))
        || matches!(
            last,
            Some("please" | "bitte" | "and" | "und" | "but" | "aber" | "so" | "also" | "just" | "here")
        )
}

#[cfg(test)]
#[path = "lesson_tests.rs"]
mod tests;
