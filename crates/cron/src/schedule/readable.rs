//! Readable forms: `every 15m`, `daily at 09:00`, `mon,thu at 9:30`, and durations.

use std::time::Duration;

/// The longest interval and duration, in milliseconds: a year.
const LONGEST: i64 = 366 * 86_400_000;

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const NICKNAMES: [(&str, &str); 8] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@minutely", "* * * * *"),
];

/// Reads `every 15m`. `None` if the text is of another form.
pub(super) fn interval(text: &str) -> Option<Result<i64, String>> {
    let rest = text.trim().strip_prefix("every ")?;
    Some(duration(rest).and_then(|time| {
        let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        match milliseconds {
            1_000..=LONGEST => Ok(milliseconds),
            _ => Err("expected an interval from 1s to 366d".to_owned()),
        }
    }))
}

/// Returns the cron pattern that a text stands for.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.starts_with('@') {
        let found = NICKNAMES.iter().find(|(name, _)| *name == text.to_lowercase());
        let names: Vec<&str> = NICKNAMES.iter().map(|(name, _)| *name).collect();
        return found
            .map(|(_, pattern)| (*pattern).to_owned())
            .ok_or_else(|| format!("expected one of {}", names.join(", ")));
    }
    let Some((days, time)) = text.split_once(" at ") else {
        return Ok(text.to_owned());
    };
    let (hour, minute) = clock(time.trim())?;
    let days = match days.trim().to_lowercase().as_str() {
        "daily" | "every day" => "*".to_owned(),
        "weekdays" => "1-5".to_owned(),
        "weekends" => "0,6".to_owned(),
        names => names
            .split(',')
            .map(day)
            .collect::<Result<Vec<_>, _>>()?
            .join(","),
    };
    Ok(format!("{minute} {hour} * * {days}"))
}

fn day(name: &str) -> Result<String, String> {
    let name = name.trim();
    let index = DAYS.iter().position(|day| {
        let full = [
            "sunday",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
        ];
        let full = full
            .iter()
            .find(|full| full.starts_with(day))
            .copied()
            .unwrap_or_default();
        name == *day || name == full || name.strip_suffix('s') == Some(full)
    });
    index.map(|index| index.to_string()).ok_or_else(|| {
        format!("`{name}` is not a day: expected daily, weekdays, weekends or names such as mon,thu")
    })
}

/// Reads a time of day.
fn clock(text: &str) -> Result<(u8, u8), String> {
    let wrong = || format!("`{text}` is not a time of day: expected hours and minutes, such as 09:00");
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, most: u8| text.parse::<u8>().ok().filter(|number| *number <= most);
    match (number(hour, 23), number(minute, 59)) {
        (Some(hour), Some(minute)) if text.len() <= 5 && minute_has_two_digits(text) => Ok((hour, minute)),
        _ => Err(wrong()),
    }
}

fn minute_has_two_digits(text: &str) -> bool {
    text.rsplit(':').next().is_some_and(|minute| minute.len() == 2)
}

/// Reads a duration such as `90s`, `15m`, `2h` or `1d`.
///
/// # Errors
/// Fails with what would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let wrong =
        || format!("`{text}` is not a duration: expected a number and a unit, such as 90s, 15m, 2h or 1d");
    let unit_at = text.find(|sign: char| !sign.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        _ => return Err(wrong()),
    };
    let most = u64::try_from(LONGEST / 1000).unwrap_or(u64::MAX);
    match number.checked_mul(seconds).filter(|seconds| *seconds <= most) {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err(format!("`{text}` is too long: at most 366d")),
    }
}

/// Formats a duration in the largest unit that fits.
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let fitting = units
        .iter()
        .find(|(size, _)| seconds >= *size && seconds.is_multiple_of(*size));
    fitting.map_or_else(
        || format!("{seconds}s"),
        |(size, unit)| format!("{}{unit}", seconds / size),
    )
}
