//! The protobuf encoding. Field numbers are those of `opentelemetry/proto/{trace,metrics,common,resource}/v1`.

use super::Resource;
use crate::metrics::{Histogram, MetricsSnapshot};
use crate::names;
use crate::span::{AttributeValue, Kind, TraceSpan};

/// Code of a failed status.
const STATUS_ERROR: u64 = 2;
/// Cumulative temporality.
const CUMULATIVE: u64 = 2;

pub(super) fn traces(resource: &Resource, spans: &[TraceSpan]) -> Vec<u8> {
    let mut request = Writer::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |out| write_resource(out, resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, write_scope);
            for span in spans {
                scope_spans.message(2, |out| write_span(out, span));
            }
            scope_spans.text(3, names::SCHEMA_URL);
        });
    });
    request.bytes
}

pub(super) fn metrics(resource: &Resource, snapshot: &MetricsSnapshot) -> Vec<u8> {
    let mut request = Writer::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |out| write_resource(out, resource));
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, write_scope);
            for histogram in &snapshot.histograms {
                scope_metrics.message(2, |out| write_metric(out, histogram, snapshot));
            }
            scope_metrics.text(3, names::SCHEMA_URL);
        });
    });
    request.bytes
}

fn write_resource(out: &mut Writer, resource: &Resource) {
    for (key, value) in &resource.attributes {
        out.message(1, |out| write_pair(out, key, value));
    }
}

fn write_scope(out: &mut Writer) {
    out.text(1, names::SCOPE);
    out.text(2, env!("CARGO_PKG_VERSION"));
}

fn write_span(out: &mut Writer, span: &TraceSpan) {
    out.data(1, &span.context.trace);
    out.data(2, &span.context.span);
    if let Some(parent) = &span.parent {
        out.data(4, parent);
    }
    out.text(5, &span.name);
    out.number(
        6,
        match span.kind {
            Kind::Internal => 1,
            Kind::Client => 3,
        },
    );
    out.fixed(7, nanoseconds(span.start_ms));
    out.fixed(8, nanoseconds(span.end_ms));
    for (key, value) in &span.attributes {
        out.message(9, |out| write_pair(out, key, value));
    }
    for event in &span.events {
        out.message(11, |out| {
            out.fixed(1, nanoseconds(event.time_ms));
            out.text(2, event.name);
            for (key, value) in &event.attributes {
                out.message(3, |out| write_pair(out, key, value));
            }
        });
    }
    if let Some(error) = &span.error {
        out.message(15, |out| {
            out.text(2, error);
            out.number(3, STATUS_ERROR);
        });
    }
    // The lower eight bits are the flags of the trace: sampled.
    out.fixed32(16, 1);
}

fn write_metric(out: &mut Writer, histogram: &Histogram, snapshot: &MetricsSnapshot) {
    out.text(1, histogram.name);
    out.text(2, histogram.help);
    out.text(3, histogram.unit);
    out.message(9, |out| {
        for point in &histogram.points {
            out.message(1, |out| {
                out.fixed(2, nanoseconds(snapshot.start_ms));
                out.fixed(3, nanoseconds(snapshot.time_ms));
                out.fixed(4, point.count);
                out.double(5, point.sum);
                out.packed(6, point.buckets.iter().map(|count| count.to_le_bytes()));
                out.packed(7, histogram.bounds.iter().map(|bound| bound.to_le_bytes()));
                for (key, value) in &point.attributes {
                    out.message(9, |out| write_pair(out, key, value));
                }
            });
        }
        out.number(2, CUMULATIVE);
    });
}

fn write_pair(out: &mut Writer, key: &str, value: &AttributeValue) {
    out.text(1, key);
    out.message(2, |out| write_value(out, value));
}

fn write_value(out: &mut Writer, value: &AttributeValue) {
    match value {
        AttributeValue::Text(text) => out.data(1, text.as_bytes()),
        AttributeValue::Bool(on) => out.number(2, u64::from(*on)),
        AttributeValue::Int(number) => out.number(3, number.cast_unsigned()),
        AttributeValue::Float(number) => out.double(4, *number),
        AttributeValue::List(list) => out.message(5, |out| {
            for text in list {
                out.message(1, |out| out.data(1, text.as_bytes()));
            }
        }),
    }
}

fn nanoseconds(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1_000_000)
}

/// Writes fields in the wire format.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    /// Writes an integer. Values in a `oneof` are written even if they are zero.
    fn number(&mut self, field: u64, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.tag(field, 1);
        self.bytes.extend(value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, 5);
        self.bytes.extend(value.to_le_bytes());
    }

    fn double(&mut self, field: u64, value: f64) {
        self.tag(field, 1);
        self.bytes.extend(value.to_le_bytes());
    }

    fn data(&mut self, field: u64, data: &[u8]) {
        self.tag(field, 2);
        self.varint(data.len() as u64);
        self.bytes.extend(data);
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.data(field, text.as_bytes());
        }
    }

    fn packed(&mut self, field: u64, values: impl Iterator<Item = [u8; 8]>) {
        let data: Vec<u8> = values.flatten().collect();
        self.data(field, &data);
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.data(field, &inner.bytes);
    }
}
