#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use proptest::prelude::*;

use super::{Step, break_off, plan, plan_whole};
use crate::encode::{Frame, Part};
use crate::fault::{Fault, Framing};

fn frame(data: &str, part: Part) -> Frame {
    Frame {
        event: Some("e"),
        data: data.to_owned(),
        part,
    }
}

fn frames() -> Vec<Frame> {
    vec![
        frame(r#"{"a":1}"#, Part::Frame),
        frame(r#"{"b":2}"#, Part::Delta),
        frame(r#"{"c":3}"#, Part::Delta),
        frame(r#"{"d":4}"#, Part::Terminal),
    ]
}

fn sent(steps: &[Step]) -> Vec<u8> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Send(bytes) => out.extend_from_slice(bytes),
            Step::Fill(count) => out.extend(std::iter::repeat_n(b' ', *count)),
            Step::Flush | Step::Stall | Step::Cut => {}
        }
    }
    out
}

fn text(fault: &Fault) -> String {
    String::from_utf8(sent(&plan(frames(), fault))).unwrap()
}

/// PROV-12: every framing of the event-stream grammar.
#[test]
fn framings_are_written_as_named() {
    let first = |framing| {
        let out = text(&Fault::new().framing(framing));
        out.split(r#""b""#).next().unwrap().to_owned()
    };
    assert!(first(Framing::Lf).starts_with("event: e\ndata: {\"a\":1}\n\nevent"));
    assert!(first(Framing::Crlf).starts_with("event: e\r\ndata: {\"a\":1}\r\n\r\nevent"));
    assert!(first(Framing::Cr).starts_with("event: e\rdata: {\"a\":1}\r\revent"));
    assert!(first(Framing::Bom).starts_with("\u{feff}event: e\n"));
    assert!(first(Framing::NoSpace).starts_with("event:e\ndata:{\"a\":1}\n\n"));
    assert!(first(Framing::Multiline).starts_with("event: e\ndata: {\ndata: \"a\":1}\n\n"));
    assert!(first(Framing::Comments).starts_with(": keep-alive\nid: 7\nretry: 1000\nevent: e\n: data"));
}

/// PROV-5: interruptions stop where the fault says.
#[test]
fn interruptions_stop_the_plan() {
    let whole = text(&Fault::new());
    let cut = plan(frames(), &Fault::new().cut_after_events(2));
    assert_eq!(cut.last(), Some(&Step::Cut));
    assert_eq!(cut.len(), 4);
    let stalled = plan(frames(), &Fault::new().stall_after_events(0));
    assert_eq!(stalled, [Step::Stall]);
    let bytes = plan(frames(), &Fault::new().cut_after_bytes(10));
    assert_eq!(sent(&bytes), whole.as_bytes().get(..10).unwrap());
    assert_eq!(bytes.last(), Some(&Step::Cut));
    let half = plan_whole("0123456789".to_owned(), &Fault::new().cut_after_events(1));
    assert_eq!(half[0], Step::Send(Bytes::from_static(b"01234")));
}

/// PROV-5: terminal frames are left out, and an error replaces the second half.
#[test]
fn streams_may_lack_their_end() {
    assert!(!text(&Fault::new().no_finish()).contains(r#""d""#));
    let broken = break_off(frames(), |at| frame(&format!("error {at}"), Part::Frame));
    let data: Vec<_> = broken.iter().map(|frame| frame.data.as_str()).collect();
    assert_eq!(data, [r#"{"a":1}"#, r#"{"b":2}"#, "error 2"]);
}

/// PROV-12: an event that is too large stays a valid event.
#[test]
fn an_oversized_event_is_padded() {
    let out = text(&Fault::new().oversized(100_000));
    assert!(out.len() > 100_000);
    assert!(out.contains("data:  "));
}

/// PROV-12: a byte that is not UTF-8 replaces the mark.
#[test]
fn a_mark_becomes_a_bad_byte() {
    let marked = vec![frame("a\u{e0ff}b", Part::Delta)];
    let out = sent(&plan(marked, &Fault::new().invalid_utf8()));
    assert!(out.windows(3).any(|window| window == b"a\xffb"));
}

proptest! {
    /// PROV-12: chunking never changes the bytes, and no chunk exceeds the requested size.
    #[test]
    fn chunking_keeps_the_bytes(size in 1_usize..40) {
        let steps = plan(frames(), &Fault::new().chunk(size));
        prop_assert_eq!(sent(&steps), text(&Fault::new()).into_bytes());
        for step in &steps {
            if let Step::Send(bytes) = step {
                prop_assert!(bytes.len() <= size);
            }
        }
    }

    /// PROV-12: pieces of a text are cut between characters and add up to the text.
    #[test]
    fn pieces_make_up_the_text(text in "\\PC{0,60}", size in 1_usize..20) {
        use crate::answer::Pieces;
        prop_assert_eq!(Pieces::Characters(size).split(&text).concat(), text.as_str());
        let parts = Pieces::Count(size).split(&text);
        prop_assert!(parts.len() <= size);
        prop_assert_eq!(parts.concat(), text);
    }
}
