//! Every slash command through every way in: a headless run, plain lines, the terminal UI, HTTP and an editor.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Editor, PATIENCE, Screen, SimServer, Workspace, eventually};

use super::server::serve;
use super::support::with_replies;
use super::tui::{EMPTY, press_until};

/// One line at least for every command, in an order in which no line changes the result of a later one. `/exit` is last.
const LINES: &[&str] = &[
    "/help undo",
    "/status",
    "/why",
    "/session list",
    "/session show",
    "/session delete nobody",
    "/goal",
    "/agents list",
    "/provider",
    "/connect sim",
    "/cost",
    "/cost --all",
    "/context ledger",
    "/context pin 99",
    "/cron",
    "/tools",
    "/hooks",
    "/skills",
    "/mcp",
    "/memory",
    "/voice status",
    "/permissions",
    "/mode",
    "/mode nonsense",
    "/checkpoint list",
    "/checkpoint show 99",
    "/verify",
    "/plan show",
    "/rewind 99",
    "/nonsense",
    "/hepl",
    "/export",
    "/diff",
    "/undo",
    "/redo",
    "/rename stripes",
    "/effort low",
    "/model sim-1",
    "/goal write a file",
    "/done",
    SHELL,
    COMPACT,
    "/plan",
    "/mode auto",
    "/fork",
    "/clear",
    "/exit",
];

/// Lines whose result arrives as events.
const SHELL: &str = "/shell echo said by a command";
const COMPACT: &str = "/compact";

/// Lines that change how a session goes on, which a headless run does not.
const LASTING: &[&str] = &["/plan", "/mode auto"];

/// A session with one turn, which wrote a file.
struct Scene {
    sim: SimServer,
    workspace: Workspace,
    session: String,
}

impl Scene {
    fn new() -> Self {
        let write = Reply::call("write_file", json!({ "path": "a.txt", "content": "one\n" }));
        let (sim, workspace) = with_replies(
            Protocol::Chat,
            [
                write,
                Reply::text("written"),
                Reply::text("A file was written.").forever(),
            ],
        );
        let ran = workspace.run(&["exec", "-o", "json", "write a file"]).output();
        let session = ran.json()["session"].as_str().unwrap().to_owned();
        Self {
            sim,
            workspace,
            session,
        }
    }

    /// Returns a text without what differs between two scenes: paths, ids, numbers, times.
    fn common(&self, text: &str) -> String {
        let text = text
            .replace(&self.workspace.path().display().to_string(), "PLACE")
            .replace(&self.sim.url(), "URL");
        let words = text.split_whitespace().map(|word| {
            let is_id = |part: &str| part.len() >= 13 && part.contains('-') && part.starts_with("01");
            let parts = word.split(['(', ')', '[', ']', '=', '.', ',', '*']);
            let parts = parts.map(|part| match is_id(part) {
                true => "ID".to_owned(),
                false => part.chars().filter(|sign| !sign.is_ascii_digit()).collect(),
            });
            parts.collect::<String>()
        });
        let mut text = words.collect::<String>();
        for age in ["justnow", "sago", "minago"] {
            text = text.replace(age, "AGO");
        }
        text
    }

    /// Returns the lines of a text, each without what differs.
    fn lines(&self, text: &str) -> Vec<String> {
        text.lines().map(|line| self.common(line)).collect()
    }

    /// Returns the number of stored sessions.
    fn sessions(&self) -> usize {
        let listed = self.workspace.run(&["sessions", "list", "--json"]).output();
        listed.json().as_array().unwrap().len()
    }

    /// Checks that no command asked the model, except for a summary.
    fn check_model(&self, way: &str) {
        for request in self.sim.requests().iter().skip(2) {
            let is_summary = request.seen.system.starts_with("You condense");
            assert!(is_summary, "{way}: a command reached the model: {}", request.body);
        }
    }
}

