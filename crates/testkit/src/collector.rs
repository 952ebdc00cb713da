//! A collector of OpenTelemetry data, which decodes what it gets with the generated protobuf types.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::must;

/// A span as the collector got it.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectedSpan {
    /// Id of its trace, in hexadecimal digits.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// Id of the span above; empty if there is none.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Its kind, as a number.
    pub kind: i32,
    /// Start, in nanoseconds.
    pub start: u64,
    /// End, in nanoseconds.
    pub end: u64,
    /// Attributes.
    pub attributes: BTreeMap<String, Value>,
    /// Names of its events.
    pub events: Vec<String>,
    /// Message of a failed status.
    pub error: Option<String>,
}

/// A point of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectedPoint {
    /// Name of the metric.
    pub metric: String,
    /// Attributes.
    pub attributes: BTreeMap<String, Value>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Counts of the buckets.
    pub buckets: Vec<u64>,
    /// Bounds of the buckets.
    pub bounds: Vec<f64>,
}

#[derive(Debug, Default)]
struct Received {
    spans: Vec<CollectedSpan>,
    points: Vec<CollectedPoint>,
    problems: Vec<String>,
}

/// A running collector.
#[derive(Debug)]
pub struct OtelCollector {
    url: String,
    received: Arc<Mutex<Received>>,
    runtime: Option<Runtime>,
    /// Accepts connections and never answers.
    _hanging: Option<TcpListener>,
}

impl OtelCollector {
    /// Starts a collector. Must not be called inside a runtime.
    pub fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = must(builder.worker_threads(1).enable_all().build(), "start a runtime");
        let received: Arc<Mutex<Received>> = Arc::default();
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&received));
        let listener = must(
            runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")),
            "listen",
        );
        let address = must(listener.local_addr(), "an address");
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}"),
            received,
            runtime: Some(runtime),
            _hanging: None,
        }
    }

    /// Starts a collector that accepts connections and never answers.
    pub fn hanging() -> Self {
        let listener = must(TcpListener::bind("127.0.0.1:0"), "listen");
        let address = must(listener.local_addr(), "an address");
        Self {
            url: format!("http://{address}"),
            received: Arc::default(),
            runtime: None,
            _hanging: Some(listener),
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns all spans so far. Fails the test if a request could not be decoded.
    #[track_caller]
    pub fn spans(&self) -> Vec<CollectedSpan> {
        let received = self.lock();
        assert!(received.problems.is_empty(), "{:?}", received.problems);
        received.spans.clone()
    }

    /// Returns all points of metrics so far. Fails the test if a request could not be decoded.
    #[track_caller]
    pub fn points(&self) -> Vec<CollectedPoint> {
        let received = self.lock();
        assert!(received.problems.is_empty(), "{:?}", received.problems);
        received.points.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OtelCollector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

type Shared = State<Arc<Mutex<Received>>>;

async fn traces(State(received): Shared, body: Bytes) -> StatusCode {
    let decoded = decoded_spans(&body);
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    match decoded {
        Ok(spans) => received.spans.extend(spans),
        Err(problem) => received.problems.push(problem),
    }
    StatusCode::OK
}

async fn metrics(State(received): Shared, body: Bytes) -> StatusCode {
    let decoded = ExportMetricsServiceRequest::decode(body);
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    match decoded {
        Ok(request) => received.points = points(request),
        Err(error) => received.problems.push(error.to_string()),
    }
    StatusCode::OK
}

/// Decodes a request with spans, as protobuf or as JSON.
///
/// # Errors
/// Fails with the reason if the bytes are not such a request.
pub fn decoded_spans(body: &[u8]) -> Result<Vec<CollectedSpan>, String> {
    let request = match body.first() {
        Some(b'{') => serde_json::from_slice(body).map_err(|error| error.to_string())?,
        _ => ExportTraceServiceRequest::decode(body).map_err(|error| error.to_string())?,
    };
    let scopes = request
        .resource_spans
        .into_iter()
        .flat_map(|spans| spans.scope_spans);
    Ok(scopes.flat_map(|scope| scope.spans).map(span).collect())
}

/// Formats spans as a tree, one per line: name, failure, and the attributes of these names.
pub fn span_tree(spans: &[CollectedSpan], attributes: &[&str]) -> String {
    let is_root = |span: &&CollectedSpan| !spans.iter().any(|other| other.id == span.parent);
    let mut out = String::new();
    for root in spans.iter().filter(is_root) {
        write_tree(&mut out, spans, root, attributes, 0);
    }
    out
}

fn write_tree(out: &mut String, spans: &[CollectedSpan], span: &CollectedSpan, names: &[&str], depth: usize) {
    let values = names
        .iter()
        .filter_map(|name| Some((name.rsplit('.').next()?, span.attributes.get(*name)?)));
    let values: String = values.map(|(name, value)| format!(" {name}={value}")).collect();
    let error = span.error.as_ref().map(|_| " FAILED").unwrap_or_default();
    let _ = writeln!(out, "{}{}{error}{values}", "  ".repeat(depth), span.name);
    for below in spans.iter().filter(|below| below.parent == span.id) {
        write_tree(out, spans, below, names, depth + 1);
    }
}

fn span(span: Span) -> CollectedSpan {
    CollectedSpan {
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name,
        kind: span.kind,
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: pairs(span.attributes),
        events: span.events.into_iter().map(|event| event.name).collect(),
        error: span
            .status
            .filter(|status| status.code == 2)
            .map(|status| status.message),
    }
}

fn points(request: ExportMetricsServiceRequest) -> Vec<CollectedPoint> {
    let scopes = request
        .resource_metrics
        .into_iter()
        .flat_map(|metrics| metrics.scope_metrics);
    let mut points = Vec::new();
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let Some(Data::Histogram(histogram)) = metric.data else {
            continue;
        };
        for point in histogram.data_points {
            points.push(CollectedPoint {
                metric: metric.name.clone(),
                attributes: pairs(point.attributes),
                count: point.count,
                sum: point.sum.unwrap_or_default(),
                buckets: point.bucket_counts,
                bounds: point.explicit_bounds,
            });
        }
    }
    points
}

fn pairs(pairs: Vec<KeyValue>) -> BTreeMap<String, Value> {
    pairs
        .into_iter()
        .map(|pair| (pair.key, pair.value.map_or(Value::Null, any)))
        .collect()
}

fn any(value: AnyValue) -> Value {
    match value.value {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(on)) => json!(on),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::ArrayValue(list)) => list.values.into_iter().map(any).collect(),
        _ => Value::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
