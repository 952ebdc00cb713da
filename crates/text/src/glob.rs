//! Patterns with `*`.

/// Meaning of a single `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobStar {
    /// Any characters.
    Anything,
    /// Any characters but `/`; `**` crosses it.
    Segment,
}

/// Matches a whole text with a pattern that may contain `*`, in time proportional to text times pattern.
pub fn glob(pattern: &str, text: &str, star: GlobStar) -> bool {
    let start = pattern.split('*').next().unwrap_or_default();
    if !text.starts_with(start) {
        return false;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // reach[i] is true if the pattern so far matches the first i characters of the text.
    let mut reach = vec![false; text.len() + 1];
    if let Some(first) = reach.first_mut() {
        *first = true;
    }
    let mut letters = pattern.iter().copied().peekable();
    while let Some(letter) = letters.next() {
        let next = if letter == '*' {
            let crosses = letters.next_if_eq(&'*').is_some() || star == GlobStar::Anything;
            after_star(&reach, &text, crosses)
        } else {
            after_letter(&reach, &text, letter)
        };
        reach = next;
    }
    reach.last().copied().unwrap_or_default()
}

fn after_star(reach: &[bool], text: &[char], crosses: bool) -> Vec<bool> {
    let mut open = false;
    let mut next = Vec::with_capacity(reach.len());
    for (index, &here) in reach.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| text.get(index));
        open = here || (open && (crosses || before != Some(&'/')));
        next.push(open);
    }
    next
}

fn after_letter(reach: &[bool], text: &[char], letter: char) -> Vec<bool> {
    let fits = reach
        .iter()
        .zip(text)
        .map(|(&here, &found)| here && found == letter);
    std::iter::once(false).chain(fits).collect()
}
