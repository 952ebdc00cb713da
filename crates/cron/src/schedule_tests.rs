use proptest::prelude::*;

use super::*;

/// Returns a moment, written as in `2026-03-29T00:30:00Z`.
fn at(text: &str) -> Timestamp {
    stamp(text.parse().unwrap())
}

fn slots(schedule: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(schedule, Some(zone)).unwrap();
    let mut time = at(from);
    let mut found = Vec::new();
    for _ in 0..count {
        let slot = schedule.next_slot(time).unwrap();
        time = slot.time;
        let note = slot.note.map(|note| format!(" ({note})"));
        found.push(format!(
            "{}{}",
            schedule.local(slot.time),
            note.unwrap_or_default()
        ));
    }
    found
}

/// CRON-4: a wall time that does not exist runs once at the next valid one, and one that comes twice runs the first
/// time: in Berlin, New York, and on Lord Howe Island, where the clock moves by half an hour.
#[test]
fn wall_times_run_once_on_nights_when_the_clock_changes() {
    for (zone, schedule, from, expected) in [
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T12:00:00Z",
            vec![
                "2026-03-29 03:00:00 +02:00 (the clock goes forward: 02:30 does not exist, so it runs at 03:00)",
                "2026-03-30 02:30:00 +02:00",
            ],
        ),
        (
            "Europe/Berlin",
            "daily at 02:30",
            "2026-10-24T12:00:00Z",
            vec![
                "2026-10-25 02:30:00 +02:00 (the clock goes back: 02:30 comes twice, and the first one counts)",
                "2026-10-26 02:30:00 +01:00",
            ],
        ),
        (
            "America/New_York",
            "0 2,14 * * *",
            "2026-03-07T20:00:00Z",
            vec![
                "2026-03-08 03:00:00 -04:00 (the clock goes forward: 02:00 does not exist, so it runs at 03:00)",
                "2026-03-08 14:00:00 -04:00",
            ],
        ),
        (
            "America/New_York",
            "15,45 1 * * *",
            "2026-11-01T00:00:00Z",
            vec![
                "2026-11-01 01:15:00 -04:00 (the clock goes back: 01:15 comes twice, and the first one counts)",
                "2026-11-01 01:45:00 -04:00 (the clock goes back: 01:45 comes twice, and the first one counts)",
                "2026-11-02 01:15:00 -05:00",
            ],
        ),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T00:00:00Z",
            vec![
                "2026-10-04 02:30:00 +11:00 (the clock goes forward: 02:15 does not exist, so it runs at 02:30)",
                "2026-10-05 02:15:00 +11:00",
            ],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-04T00:00:00Z",
            vec![
                "2026-04-05 01:45:00 +11:00 (the clock goes back: 01:45 comes twice, and the first one counts)",
                "2026-04-06 01:45:00 +10:30",
            ],
        ),
    ] {
        assert_eq!(
            slots(schedule, zone, from, expected.len()),
            expected,
            "{schedule} in {zone}"
        );
    }
}

