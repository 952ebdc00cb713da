use ProviderErrorKind as Kind;

use super::*;

fn answer(status: u16) -> Answer {
    Answer {
        status,
        retry_after: None,
        final_word: false,
    }
}

/// PROV-6: every failure has one kind, and the kind decides whether it is retried.
#[test]
fn answers_are_normalized() {
    let cases: &[(u16, &str, Kind, bool)] = &[
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            Kind::RateLimit,
            true,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
            Kind::Quota,
            false,
        ),
        (
            429,
            r#"{"error":{"type":"rate_limit_error","message":"limit","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            Kind::Quota,
            false,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Kind::Quota,
            false,
        ),
        (
            402,
            r#"{"error":{"message":"Payment required","code":402}}"#,
            Kind::Quota,
            false,
        ),
        (
            401,
            r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Kind::Auth,
            false,
        ),
        (403, r#"{"error":"forbidden"}"#, Kind::Auth, false),
        (
            404,
            r#"{"error":{"message":"model not found","code":"model_not_found"}}"#,
            Kind::InvalidRequest,
            false,
        ),
        (
            400,
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            Kind::InvalidRequest,
            false,
        ),
        (422, "nonsense", Kind::InvalidRequest, false),
        (408, "", Kind::Network, true),
        (409, "{}", Kind::Provider, true),
        (
            500,
            r#"{"error":{"type":"api_error","message":"Internal"}}"#,
            Kind::Provider,
            true,
        ),
        (502, "<html>bad gateway</html>", Kind::Provider, true),
        (
            503,
            r#"{"error":{"message":"The server is overloaded"}}"#,
            Kind::Overloaded,
            true,
        ),
        (
            529,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Kind::Overloaded,
            true,
        ),
        (
            400,
            r#"{"error":{"message":"flagged","code":"content_policy_violation"}}"#,
            Kind::ContentPolicy,
            false,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#,
            Kind::InvalidRequest,
            false,
        ),
    ];
    for (status, body, kind, retryable) in cases {
        let error = from_answer(answer(*status), body);
        assert_eq!(
            (error.kind, error.retryable),
            (*kind, *retryable),
            "{status} {body}"
        );
        assert_eq!(error.status, Some(*status));
        assert!(!error.message.is_empty(), "{status} {body}");
    }
}

/// PROV-10: a context overflow is recognised on every server, whatever name it has there.
#[test]
fn overflow_is_recognised() {
    let cases = [
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 128000 tokens."}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model."}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (9000 tokens) exceeds the available context size (8192 tokens)"}}"#,
        ),
        (413, r#"{"error":{"message":"Prompt is too long"}}"#),
        (
            400,
            r#"{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","code":400}"#,
        ),
    ];
    for (status, body) in cases {
        let error = from_answer(answer(status), body);
        assert_eq!(
            (error.kind, error.retryable),
            (Kind::ContextOverflow, false),
            "{body}"
        );
    }
    assert_eq!(
        from_answer(answer(413), r#"{"error":{"message":"request too large"}}"#).kind,
        Kind::InvalidRequest
    );
}

/// PROV-6: errors inside a stream are classified without a status.
#[test]
fn events_are_normalized() {
    let cases = [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Kind::Overloaded,
            true,
        ),
        (
            r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
            Kind::Provider,
            true,
        ),
        (
            r#"{"error":{"code":502,"message":"Upstream died"}}"#,
            Kind::Provider,
            true,
        ),
        (
            r#"{"error":{"code":429,"message":"Slow down"}}"#,
            Kind::RateLimit,
            true,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Rate limit"}}}"#,
            Kind::RateLimit,
            true,
        ),
        (
            r#"{"type":"error","code":"invalid_api_key","message":"bad key"}"#,
            Kind::Auth,
            false,
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
            Kind::InvalidRequest,
            false,
        ),
    ];
    for (data, kind, retryable) in cases {
        let error = from_event(data);
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{data}");
        assert!(!error.message.is_empty());
    }
}

/// PROV-6: `x-should-retry: false` is not retried, whatever the status.
#[test]
fn the_final_word_is_obeyed() {
    let error = from_answer(
        Answer {
            final_word: true,
            ..answer(529)
        },
        "{}",
    );
    assert_eq!((error.kind, error.retryable), (Kind::Overloaded, false));
}
