//! HOOK-1, HOOK-2, HOOK-3: a table of hooks, each run through the binary from a file of Claude Code and from one of
//! Codex or our own.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace, at_once};

use super::support::with_replies;

/// One row: a hook, the model's calls, and the expected result.
struct Case {
    name: &'static str,
    event: &'static str,
    matcher: &'static str,
    /// The hook; `FILE` is a script that contains `script`.
    hook: Value,
    script: &'static str,
    calls: Vec<(&'static str, Value)>,
    arguments: &'static [&'static str],
    expect: Vec<Sign>,
}

/// An observation.
enum Sign {
    /// The file exists.
    File(&'static str),
    /// The file does not exist.
    NoFile(&'static str),
    /// The model was sent this text.
    Told(&'static str),
    /// The user was shown this text.
    Shown(&'static str),
    /// The user was shown nothing that contains this.
    Silent(&'static str),
    /// The exit code.
    Code(i32),
    /// Number of requests to the model.
    Requests(usize),
}
use Sign::{Code, File, NoFile, Requests, Shown, Silent, Told};

const RAN: &str = "ran.txt";

fn case(name: &'static str, event: &'static str, script: &'static str, expect: Vec<Sign>) -> Case {
    Case {
        name,
        event,
        matcher: "",
        hook: json!({"type": "command", "command": "sh hook.sh"}),
        script,
        calls: vec![("bash", json!({"command": "echo ran > ran.txt"}))],
        arguments: &[],
        expect,
    }
}

impl Case {
    fn matcher(mut self, matcher: &'static str) -> Self {
        self.matcher = matcher;
        self
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.hook[key] = value;
        self
    }

    fn command(self, command: &str) -> Self {
        self.with("command", json!(command))
    }

    fn calls(mut self, tool: &'static str, input: Value) -> Self {
        self.calls = vec![(tool, input)];
        self
    }

    fn args(mut self, arguments: &'static [&'static str]) -> Self {
        self.arguments = arguments;
        self
    }
}

/// Hooks that refuse a call, or let it run.
fn decisions() -> Vec<Case> {
    let asked = |why| vec![NoFile(RAN), Code(5), Shown(why)];
    vec![
        case("silent success", "PreToolUse", "exit 0", vec![File(RAN), Code(0), Silent("hook")]),
        case("exit 2", "PreToolUse", "echo not today >&2; exit 2", vec![NoFile(RAN), Told("not today")]),
        case("python", "PreToolUse", "import sys\nprint('snake says no', file=sys.stderr)\nsys.exit(2)", vec![
            NoFile(RAN),
            Told("snake says no"),
        ])
        .command("python3 hook.sh"),
        case("jq", "PreToolUse", "", vec![NoFile(RAN), Told("jq says no")]).command(
            "jq -e '.tool_input.command | test(\"ran.txt\") | not' > /dev/null || { echo jq says no >&2; exit 2; }",
        ),
        case(
            "JSON deny",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"house rule"}}'"#,
            vec![NoFile(RAN), Told("house rule")],
        ),
        case(
            "JSON counts on any exit code",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"house rule"}}'; exit 1"#,
            vec![NoFile(RAN), Told("house rule")],
        ),
        case("legacy block", "PreToolUse", r#"echo '{"decision":"block","reason":"old style"}'"#, vec![
            NoFile(RAN),
            Told("old style"),
        ]),
        case(
            "ask",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"look at this"}}'"#,
            asked("look at this"),
        ),
        case("allow", "PreToolUse", r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#, vec![
            File(RAN),
            Code(0),
        ])
        .args(&["--mode", "ask"]),
        case("no opinion in a strict mode", "PreToolUse", "exit 0", vec![NoFile(RAN), Code(5)])
            .args(&["--mode", "ask"]),
        case(
            "allow does not lift a deny rule",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#,
            vec![NoFile(RAN)],
        )
        .args(&["-c", "security.deny=[\"bash(echo *)\"]"]),
        case(
            "allow does not lift a refusal",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#,
            vec![File("hook.sh"), File("precious/a")],
        )
        .calls("bash", json!({"command": "rm -r precious"})),
        case(
            "allow does not widen the sandbox",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#,
            vec![NoFile(RAN), Code(5)],
        )
        .calls("bash", json!({"command": "echo ran > ran.txt", "outside": true, "network": true})),
        case("a matcher for another tool", "PreToolUse", "exit 2", vec![File(RAN), Code(0)]).matcher("Read"),
        case("our own name", "PreToolUse", "exit 2", vec![NoFile(RAN)]).matcher("bash"),
        case("a pattern", "PreToolUse", "exit 2", vec![NoFile(RAN)]).matcher("^Ba.h$"),
        case("a condition that fits", "PreToolUse", "exit 2", vec![NoFile(RAN)]).with("if", json!("Bash(echo *)")),
        case("a condition that does not fit", "PreToolUse", "exit 2", vec![File(RAN)])
            .with("if", json!("Bash(git *)")),
        case("without a shell", "PreToolUse", "echo $1 >&2; exit 2", vec![NoFile(RAN), Told("two words")])
            .command("/bin/sh")
            .with("args", json!(["hook.sh", "two words"])),
        case("in the sandbox", "PreToolUse", "cat .env > /dev/null 2>&1 && exit 0; echo confined >&2; exit 2", vec![
            NoFile(RAN),
            Told("confined"),
        ])
        .with("sandbox", json!(true)),
        case("PermissionRequest allows", "PermissionRequest", r#"echo '{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}'"#, vec![File(RAN), Code(0)])
            .args(&["--mode", "ask"]),
        case("PermissionRequest denies", "PermissionRequest", r#"echo '{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"never here"}}}'"#, vec![NoFile(RAN), Told("never here")])
            .args(&["--mode", "ask"]),
    ]
}

