//! Metrics, counted from spans: histograms since the start of the process.

mod prometheus;

use windlass_core::clock::Timestamp;

pub use self::prometheus::{CONTENT_TYPE as PROMETHEUS_TYPE, text as prometheus};
use crate::names;
use crate::span::{AttributeValue, TraceSpan};

/// Upper bounds of token counts: powers of four.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Upper bounds of the durations of requests and calls, in seconds.
const SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Upper bounds of the durations of turns, in seconds.
const TURN_SECONDS: &[f64] = &[
    0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
];
/// Upper bounds of the numbers of requests and calls in a turn.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// Maximum number of sets of attributes of one metric. Names of tools and models come from outside.
const MOST_POINTS: usize = 500;

/// Description of a metric.
struct Metric {
    name: &'static str,
    help: &'static str,
    unit: &'static str,
    bounds: &'static [f64],
    /// True if it has a newer name, and is counted only on request.
    is_new: bool,
}

#[rustfmt::skip]
const METRICS: &[Metric] = &[
    Metric { name: names::M_TOKENS,          help: "Tokens of model requests",                      unit: "{token}",      bounds: TOKENS,       is_new: false },
    Metric { name: names::M_DURATION,        help: "Duration of model requests",                    unit: "s",            bounds: SECONDS,      is_new: false },
    Metric { name: names::M_FIRST_CHUNK,     help: "Time to the first piece of a reply",            unit: "s",            bounds: SECONDS,      is_new: false },
    Metric { name: names::M_CHUNK,           help: "Time from one piece of a reply to the next, its average in the reply", unit: "s", bounds: SECONDS, is_new: false },
    Metric { name: names::M_AGENT_DURATION,  help: "Duration of turns",                             unit: "s",            bounds: TURN_SECONDS, is_new: false },
    Metric { name: names::M_AGENT_CALLS,     help: "Model requests of a turn",                      unit: "{call}",       bounds: COUNTS,       is_new: false },
    Metric { name: names::M_AGENT_TOOLS,     help: "Tool calls of a turn",                          unit: "{call}",       bounds: COUNTS,       is_new: false },
    Metric { name: names::M_TOOL_DURATION,   help: "Duration of tool calls",                        unit: "s",            bounds: SECONDS,      is_new: false },
    Metric { name: names::M_NEW_DURATION,    help: "Duration of model requests",                    unit: "s",            bounds: SECONDS,      is_new: true },
    Metric { name: names::M_NEW_FIRST_CHUNK, help: "Time to the first piece of a reply",            unit: "s",            bounds: SECONDS,      is_new: true },
    Metric { name: names::M_NEW_CHUNK,       help: "Time from one piece of a reply to the next, its average in the reply", unit: "s", bounds: SECONDS, is_new: true },
    Metric { name: names::M_NEW_INPUT,       help: "Input tokens of a request, cached ones included", unit: "{token}",    bounds: TOKENS,       is_new: true },
    Metric { name: names::M_NEW_OUTPUT,      help: "Output tokens of a request",                    unit: "{token}",      bounds: TOKENS,       is_new: true },
];

/// Counted metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    start_ms: u64,
    has_new_names: bool,
    histograms: Vec<Histogram>,
}

/// A metric: one distribution per set of attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Name of the metric.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Upper bounds of the buckets; a last one has none.
    pub bounds: &'static [f64],
    /// The distributions.
    pub points: Vec<Point>,
}

/// The distribution of values with the same attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The attributes.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Number of values in each bucket.
    pub buckets: Vec<u64>,
}

/// Metrics at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsSnapshot {
    /// Start of counting, in milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// Time of the snapshot.
    pub time_ms: u64,
    /// Metrics with at least one value.
    pub histograms: Vec<Histogram>,
}

impl Metrics {
    /// Starts counting. `has_new_names` also counts under the newer names of the conventions.
    pub fn new(now: Timestamp, has_new_names: bool) -> Self {
        Self {
            start_ms: now.0,
            has_new_names,
            histograms: Vec::new(),
        }
    }

    /// Counts the spans of a turn.
    pub fn turn(&mut self, spans: &[TraceSpan]) {
        let count = |operation: &str| {
            let of = |span: &&TraceSpan| span.text(names::OPERATION) == Some(operation);
            spans.iter().filter(of).count() as u64
        };
        for span in spans {
            let seconds = seconds(span.end_ms.saturating_sub(span.start_ms));
            match span.text(names::OPERATION) {
                Some(names::CHAT) => self.chat(span, seconds),
                Some(names::EXECUTE_TOOL) => {
                    let attributes = pick(span, &[names::TOOL_NAME, names::AGENT_NAME, names::ERROR_TYPE]);
                    self.add(names::M_TOOL_DURATION, attributes, seconds);
                }
                Some(names::INVOKE_AGENT) => {
                    let attributes = pick(span, &[names::AGENT_NAME, names::ERROR_TYPE]);
                    self.add(names::M_AGENT_DURATION, attributes, seconds);
                    let agent = pick(span, &[names::AGENT_NAME]);
                    self.add(names::M_AGENT_CALLS, agent.clone(), number(count(names::CHAT)));
                    self.add(names::M_AGENT_TOOLS, agent, number(count(names::EXECUTE_TOOL)));
                }
                _ => {}
            }
        }
    }

