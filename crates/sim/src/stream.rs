//! Turns frames into bytes on the connection, including faults.
//!
//! A pure function plans the body as a list of steps; a small driver executes them.

use std::collections::VecDeque;
use std::io;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use crate::encode::{Frame, Part};
use crate::fault::{Fault, Framing, Interrupt};

/// Placeholder in a text for the byte that is not UTF-8; a private-use character that no script would
/// contain.
pub(crate) const BAD_BYTE_MARK: char = '\u{e0ff}';

/// Size of the pieces that filler is written in.
const FILL_PIECE: usize = 64 * 1024;

/// One action on the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write these bytes.
    Send(Bytes),
    /// Write this many spaces.
    Fill(usize),
    /// Let the bytes written so far leave before continuing.
    Flush,
    /// Send nothing until the client leaves or the server stops.
    Stall,
    /// Drop the connection without ending the body.
    Cut,
}

/// Plans a streamed body. The error frame, if any, replaces everything after the middle of the deltas.
pub(crate) fn plan(frames: Vec<Frame>, fault: &Fault) -> Vec<Step> {
    let frames = if fault.no_finish {
        frames
            .into_iter()
            .filter(|frame| frame.part != Part::Terminal)
            .collect()
    } else {
        frames
    };
    let mut steps = Vec::with_capacity(frames.len() + 2);
    if fault.framing == Framing::Bom {
        steps.push(Step::Send(Bytes::from_static(b"\xef\xbb\xbf")));
    }
    for (index, frame) in frames.iter().enumerate() {
        if stops_at(fault, index, &mut steps) {
            return finish(steps, fault);
        }
        // Spaces between the field name and the JSON make the event too large, but leave it valid.
        if fault.oversized > 0 && index == 1 {
            steps.push(Step::Send(Bytes::from_static(b"data: ")));
            steps.push(Step::Fill(fault.oversized));
            steps.push(Step::Send(Bytes::from_static(b"\n")));
        }
        steps.push(Step::Send(render(frame, fault.framing)));
    }
    stops_at(fault, frames.len(), &mut steps);
    finish(steps, fault)
}

/// Plans a body that is not a stream. It counts as one event.
pub(crate) fn plan_whole(body: String, fault: &Fault) -> Vec<Step> {
    let mut steps = Vec::new();
    if fault.oversized > 0 {
        steps.push(Step::Fill(fault.oversized));
    }
    let bytes = Bytes::from(body);
    let half = bytes.len() / 2;
    match fault.interrupt {
        Some(Interrupt::CutAfterEvents(_)) => {
            steps.extend([Step::Send(bytes.slice(..half)), Step::Flush, Step::Cut]);
        }
        Some(Interrupt::StallAfterEvents(_)) => {
            steps.extend([Step::Send(bytes.slice(..half)), Step::Stall]);
        }
        Some(Interrupt::CutAfterBytes(_)) | None => steps.push(Step::Send(bytes)),
    }
    finish(steps, fault)
}

/// Puts an error into the middle of a stream: after the first half of the deltas.
pub(crate) fn break_off(mut frames: Vec<Frame>, error: impl FnOnce(usize) -> Frame) -> Vec<Frame> {
    let deltas: Vec<usize> = (0..frames.len())
        .filter(|index| frames[*index].part == Part::Delta)
        .collect();
    let keep = deltas
        .get(deltas.len().saturating_sub(1) / 2)
        .map_or(1, |index| index + 1);
    frames.truncate(keep);
    frames.push(error(keep));
    frames
}

/// Builds the body that executes a plan.
pub(crate) fn body(steps: Vec<Step>, stop: CancellationToken) -> Body {
    let steps = VecDeque::from(steps);
    Body::from_stream(stream::unfold((steps, stop), |(mut steps, stop)| async {
        loop {
            if stop.is_cancelled() {
                return None;
            }
            match steps.pop_front()? {
                Step::Send(bytes) => return Some((Ok(bytes), (steps, stop))),
                Step::Fill(0) => {}
                Step::Fill(left) => {
                    let size = left.min(FILL_PIECE);
                    steps.push_front(Step::Fill(left - size));
                    return Some((Ok(Bytes::from(vec![b' '; size])), (steps, stop)));
                }
                // The connection flushes its buffer when the body has nothing ready.
                Step::Flush => tokio::task::yield_now().await,
                Step::Stall => stop.cancelled().await,
                Step::Cut => {
                    let error = io::Error::from(io::ErrorKind::ConnectionAborted);
                    return Some((Err(error), (steps, stop)));
                }
            }
        }
    }))
}

