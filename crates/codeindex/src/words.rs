//! Words of source text: identifiers, whole and split at case changes and underscores.
//!
//! A word is kept as a 32-bit hash of its lower-case form. With a few hundred thousand words in a workspace, a word
//! of a query shares its hash with another one about once in ten thousand queries, and no vocabulary is needed.

use std::sync::LazyLock;

/// Words that say nothing about a file.
const STOP: &str = "a an and are as at be been but by can could did do does for from had has have he her him his how i if \
                    in into is it its just me my no not of on or our she should so than that the their them then there \
                    these they this those to too was we were what when where which who why will with would you your \
                    self return import none true false def class";

static STOP_HASHES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut hashes: Vec<u32> = STOP
        .split_whitespace()
        .map(|word| hash(word.as_bytes()))
        .collect();
    hashes.sort_unstable();
    hashes
});

/// Returns the hash of a word, in whatever case.
pub(crate) fn hash(word: &[u8]) -> u32 {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in word {
        state ^= u64::from(byte.to_ascii_lowercase());
        state = state.wrapping_mul(0x0100_0000_01b3);
    }
    state ^= state >> 29;
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    u32::try_from(state >> 32).unwrap_or_default()
}

/// Calls `visit` with each identifier of a text.
pub(crate) fn identifiers<'a>(text: &'a [u8], mut visit: impl FnMut(&'a [u8])) {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| is_letter(*byte)) {
        let (_, from) = rest.split_at(start);
        let end = from
            .iter()
            .position(|byte| !is_letter(*byte) && !byte.is_ascii_digit());
        let (word, after) = from.split_at(end.unwrap_or(from.len()));
        visit(word);
        rest = after;
    }
}

/// Calls `visit` with the hash of each word of a text: every identifier, and its parts if it has several.
pub(crate) fn hashes(text: &[u8], mut visit: impl FnMut(u32)) {
    identifiers(text, |word| word_hashes(word, &mut visit));
}

/// Returns the hashes of the words of a text.
pub(crate) fn hashes_of(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    hashes(text.as_bytes(), |hash| found.push(hash));
    found
}

fn word_hashes(word: &[u8], visit: &mut impl FnMut(u32)) {
    let whole = hash(word);
    if word.len() < 2 || is_stop(whole) {
        return;
    }
    visit(whole);
    let mut rest = word;
    let mut is_first = true;
    while let Some((part, after)) = next_part(rest) {
        rest = after;
        if part.len() == word.len() && is_first {
            return;
        }
        is_first = false;
        let hash = hash(part);
        if part.len() > 1 && !is_stop(hash) {
            visit(hash);
        }
    }
}

/// Returns true for an identifier of several parts, such as `retry_policy` or `RetryPolicy`.
pub(crate) fn is_compound(word: &[u8]) -> bool {
    let mut parts = 0;
    let mut rest = word;
    while let Some((_, after)) = next_part(rest) {
        parts += 1;
        rest = after;
    }
    parts > 1
        && !word
            .iter()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn is_stop(hash: u32) -> bool {
    STOP_HASHES.binary_search(&hash).is_ok()
}

/// Splits the first part off an identifier: `HTTPServer_v12` has the parts `HTTP`, `Server`, `v`, `12`.
fn next_part(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = word.iter().position(|byte| *byte != b'_')?;
    let (_, word) = word.split_at(start);
    let first = *word.first()?;
    let run = |test: &dyn Fn(u8) -> bool| word.iter().position(|byte| !test(*byte)).unwrap_or(word.len());
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte >= 0x80;
    let length = if first.is_ascii_digit() {
        run(&|byte| byte.is_ascii_digit())
    } else if is_small(first) {
        run(&is_small)
    } else {
        let capitals = run(&|byte| byte.is_ascii_uppercase());
        let next_is_small = word.get(capitals).is_some_and(|byte| is_small(*byte));
        match (capitals, next_is_small) {
            (1, true) => 1 + word.iter().skip(1).take_while(|byte| is_small(**byte)).count(),
            (_, true) => capitals - 1,
            (_, false) => capitals,
        }
    };
    Some(word.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(word: &str) -> Vec<String> {
        let mut rest = word.as_bytes();
        let mut parts = Vec::new();
        while let Some((part, after)) = next_part(rest) {
            parts.push(String::from_utf8_lossy(part).into_owned());
            rest = after;
        }
        parts
    }

    /// MEM-9: identifiers are split at case changes, underscores and digits.
    #[test]
    fn identifiers_are_split() {
        let cases: [(&str, &[&str]); 8] = [
            ("retry_policy", &["retry", "policy"]),
            ("RetryPolicy", &["Retry", "Policy"]),
            ("HTTPServer", &["HTTP", "Server"]),
            ("parseURL2", &["parse", "URL", "2"]),
            ("MAX_SIZE", &["MAX", "SIZE"]),
            ("__init__", &["init"]),
            ("x", &["x"]),
            ("größe", &["größe"]),
        ];
        for (word, expected) in cases {
            assert_eq!(parts(word), expected, "{word}");
        }
    }

    #[test]
    fn words_are_found_whole_and_in_parts() {
        let found = hashes_of("let x = RetryPolicy::default(); // the retry_policy");
        let has = |word: &str| found.contains(&hash(word.as_bytes()));
        assert!(has("retrypolicy") && has("retry_policy") && has("retry") && has("policy") && has("default"));
        assert!(!has("the") && !has("x"));
        assert_eq!(hash(b"Retry"), hash(b"RETRY"));
    }
}
