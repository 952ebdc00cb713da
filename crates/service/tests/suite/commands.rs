//! Commands from a front end: a line in, a text out, and no request to a model.

use futures_util::StreamExt;
use serde_json::json;
use windlass_api::{
    Client, ClientError, CommandSource, Commands, Event, EventStream, FailureKind, Follow, Part, SessionId,
};
use windlass_core::script::Scene;
use windlass_service::{DefinedCommand, NotReady, Service};

use super::bed::{Bed, all, answer, new_session, say};

async fn told(service: &Service, session: &SessionId, line: &str) -> String {
    service
        .command(session, line)
        .await
        .map(|reply| reply.text)
        .unwrap()
}

async fn refused(service: &Service, session: &SessionId, line: &str) -> ClientError {
    match service.command(session, line).await {
        Ok(reply) => panic!("{line}: {}", reply.text),
        Err(error) => error,
    }
}

/// Reads until a call has started.
async fn begun(events: &mut EventStream) {
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::ToolCall { .. }) {
            return;
        }
    }
    panic!("no call");
}

/// CMD-1, CMD-2: no built-in command sends a request to a model, whatever its arguments; each reports a
/// result or an error.
#[tokio::test]
async fn commands_never_reach_a_model() {
    let bed = Bed::new([]);
    bed.kit.keep_checkpoints();
    let service = bed.service();
    let session = new_session(&service).await.id;
    let catalog = service.catalog(&session).await;
    assert!(catalog.len() >= 17, "{catalog:?}");
    for info in &catalog {
        assert!(
            !info.help.is_empty() && info.source == CommandSource::BuiltIn,
            "{info:?}"
        );
        // This command sends a request to a model, as the front end asks.
        let arguments: &[&str] = if info.name == "compact" {
            &[" x"]
        } else {
            &["", " x", " list", " --odd"]
        };
        for arguments in arguments {
            let line = format!("/{}{arguments}", info.name);
            match service.command(&session, &line).await {
                Ok(reply) => assert!(
                    !reply.text.is_empty() || matches!(reply.follow, Follow::Leave),
                    "{line}"
                ),
                Err(error) => assert!(!error.to_string().is_empty(), "{line}"),
            }
        }
        let help = told(&service, &session, &format!("/help {}", info.name)).await;
        assert!(
            help.contains(&info.help) && help.starts_with(&format!("/{}", info.name)),
            "{help}"
        );
    }
    assert!(bed.provider.seen().is_empty());
    let help = told(&service, &session, "/help").await;
    assert!(
        catalog
            .iter()
            .all(|info| help.contains(&format!("/{}", info.name))),
        "{help}"
    );
}

/// CMD-1: an unknown command is an error that names the nearest one and the help, and so is a line that is
/// not a command.
#[tokio::test]
async fn unknown_commands_are_reported() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let error = refused(&service, &session, "/sessoin list").await.to_string();
    assert!(
        error.contains("did you mean /session?") && error.contains("/help"),
        "{error}"
    );
    for line in ["/sessionx", "/costly", "not one", "/etc/hosts"] {
        let error = refused(&service, &session, line).await;
        assert!(matches!(error, ClientError::CommandUsage(_)), "{line}: {error}");
    }
    assert!(bed.provider.seen().is_empty());
}

/// CMD-2, SES-12: while a turn runs, read-only commands are served and commands that change the session are
/// refused; afterwards they are accepted.
#[tokio::test]
async fn a_busy_session_serves_what_only_looks() {
    let bed = Bed::new([Scene::call("c1", "wait", json!({})), Scene::text("done")]);
    bed.kit.keep_checkpoints();
    let service = bed.service();
    let session = new_session(&service).await.id;
    let mut events = service.submit(say(&session, "go")).await.unwrap();
    begun(&mut events).await;
    for line in [
        "/help",
        "/cost",
        "/tools",
        "/permissions",
        "/provider",
        "/model",
        "/mode",
        "/checkpoint list",
    ] {
        told(&service, &session, line).await;
    }
    let status = told(&service, &session, "/status").await;
    assert!(status.contains("a turn runs"), "{status}");
    let other = new_session(&service).await.id;
    let resume = format!("/session resume {other}");
    let changing = [
        "/clear",
        "/session new",
        "/session fork",
        &resume,
        "/undo",
        "/redo",
        "/checkpoint rewind 1",
        "/provider second",
        "/model x",
        "/compact",
    ];
    for line in changing {
        let error = refused(&service, &session, line).await;
        assert!(
            matches!(error, ClientError::CommandBusy { .. }),
            "{line}: {error}"
        );
        assert!(
            error.to_string().contains("a turn runs in this session"),
            "{error}"
        );
    }
    bed.gate.notify_one();
    all(events).await;
    assert!(told(&service, &session, "/mode plan").await.contains("plan"));
    assert!(told(&service, &session, "/mode").await.contains("only reads run"));
    assert!(told(&service, &session, "/status").await.contains("idle"));
}