/// Hooks that fail.
fn failures() -> Vec<Case> {
    let asked = |why| vec![NoFile(RAN), Code(5), Shown(why)];
    vec![
        case(
            "missing file",
            "PreToolUse",
            "",
            asked("not found (exit code 127)"),
        )
        .command("./missing.sh"),
        case(
            "not executable",
            "PreToolUse",
            "exit 0",
            asked("cannot be run (exit code 126)"),
        )
        .command("./hook.sh"),
        case(
            "missing program without a shell",
            "PreToolUse",
            "",
            asked("could not be started"),
        )
        .command("/no/such/program")
        .with("args", json!([])),
        case("signal", "PreToolUse", "kill -9 $$", asked("signal 9 ended it")).command("exec sh hook.sh"),
        case(
            "timeout",
            "PreToolUse",
            "sleep 600 & sleep 600",
            asked("did not end within 0.3 s"),
        )
        .with("timeout", json!(0.3)),
        case(
            "invalid JSON",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":'"#,
            asked("not valid JSON"),
        ),
        case(
            "an unknown decision",
            "PreToolUse",
            r#"echo '{"decision":"refuse"}'"#,
            asked("unknown decision `refuse`"),
        ),
        case(
            "a decision of another type",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":["deny"]}}'"#,
            asked("unknown decision `[\"deny\"]`"),
        ),
        case(
            "an answer of another type",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":"deny"}'"#,
            asked("unknown decision `deny`"),
        ),
        case(
            "no decision",
            "PreToolUse",
            r#"echo '{"decision":null,"hookSpecificOutput":{"permissionDecision":null}}'"#,
            vec![File(RAN), Code(0)],
        ),
        case(
            "JSON after other text",
            "PreToolUse",
            r#"echo checking; echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#,
            asked("not valid JSON"),
        ),
        case(
            "huge output",
            "PreToolUse",
            "yes | head -c 5000000",
            asked("not valid JSON"),
        ),
        case(
            "another exit code",
            "PreToolUse",
            "echo oops >&2; exit 1",
            vec![File(RAN), Code(0), Shown("failed with exit code 1: oops")],
        ),
        case(
            "PermissionRequest without answer",
            "PermissionRequest",
            "",
            asked("exit code 127"),
        )
        .command("./missing.sh")
        .args(&["--mode", "ask"]),
        case(
            "a missing program elsewhere",
            "PostToolUse",
            "",
            vec![File(RAN), Code(0), Shown("exit code 127")],
        )
        .command("./missing.sh"),
        case(
            "timeout elsewhere",
            "PostToolUse",
            "sleep 600",
            vec![File(RAN), Code(0), Shown("did not end within")],
        )
        .with("timeout", json!(0.3)),
        case(
            "an unread input",
            "PreToolUse",
            "exec < /dev/null; exit 0",
            vec![File(RAN), Code(0)],
        ),
        case(
            "a broken matcher guards",
            "PreToolUse",
            "exit 2",
            vec![NoFile(RAN), Shown("is not a regular expression")],
        )
        .matcher("Bash("),
    ]
}

