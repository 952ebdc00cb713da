//! Words that belong together although their stems differ: forms of irregular verbs, nouns of verbs, and common short
//! forms.

/// The groups of `related.txt`: each stem with the words of the other stems of its line, sorted by stem. Words with a
/// second meaning that is common in technical texts, such as `left`, are not among them.
static BY_STEM: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/related.rs"));

/// Returns the words that belong to a word with this stem, without those of the same stem.
pub fn related(stem: &str) -> &'static [&'static str] {
    let found = BY_STEM.binary_search_by_key(&stem, |(stem, _)| stem);
    found.map_or(&[], |index| BY_STEM[index].1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::stem;

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
