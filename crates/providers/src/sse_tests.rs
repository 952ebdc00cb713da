use proptest::prelude::*;

use super::*;

fn decode(chunks: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
    decode_within(StreamLimits::default(), chunks)
}

fn decode_within(limits: StreamLimits, chunks: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
    let mut decoder = Decoder::new(limits);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut events)?;
    }
    decoder.finish(&mut events)?;
    Ok(events)
}

fn data(input: &str) -> Vec<String> {
    decode(&[input.as_bytes()])
        .unwrap()
        .into_iter()
        .map(|event| event.data)
        .collect()
}

/// PROV-12: the full event-stream grammar.
#[test]
fn reads_the_whole_grammar() {
    let cases: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("\u{feff}data: a\n\n", &["a"]),
        (": comment\ndata: a\n: more\n\n", &["a"]),
        ("data: a\ndata: b\n\n", &["a\nb"]),
        ("data:a\n\n", &["a"]),
        ("data:  a\n\n", &[" a"]),
        ("data\n\n", &[""]),
        ("data\ndata\n\n", &["\n"]),
        ("event: ping\n\n", &[]),
        ("id: 1\nretry: 5\nodd line\ndata: a\n\n", &["a"]),
        ("data: a\n\ndata: [DONE]", &["a", "[DONE]"]),
        ("data: a\n\ndata: b\n", &["a", "b"]),
        ("", &[]),
        ("\n\n\n", &[]),
    ];
    for (input, expected) in cases {
        assert_eq!(data(input), *expected, "{input:?}");
    }
}

/// PROV-12: event names belong to one event only.
#[test]
fn names_do_not_leak_into_the_next_event() {
    let events = decode(&[b"event: a\ndata: 1\n\ndata: 2\n\n"]).unwrap();
    assert_eq!(
        events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(),
        ["a", ""]
    );
}

/// PROV-12: bytes that are not text end the stream with an error, not a panic.
#[test]
fn refuses_bytes_that_are_not_text() {
    assert_eq!(decode(&[b"data: \xff\xfe\n\n"]), Err(SseError::NotText));
    assert_eq!(decode(&[b"data: \xc3"]), Err(SseError::NotText));
}

/// PROV-12: an event and a reply have a size limit, even when no line ever ends.
#[test]
fn limits_events_and_replies() {
    let limits = StreamLimits {
        event: 10,
        reply: 1000,
    };
    assert_eq!(
        decode_within(limits, &[b"data: 0123456789ab"]),
        Err(SseError::EventTooLong(10))
    );
    let lines = "data: 01234\n".repeat(3);
    assert_eq!(
        decode_within(limits, &[lines.as_bytes()]),
        Err(SseError::EventTooLong(10))
    );
    let limits = StreamLimits {
        event: 100,
        reply: 20,
    };
    assert_eq!(
        decode_within(limits, &[b"data: 0123\n\n", b"data: 0123\n\n"]),
        Err(SseError::ReplyTooLong(20))
    );
}

/// PROV-12: neither the events within the limits nor the limit exceeded first depends on the chunks.
#[test]
fn limits_do_not_depend_on_chunks() {
    let limits = StreamLimits { event: 20, reply: 60 };
    let cases: [(&str, Result<(), SseError>); 5] = [
        ("data: 0123456789abcd\n\n", Ok(())),
        ("data: 0123456789abcde\n\n", Err(SseError::EventTooLong(20))),
        (": a comment is a line, too\n", Err(SseError::EventTooLong(20))),
        (
            "data: 1\n\ndata: 2\n\n: 456789\n: 456789\n: 456789\n: 456789\ndata: 3\n\n",
            Err(SseError::ReplyTooLong(60)),
        ),
        (
            "data: 1\n\n: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\n",
            Err(SseError::EventTooLong(20)),
        ),
    ];
    for (text, expected) in cases {
        let read = |size: usize| {
            let mut decoder = Decoder::new(limits);
            let mut events = Vec::new();
            let mut chunks = text.as_bytes().chunks(size);
            let result = chunks.try_for_each(|chunk| decoder.push(chunk, &mut events));
            (events, result)
        };
        let whole = read(text.len());
        assert_eq!(whole.1, expected, "{text:?}");
        for size in 1..text.len() {
            assert_eq!(read(size), whole, "{text:?} in pieces of {size}");
        }
    }
}

proptest! {
    /// PROV-12: any chunking of the same bytes gives the same events.
    #[test]
    fn chunking_changes_nothing(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["data: ", "data", ":", "event: x", "\n", "\r", "\r\n", "ä", "😀", "{\"a\":1}", " ", "\u{feff}"]),
            0..40,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = pieces.concat().into_bytes();
        let mut points: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        points.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for point in points.into_iter().chain([bytes.len()]) {
            chunks.push(&bytes[from..point]);
            from = point;
        }
        prop_assert_eq!(decode(&chunks), decode(&[&bytes]));
    }
}
