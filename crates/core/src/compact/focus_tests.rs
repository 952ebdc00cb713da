//! The focus tools, the compaction of a stretch of work, and the knowledge block.

use super::super::bed::*;
use super::super::{Parts, Strategy, fidelity};
use super::*;
use crate::message::Role;
use crate::tool::{CallModel, Person, Progress, Tool, ToolContext, ToolError};

fn cx(call: &str) -> ToolContext {
    ToolContext {
        call_id: call.into(),
        cancel: tokio_util::sync::CancellationToken::new(),
        execution: Arc::default(),
        progress: Progress::none(),
        person: Person::nobody(),
        model: CallModel::none(),
        confirmed: false,
        places: Arc::default(),
    }
}

async fn start(state: &Arc<FocusState>, call: &str, scope: &str) -> Result<String, ToolError> {
    let input = serde_json::from_value(serde_json::json!({"scope": scope})).expect("input");
    let output = StartFocus(Arc::clone(state)).run(input, cx(call)).await?;
    Ok(output.content)
}

async fn complete(state: &Arc<FocusState>, call: &str, summary: &str) -> Result<String, ToolError> {
    let input = serde_json::from_value(serde_json::json!({"summary": summary})).expect("input");
    let output = CompleteFocus(Arc::clone(state)).run(input, cx(call)).await?;
    Ok(output.content)
}

fn focus(state: &Arc<FocusState>) -> Focus {
    let summarize = Summarize {
        keep_recent: 2,
        ..Summarize::default()
    };
    Focus::new(Arc::clone(state), summarize)
}

/// A stretch of work, and the calls around it.
async fn stretch(state: &Arc<FocusState>, name: &str) -> Vec<Arc<Message>> {
    let (from, to) = (format!("from-{name}"), format!("to-{name}"));
    start(state, &from, name).await.expect("open");
    let mut all = named_pair(&from, "start_focus", "{}", "Focus").to_vec();
    for number in 0..3 {
        all.extend(pair(&format!("{name}-{number}"), &"noise ".repeat(300)));
    }
    all.push(user(&format!("mind the {name}")));
    complete(state, &to, &format!("{name} is at /src/{name}.rs"))
        .await
        .expect("over");
    all.extend(named_pair(&to, "complete_focus", "{}", "Kept"));
    all
}

/// CTX-9: only one stretch is open at a time, and ending it requires a summary.
#[tokio::test]
async fn stretches_begin_and_end() {
    let state = Arc::new(FocusState::default());
    assert_eq!(
        complete(&state, "1", "x").await,
        Err(ToolError::Permanent(
            "[error] No active focus session. Call start_focus first.".to_owned()
        ))
    );
    assert_eq!(
        start(&state, "2", "the parser").await.as_deref(),
        Ok("Focus: the parser")
    );
    assert_eq!(state.scope().as_deref(), Some("the parser"));
    assert_eq!(
        start(&state, "3", "more").await,
        Err(ToolError::Permanent(
            "[error] A focus session is already active. Call complete_focus first.".to_owned()
        ))
    );
    assert!(matches!(
        complete(&state, "4", " ").await,
        Err(ToolError::Invalid(_))
    ));
    assert!(complete(&state, "5", "it is fine").await.is_ok());
    assert_eq!(state.scope(), None);
}

/// CTX-9: a completed stretch is replaced by the agent's summary, without a model; the user's messages in it
/// stay.
#[tokio::test]
async fn what_is_over_goes() {
    let provider = Rule::failing();
    let state = Arc::new(FocusState::default());
    let mut history = vec![user("go")];
    history.extend(stretch(&state, "parser").await);
    history.push(assistant("next"));
    history.extend(stretch(&state, "lexer").await);
    history.extend(pair("open", &"still needed ".repeat(100)));
    let target = Gauge::default().tokens(&history) / 2;
    let made = focus(&state)
        .compact(job(&history, &provider, target))
        .await
        .expect("smaller")
        .history;
    assert!(provider.seen().is_empty());
    let roles: Vec<Role> = made.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::User,
            Role::Assistant,
            Role::User,
            Role::Assistant,
            Role::Tool
        ]
    );
    let text = lines(&made).join("\n");
    assert!(
        text.contains("## Focus summary 1: parser\nparser is at /src/parser.rs"),
        "{text}"
    );
    assert!(
        text.contains("mind the lexer") && text.contains("## Focus summary 2: lexer"),
        "{text}"
    );
    let report = fidelity(&history, &made);
    assert_eq!((report.said, report.said_kept, report.references), (3, 3, 2));
}

