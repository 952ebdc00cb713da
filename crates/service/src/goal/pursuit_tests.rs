//! The step after a turn without input.

use windlass_core::message::FinishReason;

use super::*;

fn answered(text: &str) -> Outcome {
    Outcome::Answered(Answered {
        text: text.to_owned(),
        finish: FinishReason::EndTurn,
        done: false,
    })
}

fn failed(kind: FailureKind, retry_after: Option<u64>) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message: "why".to_owned(),
        hint: None,
        finish: FinishReason::Error,
        retry_after: retry_after.map(Duration::from_secs),
    })
}

fn goals() -> Goals {
    Goals {
        completion_phrases: vec!["done".to_owned()],
        ..Goals::default()
    }
}

/// GOAL-9: rate limits are waited for: as long as they say, or longer each time; a quota only if it names a time.
#[test]
fn limits_of_providers_are_waited_for() {
    let mut pursuit = Pursuit::read(&[]);
    let limit = FailureKind::Provider(ProviderErrorKind::RateLimit);
    let quota = FailureKind::Provider(ProviderErrorKind::Quota);
    let mut after = |outcome: Outcome| pursuit.ended(Some(&outcome), &goals());
    let wait = |seconds| After::Wait(Duration::from_secs(seconds), "why".to_owned());
    assert_eq!(after(failed(limit, Some(700))), wait(700));
    assert_eq!(after(failed(limit, None)), wait(30));
    assert_eq!(after(failed(limit, None)), wait(60));
    assert_eq!(after(failed(quota, Some(9))), wait(9));
    assert_eq!(after(failed(quota, None)), After::Next);
}

/// GOAL-3: three equal blockers in a row end the work; an answer in between starts the count again.
#[test]
fn equal_blockers_end_the_work() {
    let mut pursuit = Pursuit::read(&[]);
    let blocked = || answered("BLOCKED: no key\nmore");
    for outcome in [blocked(), blocked(), answered("fine"), blocked(), blocked()] {
        let after = pursuit.ended(Some(&outcome), &goals());
        assert!(matches!(after, After::Next | After::Review));
    }
    let stop = After::Stop(GoalStop::SameBlocker, "no key".to_owned());
    assert_eq!(pursuit.ended(Some(&blocked()), &goals()), stop);
}

/// GOAL-3: equal answers are counted, whatever their spacing; the model's claim to be done is noticed.
#[test]
fn answers_are_compared() {
    let mut pursuit = Pursuit::read(&[]);
    for text in ["I  think.", "I think.\n", "I think."] {
        assert!(!pursuit.is_stuck(3));
        assert_eq!(pursuit.ended(Some(&answered(text)), &goals()), After::Review);
        assert_eq!(pursuit.phase, Phase::Review { says_done: false });
    }
    assert!(pursuit.is_stuck(3));
    pursuit.ended(Some(&answered("It is done.")), &goals());
    assert_eq!(pursuit.phase, Phase::Review { says_done: true });
    assert!(!pursuit.is_stuck(3));
    assert_eq!(pursuit.ended(Some(&Outcome::Canceled), &goals()), After::Stopped);
}
