//! The rules: simple requests answered with real tool calls, without a model.
//!
//! The rules keep no state. They read the progress on the current request from the conversation, so a session
//! may be stopped, stored and continued anywhere.

mod act;
mod intent;
mod repair;
mod schema;

use std::collections::HashMap;

use serde_json::{Value, json};

use self::intent::Intent;
use crate::answer::Answer;
use crate::seen::{Seen, SeenCall, SeenResult, SeenRole};

/// Maximum number of calls for one user request.
const MOST_CALLS: usize = 8;

/// Prefix of every text.
pub(crate) const LABEL: &str = "[simulated model] ";

/// A decision of the rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Move {
    /// Call a tool.
    Call(&'static str, Value),
    /// Send a text and end the turn.
    Say(String),
    /// Answer with exactly this text.
    Exactly(String),
}

/// One call made for the current request, with its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done<'seen> {
    pub(crate) call: &'seen SeenCall,
    pub(crate) result: &'seen SeenResult,
}

impl Done<'_> {
    pub(crate) fn text(&self) -> &str {
        &self.result.text
    }

    /// Returns true if the tool reported an error. The OpenAI wires do not mark errors, so the text has to
    /// do.
    pub(crate) fn failed(&self) -> bool {
        let text = self.text().trim_start().to_lowercase();
        self.result.is_error || text.starts_with("error")
    }
}

/// A request as the rules see it.
#[derive(Debug)]
pub(crate) struct Situation<'seen> {
    pub(crate) seen: &'seen Seen,
    /// The user's last request, without injected fragments.
    pub(crate) ask: String,
    /// Calls made for it.
    pub(crate) done: Vec<Done<'seen>>,
}

pub(crate) fn answer(seen: &Seen) -> Answer {
    let situation = Situation::of(seen);
    match finish(&situation, decide(&situation)) {
        Move::Call(tool, args) => Answer::call(tool, &args),
        Move::Say(text) => Answer::text(format!("{LABEL}{text}")),
        Move::Exactly(text) => Answer::text(text),
    }
}

fn decide(situation: &Situation<'_>) -> Move {
    if situation.done.len() >= MOST_CALLS {
        return Move::Say("I stop here: this needed too many steps for a simulation.".to_owned());
    }
    if let Some(last) = situation.done.last()
        && last.call.name == "done"
    {
        return Move::Say("Done.".to_owned());
    }
    let intent = intent::read(&situation.ask, !situation.seen.tools.is_empty());
    match intent {
        Intent::FixTest => repair::next(situation),
        Intent::Json(schema) => Move::Exactly(schema::instance(&schema).to_string()),
        other => act::next(situation, &other),
    }
}

/// Turns a closing text into a `done` call if one is wanted.
fn finish(situation: &Situation<'_>, next: Move) -> Move {
    let seen = situation.seen;
    let Move::Say(text) = next else { return next };
    let already = situation.done.last().is_some_and(|last| last.call.name == "done");
    let forced = matches!(seen.tool_choice.as_deref(), Some("any" | "required" | "done"));
    let alone = seen.tools.len() == 1;
    let demanded = intent::demands_done(&seen.system) || intent::demands_done(&situation.ask);
    if seen.offers("done") && !already && (forced || alone || demanded) {
        Move::Call("done", json!({"message": format!("{LABEL}{text}")}))
    } else {
        Move::Say(text)
    }
}

impl<'seen> Situation<'seen> {
    pub(crate) fn of(seen: &'seen Seen) -> Self {
        let asked = seen.turns.iter().enumerate().rev().find_map(|(index, turn)| {
            let text = intent::without_fragments(&turn.text);
            (turn.role == SeenRole::User && !text.is_empty()).then_some((index, text))
        });
        let (start, ask) = asked.unwrap_or_default();
        let later = || seen.turns.iter().skip(start + 1);
        let results: HashMap<&str, &SeenResult> = later()
            .flat_map(|turn| &turn.results)
            .map(|result| (result.id.as_str(), result))
            .collect();
        let done = later()
            .flat_map(|turn| &turn.calls)
            .filter_map(|call| {
                let result = results.get(call.id.as_str())?;
                Some(Done { call, result })
            })
            .collect();
        Self { seen, ask, done }
    }

    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.seen.offers(tool)
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
