//! Keys and lines in, answers out.

use windlass_core::id::CallId;
use windlass_core::tool::Category;

use super::*;

const CLEAN: Cleaning = Cleaning {
    line: str::to_owned,
    text: str::to_owned,
};

fn approval(once_only: bool) -> Approval {
    let waiting = Waiting::PermissionRequest {
        call_id: CallId::from("1"),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: vec!["git push".to_owned()],
        reasons: vec!["it reaches the network".to_owned()],
        preview: Some("$ git push".to_owned()),
        once_only,
        agent: None,
    };
    let mut approval = Approval::of(&waiting, CLEAN).expect("a permission request");
    approval.set_seen(true);
    approval
}

/// Types characters with a pause between them, and waits afterwards. Returns the first effect that ends the
/// question, or the last one.
fn typed(approval: &mut Approval, text: &str, pause: u64) -> Pressed {
    let mut now = 10_000;
    for character in text.chars() {
        let pressed = approval.press(ApprovalKey::Character(character), now);
        if matches!(pressed, Pressed::Answered(_) | Pressed::Tell(_) | Pressed::View) {
            return pressed;
        }
        now += pause;
    }
    approval.tick(now + HOLD_MS)
}

/// SAFE-6: no word approves anything, however it begins; it becomes a text for the model.
#[test]
fn words_never_approve() {
    let words = [
        "stop!",
        "skip",
        "sorry",
        "show me",
        "yes",
        "yep do it",
        "no wait",
        "always ask",
        "abort",
        "ssss",
        "yy",
        "aa",
        "s s",
        "y.",
        "nope",
        "1st",
        "YES",
        "a-b",
    ];
    for word in words {
        for pause in [0, 1, 60, HOLD_MS - 1] {
            let mut approval = approval(false);
            let pressed = typed(&mut approval, word, pause);
            let begin: String = word.chars().take(2).collect();
            assert_eq!(pressed, Pressed::Tell(begin), "{word} with {pause} ms");
            assert!(approval.is_telling());
            assert_eq!(
                approval.press(ApprovalKey::Character('y'), 90_000),
                Pressed::Ignored,
                "the rest is text"
            );
        }
    }
}

/// SAFE-6: a letter that stands alone answers once its time has passed, or with enter; a lasting yes needs the
/// same letter, or enter, once more.
#[test]
fn single_letters_answer() {
    for (letter, answer) in [('y', Answer::Once), ('Y', Answer::Once), ('n', Answer::No)] {
        let mut approval = approval(false);
        assert_eq!(approval.press(ApprovalKey::Character(letter), 0), Pressed::Taken);
        assert_eq!(approval.due_ms(), Some(HOLD_MS));
        assert_eq!(approval.tick(HOLD_MS - 1), Pressed::Ignored);
        assert_eq!(approval.tick(HOLD_MS), Pressed::Answered(answer.clone()));
        let mut approval = self::approval(false);
        approval.press(ApprovalKey::Character(letter), 0);
        assert_eq!(approval.press(ApprovalKey::Enter, 10), Pressed::Answered(answer));
    }
    for (letter, answer) in [('s', Answer::Session), ('a', Answer::Always)] {
        let mut approval = approval(false);
        assert_eq!(typed(&mut approval, &letter.to_string(), 0), Pressed::Taken);
        let (_, question) = approval.confirmation().expect("a question");
        assert!(question.ends_with("about bash git push?"), "{question}");
        let mut other = approval.clone();
        assert_eq!(
            typed(&mut approval, &letter.to_string(), 0),
            Pressed::Answered(answer.clone())
        );
        assert_eq!(other.press(ApprovalKey::Enter, 0), Pressed::Answered(answer));
        let mut approval = self::approval(false);
        typed(&mut approval, &letter.to_string(), 0);
        assert_eq!(approval.press(ApprovalKey::Escape, 0), Pressed::Taken);
        assert_eq!(approval.confirmation(), None);
        typed(&mut approval, &letter.to_string(), 0);
        assert_eq!(typed(&mut approval, "x", 0), Pressed::Taken);
        assert_eq!(approval.confirmation(), None, "another letter takes it back");
    }
    // The letter that is due counts before the next one.
    let mut late = approval(false);
    late.press(ApprovalKey::Character('y'), 0);
    assert_eq!(
        late.press(ApprovalKey::Character('o'), 400),
        Pressed::Answered(Answer::Once)
    );
}