/// CTX-9: every summary contains the knowledge verbatim, and a new process reads it from there.
#[tokio::test]
async fn knowledge_is_pinned() {
    let provider = Rule::saying("a fine summary");
    let state = Arc::new(FocusState::default());
    let mut history = vec![user("go")];
    history.extend(stretch(&state, "parser").await);
    for round in 0..5 {
        history.extend(exchange(&format!("later{round}"), 4, 900));
        let compactor = Strategy::Focus.compactor(Parts {
            keep_recent: 2,
            focus: Arc::clone(&state),
            ..Parts::default()
        });
        history = compactor
            .expect("one")
            .compact(job(&history, &provider, 10))
            .await
            .expect("smaller")
            .history;
        let text = lines(&history[1..2]).join("\n");
        assert_eq!(text.matches("parser is at /src/parser.rs").count(), 1, "{text}");
        assert!(
            text.contains("<standing what=\"knowledge\">\n[knowledge]\n## Focus summary 1: parser"),
            "{text}"
        );
    }
    let again = Arc::new(FocusState::default());
    again.restore(&history);
    assert_eq!(again.facts(), state.facts());
    start(&again, "a", "lexer").await.expect("open");
    complete(&again, "b", "all good").await.expect("over");
    assert!(again.facts()[0].1.contains("## Focus summary 2: lexer\nall good"));
}

/// CTX-9: knowledge is limited to 4,096 tokens; the oldest pieces go, but never the last; no content can
/// break the frame.
#[test]
fn knowledge_is_bounded() {
    let mut knowledge = Knowledge::default();
    for number in 0..30 {
        knowledge.learn(&format!("scope {number}"), &"fact ".repeat(300));
    }
    let (_, text) = knowledge.fact().expect("text");
    assert!(text.len() <= 4_096 * 4 + 20, "{}", text.len());
    assert!(text.contains("summary 30: scope 29") && !text.contains("summary 1: "));
    knowledge.learn("huge", &"x".repeat(100_000));
    assert_eq!(knowledge.pieces(), 1);
    let (_, text) = knowledge.fact().expect("text");
    assert!(text.contains("summary 31: huge") && text.len() <= 4_096 * 4 + 20);
    let said = Knowledge::default().learn("a", "b\u{1b}[31m</standing><left_out ref=\"x\">");
    assert_eq!(
        said,
        "## Focus summary 1: a\nb[31m< /standing>< left_out ref=\"x\">"
    );
}

/// CTX-9: similar pieces are merged after some turns; a window of 0 is refused.
#[tokio::test]
async fn like_pieces_are_put_together() {
    let state = Arc::new(FocusState::default());
    for (scope, summary) in [
        ("parser", "parser fails at line seven\nthe token table is wrong"),
        ("network", "requests time out after thirty seconds"),
        (
            "parser",
            "parser fails at line seven\nthe token table is wrong\nfixed by sorting it",
        ),
    ] {
        start(&state, "a", scope).await.expect("open");
        complete(&state, "b", summary).await.expect("over");
    }
    for _ in 0..3 {
        state.turn_ended();
        assert!(!state.should_auto_consolidate());
    }
    state.turn_ended();
    assert!(state.should_auto_consolidate());
    assert_eq!(state.consolidate().await, 1);
    let text = state.facts()[0].1.clone();
    assert_eq!(text.matches("token table").count(), 1, "{text}");
    assert!(
        text.contains("network") && text.contains("fixed by sorting it"),
        "{text}"
    );
    assert!(!state.should_auto_consolidate(), "the turns are counted anew");

    let none = FocusConfig {
        auto_consolidate_min_window: 0,
    };
    let error = none.validate().expect_err("refused").to_string();
    assert!(
        error.contains("auto_consolidate_min_window must be at least 1"),
        "{error}"
    );
    assert_eq!(FocusConfig::default().validate(), Ok(()));
}

impl FocusState {
    /// Starts or ends a stretch with this call.
    pub(in crate::compact) fn toggle_for_test(&self, call: &str) {
        let mut inner = self.inner();
        match inner.open.take() {
            None => {
                inner.open = Some(Open {
                    scope: "scope".to_owned(),
                    call: call.into(),
                });
            }
            Some(open) => {
                let summary = inner.knowledge.learn(&open.scope, "It is all fine.");
                inner.over.push(Stretch {
                    from: open.call,
                    to: call.into(),
                    summary,
                });
            }
        }
    }
}
