//! Errors of libraries in words that people understand.

/// Phrases of libraries, and ours in their place.
const PHRASES: [(&str, &str); 23] = [
    ("invalid value: ", "invalid type: "),
    ("invalid type: sequence,", "found a list,"),
    ("invalid type: map,", "found an object,"),
    ("invalid type: unit value,", "found null,"),
    ("invalid type: integer `", "found the number `"),
    ("invalid type: floating point `", "found the number `"),
    ("invalid type: string \"", "found the text \""),
    ("invalid type: boolean `", "found `"),
    ("invalid type: ", "found "),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected an object"),
    ("expected a borrowed string", "expected a text"),
    ("expected a string", "expected a text"),
    ("expected u64", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected u16", "expected a whole number"),
    ("expected u8", "expected a whole number"),
    ("expected usize", "expected a whole number"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("EOF while parsing", "the text ends in the middle of"),
    ("stream did not contain valid UTF-8", "this is not UTF-8 text"),
    ("unknown variant `", "unknown value `"),
];

/// Words that only a parser uses.
const PARSERS: [&str; 6] = [
    "invalid type: ",
    "invalid value: ",
    "did not match any variant",
    "EOF while parsing",
    "did not contain valid UTF-8",
    "unknown variant `",
];

/// Kinds of Rust types, in front of the name of one.
const TYPES: [&str; 5] = [
    "internally tagged enum ",
    "adjacently tagged enum ",
    "untagged enum ",
    "struct ",
    "enum ",
];

/// Replaces the words of the system's and the parsers' messages in an error: numbers of system errors, and names of
/// Rust types. Everything else stays as it is.
pub fn in_plain_words(error: &str) -> String {
    let mut text = without_numbers(error);
    let is_ours = !PARSERS.iter().any(|words| text.contains(words));
    if is_ours {
        return text;
    }
    text = text.replace(
        "data did not match any variant of ",
        "it has none of the expected forms of ",
    );
    text = without_types(text);
    for (theirs, ours) in PHRASES {
        if text.contains(theirs) {
            text = text.replace(theirs, ours);
        }
    }
    text
}

/// Describes an error of the JSON parser without its position, for a text whose place is named already.
pub fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    in_plain_words(text.strip_suffix(&place).unwrap_or(&text))
}

/// Removes the numbers of the system's errors, as in `No such file or directory (os error 2)`.
fn without_numbers(text: &str) -> String {
    const START: &str = " (os error ";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        let digits = after.len() - after.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
        let (number, behind) = after.split_at(digits);
        kept.push_str(before);
        match behind.strip_prefix(')').filter(|_| !number.is_empty()) {
            Some(behind) => rest = behind,
            None => {
                kept.push_str(START);
                rest = after;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// Replaces `struct Name` and the like, which names a type of the program, by what it is in JSON.
fn without_types(mut text: String) -> String {
    for kind in TYPES {
        for before in ["expected ", "of "] {
            let wanted = format!("{before}{kind}");
            while let Some(at) = text.find(&wanted) {
                let name = at + wanted.len();
                let rest = text.get(name..).unwrap_or_default();
                let length = rest
                    .find(|sign: char| !sign.is_alphanumeric() && sign != '_')
                    .unwrap_or(rest.len());
                // Without a name it is some other text.
                let ours = if before == "of " { "" } else { "an object" };
                text.replace_range(at + before.len()..name + length, ours);
            }
        }
    }
    text.replace("the expected forms of ", "the expected forms")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-7: people read what is wrong, not how a library says it.
    #[test]
    fn library_words_are_replaced() {
        for (theirs, ours) in [
            (
                "nope: No such file or directory (os error 2); nothing was written",
                "nope: No such file or directory; nothing was written",
            ),
            ("about (os error handling", "about (os error handling"),
            (
                "invalid type: integer `3`, expected struct InputMessage",
                "found the number `3`, expected an object",
            ),
            (
                "invalid type: string \"x\", expected u64",
                "found the text \"x\", expected a whole number",
            ),
            (
                "invalid type: map, expected a sequence",
                "found an object, expected a list",
            ),
            (
                "data did not match any variant of untagged enum Either",
                "it has none of the expected forms",
            ),
            ("missing field `path`", "missing field `path`"),
            (
                "EOF while parsing an object at line 2 column 0",
                "the text ends in the middle of an object at line 2 column 0",
            ),
            ("struct of enum", "struct of enum"),
        ] {
            assert_eq!(in_plain_words(theirs), ours);
        }
        let error = serde_json::from_str::<u64>("[").map_err(|error| json_problem(&error));
        assert!(error.is_err_and(|text| !text.contains("line 1")));
    }
}
