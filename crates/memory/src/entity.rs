//! Names in a text that connect it with other texts: files, identifiers, and proper names.

/// Maximum number of names of a text.
const MAX: usize = 8;

/// Maximum length of a name in bytes.
const LONGEST: usize = 120;

/// Returns the names in a text, in lower case, the first ones first.
pub(crate) fn entities(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut starts_sentence = true;
    for raw in text.split_whitespace() {
        let word = raw
            .trim_matches(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != '/' && sign != '.');
        let word = word.trim_end_matches('.');
        let is_name = is_file(word) || is_identifier(word) || (!starts_sentence && is_proper(word));
        if is_name && word.len() <= LONGEST {
            let name = word.to_lowercase();
            if !found.contains(&name) {
                found.push(name);
            }
        }
        starts_sentence = raw.ends_with(['.', '!', '?', ':']);
        if found.len() == MAX {
            break;
        }
    }
    found
}

/// Returns true for a path, or a file name with an ending.
fn is_file(word: &str) -> bool {
    if word.contains("://") {
        return false;
    }
    let has_folder = word.contains('/') && word.chars().any(char::is_alphabetic) && word.len() > 3;
    let has_ending = word.rsplit_once('.').is_some_and(|(name, end)| {
        !name.is_empty()
            && (1..=5).contains(&end.len())
            && end.chars().all(|sign| sign.is_ascii_alphanumeric())
            && end.chars().any(|sign| sign.is_ascii_alphabetic())
            && name.chars().any(char::is_alphabetic)
    });
    has_folder || has_ending
}

/// Returns true for names of code: `snake_case`, `camelCase`, `a::b`.
fn is_identifier(word: &str) -> bool {
    let inner = word.contains('_') || word.contains("::");
    let mut signs = word.chars();
    let is_camel = signs.next().is_some_and(char::is_alphabetic)
        && word
            .chars()
            .zip(word.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    word.len() > 3 && (inner || is_camel) && word.chars().any(char::is_alphabetic)
}

fn is_proper(word: &str) -> bool {
    let mut signs = word.chars();
    signs.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 2
        && signs.all(|sign| sign.is_lowercase() || sign == '-')
}

#[cfg(test)]
mod tests {
    use super::entities;

    /// MEM-1: files, identifiers and names connect texts.
    #[test]
    fn names_are_found() {
        let text =
            "The retry_policy lives in src/net/retry.rs. Ask Hannah before touching HttpClient, not 3.14.";
        assert_eq!(
            entities(text),
            ["retry_policy", "src/net/retry.rs", "hannah", "httpclient"]
        );
        assert!(entities("nothing to see here, 1.5 and https://example.com/x.html").is_empty());
    }
}
