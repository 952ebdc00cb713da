//! `/undo`, `/redo` and `/checkpoint` with fake checkpoints.

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{Client, Commands, Event, OnBusy, SessionId, Submission};
use windlass_core::script::Scene;
use windlass_service::{Options, Service};

use super::bed::{Bed, all, answer, new_session, say};

async fn told(service: &Service, session: &SessionId, line: &str) -> String {
    match service.command(session, line).await {
        Ok(reply) => reply.text,
        Err(error) => format!("error: {error}"),
    }
}

fn bed() -> Bed {
    let bed = Bed::new((0..10).map(|number| Scene::text(&format!("answer {number}"))));
    bed.kit.keep_checkpoints();
    bed
}

/// Returns the last request without the model's answers.
fn asked(bed: &Bed) -> Vec<String> {
    let seen = bed.provider.seen().last().cloned().unwrap_or_default();
    let lines = seen.lines().filter_map(|line| line.strip_prefix("user: "));
    lines.map(str::to_owned).collect()
}

/// Returns the number of a message in a list.
fn number(listed: &str, message: &str) -> u64 {
    let line = listed.lines().find(|line| line.ends_with(message));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{message}: {listed}"))
}

/// SES-11: an undo of files reports the change of each path, the changes it does not cover, and how to redo
/// them; the conversation stays.
#[tokio::test]
async fn files_are_undone() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    let none = told(&service, &session, "/undo").await;
    assert!(none.contains("Nothing to undo"), "{none}");
    for prompt in ["one", "two", "three"] {
        answer(&service, &session, prompt).await;
    }
    let listed = told(&service, &session, "/checkpoint").await;
    assert!(
        listed.lines().count() == 3 && listed.lines().next().unwrap().contains("\"three\""),
        "{listed}"
    );
    let shown = told(&service, &session, "/checkpoint show 2").await;
    assert!(
        shown.contains("file2.txt: modified") && shown.contains("    +new"),
        "{shown}"
    );
    let unknown = told(&service, &session, "/checkpoint show 9").await;
    assert!(unknown.contains("there are checkpoints 1 to 3"), "{unknown}");

    let undone = told(&service, &session, "/undo").await;
    assert_eq!(
        undone,
        "Undid checkpoint 3 (\"three\").\n  file3.txt: restored\n  Not covered: big.bin is larger than is kept\n\
         The conversation was not changed.\nTo redo: /redo, or `windlass redo`."
    );
    assert!(
        told(&service, &session, "/checkpoint list")
            .await
            .contains("(undone)")
    );
    let redone = told(&service, &session, "/redo").await;
    assert!(
        redone.starts_with("Redid checkpoint 3") && !redone.contains("conversation"),
        "{redone}"
    );
    assert!(
        told(&service, &session, "/redo")
            .await
            .contains("nothing to do again")
    );
    let rewound = told(&service, &session, "/checkpoint rewind 2").await;
    assert!(rewound.starts_with("Undid checkpoints 2 to 3."), "{rewound}");
    answer(&service, &session, "four").await;
    assert_eq!(asked(&bed), ["one", "two", "three", "four"]);
}

/// SES-11: files that another program changed are left alone unless the user insists.
#[tokio::test]
async fn conflicts_are_reported() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    answer(&service, &session, "one").await;
    let kept = bed.kit.checkpoints.lock().unwrap().clone().unwrap();
    *kept.conflict.lock().unwrap() = vec!["mine.txt".to_owned()];
    let refused = told(&service, &session, "/undo").await;
    assert!(
        refused.contains("Nothing was changed") && refused.contains("mine.txt"),
        "{refused}"
    );
    assert!(refused.contains("--force"), "{refused}");
    assert!(
        told(&service, &session, "/undo --force")
            .await
            .starts_with("Undid checkpoint 1")
    );
}

/// SES-11: on request the conversation is undone with the files, `/redo` restores it, and both survive
/// opening the session again.
#[tokio::test]
async fn the_conversation_is_undone() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    for prompt in ["one", "two", "three"] {
        answer(&service, &session, prompt).await;
    }
    let first = told(&service, &session, "/undo --conversation").await;
    assert!(
        first.contains("The conversation continues from before that."),
        "{first}"
    );
    told(&service, &session, "/undo --conversation").await;
    // Forward again, step by step.
    let redone = told(&service, &session, "/redo").await;
    assert!(redone.contains("The conversation was restored."), "{redone}");
    service.close().await;
    let service = bed.service();
    answer(&service, &session, "instead").await;
    assert_eq!(asked(&bed), ["one", "two", "instead"]);
    // The conversation has continued, so only files can be redone.
    let redone = told(&service, &session, "/redo").await;
    assert!(
        redone.contains("Redid checkpoint 3") && redone.contains("it has continued since"),
        "{redone}"
    );
    answer(&service, &session, "more").await;
    assert_eq!(asked(&bed), ["one", "two", "instead", "more"]);
}

