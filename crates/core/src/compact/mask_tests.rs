//! Masking replaces outputs and nothing else.

use super::super::bed::*;
use super::*;
use crate::message::Binary;

/// CTX-4: old outputs become notes with a reference; calls, reasoning, texts and the newest outputs are
/// unchanged.
#[tokio::test]
async fn old_outputs_become_notes() {
    let mut history = exchange("one", 3, 2_000);
    history.extend(exchange("two", 1, 2_000));
    let provider = Rule::failing();
    let mask = Mask { keep_recent: 4 };
    let made = mask
        .compact(job(&history, &provider, 0))
        .await
        .expect("smaller")
        .history;
    assert!(provider.seen().is_empty(), "no model is asked");
    assert_eq!(made.len(), history.len());
    for (before, after) in history.iter().zip(&made) {
        assert_eq!(before.id, after.id);
        let is_old_output = before
            .results()
            .any(|result| result.call_id.as_str().starts_with("one"));
        assert_eq!(!Arc::ptr_eq(before, after), is_old_output);
    }
    let noted: Vec<&ToolResult> = made.iter().flat_map(|message| message.results()).collect();
    assert_eq!(
        noted[0].content,
        "[left out: 2016 bytes, 112 lines of `read`; recall {\"ref\": \"one-0\"} shows it]"
    );
    assert_eq!(noted[0].metadata, Some(serde_json::json!({"lines": 1})));
    assert!(!is_short(noted[3]));
    let again = mask.compact(job(&made, &provider, 0)).await;
    assert_eq!(
        again,
        Err(CompactError::NothingToDo),
        "what is masked stays masked"
    );
    assert_eq!(
        mask.compact(soft(&history, &provider)).await,
        Err(CompactError::NothingToDo)
    );
}

/// CTX-4: short outputs are not replaced by notes, images are.
#[tokio::test]
async fn what_is_worth_a_note() {
    let mut picture = result("p", "see");
    picture.images.push(Binary {
        path: "a.png".to_owned(),
        mime: "image/png".to_owned(),
        data: "x".repeat(9_000),
    });
    let parts = vec![Part::ToolResult(result("s", "short")), Part::ToolResult(picture)];
    let history = vec![user("go"), message(crate::message::Role::Tool, parts), user("on")];
    let provider = Rule::failing();
    let made = Mask { keep_recent: 1 }
        .compact(job(&history, &provider, 0))
        .await
        .expect("smaller");
    let results: Vec<&ToolResult> = made.history[1].results().collect();
    assert_eq!(results[0].content, "short");
    assert!(
        results[1].content.contains("a picture of `read`"),
        "{}",
        results[1].content
    );
    assert!(results[1].images.is_empty());
}
