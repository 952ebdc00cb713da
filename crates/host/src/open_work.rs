//! LOOP-13: points out open todos, and a missing `done` call, before an answer is accepted.

use async_trait::async_trait;
use windlass_core::hook::{AnswerAction, Hook, TurnHook};
use windlass_tools::TodoList;

/// Reports open todos, and a `done` call that is missing.
pub(crate) struct OpenWork {
    pub(crate) todos: TodoList,
    pub(crate) require_done: bool,
    /// True if a person follows the session: open todos are shown then, and do not continue the turn.
    pub(crate) is_attended: bool,
}

impl OpenWork {
    fn prompt(&self) -> Option<String> {
        let open = self.todos.open();
        if !open.is_empty() && !self.is_attended {
            let list: Vec<_> = open.iter().map(|item| format!("- {item}")).collect();
            return Some(format!(
                "These items of your todo list are still open:\n{}\nFinish them, or update the list if they no longer apply.",
                list.join("\n")
            ));
        }
        self.require_done.then(|| {
            "You answered without calling the done tool. If the work is finished and verified, call done with your \
             final answer; otherwise continue."
                .to_owned()
        })
    }
}

impl Hook for OpenWork {
    fn name(&self) -> &str {
        "open work"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for OpenWork {
    async fn before_answer(&self, _answer: &str) -> AnswerAction {
        self.prompt().map_or(AnswerAction::Accept, AnswerAction::Continue)
    }
}
