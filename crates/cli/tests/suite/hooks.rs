//! The user's hooks: well-known samples, trust, and what people see of hooks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, Workspace, eventually, processes_with};

use super::support::{results, with_replies, workspace};

/// Writes the user's hooks.
fn hooks(workspace: &Workspace, hooks: Value) {
    let path = workspace.user_home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, json!({ "hooks": hooks }).to_string()).unwrap();
}

fn command(command: &str) -> Value {
    json!([{"type": "command", "command": command}])
}

fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

/// HOOK-1: the usual formatter runs after an edit and sees the path of the file.
#[test]
fn a_formatter_runs_after_an_edit() {
    let write = Reply::call("write_file", json!({"path": "a.txt", "content": "one two\n"}));
    let edit = Reply::call(
        "edit_file",
        json!({"path": "a.txt", "edits": [{"old_string": "ONE", "new_string": "three"}]}),
    );
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [write, edit, Reply::text("done")]);
    hooks(
        &workspace,
        json!({"PostToolUse": [{"matcher": "Edit|MultiEdit|Write", "hooks": command(
            "jq -r '.tool_input.file_path' | { read file; tr a-z A-Z < \"$file\" > \"$file.new\" && mv \"$file.new\" \"$file\"; }"
        )}]}),
    );
    workspace.run(&["exec", "go"]).output();
    assert_eq!(
        workspace.read("a.txt"),
        "ONE TWO\n",
        "the edit was refused: the file changed since it was read"
    );
}

/// HOOK-2: the usual guards against `rm` and secrets stop a call, and let others run.
#[test]
fn guards_stop_what_they_guard() {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            bash("echo rm -rf / > plan.txt"),
            Reply::call("read_file", json!({"path": "config/prod.secret"})),
            bash("echo fine > fine.txt"),
            Reply::text("done"),
        ],
    );
    workspace.write("config/prod.secret", "hunter2");
    workspace.write(
        "guard.py",
        "import json, re, sys\n\
         call = json.load(sys.stdin)\n\
         if re.search(r'\\brm\\s+-[a-z]*r', call['tool_input'].get('command', '')):\n\
         \x20   print('Blocked: no recursive rm', file=sys.stderr)\n\
         \x20   sys.exit(2)\n",
    );
    hooks(
        &workspace,
        json!({"PreToolUse": [
            {"matcher": "Bash", "hooks": command("python3 guard.py")},
            {"matcher": "Read|Edit|Write", "hooks": command(
                "jq -e '.tool_input.file_path | test(\"secret\") | not' > /dev/null || { echo 'Blocked: a secret' >&2; exit 2; }"
            )},
        ]}),
    );
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let results = results(&sim).join("\n");
    assert!(
        results.contains("no recursive rm") && results.contains("Blocked: a secret"),
        "{results}"
    );
    assert!(!results.contains("hunter2") && !workspace.has("plan.txt") && workspace.has("fine.txt"));
}

/// HOOK-1: a notifier at the end of a turn gets the last message.
#[test]
fn a_notifier_runs_at_the_end() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("All tests pass.")]);
    hooks(
        &workspace,
        json!({"Stop": [{"hooks": command("jq -r .last_assistant_message > notified.txt")}]}),
    );
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert_eq!(workspace.read("notified.txt"), "All tests pass.\n");
}

/// HOOK-2: of several hooks deny beats ask, and ask beats allow; files add up, and the same command runs once.
#[test]
fn the_strictest_hook_wins() {
    let answer = |decision: &str| {
        format!(
            "echo x >> runs.txt; echo '{{\"hookSpecificOutput\":{{\"permissionDecision\":\"{decision}\",\"permissionDecisionReason\":\"because {decision}\"}}}}'"
        )
    };
    let cases = [
        (vec!["allow", "ask"], 5, "because ask"),
        (vec!["ask", "deny", "allow"], 0, ""),
        (vec!["allow", "allow"], 0, ""),
    ];
    for (decisions, code, shown) in cases {
        let (_sim, workspace) =
            with_replies(Protocol::Anthropic, [bash("touch ran.txt"), Reply::text("fine")]);
        let own = workspace.home().join("config/hooks.json");
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        let group = |decision: &&str| json!({"matcher": "Bash", "hooks": command(&answer(decision))});
        let (first, rest) = decisions.split_first().unwrap();
        hooks(&workspace, json!({ "PreToolUse": [group(first)] }));
        let rest: Vec<Value> = rest.iter().map(group).collect();
        fs::write(own, json!({"hooks": {"PreToolUse": rest}}).to_string()).unwrap();
        let output = workspace.run(&["exec", "go"]).output();
        output.assert_code(code);
        assert!(output.stderr.contains(shown), "{output}");
        assert_eq!(
            workspace.has("ran.txt"),
            decisions.iter().all(|decision| *decision == "allow"),
            "{output}"
        );
        let different = if decisions == ["allow", "allow"] {
            1
        } else {
            decisions.len()
        };
        assert_eq!(workspace.read("runs.txt").lines().count(), different, "{output}");
    }
}