fn stops_at(fault: &Fault, index: usize, steps: &mut Vec<Step>) -> bool {
    match fault.interrupt {
        Some(Interrupt::CutAfterEvents(events)) if events == index => {
            steps.extend([Step::Flush, Step::Cut]);
            true
        }
        Some(Interrupt::StallAfterEvents(events)) if events == index => {
            steps.push(Step::Stall);
            true
        }
        _ => false,
    }
}

/// Applies the faults that work on bytes.
fn finish(steps: Vec<Step>, fault: &Fault) -> Vec<Step> {
    let mut steps = if fault.invalid_utf8 {
        steps.into_iter().map(spoil).collect()
    } else {
        steps
    };
    if let Some(Interrupt::CutAfterBytes(limit)) = fault.interrupt {
        steps = cut_after(steps, limit);
    }
    match fault.chunk {
        Some(size) => steps
            .into_iter()
            .flat_map(|step| split(step, size.max(1)))
            .collect(),
        None => steps,
    }
}

fn spoil(step: Step) -> Step {
    let Step::Send(bytes) = step else { return step };
    let mut mark = [0; 4];
    let mark = BAD_BYTE_MARK.encode_utf8(&mut mark).as_bytes();
    let Some(at) = bytes.windows(mark.len()).position(|window| window == mark) else {
        return Step::Send(bytes);
    };
    let mut spoiled = bytes.slice(..at).to_vec();
    spoiled.push(0xff);
    spoiled.extend_from_slice(&bytes.slice(at + mark.len()..));
    Step::Send(Bytes::from(spoiled))
}

fn cut_after(steps: Vec<Step>, limit: usize) -> Vec<Step> {
    let mut left = limit;
    let mut out = Vec::new();
    for step in steps {
        let (kept, size) = match step {
            Step::Send(bytes) => {
                let size = bytes.len();
                (Step::Send(bytes.slice(..size.min(left))), size)
            }
            Step::Fill(size) => (Step::Fill(size.min(left)), size),
            other => (other, 0),
        };
        out.push(kept);
        if size >= left && size > 0 {
            break;
        }
        left -= size;
    }
    out.extend([Step::Flush, Step::Cut]);
    out
}

fn split(step: Step, size: usize) -> Vec<Step> {
    let Step::Send(mut bytes) = step else {
        return vec![step];
    };
    let mut out = Vec::with_capacity(2 * bytes.len().div_ceil(size));
    while !bytes.is_empty() {
        let piece = bytes.split_to(size.min(bytes.len()));
        out.extend([Step::Send(piece), Step::Flush]);
    }
    out
}

/// Renders one event as bytes.
fn render(frame: &Frame, framing: Framing) -> Bytes {
    let end = match framing {
        Framing::Crlf => "\r\n",
        Framing::Cr => "\r",
        _ => "\n",
    };
    let colon = if framing == Framing::NoSpace { ":" } else { ": " };
    let mut out = String::with_capacity(frame.data.len() + 48);
    let mut line = |name: &str, value: &str| {
        out.push_str(name);
        out.push_str(colon);
        out.push_str(value);
        out.push_str(end);
    };
    if framing == Framing::Comments {
        line("", "keep-alive");
        line("id", "7");
        line("retry", "1000");
    }
    if let Some(event) = frame.event {
        line("event", event);
    }
    if framing == Framing::Comments {
        line("", "data: {\"not\": \"an event\"}");
    }
    match frame.data.strip_prefix('{') {
        // A line break is legal JSON white space right after the opening brace.
        Some(rest) if framing == Framing::Multiline => {
            line("data", "{");
            line("data", rest);
        }
        _ => line("data", &frame.data),
    }
    out.push_str(end);
    Bytes::from(out)
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
