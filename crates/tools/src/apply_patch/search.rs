//! Finds the lines of a hunk in a file.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use crate::typography::plain_text;

/// Maximum number of line comparisons per file. Real patches need a tiny fraction of it.
const BUDGET: usize = 50_000_000;

/// Strictness of a line comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    Exact,
    /// Ignores line ends.
    LineEnds,
    TrailingSpace,
    Indentation,
    Typography,
}

impl Closeness {
    /// All levels, strictest first.
    pub(super) const ALL: [Self; 5] = [
        Self::Exact,
        Self::LineEnds,
        Self::TrailingSpace,
        Self::Indentation,
        Self::Typography,
    ];

    /// Returns true if a match counts only when it is unique.
    pub(super) fn must_be_unique(self) -> bool {
        matches!(self, Self::Indentation | Self::Typography)
    }

    fn seen(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::LineEnds => Cow::Borrowed(line.strip_suffix('\r').unwrap_or(line)),
            Self::TrailingSpace => Cow::Borrowed(line.trim_end()),
            Self::Indentation => Cow::Borrowed(line.trim()),
            Self::Typography => plain_text(line.trim_end()),
        }
    }
}

/// The search took too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Lines of a file, prepared for searching.
pub(super) struct Search<'a> {
    lines: &'a [&'a str],
    views: [OnceCell<View<'a>>; Closeness::ALL.len()],
    budget: usize,
}

/// The lines as numbers: equal lines have the same number.
struct View<'a> {
    numbers: HashMap<Cow<'a, str>, usize>,
    lines: Vec<usize>,
    /// Positions of each number.
    places: Vec<Vec<usize>>,
}

impl<'a> View<'a> {
    fn of(lines: &[&'a str], closeness: Closeness) -> Self {
        let mut view = Self {
            numbers: HashMap::new(),
            lines: Vec::with_capacity(lines.len()),
            places: Vec::new(),
        };
        for (index, line) in lines.iter().enumerate() {
            let next = view.places.len();
            let number = *view.numbers.entry(closeness.seen(line)).or_insert(next);
            if number == next {
                view.places.push(Vec::new());
            }
            if let Some(places) = view.places.get_mut(number) {
                places.push(index);
            }
            view.lines.push(number);
        }
        view
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(lines: &'a [&'a str]) -> Self {
        Self {
            lines,
            views: Default::default(),
            budget: BUDGET,
        }
    }

    /// Returns true if the lines are exactly at this place.
    pub(super) fn is_at(&self, start: usize, wanted: &[&str]) -> bool {
        let end = start.saturating_add(wanted.len());
        self.lines.get(start..end).is_some_and(|lines| lines == wanted)
    }

    /// Returns every place where the lines occur consecutively, in order. There is at least one line.
    pub(super) fn places(&mut self, wanted: &[&str], closeness: Closeness) -> Result<Vec<usize>, Exhausted> {
        let view = self.view(closeness);
        let numbers: Option<Vec<usize>> = wanted
            .iter()
            .map(|line| view.numbers.get(&closeness.seen(line)).copied())
            .collect();
        let Some(numbers) = numbers else {
            return Ok(Vec::new());
        };
        // The rarest line has the fewest candidates.
        let of = |number: usize| view.places.get(number).map_or(&[][..], Vec::as_slice);
        let rarest = numbers
            .iter()
            .enumerate()
            .min_by_key(|(_, number)| of(**number).len());
        let Some((offset, rarest)) = rarest else {
            return Ok(Vec::new());
        };
        let (mut found, mut spent) = (Vec::new(), 0);
        for place in of(*rarest) {
            let Some(start) = place.checked_sub(offset) else {
                continue;
            };
            let Some(there) = view.lines.get(start..start + numbers.len()) else {
                continue;
            };
            let same = there.iter().zip(&numbers).take_while(|(a, b)| a == b).count();
            spent += same + 1;
            if spent > self.budget {
                return Err(Exhausted);
            }
            if same == numbers.len() {
                found.push(start);
            }
        }
        self.budget -= spent;
        Ok(found)
    }

    /// Returns the lines that the anchors lead to: every match of the last one that follows matches of the
    /// others in order.
    pub(super) fn anchored(&mut self, anchors: &[String]) -> Result<Vec<usize>, Exhausted> {
        let mut reached: Option<Vec<usize>> = None;
        for anchor in anchors {
            let lines = self.lines_like(anchor.trim())?;
            reached = Some(match reached {
                None => lines,
                Some(before) => {
                    let mut next: Vec<usize> = before
                        .iter()
                        .filter_map(|before| lines.get(lines.partition_point(|line| line <= before)).copied())
                        .collect();
                    next.dedup();
                    next
                }
            });
        }
        Ok(reached.unwrap_or_default())
    }

    /// Returns the lines that equal the text, or else those that start with it, or else those that contain
    /// it.
    fn lines_like(&mut self, words: &str) -> Result<Vec<usize>, Exhausted> {
        let view = self.view(Closeness::Indentation);
        let same = view
            .numbers
            .get(words)
            .and_then(|number| view.places.get(*number));
        if let Some(same) = same.cloned() {
            self.budget = self.budget.checked_sub(same.len()).ok_or(Exhausted)?;
            return Ok(same);
        }
        let spent = self.lines.iter().map(|line| line.len() / 8 + 1).sum();
        self.budget = self.budget.checked_sub(spent).ok_or(Exhausted)?;
        let matching = |is_like: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let lines = self.lines.iter().enumerate();
            lines
                .filter(|(_, line)| is_like(line))
                .map(|(index, _)| index)
                .collect()
        };
        let begin = matching(&|line| line.trim_start().starts_with(words));
        if !begin.is_empty() {
            return Ok(begin);
        }
        Ok(matching(&|line| line.contains(words)))
    }

    fn view(&self, closeness: Closeness) -> &View<'a> {
        let [exact, line_ends, trailing_space, indentation, typography] = &self.views;
        let cell = match closeness {
            Closeness::Exact => exact,
            Closeness::LineEnds => line_ends,
            Closeness::TrailingSpace => trailing_space,
            Closeness::Indentation => indentation,
            Closeness::Typography => typography,
        };
        cell.get_or_init(|| View::of(self.lines, closeness))
    }
}
