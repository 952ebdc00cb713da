//! Seals for data that a client must send back unchanged.
//!
//! The real services sign thinking and encrypt reasoning with secrets of their own. The simulation only needs
//! to detect changes, so a seal is a keyed hash with a fixed key: it is stable across runs, since stored
//! sessions outlive a server.

/// Prefix of our own seals, so that a foreign seal gets its own message.
const PREFIX: &str = "sim1.";

/// Signs the text of a thinking block.
pub(crate) fn sign(text: &str) -> String {
    format!("{PREFIX}{}", digest(text.as_bytes()))
}

/// Returns true if `signature` is the result of [`sign`] for `text`.
pub(crate) fn verify(text: &str, signature: &str) -> bool {
    sign(text) == signature
}

/// Wraps a text so that only the server can read it (redacted thinking, encrypted reasoning).
pub(crate) fn wrap(text: &str) -> String {
    let hidden: String = text.bytes().map(|byte| format!("{:02x}", byte ^ 0x5a)).collect();
    format!("{PREFIX}{}.{hidden}", digest(text.as_bytes()))
}

/// Returns the text wrapped by [`wrap`], or `None` if it was changed or made elsewhere.
pub(crate) fn unwrap(wrapped: &str) -> Option<String> {
    let (hash, hidden) = wrapped.strip_prefix(PREFIX)?.split_once('.')?;
    let bytes: Option<Vec<u8>> = hidden
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            Some(u8::from_str_radix(pair, 16).ok()? ^ 0x5a)
        })
        .collect();
    let text = String::from_utf8(bytes?).ok()?;
    (digest(text.as_bytes()) == hash).then_some(text)
}

/// Two FNV-1a lanes with different keys, printed as 32 hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let lane = |key: u64| {
        bytes.iter().fold(key, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(PRIME).rotate_left(5)
        })
    };
    format!(
        "{:016x}{:016x}",
        lane(0xcbf2_9ce4_8422_2325),
        lane(0x9e37_79b9_7f4a_7c15)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::{sign, unwrap, verify, wrap};

    /// PROV-2: a signature matches its own text and no other.
    #[test]
    fn a_changed_text_breaks_its_signature() {
        let signature = sign("first I look");
        assert!(verify("first I look", &signature));
        assert!(!verify("first I looked", &signature));
        assert!(!verify("first I look", "foreign"));
    }

    /// PROV-3: encrypted reasoning survives the round trip, and a flipped digit is detected.
    #[test]
    fn wrapped_text_is_recovered_or_refused() {
        let wrapped = wrap("größe");
        assert_eq!(unwrap(&wrapped).as_deref(), Some("größe"));
        assert_eq!(unwrap(&format!("{wrapped}00")), None);
        assert_eq!(unwrap("sim1.abc"), None);
        assert_eq!(unwrap("gAAAA"), None);
    }
}
