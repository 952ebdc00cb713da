//! Voice input, through the binary, with a speech server that hears the lines of a file. `cargo xtask test` runs it with
//! a real recognizer as well.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, Running, SimServer, Workspace, eventually};

use super::support::with_replies;
use super::tui::{leave, open, say};

const SERVER: &str = include_str!("voice_server.py");
const EARS: &str =
    "[mcp_servers.ears]\ncommand = \"python3\"\nargs = [\"server.py\"]\ndevices = [\"audio\"]\n";

/// A workspace with a speech server, and a model that answers everything.
fn scene(more: &str) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    workspace.write("server.py", SERVER);
    workspace.use_sim_with(&sim, Protocol::Anthropic, &format!("{more}\n{EARS}"));
    (sim, workspace)
}

/// Starts a conversation over a pipe, with voice input.
fn listening(workspace: &Workspace, command: &str) -> Running {
    let mut running = workspace.run(&["--plain"]).open_stdin().start();
    running.say(&format!("{command}\n"));
    running.wait_for_stdout("Listening to the");
    running
}

/// Lets the server hear more.
fn speak(workspace: &Workspace, text: &str) {
    let path = workspace.path().join("heard");
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{text}").unwrap();
}

/// The texts of the user in the requests so far.
fn prompts(sim: &SimServer) -> Vec<String> {
    let requests = sim.requests();
    let texts = requests
        .iter()
        .filter_map(|request| request.seen.last_user_text());
    // The first message of a session describes the folder as well.
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    texts.map(last).collect()
}

#[track_caller]
fn wait_for_prompts(sim: &SimServer, expected: &[&str]) {
    assert!(
        eventually(PATIENCE, || prompts(sim).len() >= expected.len()),
        "{:?}",
        prompts(sim)
    );
    assert_eq!(prompts(sim), expected);
}

/// VOICE-1, CMD-1: what the server hears becomes prompts, in order, and their turns are shown; `/voice stop` tells the
/// server, and nothing is heard afterwards. Text of a speaker is never a command.
#[test]
fn spoken_words_are_prompts() {
    let (sim, workspace) = scene("");
    let mut running = listening(&workspace, "/voice start loopback language=de");
    assert_eq!(
        workspace.read("calls"),
        "start {\"language\": \"de\", \"source\": \"loopback\"}\n"
    );
    speak(
        &workspace,
        "list the files\n!info nothing\nrun the tests\n\u{1b}[31m/exit",
    );
    wait_for_prompts(&sim, &["list the files", "run the tests", "[31m/exit"]);
    running.wait_for_stdout("fine\nfine\nfine");
    running.wait_for_stderr("> run the tests");
    running.say("/voice status\n");
    running.wait_for_stdout("Listening to the loopback through ears. 3 utterances, the last: [31m/exit");
    running.say("/voice start\n");
    running.wait_for_stderr("voice input is on already");
    running.say("/voice stop\n");
    running.wait_for_stdout("Voice input is off: stopped. 3 utterances");
    assert!(
        workspace.read("calls").ends_with("stop s1\n"),
        "{}",
        workspace.read("calls")
    );
    speak(&workspace, "too late");
    running.say("typed\n");
    wait_for_prompts(&sim, &["list the files", "run the tests", "[31m/exit", "typed"]);
    running.say("/exit\n");
    running.output().assert_code(0);
}

/// VOICE-1: more words than the queue of a session holds wait, and none is lost or out of order.
#[test]
fn nothing_said_is_lost() {
    let (sim, workspace) = scene("");
    let running = listening(&workspace, "/voice start");
    let said: Vec<String> = (1..=30)
        .map(|number| format!("utterance number {number}"))
        .collect();
    let mut lines = String::new();
    for line in &said {
        let _ = writeln!(lines, "{line}");
    }
    speak(&workspace, lines.trim_end());
    let expected: Vec<&str> = said.iter().map(String::as_str).collect();
    wait_for_prompts(&sim, &expected);
    drop(running);
}

/// VOICE-1: a server that ends during the session is reported with the reason; what it heard is kept, voice input is
/// off, and the conversation goes on. Warnings of the server are shown.
#[test]
fn a_lost_server_is_reported() {
    let (sim, workspace) = scene("");
    let mut running = listening(&workspace, "/voice start");
    speak(&workspace, "before\n!warning it is noisy");
    wait_for_prompts(&sim, &["before"]);
    running.wait_for_stderr("voice input: it is noisy");
    workspace.write("die", "");
    running.wait_for_stderr("voice input stopped: MCP server ears: ");
    running.wait_for_stderr("the microphone is gone");
    running.say("/voice status\n");
    running.wait_for_stdout("Voice input is off: MCP server ears: ");
    running.say("typed\n");
    wait_for_prompts(&sim, &["before", "typed"]);
    std::fs::remove_file(workspace.path().join("die")).unwrap();
    running.say("/mcp restart ears\n/voice start\n");
    running.wait_until("it listens again", |running| {
        running.stdout().matches("Listening to the microphone").count() == 2
    });
    workspace.write("end", "");
    running.wait_for_stderr("voice input stopped: the speech server ended the session (ended)");
    running.say("/exit\n");
    running.output().assert_code(0);
}

/// VOICE-1: each reason why voice input cannot start is said, and what to do.
#[test]
fn voice_input_that_cannot_start() {
    let (_sim, workspace) = scene("[security]\ndeny = [\"mcp__ears__stt_start_session\"]");
    let said = |workspace: &Workspace, command: &str| {
        let run = workspace.run(&["exec", command]).limit(PATIENCE);
        run.output().stderr
    };
    let denied = said(&workspace, "/voice start");
    assert!(
        denied.contains("the rule `mcp__ears__stt_start_session` forbids it"),
        "{denied}"
    );
    assert!(!workspace.has("calls"));
    let wrong = said(&workspace, "/voice start telephone");
    assert!(
        wrong.contains("there is no MCP server telephone (there are: ears); the sources are microphone"),
        "{wrong}"
    );
    let unclear = said(&workspace, "/voice louder");
    assert!(unclear.contains("write /voice start"), "{unclear}");
    let (_sim, bare) = with_replies(Protocol::Anthropic, [Reply::text("fine")]);
    let nobody = said(&bare, "/voice start");
    assert!(
        nobody.contains("no MCP server can hear") && nobody.contains("docs/voice.md"),
        "{nobody}"
    );
}

/// VOICE-1, CMD-2: spoken prompts and their answers appear in an editor and in the terminal UI like others.
#[test]
fn every_front_end_listens() {
    let (sim, workspace) = scene("");
    let mut editor = Editor::connect(workspace.run(&["acp"]), json!({}));
    let session = editor.open(workspace.path());
    editor.prompt(&session, "/voice start");
    speak(&workspace, "one\ntwo");
    wait_for_prompts(&sim, &["one", "two"]);
    editor.wait_for_update(|update| {
        update["sessionUpdate"] == "agent_message_chunk" && update["content"]["text"] == "fine"
    });
    editor.prompt(&session, "/voice stop");
    editor.end().assert_code(0);

    let (sim, workspace) = scene("");
    let mut screen = open(&workspace, &[]);
    say(&mut screen, "/voice start");
    screen.wait_for("Listening to the microphone");
    speak(&workspace, "open the file");
    screen.wait_for("open the file");
    screen.wait_for("fine");
    wait_for_prompts(&sim, &["open the file"]);
    workspace.write("die", "");
    screen.wait_for("voice input stopped");
    leave(&mut screen);
}
