//! Recognizes passwords and keys, which are never kept.

/// Starts of keys that well-known services issue.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "hf_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
    "whsec_",
    "eyJ",
];

/// Names that a secret value follows.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passwort",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
    "client_secret",
    "authorization",
    "bearer",
    "credential",
    "passphrase",
];

/// Shortest value after such a name that counts.
const MIN_VALUE: usize = 6;

/// Shortest random-looking word that counts on its own.
const MIN_RANDOM: usize = 24;

/// Returns true if a text seems to contain a password or a key.
pub fn is_secret(text: &str) -> bool {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY") {
        return true;
    }
    let is_border = |sign: char| {
        sign.is_whitespace() || matches!(sign, '"' | '\'' | '`' | ',' | ';' | '(' | ')' | '<' | '>')
    };
    text.split(is_border).any(is_key) || text.lines().any(assigns)
}

fn is_key(word: &str) -> bool {
    // Base64 may end with equals signs.
    let word = word.trim_end_matches('=');
    let value = word.rsplit_once('=').map_or(word, |(_, value)| value);
    let has_password = word.split_once("://").is_some_and(|(_, rest)| {
        let host = rest.split('/').next().unwrap_or_default();
        host.split_once('@')
            .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, word)| !word.is_empty()))
    });
    let has_prefix = PREFIXES
        .iter()
        .any(|start| value.starts_with(start) && value.len() >= start.len() + 12 && mixed(value));
    has_password || has_prefix || (value.len() >= MIN_RANDOM && is_random(value))
}

fn mixed(word: &str) -> bool {
    word.bytes().any(|sign| sign.is_ascii_digit()) && word.bytes().any(|sign| sign.is_ascii_alphabetic())
}

/// Returns true for a word of letters of both cases and many digits, without the shape of a path or a name.
fn is_random(word: &str) -> bool {
    let is_code = |sign: u8| sign.is_ascii_alphanumeric() || matches!(sign, b'+' | b'/' | b'=' | b'_' | b'-');
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let upper = word.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = word.bytes().filter(u8::is_ascii_lowercase).count();
    word.bytes().all(is_code) && digits >= 4 && upper >= 4 && lower >= 4 && word.matches('/').count() < 3
}

/// Returns true if a line gives a secret its value: `password = …`, `token: …`.
fn assigns(line: &str) -> bool {
    let lower = line.to_lowercase();
    NAMES.iter().any(|name| {
        lower.match_indices(name).any(|(place, _)| {
            let rest = lower.get(place + name.len()..).unwrap_or_default();
            let rest = rest.trim_start_matches(['"', '\'', '`', ' ']);
            let value = rest
                .strip_prefix(['=', ':'])
                .or_else(|| rest.strip_prefix("is "))
                .or_else(|| rest.strip_prefix("lautet "));
            let value = value.map(|value| value.trim_start_matches([' ', '"', '\'', '`', '=']));
            let value = value
                .and_then(|value| value.split_whitespace().next())
                .unwrap_or_default();
            let is_code = value
                .bytes()
                .any(|sign| sign.is_ascii_digit() || b"!@#$%^&*".contains(&sign));
            value.len() >= MIN_VALUE && is_code && !value.starts_with('$')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    /// MEM-8: passwords and keys are recognized; ordinary text about them is not.
    #[test]
    fn secrets_are_recognized() {
        for text in [
            "my key is sk-abcdefgh12345678ijkl",
            "password: hunter2secret",
            "export API_KEY=abc123def456",
            "the token is 9f8e7d6c5b",
            "postgres://me:pa55@db.local/x",
            "AKIAIOSFODNN7EXAMPLE",
            "-----BEGIN RSA PRIVATE KEY-----",
            "use Zm9vYmFyQmF6MTIzNDU2Nzg5MFhZWg== for it",
        ] {
            assert!(is_secret(text), "{text}");
        }
        for text in [
            "The password is stored in the vault.",
            "We decided to retry three times.",
            "token: see the docs",
            "crates/memory/src/secret.rs",
            "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
            "https://example.com/a?b=1",
        ] {
            assert!(!is_secret(text), "{text}");
        }
    }
}
