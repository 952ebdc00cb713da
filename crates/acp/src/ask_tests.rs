use std::path::Path;

use windlass_api::{CallId, Category};

use super::*;

fn request(subjects: &[&str], once_only: bool) -> Question {
    let card = Card::new("c", "bash", json!({ "command": "x" }), Path::new("/p"));
    let waiting = Waiting::PermissionRequest {
        call_id: CallId::from("c"),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
        reasons: vec!["it reaches the network".to_owned()],
        preview: Some("$ x".to_owned()),
        once_only,
        agent: None,
    };
    question(ClientAbilities::default(), "s", &waiting, Some(&card)).unwrap()
}

fn selected(option: &str) -> Result<Value, RpcError> {
    Ok(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

/// ACP-2, SAFE-6: only an answer that was offered is a yes; everything else is a no, and a cancellation stops the turn.
#[test]
fn only_offered_answers_are_a_yes() {
    let yes = |answer| Asked::Reply(UserReply::Permission(answer));
    let (lasting, once) = (request(&["x"], false), request(&["x"], true));
    assert_eq!(lasting.read(selected("once")), yes(Answer::Once));
    assert_eq!(lasting.read(selected("session")), yes(Answer::Session));
    assert_eq!(lasting.read(selected("always")), yes(Answer::Always));
    assert_eq!(lasting.read(selected("reject")), yes(Answer::No));
    assert_eq!(lasting.read(selected("yes")), yes(Answer::No));
    assert_eq!(once.read(selected("always")), yes(Answer::No));
    assert_eq!(once.read(selected("once")), yes(Answer::Once));
    let canceled = Ok(json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(lasting.read(canceled), Asked::Cancel);
    for odd in [json!(null), json!({}), json!({ "outcome": "selected" })] {
        assert!(matches!(lasting.read(Ok(odd)), Asked::Nobody(_)));
    }
    assert!(matches!(
        lasting.read(Err(RpcError::unknown_method("x"))),
        Asked::Nobody(_)
    ));
}

/// SAFE-6: a lasting yes names what it covers.
#[test]
fn a_lasting_yes_names_its_scope() {
    let names = |question: &Question| -> Vec<String> {
        let options = question.params["options"].as_array().unwrap().iter();
        options
            .map(|option| option["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&request(&["git push", "ls"], false))[1..3],
        [
            "Allow for this session: bash(git push · ls)",
            "Always allow in this folder: bash(git push · ls)"
        ]
    );
    let long = "x".repeat(MAX_SCOPE + 1);
    assert!(names(&request(&[&long], false))[1].ends_with("exactly this bash call"));
}

/// ACP-2: a form returns the chosen or the entered text, and a declined one declines, so that it is never taken
/// for the default of a field.
#[test]
fn forms_return_text() {
    let cases = [
        (
            json!({ "action": "accept", "content": { "answer": "red" } }),
            "red",
        ),
        (
            json!({ "action": "accept", "content": { "answer": "red", "other": "blue" } }),
            "blue",
        ),
        (
            json!({ "action": "accept", "content": { "answer": "red", "other": " " } }),
            "red",
        ),
        (json!({ "action": "accept", "content": {} }), ""),
        (json!({ "action": "decline" }), "decline"),
        (
            json!({ "action": "cancel", "content": { "answer": "red" } }),
            "decline",
        ),
    ];
    let form = form("s", "c", "Which?", &["red".to_owned()]);
    for (answer, expected) in cases {
        assert_eq!(
            form.read(Ok(answer)),
            Asked::Reply(UserReply::Text(expected.to_owned()))
        );
    }
}
