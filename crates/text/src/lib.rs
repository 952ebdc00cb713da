//! Text that others wrote: cut at character boundaries, with its invisible characters marked, and JSON that stays readable.
//!
//! Nothing here knows messages, sessions or settings.

mod arguments;
mod failure;
mod fence;
mod glob;
mod hidden;
pub mod json;

use std::fmt::Display;

pub use self::arguments::{parse_strict, raw_arguments};
pub use self::failure::{in_plain_words, json_problem};
pub use self::fence::fence;
pub use self::glob::{GlobStar, glob};
pub use self::hidden::{hidden, misleading, with_signs};

/// Returns the last character boundary at or before `index`.
pub fn boundary_before(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Returns the first character boundary at or after `index`.
pub fn boundary_after(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index += 1;
    }
    index
}

/// Returns at most the first `limit` characters of a line, and the number of characters cut off.
pub fn shorten(line: &str, limit: usize) -> (&str, usize) {
    match line.char_indices().nth(limit) {
        None => (line, 0),
        Some((index, _)) => {
            let (kept, rest) = line.split_at(index);
            (kept, rest.chars().count())
        }
    }
}

/// Returns the first and last characters of a text that is too long.
pub fn clip(text: &str, most: usize) -> String {
    // A text never has more characters than bytes.
    if text.len() <= most {
        return text.to_owned();
    }
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(count - most / 2).collect();
    format!("{head} … {tail}")
}

/// Returns an answer that consists of words, without its control characters and not too long, or a description of the
/// problem with it.
pub fn readable(text: &str) -> Result<String, String> {
    const LONGEST: usize = 24_000;
    const FEWEST: usize = 8;
    let is_odd = |sign: &char| (sign.is_control() && !"\n\t\r".contains(*sign)) || *sign == '\u{fffd}';
    let text = text.trim();
    if text.is_empty() {
        return Err("the answer was empty".to_owned());
    }
    let all = text.chars().count();
    let letters = text.chars().filter(|sign| sign.is_alphanumeric()).count();
    let odd = text.chars().filter(is_odd).count();
    if letters < FEWEST || letters * 4 < all || odd * 20 > all {
        return Err("the answer was not text".to_owned());
    }
    let clean: String = text.chars().filter(|sign| !is_odd(sign)).collect();
    Ok(clip(&clean, LONGEST))
}

/// Returns the number of bytes at which two texts begin to differ, and a piece of each around that place.
pub fn difference(one: &[u8], other: &[u8]) -> (usize, String, String) {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other);
    let byte = same.count();
    let around = |bytes: &[u8]| {
        let piece: Vec<u8> = bytes
            .iter()
            .skip(byte.saturating_sub(20))
            .take(60)
            .copied()
            .collect();
        match piece.is_empty() {
            true => "nothing".to_owned(),
            false => String::from_utf8_lossy(&piece).into_owned(),
        }
    };
    (byte, around(one), around(other))
}

/// Formats a size for people.
pub fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)];
    match units.iter().find(|(_, unit)| bytes >= *unit) {
        None => format!("{bytes} B"),
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
    }
}

/// Formats a number with commas between thousands.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 line`, `2 lines`, `3 matches`, `4 entries`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    if number == N::from(1) {
        return format!("{number} {noun}");
    }
    match noun.strip_suffix("ry") {
        Some(stem) => format!("{number} {stem}ries"),
        None if noun.ends_with("ch") => format!("{number} {noun}es"),
        None => format!("{number} {noun}s"),
    }
}

/// Formats a count for a column: as wide for one thing as for several.
pub fn column(number: u64, noun: &str, digits: usize) -> String {
    let ending = if number == 1 { " " } else { "s" };
    format!("{number:>digits$} {noun}{ending}")
}

/// Joins a text into one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Joins a text into one line of at most `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        let text = "aä🦀";
        for index in 0..=text.len() + 1 {
            let (before, after) = (boundary_before(text, index), boundary_after(text, index));
            assert!(text.is_char_boundary(before) && text.is_char_boundary(after));
            assert!(before <= index && after >= index.min(text.len()));
        }
        assert_eq!(shorten(text, 2), ("aä", 1));
        assert_eq!(shorten(text, 3), (text, 0));
    }

    #[test]
    fn numbers_read_well() {
        let sizes = [0, 999, 1000, 1250, 1_500_000, 2_000_000_000].map(size);
        assert_eq!(
            [999, 1_000, 1_234_567].map(grouped),
            ["999", "1,000", "1,234,567"]
        );
        assert_eq!(sizes, ["0 B", "999 B", "1.0 KB", "1.2 KB", "1.5 MB", "2.0 GB"]);
        assert_eq!(
            [
                count(1, "line"),
                count(2_u64, "line"),
                count(0, "match"),
                count(3, "entry")
            ],
            ["1 line", "2 lines", "0 matches", "3 entries"]
        );
    }
}