/// PROV-7: `/provider` and `/model` list, switch, and report errors; names are not case-sensitive.
#[tokio::test]
async fn providers_are_switched() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let listed = told(&service, &session, "/provider").await;
    assert_eq!(
        listed,
        "Configured providers:\n  1. first [scripted] model=first-1 (active)\n  2. Second [scripted] model=Second-1"
    );
    let cases = [
        ("/provider FIRST", "Provider 'first' is already active."),
        (
            "/provider second",
            "Switched to provider: Second (model: Second-1)",
        ),
        ("/provider status", "Provider: Second\nModel: Second-1"),
        ("/model big", "Switched to model: big (provider: Second)"),
        ("/model", "big (provider: Second)"),
    ];
    for (line, text) in cases {
        assert_eq!(told(&service, &session, line).await, text, "{line}");
    }
    let cases = [
        (
            "/provider nix",
            "Unknown provider 'nix'. Available: first, Second",
        ),
        ("/provider broken", "Failed to switch to 'broken': no key"),
    ];
    for (line, text) in cases {
        assert_eq!(
            refused(&service, &session, line).await.to_string(),
            text,
            "{line}"
        );
    }
    assert_eq!(told(&service, &session, "/model").await, "big (provider: Second)");
}

/// CMD-1: commands from files become the user's input; built-in names win, which the help mentions; changed
/// files take effect immediately.
#[tokio::test]
async fn files_define_commands() {
    let bed = Bed::new([Scene::text("reviewed")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let command = |name: &str, file: &str| DefinedCommand {
        name: name.to_owned(),
        description: format!("What {name} does"),
        hint: "[file]".to_owned(),
        body: "Review $1 in $ARGUMENTS.".to_owned(),
        source: CommandSource::User,
        file: file.to_owned(),
        runs_in: None,
    };
    {
        let mut defined = bed.kit.defined.lock().unwrap();
        defined.commands = vec![
            command("review", "a.md"),
            command("cost", "b.md"),
            command("review", "c.md"),
        ];
        defined.warnings = vec!["d.md: it is larger than 64 KB".to_owned()];
    }
    let help = told(&service, &session, "/help").await;
    for part in [
        "/review [file]",
        "What review does",
        "b.md: not used, because /cost is a built-in command",
        "c.md: not used, because a.md defines /review as well",
        "d.md: it is larger",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    let reply = service.command(&session, "/review a.rs b.rs").await.unwrap();
    let Follow::Submit(parts) = reply.follow else {
        panic!("{}", reply.text)
    };
    assert_eq!(parts, vec![Part::text("Review a.rs in a.rs b.rs.")]);
    assert!(bed.provider.seen().is_empty(), "the front end submits it");
    assert!(told(&service, &session, "/cost").await.contains("No costs"));
    assert_eq!(service.complete(&session, "/rev").await, ["/review"]);
    bed.kit.defined.lock().unwrap().commands.clear();
    let gone = refused(&service, &session, "/review a.rs").await;
    assert!(matches!(gone, ClientError::CommandUsage(_)), "{gone}");
}

/// CMD-1: a line is completed to whole lines: names, then the known values of a command's first words.
#[tokio::test]
async fn lines_are_completed() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    service.command(&session, "/rename my work").await.unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("/stat", &["/status"]),
        ("/status", &[]),
        ("/pro", &["/provider", "/providers"]),
        ("/provider S", &["/provider Second"]),
        ("/mode  a", &["/mode ask", "/mode auto"]),
        ("/session re", &["/session resume"]),
        ("/session resume m", &["/session resume my work"]),
        ("/help perm", &["/help permissions"]),
        ("/nothing x", &[]),
        ("text", &[]),
    ];
    for (line, expected) in cases {
        assert_eq!(service.complete(&session, line).await, *expected, "{line}");
    }
}

/// SES-10, SES-14: `/session` lists, names, creates, resumes, forks, exports and searches, and deletes only
/// after confirmation.
#[tokio::test]
async fn sessions_are_gone_about_with() {
    let bed = Bed::new([Scene::text("about zebras"), Scene::text("forked")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    assert_eq!(
        told(&service, &session, "/session list").await,
        "No sessions found."
    );
    answer(&service, &session, "tell me something").await;
    assert_eq!(
        told(&service, &session, "/session name stripes").await,
        "Session named: stripes"
    );
    let current = told(&service, &session, "/session").await;
    assert!(
        current.starts_with("Current session: stripes: tell me something ["),
        "{current}"
    );
    let found = told(&service, &session, "/session search zebras").await;
    assert!(found.contains("about [zebras]"), "{found}");
    assert!(
        told(&service, &session, "/session export")
            .await
            .contains("about zebras")
    );
    let json: serde_json::Value =
        serde_json::from_str(&told(&service, &session, "/session export json").await).unwrap();
    assert_eq!(json["windlass"], 2);

    let fresh = match service.command(&session, "/clear").await.unwrap().follow {
        Follow::Session(info) => info.id,
        _ => panic!("no session"),
    };
    assert_ne!(fresh, session);
    let taken = refused(&service, &fresh, "/rename stripes").await.to_string();
    assert!(taken.contains("another session has this name"), "{taken}");
    let back = service.command(&fresh, "/session resume stripes").await.unwrap();
    assert!(
        back.text.contains("tell me something") && back.text.contains("about zebras"),
        "{}",
        back.text
    );
    let Follow::Session(info) = back.follow else {
        panic!("no session")
    };
    assert_eq!(info.id, session);
    let forked = match service.command(&session, "/session fork").await.unwrap().follow {
        Follow::Session(info) => info.id,
        _ => panic!("no session"),
    };
    assert_eq!(answer(&service, &forked, "go on").await, "forked");
    assert!(bed.provider.seen()[1].contains("about zebras"));

    let own = refused(&service, &session, "/session delete stripes --yes")
        .await
        .to_string();
    assert!(own.contains("this is the current session"), "{own}");
    let unsure = refused(&service, &session, &format!("/session delete {fresh}"))
        .await
        .to_string();
    assert!(
        unsure.contains("Not deleted") && unsure.contains("--yes"),
        "{unsure}"
    );
    let missing = refused(&service, &session, "/session resume nothing")
        .await
        .to_string();
    assert!(missing.starts_with("Session not found: nothing"), "{missing}");
    let busy = refused(&service, &session, &format!("/session delete {forked} --yes")).await;
    assert_eq!(busy, ClientError::Busy(forked.clone()), "somebody works in it");
    service.close().await;
    let again = bed.service();
    let gone = told(&again, &session, &format!("/session delete {forked} --yes")).await;
    assert!(gone.starts_with("Deleted session: "), "{gone}");
    let listed = told(&again, &session, "/session list").await;
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "the fork is gone: {listed}");
    assert!(
        lines[0].starts_with("  ") && lines[1].starts_with("* "),
        "{listed}"
    );
    assert!(lines[1].contains("stripes: tell me something"), "{listed}");
}

/// SES-7, CMD-1: `/compact` reports events like a turn.
#[tokio::test]
async fn compacting_is_watched() {
    let bed = Bed::new([]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    let Follow::Watch(events) = service.command(&session, "/compact").await.unwrap().follow else {
        panic!("nothing to watch")
    };
    assert!(all(events).await.last().unwrap().event.is_terminal());
}

/// SES-12: a turn whose plan fails ends as failed, is stored as such, and frees the session; the environment
/// receives the start of the turn.
#[tokio::test]
async fn a_failed_setup_is_a_failed_turn() {
    let bed = Bed::new([Scene::text("now it works")]);
    let service = bed.service();
    let session = new_session(&service).await.id;
    *bed.kit.not_ready.lock().unwrap() = Some(NotReady {
        kind: FailureKind::Stopped,
        message: "no key".to_owned(),
        hint: Some("set one".to_owned()),
    });
    let events = all(service.submit(say(&session, "go")).await.unwrap()).await;
    let Event::Failed { message, hint, .. } = &events.last().unwrap().event else {
        panic!("{events:?}")
    };
    assert_eq!((message.as_str(), hint.as_deref()), ("no key", Some("set one")));
    assert!(bed.provider.seen().is_empty());
    assert_eq!(
        answer(&service, &session, &"again ".repeat(50)).await,
        "now it works"
    );
    let starts = bed.kit.starts.lock().unwrap();
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0].prompt.chars().count(), 120);
    assert!(starts[0].message.is_some());
}
