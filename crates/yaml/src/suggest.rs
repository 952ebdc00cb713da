//! Suggestions for misspelled names.

/// Returns the name that was probably meant, if one of the known ones is close enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Misspelled names are never longer than this, and comparison takes quadratic time.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let limit = (name.chars().count() / 3).clamp(1, 4);
    known
        .map(|known| (strsim::damerau_levenshtein(&plain(name), &plain(known)), known))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns advice for an unknown key: the nearest of the valid ones, or all of them.
pub fn key_hint(key: &str, valid: &[&str]) -> String {
    match nearest(key, valid.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("valid keys are {}", valid.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A misspelled key gets its neighbor, anything else the list.
    #[test]
    fn unknown_keys_get_advice() {
        assert_eq!(
            key_hint("Time-Out", &["tools", "timeout"]),
            "did you mean `timeout`?"
        );
        let all = "valid keys are tools, timeout";
        assert_eq!(key_hint("colour", &["tools", "timeout"]), all);
        assert_eq!(key_hint(&"timeout".repeat(20), &["tools", "timeout"]), all);
    }
}