    /// Returns the metrics now.
    pub fn snapshot(&self, now: Timestamp) -> MetricsSnapshot {
        MetricsSnapshot {
            start_ms: self.start_ms,
            time_ms: now.0,
            histograms: self.histograms.clone(),
        }
    }

    fn chat(&mut self, span: &TraceSpan, seconds: f64) {
        const WHO: &[&str] = &[
            names::OPERATION,
            names::PROVIDER,
            names::REQUEST_MODEL,
            names::RESPONSE_MODEL,
            names::ERROR_TYPE,
        ];
        let attributes = pick(span, WHO);
        self.add(names::M_DURATION, attributes.clone(), seconds);
        self.add(names::M_NEW_DURATION, attributes.clone(), seconds);
        if let Some(AttributeValue::Float(first)) = span.attribute(names::FIRST_CHUNK) {
            self.add(names::M_FIRST_CHUNK, attributes.clone(), *first);
            self.add(names::M_NEW_FIRST_CHUNK, attributes.clone(), *first);
            // The record has the number of pieces and the times of the first and the last one.
            let gaps = span
                .int(names::CHUNKS)
                .map_or(0, i64::unsigned_abs)
                .saturating_sub(1);
            if gaps > 0 {
                let gap = (seconds - first).max(0.0) / number(gaps);
                self.add_times(names::M_CHUNK, attributes.clone(), (gap, gaps));
                self.add_times(names::M_NEW_CHUNK, attributes.clone(), (gap, gaps));
            }
        }
        let kinds = [
            (names::INPUT_TOKENS, "input", names::M_NEW_INPUT),
            (names::OUTPUT_TOKENS, "output", names::M_NEW_OUTPUT),
        ];
        for (name, kind, new) in kinds {
            let Some(tokens) = span.int(name) else { continue };
            let tokens = number(tokens.unsigned_abs());
            let mut with_kind = attributes.clone();
            with_kind.push((names::TOKEN_TYPE, kind.into()));
            self.add(names::M_TOKENS, with_kind, tokens);
            self.add(new, attributes.clone(), tokens);
        }
    }

    fn add(&mut self, name: &'static str, attributes: Vec<(&'static str, AttributeValue)>, value: f64) {
        self.add_times(name, attributes, (value, 1));
    }

    /// Adds a value a number of times.
    fn add_times(
        &mut self,
        name: &'static str,
        attributes: Vec<(&'static str, AttributeValue)>,
        (value, times): (f64, u64),
    ) {
        let known = METRICS.iter().find(|metric| metric.name == name);
        let Some(metric) = known.filter(|metric| self.has_new_names || !metric.is_new) else {
            return;
        };
        let place = self.histograms.iter().position(|known| known.name == name);
        let place = place.unwrap_or_else(|| {
            self.histograms.push(Histogram {
                name: metric.name,
                help: metric.help,
                unit: metric.unit,
                bounds: metric.bounds,
                points: Vec::new(),
            });
            self.histograms.len() - 1
        });
        if let Some(histogram) = self.histograms.get_mut(place) {
            histogram.add(attributes, value, times);
        }
    }
}

impl Histogram {
    fn add(&mut self, attributes: Vec<(&'static str, AttributeValue)>, value: f64, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let is_known = self.points.iter().any(|point| point.attributes == attributes);
        let attributes = match is_known || self.points.len() < MOST_POINTS {
            true => attributes,
            false => vec![(names::OVERFLOW, true.into())],
        };
        let place = self
            .points
            .iter()
            .position(|point| point.attributes == attributes);
        let place = place.unwrap_or_else(|| {
            self.points.push(Point {
                attributes,
                count: 0,
                sum: 0.0,
                buckets: vec![0; self.bounds.len() + 1],
            });
            self.points.len() - 1
        });
        let Some(point) = self.points.get_mut(place) else {
            return;
        };
        point.count += times;
        point.sum += value * number(times);
        if let Some(count) = point.buckets.get_mut(bucket) {
            *count += times;
        }
    }
}

/// Returns the attributes of these names that a span has.
fn pick(span: &TraceSpan, names: &[&'static str]) -> Vec<(&'static str, AttributeValue)> {
    let found = names
        .iter()
        .filter_map(|name| Some((*name, span.attribute(name)?.clone())));
    found.collect()
}

fn seconds(milliseconds: u64) -> f64 {
    number(milliseconds) / 1000.0
}

#[allow(clippy::cast_precision_loss)]
fn number(count: u64) -> f64 {
    count as f64
}