/// Runs every line headless, each in a process of its own. Returns if it succeeded, and its text.
fn headless() -> Vec<(bool, Vec<String>)> {
    let scene = Scene::new();
    let run = |line: &&str| {
        let arguments = ["exec", "-o", "json", "--resume", &scene.session, line];
        let output = scene.workspace.run(&arguments).output();
        let said = output.json();
        let text = said["result"].as_str().or(said["error"]["message"].as_str());
        (said["ok"] == true, scene.lines(text.unwrap_or_default()))
    };
    let said = LINES.iter().map(run).collect();
    scene.check_model("exec");
    said
}

/// Runs every line as plain input, each in a process of its own.
fn plain() -> Vec<String> {
    let scene = Scene::new();
    let run = |line: &&str| {
        let arguments = ["--plain", "--resume", &scene.session];
        let output = scene
            .workspace
            .run(&arguments)
            .stdin(format!("{line}\n"))
            .output();
        scene.common(&format!("{}\n{}", output.stdout, output.stderr))
    };
    let said = LINES.iter().map(run).collect();
    scene.check_model("plain lines");
    said
}

/// Runs every line over HTTP. Returns if it succeeded, and its text.
fn over_http() -> Vec<(bool, String)> {
    let scene = Scene::new();
    let server = serve(&scene.workspace, &[]);
    server.post("/api/sessions", &json!({ "resume": scene.session }));
    let path = format!("/api/sessions/{}", scene.session);
    check_catalog(&server.get(&format!("{path}/commands")));
    let entries = || {
        let state = server.get(&format!("{path}/state"));
        state["entries"].as_array().unwrap().clone()
    };
    let is_end = |entry: &Value| matches!(entry["type"].as_str(), Some("final" | "failed"));
    let mut said = Vec::new();
    for line in LINES {
        let before = entries().len();
        let body = json!({ "line": line }).to_string();
        let answer = server.request("POST", &format!("{path}/commands"), &body);
        let object = answer.json();
        if answer.status == 200 && [SHELL, COMPACT].contains(line) {
            let new = || entries().split_off(before);
            assert!(
                eventually(PATIENCE, || new().iter().any(is_end)),
                "{line}: {object}"
            );
            let is_ok = !new().iter().any(|entry| entry["type"] == "failed");
            let texts: Vec<String> = new().iter().flat_map(texts_of).collect();
            said.push((is_ok, scene.common(&texts.join("\n"))));
            continue;
        }
        let text = object["text"].as_str().or(object["detail"].as_str()).unwrap();
        said.push((answer.status == 200, scene.common(text)));
    }
    scene.check_model("HTTP");
    said
}

/// Checks that no command is without a line. Commands of files are prompts for the model.
fn check_catalog(catalog: &Value) {
    for command in catalog["commands"].as_array().unwrap() {
        let name = command["name"].as_str().unwrap();
        let is_tried = LINES
            .iter()
            .any(|line| line.split(' ').next() == Some(&format!("/{name}")));
        let is_prompt = ["init", "review", "create-skill"].contains(&name);
        assert!(is_tried || is_prompt, "/{name} is not tried: add a line for it");
    }
}

/// Runs every line in an editor.
fn editor() -> Vec<String> {
    let scene = Scene::new();
    let mut editor = Editor::connect(scene.workspace.run(&["acp"]), json!({}));
    let place = scene.workspace.path();
    let params = json!({ "sessionId": scene.session, "cwd": place, "mcpServers": [] });
    editor.call("session/load", params);
    let mut said = Vec::new();
    for line in LINES {
        let before = editor.updates.len();
        let id = editor.ask(&scene.session, line);
        // A failed turn is an error of the protocol.
        let failed = editor.wait(id).err();
        let texts = editor.updates[before..]
            .iter()
            .flat_map(|(_, update)| texts_of(update));
        let texts: Vec<String> = texts.chain(failed.iter().flat_map(texts_of)).collect();
        said.push(scene.common(&texts.join("\n")));
    }
    editor.end().assert_code(0);
    scene.check_model("editor");
    said
}

/// Returns all texts of a value.
fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(texts_of).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

