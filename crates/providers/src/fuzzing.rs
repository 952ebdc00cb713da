//! Entry points that `cargo xtask fuzz` feeds arbitrary input, and the tests feed the stored corpus.

use crate::sse::StreamLimits;
use crate::wire::{Quirks, ReasoningEcho, ReplyDecoder, Wire};

/// Limits low enough for a small input to exceed.
const SMALL: StreamLimits = StreamLimits {
    event: 60,
    reply: 400,
};

/// Decodes a response in one piece, byte by byte, and in pieces of another size; all must give the same
/// result.
///
/// The first byte selects the wire, the vendor's quirks and the limits, the second the piece size. The
/// response follows.
pub fn stream(data: &[u8]) {
    let [choice, cut, answer @ ..] = data else { return };
    let decoder = || decoder(*choice);
    let whole = decoded(decoder(), [answer]);
    assert_eq!(whole, decoded(decoder(), answer.chunks(1)), "single bytes");
    let size = usize::from(cut & 0x1f) + 2;
    assert_eq!(whole, decoded(decoder(), answer.chunks(size)), "pieces of {size}");
    let (start, end) = answer.split_at(usize::from(*cut).min(answer.len()));
    assert_eq!(whole, decoded(decoder(), [start, end]), "two pieces");
    let mut events = Vec::new();
    let _ = decoder().whole(answer, &mut events);
}

fn decoder(choice: u8) -> ReplyDecoder {
    let wire = match choice % 4 {
        0 => Wire::Anthropic,
        1 => Wire::Chat,
        2 => Wire::Responses,
        _ => Wire::Gemini,
    };
    let quirks = Quirks {
        echo: match choice >> 2 & 3 {
            0 => ReasoningEcho::None,
            1 => ReasoningEcho::Content,
            _ => ReasoningEcho::Details,
        },
        short_call_ids: choice & 0x10 != 0,
        ..Quirks::default()
    };
    let limits = if choice & 0x20 == 0 {
        StreamLimits::default()
    } else {
        SMALL
    };
    ReplyDecoder::seeded(wire, "fuzz", &quirks, limits, "seed")
}

/// Renders everything a reader of the response can observe.
fn decoded<'a>(mut decoder: ReplyDecoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut events = Vec::new();
    for piece in pieces {
        match decoder.push(piece, &mut events) {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => return format!("{events:?}\n{error:?}"),
        }
    }
    let reply = decoder.finish(&mut events);
    format!("{events:?}\n{reply:?}")
}
