//! Tables of feeds and expected actions. No runtime.

use serde_json::json;

use super::*;
use crate::id::CallId;
use crate::message::{ToolCall, ToolResult};
use crate::provider::{ProviderErrorKind, StopReason};
use crate::script::call_part;

const NOW: Timestamp = Timestamp(1_000);

fn session() -> SessionId {
    SessionId::from("s")
}

fn turn_with(limits: Limits) -> Turn {
    Turn::new(TurnInput {
        session: session(),
        history: vec![Arc::new(Message::user(&session(), "go", NOW))],
        limits,
        price: Some(Price {
            input: 1.0,
            output: 1.0,
            cache_read: 0.1,
            cache_write: 1.25,
        }),
        provider: "p".to_owned(),
        model: "m".to_owned(),
    })
}

fn turn() -> Turn {
    turn_with(Limits::default())
}

fn said(parts: Vec<Part>, stop: StopReason) -> ModelAnswer {
    let message = Message::new(&session(), Role::Assistant, parts, NOW);
    ModelAnswer::Complete {
        message,
        stop,
        usage: Usage {
            input: 1_000_000,
            output: 0,
            ..Usage::default()
        },
    }
}

fn text(text: &str) -> ModelAnswer {
    said(vec![Part::text(text)], StopReason::EndTurn)
}

fn calls(names: &[&str]) -> ModelAnswer {
    let parts = names
        .iter()
        .enumerate()
        .map(|(i, name)| call_part(&format!("c{i}"), name, "{}"));
    said(parts.collect(), StopReason::ToolUse)
}

fn ok(call: &ToolCall, content: &str) -> ToolResult {
    let (call_id, name) = (call.id.clone(), call.name.clone());
    ToolResult {
        call_id,
        name,
        content: content.to_owned(),
        metadata: None,
        is_error: false,
        images: Vec::new(),
    }
}

/// Advances the machine to its next model request, with quiet middleware and an empty inbox.
fn to_question(turn: &mut Turn) -> Action {
    loop {
        match turn.advance() {
            Action::Listen => turn.heard(Vec::new()),
            Action::Consult(_) => turn.consulted(Verdict::proceed()),
            Action::Review(_) => turn.reviewed(None),
            action => return action,
        }
    }
}

/// Answers every call with `content`.
fn settle(turn: &mut Turn, content: &str) {
    let Action::Call(planned) = turn.advance() else {
        panic!("expected calls, got {:?}", turn.advance())
    };
    let results = planned.iter().map(|planned| match &planned.refusal {
        Some(refusal) => refused(&planned.call, refusal),
        None => ok(&planned.call, content),
    });
    turn.settled(Settled {
        results: results.collect(),
        charges: Vec::new(),
        end: None,
        now: NOW,
    });
}

fn failure(turn: &mut Turn) -> Failure {
    match to_question(turn) {
        Action::Done(Outcome::Failed(failure)) => failure,
        action => panic!("expected a failure, got {action:?}"),
    }
}

fn answer(turn: &mut Turn) -> Answered {
    match to_question(turn) {
        Action::Done(Outcome::Answered(answered)) => answered,
        action => panic!("expected an answer, got {action:?}"),
    }
}

/// LOOP-2 (S5.1): a reply without tool calls is one iteration, and its text is the answer.
#[test]
fn text_alone_is_the_answer() {
    let mut turn = turn();
    assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
    turn.answered(text("  hello \n"));
    assert_eq!(
        answer(&mut turn),
        Answered {
            text: "hello".to_owned(),
            finish: FinishReason::EndTurn,
            done: false
        }
    );
    assert_eq!(turn.iteration, 1);
    assert_eq!(
        turn.history().last().and_then(|message| message.finish()),
        Some(FinishReason::EndTurn)
    );
}

/// LOOP-3 (S5.2, S5.6): call, result, next request, until there is an answer.
#[test]
fn a_call_leads_to_another_question() {
    let mut turn = turn();
    for round in 0..3 {
        assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
        turn.answered(calls(&["ls"]));
        settle(&mut turn, &format!("result {round}"));
    }
    to_question(&mut turn);
    turn.answered(text("done"));
    assert_eq!(answer(&mut turn).text, "done");
    let roles: Vec<_> = turn.history().iter().map(|message| message.role).collect();
    use Role::{Assistant, Tool, User};
    assert_eq!(
        roles,
        [User, Assistant, Tool, Assistant, Tool, Assistant, Tool, Assistant]
    );
}

