//! Complete providers against a server on loopback.

use std::time::Duration;

use futures_util::StreamExt;
use windlass_core::provider::{Provider, ProviderError, ProviderErrorKind as Kind, ProviderEvent};
use windlass_providers::sse::StreamLimits;
use windlass_providers::wire::ReasoningEcho;
use windlass_providers::{RetryPolicy, TransportLimits, Wire};

use super::golden::stable_ids;
use super::support::{
    Script, Server, config, data, golden, hello, outline_completion, outline_events, provider, short_limits,
};

async fn failure(script: Script, limits: TransportLimits) -> ProviderError {
    let server = Server::start(vec![script]).await;
    let mut config = config(Wire::Anthropic, &server.url);
    config.limits = limits;
    provider(config).send(hello()).await.unwrap_err()
}

/// PROV-1, PROV-2, PROV-3: all wires stream and send through the one transport, to the right path.
#[tokio::test]
async fn every_wire_answers() {
    for (wire, stream, path) in [
        (Wire::Anthropic, "anthropic_full.sse", "/v1/messages"),
        (Wire::Chat, "chat_parallel.sse", "/v1/chat/completions"),
        (Wire::Responses, "responses_full.sse", "/v1/responses"),
        (
            Wire::Gemini,
            "gemini_full.sse",
            "/v1beta/models/sim-1:streamGenerateContent?alt=sse",
        ),
    ] {
        let server = Server::start(vec![Script::stream(&data(stream))]).await;
        let provider = provider(config(wire, &server.url));
        let events: Vec<ProviderEvent> = provider.stream(hello()).collect().await;
        assert!(
            matches!(events.last(), Some(ProviderEvent::Complete(_))),
            "{}",
            outline_events(&events)
        );
        let ends = events
            .iter()
            .filter(|event| matches!(event, ProviderEvent::Complete(_) | ProviderEvent::Error(_)));
        assert_eq!(ends.count(), 1);
        assert!(provider.send(hello()).await.is_ok());
        let seen = server.seen();
        assert!(
            seen[0].starts_with(&format!("POST {path} HTTP/1.1\r\n")),
            "{}",
            seen[0]
        );
        assert!(seen[0].contains("user-agent: windlass/"));
        assert!(seen[0].ends_with(&*String::from_utf8_lossy(&provider.request_body(&hello()))));
    }
}

/// PROV-7: the models of a server are listed, from the path of every wire and with the key.
#[tokio::test]
async fn models_are_listed() {
    let list =
        r#"{"object":"list","data":[{"id":"b","object":"model"},{"id":""},{"id":"a:1b"},{"id":"\u001b"}]}"#;
    for wire in [Wire::Anthropic, Wire::Chat, Wire::Responses] {
        let server = Server::start(vec![Script::status(200, "", list)]).await;
        let models = provider(config(wire, &server.url)).models().await.unwrap();
        assert_eq!(models, ["b", "a:1b"]);
        let seen = &server.seen()[0];
        assert!(seen.starts_with("GET /v1/models HTTP/1.1\r\n"), "{seen}");
        assert!(seen.contains("hunter2-hunter2"), "{seen}");
    }
    let refused = Server::start(vec![Script::status(401, "", "no hunter2-hunter2")]).await;
    let error = provider(config(Wire::Chat, &refused.url))
        .models()
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::Auth);
    assert!(!error.message.contains("hunter2"), "{error}");
    let long = Server::start(vec![Script::status(200, "", &" ".repeat(2 * 1024 * 1024))]).await;
    assert!(provider(config(Wire::Chat, &long.url)).models().await.is_err());
    let silent = Server::start(vec![Script::new("").stalling()]).await;
    let mut config = config(Wire::Chat, &silent.url);
    config.limits = short_limits();
    assert_eq!(provider(config).models().await.unwrap_err().kind, Kind::Network);
}

/// PROV-11: the key travels in the header the vendor wants.
#[tokio::test]
async fn keys_travel_in_the_right_header() {
    use windlass_providers::wire::AuthStyle;
    let cases = [
        (Wire::Anthropic, AuthStyle::Wire, "x-api-key: hunter2-hunter2"),
        (
            Wire::Anthropic,
            AuthStyle::Bearer,
            "authorization: Bearer hunter2-hunter2",
        ),
        (
            Wire::Chat,
            AuthStyle::Wire,
            "authorization: Bearer hunter2-hunter2",
        ),
        (Wire::Responses, AuthStyle::ApiKey, "x-api-key: hunter2-hunter2"),
    ];
    for (wire, auth, expected) in cases {
        let server = Server::start(vec![Script::status(400, "", "{}")]).await;
        let mut config = config(wire, &server.url);
        config.quirks.auth = auth;
        config.headers = vec![("X-Team".to_owned(), "blue".to_owned())];
        let _ = provider(config).send(hello()).await;
        let seen = server.seen().remove(0);
        assert!(seen.contains(expected) && seen.contains("x-team: blue"), "{seen}");
        assert_eq!(
            seen.contains("anthropic-version: 2023-06-01"),
            wire == Wire::Anthropic
        );
    }
}

