//! Targets of normal-mode movements.

use super::super::cluster::{self, Class};
use super::command::{Find, Motion, Words};

/// Returns the target of a movement; `None` if it fails, like a search for a character that is not there.
/// Movements by rows and repeated searches are handled elsewhere.
pub(super) fn lead(text: &str, from: usize, motion: Motion, count: Option<usize>) -> Option<usize> {
    let times = count.unwrap_or(1);
    let repeated = |step: &dyn Fn(usize) -> usize| (0..times).fold(from, |position, _| step(position));
    Some(match motion {
        Motion::Left => {
            let start = cluster::line_start(text, from);
            repeated(&|position| cluster::previous(text, position).max(start))
        }
        Motion::Right => {
            let end = cluster::line_end(text, from);
            repeated(&|position| cluster::next(text, position).min(end))
        }
        Motion::WordNext(words) => repeated(&|position| word_next(text, position, words)),
        Motion::WordBack(words) => repeated(&|position| word_back(text, position, words)),
        Motion::WordEnd(words) => repeated(&|position| word_end(text, position, words)),
        Motion::LineStart => cluster::line_start(text, from),
        Motion::FirstLetter => first_letter(text, from),
        Motion::LineEnd => {
            let last = (1..times).fold(from, |position, _| next_line(text, position));
            cluster::line_end(text, last)
        }
        Motion::Top => first_letter(text, line(text, times)),
        Motion::Bottom => first_letter(text, line(text, count.unwrap_or(usize::MAX))),
        Motion::Find(find) => return found(text, from, find, times),
        Motion::Up | Motion::Down | Motion::FindAgain | Motion::FindBack => return None,
    })
}

/// Range of the lines between two positions and `more` beyond, without the last line break.
pub(super) fn lines(text: &str, from: usize, to: usize, more: usize) -> std::ops::Range<usize> {
    let last = (0..more).fold(from.max(to), |position, _| next_line(text, position));
    cluster::line_start(text, from.min(to))..cluster::line_end(text, last)
}

/// First character of a line that is not white space.
pub(super) fn first_letter(text: &str, position: usize) -> usize {
    let start = cluster::line_start(text, position);
    let line = cluster::slice(text, start..cluster::line_end(text, start));
    start + (line.len() - line.trim_start().len())
}

/// Start of the previous line, or of this one if it is the first.
pub(super) fn previous_line(text: &str, position: usize) -> usize {
    let start = cluster::line_start(text, position);
    cluster::line_start(text, start.saturating_sub(1))
}

/// Start of the next line, or of this one if it is the last.
pub(super) fn next_line(text: &str, position: usize) -> usize {
    match cluster::line_end(text, position) {
        end if end < text.len() => end + 1,
        _ => cluster::line_start(text, position),
    }
}

/// Class of the character here, for movements by words.
pub(super) fn class(text: &str, position: usize, words: Words) -> Class {
    match (Class::of(cluster::at(text, position)), words) {
        (Class::Sign, Words::Big) => Class::Word,
        (class, _) => class,
    }
}

fn found(text: &str, from: usize, find: Find, times: usize) -> Option<usize> {
    let mut position = from;
    for _ in 0..times {
        position = if find.is_forward {
            let start = cluster::next(text, position).min(cluster::line_end(text, position));
            let line = cluster::slice(text, start..cluster::line_end(text, position));
            start + line.find(find.letter)?
        } else {
            let start = cluster::line_start(text, position);
            start + cluster::slice(text, start..position).rfind(find.letter)?
        };
    }
    Some(match (find.is_till, find.is_forward) {
        (false, _) => position,
        (true, true) => cluster::previous(text, position),
        (true, false) => cluster::next(text, position),
    })
}

/// Start of a line, counted from one; the last line if there are fewer.
fn line(text: &str, number: usize) -> usize {
    let mut start = 0;
    for _ in 1..number {
        match next_line(text, start) {
            next if next > start => start = next,
            _ => break,
        }
    }
    start
}

fn word_next(text: &str, from: usize, words: Words) -> usize {
    let mut position = match class(text, from, words) {
        Class::Space => from,
        _ => run_end(text, from, words),
    };
    while position < text.len() && class(text, position, words) == Class::Space {
        if position > from && is_empty_line(text, position) {
            break;
        }
        position = cluster::next(text, position);
    }
    position
}

fn word_end(text: &str, from: usize, words: Words) -> usize {
    let mut position = cluster::next(text, from);
    while position < text.len() && class(text, position, words) == Class::Space {
        position = cluster::next(text, position);
    }
    cluster::previous(text, run_end(text, position, words)).max(from)
}

fn word_back(text: &str, from: usize, words: Words) -> usize {
    let mut position = cluster::previous(text, from);
    while position > 0 && class(text, position, words) == Class::Space {
        if is_empty_line(text, position) {
            return position;
        }
        position = cluster::previous(text, position);
    }
    run_start(text, position, words)
}

/// End of the run of characters of the same class.
pub(super) fn run_end(text: &str, from: usize, words: Words) -> usize {
    let kind = class(text, from, words);
    let mut position = cluster::next(text, from);
    while kind != Class::Chip && position < text.len() && class(text, position, words) == kind {
        position = cluster::next(text, position);
    }
    position
}

/// Start of the run of characters of the same class.
pub(super) fn run_start(text: &str, from: usize, words: Words) -> usize {
    let kind = class(text, from, words);
    let mut position = from;
    while kind != Class::Chip && position > 0 {
        let before = cluster::previous(text, position);
        if class(text, before, words) != kind {
            break;
        }
        position = before;
    }
    position
}

fn is_empty_line(text: &str, position: usize) -> bool {
    cluster::at(text, position) == "\n" && matches!(cluster::before(text, position), "" | "\n")
}
