//! File names in the headers of unified diffs.

/// Returns the name in `--- a/x\t2026-01-01`, without the marker before it and the date.
pub(super) fn file_name(line: &str) -> String {
    let text = line
        .strip_prefix("--- ")
        .or_else(|| line.strip_prefix("+++ "))
        .unwrap_or(line);
    if let Some((name, _)) = quoted(text) {
        return name;
    }
    let name = text.split('\t').next().unwrap_or_default();
    name.trim().to_owned()
}

/// Removes the `a/` and `b/` prefixes that git adds.
pub(super) fn stripped(old: String, new: String) -> (String, String) {
    const NOTHING: &str = "/dev/null";
    let (a, b) = (old.strip_prefix("a/"), new.strip_prefix("b/"));
    match (a, b) {
        (Some(a), Some(b)) => (a.to_owned(), b.to_owned()),
        (Some(a), None) if new == NOTHING => (a.to_owned(), new),
        (None, Some(b)) if old == NOTHING => (old, b.to_owned()),
        _ => (old, new),
    }
}

/// Returns the two names in `a/x b/x`. Names with blanks must be equal on both sides, or quoted.
pub(super) fn git_names(text: &str) -> Option<(String, String)> {
    if let Some((old, rest)) = quoted(text) {
        let rest = rest.trim_start();
        let new = quoted(rest).map_or_else(|| rest.to_owned(), |(new, _)| new);
        return Some((old, new));
    }
    let split = |at: usize| Some((text.get(..at)?, text.get(at + 1..)?));
    let middle = split(text.len() / 2).filter(|(old, new)| {
        let (old, new) = (old.split_once('/'), new.split_once('/'));
        old.zip(new)
            .is_some_and(|((_, old), (_, new))| old == new && text.len() % 2 == 1)
    });
    let (old, new) = middle.or_else(|| text.split_once(' '))?;
    Some((old.to_owned(), new.trim().to_owned()))
}

/// Returns a quoted name with C escapes decoded, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix('"')?;
    let mut bytes = Vec::new();
    let mut letters = rest.char_indices();
    while let Some((index, letter)) = letters.next() {
        let mut buffer = [0; 4];
        match letter {
            '"' => {
                let name = String::from_utf8_lossy(&bytes).into_owned();
                return Some((name, rest.get(index + 1..)?));
            }
            '\\' => match letters.next()?.1 {
                'n' => bytes.push(b'\n'),
                't' => bytes.push(b'\t'),
                'r' => bytes.push(b'\r'),
                first @ '0'..='3' => {
                    let digits = [first, letters.next()?.1, letters.next()?.1];
                    let digits: String = digits.iter().collect();
                    bytes.push(u8::from_str_radix(&digits, 8).ok()?);
                }
                other => bytes.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes()),
            },
            other => bytes.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_writes_them() {
        for (line, name) in [
            ("--- a/x.rs", "a/x.rs"),
            ("+++ b/x.rs\t2026-01-01 10:00:00", "b/x.rs"),
            ("--- \"a/sp\\303\\244t \\\"x\\\".rs\"", "a/spät \"x\".rs"),
            ("x y.rs ", "x y.rs"),
            ("--- \"open", "\"open"),
        ] {
            assert_eq!(file_name(line), name);
        }
        for (text, names) in [
            ("a/x b/x", Some(("a/x", "b/x"))),
            ("a/x y b/x y", Some(("a/x y", "b/x y"))),
            ("a/old.rs b/new.rs", Some(("a/old.rs", "b/new.rs"))),
            ("\"a/\\303\\244\" \"b/\\303\\244\"", Some(("a/ä", "b/ä"))),
            ("a/ä b/ä", Some(("a/ä", "b/ä"))),
            ("x", None),
        ] {
            let names = names.map(|(old, new)| (old.to_owned(), new.to_owned()));
            assert_eq!(git_names(text), names, "{text}");
        }
        let strip = |old: &str, new: &str| stripped(old.to_owned(), new.to_owned());
        assert_eq!(strip("a/x", "b/x"), ("x".to_owned(), "x".to_owned()));
        assert_eq!(strip("a/x", "a/x"), ("a/x".to_owned(), "a/x".to_owned()));
        assert_eq!(
            strip("/dev/null", "b/x"),
            ("/dev/null".to_owned(), "x".to_owned())
        );
    }
}