/// PROV-6: a status becomes a kind, with the provider's message, the delay it asks for and a hint.
#[tokio::test]
async fn statuses_become_kinds() {
    let body = r#"{"error":{"type":"x","message":"its own words"}}"#;
    let cases = [
        (401, "", Kind::Auth, false),
        (403, "", Kind::Auth, false),
        (429, "Retry-After: 7\r\n", Kind::RateLimit, true),
        (500, "", Kind::Provider, true),
        (500, "x-should-retry: false\r\n", Kind::Provider, false),
        (529, "", Kind::Overloaded, true),
    ];
    for (status, headers, kind, retryable) in cases {
        let error = failure(Script::status(status, headers, body), TransportLimits::default()).await;
        assert_eq!(
            (error.kind, error.retryable, error.status),
            (kind, retryable, Some(status))
        );
        assert_eq!(error.message, format!("its own words (HTTP {status})"));
        assert_eq!(
            error.retry_after,
            headers.contains('7').then(|| Duration::from_secs(7))
        );
        assert_eq!(
            error.hint.as_deref(),
            (kind == Kind::Auth).then_some("set TEST_API_KEY")
        );
    }
    let body = r#"{"error":{"type":"not_found_error","message":"model: sim-1"}}"#;
    let error = failure(Script::status(404, "", body), TransportLimits::default()).await;
    assert!(error.hint.unwrap().starts_with("check the model name `sim-1`"));
}

/// PROV-12: no redirect is followed; the error names its target.
#[tokio::test]
async fn redirects_are_refused() {
    let elsewhere = Server::start(vec![Script::stream(&data("anthropic_full.sse"))]).await;
    for target in [elsewhere.url.as_str(), "/v2/messages"] {
        let headers = format!("Location: {target}\r\n");
        let error = failure(Script::status(307, &headers, ""), TransportLimits::default()).await;
        assert_eq!((error.kind, error.retryable), (Kind::InvalidRequest, false));
        assert!(error.message.contains(target), "{error}");
        assert!(error.hint.unwrap().contains("base_url"));
    }
    assert!(elsewhere.seen().is_empty(), "the key went elsewhere");
}

/// PROV-6: silence counts as a dropped connection, before the response and within it.
#[tokio::test]
async fn silence_is_a_dropped_connection() {
    let half = Script::stream(b"event: message_start\ndata: {\"type\":\"message_start\"}\n\n");
    for script in [
        Script {
            chunks: Vec::new(),
            stall: true,
        },
        half.stalling(),
    ] {
        let error = failure(script, short_limits()).await;
        assert_eq!((error.kind, error.retryable), (Kind::Network, true));
        assert!(error.message.contains("silent for 0.08 s"), "{error}");
    }
}

/// PROV-6: a stream cut in the middle is a network failure, however it was cut.
#[tokio::test]
async fn cut_streams_are_network_failures() {
    let whole = data("anthropic_full.sse");
    let half = &whole[..whole.len() / 2];
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        half.len()
    );
    let broken = Script {
        chunks: vec![chunked.into_bytes(), half.to_vec()],
        stall: false,
    };
    for script in [Script::stream(half), broken] {
        let error = failure(script, TransportLimits::default()).await;
        assert_eq!((error.kind, error.retryable), (Kind::Network, true), "{error:?}");
    }
}

/// PROV-12: a response that is too long, not text or not a stream ends in a clear error.
#[tokio::test]
async fn bad_answers_end_clearly() {
    let limits = TransportLimits {
        stream: StreamLimits {
            event: 1000,
            reply: 5000,
        },
        ..TransportLimits::default()
    };
    let huge_event = format!("data: {}", "x".repeat(2000));
    let many_events = "data: {\"type\":\"ping\"}\n\n".repeat(1000);
    let huge_json = format!("{{\"a\":\"{}\"}}", "x".repeat(10_000));
    let cases = [
        (
            Script::stream(huge_event.as_bytes()),
            "event of more than 1000 bytes",
        ),
        (
            Script::stream(many_events.as_bytes()),
            "reply of more than 5000 bytes",
        ),
        (
            Script::with_type("application/json", huge_json.as_bytes()),
            "reply of more than 5000 bytes",
        ),
        (
            Script::with_type("text/html; charset=utf-8", b"<html>"),
            "`text/html`",
        ),
        (
            Script::with_type("application/json", b"{\"ok\":true}"),
            "not a reply",
        ),
    ];
    let garbled = failure(Script::stream(b"data: \xff\xfe\n\n"), limits).await;
    assert!(
        garbled.retryable && garbled.message.contains("not UTF-8"),
        "{garbled:?}"
    );
    for (script, expected) in cases {
        let error = failure(script, limits).await;
        assert_eq!(
            (error.kind, error.retryable),
            (Kind::Provider, false),
            "{error:?}"
        );
        assert!(error.message.contains(expected), "{error}");
    }
    let error = failure(Script::with_type("text/html", b""), limits).await;
    assert!(error.hint.unwrap().contains("base_url"));
}

