//! Words that belong together although their stems differ: forms of irregular verbs, nouns of verbs, and common short
//! forms.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::stem;

/// The groups, one per line. Words with a second meaning that is common in technical texts, such as `left`, are not among
/// them.
static BY_STEM: LazyLock<HashMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut groups = HashMap::new();
    for line in include_str!("related.txt").lines() {
        let words: Vec<(&str, String)> = line.split_whitespace().map(|word| (word, stem(word))).collect();
        for (_, member) in &words {
            let others = words.iter().filter(|(_, other)| other != member);
            groups.insert(member.clone(), others.map(|(word, _)| *word).collect());
        }
    }
    groups
});

/// Returns the words that belong to a word with this stem, without those of the same stem.
pub fn related(stem: &str) -> &'static [&'static str] {
    BY_STEM.get(stem).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7, SES-14: a question finds irregular forms, nouns of verbs and short forms, and other words stay alone.
    #[test]
    fn words_of_one_meaning_belong_together() {
        let of = |word: &str| related(&stem(word)).to_vec();
        assert_eq!(of("buy"), ["bought"]);
        assert_eq!(of("chosen"), ["choose", "chose", "choice"]);
        assert_eq!(of("decisions"), ["decide"]);
        assert_eq!(of("configurations"), ["config"]);
        assert!(of("left").is_empty() && of("parser").is_empty());
    }

    #[test]
    fn no_word_is_in_two_groups() {
        let mut seen = HashMap::new();
        for (number, line) in include_str!("related.txt").lines().enumerate() {
            for word in line.split_whitespace() {
                let other = seen.insert(stem(word), number).unwrap_or(number);
                assert_eq!(other, number, "{word} is in two groups");
            }
        }
    }
}