/// Types every line in the terminal UI, and waits until the screen shows what a headless run says. Returns what it does not
/// show.
fn screen(expected: &[(bool, Vec<String>)]) -> Vec<String> {
    let scene = Scene::new();
    let mut screen = scene
        .workspace
        .run(&["--resume", &scene.session])
        .on_screen(240, 120);
    screen.wait_for(EMPTY);
    let mut differences = Vec::new();
    for (line, (_, text)) in LINES.iter().zip(expected) {
        // Keys are asked for in a dialog.
        if line.starts_with("/connect") {
            continue;
        }
        // A diff has the numbers of its lines in place of the headers of its hunks.
        let text: Vec<String> = text
            .iter()
            .filter(|line| !line.starts_with("@@"))
            .cloned()
            .collect();
        let before = matches!(*line, "/fork" | "/clear").then(|| scene.sessions());
        screen.type_keys(line);
        screen.press("enter");
        let is_shown = match *line {
            "/exit" => screen.wait_exit() == Some(0),
            // The screen then shows the other session.
            "/fork" | "/clear" => eventually(PATIENCE, || Some(scene.sessions()) > before),
            _ => shows(&mut screen, &scene, line, &text),
        };
        if !is_shown {
            let shown = screen.contents();
            differences.push(format!("{line}\n--- exec\n{text:#?}\n--- terminal UI\n{shown}"));
        }
        if *line != "/exit" {
            // Closes a pager.
            press_until(&mut screen, "esc", |shown| shown.contains(EMPTY));
        }
    }
    scene.check_model("terminal UI");
    differences
}

/// Waits until the screen shows a text and nothing runs. A line that came too early is typed again.
fn shows(screen: &mut Screen, scene: &Scene, line: &str, text: &[String]) -> bool {
    const TOO_EARLY: &str = "has to wait: a turn runs";
    const TRIES: usize = 20;
    for tried in 1..=TRIES {
        let shown = || scene.common(&format!("{}\n{}", screen.scrollback(), screen.contents()));
        let early = || screen.contents().matches(TOO_EARLY).count() >= tried;
        if !eventually(PATIENCE, || covers(&shown(), text) || early()) {
            return false;
        }
        if covers(&shown(), text) {
            let is_idle = |shown: &str| !shown.contains("esc stops") && !shown.contains("esc to cancel");
            screen.wait_until("nothing runs", is_idle);
            return true;
        }
        screen.type_keys(line);
        screen.press("enter");
    }
    false
}

/// Returns true if a text has all lines.
fn covers(said: &str, lines: &[String]) -> bool {
    lines.iter().all(|line| said.contains(line))
}

/// CMD-2: every command says the same in a headless run, in plain lines, over HTTP, in an editor and in the terminal UI, and
/// reaches no model.
#[test]
fn commands_are_the_same_through_every_way_in() {
    let mut expected = headless();
    let over_http = over_http();
    for (number, _) in LINES
        .iter()
        .enumerate()
        .filter(|(_, line)| LASTING.contains(line))
    {
        let (is_ok, text) = &expected[number];
        assert!(!is_ok && text.concat().contains("--mode"), "{text:?}");
        let (is_ok, text) = &over_http[number];
        expected[number] = (*is_ok, vec![text.clone()]);
    }
    let (plain, editor) = (plain(), editor());
    let mut differences = Vec::new();
    for (number, line) in LINES.iter().enumerate() {
        let (is_ok, text) = &expected[number];
        let (is_ok_there, said) = &over_http[number];
        // Results of work have more around them, and where somebody can be asked there are more tools.
        let is_same = match [SHELL, COMPACT, "/tools"].contains(line) {
            true => covers(said, text),
            false => *said == text.concat(),
        };
        if is_ok != is_ok_there || !is_same {
            differences.push(format!(
                "{line}\n--- exec: {is_ok}\n{text:#?}\n--- HTTP: {is_ok_there}\n{said}"
            ));
        }
        for (way, said) in [("plain lines", &plain[number]), ("editor", &editor[number])] {
            if !covers(said, text) {
                differences.push(format!("{line}\n--- exec\n{text:#?}\n--- {way}\n{said}"));
            }
        }
    }
    differences.extend(screen(&expected));
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