/// Hooks that change or add something.
fn changes() -> Vec<Case> {
    const REWRITE: &str = r#"echo '{"hookSpecificOutput":{"updatedInput":{"command":"touch other.txt"}}}'"#;
    vec![
        case("rewrite", "PreToolUse", REWRITE, vec![NoFile(RAN), File("other.txt"), Code(0)]),
        case("a rewrite is judged", "PreToolUse", REWRITE, vec![NoFile(RAN), NoFile("other.txt")])
            .args(&["-c", "security.deny=[\"bash(touch *)\"]"]),
        case(
            "an invalid rewrite",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"updatedInput":{"comand":"touch other.txt"}}}'"#,
            vec![NoFile(RAN), NoFile("other.txt"), Told("comand")],
        ),
        case(
            "a rewrite with Claude's fields",
            "PreToolUse",
            "jq -c '{hookSpecificOutput:{updatedInput:(.tool_input | .file_path |= sub(\"ran\"; \"moved\"))}}'",
            vec![NoFile(RAN), File("moved.txt")],
        )
        .matcher("Write")
        .calls("write_file", json!({"path": "ran.txt", "content": "x"})),
        case(
            "context before a call",
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"additionalContext":"the build is slow today"}}'"#,
            vec![File(RAN), Told("the build is slow today")],
        ),
        case(
            "stop",
            "PreToolUse",
            r#"echo '{"continue":false,"stopReason":"enough for today"}'"#,
            vec![NoFile(RAN), Requests(1), Shown("enough for today")],
        ),
        case("message", "PreToolUse", r#"echo '{"systemMessage":"mind the gap"}'"#, vec![
            File(RAN),
            Shown("mind the gap"),
        ]),
        case("feedback after a call", "PostToolUse", "echo lint failed >&2; exit 2", vec![File(RAN), Told("lint failed")]),
        case("block after a call", "PostToolUse", r#"echo '{"decision":"block","reason":"fix the tests"}'"#, vec![
            File(RAN),
            Told("fix the tests"),
        ]),
        case(
            "context after a call",
            "PostToolUse",
            r#"echo '{"hookSpecificOutput":{"additionalContext":"it was formatted"}}'"#,
            vec![Told("it was formatted")],
        ),
        case(
            "another output",
            "PostToolUse",
            r#"echo '{"hookSpecificOutput":{"updatedToolOutput":"replaced output"}}'"#,
            vec![Told("replaced output")],
        ),
        case("a failed call", "PostToolUseFailure", "jq -r .error > error.txt", vec![File("error.txt"), Code(0)])
            .calls("bash", json!({"command": "false"})),
        case(
            "async",
            "PreToolUse",
            "until [ -e ran.txt ]; do sleep 0.01; done; touch async.txt",
            vec![File("async.txt"), Code(0)],
        )
        .with("async", json!(true))
        .matcher("Write")
        .calls("write_file", json!({"path": "ran.txt", "content": "x"}))
        .then("bash", json!({"command": "until [ -e async.txt ]; do sleep 0.01; done", "timeout_secs": 60})),
    ]
}

impl Case {
    fn then(mut self, tool: &'static str, input: Value) -> Self {
        self.calls.push((tool, input));
        self
    }
}

/// Hooks around prompts, turns, sessions and sub-agents.
fn lifecycle() -> Vec<Case> {
    let agent = json!({"task": "look around", "type": "task", "isolation": "none"});
    vec![
        case("context for a prompt", "UserPromptSubmit", "echo it is Tuesday", vec![Told("it is Tuesday"), Code(0)]),
        case("a blocked prompt", "UserPromptSubmit", "echo no swearing >&2; exit 2", vec![
            Requests(0),
            Shown("no swearing"),
        ]),
        case("the prompt", "UserPromptSubmit", "jq -e '.prompt == \"go\"' > /dev/null || exit 2", vec![File(RAN)]),
        case("context for a session", "SessionStart", "echo branch main", vec![Told("branch main")]).matcher("startup"),
        case("another source", "SessionStart", "echo branch main >&2; touch started", vec![NoFile("started")])
            .matcher("resume"),
        case("variables for commands", "SessionStart", "echo 'export GREETING=\"hello there\"' >> $CLAUDE_ENV_FILE", vec![
            Told("hello there"),
        ])
        .calls("bash", json!({"command": "echo $GREETING"})),
        case("the end of a session", "SessionEnd", "jq -r .reason > ended.txt", vec![File("ended.txt"), Code(0)]),
        case(
            "a turn that must go on",
            "Stop",
            "jq -e .stop_hook_active > /dev/null && exit 0; echo run the tests >&2; exit 2",
            vec![Told("run the tests"), Requests(3), Code(0)],
        ),
        case("a stop loop", "Stop", "echo more >> loop.txt; echo go on >&2; exit 2", vec![File("loop.txt")]),
        case("a sub-agent starts", "SubagentStart", "jq -r .agent_type > kind.txt; echo '{\"hookSpecificOutput\":{\"additionalContext\":\"be brief\"}}'", vec![
            File("kind.txt"),
            Told("be brief"),
        ])
        .calls("agent", agent.clone()),
        case("a sub-agent stops", "SubagentStop", "jq -r .last_assistant_message > said.txt", vec![File("said.txt")])
            .calls("agent", agent),
        case(
            "fields and environment",
            "PreToolUse",
            "import json, os, sys\n\
             seen = json.load(sys.stdin)\n\
             for key in 'session_id transcript_path cwd hook_event_name permission_mode turn_id model tool_use_id'.split():\n\
             \x20   assert key in seen, key\n\
             assert seen['tool_name'] == 'Bash', seen\n\
             assert seen['tool_input']['timeout'] == 5000, seen\n\
             assert seen['turn_id'] and seen['model'], seen\n\
             assert seen['cwd'] == os.getcwd()\n\
             assert os.environ['CLAUDE_PROJECT_DIR'] == os.getcwd()\n\
             assert os.environ['MY_SETTING'] == 'kept'\n\
             assert not [key for key in os.environ if key.endswith('_API_KEY')]\n\
             open('fields.txt', 'w').write('ok')\n",
            vec![File("fields.txt"), File(RAN)],
        )
        .command("python3 hook.sh")
        .calls("bash", json!({"command": "echo ran > ran.txt", "timeout_secs": 5})),
    ]
}

