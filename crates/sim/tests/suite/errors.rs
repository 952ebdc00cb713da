//! Errors in the shape of each wire.

use serde_json::json;
use windlass_sim::{Brain, Fault, Protocol, Reply, Sim, SimConfig};

use crate::client::{WIRES, ask, get, path, post, request, start_with};

/// LOOP-16: an invalid request is refused in the wire's own shape, and logged.
#[tokio::test]
async fn invalid_requests_are_refused() {
    let sim = start_with(Reply::text("ok")).await;
    for wire in WIRES {
        for body in ["{", "[]", r#"{"model":"m"}"#] {
            let answer = post(&sim, path(wire), body, &[]).await;
            assert_eq!(answer.status, 400, "{wire} {body}");
            let error = answer.json();
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert!(error["error"]["message"].is_string());
            assert_eq!(error["type"] == "error", wire == Protocol::Anthropic);
            assert_eq!(error["error"].get("param").is_some(), wire != Protocol::Anthropic);
        }
    }
    assert_eq!(sim.violations().len(), 9);
}

/// PROV-5: a key, if set, is required in either header.
#[tokio::test]
async fn a_wrong_key_is_refused() {
    let config = SimConfig {
        brain: Brain::rules(),
        api_key: Some("k".to_owned()),
        ..SimConfig::default()
    };
    let sim = Sim::start(config).await.unwrap();
    for wire in WIRES {
        let body = request(wire, "hello", false).to_string();
        let refused = post(&sim, path(wire), &body, &[("x-api-key", "wrong")]).await;
        assert_eq!(refused.status, 401);
        let kind = if wire == Protocol::Anthropic {
            "authentication_error"
        } else {
            "invalid_request_error"
        };
        assert_eq!(refused.json()["error"]["type"], kind);
        for header in [("x-api-key", "k"), ("authorization", "Bearer k")] {
            assert_eq!(post(&sim, path(wire), &body, &[header]).await.status, 200);
        }
    }
}

/// PROV-5: statuses, headers, bodies and redirects follow the script.
#[tokio::test]
async fn scripted_errors_have_the_right_shape() {
    let limited = Fault::status(429).header("retry-after", "1").message("slow");
    let sim = start_with(Reply::default().fault(limited)).await;
    for wire in WIRES {
        let answer = ask(&sim, wire, true).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.header("retry-after").as_deref(), Some("1"));
        assert_eq!(answer.json()["error"]["message"], "slow");
        assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    }
    let sim = start_with(Reply::default().fault(Fault::status(529))).await;
    let overloaded = ask(&sim, Protocol::Anthropic, true).await;
    assert_eq!(overloaded.json()["error"]["type"], "overloaded_error");
    let sim = start_with(Reply::default().fault(Fault::status(502).body("<html>"))).await;
    assert_eq!(ask(&sim, Protocol::Chat, true).await.text(), "<html>");
    let sim = start_with(Reply::default().fault(Fault::redirect("http://example.com/"))).await;
    let moved = ask(&sim, Protocol::Chat, true).await;
    assert_eq!(
        (moved.status, moved.header("location").as_deref()),
        (307, Some("http://example.com/"))
    );
}

/// PROV-5: unknown addresses and bodies that are too large.
#[tokio::test]
async fn other_refusals_have_a_shape_too() {
    let sim = start_with(Reply::text("ok")).await;
    let missing = get(&sim, "/v2/nothing").await;
    assert_eq!(
        (missing.status, missing.json()["error"]["param"].clone()),
        (404, json!(null))
    );
    let mut huge = request(Protocol::Anthropic, "x", false);
    huge["system"] = json!("y".repeat(65 * 1024 * 1024));
    let refused = post(&sim, path(Protocol::Anthropic), &huge.to_string(), &[]).await;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.json()["error"]["type"], "request_too_large");
}
