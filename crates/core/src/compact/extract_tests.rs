//! Timing and content of the subgoal request.

use super::super::bed::*;
use super::*;
use crate::clock::SystemClock;
use crate::script::Scene;

async fn ask(subgoals: &Subgoals, history: &[Arc<Message>], provider: &Rule) -> Option<Usage> {
    extract(
        subgoals,
        history,
        provider,
        Arc::new(SystemClock::default()),
        CancellationToken::new(),
    )
    .await
}

/// CTX-7: the last six messages are shown, once per user message; tool outputs are not.
#[tokio::test]
async fn asked_once_about_what_the_user_said() {
    let provider = Rule::saying("CURRENT: fix the parser\nCOMPLETED: NONE");
    let subgoals = Subgoals::default();
    let mut history = exchange("one", 4, 1_000);
    assert!(ask(&subgoals, &history, &provider).await.is_some());
    assert_eq!(ask(&subgoals, &history, &provider).await, None);
    assert_eq!(subgoals.active().as_deref(), Some("fix the parser"));
    let seen = provider.seen();
    assert_eq!(seen.len(), 1);
    assert!(
        seen[0].contains("did one") && seen[0].contains("do one") && !seen[0].contains("output one"),
        "{}",
        seen[0]
    );
    history.extend(exchange("two", 1, 100));
    assert!(ask(&subgoals, &history, &provider).await.is_some());
    assert!(!provider.seen()[1].contains("do one"), "only the last six");
    assert_eq!(
        subgoals.registry().subgoals().len(),
        1,
        "the same subgoal goes on"
    );
}

/// CTX-7: a model that fails, hangs or calls tools changes nothing, and the next user message triggers a new
/// request.
#[tokio::test(start_paused = true)]
async fn failures_change_nothing() {
    for scene in [
        Scene::fail(crate::provider::ProviderErrorKind::Network, "no"),
        Scene::Hang(Vec::new()),
        Scene::call("x", "rm", serde_json::json!({})),
    ] {
        let provider = Rule::new(move |_| scene.clone());
        let subgoals = Subgoals::default();
        ask(&subgoals, &[user("a")], &provider).await;
        assert_eq!(subgoals.active(), None);
        ask(&subgoals, &[user("b")], &provider).await;
        assert_eq!(provider.seen().len(), 2);
    }
}

impl Subgoals {
    /// Sets a subgoal after this many messages, without a model call.
    pub(in crate::compact) fn tell_for_test(&self, length: usize, current: &str) {
        let mut tracked = self.tracked();
        tracked.registry.resize(length);
        tracked.registry.update(Extracted {
            current: Some(current.to_owned()),
            is_completed: false,
        });
    }
}
