//! Finds the part of a file most similar to a text that is not in it, and formats it.

use std::collections::HashSet;

use windlass_core::text;

/// Maximum number of characters shown of a line.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns the lines that share most words with `old`, if they share enough: the index of the first, and
/// their number.
pub(crate) fn nearest(text: &str, old: &str) -> Option<(usize, usize)> {
    const SHOWN: usize = 8;
    let wanted: HashSet<&str> = words(old).collect();
    let scores: Vec<usize> = text
        .lines()
        .map(|line| words(line).filter(|word| wanted.contains(word)).count())
        .collect();
    let window = old.lines().count().clamp(1, SHOWN);
    let sums = scores
        .windows(window.min(scores.len().max(1)))
        .map(|part| part.iter().sum::<usize>());
    // The first of the best, so that the result is deterministic.
    let (index, best) = sums
        .enumerate()
        .max_by_key(|(index, sum)| (*sum, std::cmp::Reverse(*index)))?;
    let of_window: usize = old.lines().take(window).map(|line| words(line).count()).sum();
    (best > 0 && best * 3 >= of_window).then_some((index, window))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// Returns lines of a text with their numbers, starting at this index.
pub(crate) fn numbered(text: &str, from: usize, count: usize) -> String {
    let lines = text.lines().enumerate().skip(from).take(count);
    let lines = lines.map(|(index, line)| {
        let (line, cut) = text::shorten(line, MAX_SHOWN_CHARS);
        format!("{:>6}\t{line}{}", index + 1, if cut > 0 { "…" } else { "" })
    });
    lines.collect::<Vec<_>>().join("\n")
}
