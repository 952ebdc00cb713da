//! Merges two versions of a text that started from the same one.

use std::time::Duration;

use similar::{DiffOp, TextDiff};

/// Time limit of one comparison. A comparison that takes longer becomes coarser, which means more conflicts.
const TIME: Duration = Duration::from_secs(2);

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MergedText {
    Clean(String),
    /// Some lines conflict; both versions of them are in the text, between markers.
    Conflict(String),
}

/// Names of the two versions in markers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labels<'a> {
    pub(crate) ours: &'a str,
    pub(crate) theirs: &'a str,
}

/// Merges two versions of `base`.
pub(crate) fn merge(base: &str, ours: &str, theirs: &str, labels: Labels<'_>) -> MergedText {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let (in_ours, in_theirs) = (matches(&base, &ours), matches(&base, &theirs));
    let mut merged = String::new();
    let mut has_conflict = false;
    let (mut b, mut o, mut t) = (0, 0, 0);
    loop {
        while b < base.len() && at(&in_ours, b) == Some(o) && at(&in_theirs, b) == Some(t) {
            merged.push_str(base.get(b).copied().unwrap_or_default());
            (b, o, t) = (b + 1, o + 1, t + 1);
        }
        if b == base.len() && o == ours.len() && t == theirs.len() {
            break;
        }
        // Up to the next line that all three have.
        let next = (b..base.len()).find_map(|line| Some((line, at(&in_ours, line)?, at(&in_theirs, line)?)));
        let (b_end, o_end, t_end) = next.unwrap_or((base.len(), ours.len(), theirs.len()));
        let part = |lines: &[&str], from, to| lines.get(from..to).unwrap_or_default().concat();
        let (old, our, their) = (
            part(&base, b, b_end),
            part(&ours, o, o_end),
            part(&theirs, t, t_end),
        );
        if our == their || their == old {
            merged.push_str(&our);
        } else if our == old {
            merged.push_str(&their);
        } else {
            has_conflict = true;
            mark(&mut merged, &our, &their, labels);
        }
        (b, o, t) = (b_end, o_end, t_end);
    }
    match has_conflict {
        false => MergedText::Clean(merged),
        true => MergedText::Conflict(merged),
    }
}

fn at(matches: &[Option<usize>], line: usize) -> Option<usize> {
    matches.get(line).copied().flatten()
}

/// Returns for each line of the old text its position in the new one, if it is still there.
fn matches(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
    let diff = TextDiff::configure().timeout(TIME).diff_slices(old, new);
    let mut matches = vec![None; old.len()];
    for operation in diff.ops() {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = *operation
        {
            for (offset, line) in matches.iter_mut().skip(old_index).take(len).enumerate() {
                *line = Some(new_index + offset);
            }
        }
    }
    matches
}

fn mark(merged: &mut String, ours: &str, theirs: &str, labels: Labels<'_>) {
    let mut put = |marker: &str, label: &str, text: &str| {
        // A marker starts a line, also after a text that ends without a line end.
        if !merged.is_empty() && !merged.ends_with('\n') {
            merged.push('\n');
        }
        merged.push_str(marker);
        merged.push_str(label);
        merged.push('\n');
        merged.push_str(text);
    };
    put("<<<<<<< ", labels.ours, ours);
    put("=======", "", theirs);
    put(">>>>>>> ", labels.theirs, "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LABELS: Labels<'static> = Labels {
        ours: "ours",
        theirs: "theirs",
    };

    fn merged(base: &str, ours: &str, theirs: &str) -> String {
        let lines = |text: &str| text.chars().map(|sign| format!("{sign}\n")).collect::<String>();
        match merge(&lines(base), &lines(ours), &lines(theirs), LABELS) {
            MergedText::Clean(text) => text.replace('\n', ""),
            MergedText::Conflict(text) => {
                let text = text.replace("<<<<<<< ours\n", "<").replace("=======\n", "|");
                text.replace(">>>>>>> theirs\n", ">").replace('\n', "")
            }
        }
    }

    #[test]
    fn changes_of_both_sides_are_merged() {
        for (base, ours, theirs, expected) in [
            ("abc", "abc", "abc", "abc"),
            ("abc", "xbc", "abc", "xbc"),
            ("abc", "abc", "abx", "abx"),
            ("abc", "xbc", "aby", "xby"),
            ("abc", "xabc", "abcy", "xabcy"),
            ("abc", "ac", "abcd", "acd"),
            ("abc", "", "abc", ""),
            ("abc", "xyz", "xyz", "xyz"),
            ("abc", "axc", "ayc", "a<x|y>c"),
            ("abc", "ac", "axc", "a<|x>c"),
            ("", "x", "y", "<x|y>"),
            ("", "x", "x", "x"),
            ("abcdef", "axcdef", "abcdyf", "axcdyf"),
        ] {
            assert_eq!(merged(base, ours, theirs), expected, "{base} {ours} {theirs}");
        }
    }

    #[test]
    fn texts_without_a_last_line_end_stay_so() {
        let merge = |base, ours, theirs| merge(base, ours, theirs, LABELS);
        assert_eq!(
            merge("a\nb", "x\nb", "a\nb"),
            MergedText::Clean("x\nb".to_owned())
        );
        assert_eq!(
            merge("a\nb\nc", "x\nb\nc", "a\nb\nz"),
            MergedText::Clean("x\nb\nz".to_owned())
        );
        let expected = "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n";
        assert_eq!(merge("a", "x", "y"), MergedText::Conflict(expected.to_owned()));
    }

    proptest! {
        /// A text that only one side changed is that side's, both orders agree, and a conflict loses no line.
        #[test]
        fn nothing_is_lost(base in "[abc]{0,12}", ours in "[abcx]{0,12}", theirs in "[abcy]{0,12}") {
            prop_assert_eq!(&merged(&base, &ours, &base), &ours);
            prop_assert_eq!(&merged(&base, &base, &theirs), &theirs);
            prop_assert_eq!(&merged(&base, &ours, &ours), &ours);
            let both = merged(&base, &ours, &theirs);
            for (text, sign) in [(&ours, 'x'), (&theirs, 'y')] {
                let count = |text: &str| text.chars().filter(|found| *found == sign).count();
                prop_assert_eq!(count(text), count(&both), "{}", both);
            }
        }
    }
}