/// HOOK-1: a project's hooks need trust, which ends when a hook or its script changes, and not when other settings of
/// Claude Code change.
#[test]
fn hooks_of_a_project_need_trust() {
    let settings = |more: &str| {
        let hook = json!({"PreToolUse": [{"matcher": "Bash", "hooks": command("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh")}]});
        json!({"model": more, "hooks": hook}).to_string()
    };
    for file in [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".codex/hooks.json",
        ".windlass/hooks.json",
    ] {
        let replies = (0..6).flat_map(|_| [bash("echo x >> ran.txt"), Reply::text("fine")]);
        let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
        workspace.write(file, &settings("a"));
        let script = workspace.write(".claude/hooks/guard.sh", "#!/bin/sh\necho guarded >&2\nexit 2\n");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let count = || {
            fs::read_to_string(workspace.path().join("ran.txt"))
                .unwrap_or_default()
                .lines()
                .count()
        };
        let output = workspace.run(&["exec", "go"]).output();
        output.assert_says("not in effect, because this folder is not trusted");
        assert_eq!(count(), 1, "{file}: an untrusted hook ran\n{output}");
        let trust = workspace.run(&["trust", "--yes"]).output();
        trust.assert_code(0);
        assert!(
            trust.stdout.contains("PreToolUse Bash") && trust.stdout.contains("guard.sh"),
            "{trust}"
        );
        workspace.run(&["exec", "go"]).output();
        assert_eq!(count(), 1, "{file}: the trusted hook did not run");
        if file.starts_with(".claude") {
            workspace.write(file, &settings("b"));
            workspace.run(&["exec", "go"]).output();
            assert_eq!(count(), 1, "{file}: trust ended with another setting");
        }
        workspace.write(".claude/hooks/guard.sh", "#!/bin/sh\ntouch evil\n");
        let output = workspace.run(&["exec", "go"]).output();
        output.assert_says("because it changed");
        assert!(!workspace.has("evil"), "{file}: a changed script ran\n{output}");
    }
}

/// HOOK-4: the list shows files, hooks, runs and the reason a hook did not run; a test runs the hooks of an event.
#[test]
fn hooks_are_listed_and_tested() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [bash("touch ran.txt"), Reply::text("fine")]);
    hooks(
        &workspace,
        json!({
            "PreToolUse": [
                {"matcher": "Bash", "hooks": command("echo no >&2; exit 2")},
                {"matcher": "Read", "hooks": command("true # for reads")},
            ],
            "WorktreeCreate": [{"hooks": command("true")}],
        }),
    );
    let output = workspace.run(&["exec", "go"]).output();
    assert_eq!(output.stderr.matches("WorktreeCreate").count(), 1, "{output}");
    let list = workspace.run(&["hooks", "list"]).output();
    for text in [
        ".claude/settings.json (yours)",
        "`hooks.WorktreeCreate`: Windlass has no such event",
        "Last runs",
        "exit 2",
        "deny",
        "Did not run",
        "the matcher `Read` does not fit Bash or bash",
    ] {
        list.assert_code(0);
        assert!(list.stdout.contains(text), "{text}\n{list}");
    }
    let json = workspace.run(&["hooks", "list", "--json"]).output().json();
    assert_eq!(json["runs"][0]["event"], "PreToolUse", "{json}");
    let input = r#"{"command": "ls"}"#;
    let test = workspace
        .run(&["hooks", "test", "PreToolUse", "--tool", "Bash", "--input", input])
        .output();
    test.assert_code(5);
    assert!(
        test.stdout.contains("decision: deny no") && test.stdout.contains("did not run  true # for reads"),
        "{test}"
    );
    let unknown = workspace.run(&["hooks", "test", "PreTool"]).output();
    unknown.assert_code(2).assert_says("`PreTool` is not an event");
    let none = workspace.run(&["hooks", "test", "Stop"]).output();
    none.assert_code(0);
    assert!(none.stdout.contains("no hooks for Stop"), "{none}");
}

