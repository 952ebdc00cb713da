//! Periods that a question names: days, weeks, months and years, absolute or seen from now.

use windlass_core::clock::Timestamp;
use windlass_core::words::words;

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// Time around a day that still belongs to it: days are in UTC, and people are not.
const MARGIN: i64 = DAY / 2;

/// Days after a period in which it is still talked about.
const ECHO: i64 = 15;

/// Fit of a time right after a period.
const AFTER: f32 = 0.8;

/// Maximum number of periods of a question.
const MAX: usize = 4;

const MONTHS: [&[&str]; 12] = [
    &["january", "januar", "jan"],
    &["february", "februar", "feb"],
    &["march", "märz"],
    &["april", "apr"],
    &["may", "mai"],
    &["june", "juni"],
    &["july", "juli"],
    &["august", "aug"],
    &["september", "sept"],
    &["october", "oktober", "oct"],
    &["november", "nov"],
    &["december", "dezember", "dec"],
];

const WEEKDAYS: [&[&str]; 7] = [
    &["monday", "montag"],
    &["tuesday", "dienstag"],
    &["wednesday", "mittwoch"],
    &["thursday", "donnerstag"],
    &["friday", "freitag"],
    &["saturday", "samstag"],
    &["sunday", "sonntag"],
];

/// Words before a month whose name has another meaning.
const BEFORE_MONTH: &[&str] = &[
    "in", "on", "of", "since", "last", "early", "late", "im", "am", "seit",
];
const LAST: &[&str] = &[
    "last", "letzte", "letzten", "letzter", "letztes", "letztem", "vorige", "vorigen",
];
const THIS: &[&str] = &["this", "diese", "dieser", "diesen", "dieses"];

/// A period in milliseconds since 1970, with its first and without its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    start: i64,
    end: i64,
}

impl Period {
    fn days(first: i64, count: i64) -> Self {
        Self {
            start: first * DAY - MARGIN,
            end: (first + count) * DAY + MARGIN,
        }
    }

    /// Returns 1 for a time in the period, and less for one soon after it.
    fn fit(self, time: i64) -> f32 {
        if time < self.start {
            return 0.0;
        }
        let late = time.saturating_sub(self.end).max(0) as f32 / (ECHO * DAY) as f32;
        match time < self.end {
            true => 1.0,
            false => AFTER * (1.0 - late).max(0.0),
        }
    }
}

/// Returns the best fit of a time with one of the periods.
pub(crate) fn fit(periods: &[Period], time: Timestamp) -> f32 {
    let time = i64::try_from(time.0).unwrap_or(i64::MAX);
    periods.iter().map(|period| period.fit(time)).fold(0.0, f32::max)
}

/// Returns the periods that a question names.
pub(crate) fn periods(question: &str, now: Timestamp) -> Vec<Period> {
    let words = words(question);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let today = i64::try_from(now.0).unwrap_or_default().div_euclid(DAY);
    let mut found = Vec::new();
    for place in 0..words.len() {
        let dated = iso(&words, place).or_else(|| month(&words, place, today));
        found.extend(dated.or_else(|| relative(&words, place, today)));
    }
    if found.is_empty() {
        found.extend(words.iter().filter_map(|word| year(word)).map(whole_year));
    }
    found.truncate(MAX);
    found
}

/// Reads `2023-05-08` or `2023-05`, which are words of digits.
fn iso(words: &[&str], place: usize) -> Option<Period> {
    let year = year(words.get(place)?)?;
    let two_digits = |word: &&&str| word.len() == 2;
    let month: i64 = words.get(place + 1).filter(two_digits)?.parse().ok()?;
    if !(1..=12).contains(&month) {
        return None;
    }
    let day = words.get(place + 2).filter(two_digits);
    let day = day
        .and_then(|day| day.parse().ok())
        .filter(|day| (1..=31).contains(day));
    Some(day.map_or_else(
        || whole_month(year, month),
        |day| Period::days(day_number(year, month, day), 1),
    ))
}

