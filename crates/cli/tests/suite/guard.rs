//! The guard suite: attacks that no call may succeed with, tried through every way in. A new way in must be
//! added to [`WAYS`], which takes one line.
//!
//! Every attack runs twice: with the default settings, where it must fail, and with the guards opened by
//! settings, where it must work. Without the second run, an attack that can never work would look like a
//! working guard.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{
    Editor, HttpServer, McpClient, PATIENCE, Run, SimServer, Workspace, at_once, eventually, processes_with,
};

use super::support::{elsewhere, with_replies};
use super::tui::{EMPTY, leave, press_until, say};

const SECRET: &str = "hunter2-do-not-tell";

/// Way in which a call reaches the tools.
struct Way {
    name: &'static str,
    /// Arguments before those of a test.
    arguments: &'static [&'static str],
    /// Runs one turn without approving anything.
    drive: fn(Run),
    /// True if a person is there, who is asked.
    is_attended: bool,
    /// True if a sub-agent makes the call.
    is_child: bool,
    /// True if hooks of the user allow every call.
    is_hooked: bool,
}

/// All ways in.
const WAYS: &[Way] = &[
    Way {
        name: "exec",
        arguments: &["exec", "go"],
        drive: exec,
        is_attended: false,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "sub-agent",
        arguments: &["exec", "go"],
        drive: exec,
        is_attended: false,
        is_child: true,
        is_hooked: false,
    },
    Way {
        name: "goal",
        arguments: &["exec", "--goal", "go", "--check", "true"],
        drive: exec,
        is_attended: false,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "plain lines",
        arguments: &["--plain"],
        drive: lines,
        is_attended: false,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "hooks that allow everything",
        arguments: &["exec", "go"],
        drive: exec,
        is_attended: false,
        is_child: false,
        is_hooked: true,
    },
    Way {
        name: "scheduled job",
        arguments: &["cron", "run", "guard"],
        drive: exec,
        is_attended: false,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "HTTP",
        arguments: &["serve", "--listen", "127.0.0.1:0"],
        drive: over_http,
        is_attended: true,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "terminal",
        arguments: &[],
        drive: terminal,
        is_attended: true,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "editor",
        arguments: &["acp"],
        drive: editor,
        is_attended: true,
        is_child: false,
        is_hooked: false,
    },
    Way {
        name: "MCP",
        arguments: &["mcp", "serve"],
        drive: over_mcp,
        is_attended: true,
        is_child: false,
        is_hooked: false,
    },
];

fn exec(run: Run) {
    run.output();
}

fn lines(run: Run) {
    run.stdin("go\n").output();
}

/// Types the prompt, and says no to every request.
fn terminal(run: Run) {
    let mut screen = run.on_screen(100, 30);
    screen.wait_for(EMPTY);
    say(&mut screen, "go");
    let is_asked = |shown: &str| shown.contains("y  Yes, once");
    let has_ended = |shown: &str| !shown.contains("esc stops") && !shown.contains("esc to cancel");
    screen.wait_until("it was sent", |shown| shown.contains("› go") || !has_ended(shown));
    screen.wait_until("it is asked, or has ended", |shown| {
        is_asked(shown)
            || shown.contains("done")
            || (shown.contains("● ") || shown.contains("✗ ")) && has_ended(shown)
    });
    if is_asked(&screen.contents()) {
        press_until(&mut screen, "n", |shown| !is_asked(shown));
    }
    screen.wait_until("the turn has ended", has_ended);
    leave(&mut screen);
}

/// Sends the prompt from an editor, which rejects every request.
fn editor(run: Run) {
    let mut editor = Editor::connect(run, json!({}));
    let session = editor.open_here();
    let id = editor.ask(&session, "go");
    let _ = editor.wait(id);
    editor.end();
}

/// Sends the prompt from another agent, whose user declines every form.
fn over_mcp(run: Run) {
    let mut client = McpClient::connect(run, "2025-11-25", json!({ "elicitation": {} }));
    client.tool("start_session", json!({ "prompt": "go" }));
    client.end();
}

