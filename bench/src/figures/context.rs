//! Cost of preparing a request at the start of a conversation and deep in it.

use std::path::Path;
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

/// Positions in the conversation at which the cost is measured.
const PLACES: [usize; 7] = [50, 500, 1_000, 2_000, 5_000, 10_000, 20_000];

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let rounds = if lab.quick { 20 } else { 200 };
    let mut costs = Vec::new();
    for place in PLACES {
        costs.push(cost(place, rounds)?);
    }
    let first = costs.first().copied().unwrap_or_default();
    if lab.is_written {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("context.svg");
        std::fs::write(path, plot(&costs))?;
    }
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
    let told = |place: &usize| [500, 5_000, 20_000].contains(place);
    Ok(PLACES
        .iter()
        .zip(&costs)
        .filter(|(place, _)| told(place))
        .map(figure)
        .collect())
}

/// Plots the costs over the length of the conversation.
#[allow(clippy::cast_precision_loss)]
fn plot(costs: &[f64]) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 320.0;
    const LEFT: f64 = 70.0;
    const BOTTOM: f64 = 40.0;
    let (longest, most) = (
        PLACES.into_iter().max().unwrap_or(1) as f64,
        costs.iter().copied().fold(0.1, f64::max) * 1.2,
    );
    let x = |place: usize| LEFT + (WIDTH - LEFT - 20.0) * place as f64 / longest;
    let y = |cost: f64| (HEIGHT - BOTTOM) * (1.0 - cost / most) + 10.0;
    let points: Vec<String> = PLACES
        .iter()
        .zip(costs)
        .map(|(place, cost)| format!("{:.1},{:.1}", x(*place), y(*cost)))
        .collect();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        HEIGHT + 20.0
    );
    for cost in [0.0, most / 2.0, most] {
        text.push_str(&format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#cccccc\"/>\n<text x=\"{2}\" y=\"{1:.1}\" \
             text-anchor=\"end\" fill=\"#333333\">{cost:.2} ms</text>\n",
            WIDTH - 20.0,
            y(cost),
            LEFT - 6.0
        ));
    }
    for place in [0, 5_000, 10_000, 20_000] {
        text.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333333\">{place}</text>\n",
            x(place),
            HEIGHT - BOTTOM + 28.0
        ));
    }
    text.push_str(&format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"2\"/>\n<text x=\"{}\" y=\"{}\" \
         text-anchor=\"middle\" fill=\"#333333\">preparing a request, by messages in the conversation</text>\n</svg>\n",
        points.join(" "),
        WIDTH / 2.0,
        HEIGHT + 10.0
    ));
    text
}

/// Returns the milliseconds from two new messages to the bytes of the next request: repair, counting and
/// encoding.
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