/// Reads `8 May 2023`, `May 8th`, `im Mai`. Without a year, it is the last such month.
fn month(words: &[&str], place: usize, today: i64) -> Option<Period> {
    let word = words.get(place)?;
    let month = MONTHS.iter().position(|names| names.contains(word))?;
    let month = i64::try_from(month).ok()? + 1;
    let before = place.checked_sub(1).and_then(|place| words.get(place)).copied();
    let after = words.get(place + 1).copied();
    let day = before
        .and_then(day_of_month)
        .or_else(|| after.and_then(day_of_month));
    let year = [after, words.get(place + 2).copied()]
        .into_iter()
        .flatten()
        .find_map(year);
    let is_clear = day.is_some() || year.is_some() || before.is_some_and(|word| BEFORE_MONTH.contains(&word));
    if matches!(*word, "may" | "march") && !is_clear {
        return None;
    }
    let year = year.unwrap_or_else(|| {
        let (this_year, this_month) = month_of(today);
        if month > this_month {
            this_year - 1
        } else {
            this_year
        }
    });
    Some(match day {
        Some(day) => Period::days(day_number(year, month, day), 1),
        None => whole_month(year, month),
    })
}

/// Reads `yesterday`, `last week`, `3 days ago`, `vor zwei Wochen`, `on Tuesday`.
fn relative(words: &[&str], place: usize, today: i64) -> Option<Period> {
    let word = *words.get(place)?;
    match word {
        "today" | "heute" => return Some(Period::days(today, 1)),
        "yesterday" | "gestern" => return Some(Period::days(today - 1, 1)),
        "vorgestern" => return Some(Period::days(today - 2, 1)),
        _ => {}
    }
    let before = place.checked_sub(1).and_then(|place| words.get(place)).copied()?;
    if let Some(weekday) = WEEKDAYS.iter().position(|names| names.contains(&word)) {
        let is_past = LAST.contains(&before) || matches!(before, "on" | "am");
        // The first day of 1970 was a Thursday.
        let back = (today + 3 - i64::try_from(weekday).ok()?).rem_euclid(7);
        let back = if back == 0 && LAST.contains(&before) {
            7
        } else {
            back
        };
        return is_past.then(|| Period::days(today - back, 1));
    }
    let length = length(word)?;
    if LAST.contains(&before) {
        let (year, month) = month_of(today);
        return Some(match length {
            365 => whole_year(year - 1),
            30 if month == 1 => whole_month(year - 1, 12),
            30 => whole_month(year, month - 1),
            length => Period::days(today - 2 * length, 2 * length),
        });
    }
    if THIS.contains(&before) {
        return Some(Period::days(today - length, length + 1));
    }
    let count = amount(before)?;
    let is_ago = words.get(place + 1).is_some_and(|word| *word == "ago")
        || place.checked_sub(2).and_then(|place| words.get(place)) == Some(&"vor");
    let first = today - count * length;
    is_ago.then(|| Period::days(first - length / 2, length))
}

/// Returns the days of a unit of time.
fn length(word: &str) -> Option<i64> {
    Some(match word {
        "day" | "days" | "night" | "tag" | "tage" | "tagen" => 1,
        "week" | "weeks" | "woche" | "wochen" => 7,
        "month" | "months" | "monat" | "monate" | "monaten" => 30,
        "year" | "years" | "jahr" | "jahre" | "jahren" => 365,
        _ => return None,
    })
}

fn amount(word: &str) -> Option<i64> {
    Some(match word {
        "a" | "an" | "one" | "einem" | "einer" => 1,
        "two" | "couple" | "zwei" => 2,
        "three" | "few" | "drei" => 3,
        "four" | "vier" => 4,
        number => number
            .parse()
            .ok()
            .filter(|number| (1..=1_000).contains(number))?,
    })
}

