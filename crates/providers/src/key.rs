//! Secrets that cannot be printed, and redaction of texts that may contain them.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

const REDACTED: &str = "[redacted]";

/// An API key. `Debug` and `Display` print `[redacted]`.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Creates a secret from a key. Surrounding white space, as left by files and commands, is removed.
    pub fn new(key: &str) -> Self {
        Self(SecretString::from(key.trim()))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Returns `text` without `keys` and without anything that looks like a key.
///
/// Providers quote keys in their messages, so every provider text passes through here before the user sees
/// it.
pub fn redact<'a>(text: &str, keys: impl IntoIterator<Item = &'a Secret>) -> String {
    let mut text = text.to_owned();
    for key in keys.into_iter().map(Secret::expose) {
        // Below four characters a "key" is a placeholder, and replacing it would shred the text.
        if key.len() >= 4 && text.contains(key) {
            text = text.replace(key, REDACTED);
        }
    }
    let mut clean = String::with_capacity(text.len());
    let mut word = String::new();
    let mut after_bearer = false;
    for letter in text.chars().map(Some).chain([None]) {
        match letter {
            Some(letter) if is_word(letter) => word.push(letter),
            other => {
                if !word.is_empty() {
                    let secret = looks_like_key(&word) || (after_bearer && word.len() >= 8);
                    clean.push_str(if secret { REDACTED } else { &word });
                    after_bearer = word.eq_ignore_ascii_case("bearer");
                    word.clear();
                }
                clean.extend(other);
            }
        }
    }
    clean
}

/// Returns true for characters that occur in keys. `*` is one, because providers quote keys half masked.
fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '*' | '~' | '+' | '/' | '=' | '.')
}

fn looks_like_key(word: &str) -> bool {
    const PREFIXES: [&str; 9] = [
        "sk-", "AKIA", "ASIA", "AIza", "gsk_", "xai-", "csk-", "hf_", "fw_",
    ];
    word.len() >= 12 && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PROV-11: no debug output contains a key.
    #[test]
    fn a_secret_shows_itself_to_nobody() {
        let secret = Secret::new(" hunter2-hunter2\n");
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "[redacted] [redacted] Some([redacted])"
        );
        assert_eq!(secret.expose(), "hunter2-hunter2");
    }

    /// PROV-11: redaction removes the key and everything that looks like one, and nothing else.
    #[test]
    fn texts_lose_keys() {
        let secret = Secret::new("my-odd-key");
        let cases = [
            (
                "Incorrect API key provided: my-odd-key.",
                "Incorrect API key provided: [redacted].",
            ),
            ("bad sk-proj-abc***************wxyz here", "bad [redacted] here"),
            (
                "Authorization: Bearer abcdef0123456789",
                "Authorization: Bearer [redacted]",
            ),
            ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
            ("the bearer of news, sk-1, keys", "the bearer of news, sk-1, keys"),
            ("größer 😀 my-odd-key", "größer 😀 [redacted]"),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(text, Some(&secret)), expected);
        }
        assert_eq!(redact("abc", Some(&Secret::new("a"))), "abc");
    }
}
