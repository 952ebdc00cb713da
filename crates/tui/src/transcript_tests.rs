use ratatui::text::Line;
use serde_json::json;
use windlass_api::{CallId, MessageId, SessionId, StepStatus};
use windlass_core::clock::Timestamp;

use super::*;
use crate::theme::Theme;

const OPTIONS: RenderOptions = RenderOptions {
    columns: 70,
    theme: Theme {
        palette: crate::theme::Palette::None,
        ascii: false,
    },
    unfolded: false,
    is_unfoldable: true,
};

fn text(lines: &[Line<'_>]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.to_string().trim_end().to_owned())
        .collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn delta(text: &str) -> Event {
    Event::Delta {
        kind: DeltaKind::Text,
        text: text.to_owned(),
    }
}

fn thinking(text: &str) -> Event {
    Event::Delta {
        kind: DeltaKind::Thinking,
        text: text.to_owned(),
    }
}

fn reasoning(text: &str) -> Event {
    Event::Reasoning {
        text: text.to_owned(),
    }
}

fn user(text: &str) -> Event {
    let message = Message::user(&SessionId::generate(), text, Timestamp(0));
    Event::Message {
        message: message.into(),
    }
}

fn answer(text: &str) -> Event {
    Event::Final {
        content: text.to_owned(),
        finish: FinishReason::EndTurn,
    }
}

fn call(number: u32, title: &str) -> Event {
    Event::StepStart {
        call_id: CallId::from(number.to_string()),
        title: title.to_owned(),
        number,
    }
}

fn result(number: u32, content: &str, details: Option<serde_json::Value>) -> Event {
    Event::ToolResult {
        call_id: CallId::from(number.to_string()),
        name: "bash".to_owned(),
        content: content.to_owned(),
        is_error: false,
        details,
    }
}

fn complete(number: u32, status: StepStatus) -> Event {
    Event::StepComplete {
        call_id: CallId::from(number.to_string()),
        status,
        duration_ms: 1_250,
    }
}

fn shown(events: &[Event]) -> (String, String) {
    let mut transcript = Transcript::default();
    for (seq, event) in (1..).zip(events) {
        transcript.hear(seq, event, 0);
    }
    let settled = transcript.settle(OPTIONS);
    (text(&settled), text(&transcript.live(OPTIONS, 4_000)))
}

/// UI-2: finished items go into the scrollback, others stay visible; a running call holds back the items
/// after it.
#[test]
fn a_running_call_holds_back_what_follows() {
    let output = Event::ToolOutput {
        call_id: CallId::from("2".to_owned()),
        text: "one\ntwo\n\u{1b}[31mthree".to_owned(),
    };
    let begin = [
        user("do it"),
        call(1, "bash ls"),
        result(1, "a\nb", None),
        complete(1, StepStatus::Completed),
    ];
    let mut events = begin.to_vec();
    events.extend([call(2, "bash make"), output]);
    let (settled, live) = shown(&events);
    assert_eq!(settled, "› do it\n\n● bash ls 1.2 s\n  a\n  b");
    assert_eq!(live, "◌ bash make 4 s\n  one\n  two\n  three");
    events.extend([result(2, "failed", None), complete(2, StepStatus::Error)]);
    let (settled, live) = shown(&events);
    assert!(settled.ends_with("✗ bash make 1.2 s\n  failed"), "{settled}");
    assert_eq!(live, "");
}

/// A reply with this many shell calls.
fn calls(count: u32) -> Event {
    let mut message = Message::user(&SessionId::generate(), "", Timestamp(0));
    message.role = Role::Assistant;
    message.parts = (1..=count)
        .map(|number| {
            Part::ToolCall(ToolCall {
                id: CallId::from(number.to_string()),
                name: "bash".to_owned(),
                input: json!({ "command": format!("make {number}") }).to_string(),
                finished: true,
            })
        })
        .collect();
    Event::Message {
        message: message.into(),
    }
}

/// UI-2: a call without output takes one row, and only between two of those there is no blank line, in the scrollback
/// and on the whole screen alike.
#[test]
fn short_calls_stand_together() {
    let mut transcript = Transcript::default();
    let mut events = Vec::new();
    for (number, output) in [
        (1, "(no output)"),
        (2, "(no output)"),
        (3, "ok"),
        (4, "(no output)"),
    ] {
        events.extend([
            call(number, "bash make"),
            result(number, output, None),
            complete(number, StepStatus::Completed),
        ]);
    }
    for (seq, event) in (1..).zip(&events) {
        transcript.hear(seq, event, 0);
    }
    let settled = text(&transcript.settle(OPTIONS));
    let quiet = "● bash make 1.2 s · no output";
    let expected = format!("{quiet}\n{quiet}\n\n● bash make 1.2 s\n  ok\n\n{quiet}");
    assert_eq!(settled, expected);
    assert_eq!(text(&transcript.all_lines(OPTIONS)), expected);
    assert_eq!(text(&transcript.recent(99, OPTIONS)), expected);
}

/// UI-2: concurrent calls have one row each, in order; early output of a later call appears when it is
/// announced, and calls that never ran disappear with the turn.
#[test]
fn calls_at_the_same_time_are_all_shown() {
    let output = Event::ToolOutput {
        call_id: CallId::from("3".to_owned()),
        text: "compiling".to_owned(),
    };
    let mut events = vec![calls(3), call(1, "bash make 1"), output];
    let (settled, live) = shown(&events);
    assert_eq!(settled, "");
    assert_eq!(live, "◌ bash make 1 4 s\n· bash make 2\n◌ bash make 3 4 s");
    events.extend([result(1, "ok", None), complete(1, StepStatus::Completed)]);
    let (settled, live) = shown(&events);
    assert_eq!(settled, "● bash make 1 1.2 s\n  ok");
    assert_eq!(live, "· bash make 2\n◌ bash make 3 4 s");
    let rest = [
        call(2, "bash make 2"),
        complete(2, StepStatus::Completed),
        call(3, "bash make 3"),
    ];
    events.extend(rest);
    let (settled, live) = shown(&events);
    assert!(settled.ends_with("  ok\n\n● bash make 2 1.2 s"), "{settled}");
    assert_eq!(live, "◌ bash make 3 4 s\n  compiling");

    let (_, live) = shown(&[calls(12), call(1, "bash make 1")]);
    assert!(live.ends_with("· bash make 9\n  and 3 more"), "{live}");
    let mut transcript = Transcript::default();
    transcript.hear(1, &calls(2), 0);
    let all = text(&transcript.all_lines(OPTIONS));
    assert_eq!(all, "· bash make 1\n· bash make 2", "on the whole screen, too");
    transcript.hear(2, &answer("Done."), 0);
    assert_eq!(text(&transcript.all_lines(OPTIONS)), "Done.");
}

/// UI-2: a command run by the user shows more output than a call of the model.
#[test]
fn the_output_of_an_own_command_is_shown() {
    let rows = |call_id: CallId, count: u32| {
        let lines: Vec<_> = (1..=count).map(|line| format!("line {line}")).collect();
        let mut events = [
            call(1, "bash ls"),
            result(1, &lines.join("\n"), None),
            complete(1, StepStatus::Completed),
        ];
        for event in &mut events {
            if let Event::StepStart { call_id: id, .. }
            | Event::ToolResult { call_id: id, .. }
            | Event::StepComplete { call_id: id, .. } = event
            {
                *id = call_id.clone();
            }
        }
        shown(&events).0
    };
    let own = own_call(&MessageId::generate());
    let settled = rows(own.clone(), 40);
    assert_eq!(settled.lines().count(), 41, "{settled}");
    let settled = rows(own, 100);
    assert!(
        settled.contains("  line 20\n  … 60 more lines\n  line 81\n"),
        "{settled}"
    );
    let settled = rows(CallId::from("1".to_owned()), 40);
    assert!(
        settled.contains("  line 3\n  … 34 more lines\n  line 38\n"),
        "{settled}"
    );
}

/// UI-2: a long user message is folded to its ends, and shown in full when scrolling back.
#[test]
fn a_long_text_of_the_user_is_folded() {
    let lines = |count: u32| (1..=count).map(|line| format!("line {line}")).collect::<Vec<_>>();
    let (settled, _) = shown(&[user(&lines(40).join("\n"))]);
    assert_eq!(settled.lines().count(), 40, "{settled}");
    let long = user(&lines(3_000).join("\n"));
    let (settled, _) = shown(std::slice::from_ref(&long));
    assert_eq!(settled.lines().count(), 21, "{settled}");
    let middle = "  line 10\n  … 2980 more lines (ctrl+o shows all)\n  line 2991\n";
    assert!(
        settled.starts_with("› line 1\n") && settled.contains(middle),
        "{settled}"
    );
    let (_, unfolded) = drawn(&[(0, long)]);
    assert_eq!(unfolded.lines().count(), 3_000);
}

/// UI-2: a file change is shown as a diff with its counts; a long one is folded.
#[test]
fn changes_are_shown_as_diffs() {
    let diff = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n";
    let events = [
        call(1, "edit_file a.txt"),
        result(1, "Updated", Some(json!({ "path": "a.txt", "diff": diff }))),
        complete(1, StepStatus::Completed),
    ];
    let (settled, _) = shown(&events);
    assert!(
        settled.starts_with("● edit_file a.txt (+1 -1) 1.2 s\n"),
        "{settled}"
    );
    assert!(settled.contains("-old") && settled.contains("+new"), "{settled}");
    let long: String = (0..100).map(|line| format!("+line {line}\n")).collect();
    let diff = format!("--- a\n+++ a\n@@ -0,0 +1,100 @@\n{long}");
    let events = [
        call(1, "write_file a"),
        result(1, "Created", Some(json!({ "diff": diff }))),
        complete(1, StepStatus::Completed),
    ];
    let (settled, _) = shown(&events);
    assert!(settled.ends_with("more lines"), "{settled}");
    assert!(settled.lines().count() < 30);
}

/// UI-2: an answer is shown once: as it streams, and not again when it is complete.
#[test]
fn an_answer_is_shown_once() {
    let whole = "First *paragraph*.\n\nSecond.";
    let streamed = [
        delta("First *para"),
        delta("graph*.\n\nSec"),
        delta("ond."),
        answer(whole),
    ];
    assert_eq!(shown(&streamed).0, "First paragraph.\n\nSecond.");
    assert_eq!(shown(&[answer(whole)]).0, "First paragraph.\n\nSecond.");
    // Deltas at the end were missed.
    assert_eq!(
        shown(&[delta("First *para"), answer(whole)]).0,
        "First paragraph.\n\nSecond."
    );
    // The final event omits the trailing line break.
    assert_eq!(
        shown(&[delta(whole), delta("\n\n"), answer(whole)]).0,
        "First paragraph.\n\nSecond."
    );
    let said = Event::Text {
        text: whole.to_owned(),
    };
    assert_eq!(shown(&[said, answer(whole)]).0, "First paragraph.\n\nSecond.");
}

/// UI-2: the text before the current paragraph is printed as soon as it cannot change, and once.
#[test]
fn paragraphs_settle_one_by_one() {
    let mut transcript = Transcript::default();
    let mut printed = String::new();
    for piece in ["One.\n\nTw", "o.\n\nThr", "ee."] {
        transcript.hear(1, &delta(piece), 0);
        printed.push_str(&text(&transcript.settle(OPTIONS)));
        printed.push('|');
    }
    assert_eq!(text(&transcript.live(OPTIONS, 0)), "Three.");
    transcript.hear(2, &answer("One.\n\nTwo.\n\nThree."), 0);
    printed.push_str(&text(&transcript.settle(OPTIONS)));
    assert_eq!(printed, "One.|Two.||Three.");
}

/// UI-2: a message says when a reply starts over, and its text is not shown twice.
#[test]
fn a_reply_that_starts_over_is_reported() {
    let retry = Event::Retry {
        attempt: 1,
        max_attempts: 3,
        delay_ms: 500,
        kind: windlass_api::ProviderErrorKind::Network,
        message: "the stream broke".to_owned(),
        discard: true,
    };
    let (settled, _) = shown(&[
        delta("Half an ans"),
        retry,
        delta("An answer."),
        answer("An answer."),
    ]);
    assert_eq!(settled, "· 1 retry: the stream broke\n\nAn answer.");
}

/// SAFE-7: no control sequence of the model, a tool or a provider gets into a line.
#[test]
fn foreign_text_is_harmless() {
    let bad = "\u{1b}[2J\u{1b}]0;title\u{7}x\u{9b}31m\u{202e}y";
    let events = [
        user(bad),
        Event::Reasoning { text: bad.to_owned() },
        call(1, bad),
        result(1, bad, Some(json!({ "diff": format!("+{bad}\n") }))),
        complete(1, StepStatus::Completed),
        Event::Warning {
            message: bad.to_owned(),
        },
        delta(bad),
        answer(bad),
    ];
    let (settled, _) = shown(&events);
    let is_bad = |letter: &char| letter.is_control() && *letter != '\n' || *letter == '\u{202e}';
    assert_eq!(settled.chars().find(is_bad), None, "{settled:?}");
    assert!(settled.contains('x'));
}

/// EVT-4: events of every kind are shown, or change what is shown.
#[test]
fn every_kind_of_event_is_shown() {
    let (settled, _) = shown(&[
        Event::Warning {
            message: "careful".to_owned(),
        },
        Event::Error {
            message: "it broke".to_owned(),
        },
        Event::Session(SessionEvent::Compaction {
            before: 9_000,
            after: 1_000,
            history: Vec::new(),
            fidelity: None,
        }),
        Event::Session(SessionEvent::Rewind { to: 3 }),
        Event::Session(SessionEvent::Goal {
            text: Some("ship it".to_owned()),
            explicit: true,
        }),
        Event::Session(SessionEvent::GoalCompleted {
            text: "ship\nit".to_owned(),
            how: GoalCompletion::Command,
        }),
        Event::Reasoning {
            text: "I think\nthat".to_owned(),
        },
        Event::Canceled {
            message: "Canceled by the user.".to_owned(),
        },
    ]);
    let expected = [
        "▲ careful",
        "✗ it broke",
        "· Context compacted: 9000 → 1000 tokens.",
        "· The conversation continues from an earlier point.",
        "· Goal reached: ship it",
        "∴ thought: I think",
        "▲ Canceled by the user.",
    ];
    assert_eq!(settled, expected.join("\n\n"));
}

/// LOOP-13: a reminder to the model is not shown as the user's words.
#[test]
fn a_reminder_is_not_the_users() {
    let reminder = vec![Part::context(FragmentSource::Reminder, "Items are open:\n- docs")];
    let message = Message::new(&SessionId::generate(), Role::User, reminder, Timestamp(0));
    let event = Event::Message {
        message: message.into(),
    };
    assert_eq!(shown(&[event]).0, "· Items are open:\n  - docs");
}

/// SES-7: a reply cut off by the end of the program is shown when the session is resumed.
#[test]
fn a_reply_that_was_cut_off_is_shown() {
    let session = SessionId::generate();
    let message = Message::new(
        &session,
        Role::Assistant,
        vec![Part::text("half a re")],
        Timestamp(0),
    );
    let message = message.finished(FinishReason::Interrupted, Timestamp(1));
    assert_eq!(message.id, MessageId::from(message.id.to_string()));
    let event = Event::Message {
        message: message.into(),
    };
    assert_eq!(shown(&[event]).0, "half a re");
}

/// GOAL-2, EVT-4: the message that a goal was reached appears below the answer, on one line, however long the
/// goal is.
#[test]
fn a_goal_is_reached_below_the_answer() {
    let reached = Event::Session(SessionEvent::GoalCompleted {
        text: "ship it ".repeat(50),
        how: GoalCompletion::Phrase,
    });
    let answer = Event::Final {
        content: "Done.".to_owned(),
        finish: FinishReason::EndTurn,
    };
    let (settled, _) = shown(&[reached, answer]);
    let note = settled.strip_prefix("Done.\n\n· Goal reached: ship it ship it");
    assert!(note.is_some_and(|rest| rest.ends_with('…')), "{settled}");
}

/// UI-2: notices are not part of the log: older entries can still be read page by page, even if a page shows
/// nothing.
#[test]
fn notices_do_not_hide_what_came_before() {
    let mut transcript = Transcript::default();
    transcript.tell(Tone::Dim, "resumed");
    assert_eq!(transcript.first_seq(), None);
    transcript.hear(40, &user("hello"), 0);
    transcript.tell(Tone::Dim, "a notice");
    transcript.settle(OPTIONS);
    assert_eq!(transcript.first_seq(), Some(40));
    let mut older = Transcript::default();
    older.hear(30, &complete(1, StepStatus::Completed), 0);
    transcript.put_before(older);
    assert_eq!(transcript.first_seq(), Some(30));
    for seq in 41..41 + KEPT as u64 {
        transcript.hear(seq, &user("more"), 0);
    }
    transcript.settle(OPTIONS);
    // The two notices and the first message were dropped for these.
    assert_eq!(transcript.first_seq(), Some(41));
}

/// UI-2: if the screen is cleared while an answer streams, its printed lines are printed again, as far as
/// they fit; unprinted lines are all printed, and nothing twice.
#[test]
fn an_answer_is_printed_again_while_it_is_received() {
    let mut transcript = Transcript::default();
    transcript.hear(1, &user("count"), 0);
    transcript.hear(1, &delta("One.\n\nTwo.\n\nThr"), 0);
    transcript.settle(OPTIONS);
    let again = |transcript: &mut Transcript, room| {
        let mut lines = transcript.printed(room, OPTIONS);
        lines.extend(transcript.settle(OPTIONS));
        text(&lines)
    };
    assert_eq!(again(&mut transcript, 20), "› count\n\nOne.\n\nTwo.");
    assert_eq!(text(&transcript.live(OPTIONS, 0)), "Thr");
    assert_eq!(again(&mut transcript, 3), "One.\n\nTwo.");
    transcript.hear(1, &delta("ee.\n\nFour.\n\nFi"), 0);
    assert_eq!(again(&mut transcript, 1), "Three.\n\nFour.");
    // The answer is complete, and its end was not printed when the screen was cleared.
    let whole = "One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive.";
    transcript.hear(2, &answer(whole), 0);
    assert_eq!(again(&mut transcript, 20), format!("› count\n\n{whole}"));
    assert_eq!(again(&mut transcript, 3), "Four.\n\nFive.");
}

/// UI-2: items that wait for the scrollback for long, as in full screen, keep only their short form: every
/// item is still printed, with its size.
#[test]
fn what_waits_for_long_is_kept_short() {
    let mut transcript = Transcript::default();
    let long: String = (0..200).map(|line| format!("+line {line}\n")).collect();
    let diff = json!({ "diff": format!("--- a\n+++ a\n@@ -0,0 +1,200 @@\n{long}") });
    transcript.hear(1, &call(1, "bash slow"), 0);
    for number in (2..=2 * WAITING as u32).step_by(2) {
        transcript.hear(1, &call(number, "bash ls"), 0);
        transcript.hear(1, &result(number, &long, None), 0);
        transcript.hear(1, &complete(number, StepStatus::Completed), 0);
        transcript.hear(1, &call(number + 1, "edit_file a"), 0);
        transcript.hear(1, &result(number + 1, "Updated", Some(diff.clone())), 0);
        transcript.hear(1, &complete(number + 1, StepStatus::Completed), 0);
    }
    transcript.hear(1, &reasoning("a\nb"), 0);
    assert!(transcript.is_running());
    // It ends when it is already far back.
    transcript.hear(1, &result(1, &long, None), 0);
    transcript.hear(1, &complete(1, StepStatus::Completed), 0);
    assert!(!transcript.is_running());
    let settled = text(&transcript.settle(OPTIONS));
    let first = "+line 0\n  +line 1\n  +line 2\n  … 197 more lines";
    let begin = format!(
        "● bash slow 1.2 s\n  {first}\n\n● bash ls 1.2 s\n  {first}\n\n● edit_file a (+200 -0) 1.2 s\n  … 201 more lines"
    );
    assert!(settled.starts_with(&begin), "{settled}");
    assert_eq!(settled.matches("● bash ls").count(), WAITING);
    assert_eq!(settled.matches("(+200 -0)").count(), WAITING);
    // The newest are complete: the thought, and calls of both kinds in turn.
    assert_eq!(settled.matches("+line 199").count(), WAITING / 2 - 1);
    assert!(settled.ends_with("more lines\n\n∴ thought: a"), "{settled}");
}

/// UI-2: the animation runs from the start of the first call to the end of the last, however a call ends.
#[test]
fn running_calls_are_counted() {
    let mut transcript = Transcript::default();
    let mut running = |event: Event| {
        transcript.hear(1, &event, 0);
        transcript.settle(OPTIONS);
        let open = transcript.open.iter();
        let open = open.filter(|placed| !placed.item.is_finished()).count();
        assert_eq!(transcript.running, open);
        transcript.is_running()
    };
    assert!(!running(user("go")));
    assert!(running(call(1, "a")));
    assert!(running(call(2, "b")));
    assert!(running(complete(2, StepStatus::Error)));
    assert!(running(complete(2, StepStatus::Error)));
    assert!(!running(complete(1, StepStatus::Completed)));
    assert!(running(call(3, "c")));
    assert!(!running(answer("Done.")));
    assert!(!running(complete(3, StepStatus::Completed)));
}

/// Returns the printed text if every event is drawn at once, and the unfolded view afterwards.
fn drawn(events: &[(u64, Event)]) -> (String, String) {
    let mut transcript = Transcript::default();
    let mut printed = Vec::new();
    for (seq, (now_ms, event)) in (1..).zip(events) {
        transcript.hear(seq, event, *now_ms);
        printed.extend(transcript.settle(OPTIONS));
    }
    let unfolded = RenderOptions {
        unfolded: true,
        ..OPTIONS
    };
    (text(&printed), text(&transcript.all_lines(unfolded)))
}

/// UI-2: a thought is shown above the answer with its duration, although its full text arrives when part of
/// the answer is printed; scrolling back shows all of it.
#[test]
fn a_thought_stands_above_the_answer() {
    let (printed, unfolded) = drawn(&[
        (0, user("why")),
        (1_000, thinking("\nFirst.\nSec")),
        (2_000, thinking("ond.\n")),
        (4_500, delta("One.\n\nTw")),
        // The model thinks again in the middle of the answer.
        (5_000, thinking("Third.")),
        (6_000, delta("o.\n\nThree.")),
        (9_000, reasoning("First.\nSecond.\nThird.")),
        (9_000, answer("One.\n\nTwo.\n\nThree.")),
    ]);
    let said = "One.\n\nTwo.\n\nThree.";
    assert_eq!(printed, format!("› why\n\n∴ thought for 3.5 s: First.\n\n{said}"));
    let all = "∴ thought for 4.5 s\n  First.\n  Second.\n  Third.";
    assert_eq!(unfolded, format!("› why\n\n{all}\n\n{said}"));
}

/// UI-2: reasoning before a call is shown once, with its duration.
#[test]
fn a_thought_stands_above_a_call() {
    let input = Event::Delta {
        kind: DeltaKind::ToolInput,
        text: "{".to_owned(),
    };
    // The call's arguments stream after the reasoning, and take their own time.
    for (writes, told_ms) in [(vec![(3_000, input)], 8_000), (Vec::new(), 3_000)] {
        let mut events = vec![(1_000, thinking("First."))];
        events.extend(writes);
        events.extend([
            (told_ms, reasoning("First.\nSecond.")),
            (9_000, call(1, "bash ls")),
            (9_000, complete(1, StepStatus::Completed)),
        ]);
        let (printed, unfolded) = drawn(&events);
        assert_eq!(printed, "∴ thought for 2.0 s: First.\n\n● bash ls 1.2 s");
        assert!(unfolded.starts_with("∴ thought for 2.0 s\n  First.\n  Second."));
    }
}

/// UI-2: a thought that arrives after part of the answer was printed appears below the answer, not within it;
/// the answer is still shown once.
#[test]
fn a_late_thought_stands_below_the_answer() {
    let said = "One.\n\nTwo.";
    let same = Event::Text {
        text: said.to_owned(),
    };
    for live in [vec![(0, thinking("Hm"))], Vec::new()] {
        let mut events = vec![(0, delta("One.\n\nTw"))];
        events.extend(live);
        events.extend([
            (0, delta("o.")),
            (0, reasoning("Hm.")),
            (0, same.clone()),
            (0, answer(said)),
        ]);
        let (printed, unfolded) = drawn(&events);
        let first = printed.strip_prefix("One.\n\nTwo.\n\n∴ thought: Hm");
        assert!(
            first.is_some_and(|rest| rest.is_empty() || rest == "."),
            "{printed}"
        );
        assert_eq!(unfolded, "One.\n\nTwo.\n\n∴ thought\n  Hm.");
    }
    // No part of the answer was printed.
    let (settled, _) = shown(&[delta("One.\n\nTw"), reasoning("Hm."), answer(said)]);
    assert_eq!(settled, "∴ thought: Hm.\n\nOne.\n\nTwo.");
}

/// UI-2: the reasoning of a stopped reply is not mistaken for that of the next one.
#[test]
fn thoughts_of_a_stopped_reply_stay_as_they_are() {
    let canceled = Event::Canceled {
        message: "Canceled.".to_owned(),
    };
    let (_, unfolded) = drawn(&[
        (0, thinking("Old.")),
        (0, delta("Half")),
        (0, canceled),
        (0, reasoning("New.")),
        (0, answer("Whole.")),
    ]);
    assert_eq!(
        unfolded,
        "∴ thought\n  Old.\n\nHalf\n\n▲ Canceled.\n\n∴ thought\n  New.\n\nWhole."
    );
}

/// UI-2: long reasoning keeps its end, and its first line for the short form.
#[test]
fn long_thinking_keeps_its_first_line() {
    let mut events = vec![(0, thinking("The first line.\n"))];
    events.extend((0..1_000).map(|number| (0, thinking(&format!("thought {number}\n")))));
    events.push((60_000, delta("Said.")));
    let (printed, unfolded) = drawn(&events);
    assert_eq!(printed, "∴ thought for 1 min 0 s: The first line.");
    assert!(unfolded.contains("thought 999") && !unfolded.contains("thought 100\n"));
    assert!(unfolded.len() < 8_000);
}