/// The places of hook files: Claude Code's, then Codex's and our own.
fn place(workspace: &Workspace, dialect: usize) -> std::path::PathBuf {
    match dialect {
        0 => workspace.user_home().join(".claude/settings.json"),
        1 => workspace.user_home().join(".codex/hooks.json"),
        _ => workspace.home().join("config/hooks.json"),
    }
}

fn run(case: &Case, dialect: usize) -> (SimServer, Workspace, Output) {
    let calls = case
        .calls
        .iter()
        .map(|(tool, input)| Reply::call(tool, input.clone()));
    let texts = std::iter::repeat_with(|| Reply::text("fine")).take(12);
    let (sim, workspace) = with_replies(Protocol::Anthropic, calls.chain(texts));
    workspace.write("hook.sh", case.script);
    fs::create_dir_all(workspace.path().join("precious")).unwrap();
    workspace.write("precious/a", "a");
    workspace.write(".env", "no command may read this");
    let file = json!({"hooks": {case.event: [{"matcher": case.matcher, "hooks": [case.hook]}]}});
    let path = place(&workspace, dialect);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file.to_string()).unwrap();
    let run = workspace.run(&["exec", "go"]).args(case.arguments);
    let output = run
        .env("SOME_API_KEY", "secret")
        .env("MY_SETTING", "kept")
        .output();
    (sim, workspace, output)
}

fn check(case: &Case, dialect: usize) -> Vec<String> {
    let (sim, workspace, output) = run(case, dialect);
    let told: String = sim
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    let mut wrong = Vec::new();
    for sign in &case.expect {
        let complaint = match sign {
            File(name) => (!workspace.has(name)).then(|| format!("{name} is missing")),
            NoFile(name) => workspace.has(name).then(|| format!("{name} exists")),
            Told(text) => (!told.contains(text)).then(|| format!("the model was not told {text:?}: {told}")),
            Shown(text) => (!output.stderr.contains(text)).then(|| format!("not shown: {text:?}")),
            Silent(text) => output.stderr.contains(text).then(|| format!("shown: {text:?}")),
            Code(code) => (output.code != Some(*code)).then(|| format!("exit code {:?}", output.code)),
            Requests(number) => {
                (sim.count() != *number).then(|| format!("{} requests, not {number}", sim.count()))
            }
        };
        wrong.extend(complaint.map(|complaint| format!("{} ({dialect}): {complaint}\n{output}", case.name)));
    }
    wrong
}

/// Runs every row in two dialects.
#[track_caller]
fn check_all(cases: &[Case]) {
    let next = AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    at_once(4, |_| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number / 2) else { break };
            let dialect = if number.is_multiple_of(2) {
                0
            } else {
                1 + number / 2 % 2
            };
            wrong.lock().unwrap().extend(check(case, dialect));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// HOOK-2: hooks deny, ask and allow by exit code and by JSON, matchers and conditions choose them, and no answer lifts
/// a rule, a refusal or the sandbox.
#[test]
fn hooks_decide_about_calls() {
    check_all(&decisions());
}

/// HOOK-3: a hook that gives no answer at a permission point means ask, which is a denial with nobody there; elsewhere
/// it is a warning.
#[test]
fn hooks_that_fail_mean_ask() {
    check_all(&failures());
}

/// HOOK-2: hooks rewrite arguments, which are validated and judged again, add context, stop the turn and run in the
/// background.
#[test]
fn hooks_change_calls() {
    check_all(&changes());
}

/// HOOK-1: hooks run at prompts, turns, sessions and sub-agents with the fields and the environment of Claude Code, and
/// without provider keys.
/// EXT-3: a hook that cannot start is an error shown.
#[test]
fn hooks_follow_sessions() {
    check_all(&lifecycle());
}

/// EXT-3: the table has at least 30 rows.
#[test]
fn the_table_is_long() {
    let rows = decisions().len() + failures().len() + changes().len() + lifecycle().len();
    assert!(rows >= 30, "{rows} rows");
}