/// LOOP-4 (S5.3): all results go back in one message, in call order.
#[test]
fn results_keep_call_order() {
    let mut turn = turn();
    to_question(&mut turn);
    turn.answered(calls(&["a", "b", "c"]));
    settle(&mut turn, "x");
    let last = turn.history().last().cloned().expect("a tool message");
    let names: Vec<_> = last.results().map(|result| result.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

/// LOOP-9 (S5.7): a turn that finishes on its last iteration finishes normally; otherwise the model gets
/// one last word, and when that fails the fixed text is the answer.
#[test]
fn iteration_limit() {
    let limits = Limits {
        max_iterations: 2,
        ..Limits::default()
    };

    let mut normal = turn_with(limits.clone());
    to_question(&mut normal);
    normal.answered(calls(&["ls"]));
    settle(&mut normal, "x");
    to_question(&mut normal);
    normal.answered(text("on time"));
    assert_eq!(answer(&mut normal).finish, FinishReason::EndTurn);
    assert!(
        !normal
            .news()
            .iter()
            .any(|event| matches!(event, Event::Error { .. }))
    );

    for (last, expected) in [
        (text("half done"), "half done"),
        (
            ModelAnswer::Failed {
                error: ProviderError::new(ProviderErrorKind::Network, "x"),
                partial: None,
            },
            LIMIT_TEXT,
        ),
        (calls(&["ls"]), LIMIT_TEXT),
    ] {
        let mut turn = turn_with(limits.clone());
        for round in 0..2 {
            assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
            turn.answered(calls(&["ls"]));
            settle(&mut turn, &format!("r{round}"));
        }
        assert_eq!(to_question(&mut turn), Action::Ask(Ask::LastWord));
        turn.answered(last);
        let answered = answer(&mut turn);
        assert_eq!(
            (answered.text.as_str(), answered.finish),
            (expected, FinishReason::MaxIterations)
        );
        let errors = turn
            .news()
            .iter()
            .filter(|event| matches!(event, Event::Error { .. }))
            .count();
        assert_eq!(errors, 1, "one error event says that the limit was hit");
        assert_eq!(
            turn.history().last().and_then(|message| message.finish()),
            Some(FinishReason::MaxIterations)
        );
        assert!(
            !turn
                .history()
                .iter()
                .any(|message| message.text().contains("Sum up where you stand"))
        );
    }

    let mut fixed = turn_with(Limits {
        on_max_iterations: OnMaxIterations::Message,
        ..limits
    });
    for round in 0..2 {
        to_question(&mut fixed);
        fixed.answered(calls(&["ls"]));
        settle(&mut fixed, &format!("r{round}"));
    }
    assert_eq!(answer(&mut fixed).text, LIMIT_TEXT);
}

/// LOOP-13: the incomplete-work hook sends the model back at most `max_incomplete_prompts` times.
#[test]
fn incomplete_work_is_prompted_twice_at_most() {
    let mut turn = turn();
    let mut prompts = 0;
    let outcome = loop {
        match turn.advance() {
            Action::Listen => turn.heard(Vec::new()),
            Action::Consult(_) => turn.consulted(Verdict::proceed()),
            Action::Ask(_) => turn.answered(text("finished!")),
            Action::Review(_) => {
                prompts += 1;
                turn.reviewed(Some("todos are open".to_owned()));
            }
            Action::Done(outcome) => break outcome,
            action => panic!("unexpected {action:?}"),
        }
    };
    assert!(matches!(outcome, Outcome::Answered(_)));
    assert_eq!(
        prompts, 3,
        "the third answer is accepted although the hook still objects"
    );
    let injected = turn
        .history()
        .iter()
        .filter(|message| {
            message.fragment(FragmentSource::Reminder) == Some("todos are open")
                && message.user_text().is_empty()
        })
        .count();
    assert_eq!(injected, 2);
    let texts = turn
        .news()
        .iter()
        .filter(|event| matches!(event, Event::Text { .. }))
        .count();
    assert_eq!(texts, 2, "answers that were not accepted are ordinary text");
}

/// LOOP-15: a reply cut by the output limit is continued at most three times in a row.
#[test]
fn cut_replies_are_continued_three_times() {
    let mut turn = turn();
    for _ in 0..3 {
        assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
        turn.answered(said(vec![Part::text("and then")], StopReason::MaxTokens));
        to_question(&mut turn);
        assert_eq!(
            turn.history()
                .last()
                .and_then(|message| message.fragment(FragmentSource::Prompt)),
            Some(CONTINUE_PROMPT)
        );
    }
    turn.answered(said(vec![Part::text("and then")], StopReason::MaxTokens));
    let failure = failure(&mut turn);
    assert_eq!(
        (failure.kind, failure.finish),
        (FailureKind::MaxTokens, FinishReason::MaxTokens)
    );
}

/// LOOP-15: half a tool call is never executed; whole calls before it are.
#[test]
fn half_a_call_is_not_run() {
    let mut turn = turn();
    to_question(&mut turn);
    let parts = vec![
        call_part("c0", "ls", "{}"),
        call_part("c1", "rm", "{\"path\": \"/tm"),
    ];
    turn.answered(said(parts, StopReason::MaxTokens));
    let Action::Call(planned) = turn.advance() else {
        panic!("expected calls")
    };
    let refusals: Vec<_> = planned.iter().map(|planned| planned.refusal.is_some()).collect();
    assert_eq!(refusals, [false, true]);
    settle(&mut turn, "x");
    assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
}

/// LOOP-15: an empty reply is retried once, then the turn ends with a clear error.
#[test]
fn empty_replies() {
    let mut turn = turn();
    to_question(&mut turn);
    turn.answered(said(Vec::new(), StopReason::EndTurn));
    assert_eq!(turn.advance(), Action::Ask(Ask::Iteration));
    turn.answered(text("now"));
    assert_eq!(answer(&mut turn).text, "now");

    let mut silent = super::tests::turn();
    to_question(&mut silent);
    silent.answered(said(vec![Part::text(" \n")], StopReason::EndTurn));
    silent.answered(said(Vec::new(), StopReason::EndTurn));
    assert_eq!(failure(&mut silent).kind, FailureKind::EmptyReply);
}

/// LOOP-17: the fourth equal call is answered with a note, the fifth ends the turn with the reason.
#[test]
fn repetition() {
    let mut turn = turn();
    let mut ran = 0;
    for round in 1..=5 {
        assert_eq!(
            to_question(&mut turn),
            Action::Ask(Ask::Iteration),
            "round {round}"
        );
        turn.answered(calls(&["ls"]));
        let Action::Call(planned) = turn.advance() else {
            panic!("expected calls")
        };
        ran += usize::from(planned.iter().all(|planned| planned.refusal.is_none()));
        settle(&mut turn, "same");
    }
    assert_eq!(ran, 3);
    let failure = failure(&mut turn);
    assert_eq!(failure.kind, FailureKind::Repetition);
    assert!(
        failure.message.contains("`ls` was called 5 times"),
        "{}",
        failure.message
    );
}

/// LOOP-17: another result, other arguments or a pause break the streak.
#[test]
fn what_is_not_repetition() {
    let mut turn = turn();
    for round in 0..8 {
        to_question(&mut turn);
        turn.answered(calls(&["ls"]));
        settle(&mut turn, &format!("result {}", round / 2));
    }
    for _ in 0..3 {
        for name in ["a", "b"] {
            to_question(&mut turn);
            turn.answered(calls(&[name]));
            settle(&mut turn, "same");
        }
    }
    assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
}

/// LOOP-17: the cost limit ends the turn before the next request, and reports the cost.
#[test]
fn cost_limit() {
    let mut turn = turn_with(Limits {
        max_cost_usd: Some(1.5),
        ..Limits::default()
    });
    for round in 0..2 {
        assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
        turn.answered(calls(&["ls"]));
        settle(&mut turn, &format!("{round}"));
    }
    let failure = failure(&mut turn);
    assert_eq!(failure.kind, FailureKind::CostLimit);
    assert!(failure.message.contains("$2.0000"), "{}", failure.message);
}

/// PROV-10: a context overflow leads to compaction and one retry, then it is an error.
#[test]
fn overflow_compacts_and_retries_once() {
    let overflow = || ModelAnswer::Failed {
        error: ProviderError::new(ProviderErrorKind::ContextOverflow, "too long"),
        partial: None,
    };
    let mut turn = turn();
    to_question(&mut turn);
    turn.answered(overflow());
    assert_eq!(turn.advance(), Action::Shrink(Shrink::HARD));
    turn.shrunk(Ok(Compacted {
        usage: Some(Usage {
            input: 7,
            ..Usage::default()
        }),
        ..Compacted::new(vec![Arc::new(Message::user(&session(), "short", NOW))])
    }));
    let cause = |event: &Event| matches!(event, Event::Usage { cause, .. } if cause == "compaction");
    assert!(turn.news().iter().any(cause), "the summary's tokens are booked");
    assert_eq!(turn.advance(), Action::Ask(Ask::Iteration));
    turn.answered(overflow());
    assert_eq!(
        failure(&mut turn).kind,
        FailureKind::Provider(ProviderErrorKind::ContextOverflow)
    );

    let mut stuck = super::tests::turn();
    to_question(&mut stuck);
    stuck.answered(overflow());
    stuck.shrunk(Err("nothing to summarize".to_owned()));
    assert!(failure(&mut stuck).message.contains("nothing to summarize"));
}

/// LOOP-12: middleware may stop or compact before and after an iteration; an existing answer wins.
#[test]
fn middleware_verdicts() {
    let mut stopped = turn();
    stopped.heard(Vec::new());
    stopped.consulted(Verdict::stop("enough"));
    let stop = failure(&mut stopped);
    assert_eq!(
        (stop.kind, stop.message.as_str()),
        (FailureKind::Stopped, "enough")
    );

    let mut compacted = turn();
    compacted.heard(Vec::new());
    compacted.consulted(Verdict::compact("full"));
    assert_eq!(compacted.advance(), Action::Shrink(Shrink::HARD));
    compacted.shrunk(Err("no".to_owned()));
    assert_eq!(
        compacted.advance(),
        Action::Ask(Ask::Iteration),
        "a compaction without effect is only a warning"
    );

    compacted.answered(text("here"));
    compacted.reviewed(None);
    compacted.consulted(Verdict::stop("too late"));
    assert_eq!(answer(&mut compacted).text, "here");
}

/// LOOP-17: a context that stays full is compacted three times in a row at most.
#[test]
fn compactions_are_capped() {
    let mut turn = turn();
    let mut compactions = 0;
    for round in 0..6 {
        loop {
            match turn.advance() {
                Action::Listen => turn.heard(Vec::new()),
                Action::Consult(Stage::Before) => turn.consulted(Verdict::compact("full")),
                Action::Consult(Stage::After) => turn.consulted(Verdict::proceed()),
                Action::Shrink(_) => {
                    compactions += 1;
                    turn.shrunk(Ok(Compacted::new(turn.history().to_vec())));
                }
                Action::Ask(_) => break,
                action => panic!("unexpected {action:?}"),
            }
        }
        turn.answered(calls(&["ls"]));
        settle(&mut turn, &format!("{round}"));
    }
    assert_eq!(compactions, 3);
}

/// CTX-5: a compaction that frees nothing reports it and is not repeated in the turn; a soft one without work
/// is silent.
#[test]
fn a_compaction_without_effect_is_not_repeated() {
    let soft = Shrink {
        depth: Depth::Soft,
        target: Some(7),
    };
    let mut turn = turn();
    let (mut hard, mut warnings) = (0, Vec::new());
    for round in 0..6 {
        loop {
            warnings.extend(turn.news().into_iter().filter_map(|event| match event {
                Event::Warning { message } => Some(message),
                _ => None,
            }));
            match turn.advance() {
                Action::Listen => turn.heard(Vec::new()),
                Action::Consult(Stage::Before) if round % 2 == 0 => {
                    turn.consulted(Verdict::shrink("x", soft));
                }
                Action::Consult(Stage::Before) => turn.consulted(Verdict::compact("full")),
                Action::Consult(Stage::After) => turn.consulted(Verdict::proceed()),
                Action::Shrink(shrink) => {
                    hard += u32::from(shrink.depth == Depth::Hard);
                    turn.shrunk(Err("there is nothing to summarize yet".to_owned()));
                }
                Action::Ask(_) => break,
                action => panic!("unexpected {action:?}"),
            }
        }
        turn.answered(calls(&["ls"]));
        settle(&mut turn, &format!("{round}"));
    }
    assert_eq!(hard, 1);
    assert_eq!(
        warnings,
        ["Compaction had no effect: there is nothing to summarize yet"]
    );
}

/// LOOP-8: a canceled reply is kept as far as it was received, marked `canceled`, and the history stays
/// valid.
#[test]
fn cancel_keeps_what_was_said() {
    let mut turn = turn();
    to_question(&mut turn);
    let partial = Message::new(&session(), Role::Assistant, vec![Part::text("I was say")], NOW);
    turn.answered(ModelAnswer::Canceled {
        partial: Some(partial),
    });
    assert_eq!(turn.advance(), Action::Done(Outcome::Canceled));
    assert_eq!(
        turn.history().last().and_then(|message| message.finish()),
        Some(FinishReason::Canceled)
    );

    let mut in_tools = super::tests::turn();
    to_question(&mut in_tools);
    in_tools.answered(calls(&["ls", "pwd"]));
    let Action::Call(planned) = in_tools.advance() else {
        panic!("expected calls")
    };
    let results = planned
        .iter()
        .map(|planned| refused(&planned.call, CANCELED_TEXT))
        .collect();
    in_tools.settled(Settled {
        results,
        charges: Vec::new(),
        end: Some(SettledEnd::Canceled),
        now: NOW,
    });
    assert_eq!(in_tools.advance(), Action::Done(Outcome::Canceled));
    let finishes: Vec<_> = in_tools
        .history()
        .iter()
        .filter_map(|message| message.finish())
        .collect();
    assert_eq!(finishes, [FinishReason::Canceled]);
    assert_eq!(
        in_tools.history().last().map(|message| message.role),
        Some(Role::Tool)
    );
}

/// EVT-2: reasoning, then text, of an iteration with calls; no text event for a final answer.
#[test]
fn order_of_news() {
    let mut turn = turn();
    to_question(&mut turn);
    turn.news();
    let thought = Part::Reasoning(crate::message::Reasoning {
        text: "hm".to_owned(),
        ..Default::default()
    });
    let call = call_part("c0", "ls", &json!({}).to_string());
    turn.answered(said(
        vec![thought, Part::text("let me look"), call],
        StopReason::ToolUse,
    ));
    let kinds = |turn: &mut Turn| -> Vec<String> {
        let kind = |event: &Event| {
            serde_json::to_value(event)
                .ok()?
                .get("type")?
                .as_str()
                .map(str::to_owned)
        };
        turn.news().iter().filter_map(kind).collect()
    };
    assert_eq!(kinds(&mut turn), ["usage", "reasoning", "message", "text"]);
    settle(&mut turn, "x");
    to_question(&mut turn);
    turn.news();
    turn.answered(text("that is all"));
    to_question(&mut turn);
    assert_eq!(kinds(&mut turn), ["usage", "message", "final"]);
}

/// LOOP-16: a reply that was paused by its provider is sent back unchanged.
#[test]
fn paused_replies_continue() {
    let mut turn = turn();
    to_question(&mut turn);
    turn.answered(said(vec![Part::text("searching")], StopReason::Pause));
    assert_eq!(to_question(&mut turn), Action::Ask(Ask::Iteration));
    assert_eq!(
        turn.history().last().map(|message| message.role),
        Some(Role::Assistant)
    );
}

/// LOOP-17: every turn ends within its limits, whatever the model does.
#[test]
fn every_turn_ends() {
    use proptest::prelude::*;
    let reply = prop_oneof![
        Just(text("fine")),
        Just(text("")),
        Just(calls(&["ls"])),
        Just(calls(&["a", "b"])),
        Just(said(vec![Part::text("cut")], StopReason::MaxTokens)),
        Just(said(vec![call_part("c0", "x", "{")], StopReason::MaxTokens)),
        Just(said(vec![Part::text("wait")], StopReason::Pause)),
        Just(said(vec![Part::text("no")], StopReason::Refusal)),
        Just(ModelAnswer::Failed {
            error: ProviderError::new(ProviderErrorKind::ContextOverflow, "long"),
            partial: None
        }),
        Just(ModelAnswer::Canceled { partial: None }),
    ];
    let script = (
        proptest::collection::vec(reply, 1..12),
        any::<bool>(),
        any::<bool>(),
        any::<u8>(),
    );
    proptest!(|((replies, nag, shrink, seed) in script)| {
        let mut turn = turn_with(Limits { max_iterations: 15, ..Limits::default() });
        let mut replies = replies.iter().cycle();
        let mut steps = 0;
        loop {
            steps += 1;
            prop_assert!(steps < 400, "no end in sight");
            match turn.advance() {
                Action::Listen => turn.heard(Vec::new()),
                Action::Consult(_) => turn.consulted(if shrink && steps % 3 == 0 { Verdict::compact("x") } else { Verdict::proceed() }),
                Action::Ask(_) => turn.answered(replies.next().cloned().unwrap_or_else(|| text("x"))),
                Action::Call(_) => settle(&mut turn, if seed % 2 == 0 { "same" } else { "x" }),
                Action::Shrink(_) => turn.shrunk(if seed % 3 == 0 { Err("no".to_owned()) } else { Ok(Compacted::new(turn.history().to_vec())) }),
                Action::Review(_) => turn.reviewed(nag.then(|| "more".to_owned())),
                Action::Done(_) => break,
            }
        }
        let terminal = turn.news().iter().filter(|event| event.is_terminal()).count();
        prop_assert_eq!(terminal, 1);
        // Every call of the turn has its result in the message after it.
        for pair in turn.history().windows(2) {
            if let [message, next] = pair && message.calls().next().is_some() {
                let calls: Vec<&CallId> = message.calls().map(|call| &call.id).collect();
                let results: Vec<&CallId> = next.results().map(|result| &result.call_id).collect();
                prop_assert_eq!(calls, results);
            }
        }
    });
}