/// CMD-1: `/hooks` lists the hooks and their runs.
/// HOOK-4: it names the event, the matcher, the time, the exit code and the decision of a run.
#[test]
fn the_command_lists_hooks() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [bash("touch ran.txt"), Reply::text("fine")]);
    hooks(
        &workspace,
        json!({"PreToolUse": [{"matcher": "Bash", "hooks": command("exit 0")}]}),
    );
    let output = workspace.run(&["--plain"]).stdin("go\n/hooks\n").output();
    let all = format!("{}{}", output.stdout, output.stderr);
    for text in ["settings.json (yours)", "PreToolUse", "Last runs", "exit 0"] {
        assert!(all.contains(text), "{text}\n{output}");
    }
}

/// HOOK-4: the doctor names a missing program, a file that is not executable, invalid JSON and an unknown event.
#[test]
fn the_doctor_checks_hooks() {
    let workspace = workspace();
    workspace.write("plain.sh", "exit 0\n");
    hooks(
        &workspace,
        json!({
            "PreToolUse": [{"hooks": command("no-such-program --check")}],
            "PostToolUse": [{"hooks": command("./plain.sh")}],
            "Elicitation": [{"hooks": command("true")}],
        }),
    );
    let own = workspace.home().join("config/hooks.json");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(own, "{\n  \"hooks\": {,}\n}").unwrap();
    let output = workspace.run(&["doctor", "--offline"]).output();
    for text in [
        "`no-such-program` does not exist",
        "plain.sh is not executable",
        "hooks.json: line 2, column 13: not valid JSON",
        "`hooks.Elicitation`: Windlass has no such event",
    ] {
        assert!(output.stdout.contains(text), "{text}\n{output}");
    }
}

/// HOOK-3: stopping a turn ends a hook that hangs, with everything it started.
#[test]
fn a_hanging_hook_is_ended_with_the_turn() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [bash("touch ran.txt"), Reply::text("fine")]);
    let mark = workspace.path().join("mark").display().to_string();
    hooks(
        &workspace,
        json!({"PreToolUse": [{"hooks": command(&format!("touch {mark}; sh -c 'sleep 600; : {mark}'"))}]}),
    );
    let running = workspace.run(&["exec", "go"]).start();
    assert!(eventually(PATIENCE, || workspace.has("mark")), "the hook starts");
    running.interrupt();
    running.output().assert_code(130);
    assert!(
        eventually(PATIENCE, || processes_with(&mark).is_empty()),
        "the hook is left behind"
    );
    assert!(!workspace.has("ran.txt"));
}

/// HOOK-3, SAFE-10: the model cannot change a script of a hook without an approval.
#[test]
fn a_script_of_a_hook_is_protected() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [bash("echo 'touch escaped' > guard.sh"), bash("touch ran.txt")],
    );
    workspace.write("guard.sh", "exit 0\n");
    hooks(
        &workspace,
        json!({"PreToolUse": [{"matcher": "Bash", "hooks": command("sh guard.sh")}]}),
    );
    let output = workspace.run(&["exec", "go"]).output();
    output.assert_code(5).assert_says("it changes guard.sh");
    assert_eq!(workspace.read("guard.sh"), "exit 0\n");
    assert!(!workspace.has("escaped") && !workspace.has("ran.txt"), "{output}");
}

/// HOOK-3: a script in the workspace that changed after its hook was read does not run.
#[test]
fn a_changed_script_does_not_run() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [bash("true"), bash("touch ran.txt"), Reply::text("fine")],
    );
    // The hook itself runs outside the sandbox.
    workspace.write("guard.sh", "echo 'touch escaped' >> guard.sh; exit 0\n");
    hooks(
        &workspace,
        json!({"PreToolUse": [{"matcher": "Bash", "hooks": command("sh guard.sh")}]}),
    );
    let output = workspace.run(&["exec", "go"]).output();
    output.assert_says("guard.sh changed since its hook was read");
    assert!(!workspace.has("escaped") && !workspace.has("ran.txt"), "{output}");
}

/// HOOK-2: hooks before a compaction can block it.
#[test]
fn a_hook_blocks_a_compaction() {
    let replies = (0..6).map(|_| Reply::text("fine"));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    hooks(
        &workspace,
        json!({"PreCompact": [{"matcher": "manual", "hooks": command("echo keep everything >&2; exit 2")}]}),
    );
    let output = workspace.run(&["--plain"]).stdin("go\n/compact\n").output();
    let all = format!("{}{}", output.stdout, output.stderr);
    assert!(all.contains("keep everything"), "{output}");
}
