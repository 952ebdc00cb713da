//! Selects the intended place among those where a hunk matches.

use std::ops::Range;

use super::patch::{Hunk, HunkLine};
use super::search::{Closeness, Exhausted, Search};

/// Place of a hunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// Index of its first line in the file.
    pub(super) start: usize,
    pub(super) closeness: Closeness,
    /// Number of candidates, if the line number decided between them.
    pub(super) among: Option<usize>,
    /// True if the text of the `@@` line was not found.
    pub(super) lost_anchor: bool,
}

/// Reason a hunk has no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoFit {
    Nowhere,
    /// Indexes of these lines; there may be more.
    Several(Vec<usize>),
    NoAnchor,
    Exhausted,
}

impl From<Exhausted> for NoFit {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Constraints from the preceding hunks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// Index of the first line after the last of them.
    pub(super) end: usize,
    /// Distance of that hunk from the line it named.
    drift: isize,
}

impl Before {
    /// Adds another hunk.
    pub(super) fn and(self, hunk: &Hunk, changed: &Range<usize>, start: usize) -> Self {
        let drift = hunk.hint.map(|hint| start.cast_signed() - hint.cast_signed());
        Self {
            end: changed.end,
            drift: drift.unwrap_or(self.drift),
        }
    }

    fn expected(self, hunk: &Hunk) -> Option<usize> {
        let hint = hunk.hint?;
        Some(hint.saturating_add_signed(self.drift))
    }
}

/// Finds the place of a hunk in a file of `count` lines.
///
/// # Errors
/// When there is none, or several and nothing decides between them.
pub(super) fn fit(search: &mut Search<'_>, count: usize, hunk: &Hunk, before: Before) -> Result<Fit, NoFit> {
    let wanted: Vec<&str> = hunk.old().map(|line: &HunkLine| line.text.as_str()).collect();
    if wanted.is_empty() {
        return insertion(search, count, hunk, before);
    }
    let exact = |start| Fit {
        start,
        closeness: Closeness::Exact,
        among: None,
        lost_anchor: false,
    };
    let last = count.checked_sub(wanted.len()).filter(|_| hunk.at_end);
    let named = hunk.hint.filter(|hint| *hint >= before.end);
    for start in [before.expected(hunk), named, last].into_iter().flatten() {
        if search.is_at(start, &wanted) {
            return Ok(exact(start));
        }
    }
    let anchors = search.anchored(&hunk.anchors)?;
    let lost_anchor = anchors.is_empty() && !hunk.anchors.is_empty();
    for closeness in Closeness::ALL {
        let mut starts = search.places(&wanted, closeness)?;
        // A place before the anchor is not the intended one, however well it matches.
        starts.retain(|start| anchors.first().is_none_or(|anchor| start >= anchor));
        if starts.is_empty() {
            continue;
        }
        if last.is_some() && starts.last() == last.as_ref() {
            starts.drain(..starts.len() - 1);
        }
        let choice = choose(&starts, &anchors, hunk, before, closeness);
        let (start, among) = choice.ok_or(NoFit::Several(starts))?;
        return Ok(Fit {
            start,
            closeness,
            among,
            lost_anchor,
        });
    }
    Err(NoFit::Nowhere)
}

/// Returns the intended place among several, and the number of candidates if only the line number decided.
fn choose(
    starts: &[usize],
    anchors: &[usize],
    hunk: &Hunk,
    before: Before,
    closeness: Closeness,
) -> Option<(usize, Option<usize>)> {
    // Hunks are usually in the order of the file.
    let (_, after) = starts.split_at(starts.partition_point(|start| *start < before.end));
    let starts = if after.is_empty() { starts } else { after };
    if let [only] = starts {
        return Some((*only, None));
    }
    if closeness.must_be_unique() {
        return None;
    }
    let mut led: Vec<usize> = anchors
        .iter()
        .filter_map(|anchor| {
            starts
                .get(starts.partition_point(|start| start < anchor))
                .copied()
        })
        .collect();
    led.dedup();
    if let [only] = led.as_slice() {
        return Some((*only, None));
    }
    let expected = before.expected(hunk)?;
    let distance = |start: &&usize| start.abs_diff(expected);
    let nearest = starts.iter().min_by_key(distance)?;
    let ties = starts
        .iter()
        .filter(|start| distance(start) == distance(&nearest));
    (ties.count() == 1).then_some((*nearest, Some(starts.len())))
}

/// Returns the place of added lines without context.
fn insertion(search: &mut Search<'_>, count: usize, hunk: &Hunk, before: Before) -> Result<Fit, NoFit> {
    let start = if let Some(expected) = before.expected(hunk).filter(|_| !hunk.at_end) {
        expected.min(count)
    } else if hunk.anchors.is_empty() || hunk.at_end {
        count
    } else {
        let anchors = search.anchored(&hunk.anchors)?;
        match anchors.as_slice() {
            [] => return Err(NoFit::NoAnchor),
            [only] => only + 1,
            _ => return Err(NoFit::Several(anchors)),
        }
    };
    Ok(Fit {
        start,
        closeness: Closeness::Exact,
        among: None,
        lost_anchor: false,
    })
}