fn year(word: &str) -> Option<i64> {
    let is_short = word.len() == 4;
    is_short
        .then(|| word.parse().ok())
        .flatten()
        .filter(|year| (1990..2100).contains(year))
}

fn day_of_month(word: &str) -> Option<i64> {
    let digits = word.trim_end_matches(|sign: char| sign.is_ascii_alphabetic());
    let is_ordinal = matches!(word.get(digits.len()..), Some("" | "st" | "nd" | "rd" | "th"));
    let day = digits.parse().ok().filter(|day| (1..=31).contains(day))?;
    is_ordinal.then_some(day)
}

fn whole_month(year: i64, month: i64) -> Period {
    let next = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    let first = day_number(year, month, 1);
    Period::days(first, day_number(next.0, next.1, 1) - first)
}

fn whole_year(year: i64) -> Period {
    let first = day_number(year, 1, 1);
    Period::days(first, day_number(year + 1, 1, 1) - first)
}

/// Returns the number of a day since 1970. Days are counted from March, so that a leap day is the last of its year.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// Returns year and month of a day since 1970.
fn month_of(day: i64) -> (i64, i64) {
    let mut year = 1970 + day.div_euclid(365);
    // The estimate ignores leap days, so it is at most a year late for centuries.
    if day_number(year, 1, 1) > day {
        year -= 1;
    }
    let month = (1..=12).rev().find(|month| day_number(year, *month, 1) <= day);
    (year, month.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wednesday, 18 November 2026, noon.
    const NOW: Timestamp = Timestamp(1_795_003_200_000);

    fn at(year: i64, month: i64, day: i64) -> Timestamp {
        Timestamp((day_number(year, month, day) * DAY + DAY / 2).unsigned_abs())
    }

    #[track_caller]
    fn check(question: &str, inside: (i64, i64, i64), outside: (i64, i64, i64)) {
        let found = periods(question, NOW);
        let (year, month, day) = inside;
        assert_eq!(fit(&found, at(year, month, day)), 1.0, "{question}: {found:?}");
        let (year, month, day) = outside;
        assert!(fit(&found, at(year, month, day)) < 0.8, "{question}: {found:?}");
    }

    /// MEM-7: a question finds what was said in the period that it names.
    #[test]
    fn periods_are_read() {
        assert_eq!(at(2026, 11, 18), NOW);
        check("what did we decide on 8 May, 2023?", (2023, 5, 8), (2023, 5, 12));
        check("the plan of May 8th", (2026, 5, 8), (2025, 5, 8));
        check("what broke on 2024-02-29?", (2024, 2, 29), (2024, 2, 26));
        check("the release in December", (2025, 12, 31), (2026, 11, 1));
        check("the numbers from 2023", (2023, 7, 1), (2022, 12, 30));
        check("what did we do yesterday", (2026, 11, 17), (2026, 11, 15));
        check("the bug of last week", (2026, 11, 10), (2026, 11, 1));
        check("the numbers of last month", (2026, 10, 2), (2026, 9, 20));
        check("we talked about it 3 weeks ago", (2026, 10, 28), (2026, 10, 20));
        check(
            "which port did I choose on Monday",
            (2026, 11, 16),
            (2026, 11, 14),
        );
        check("was war gestern mit dem Port", (2026, 11, 17), (2026, 11, 15));
        check("was haben wir im Mai entschieden", (2026, 5, 20), (2026, 4, 20));
        check("der Fehler vor zwei Wochen", (2026, 11, 4), (2026, 10, 30));
    }

    /// MEM-7: words that are also names of months name no period without a hint, and numbers are no years.
    #[test]
    fn other_words_are_no_periods() {
        for question in [
            "may we use tabs",
            "march on",
            "port 8080",
            "100 days",
            "a week",
            "monday.com",
            "",
        ] {
            assert!(periods(question, NOW).is_empty(), "{question}");
        }
        let late = fit(&periods("in May 2026", NOW), at(2026, 6, 5));
        assert!(late > 0.0 && late < 0.8, "{late}");
    }
}
