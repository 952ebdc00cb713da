//! Whatever an event contains, it is read back as it was written.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_core::clock::Timestamp;
use windlass_core::event::{Envelope, Event, Waiting};
use windlass_core::id::SessionId;
use windlass_core::json::{bounded, repaired};
use windlass_core::log::{Batch, DraftChange, Entry, record};
use windlass_core::message::{Message, Origin, Part, Role, ToolCall, ToolResult};
use windlass_core::tool::raw_arguments;

use super::bed::Bed;

/// JSON that is valid, and that parsers refuse or change.
fn odd_json() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        r#""\ud83d""#,
        r#""\ud83d\ude00\udc41\u0000\/""#,
        "1e400",
        "-1E+999",
        "1.10",
        "1E5",
        "-0.0",
        "0.1000000000000000055511151231257827",
        "123456789012345678901234567890",
        r#"{"a":1,"a":2}"#,
        r#"{ "type" : "text", "type":"message" , "seq":7 }"#,
        "[ ]",
        "true",
    ]);
    let numbers = any::<f64>().prop_filter_map("finite", |number| {
        number.is_finite().then(|| format!("{number:e}"))
    });
    let texts = any::<String>().prop_map(|text| Value::from(text).to_string());
    let leaf = prop_oneof![fixed.prop_map(str::to_owned), numbers, texts];
    let deep = (leaf.clone(), 0_usize..400)
        .prop_map(|(leaf, depth)| format!("{}{leaf}{}", "[".repeat(depth), "]".repeat(depth)));
    let tree = leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|fields| {
                let fields = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    prop_oneof![4 => tree, 1 => deep]
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn part() -> impl Strategy<Value = Part> {
    let texts = || {
        prop_oneof![
            any::<String>(),
            odd_json(),
            select(vec!["\0", "\u{202e}"]).prop_map(str::to_owned)
        ]
    };
    prop_oneof![
        texts().prop_map(Part::text),
        odd_json().prop_map(|data| Part::Unknown(raw(&format!(r#"{{ "type":"new" ,"data":{data}}}"#)))),
        odd_json().prop_map(|data| Part::Unknown(raw(&data))),
        (texts(), texts(), any::<bool>()).prop_map(|(name, input, finished)| {
            Part::ToolCall(ToolCall {
                id: "c".into(),
                name,
                input,
                finished,
            })
        }),
        (texts(), odd_json()).prop_map(|(content, data)| {
            Part::ToolResult(ToolResult {
                call_id: "c".into(),
                name: "t".to_owned(),
                content,
                metadata: serde_json::from_str(&repaired(&data))
                    .ok()
                    .filter(|data: &Value| !data.is_null()),
                is_error: false,
                images: Vec::new(),
            })
        }),
    ]
}

fn message() -> impl Strategy<Value = Arc<Message>> {
    let items = prop::option::of(prop::collection::vec(odd_json(), 0..3));
    (prop::collection::vec(part(), 0..4), items).prop_map(|(parts, items)| {
        let mut message = Message::new(&SessionId::from("s"), Role::Assistant, parts, Timestamp(1));
        message.origin = items.map(|items| Origin {
            provider: "p".to_owned(),
            wire: "w".to_owned(),
            items: items.iter().map(|item| raw(item)).collect(),
        });
        Arc::new(message)
    })
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let value = || odd_json().prop_map(|text| bounded(serde_json::from_str(&repaired(&text)).unwrap()));
    prop_oneof![
        4 => message().prop_map(|message| Event::Message { message }),
        1 => message().prop_map(|message| Event::Waiting(Waiting::Queue { messages: vec![message], steers: Vec::new() })),
        1 => odd_json().prop_map(|args| Event::ToolCall {
            call_id: "c".into(),
            name: "t".to_owned(),
            args: raw_arguments(&args),
        }),
        1 => (any::<String>(), value()).prop_map(|(content, details)| Event::ToolResult {
            call_id: "c".into(),
            name: "t".to_owned(),
            content,
            is_error: false,
            details: (!details.is_null()).then_some(details),
        }),
        1 => any::<String>().prop_map(|text| Event::Text { text }),
    ]
}

fn text(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| serde_json::to_string(&entry.event).unwrap())
        .collect()
}

/// Stores events in a new session and returns what another process reads.
async fn kept(bed: &Bed, id: &str, events: &[Event]) -> Vec<Entry> {
    let opened = bed.session(id).await;
    let draft = events.iter().find_map(|event| match event {
        Event::Message { message } => Some(Box::new(Message::clone(message))),
        _ => None,
    });
    let batch = Batch {
        first_seq: 1,
        events: events.to_vec(),
        time: Timestamp(5),
        draft: draft.clone().map_or(DraftChange::Keep, DraftChange::Set),
        ..Batch::default()
    };
    bed.store.append(&opened.lease, batch).await.unwrap();
    bed.store.release(&opened.lease).await.unwrap();
    let other = bed.again();
    let opened = other.open(&id.into(), &windlass_store::owner()).await.unwrap();
    assert_eq!(opened.draft, draft.map(|draft| *draft));
    other.release(&opened.lease).await.unwrap();
    record(&*other, &id.into()).await.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// MSG-2, MSG-4, MSG-7: every event is read back byte for byte after the database was opened again, and
    /// after it was copied to another session through the text of an export.
    #[test]
    fn every_event_comes_back(events in prop::collection::vec(event(), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bed = Bed::new();
            let entries = kept(&bed, "s", &events).await;
            let written: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
            assert_eq!(text(&entries), written);
            let export = serde_json::to_string_pretty(&json!({ "n": 1 })).unwrap();
            let export = format!("[{export},{}]", serde_json::to_string_pretty(&entries).unwrap());
            let (_, copy): (Value, Vec<Entry>) = serde_json::from_str(&export).unwrap();
            assert_eq!(&copy, &entries);
            let moved: Vec<Event> = copy.into_iter().map(|entry| entry.event).collect();
            assert_eq!(text(&kept(&bed, "copy", &moved).await), written);
            for event in moved {
                let envelope = Envelope { v: 1, session: "s".into(), seq: 3, event };
                let line = serde_json::to_string(&envelope).unwrap();
                assert_eq!(serde_json::from_str::<Envelope>(&line).unwrap(), envelope);
            }
            assert_eq!(bed.problems(), Vec::<String>::new());
        });
    }
}
