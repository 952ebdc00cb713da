//! Plain answers, complete and streamed.

use serde_json::{Value, json};
use windlass_sim::{OnEnd, Protocol, Reply, Script};

use crate::client::{WIRES, ask, get, path, post, request, start, start_with};

/// PROV-5: text over the three wires, complete and streamed.
#[tokio::test]
async fn text_arrives_on_every_wire() {
    let sim = start_with(Reply::text("hello wörld").delta_chars(3)).await;
    for wire in WIRES {
        let whole = ask(&sim, wire, false).await;
        assert_eq!((whole.status, whole.complete), (200, true));
        let pointer = match wire {
            Protocol::Anthropic => "/content/0/text",
            Protocol::Chat => "/choices/0/message/content",
            Protocol::Responses => "/output/0/content/0/text",
            Protocol::Gemini => "/candidates/0/content/parts/0/text",
        };
        assert_eq!(whole.json().pointer(pointer), Some(&json!("hello wörld")));

        let streamed = ask(&sim, wire, true).await;
        let content_type = streamed.header("content-type").unwrap();
        assert!(content_type.starts_with("text/event-stream"));
        assert!(streamed.complete);
        let pointer = match wire {
            Protocol::Anthropic => "/delta/text",
            Protocol::Chat => "/choices/0/delta/content",
            Protocol::Responses => "/delta",
            Protocol::Gemini => "/candidates/0/content/parts/0/text",
        };
        let text: String = streamed
            .events()
            .iter()
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .filter_map(|data| data.pointer(pointer)?.as_str().map(str::to_owned))
            .collect();
        assert_eq!(text, "hello wörld", "{wire}");
    }
    assert_eq!(sim.requests().len(), 6);
    assert!(sim.violations().is_empty());
    sim.stop().await;
}

/// PROV-2: a streamed call carries its arguments in fragments, even broken ones.
#[tokio::test]
async fn calls_are_streamed_in_fragments() {
    let broken = r#"{"command": "l"#;
    let sim = start_with(Reply::raw_call("bash", broken).deltas(3)).await;
    for (wire, pointer) in [
        (Protocol::Anthropic, "/delta/partial_json"),
        (Protocol::Chat, "/choices/0/delta/tool_calls/0/function/arguments"),
        (Protocol::Responses, "/delta"),
    ] {
        let events = ask(&sim, wire, true).await.events();
        let arguments: String = events
            .iter()
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .filter_map(|data| data.pointer(pointer)?.as_str().map(str::to_owned))
            .collect();
        assert_eq!(arguments, broken, "{wire}");
    }
}

/// PROV-5: the log lists the requests, also over HTTP.
#[tokio::test]
async fn requests_are_logged() {
    let sim = start_with(Reply::text("ok")).await;
    let body = request(Protocol::Chat, "hello", false).to_string();
    post(
        &sim,
        path(Protocol::Chat),
        &body,
        &[("authorization", "Bearer secret")],
    )
    .await;
    let log = sim.requests();
    assert_eq!(log[0].raw, body.as_bytes());
    assert_eq!(log[0].bytes, body.len());
    assert_eq!(log[0].seen.outline(), "model m\nuser hello\n");
    assert!(
        log[0]
            .headers
            .contains(&("authorization".to_owned(), "[redacted]".to_owned()))
    );
    let shown = get(&sim, "/__sim/requests").await;
    assert_eq!(shown.json()["requests"][0]["outline"], "model m\nuser hello\n");
    assert!(!shown.text().contains("secret"));
    assert_eq!(get(&sim, "/__sim/health").await.json(), json!({"ok": true}));
    assert_eq!(get(&sim, "/v1/models").await.json()["data"][0]["id"], "sim-1");
}

/// PROV-5: behavior when a script has no reply left.
#[tokio::test]
async fn a_script_ends_as_told() {
    let script = || Script::new().reply(Reply::text("once"));
    let sim = start(script()).await;
    assert_eq!(ask(&sim, Protocol::Chat, false).await.status, 200);
    let ended = ask(&sim, Protocol::Chat, false).await;
    assert_eq!(
        (ended.status, ended.header("x-should-retry").as_deref()),
        (500, Some("false"))
    );
    assert!(ended.text().contains("1 of 1 replies are used up"));

    let sim = start(script().on_end(OnEnd::Repeat)).await;
    for _ in 0..3 {
        assert!(ask(&sim, Protocol::Chat, false).await.text().contains("once"));
    }
    let sim = start(script().on_end(OnEnd::Rules)).await;
    ask(&sim, Protocol::Chat, false).await;
    assert!(
        ask(&sim, Protocol::Chat, false)
            .await
            .text()
            .contains("[simulated model]")
    );
}

/// PROV-5: a refused request does not use up a reply.
#[tokio::test]
async fn a_refused_request_uses_no_reply() {
    let sim = start(Script::new().reply(Reply::text("once"))).await;
    assert_eq!(post(&sim, path(Protocol::Chat), "{}", &[]).await.status, 400);
    assert_eq!(ask(&sim, Protocol::Chat, false).await.status, 200);
    assert_eq!(sim.violations().len(), 1);
}