/// SES-11: undo and redo of the whole conversation, back and forth, lose nothing.
#[tokio::test]
async fn back_and_forth_loses_nothing() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    for prompt in ["one", "two", "three"] {
        answer(&service, &session, prompt).await;
    }
    for _ in 0..2 {
        told(&service, &session, "/checkpoint rewind 1 --conversation").await;
        let redone = told(&service, &session, "/redo").await;
        assert!(redone.contains("The conversation was restored."), "{redone}");
    }
    told(&service, &session, "/undo --conversation").await;
    told(&service, &session, "/undo").await;
    // This undo restored files only.
    let files = told(&service, &session, "/redo").await;
    assert!(!files.contains("onversation"), "{files}");
    let both = told(&service, &session, "/redo").await;
    assert!(both.contains("The conversation was restored."), "{both}");
    answer(&service, &session, "four").await;
    assert_eq!(asked(&bed), ["one", "two", "three", "four"]);
}

/// SES-11: `/rewind` lists and accepts only messages of the current conversation, so that files and
/// conversation agree.
#[tokio::test]
async fn messages_left_behind_are_not_offered() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    for prompt in ["one", "two"] {
        answer(&service, &session, prompt).await;
    }
    let before = told(&service, &session, "/rewind").await;
    let (one, two) = (number(&before, "one"), number(&before, "two"));
    told(&service, &session, &format!("/rewind {one}")).await;
    answer(&service, &session, "instead").await;
    let listed = told(&service, &session, "/rewind").await;
    assert!(
        listed.contains("  instead") && !listed.contains("  one") && !listed.contains("  two"),
        "{listed}"
    );
    let refused = told(&service, &session, &format!("/rewind {two}")).await;
    assert!(
        refused.contains("is not one of your messages in this conversation"),
        "{refused}"
    );
    let kept = told(&service, &session, "/checkpoint list").await;
    let latest = kept.lines().next().unwrap();
    assert!(
        latest.contains("\"instead\"") && !latest.contains("(undone)"),
        "{kept}"
    );
    answer(&service, &session, "more").await;
    assert_eq!(asked(&bed), ["instead", "more"]);
}

/// SES-11: file changes of turns left behind by a rewind are still undone later.
#[tokio::test]
async fn files_of_what_was_left_behind_go_back() {
    let bed = bed();
    let service = bed.service();
    let session = new_session(&service).await.id;
    for prompt in ["one", "two"] {
        answer(&service, &session, prompt).await;
    }
    let listed = told(&service, &session, "/rewind").await;
    let (one, two) = (number(&listed, "one"), number(&listed, "two"));
    told(&service, &session, &format!("/rewind {two} --keep-files")).await;
    let both = told(&service, &session, &format!("/rewind {one}")).await;
    assert!(
        both.contains("file1.txt: restored") && both.contains("file2.txt: restored"),
        "{both}"
    );
}

/// SES-11: if the conversation cannot be rewound after the files were restored, the restored files are
/// reported.
#[tokio::test]
async fn restored_files_are_reported_when_the_record_fails() {
    let bed = bed();
    let owner = windlass_store::owner();
    let service = bed.service_of(owner.clone(), Options::default());
    let session = new_session(&service).await.id;
    answer(&service, &session, "one").await;
    let kept = bed.kit.checkpoints.lock().unwrap().clone().unwrap();
    *kept.lost.lock().unwrap() = Some((bed.store(), session.clone(), owner));
    let told = told(&service, &session, "/rewind 1").await;
    assert!(
        told.starts_with("The conversation could not be rewound: "),
        "{told}"
    );
    assert!(told.contains("file1.txt: restored"), "{told}");
}

/// SES-11, SES-3: a rewind to a message sent during a turn keeps the file changes of that turn, and reports
/// it; a rewind to the turn's start undoes them.
#[tokio::test]
async fn files_of_a_steered_turn_are_reported() {
    let bed = Bed::new([
        Scene::call("c1", "wait", json!({})),
        Scene::text("done"),
        Scene::text("again"),
    ]);
    bed.kit.keep_checkpoints();
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    while !matches!(events.next().await.unwrap().event, Event::ToolCall { .. }) {}
    let steer = Submission {
        on_busy: OnBusy::Steer,
        ..say(&session, "mind the gap")
    };
    service.submit(steer).await.unwrap();
    bed.gate.notify_one();
    all(events).await;
    let listed = told(&service, &session, "/rewind").await;
    let (steer, begin) = (number(&listed, "mind the gap"), number(&listed, "go"));
    let left = told(&service, &session, &format!("/rewind {steer}")).await;
    let way = format!("/rewind {begin} undoes them");
    assert!(
        left.contains("sent while \"go\" was running") && left.contains(&way),
        "{left}"
    );
    assert!(!left.contains("restored"), "{left}");
    // The next input is a turn of its own.
    answer(&service, &session, "instead").await;
    let listed = told(&service, &session, "/rewind").await;
    let next = number(&listed, "instead");
    let next = told(&service, &session, &format!("/rewind {next}")).await;
    assert!(
        next.contains("file2.txt: restored") && !next.contains("was running"),
        "{next}"
    );
    let back = told(&service, &session, &format!("/rewind {begin}")).await;
    assert!(
        back.contains("file1.txt: restored") && !back.contains("worked on"),
        "{back}"
    );
}
