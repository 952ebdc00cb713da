//! The JSON encoding: ids in hexadecimal digits, 64-bit integers as texts, enums as numbers.

use serde_json::{Value as Json, json};

use super::Resource;
use crate::metrics::{Histogram, MetricsSnapshot};
use crate::names;
use crate::span::{AttributeValue, Kind, TraceSpan, to_hex};

pub(super) fn traces(resource: &Resource, spans: &[TraceSpan]) -> Json {
    json!({"resourceSpans": [{
        "resource": {"attributes": pairs(resource.attributes.iter().map(|(key, value)| (key.as_str(), value)))},
        "scopeSpans": [{
            "scope": scope(),
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
            "schemaUrl": names::SCHEMA_URL,
        }],
    }]})
}

pub(super) fn metrics(resource: &Resource, snapshot: &MetricsSnapshot) -> Json {
    let list: Vec<Json> = snapshot
        .histograms
        .iter()
        .map(|histogram| metric(histogram, snapshot))
        .collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": pairs(resource.attributes.iter().map(|(key, value)| (key.as_str(), value)))},
        "scopeMetrics": [{"scope": scope(), "metrics": list, "schemaUrl": names::SCHEMA_URL}],
    }]})
}

fn scope() -> Json {
    json!({"name": names::SCOPE, "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &TraceSpan) -> Json {
    let events = span.events.iter().map(|event| {
        json!({
            "timeUnixNano": nanoseconds(event.time_ms),
            "name": event.name,
            "attributes": own(&event.attributes),
        })
    });
    let mut out = json!({
        "traceId": to_hex(&span.context.trace),
        "spanId": to_hex(&span.context.span),
        "name": span.name,
        "kind": match span.kind {
            Kind::Internal => 1,
            Kind::Client => 3,
        },
        "startTimeUnixNano": nanoseconds(span.start_ms),
        "endTimeUnixNano": nanoseconds(span.end_ms),
        "attributes": own(&span.attributes),
        "events": events.collect::<Vec<_>>(),
        "status": match &span.error {
            Some(error) => json!({"code": 2, "message": error}),
            None => json!({}),
        },
        "flags": 1,
    });
    if let (Some(parent), Some(fields)) = (&span.parent, out.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), to_hex(parent).into());
    }
    out
}

fn metric(histogram: &Histogram, snapshot: &MetricsSnapshot) -> Json {
    let points = histogram.points.iter().map(|point| {
        json!({
            "startTimeUnixNano": nanoseconds(snapshot.start_ms),
            "timeUnixNano": nanoseconds(snapshot.time_ms),
            "count": point.count.to_string(),
            "sum": point.sum,
            "bucketCounts": point.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
            "explicitBounds": histogram.bounds,
            "attributes": own(&point.attributes),
        })
    });
    json!({
        "name": histogram.name,
        "description": histogram.help,
        "unit": histogram.unit,
        "histogram": {
            "aggregationTemporality": 2,
            "dataPoints": points.collect::<Vec<_>>(),
        },
    })
}

fn own(attributes: &[(&'static str, AttributeValue)]) -> Json {
    pairs(attributes.iter().map(|(key, value)| (*key, value)))
}

fn pairs<'a>(attributes: impl Iterator<Item = (&'a str, &'a AttributeValue)>) -> Json {
    attributes
        .map(|(key, value)| json!({"key": key, "value": any(value)}))
        .collect()
}

fn any(value: &AttributeValue) -> Json {
    match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::Bool(on) => json!({"boolValue": on}),
        AttributeValue::Int(number) => json!({"intValue": number.to_string()}),
        AttributeValue::Float(number) => json!({"doubleValue": number}),
        AttributeValue::List(list) => {
            let values: Vec<Json> = list.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

fn nanoseconds(milliseconds: u64) -> String {
    milliseconds.saturating_mul(1_000_000).to_string()
}
