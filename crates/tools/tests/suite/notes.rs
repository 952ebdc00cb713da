//! `todo` and `done`.

use serde_json::json;
use windlass_core::tool::{Category, ToolError};
use windlass_tools::{TodoItem, TodoList, TodoStatus, ToolsConfig};

use crate::desk::Desk;

/// LOOP-13: each call replaces the list, and the open items can be queried.
#[tokio::test]
async fn todos_are_kept() {
    let todos = TodoList::new();
    let desk = Desk::with(&ToolsConfig {
        todos: todos.clone(),
        ..ToolsConfig::default()
    });
    let items = json!([
        { "text": "read", "status": "completed" },
        { "text": "write", "status": "in_progress" },
        { "content": "test", "status": "pending" },
    ]);
    let text = desk.text("todo", json!({ "items": items })).await;
    assert_eq!(text, "3 todos: 1 completed, 1 in progress, 1 pending.");
    assert_eq!(todos.open(), ["write", "test"]);
    assert_eq!(
        todos.items()[0],
        TodoItem {
            text: "read".to_owned(),
            status: TodoStatus::Completed
        }
    );
    for (arguments, word) in [
        (
            json!({ "items": [{ "text": " ", "status": "pending" }] }),
            "items[0].text",
        ),
        (
            json!({ "items": [{ "text": "a", "status": "later" }] }),
            "items[0].status",
        ),
        (
            json!({ "items": vec![json!({ "text": "a", "status": "pending" }); 101] }),
            "101",
        ),
    ] {
        match desk.error("todo", arguments).await {
            ToolError::Invalid(text) => assert!(text.contains(word), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(todos.open().len(), 2, "a refused call changes nothing");
    assert_eq!(
        desk.text("todo", json!({ "items": [] })).await,
        "The todo list is empty."
    );
    assert!(todos.items().is_empty());
}

/// LOOP-10: `done` ends the turn with its message, and requires one.
#[tokio::test]
async fn done_ends_the_turn() {
    let desk = Desk::with(&ToolsConfig {
        offer_done: true,
        ..ToolsConfig::default()
    });
    let call = desk
        .prepare("done", &json!({ "message": "All set." }))
        .expect("valid");
    assert_eq!(call.category, Category::Write);
    let output = call.run(desk.context()).await.expect("an answer");
    assert_eq!(output.content, "Task complete");
    assert_eq!(output.ends_turn.as_deref(), Some("All set."));
    // LOOP-10: without a message, the text beside the call is the answer, which the turn knows.
    let call = desk.prepare("done", &json!({ "message": " " })).expect("valid");
    let output = call.run(desk.context()).await.expect("an answer");
    assert_eq!(output.ends_turn.as_deref().map(str::trim), Some(""));
}
