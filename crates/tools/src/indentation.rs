//! Adapts indentation that differs from the file's.

use std::collections::HashMap;

/// Returns new lines with the file's indentation instead of the written one. `pairs` are lines of the file
/// and the text written for them; `None` if the two do not correspond.
pub(crate) fn reindent<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    new: &[&str],
) -> Option<Vec<String>> {
    let mut known: HashMap<&str, &str> = HashMap::new();
    for (line, wanted) in pairs {
        if wanted.trim().is_empty() {
            continue;
        }
        let there = indentation(line);
        if *known.entry(indentation(wanted)).or_insert(there) != there {
            return None;
        }
    }
    let shift = Shift::of(&known);
    let lines = new.iter().map(|line| {
        let written = indentation(line);
        let rest = line.strip_prefix(written).unwrap_or(line);
        match known.get(written) {
            _ if rest.is_empty() => (*line).to_owned(),
            Some(there) => format!("{there}{rest}"),
            None => format!("{}{rest}", shift.apply(written)),
        }
    });
    Some(lines.collect())
}

fn indentation(line: &str) -> &str {
    let rest = line.trim_start();
    line.strip_suffix(rest).unwrap_or_default()
}

/// Indentation that every line of the file has more, or less, than the written text.
enum Shift<'a> {
    More(&'a str),
    Less(&'a str),
    None,
}

impl<'a> Shift<'a> {
    /// Determines the shift; it exists only if all known lines agree.
    fn of(known: &HashMap<&'a str, &'a str>) -> Self {
        let mut pairs = known.iter();
        let Some((written, there)) = pairs.next() else {
            return Self::None;
        };
        if let Some(more) = there.strip_suffix(written)
            && pairs
                .clone()
                .all(|(written, there)| there.strip_suffix(written) == Some(more))
        {
            return Self::More(more);
        }
        match written.strip_suffix(there) {
            Some(less) if pairs.all(|(written, there)| written.strip_suffix(there) == Some(less)) => {
                Self::Less(less)
            }
            _ => Self::None,
        }
    }

    fn apply(&self, written: &str) -> String {
        match self {
            Self::More(more) => format!("{more}{written}"),
            Self::Less(less) => written.strip_prefix(less).unwrap_or(written).to_owned(),
            Self::None => written.to_owned(),
        }
    }
}
