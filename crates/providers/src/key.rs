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

    /// Returns the forms in which a text may contain the key: as it is, inside JSON, inside a URL. A key of
    /// less than four characters is a placeholder, and has none: replacing it would shred the text.
    pub(crate) fn forms(&self) -> Vec<String> {
        let key = self.expose();
        if key.len() < 4 {
            return Vec::new();
        }
        let json = serde_json::Value::from(key).to_string();
        let json = json.trim_matches('"').to_owned();
        let in_url = key.bytes().map(|byte| match byte {
            b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        });
        let mut forms = vec![
            key.to_owned(),
            json.replace('/', "\\/"),
            json,
            in_url.collect::<String>(),
        ];
        // The longest first: a shorter one may be part of it.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        forms
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

/// Returns true if an additional header probably carries a credential: its name says so, or its value looks like
/// one, because gateways choose names that say nothing.
pub fn is_credential(header: &str, value: &str) -> bool {
    /// Shortest value without a telling name.
    const SHORTEST: usize = 16;
    const SIGNS: [&str; 7] = [
        "auth",
        "key",
        "token",
        "secret",
        "cookie",
        "password",
        "credential",
    ];
    let header = header.to_ascii_lowercase();
    let is_random = value.len() >= SHORTEST
        && !value.contains(char::is_whitespace)
        && !value.contains("://")
        && value.contains(|letter: char| letter.is_ascii_digit())
        && value.contains(|letter: char| letter.is_ascii_alphabetic());
    SIGNS.iter().any(|sign| header.contains(sign)) || is_random
}

/// Returns `text` without `keys` and without anything that looks like a key.
///
/// Providers quote keys in their messages, so every provider text passes through here before the user sees
/// it.
pub fn redact<'a>(text: &str, keys: impl IntoIterator<Item = &'a Secret>) -> String {
    let mut text = text.to_owned();
    for form in keys.into_iter().flat_map(Secret::forms) {
        if text.contains(&form) {
            text = text.replace(&form, REDACTED);
        }
    }
    let text = without_bearers(&text);
    mask_known_keys(&text).unwrap_or(text)
}

/// Masks what follows the word `bearer`.
fn without_bearers(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut after_bearer = false;
    for piece in text.split_inclusive(|letter| !is_key_letter(letter)) {
        let word = piece.trim_end_matches(|letter| !is_key_letter(letter));
        if after_bearer && word.len() >= 8 {
            clean.push_str(REDACTED);
            clean.push_str(piece.strip_prefix(word).unwrap_or_default());
        } else {
            clean.push_str(piece);
        }
        after_bearer = word.eq_ignore_ascii_case("bearer") || (after_bearer && word.is_empty());
    }
    clean
}

/// Returns true for characters that occur in keys. `*` is one, because providers quote keys half masked.
fn is_key_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '*' | '~' | '+' | '/' | '=' | '.')
}

/// Starts of keys in known formats: of model providers, clouds, code hosts, chats, payment and package services.
const PREFIXES: [&str; 33] = [
    "sk-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "gsk_",
    "xai-",
    "csk-",
    "hf_",
    "fw_",
    "r8_",
    "pplx-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "sk_live_",
    "rk_live_",
    "sk_test_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
    "tskey-",
    "AGE-SECRET-KEY-",
];

/// Bounds of the length of a key. A longer run of such letters is data, such as base64.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 12..=400;

/// Length up to which a JSON Web Token is taken for one.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 40..=4096;

/// Masks everything that has the format of a known kind of key: prefixed keys, JSON Web Tokens, private keys.
/// Returns `None` if there is nothing to mask.
pub fn mask_known_keys(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        match starts_word(text, at).then(|| key_length(rest)).flatten() {
            Some(length) => {
                out.push_str(text.get(copied..at).unwrap_or_default());
                out.push_str(REDACTED);
                at += length;
                copied = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
}

/// Returns true if a key may begin here: nothing before it belongs to the same word. An escaped line break
/// ends a word as well.
fn starts_word(text: &str, at: usize) -> bool {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    match before {
        [.., b'\\', b'n' | b't' | b'r'] => true,
        [.., last] => !last.is_ascii_alphanumeric() && *last != b'_',
        [] => true,
    }
}

/// Returns the length of the key at the start of a text.
fn key_length(text: &str) -> Option<usize> {
    if text.starts_with(PEM) {
        return pem_length(text);
    }
    let has_prefix = PREFIXES.iter().any(|prefix| text.starts_with(prefix));
    let is_token = text.starts_with("eyJ");
    if !has_prefix && !is_token {
        return None;
    }
    let run = text
        .split(|letter| !is_key_letter(letter))
        .next()
        .unwrap_or_default();
    let run = run.trim_end_matches(['.', '/']);
    let is_key = has_prefix
        && KEY_BYTES.contains(&run.len())
        && run.bytes().any(|byte| byte.is_ascii_digit() || byte == b'*');
    let is_token = is_token && TOKEN_BYTES.contains(&run.len()) && run.matches('.').count() == 2;
    (is_key || is_token).then_some(run.len())
}

/// Start of the first line of a private key.
const PEM: &str = "-----BEGIN ";

/// Returns the length of a private key, up to and including its last line.
fn pem_length(text: &str) -> Option<usize> {
    let (kind, _) = text.strip_prefix(PEM)?.split_once("-----")?;
    if !kind.ends_with("PRIVATE KEY") || kind.len() > 40 {
        return None;
    }
    let last = format!("-----END {kind}-----");
    // Without its end, the key extends to the end of the text.
    Some(text.find(&last).map_or(text.len(), |place| place + last.len()))
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
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIzNDU2";
        let many = format!("KEY=ghp_0123456789abcdef, \\nAKIAIOSFODNN7EXAMPLE. {jwt} {pem} end");
        let expected = "KEY=[redacted], \\n[redacted]. [redacted] [redacted] end";
        assert_eq!(mask_known_keys(&many).as_deref(), Some(expected));
        for plain in [
            "sk-learn-tutorials",
            "risk-0123456789ab",
            "task_sk-1",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(mask_known_keys(plain), None, "{plain}");
        }
        let data = format!("x-sk-{}", "A1".repeat(1000));
        assert_eq!(mask_known_keys(&data), None);
        let secret = Secret::new("my/odd+key");
        let forms = r"my/odd+key my\/odd+key ?key=my%2Fodd%2Bkey";
        assert_eq!(
            redact(forms, Some(&secret)),
            "[redacted] [redacted] ?key=[redacted]"
        );
    }
}