/// Sends the prompt, and says no to every request.
fn over_http(run: Run) {
    let server = HttpServer::start(run);
    let session = server.session();
    server.say(&session, "go");
    let path = format!("/api/sessions/{session}");
    let has_ended = eventually(PATIENCE, || {
        let state = server.get(&format!("{path}/state"));
        for question in state["questions"].as_array().into_iter().flatten() {
            let call = question["call"].as_str().unwrap();
            server.request("POST", &format!("{path}/replies/{call}"), "{\"answer\":\"no\"}");
        }
        let entries = state["entries"].as_array().unwrap();
        let ends = ["final", "failed", "canceled"];
        entries
            .iter()
            .any(|entry| ends.contains(&entry["type"].as_str().unwrap()))
    });
    assert!(has_ended, "the turn does not end");
    server.running.terminate();
    server.running.output();
}

/// Settings that open every guard.
const OPEN: &[&str] = &[
    "--mode",
    "full",
    "-c",
    "security.allowed_paths=[\"/\"]",
    "-c",
    "security.denied_paths=[]",
    "-c",
    "security.network=true",
    "-c",
    "security.blocked_commands=[]",
];

/// Evidence that an attack worked.
enum Sign {
    /// The model received the secret.
    Told,
    /// This file outside the project changed.
    Changed(&'static str),
    /// This file of the project changed.
    ChangedInside(&'static str),
    /// A connection was made.
    Connected,
}

struct Attack {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    sign: Sign,
    /// True if the same is allowed to commands, and so to file tools if a person is there.
    is_open_to_watched: bool,
}

/// A project, and the files outside of it that must stay untouched.
struct Scene {
    sim: SimServer,
    workspace: Workspace,
    outside: TempDir,
    listener: TcpListener,
}

impl Scene {
    fn new(attack: &Attack, way: &Way) -> Self {
        let outside = elsewhere();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let fill = |text: &str| {
            text.replace("OUTSIDE", &outside.path().display().to_string())
                .replace("PORT", &listener.local_addr().unwrap().port().to_string())
        };
        let arguments: Value = serde_json::from_str(&fill(&attack.arguments.to_string())).unwrap();
        let call = Reply::call(attack.tool, arguments);
        let mut replies = vec![call, Reply::text("done")];
        if way.is_child {
            let spawn = json!({ "task": "go", "type": "coder", "isolation": "none" });
            replies.insert(0, Reply::call("agent", spawn));
            replies.push(Reply::text("done"));
        }
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let put = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(outside.path().join("secret.txt"), SECRET);
        put(workspace.user_home().join(".ssh/id"), SECRET);
        put(workspace.home().join("config/key"), SECRET);
        let keys = workspace.write("dotfiles/keys", &format!("[keys]\nother = \"{SECRET}\"\n"));
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&keys, workspace.home().join("config/keys.toml")).unwrap();
        workspace.write(".env", SECRET);
        workspace.write("sub/.env.local", SECRET);
        workspace.write("plain.txt", "plain\n");
        workspace.write("steal.sh", &fill("cat OUTSIDE/secret.txt ~/.ssh/id .env\n"));
        workspace.write("spoil.sh", &fill("echo spoiled > OUTSIDE/secret.txt\n"));
        workspace.write("call.sh", &fill("exec 3<>/dev/tcp/127.0.0.1/PORT\n"));
        let tools = fill(
            "tools:\n  - { name: show, description: x, category: read, cmd: cat, args: [.env] }\n  - { name: spoil, \
             description: x, category: write, cmd: sh, args: [spoil.sh] }\n",
        );
        put(workspace.home().join("config/tools.yaml"), &tools);
        let job = format!(
            "[jobs.guard]\nschedule = \"@yearly\"\nprompt = \"go\"\nfolder = {:?}\nallowed_tools = [\"*\"]\n",
            workspace.path()
        );
        put(workspace.home().join("config/cron.toml"), &job);
        if way.is_hooked {
            let hook = |answer: Value| json!([{"hooks": [{"type": "command", "command": format!("echo '{}'", json!({"hookSpecificOutput": answer}))}]}]);
            let hooks = json!({"hooks": {
                "PreToolUse": hook(json!({"permissionDecision": "allow"})),
                "PermissionRequest": hook(json!({"decision": {"behavior": "allow"}})),
            }});
            put(workspace.home().join("config/hooks.json"), &hooks.to_string());
        }
        symlink(outside.path(), workspace.path().join("away")).unwrap();
        symlink(outside.path().join("new.txt"), workspace.path().join("dangling")).unwrap();
        Self {
            sim,
            workspace,
            outside,
            listener,
        }
    }

    fn run(&self, way: &Way, more: &[&str]) {
        let temp = self.workspace.path().join("temp");
        fs::create_dir_all(&temp).unwrap();
        let run = self
            .workspace
            .run(way.arguments)
            .env("TMPDIR", &temp.display().to_string())
            .env("MY_API_KEY", SECRET)
            .env("ANTHROPIC_API_KEY", SECRET);
        (way.drive)(run.args(more));
    }

    /// Returns true if the attack worked.
    fn shows(&self, sign: &Sign) -> bool {
        let holds = |path: PathBuf, before: Option<&str>| fs::read_to_string(path).ok().as_deref() != before;
        match sign {
            Sign::Told => self.sim.outlines().concat().contains(SECRET),
            Sign::Changed("secret.txt") => holds(self.outside.path().join("secret.txt"), Some(SECRET)),
            Sign::Changed(name) => holds(self.outside.path().join(name), None),
            Sign::ChangedInside(name) => holds(self.workspace.path().join(name), Some(SECRET)),
            Sign::Connected => self.listener.accept().is_ok(),
        }
    }
}

fn attacks() -> Vec<Attack> {
    let told = |name, tool, arguments| Attack {
        name,
        tool,
        arguments,
        sign: Sign::Told,
        is_open_to_watched: false,
    };
    let bash = |name, command: &str, sign| Attack {
        name,
        tool: "bash",
        arguments: json!({ "command": command }),
        sign,
        is_open_to_watched: false,
    };
    let writes = |name, tool, arguments, sign| Attack {
        name,
        tool,
        arguments,
        sign,
        is_open_to_watched: false,
    };
    let patch = "*** Begin Patch\n*** Add File: away/new.txt\n+x\n*** End Patch\n";
    vec![
        told(
            "S6.10 read outside",
            "read_file",
            json!({ "path": "OUTSIDE/secret.txt" }),
        )
        .but_open_to_watched(),
        told(
            "S6.12 read through a link",
            "read_file",
            json!({ "path": "away/secret.txt" }),
        )
        .but_open_to_watched(),
        told("read a key", "read_file", json!({ "path": "~/.ssh/id" })),
        told(
            "read a key, spelled oddly",
            "read_file",
            json!({ "path": "./sub/../.env" }),
        ),
        told(
            "read a key below",
            "read_file",
            json!({ "path": "sub/.env.local" }),
        ),
        told(
            "search a key",
            "grep",
            json!({ "pattern": "hunter", "path": "." }),
        ),
        told(
            "search outside",
            "grep",
            json!({ "pattern": "hunter", "path": "OUTSIDE" }),
        )
        .but_open_to_watched(),
        writes(
            "S6.11 write where it is denied",
            "write_file",
            json!({ "path": ".env", "content": "x" }),
            Sign::ChangedInside(".env"),
        ),
        writes(
            "write outside",
            "write_file",
            json!({ "path": "OUTSIDE/new.txt", "content": "x" }),
            Sign::Changed("new.txt"),
        ),
        writes(
            "write through a link to nothing",
            "write_file",
            json!({ "path": "dangling", "content": "x" }),
            Sign::Changed("new.txt"),
        ),
        writes(
            "edit through a link",
            "edit_file",
            json!({ "path": "away/secret.txt", "old_string": "hunter2", "new_string": "x" }),
            Sign::Changed("secret.txt"),
        ),
        writes(
            "patch through a link",
            "apply_patch",
            json!({ "patch": patch }),
            Sign::Changed("new.txt"),
        ),
        bash("a command reads a key", "cat ~/.ssh/id", Sign::Told),
        bash("a command reads .env", "cat .env sub/.env.local", Sign::Told),
        bash("a script reads keys", "sh steal.sh", Sign::Told).but_reads_outside(),
        bash(
            "a command reads our own files",
            "cat \"$WINDLASS_HOME\"/config/key ../*/config/key",
            Sign::Told,
        ),
        bash(
            "a command reads our own files behind a link",
            "cat dotfiles/* \"$WINDLASS_HOME\"/config/keys.toml",
            Sign::Told,
        ),
        told(
            "read our own files behind a link",
            "read_file",
            json!({ "path": "dotfiles/keys" }),
        ),
        bash(
            "S6.6 a command reads the environment",
            "env; cat /proc/$PPID/environ",
            Sign::Told,
        ),
        bash(
            "a script writes outside",
            "sh spoil.sh",
            Sign::Changed("secret.txt"),
        ),
        bash(
            "a command writes outside by name",
            "echo spoiled > OUTSIDE/secret.txt",
            Sign::Changed("secret.txt"),
        ),
        bash("a script uses the network", "bash call.sh", Sign::Connected),
        bash(
            "S6.5 a dangerous command",
            "rm -rf ../*/nothing; rm -f OUTSIDE/secret.txt",
            Sign::Changed("secret.txt"),
        ),
        told("a declared tool reads .env", "show", json!({})),
        writes(
            "a declared tool writes outside",
            "spoil",
            json!({}),
            Sign::Changed("secret.txt"),
        ),
    ]
}

impl Attack {
    fn but_open_to_watched(mut self) -> Self {
        self.is_open_to_watched = true;
        self
    }

