use windlass_api::Category;

use super::*;

fn permission(once_only: bool) -> Question {
    let waiting = Waiting::PermissionRequest {
        call_id: CallId::from("c"),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: vec!["rm \u{1b}[2Kx".to_owned()],
        reasons: vec!["it writes".to_owned()],
        preview: Some("rm x".to_owned()),
        once_only,
        agent: None,
    };
    Question::read(1, &waiting).unwrap()
}

/// MCP-8: only an accepted form with an offered yes approves; everything else is a no.
#[test]
fn nothing_but_a_clear_yes_approves() {
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let no = UserReply::Permission(Answer::No);
    let cases = [
        (
            accept(json!({ "decision": "once" })),
            UserReply::Permission(Answer::Once),
        ),
        (
            accept(json!({ "decision": "session" })),
            UserReply::Permission(Answer::Session),
        ),
        (
            accept(json!({ "decision": "always" })),
            UserReply::Permission(Answer::Always),
        ),
        (
            accept(json!({ "decision": "no", "instead": "ask me" })),
            UserReply::Permission(Answer::NoBecause("ask me".to_owned())),
        ),
        (accept(json!({ "decision": "no" })), no.clone()),
        (accept(json!({ "decision": "yes" })), no.clone()),
        (accept(json!({})), no.clone()),
        (accept(Value::Null), no.clone()),
        (
            json!({ "action": "decline", "content": { "decision": "once" } }),
            no.clone(),
        ),
        (json!({ "action": "cancel" }), no.clone()),
        (json!({}), no.clone()),
        (json!([1]), no.clone()),
    ];
    for (answer, expected) in cases {
        assert_eq!(permission(false).reply(&answer), expected, "{answer}");
    }
    for lasting in ["session", "always"] {
        assert_eq!(
            permission(true).reply(&accept(json!({ "decision": lasting }))),
            no,
            "{lasting}"
        );
    }
}

/// MCP-8: a form shows the call without escape sequences, and has no default.
#[test]
fn the_form_shows_the_call() {
    let params = permission(true).params();
    let message = params["message"].as_str().unwrap();
    assert!(
        message.contains("rm \u{241b}[2Kx") && message.contains("It needs approval: it writes."),
        "{message}"
    );
    let decision = &params["requestedSchema"]["properties"]["decision"];
    assert_eq!(decision["enum"], json!(["once", "no"]));
    assert!(decision.get("default").is_none());
}