/// PROV-4: a server that ignores `stream` may reply in one piece.
#[tokio::test]
async fn whole_answers_are_taken() {
    let server = Server::start(vec![Script::with_type(
        "application/json",
        &data("chat_whole.json"),
    )])
    .await;
    let completion = provider(config(Wire::Chat, &server.url))
        .send(hello())
        .await
        .unwrap();
    assert_eq!(completion.parts.len(), 2);
}

/// PROV-4: a chat server that sends a finish reason and then hangs has replied: the reply is the one of a stream that
/// ends, and the client hangs up. Without a finish reason the same silence is a failure.
#[tokio::test]
async fn a_missing_end_does_no_harm() {
    let chat = |server: &Server| {
        let mut config = config(Wire::Chat, &server.url);
        config.limits = short_limits();
        config.quirks.echo = ReasoningEcho::Content;
        provider(config)
    };
    let server = Server::start(vec![Script::stream(&data("chat_odd.sse")).stalling()]).await;
    let mut events: Vec<ProviderEvent> = chat(&server).stream(hello()).collect().await;
    let Some(ProviderEvent::Complete(completion)) = events.pop() else {
        panic!("{}", outline_events(&events))
    };
    golden(
        "chat_odd.txt",
        &stable_ids(&(outline_events(&events) + &outline_completion(&completion))),
    );
    while server.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.seen()[1], "hung up");

    let server = Server::start(vec![Script::stream(&data("chat_early.sse")).stalling()]).await;
    let error = chat(&server).send(hello()).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (Kind::Network, true), "{error:?}");
}

/// PROV-6: a server that responded before and refuses connections now may come back, so the request is
/// retried.
#[tokio::test]
async fn a_server_that_went_away_is_retried() {
    let server = Server::start(vec![Script::stream(&data("chat_odd.sse"))]).await;
    let provider = provider(config(Wire::Chat, &server.url));
    provider.send(hello()).await.unwrap();
    server.stop().await;
    let error = provider.send(hello()).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (Kind::Network, true));
}

/// PROV-6: a refused connection is a network failure with a hint, and is not retried.
#[tokio::test]
async fn refused_connections_name_the_address() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let error = provider(config(Wire::Chat, &format!("http://{address}")))
        .send(hello())
        .await
        .unwrap_err();
    assert_eq!((error.kind, error.retryable), (Kind::Network, false));
    assert!(error.message.contains(&address.to_string()), "{error}");
    assert!(error.hint.unwrap().contains("base_url"));
}

/// PROV-6: a stream that breaks after producing output is sent again, and the reply comes once.
#[tokio::test]
async fn broken_streams_are_sent_again() {
    let scripts = vec![
        Script::stream(&data("anthropic_error.sse")),
        Script::stream(&data("anthropic_crlf.sse")),
    ];
    let server = Server::start(scripts).await;
    let mut config = config(Wire::Anthropic, &server.url);
    config.retry = RetryPolicy {
        base_delay: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let events: Vec<ProviderEvent> = provider(config).stream(hello()).collect().await;
    let retries: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            ProviderEvent::Retry(notice) => Some(notice.discard),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [true]);
    let Some(ProviderEvent::Complete(completion)) = events.last() else {
        panic!("{}", outline_events(&events))
    };
    assert_eq!(completion.parts.len(), 1);
    assert_eq!(server.seen().len(), 2);
}

/// PROV-6: cancellation ends a silent request at once and drops the connection.
#[tokio::test]
async fn cancellation_drops_the_connection() {
    let server = Server::start(vec![Script {
        chunks: Vec::new(),
        stall: true,
    }])
    .await;
    let request = hello();
    let cancel = request.cancel.clone();
    let mut events = provider(config(Wire::Anthropic, &server.url)).stream(request);
    let (event, ()) = tokio::join!(events.next(), async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let Some(ProviderEvent::Error(error)) = event else {
        panic!("{event:?}")
    };
    assert_eq!(
        (error.kind, error.message.as_str(), error.retryable),
        (Kind::Network, "canceled", false)
    );
    assert!(events.next().await.is_none());
    while server.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.seen()[1], "hung up");
}