/// SAFE-6: the arrows move, enter takes the selected row, a number selects its row.
#[test]
fn the_list_is_driven_by_arrows() {
    let mut approval = approval(false);
    assert_eq!(approval.press(ApprovalKey::Down, 0), Pressed::Taken);
    assert_eq!(approval.press(ApprovalKey::Enter, 0), Pressed::Taken);
    assert!(matches!(
        approval.confirmation(),
        Some((ApprovalChoice::Session, _))
    ));
    approval.press(ApprovalKey::Up, 0);
    assert_eq!(
        approval.press(ApprovalKey::Enter, 0),
        Pressed::Answered(Answer::Once)
    );
    approval.press(ApprovalKey::Up, 0);
    assert_eq!(
        approval.press(ApprovalKey::Enter, 0),
        Pressed::Tell(String::new())
    );
    let mut approval = self::approval(false);
    typed(&mut approval, "4", 0);
    assert_eq!(approval.selected(), 3);
    assert_eq!(
        approval.press(ApprovalKey::Enter, 0),
        Pressed::Answered(Answer::No)
    );
}

/// SAFE-6: what is no answer says which keys are; escape is left to the front end.
#[test]
fn unknown_keys_get_a_hint() {
    for key in [ApprovalKey::Other, ApprovalKey::Character(' ')] {
        let mut approval = approval(false);
        assert_eq!(approval.press(key, 0), Pressed::Taken);
        assert!(approval.hint().is_some_and(|hint| hint.contains("y, s, a, n, t")));
        assert_eq!(approval.press(ApprovalKey::Escape, 0), Pressed::Ignored);
        assert_eq!(approval.hint(), None);
    }
    let mut approval = approval(false);
    typed(&mut approval, "z", 0);
    assert!(approval.hint().is_some());
}

/// SAFE-2: a listed command offers no lasting yes.
#[test]
fn a_listed_command_is_allowed_only_once() {
    for letter in ['s', 'a'] {
        let mut approval = approval(true);
        assert_eq!(typed(&mut approval, &letter.to_string(), 0), Pressed::Taken);
        assert_eq!(approval.confirmation(), None);
        assert_eq!(approval.line(&letter.to_string()), Pressed::Taken);
        assert_eq!(approval.confirmation(), None);
    }
    assert_eq!(
        approval(true).choices(),
        [ApprovalChoice::Once, ApprovalChoice::No, ApprovalChoice::Tell]
    );
}

/// SAFE-6: nothing that was not shown completely is approved.
#[test]
fn what_is_out_of_sight_is_not_approved() {
    for answer in ["y", "s", "a"] {
        let mut approval = approval(false);
        approval.set_seen(false);
        assert_eq!(typed(&mut approval, answer, 0), Pressed::Taken);
        assert_eq!(typed(&mut approval, answer, 0), Pressed::Taken);
        assert!(approval.hint().is_some_and(|hint| hint.contains("out of sight")));
        assert_eq!(approval.line(answer), Pressed::Taken);
    }
    let mut approval = approval(false);
    approval.set_seen(false);
    assert_eq!(typed(&mut approval, "v", 0), Pressed::View);
    assert_eq!(typed(&mut approval, "n", 0), Pressed::Answered(Answer::No));
}

/// SAFE-6: lines follow the same rules: a letter answers, a word does not approve, other text is for the model.
#[test]
fn lines_answer() {
    let note = |text: &str| Pressed::Answered(Answer::NoBecause(text.to_owned()));
    let cases = [
        ("y", Pressed::Answered(Answer::Once)),
        (" Y ", Pressed::Answered(Answer::Once)),
        ("1", Pressed::Answered(Answer::Once)),
        ("n", Pressed::Answered(Answer::No)),
        ("no", Pressed::Answered(Answer::No)),
        ("yes", Pressed::Taken),
        ("Always", Pressed::Taken),
        ("", Pressed::Taken),
        ("x", Pressed::Taken),
        ("9", Pressed::Taken),
        ("stop!", note("stop!")),
        ("yes, but use the cache", note("yes, but use the cache")),
        ("v", Pressed::View),
        ("t", Pressed::Tell(String::new())),
    ];
    for (line, expected) in cases {
        assert_eq!(approval(false).line(line), expected, "{line}");
    }
    let mut approval = approval(false);
    assert_eq!(approval.line("s"), Pressed::Taken);
    assert_eq!(approval.line("stop"), note("stop"), "a word does not confirm");
    let mut approval = self::approval(false);
    approval.line("a");
    assert_eq!(approval.line("a"), Pressed::Answered(Answer::Always));
    let mut approval = self::approval(false);
    approval.line("t");
    assert_eq!(approval.line("y"), note("y"), "it is the text");
}

/// SAFE-6: the question and its reasons are sentences.
#[test]
fn a_question_in_plain_words() {
    let approval = approval(false);
    assert_eq!(approval.question(), "Run this command?");
    assert_eq!(approval.reasons(), ["It reaches the network."]);
}
