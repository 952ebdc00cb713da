use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

/// PROV-6: a request on a connection that the server closed after its last answer is sent again on a new one.
#[tokio::test]
async fn a_closed_connection_is_not_a_failure() {
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let server = std::thread::spawn(move || {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        let mut buffer = [0; 4096];
        let (mut first, _) = listener.accept().unwrap();
        let _ = first.read(&mut buffer).unwrap();
        first.write_all(answer).unwrap();
        // The second request is read, and the connection closed without an answer.
        let _ = first.read(&mut buffer).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let _ = second.read(&mut buffer).unwrap();
        second.write_all(answer).unwrap();
    });
    let (transport, limits) = (Transport::new(), TransportLimits::default());
    let clock = windlass_core::clock::SystemClock::default();
    for _ in 0..2 {
        let call = Call {
            url: url.clone(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{}"),
        };
        let mut response = transport.post(call, &limits, &clock).await.unwrap();
        let body = read_body(&mut response, 100, &limits, &clock).await.unwrap();
        assert_eq!(body, b"ok");
    }
    server.join().unwrap();
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
