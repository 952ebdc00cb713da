//! What preparing a request costs at the beginning of a conversation and deep in it.

use std::sync::Arc;

use anyhow::Result;
use windlass_core::clock::Timestamp;
use windlass_core::context::Context;
use windlass_core::message::{Message, Part, Role, ToolCall, ToolResult};
use windlass_core::provider::{Prefix, Request, ToolChoice};
use windlass_core::tokens::Gauge;
use windlass_providers::HttpProvider;

use super::median;
use crate::clock::now;
use crate::lab::Lab;
use crate::parts;
use crate::report::{Figure, Target};

/// Where the conversation is looked at.
const PLACES: [usize; 4] = [50, 500, 5_000, 20_000];

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let rounds = if lab.quick { 20 } else { 200 };
    let mut costs = Vec::new();
    for place in PLACES {
        costs.push(cost(place, rounds)?);
    }
    let first = costs.first().copied().unwrap_or_default();
    let figure = |(place, cost): (&usize, &f64)| Figure {
        name: format!("preparing a request at message {place} (floor: at message 50)"),
        agent: format!("{cost:.3} ms"),
        floor: format!("{first:.3} ms"),
        value: cost - first,
        unit: "ms more",
        target: if *place == 5_000 {
            Target::AtMost(0.2)
        } else {
            Target::None
        },
    };
    Ok(PLACES.iter().zip(&costs).skip(1).map(figure).collect())
}

/// Milliseconds from two new messages to the bytes of the next request: repair, counting and encoding.
fn cost(place: usize, rounds: usize) -> Result<f64> {
    let provider = parts::provider(9)?;
    let prefix = Arc::new(Prefix {
        system: "Work. ".repeat(230),
        ..Prefix::default()
    });
    let mut history = vec![message(Role::User, vec![Part::text("go")])];
    while history.len() < place {
        history.extend(step(history.len()));
    }
    let (mut context, gauge) = (Context::default(), Gauge::default());
    prepare(&mut context, &gauge, &provider, &prefix, &history);
    let mut times = Vec::new();
    for _ in 0..rounds {
        history.extend(step(history.len()));
        let begun = now();
        prepare(&mut context, &gauge, &provider, &prefix, &history);
        times.push(super::milliseconds(begun, now()));
    }
    Ok(median(times))
}

fn prepare(
    context: &mut Context,
    gauge: &Gauge,
    provider: &HttpProvider,
    prefix: &Arc<Prefix>,
    history: &[Arc<Message>],
) {
    let request = Request {
        prefix: Arc::clone(prefix),
        messages: context.prepare(history).to_vec(),
        tool_choice: ToolChoice::Auto,
        max_output: None,
        session: "bench".into(),
        cancel: Default::default(),
    };
    std::hint::black_box(gauge.is_surely_below(u64::MAX / 2, prefix, history));
    std::hint::black_box(provider.request_body(&request));
}

fn step(number: usize) -> [Arc<Message>; 2] {
    let id = format!("call-{number}");
    let call = Part::ToolCall(ToolCall {
        id: id.clone().into(),
        name: "bash".into(),
        input: "{\"command\":\"cargo test\"}".into(),
        finished: true,
    });
    let result = Part::ToolResult(ToolResult {
        call_id: id.into(),
        name: "bash".into(),
        content: "test result: ok. 12 passed; 0 failed\n".repeat(20),
        metadata: None,
        is_error: false,
        images: Vec::new(),
    });
    [
        message(Role::Assistant, vec![call]),
        message(Role::Tool, vec![result]),
    ]
}

fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message::new(&"bench".into(), role, parts, Timestamp(1)))
}
