//! Words of a text, as every full-text search of the program sees them.
//!
//! A question is searched by its words: any of them may occur, and rare ones count more. Words that carry no
//! meaning on their own are left out, unless nothing else remains.

mod related;
mod stem;

use std::sync::LazyLock;

pub use self::related::related;
pub use self::stem::stem;

/// Maximum number of different words of a question that are searched.
const MAX_QUERY: usize = 48;

/// Maximum length of a word in bytes. Longer runs are encoded data.
const MAX_WORD: usize = 64;

/// Words that say nothing about the subject of a text, sorted.
static STOP: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("words/stop.txt").split_whitespace().collect());

/// Returns the words of a text in lower case, in order. Text in scripts without spaces is cut into pairs of
/// characters.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|sign: char| !sign.is_alphanumeric()) {
        if run.is_empty() || run.len() > MAX_WORD {
            continue;
        }
        let word = run.to_lowercase();
        if word.chars().any(is_unspaced) {
            pairs(&word, &mut words);
        } else {
            words.push(word);
        }
    }
    words
}

/// Returns the different words of a question that are worth a search, in order.
pub fn query_words(question: &str) -> Vec<String> {
    let all = words(question);
    let has_meaning = all.iter().any(|word| !is_stop_word(word));
    let mut kept = Vec::new();
    for word in all {
        let is_wanted = !has_meaning || !is_stop_word(&word);
        if is_wanted && kept.len() < MAX_QUERY && !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept
}

/// Returns true if a word, in lower case, carries no meaning on its own.
pub fn is_stop_word(word: &str) -> bool {
    STOP.binary_search(&word).is_ok()
}

/// Returns true for a character of a script that writes words without spaces between them.
fn is_unspaced(sign: char) -> bool {
    matches!(u32::from(sign), 0x0E00..=0x0EFF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0x2_0000..=0x3_FFFF)
}

fn pairs(word: &str, words: &mut Vec<String>) {
    let signs: Vec<char> = word.chars().collect();
    if let [sign] = signs.as_slice() {
        words.push(sign.to_string());
    }
    for pair in signs.windows(2) {
        words.push(pair.iter().collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-14: the list can be searched by halves.
    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP.is_sorted());
    }

    /// SES-14, MEM-7: a question is its words without those that mean nothing.
    #[test]
    fn a_question_becomes_its_words() {
        assert_eq!(
            query_words("What did we decide about retries?"),
            ["decide", "retries"]
        );
        assert_eq!(query_words("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(
            query_words("retry_policy in Config.toml"),
            ["retry", "policy", "config", "toml"]
        );
        assert_eq!(query_words("設定を変更"), ["設定", "定を", "を変", "変更"]);
        assert!(query_words("?!").is_empty());
    }
}
