//! Commands that the user runs in a session: calls without a model, reported to it in its next turn.

use futures_util::StreamExt;
use windlass_api::{Client, ClientError, Commands, Envelope, Event, EventStream, Follow, Records, SessionId};
use windlass_core::script::Scene;
use windlass_service::Service;

use super::bed::{Bed, all, answer, new_session, texts};

async fn shell(service: &Service, session: &SessionId, command: &str) -> EventStream {
    let line = format!("/shell {command}");
    match service.command(session, &line).await.unwrap().follow {
        Follow::Watch(events) => events,
        _ => panic!("{line} has no events"),
    }
}

/// Returns the kinds of events, for comparison.
fn kinds(events: &[Envelope]) -> Vec<&'static str> {
    let kind = |envelope: &Envelope| match &envelope.event {
        Event::StepStart { .. } => "step_start",
        Event::ToolCall { .. } => "tool_call",
        Event::ToolResult { .. } => "tool_result",
        Event::StepComplete { .. } => "step_complete",
        Event::Message { .. } => "message",
        Event::Final { .. } => "final",
        Event::Canceled { .. } => "canceled",
        _ => "other",
    };
    events.iter().map(kind).collect()
}

/// UI-2: a user's command is a call in the record, sends no request, and is visible to the model in the next
/// turn, even after the session was opened again.
#[tokio::test]
async fn own_commands_are_told_to_the_next_turn() {
    let bed = Bed::new([Scene::text("I see")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let events = all(shell(&service, &session, "note one\n  two").await).await;
    let order = [
        "step_start",
        "tool_call",
        "tool_result",
        "step_complete",
        "message",
        "final",
    ];
    assert_eq!(kinds(&events), order);
    assert_eq!(*bed.notes.lock().unwrap(), ["one\n  two"]);
    let said = "I ran this command myself:\n\n```sh\nnote one\n  two\n```\n\nIts output:\n\n```\nnoted\n```";
    assert_eq!(texts(&events), [said]);
    assert!(bed.provider.seen().is_empty());
    assert_eq!(
        service.tail(&session, None, 100).await.unwrap().len(),
        events.len()
    );

    service.close().await;
    let service = bed.service();
    assert_eq!(answer(&service, &session, "and?").await, "I see");
    let asked = bed.provider.seen().concat();
    assert!(asked.contains("I ran this command myself"), "{asked}");
}

/// UI-2, CMD-2: a command is refused while a turn or another command runs; a cancel ends it, and the session
/// is idle again.
#[tokio::test]
async fn own_commands_can_be_stopped() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = shell(&service, &session, "wait").await;
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolCall { .. }) {
            break;
        }
    }
    let busy = service.command(&session, "/shell note x").await.err();
    assert!(matches!(busy, Some(ClientError::CommandBusy { .. })), "{busy:?}");
    assert!(service.cancel(&session).await);
    let rest = all(events).await;
    assert_eq!(
        kinds(&rest),
        ["tool_result", "step_complete", "message", "canceled"]
    );
    assert!(texts(&rest)[0].contains("It failed:"), "{rest:?}");
    all(shell(&service, &session, "note again").await).await;
    assert_eq!(*bed.notes.lock().unwrap(), ["again"]);
    let usage = service.command(&session, "/shell").await.err();
    assert!(matches!(usage, Some(ClientError::CommandUsage(_))), "{usage:?}");
}

/// CMD-1: the report of a user's command is not a message to rewind to: it is not listed, and its number is
/// refused.
#[tokio::test]
async fn own_commands_are_no_messages() {
    let bed = Bed::new([Scene::text("I see")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let told = async |line: &str| match service.command(&session, line).await {
        Ok(reply) => reply.text,
        Err(error) => format!("error: {error}"),
    };
    let events = all(shell(&service, &session, "note one").await).await;
    assert_eq!(told("/rewind").await, "No messages yet.");
    let of_message = |envelope: &&Envelope| matches!(envelope.event, Event::Message { .. });
    let number = events.iter().find(of_message).unwrap().seq;
    let refused = told(&format!("/rewind {number}")).await;
    assert!(refused.contains("is not one of your messages"), "{refused}");
    assert_eq!(answer(&service, &session, "and?").await, "I see");
    let listed = told("/rewind").await;
    assert!(
        listed.contains("and?") && !listed.contains("I ran this"),
        "{listed}"
    );
}
