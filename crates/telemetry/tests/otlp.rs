//! The encodings, decoded with the generated types, and the text for Prometheus.

use windlass_core::clock::Timestamp;
use windlass_telemetry::{
    AttributeValue, Encoding, Kind, Metrics, Resource, SpanContext, SpanEvent, TraceSpan, names, prometheus,
};
use windlass_testkit::decoded_spans;

fn span(name: &str, operation: &str) -> TraceSpan {
    TraceSpan {
        context: SpanContext {
            trace: [7; 16],
            span: [9; 8],
        },
        parent: Some([3; 8]),
        name: name.to_owned(),
        kind: Kind::Client,
        start_ms: 1_000,
        end_ms: 3_500,
        attributes: vec![
            (names::OPERATION, operation.into()),
            (names::REQUEST_MODEL, "größer \"m\"".into()),
            (
                names::FINISH_REASONS,
                AttributeValue::List(vec!["stop".to_owned(), String::new()]),
            ),
            (names::REQUEST_STREAM, false.into()),
            (names::INPUT_TOKENS, AttributeValue::Int(300)),
            (names::OUTPUT_TOKENS, AttributeValue::Int(0)),
            (names::COST, AttributeValue::Float(-0.25)),
            (names::CAUSE, AttributeValue::Int(-1)),
            (names::TOOL_NAME, "".into()),
        ],
        events: vec![SpanEvent {
            name: names::RETRY_EVENT,
            time_ms: 2_000,
            attributes: vec![(names::RETRY_ATTEMPT, AttributeValue::Int(1))],
        }],
        error: Some("it broke".to_owned()),
    }
}

/// OBS-1: both encodings mean the same to the generated types, down to empty texts, zeros and negative numbers.
#[test]
fn encodings_agree() {
    let resource = Resource::new(Some("ci"), Some("team=a,service.name=other"));
    let mut plain = span("chat m", names::CHAT);
    plain.error = None;
    plain.parent = None;
    plain.events.clear();
    let spans = [span("chat m", names::CHAT), plain];
    let binary = decoded_spans(&Encoding::Protobuf.traces(&resource, &spans)).expect("protobuf");
    let json = decoded_spans(&Encoding::Json.traces(&resource, &spans)).expect("JSON");
    assert_eq!(binary, json);
    let first = &binary[0];
    assert_eq!(
        (first.trace.as_str(), first.id.as_str()),
        ("07".repeat(16).as_str(), "09".repeat(8).as_str())
    );
    assert_eq!(
        (first.start, first.end, first.kind),
        (1_000_000_000, 3_500_000_000, 3)
    );
    assert_eq!(first.error.as_deref(), Some("it broke"));
    assert_eq!(first.attributes.len(), 9);
    assert_eq!(first.attributes[names::CAUSE], -1);
    assert_eq!(first.attributes[names::OUTPUT_TOKENS], 0);
    assert_eq!(first.attributes[names::REQUEST_STREAM], false);
    assert_eq!(first.events, [names::RETRY_EVENT]);
    assert_eq!((binary[1].parent.as_str(), &binary[1].error), ("", &None));
}

/// OBS-1: metrics for Prometheus: cumulative buckets, units in names, and escaped labels.
#[test]
fn prometheus_can_read_it() {
    let mut metrics = Metrics::new(Timestamp(0), false);
    metrics.turn(&[span("chat m", names::CHAT), span("chat m", names::CHAT)]);
    let text = prometheus(&metrics.snapshot(Timestamp(5_000)));
    let duration = "gen_ai_client_operation_duration_seconds";
    for line in [
        &format!("# TYPE {duration} histogram"),
        &format!(
            "{duration}_bucket{{gen_ai_operation_name=\"chat\",gen_ai_request_model=\"größer \\\"m\\\"\",le=\"2.56\"}} 2"
        ),
        &format!(
            "{duration}_bucket{{gen_ai_operation_name=\"chat\",gen_ai_request_model=\"größer \\\"m\\\"\",le=\"1.28\"}} 0"
        ),
        &format!(
            "{duration}_sum{{gen_ai_operation_name=\"chat\",gen_ai_request_model=\"größer \\\"m\\\"\"}} 5"
        ),
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(
        text.contains("gen_ai_token_type=\"input\",le=\"+Inf\"} 2"),
        "{text}"
    );
    assert!(!text.contains("inference"), "{text}");
}

/// OBS-1: an endless number of names of tools does not fill the memory.
#[test]
fn sets_of_attributes_are_limited() {
    let mut metrics = Metrics::new(Timestamp(0), true);
    for number in 0..2_000 {
        let mut call = span("execute_tool", names::EXECUTE_TOOL);
        call.attributes
            .push((names::AGENT_NAME, AttributeValue::Text(number.to_string())));
        metrics.turn(&[call]);
    }
    let snapshot = metrics.snapshot(Timestamp(1));
    let points = &snapshot.histograms[0].points;
    assert_eq!(points.len(), 501);
    assert_eq!(points.iter().map(|point| point.count).sum::<u64>(), 2_000);
}
