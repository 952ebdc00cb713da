//! Streams as servers send them in, events and replies out.

use proptest::prelude::*;
use windlass_core::provider::{Completion, ProviderError, ProviderEvent};
use windlass_providers::sse::StreamLimits;
use windlass_providers::wire::{Quirks, ReasoningEcho, ReplyDecoder, Wire};

use super::support::{data, golden, outline_completion, outline_events};

const STREAMS: [(&str, Wire); 22] = [
    ("anthropic_full", Wire::Anthropic),
    ("anthropic_cut_call", Wire::Anthropic),
    ("anthropic_crlf", Wire::Anthropic),
    ("anthropic_error", Wire::Anthropic),
    ("anthropic_early", Wire::Anthropic),
    ("chat_parallel", Wire::Chat),
    ("chat_odd", Wire::Chat),
    ("chat_shared_index", Wire::Chat),
    ("chat_new_id_per_fragment", Wire::Chat),
    ("chat_cut_call", Wire::Chat),
    ("chat_error", Wire::Chat),
    ("chat_early", Wire::Chat),
    ("responses_full", Wire::Responses),
    ("responses_cut_call", Wire::Responses),
    ("responses_refusal", Wire::Responses),
    ("responses_failed", Wire::Responses),
    ("gemini_full", Wire::Gemini),
    ("gemini_safety", Wire::Gemini),
    ("gemini_blocked", Wire::Gemini),
    ("gemini_cut_call", Wire::Gemini),
    ("gemini_error", Wire::Gemini),
    ("gemini_early", Wire::Gemini),
];

fn decoder(wire: Wire) -> ReplyDecoder {
    let quirks = Quirks {
        echo: ReasoningEcho::Content,
        ..Quirks::default()
    };
    ReplyDecoder::new(wire, "test", &quirks, StreamLimits::default(), Vec::new())
}

fn decode<'a>(
    wire: Wire,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ProviderEvent>, Result<Completion, ProviderError>) {
    let mut decoder = decoder(wire);
    let mut events = Vec::new();
    for chunk in chunks {
        match decoder.push(chunk, &mut events) {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => return (events, Err(error)),
        }
    }
    let reply = decoder.finish(&mut events);
    (events, reply)
}

fn outline((events, reply): (Vec<ProviderEvent>, Result<Completion, ProviderError>)) -> String {
    let reply = match reply {
        Ok(completion) => outline_completion(&completion),
        Err(error) => format!("error {:?} retryable={} {error}\n", error.kind, error.retryable),
    };
    stable_ids(&(outline_events(&events) + &reply))
}

/// Replaces ids that we generate, which differ from run to run, by numbers.
pub(crate) fn stable_ids(text: &str) -> String {
    let mut text = text.to_owned();
    let is_hex = |id: &str| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut number = 0;
    loop {
        let made_up = text.split("call_").skip(1).find_map(|rest| {
            let id: String = rest.chars().take(16).collect();
            is_hex(&id).then(|| format!("call_{id}"))
        });
        let Some(id) = made_up else { return text };
        number += 1;
        text = text.replace(&id, &format!("<made-up-{number}>"));
    }
}

/// EVT-1, PROV-2, PROV-3, PROV-4, MSG-4: each stream gives exactly these events, parts and provider items.
#[test]
fn streams_decode_as_recorded() {
    for (name, wire) in STREAMS {
        let bytes = data(&format!("{name}.sse"));
        golden(&format!("{name}.txt"), &outline(decode(wire, [&*bytes])));
    }
}

/// PROV-12: feeding one byte at a time gives the same result.
#[test]
fn single_bytes_give_the_same() {
    for (name, wire) in STREAMS {
        let bytes = data(&format!("{name}.sse"));
        assert_eq!(
            outline(decode(wire, bytes.chunks(1))),
            outline(decode(wire, [&*bytes])),
            "{name}"
        );
    }
}

/// PROV-4: servers that do not stream answer in one piece.
#[test]
fn whole_answers_decode() {
    for (name, wire) in [
        ("anthropic_whole", Wire::Anthropic),
        ("chat_whole", Wire::Chat),
        ("responses_whole", Wire::Responses),
        ("gemini_whole", Wire::Gemini),
    ] {
        let mut events = Vec::new();
        let reply = decoder(wire).whole(&data(&format!("{name}.json")), &mut events);
        golden(&format!("{name}.txt"), &outline((events, reply)));
    }
}

/// PROV-6: a response that is not a reply is reported as such, and an error sent as a success is an error.
#[test]
fn answers_that_are_no_reply() {
    for wire in Wire::ALL {
        let error = decoder(wire)
            .whole(b"{\"ok\":true}", &mut Vec::new())
            .unwrap_err();
        assert!(
            error.message.contains("not a reply") && !error.retryable,
            "{error:?}"
        );
        let body = br#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
        let error = decoder(wire).whole(body, &mut Vec::new()).unwrap_err();
        assert_eq!((error.message.as_str(), error.retryable), ("busy", true));
    }
}

/// PROV-12: the text shown as deltas is the text stored.
#[test]
fn shown_text_is_stored_text() {
    for (name, wire) in STREAMS {
        let bytes = data(&format!("{name}.sse"));
        let (events, reply) = decode(wire, [&*bytes]);
        let Ok(completion) = reply else { continue };
        let shown: String = events
            .iter()
            .filter_map(|event| match event {
                ProviderEvent::ContentDelta(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let stored: String = completion
            .parts
            .iter()
            .filter_map(|part| match part {
                windlass_core::message::Part::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(shown, stored, "{name}");
    }
}

proptest! {
    /// PROV-12: any chunking of the same bytes gives the same message and the same joined deltas.
    #[test]
    fn any_chunking_gives_the_same(
        which in 0..STREAMS.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (name, wire) = STREAMS[which];
        let bytes = data(&format!("{name}.sse"));
        let mut points: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        points.sort_unstable();
        points.push(bytes.len());
        let mut from = 0;
        let chunks: Vec<&[u8]> = points.into_iter().map(|to| {
            let chunk = &bytes[from..to];
            from = to;
            chunk
        }).collect();
        prop_assert_eq!(outline(decode(wire, chunks)), outline(decode(wire, [&*bytes])));
    }

    /// PROV-12: no bytes whatsoever make a decoder panic.
    #[test]
    fn broken_streams_do_not_panic(
        which in 0..STREAMS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        let (name, wire) = STREAMS[which];
        let mut bytes = data(&format!("{name}.sse"));
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(end.index(bytes.len() + 1));
        let _ = decode(wire, [&*bytes]);
    }
}