/// CRON-4: frequent patterns go through both passes of a repeated hour, and do not wait in a missing one.
#[test]
fn frequent_patterns_follow_the_clock() {
    assert_eq!(
        slots("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 4),
        [
            "2026-10-25 02:00:00 +02:00",
            "2026-10-25 02:00:00 +01:00 (the clock has gone back to +01:00)",
            "2026-10-25 03:00:00 +01:00",
            "2026-10-25 04:00:00 +01:00",
        ]
    );
    assert_eq!(
        slots("*/30 * * * *", "America/New_York", "2026-03-08T06:20:00Z", 3),
        [
            "2026-03-08 01:30:00 -05:00",
            "2026-03-08 03:00:00 -04:00 (the clock has gone forward to -04:00)",
            "2026-03-08 03:30:00 -04:00",
        ]
    );
    let every = slots("every 90m", "Europe/Berlin", "2026-10-24T22:00:00Z", 3);
    assert_eq!(every[1], "2026-10-25 02:00:00 +02:00");
    assert_eq!(
        every[2],
        "2026-10-25 02:30:00 +01:00 (the clock has gone back to +01:00)"
    );
}

/// CRON-1: the readable forms stand for cron patterns.
#[test]
fn readable_forms() {
    for (text, pattern) in [
        ("@daily", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("daily at 09:05", "5 9 * * *"),
        ("weekdays at 9:00", "0 9 * * 1-5"),
        ("weekends at 23:59", "59 23 * * 0,6"),
        ("mon,Thursday at 18:30", "30 18 * * 1,4"),
        ("sundays at 00:00", "0 0 * * 0"),
    ] {
        let found = |text: &str| slots(text, "UTC", "2026-01-01T10:00:00Z", 10);
        assert_eq!(found(text), found(pattern), "{text}");
    }
    assert_eq!(
        slots("0 0 L 2 *", "UTC", "2028-01-01T00:00:00Z", 1),
        ["2028-02-29 00:00:00 +00:00"]
    );
    assert_eq!(
        slots("*/20 * * * * *", "UTC", "2026-01-01T00:00:00Z", 1),
        ["2026-01-01 00:00:20 +00:00"]
    );
}

/// CRON-1: a mistake is reported with what is right.
#[test]
fn mistakes_are_explained() {
    for (text, zone, expected) in [
        ("0 0 30 2 *", "UTC", "`0 0 30 2 *` never fires"),
        ("0 0 31 4,6 *", "UTC", "never fires"),
        ("", "UTC", "`` is not a schedule: it is empty"),
        (
            "a b c d e",
            "UTC",
            "is not a schedule: it contains the illegal character 'A'",
        ),
        (
            "* * * *",
            "UTC",
            "is not a schedule: Pattern must have between 5 and 7 fields",
        ),
        ("61 * * * *", "UTC", "`61 * * * *` is not a schedule"),
        ("* * *", "UTC", "expected a cron pattern such as"),
        ("every soon", "UTC", "`soon` is not a duration"),
        ("every 0s", "UTC", "from 1s to 366d"),
        ("every 9999999999999d", "UTC", "too long"),
        ("someday at 9:00", "UTC", "`someday` is not a day"),
        ("daily at 25:00", "UTC", "`25:00` is not a time of day"),
        ("daily at 9:5", "UTC", "not a time of day"),
        ("@often", "UTC", "expected one of @yearly"),
        ("@daily", "Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("@daily", "berlin", "did you mean `Europe/Berlin`?"),
        ("@daily", "Nowhere/Nothing", "expected a name such as"),
    ] {
        let error = Schedule::parse(text, Some(zone)).unwrap_err().to_string();
        assert!(error.contains(expected), "{text} in {zone}: {error}");
    }
}

proptest! {
    /// CRON-1: no text makes the parser fail otherwise than with an error.
    #[test]
    fn any_text_is_read(text in "[ a-z0-9*/,:@#L?-]{0,40}") {
        let _ = Schedule::parse(&text, Some("Europe/Berlin"));
    }

    /// CRON-4: a slot is always after the moment that was asked for, and the next one after that.
    #[test]
    fn slots_are_in_order(
        minute in 0..60u8, hour in 0..24u8, day in 0..7u8, start in 1_700_000_000_000u64..1_900_000_000_000,
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]),
        form in 0..4usize,
    ) {
        let text = [
            format!("{minute} {hour} * * *"),
            format!("{minute} {hour} * * {day}"),
            format!("{minute} */3 * * *"),
            format!("*/{} * * * *", minute % 29 + 1),
        ][form].clone();
        let schedule = Schedule::parse(&text, Some(zone)).unwrap();
        let mut at = Timestamp(start);
        for _ in 0..20 {
            let next = schedule.next(at).unwrap();
            prop_assert!(next > at);
            // Nothing is between the two.
            prop_assert_eq!(schedule.next(Timestamp(next.0 - 1)), Some(next));
            at = next;
        }
    }
}
