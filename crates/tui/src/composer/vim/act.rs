//! Execution of normal-mode commands.

use std::ops::Range;

use super::super::buffer::Kind;
use super::super::chips::is_mark;
use super::super::cluster::{self, Class};
use super::command::{Entry, Find, Motion, Operator, Side, Target};
use super::{motion, object};
use crate::composer::Composer;

/// Maximum number of bytes one command inserts: a count must not exhaust memory.
const PUT: usize = 1024 * 1024;

/// Range an operator applies to.
pub(super) struct Span {
    range: Range<usize>,
    is_lines: bool,
}

impl Composer {
    /// Returns the target of a movement, and updates the last character search.
    pub(super) fn lead(&mut self, motion: Motion, count: Option<usize>) -> Option<usize> {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let vim = self.vim.as_mut()?;
        let find = match motion {
            Motion::Find(find) => {
                vim.find = Some(find);
                return motion::lead(text, cursor, motion, count);
            }
            Motion::FindAgain => vim.find?,
            Motion::FindBack => {
                let find = vim.find?;
                Find {
                    is_forward: !find.is_forward,
                    ..find
                }
            }
            motion => return motion::lead(text, cursor, motion, count),
        };
        let again = |from| motion::lead(text, from, Motion::Find(find), count);
        match again(cursor)? {
            // Already next to the character: move to the following one.
            to if to == cursor && find.is_till => again(match find.is_forward {
                true => cluster::next(text, cursor),
                false => cluster::previous(text, cursor),
            }),
            to => Some(to),
        }
    }

    pub(super) fn span(&mut self, operator: Operator, target: Target, count: Option<usize>) -> Option<Span> {
        let cursor = self.buffer.cursor();
        let times = count.unwrap_or(1);
        let letters = |range| Span {
            range,
            is_lines: false,
        };
        let lines = |range| Span {
            range,
            is_lines: true,
        };
        let (motion, count) = match target {
            Target::Lines => {
                return Some(lines(motion::lines(
                    self.buffer.text(),
                    cursor,
                    cursor,
                    times - 1,
                )));
            }
            Target::Object(extent, object) => {
                return object::range(self.buffer.text(), cursor, extent, object).map(letters);
            }
            Target::Motion(motion) => self.as_target(operator, motion, count),
        };
        let text = self.buffer.text();
        if motion == Motion::Down {
            return Some(lines(motion::lines(text, cursor, cursor, times)));
        }
        if motion == Motion::Up {
            let to = (0..times).fold(cursor, |at, _| motion::previous_line(text, at));
            return Some(lines(motion::lines(text, cursor, to, 0)));
        }
        let to = self.lead(motion, count)?;
        let text = self.buffer.text();
        Some(match motion {
            Motion::Top | Motion::Bottom => lines(motion::lines(text, cursor, to, 0)),
            Motion::WordEnd(_) => letters(cursor..cluster::next(text, to)),
            Motion::Find(_) | Motion::FindAgain | Motion::FindBack if to >= cursor => {
                letters(cursor..cluster::next(text, to))
            }
            Motion::WordNext(_) => letters(cursor..within_line(text, cursor, to)),
            _ => letters(cursor.min(to)..cursor.max(to)),
        })
    }

    /// Changing a word keeps the white space after it: the change ends at the word's end.
    fn as_target(&self, operator: Operator, motion: Motion, count: Option<usize>) -> (Motion, Option<usize>) {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let Motion::WordNext(words) = motion else {
            return (motion, count);
        };
        if operator != Operator::Change || motion::class(text, cursor, words) == Class::Space {
            return (motion, count);
        }
        // On the last letter of a word, the word's end is already here.
        let is_last = motion::run_end(text, cursor, words) == cluster::next(text, cursor);
        match count.unwrap_or(1) {
            1 if is_last => (Motion::Right, None),
            times => (Motion::WordEnd(words), Some(times - usize::from(is_last))),
        }
    }

