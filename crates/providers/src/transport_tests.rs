use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// PROV-6: Retry-After is read as seconds, as a date, and in milliseconds.
#[test]
fn waits_are_read_in_every_form() {
    // 2025-06-01 12:00:00 UTC.
    let now = Timestamp(1_748_779_200_000);
    let cases = [
        (vec![("retry-after", "7")], Some(7_000)),
        (vec![("retry-after", "1.5")], Some(1_500)),
        (
            vec![("retry-after", "Sun, 01 Jun 2025 12:00:30 GMT")],
            Some(30_000),
        ),
        (vec![("retry-after", "Sun, 01 Jun 2025 11:00:00 GMT")], Some(0)),
        (vec![("retry-after-ms", "250"), ("retry-after", "9")], Some(250)),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "soon")], None),
        (Vec::new(), None),
    ];
    for (pairs, expected) in cases {
        assert_eq!(
            retry_after(&headers(&pairs), now),
            expected.map(Duration::from_millis),
            "{pairs:?}"
        );
    }
}

/// PROV-4: servers on this machine are reached directly.
#[test]
fn loopback_is_recognised() {
    for (url, expected) in [
        ("http://127.0.0.1:1", true),
        ("http://localhost/v1", true),
        ("http://[::1]:8080", true),
        ("http://127.0.0.1.example.com", false),
        ("http://192.168.1.5", false),
    ] {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }
}
