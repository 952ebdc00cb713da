//! WordPiece: cuts a text into the tokens of the model.

use std::collections::HashMap;

/// Tokens of the vocabulary with a meaning of their own.
const UNKNOWN: usize = 100;
const START: usize = 101;
const END: usize = 102;

/// Maximum length of a word in characters; a longer one is unknown.
const LONGEST: usize = 64;

/// The vocabulary.
pub(super) struct WordPiece(HashMap<String, usize>);

impl WordPiece {
    pub(super) fn new(vocabulary: &str) -> Self {
        let lines = vocabulary.lines().enumerate();
        Self(
            lines
                .map(|(number, line)| (line.trim_end().to_owned(), number))
                .collect(),
        )
    }

    /// Returns the tokens of a text, at most `most`, with those for its start and its end.
    pub(super) fn tokens(&self, text: &str, most: usize) -> Vec<usize> {
        let mut tokens = vec![START];
        let mut word = String::new();
        for sign in text.chars().flat_map(char::to_lowercase) {
            if tokens.len() >= most {
                break;
            }
            if sign.is_alphanumeric() && !is_ideograph(sign) {
                word.extend(plain(sign));
                continue;
            }
            self.cut(&mut word, &mut tokens);
            if !sign.is_whitespace() && !sign.is_control() {
                word.push(sign);
                self.cut(&mut word, &mut tokens);
            }
        }
        self.cut(&mut word, &mut tokens);
        tokens.truncate(most.saturating_sub(1));
        tokens.push(END);
        tokens
    }

    /// Cuts a word into the longest pieces that the vocabulary has, and empties it.
    fn cut(&self, word: &mut String, tokens: &mut Vec<usize>) {
        if word.is_empty() {
            return;
        }
        let found = if word.chars().count() > LONGEST {
            None
        } else {
            self.pieces(word)
        };
        tokens.extend(found.unwrap_or_else(|| vec![UNKNOWN]));
        word.clear();
    }

    fn pieces(&self, word: &str) -> Option<Vec<usize>> {
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let ends = word
                .get(start..)?
                .char_indices()
                .map(|(at, sign)| start + at + sign.len_utf8());
            let ends: Vec<usize> = ends.collect();
            let (end, token) = ends.into_iter().rev().find_map(|end| {
                let piece = word.get(start..end)?;
                let token = match start {
                    0 => self.0.get(piece),
                    _ => self.0.get(&format!("##{piece}")),
                };
                Some((end, *token?))
            })?;
            pieces.push(token);
            start = end;
        }
        Some(pieces)
    }
}

/// Returns a letter without its accent, where the vocabulary expects it.
fn plain(sign: char) -> Option<char> {
    Some(match sign {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        other => other,
    })
}

/// Returns true for a character that the vocabulary knows only on its own.
fn is_ideograph(sign: char) -> bool {
    matches!(u32::from(sign), 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x2_FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEM-7: a text becomes the longest pieces of the vocabulary, without case and accents; what it does not know is one
    /// unknown token, and the end is always there.
    #[test]
    fn words_become_pieces() {
        let mut lines: Vec<String> = (0..=END).map(|number| format!("[unused{number}]")).collect();
        lines.extend(["play", "##ing", "cafe", ",", "日"].map(str::to_owned));
        let pieces = WordPiece::new(&lines.join("\n"));
        let expected = [START, 103, 104, 105, 106, UNKNOWN, 107, 107, END];
        assert_eq!(pieces.tokens("Playing café, zzz 日日", 16), expected);
        assert_eq!(pieces.tokens("play play play", 4), [START, 103, 103, END]);
        assert_eq!(pieces.tokens(&"z".repeat(1_000), 16), [START, UNKNOWN, END]);
        assert_eq!(pieces.tokens("", 16), [START, END]);
    }
}