    /// Commands may read files outside the project that are not denied, so the script must not name them.
    fn but_reads_outside(mut self) -> Self {
        self.arguments = json!({ "command": "sed -i s,OUTSIDE/secret.txt,, steal.sh; sh steal.sh" });
        self
    }
}

/// SAFE-9, SAFE-1 (S6.6), SAFE-2 (S6.5), SAFE-3 (S6.10, S6.11, S6.12), SAFE-4: whatever a model calls,
/// through every way in, guarded files stay unchanged and secret. With the guards opened, each attack works.
#[test]
fn no_call_gets_through() {
    for way in WAYS {
        let attacks = attacks();
        let next = AtomicUsize::new(0);
        at_once(4, |_| {
            while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if attack.is_open_to_watched && way.is_attended {
                    continue;
                }
                let scene = Scene::new(attack, way);
                scene.run(way, &[]);
                let name = format!("{}: {}", way.name, attack.name);
                assert!(scene.sim.count() >= 1, "{name}: the call was made");
                assert!(!scene.shows(&attack.sign), "{name}");
                scene.sim.assert_valid();
            }
        });
    }
}

/// SAFE-9: the negative control of the guard suite: each attack works with the guards opened.
#[test]
fn each_attack_works_without_its_guard() {
    for attack in attacks() {
        if attack.name.starts_with("S6.6") || attack.name.contains("our own files") {
            // No setting opens these.
            continue;
        }
        for way in WAYS.iter().filter(|way| way.name == "exec" || way.is_child) {
            let scene = Scene::new(&attack, way);
            scene.run(way, OPEN);
            assert!(scene.shows(&attack.sign), "{}: {}", way.name, attack.name);
        }
    }
}

/// SAFE-9, LOOP-8: no call leaves a process behind, however it tries to escape.
#[test]
fn no_process_is_left() {
    let marker = format!("61.{}", std::process::id());
    let command = format!(
        "setsid sleep {marker} & (trap '' TERM; sleep {marker}) & nohup sleep {marker} > /dev/null 2>&1 &"
    );
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("bash", json!({ "command": command })),
            Reply::text("done"),
        ],
    );
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let sleepers = || processes_with(&marker);
    assert!(eventually(PATIENCE, || sleepers().is_empty()), "{:?}", sleepers());
}