    pub(super) fn operate(&mut self, operator: Operator, span: Span) {
        let Span { range, is_lines } = span;
        let text = self.buffer.text();
        let taken = cluster::slice(text, range.clone()).to_owned();
        let len = text.len();
        if is_lines || !taken.is_empty() {
            self.kill.text = taken;
            self.kill.is_lines = is_lines;
        }
        match operator {
            Operator::Yank if is_lines => {}
            Operator::Yank => self.buffer.move_to(range.start),
            Operator::Change => {
                self.buffer.replace(range.clone(), "", Kind::Whole);
                self.buffer.move_to(range.start);
                self.enter_insert(Entry::Here);
            }
            Operator::Delete if is_lines => {
                let range = match (range.end < len, range.start > 0) {
                    (true, _) => range.start..range.end + 1,
                    (false, true) => range.start - 1..range.end,
                    (false, false) => range,
                };
                self.buffer.replace(range, "", Kind::Whole);
                let at = motion::first_letter(self.buffer.text(), self.buffer.cursor());
                self.buffer.move_to(at);
            }
            Operator::Delete => self.buffer.replace(range, "", Kind::Whole),
        }
    }

    pub(super) fn put_killed(&mut self, side: Side, times: usize) {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let killed = self.kill.text.as_str();
        let times = times.min(PUT / (killed.len() + 1)).max(1);
        let (start, end) = (cluster::line_start(text, cursor), cluster::line_end(text, cursor));
        if !self.kill.is_lines {
            let at = match side {
                Side::Before => cursor,
                Side::After => cluster::next(text, cursor).min(end),
            };
            let put = killed.repeat(times);
            self.buffer.replace(at..at, &put, Kind::Whole);
            let last = cluster::previous(self.buffer.text(), self.buffer.cursor());
            return self.buffer.move_to(last.max(at));
        }
        let (at, put, first) = match side {
            Side::Before => (start, format!("{killed}\n").repeat(times), start),
            Side::After => (end, format!("\n{killed}").repeat(times), end + 1),
        };
        self.buffer.replace(at..at, &put, Kind::Whole);
        let first = motion::first_letter(self.buffer.text(), first);
        self.buffer.move_to(first);
    }

    /// Graphemes from the cursor on, limited to the line.
    fn letters(&self, times: usize) -> Vec<&str> {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let line = cursor..cluster::line_end(text, cursor);
        cluster::all(text, line)
            .take(times)
            .map(|(_, letter)| letter)
            .collect()
    }

    pub(super) fn replace_letters(&mut self, letter: char, times: usize) {
        let cursor = self.buffer.cursor();
        let letters = self.letters(times);
        let has_chip = letters.iter().any(|letter| Class::of(letter) == Class::Chip);
        if letters.len() < times || has_chip || letter.is_control() || is_mark(letter) {
            return;
        }
        let replaced: usize = letters.iter().map(|letter| letter.len()).sum();
        let with = letter.to_string().repeat(times);
        self.buffer.replace(cursor..cursor + replaced, &with, Kind::Whole);
        let last = cluster::previous(self.buffer.text(), self.buffer.cursor());
        self.buffer.move_to(last.max(cursor));
    }

    pub(super) fn swap_case(&mut self, times: usize) {
        let cursor = self.buffer.cursor();
        let letters = self.letters(times);
        let replaced: usize = letters.iter().map(|letter| letter.len()).sum();
        let mut with = String::with_capacity(replaced);
        for letter in letters.iter().flat_map(|letter| letter.chars()) {
            match letter.is_uppercase() {
                true => with.extend(letter.to_lowercase()),
                false => with.extend(letter.to_uppercase()),
            }
        }
        self.buffer.replace(cursor..cursor + replaced, &with, Kind::Whole);
    }

    pub(super) fn join_line(&mut self) {
        let (text, cursor) = (self.buffer.text(), self.buffer.cursor());
        let end = cluster::line_end(text, cursor);
        let next = cluster::slice(text, end..text.len()).strip_prefix('\n');
        let Some(next) = next else {
            return;
        };
        let blank = next.len() - next.trim_start_matches([' ', '\t']).len();
        let is_empty = matches!(cluster::at(next, blank), "" | "\n");
        let is_apart = matches!(cluster::before(text, end), "" | "\n" | " " | "\t");
        let between = if is_empty || is_apart { "" } else { " " };
        self.buffer.replace(end..end + 1 + blank, between, Kind::Whole);
        self.buffer.move_to(end);
    }
}

/// Excludes the line break after the last word of a line.
fn within_line(text: &str, from: usize, to: usize) -> usize {
    let range = cluster::slice(text, from..to);
    let words = range.trim_end();
    let blank = cluster::slice(range, words.len()..range.len());
    match blank.find('\n') {
        Some(at) => from + words.len() + at,
        None => to,
    }
}
