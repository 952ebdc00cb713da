//! Meaning of a reply for the turn: an answer, calls, a cut, nothing, or a failure.

use super::{Answered, Ask, CONTINUE_PROMPT, CUT_CALL_TEXT, LIMIT_TEXT, Next, Planned, State, Turn, refused};
use crate::event::{Event, FailureKind};
use crate::message::{FinishReason, FragmentSource, Message, Part, Role, ToolCall};
use crate::middleware::Shrink;
use crate::provider::{ProviderError, Remedy, StopReason};
use crate::turn::Outcome;

/// Reasons a reply is not whole, with what helps against them.
const CUT: (&str, &str) = (
    "The reply was cut at the output limit",
    "Raise `agent.max_output_tokens`, or ask for smaller steps.",
);
const PAUSED: (&str, &str) = (
    "The provider paused its reply",
    "Send another message to continue, or use another model.",
);

impl Turn {
    pub(super) fn replied(&mut self, message: Message, stop: StopReason) {
        let text = message.text().trim().to_owned();
        let calls: Vec<_> = message.calls().cloned().collect();
        if calls.is_empty() && text.is_empty() && stop != StopReason::Pause {
            return self.empty_reply(stop);
        }
        self.streaks.empty = 0;
        self.streaks.overflow = 0;
        self.announce_reasoning(&message);
        let finish = match stop {
            StopReason::MaxTokens => FinishReason::MaxTokens,
            StopReason::Refusal => FinishReason::Refusal,
            StopReason::ToolUse | StopReason::EndTurn | StopReason::Pause if !calls.is_empty() => {
                FinishReason::ToolUse
            }
            _ => FinishReason::EndTurn,
        };
        let now = self.now;
        self.append(message.finished(finish, now));
        match stop {
            StopReason::Refusal => {
                self.fail(
                    FailureKind::Refusal,
                    refusal_text(&text),
                    None,
                    FinishReason::Refusal,
                );
            }
            StopReason::MaxTokens => self.cut_off(text, calls),
            StopReason::Pause if calls.is_empty() => {
                self.say(text);
                self.count_cut(PAUSED, |turn| turn.end_iteration(Next::Iterate));
            }
            _ if calls.is_empty() => {
                self.streaks.cut = 0;
                self.state = State::Reviewing(text);
            }
            _ => {
                self.streaks.cut = 0;
                self.say(text);
                self.plan(calls.into_iter().map(|call| (call, None)).collect());
            }
        }
    }

    fn cut_off(&mut self, text: String, calls: Vec<ToolCall>) {
        self.say(text);
        let last = calls.len().saturating_sub(1);
        self.count_cut(CUT, |turn| {
            if calls.is_empty() {
                let prompt = vec![Part::context(FragmentSource::Prompt, CONTINUE_PROMPT)];
                turn.append(Message::new(&turn.session, Role::User, prompt, turn.now));
                turn.end_iteration(Next::Iterate);
            } else {
                // Only the last call can be incomplete; those before it were whole at the cut.
                let plan = calls.into_iter().enumerate();
                turn.plan(
                    plan.map(|(i, call)| (call, (i == last).then(|| CUT_CALL_TEXT.to_owned())))
                        .collect(),
                );
            }
        });
    }

    fn count_cut(&mut self, (what, hint): (&str, &str), go_on: impl FnOnce(&mut Self)) {
        self.streaks.cut += 1;
        if self.streaks.cut > self.limits.max_cut_replies {
            let text = format!("{what} {} times in a row.", self.streaks.cut);
            let hint = hint.to_owned();
            self.close_open_calls();
            return self.fail(FailureKind::MaxTokens, text, Some(hint), FinishReason::MaxTokens);
        }
        go_on(self);
    }

    /// Gives every call of the last assistant message a result, so that the history stays valid.
    fn close_open_calls(&mut self) {
        let Some(last) = self
            .history
            .last()
            .filter(|message| message.role == Role::Assistant)
        else {
            return;
        };
        let parts: Vec<_> = last
            .calls()
            .map(|call| Part::ToolResult(refused(call, CUT_CALL_TEXT)))
            .collect();
        if !parts.is_empty() {
            self.append(Message::new(&self.session, Role::Tool, parts, self.now));
        }
    }

    fn plan(&mut self, calls: Vec<(ToolCall, Option<String>)>) {
        let planned = calls.into_iter().map(|(call, refusal)| {
            let refusal = refusal.or_else(|| self.repeats.note(&call, self.limits.repeat_note));
            Planned { call, refusal }
        });
        self.state = State::Calling(planned.collect());
    }

    fn empty_reply(&mut self, stop: StopReason) {
        if stop == StopReason::Refusal {
            return self.fail(
                FailureKind::Refusal,
                refusal_text(""),
                None,
                FinishReason::Refusal,
            );
        }
        self.streaks.empty += 1;
        if self.streaks.empty > self.limits.max_empty_replies {
            let text = "The model returned an empty reply twice in a row.".to_owned();
            let hint = "Try again, or use another model.".to_owned();
            return self.fail(FailureKind::EmptyReply, text, Some(hint), FinishReason::Error);
        }
        self.news.push(Event::Warning {
            message: "The model returned an empty reply; asking again.".to_owned(),
        });
        self.state = State::Waiting(Ask::Iteration);
    }

    pub(super) fn unanswered(&mut self, error: ProviderError, partial: Option<Message>) {
        if error.remedy() == Remedy::Compact && self.streaks.overflow < self.limits.max_overflow_compactions {
            self.streaks.overflow += 1;
            self.state = State::Shrinking {
                shrink: Shrink::HARD,
                next: Next::Ask,
                overflow: Some(error),
            };
            return;
        }
        if let Some(partial) = partial {
            self.now = partial.updated_at;
            let now = self.now;
            self.append(partial.finished(FinishReason::Error, now));
        }
        self.fail_request(error);
    }

    pub(super) fn last_word(&mut self, message: Option<Message>) {
        let text = message
            .as_ref()
            .map(|message| message.text().trim().to_owned())
            .unwrap_or_default();
        let (text, message) = match message {
            Some(message) if !text.is_empty() => (text, message),
            _ => {
                let parts = vec![Part::text(LIMIT_TEXT)];
                (
                    LIMIT_TEXT.to_owned(),
                    Message::new(&self.session, Role::Assistant, parts, self.now),
                )
            }
        };
        // No tools were offered; a call made anyway would stay without a result.
        let mut message = message.finished(FinishReason::MaxIterations, self.now);
        if message.calls().next().is_some() {
            message.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
            message.origin = None;
        }
        self.append(message);
        self.end(Outcome::Answered(Answered {
            text,
            finish: FinishReason::MaxIterations,
            done: false,
        }));
    }

    fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.news.push(Event::Text { text });
        }
    }

    fn announce_reasoning(&mut self, message: &Message) {
        let texts = message.parts.iter().filter_map(|part| match part {
            Part::Reasoning(reasoning) if !reasoning.text.is_empty() => Some(reasoning.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            self.news.push(Event::Reasoning { text });
        }
    }
}

fn refusal_text(text: &str) -> String {
    if text.is_empty() {
        "The model refused to answer.".to_owned()
    } else {
        format!("The model refused: {text}")
    }
}
