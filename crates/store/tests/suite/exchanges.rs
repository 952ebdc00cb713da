//! Exchanges are stored and read back complete.

use bytes::Bytes;
use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, SessionEvent};
use windlass_core::log::{Exchange, Frame, History, NewExchange, RecordedAnswer};
use windlass_core::message::Role;
use windlass_core::tool::ToolSpec;

use super::bed::{Bed, append, said, the_end};

fn exchange(request: &'static str, answer: &'static str) -> Exchange {
    Exchange {
        time: Timestamp(7),
        provider: "p".into(),
        model: "m".into(),
        request: Bytes::from_static(request.as_bytes()),
        digest: format!("d-{request}"),
        before: None,
        last: Some("message".into()),
        answer: RecordedAnswer {
            status: Some(200),
            form: "text/event-stream".into(),
            body: Bytes::from_static(answer.as_bytes()),
            cut: None,
        },
        frame: Some("f".into()),
    }
}

async fn keep(bed: &Bed, exchange: Exchange, shared: usize, limit: u64) -> bool {
    let new = NewExchange {
        exchange: Exchange {
            request: exchange.request.slice(shared..),
            ..exchange
        },
        shared: shared as u64,
    };
    bed.store.keep_exchange(&"one".into(), new, limit).await.unwrap()
}

/// OBS-2: exchanges come back complete although only the new part of each request is written; over the limit
/// nothing more is stored; they are deleted with their session.
#[tokio::test]
async fn exchanges_come_back_whole() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let one = exchange("{\"m\":[1]}", "a");
    let two = exchange("{\"m\":[1,2]}", "bb");
    let mut cut = exchange("{\"x\"}", "");
    cut.answer = RecordedAnswer {
        cut: Some("canceled".into()),
        ..RecordedAnswer::default()
    };
    assert!(keep(&bed, one.clone(), 0, 100).await);
    assert!(keep(&bed, two.clone(), 7, 100).await);
    assert!(keep(&bed, cut.clone(), 2, 100).await);
    let read = bed.again().exchanges(&"one".into()).await.unwrap();
    assert_eq!(read, [one.clone(), two, cut]);
    assert!(!keep(&bed, one.clone(), 0, 20).await);
    assert!(
        !keep(&bed, one, 0, 1_000).await,
        "a recording with a hole is none"
    );
    assert_eq!(bed.store.exchanges(&"one".into()).await.unwrap().len(), 3);
    bed.store.release(&opened.lease).await.unwrap();
    bed.store.delete(&"one".into()).await.unwrap();
    assert!(bed.store.exchanges(&"one".into()).await.unwrap().is_empty());
}

/// OBS-2: the system prompt and the tools are stored once for all requests that share them.
#[tokio::test]
async fn frames_are_kept_once() {
    let bed = Bed::new();
    let frame = Frame {
        system: "be good".into(),
        tools: vec![ToolSpec {
            name: "t".into(),
            description: "d".into(),
            schema: serde_json::json!({"type": "object", "b": 1, "a": 2}).into(),
        }],
        max_output: Some(5),
    };
    let digest = bed.store.keep_frame(&frame).await.unwrap();
    assert_eq!(bed.store.keep_frame(&frame).await.unwrap(), digest);
    let read = bed.again().frame(&digest).await.unwrap().unwrap();
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        serde_json::to_string(&frame).unwrap(),
        "also the order of keys"
    );
    assert_eq!(bed.store.frame("nothing").await.unwrap(), None);
}

/// SES-11: a rewound conversation continues from there, and can go forward again to where it was; also after
/// the session is reopened.
#[tokio::test]
async fn a_conversation_goes_back_and_forth() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let mut lease = opened.lease;
    let rewind = |to| Event::Session(SessionEvent::Rewind { to });
    let steps = [
        (
            vec![said(Role::User, "a"), said(Role::Assistant, "A"), the_end("A")],
            "a A",
        ),
        (
            vec![said(Role::User, "b"), said(Role::Assistant, "B"), the_end("B")],
            "a A b B",
        ),
        (vec![rewind(3)], "a A"),
        (vec![rewind(6)], "a A b B"),
        (vec![rewind(3)], "a A"),
        (
            vec![said(Role::User, "c"), said(Role::Assistant, "C"), the_end("C")],
            "a A c C",
        ),
        (vec![rewind(9)], "a A"),
        (vec![rewind(0)], ""),
        (vec![rewind(13)], "a A"),
    ];
    let mut seq = 1;
    for (events, expected) in steps {
        let count = events.len() as u64;
        append(&bed.store, &lease, seq, events).await;
        seq += count;
        let entries = bed.store.entries(&"one".into(), 0, 100).await.unwrap();
        let texts = |entries: &[windlass_core::log::Entry]| {
            let history = History::read(entries);
            let text = |message: &std::sync::Arc<windlass_core::message::Message>| match &message.parts[0] {
                windlass_core::message::Part::Text(text) => text.text.clone(),
                other => format!("{other:?}"),
            };
            history.messages().iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(&entries), expected, "after entry {}", seq - 1);
        bed.store.release(&lease).await.unwrap();
        let again = bed.store.open(&"one".into(), "me").await.unwrap();
        assert_eq!(texts(&again.entries), expected);
        lease = again.lease;
    }
}
