//! Porter's algorithm: English words without their endings, so that `retries` finds `retry`.

/// Returns the stem of a word in lower case. Words in other scripts, and those with digits, stay as they are.
pub fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|sign| sign.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(word.as_bytes().to_vec());
    word.plurals();
    word.past();
    if word.ends("y") && word.has_vowel(1) {
        word.replace(1, "i");
    }
    word.first_of(DOUBLE, 0);
    word.first_of(SINGLE, 0);
    word.endings();
    word.tidy();
    String::from_utf8(word.0).unwrap_or_default()
}

const DOUBLE: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

const SINGLE: &[(&str, &str)] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const ENDINGS: &[&str] = &[
    "ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive",
    "ize", "al", "er", "ic", "ou",
];

struct Word(Vec<u8>);

impl Word {
    fn ends(&self, end: &str) -> bool {
        self.0.ends_with(end.as_bytes())
    }

    fn replace(&mut self, count: usize, with: &str) {
        self.0.truncate(self.0.len().saturating_sub(count));
        self.0.extend_from_slice(with.as_bytes());
    }

    fn is_consonant(&self, place: usize) -> bool {
        match self.0.get(place) {
            Some(b'a' | b'e' | b'i' | b'o' | b'u') => false,
            Some(b'y') => place == 0 || !self.is_consonant(place - 1),
            _ => true,
        }
    }

    /// Number of times that consonants follow vowels, without the last `cut` letters.
    fn measure(&self, cut: usize) -> usize {
        let mut count = 0;
        let mut was_vowel = false;
        for place in 0..self.0.len().saturating_sub(cut) {
            let is_consonant = self.is_consonant(place);
            if is_consonant && was_vowel {
                count += 1;
            }
            was_vowel = !is_consonant;
        }
        count
    }

    fn has_vowel(&self, cut: usize) -> bool {
        (0..self.0.len().saturating_sub(cut)).any(|place| !self.is_consonant(place))
    }

    fn ends_double(&self) -> bool {
        let count = self.0.len();
        count > 1 && self.0.get(count - 1) == self.0.get(count - 2) && self.is_consonant(count - 1)
    }

    /// Consonant, vowel, consonant other than w, x and y at the end, without the last `cut` letters.
    fn ends_short(&self, cut: usize) -> bool {
        let count = self.0.len().saturating_sub(cut);
        count > 2
            && self.is_consonant(count - 1)
            && !self.is_consonant(count - 2)
            && self.is_consonant(count - 3)
            && !matches!(self.0.get(count - 1), Some(b'w' | b'x' | b'y'))
    }

    fn plurals(&mut self) {
        if self.ends("sses") || self.ends("ies") {
            self.replace(2, "");
        } else if self.ends("s") && !self.ends("ss") {
            self.replace(1, "");
        }
    }

    fn past(&mut self) {
        if self.ends("eed") {
            if self.measure(3) > 0 {
                self.replace(1, "");
            }
            return;
        }
        let cut = match () {
            () if self.ends("ed") && self.has_vowel(2) => 2,
            () if self.ends("ing") && self.has_vowel(3) => 3,
            () => return,
        };
        self.replace(cut, "");
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.replace(0, "e");
        } else if self.ends_double() && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.replace(1, "");
        } else if self.measure(0) == 1 && self.ends_short(0) {
            self.replace(0, "e");
        }
    }

    fn first_of(&mut self, table: &[(&str, &str)], least: usize) {
        let found = table.iter().find(|(end, _)| self.ends(end));
        if let Some((end, with)) = found
            && self.measure(end.len()) > least
        {
            self.replace(end.len(), with);
        }
    }

    fn endings(&mut self) {
        let found = ENDINGS.iter().find(|end| self.ends(end));
        let Some(end) = found else { return };
        let before = self.0.len().checked_sub(end.len() + 1);
        let is_fit = *end != "ion" || matches!(before.and_then(|place| self.0.get(place)), Some(b's' | b't'));
        if is_fit && self.measure(end.len()) > 1 {
            self.replace(end.len(), "");
        }
    }

    fn tidy(&mut self) {
        if self.ends("e") {
            let measure = self.measure(1);
            if measure > 1 || (measure == 1 && !self.ends_short(1)) {
                self.replace(1, "");
            }
        }
        if self.ends("ll") && self.measure(0) > 1 {
            self.replace(1, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    /// MEM-7: words with the same stem meet.
    #[test]
    fn endings_are_cut() {
        for (word, expected) in [
            ("retries", "retri"),
            ("retry", "retri"),
            ("decided", "decid"),
            ("decision", "decis"),
            ("running", "run"),
            ("hopping", "hop"),
            ("relational", "relat"),
            ("agreed", "agre"),
            ("connection", "connect"),
            ("adjustable", "adjust"),
            ("sky", "sky"),
            ("über", "über"),
            ("v2", "v2"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
