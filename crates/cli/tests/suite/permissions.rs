//! Rules, modes and declared tools, through the binary.

use serde_json::json;
use windlass_sim::{Protocol, Reply};

use super::support::{with_replies, workspace};

const TOOLS: &str = "\
tools:
  - name: count_lines
    description: Counts the lines of a file.
    category: read
    cmd: wc
    args: [-l, --, \"{{path}}\"]
    parameters:
      path: { type: string, pattern: \"[a-z.]+\" }
";

/// SAFE-6: a denying rule is reported to the model, which continues; an asking rule ends a non-interactive
/// turn with its exit code.
#[test]
fn rules_decide() {
    let calls = || {
        [
            Reply::call("read_file", json!({ "path": "./secrets/../secrets/key" })),
            Reply::text("I see."),
        ]
    };
    let (sim, workspace) = with_replies(Protocol::Anthropic, calls());
    workspace.write("secrets/key", "hunter2");
    let output = workspace
        .run(&["exec", "go", "-c", "security.deny=[\"read_file(secrets/**)\"]"])
        .output();
    output.assert_code(0);
    let told = &sim.outlines()[1];
    assert!(
        told.contains("the rule `read_file(secrets/**)` forbids this"),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");

    let (sim, workspace) = with_replies(Protocol::Anthropic, calls());
    workspace.write("secrets/key", "hunter2");
    let output = workspace
        .run(&["exec", "go", "-c", "security.ask=[\"read_file\"]"])
        .output();
    output
        .assert_code(5)
        .assert_says("needs approval, and no one is available to give it");
    assert_eq!(sim.count(), 1);
}

/// SAFE-5: `--mode plan` only reads; a write outside the workspace needs approval, and there is no user to
/// ask.
#[test]
fn modes_decide() {
    let write = |path: &str| Reply::call("write_file", json!({ "path": path, "content": "x" }));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [write("a.txt"), Reply::text("fine")]);
    workspace
        .run(&["exec", "go", "--mode", "plan"])
        .output()
        .assert_code(0);
    assert!(!workspace.has("a.txt"));
    assert!(sim.outlines()[1].contains("plan mode"));

    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [write("/usr/local/windlass-test"), Reply::text("fine")],
    );
    workspace.run(&["exec", "go"]).output().assert_code(5);

    for (command, code) in [
        ("echo x > /usr/local/windlass-test", 5),
        ("echo x > inside.txt 2> /dev/null", 0),
        ("cp inside.txt ../../../../usr/local/windlass-test", 5),
    ] {
        let call = Reply::call("bash", json!({ "command": command }));
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        workspace.write("inside.txt", "");
        workspace.run(&["exec", "go"]).output().assert_code(code);
    }

    let (_sim, workspace) = with_replies(Protocol::Anthropic, [write("a.txt"), Reply::text("fine")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert!(workspace.has("a.txt"));
}

/// SAFE-11: `--mode` takes the names of modes and their earlier ones, `--permission-mode` those of Claude Code with
/// their meaning there; a name that is none is an error.
#[test]
fn modes_have_names() {
    let writes = |arguments: &[&str]| {
        let call = Reply::call("write_file", json!({ "path": "a.txt", "content": "x" }));
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        let code = workspace.run(&["exec", "go"]).args(arguments).output().code;
        (code, workspace.has("a.txt"))
    };
    for (flag, name, expected) in [
        ("--mode", "auto", (Some(0), true)),
        ("--mode", "default", (Some(0), true)),
        ("--mode", "edits", (Some(0), true)),
        ("--mode", "accept-edits", (Some(0), true)),
        ("--mode", "ask", (Some(5), false)),
        ("--mode", "plan", (Some(0), false)),
        ("--mode", "unattended", (Some(0), false)),
        ("--mode", "workspace-write", (Some(0), true)),
        ("--mode", "read-only", (Some(0), false)),
        ("--permission-mode", "default", (Some(5), false)),
        ("--permission-mode", "acceptEdits", (Some(0), true)),
        ("--permission-mode", "plan", (Some(0), false)),
        ("--permission-mode", "bypassPermissions", (Some(0), true)),
        ("--permission-mode", "dontAsk", (Some(0), false)),
        ("--permission-mode", "danger-full-access", (Some(0), true)),
        ("--permission-mode", "untrusted", (Some(5), false)),
    ] {
        assert_eq!(writes(&[flag, name]), expected, "{flag} {name}");
    }
    let workspace = workspace();
    workspace.config("security.mode = \"accept-edits\"\n");
    let listed = workspace.run(&["permissions", "list"]).output();
    assert!(listed.stdout.contains("security.mode = \"edits\""), "{listed}");
    let wrong = workspace
        .run(&["exec", "go", "--permission-mode", "yolo"])
        .output();
    wrong
        .assert_code(2)
        .assert_says("expected plan, ask, edits, auto, full or unattended");
    let wrong = workspace.run(&["exec", "go", "--mode", "edit"]).output();
    wrong.assert_code(2).assert_says("did you mean \"edits\"?");
}

/// SAFE-8: calls are tested against the rules in effect, without running them.
#[test]
fn rules_are_tried_on_calls() {
    let workspace = workspace();
    let calls = workspace.write(
        "calls.jsonl",
        "{\"tool\": \"bash\", \"arguments\": {\"command\": \"touch made\"}}\n\
         {\"tool\": \"write_file\", \"arguments\": {\"path\": \"/usr/x\", \"content\": \"\"}}\n\
         {\"tool\": \"read_file\", \"arguments\": {\"path\": \"secrets/k\"}}\n\
         {\"tool\": \"nope\", \"arguments\": {}}\n",
    );
    let calls = calls.display().to_string();
    let rules = "security.deny=[\"read_file(secrets/**)\"]";
    let output = workspace
        .run(&["permissions", "test", &calls, "-c", rules])
        .output();
    let words: Vec<&str> = output
        .assert_code(0)
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(words, ["allow", "ask", "deny", "unknown"]);
    assert!(!workspace.has("made"));
    let listed = workspace.run(&["permissions", "list", "-c", rules]).output();
    assert!(
        listed
            .assert_code(0)
            .stdout
            .contains("security.deny = [\"read_file(secrets/**)\"]  # flag -c"),
        "{listed}"
    );

    workspace.write("bad.jsonl", "{\"tool\": \"bash\"}\n");
    let bad = workspace.run(&["permissions", "test", "bad.jsonl"]).output();
    bad.assert_code(2).assert_says("bad.jsonl:1");
    let bad = workspace
        .run(&["exec", "go", "-c", "security.allow=[\"bash(git *\"]"])
        .output();
    bad.assert_code(3).assert_says("closing `)`");
}

/// TOOL-5 (S6.7): a tool declared in YAML is available and runs; a broken file is reported with its location,
/// and a project's is not used.
#[test]
fn declared_tools_are_offered() {
    let replies = [
        Reply::call("count_lines", json!({ "path": "a.txt" })),
        Reply::text("two"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "1\n2\n");
    let file = workspace.home().join("config/tools.yaml");
    std::fs::write(&file, TOOLS).expect("tools.yaml");
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert!(sim.outlines()[1].contains("2 a.txt"), "{}", sim.outlines()[1]);
    sim.assert_valid();

    let checked = workspace.run(&["tools", "check"]).output();
    assert!(checked.assert_code(0).stdout.contains("1 tool,"), "{checked}");
    let listed = workspace.run(&["tools", "list"]).output();
    assert!(listed.assert_code(0).stdout.contains("count_lines"), "{listed}");
    let run = workspace
        .run(&["tools", "run", "count_lines", "{\"path\": \"a.txt\"}"])
        .output();
    assert_eq!(run.assert_code(0).stdout, "2 a.txt\n");
    workspace
        .run(&["tools", "run", "count_lines", "{\"path\": \"-x\"}"])
        .output()
        .assert_code(2);

    std::fs::write(&file, TOOLS.replace("category: read", "category: raed")).expect("tools.yaml");
    let broken = workspace.run(&["exec", "go"]).output();
    broken
        .assert_code(3)
        .assert_says("tools.yaml:4")
        .assert_says("category");

    std::fs::remove_file(&file).expect("removed");
    workspace.write(".windlass/tools.yaml", TOOLS);
    let listed = workspace.run(&["tools", "list"]).output();
    listed.assert_code(0).assert_says("not trusted");
    assert!(!listed.stdout.contains("count_lines"), "{listed}");
}

/// SAFE-4: `windlass sandbox` runs a command that can write only to this folder, sees no keys, and has no
/// network; its exit code is passed on.
#[test]
fn a_command_behind_the_wall() {
    let workspace = workspace();
    let outside = workspace.user_home().join("outside.txt");
    std::fs::create_dir_all(workspace.user_home().join(".ssh")).expect("a folder");
    std::fs::write(workspace.user_home().join(".ssh/key"), "hunter2").expect("a key");
    let script = format!(
        "echo in > inside.txt; echo out > '{}'; cat ~/.ssh/key; exit 7",
        outside.display()
    );
    let output = workspace
        .run(&["sandbox", "--", "sh", "-c", &script])
        .env("TMPDIR", "/var/tmp")
        .output();
    output.assert_code(7);
    assert_eq!(workspace.read("inside.txt"), "in\n");
    assert!(
        !outside.exists() && !output.stdout.contains("hunter2"),
        "{output}"
    );

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let script = format!("import socket; socket.create_connection((\"127.0.0.1\", {port}), 1)");
    let connects = |more: &[&str]| {
        let arguments = [&["sandbox"], more, &["--", "python3", "-c", &script]].concat();
        workspace.run(&arguments).output()
    };
    connects(&[]).assert_code(1);
    connects(&["--network"]).assert_code(0);
    workspace
        .run(&["sandbox", "--", "no-such-program"])
        .output()
        .assert_code(2);
}

/// SAFE-2 (S6.5): a blocked command is refused wherever it hides, the model learns which entry blocked it,
/// and the loop continues; the list is a setting.
#[test]
fn blocked_commands_are_refused() {
    for command in [
        "rm kept.txt",
        "true && /bin/rm kept.txt",
        "sh -c 'r\"m\" kept.txt'",
        "echo kept.txt | xargs rm",
        "dd if=/dev/null of=kept.txt",
    ] {
        let replies = [
            Reply::call("bash", json!({ "command": command })),
            Reply::text("Then not."),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        workspace.write("kept.txt", "");
        let allow = "security.allow=[\"bash\"]";
        workspace
            .run(&["exec", "go", "-c", allow])
            .output()
            .assert_code(0);
        assert!(workspace.has("kept.txt"), "{command}");
        let told = &sim.outlines()[1];
        assert!(told.contains("security.blocked_commands"), "{command}: {told}");
        assert_eq!(told.matches("security.blocked_commands").count(), 1, "{told}");
    }
    // Mode `full` runs what can be undone, and nothing else of the list.
    for (command, is_kept) in [
        ("rm kept.txt", false),
        ("cd . && rm ./kept.txt", false),
        ("rm \"$PWD\"/kept.txt", false),
        ("echo kept.txt | xargs rm", true),
        ("rm kept.txt /etc/hostname", true),
        ("cd / && rm kept.txt", true),
        ("find / -name kept.txt -exec rm {} +", true),
        ("dd if=/dev/null of=kept.txt", true),
        ("sudo rm kept.txt", true),
    ] {
        let call = Reply::call("bash", json!({ "command": command }));
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        workspace.write("kept.txt", "");
        let output = workspace.run(&["exec", "go", "--mode", "full"]).output();
        output.assert_code(0);
        assert_eq!(workspace.has("kept.txt"), is_kept, "{command}: {output}");
    }
    let replies = [
        Reply::call("bash", json!({ "command": "rm kept.txt" })),
        Reply::text("Gone."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("kept.txt", "");
    let output = workspace
        .run(&[
            "exec",
            "go",
            "--mode",
            "full",
            "-c",
            "security.blocked_commands=[]",
        ])
        .output();
    output.assert_code(0);
    assert!(!workspace.has("kept.txt"));
}

/// SAFE-5, SAFE-6: a command that reaches outside needs approval; rules that cover every part of it, and name the
/// access that it needs, let it run.
#[test]
fn commands_that_reach_outside_ask() {
    let replies = || {
        let command = "touch made && git push";
        [
            Reply::call("bash", json!({ "command": command })),
            Reply::text("Pushed."),
        ]
    };
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
    let output = workspace.run(&["exec", "go"]).output();
    output
        .assert_code(5)
        .assert_says("git push")
        .assert_says("-c 'security.allow=[\"bash(touch made, network)\", \"bash(git push, network)\"]'");
    assert!(!workspace.has("made"));

    for (allow, code) in [
        ("[\"bash(git *, network)\"]", 5),
        ("[\"bash(git *)\", \"bash(touch *)\"]", 5),
        ("[\"bash(git *, network)\", \"bash(touch *)\"]", 5),
        ("[\"bash\"]", 5),
        ("[\"bash(git *, network)\", \"bash(touch *, network)\"]", 0),
    ] {
        let (_sim, workspace) = with_replies(Protocol::Anthropic, replies());
        let allow = format!("security.allow={allow}");
        let output = workspace.run(&["exec", "go", "-c", &allow]).output();
        output.assert_code(code);
        assert_eq!(workspace.has("made"), code == 0, "{allow}: {output}");
    }
}

/// SAFE-6: a model cannot widen the sandbox of an allowed command by asking for more access, in no mode in
/// which a rule is what allows the command.
#[test]
fn an_allowed_command_gets_no_more_than_the_rule_names() {
    for (more, allow, runs) in [
        (json!({}), "bash(touch *)", true),
        (json!({ "network": true }), "bash(touch *)", false),
        (json!({ "outside": true }), "bash(touch *)", false),
        (json!({ "outside": true }), "bash(touch *, network)", false),
        (json!({ "outside": true }), "bash(touch *, outside)", true),
        (json!({ "network": true, "outside": true }), "*", false),
    ] {
        let mut arguments = json!({ "command": "touch made" });
        let map = arguments.as_object_mut().expect("an object");
        map.extend(more.as_object().expect("an object").clone());
        let call = Reply::call("bash", arguments);
        let (_sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        let rule = format!("security.allow=[\"{allow}\"]");
        let output = workspace
            .run(&["exec", "go", "--mode", "unattended", "-c", &rule])
            .output();
        output.assert_code(0);
        assert_eq!(workspace.has("made"), runs, "{more} with {allow}: {output}");
    }
}

/// SAFE-6: options before a subcommand do not hide it from a rule.
#[test]
fn a_denied_subcommand_is_denied_behind_options() {
    for command in [
        "git -C . push",
        "git -c alias.p=push p",
        "/usr/bin/git --no-pager push",
    ] {
        let call = Reply::call("bash", json!({ "command": command }));
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        let deny = "security.deny=[\"bash(git push*)\"]";
        let run = workspace.run(&["exec", "go", "--mode", "full", "-c", deny]);
        run.output().assert_code(0);
        let told = &sim.outlines()[1];
        assert!(
            told.contains("the rule `bash(git push*)` forbids this"),
            "{command}: {told}"
        );
    }
}

/// SAFE-6: the rules of a trusted project tighten; its allowing rules and its mode have no effect.
#[test]
fn a_trusted_projects_rules_apply() {
    let calls = [
        Reply::call("bash", json!({ "command": "touch denied" })),
        Reply::call("bash", json!({ "command": "git push" })),
        Reply::text("fine"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, calls);
    let rules =
        "[security]\ndeny = [\"bash(touch *)\"]\nallow = [\"bash(git *, network)\"]\nmode = \"full\"\n";
    workspace.write(".windlass/config.toml", rules);
    workspace.run(&["trust", "--yes"]).output().assert_code(0);
    let output = workspace.run(&["exec", "go", "-c", "security.deny=[]"]).output();
    output.assert_code(5);
    assert!(!workspace.has("denied"), "{output}");
    assert!(sim.outlines()[1].contains("the rule `bash(touch *)` forbids this"));
    let listed = workspace.run(&["permissions", "list"]).output();
    assert!(
        listed.stdout.contains("security.deny = [\"bash(touch *)\"]"),
        "{listed}"
    );
    assert!(listed.stdout.contains("security.allow = []"), "{listed}");
}

/// SAFE-5 (S6.14): in an unattended run, a call of category `admin` or `write` is blocked unless it is
/// listed; reads run, and the model is informed and continues.
#[test]
fn an_unattended_run_does_what_is_listed() {
    let call = || Reply::call("bash", json!({ "command": "kill -0 1" }));
    let write = || Reply::call("write_file", json!({ "path": "a.txt", "content": "x" }));
    let read = || Reply::call("read_file", json!({ "path": "plain.txt" }));
    for (listed, runs, written) in [
        ("[]", false, false),
        ("[\"bash(kill *)\"]", true, false),
        ("[\"write_file(a.txt)\"]", false, true),
    ] {
        let (sim, workspace) = with_replies(
            Protocol::Anthropic,
            [read(), call(), write(), Reply::text("as far as I could")],
        );
        workspace.write("plain.txt", "plain to see");
        let run = workspace.run(&["exec", "go", "--mode", "unattended", "-c"]);
        run.arg(format!("security.allow={listed}"))
            .output()
            .assert_code(0);
        let outlines = sim.outlines();
        assert!(outlines[1].contains("plain to see"), "{}", outlines[1]);
        let told = outlines[2].contains("this run is unattended");
        assert_eq!(told, !runs, "{listed}: {}", outlines[2]);
        assert_eq!(workspace.has("a.txt"), written, "{listed}");
    }
}

/// SAFE-8: the calls of past sessions are tested against changed rules: those with a different decision are
/// shown, then a count; nothing runs.
#[test]
fn rules_are_tried_on_past_sessions() {
    let replies = [
        Reply::call("bash", json!({ "command": "echo hi >> ran.txt" }))
            .and_call("read_file", json!({ "path": "secrets/k" })),
        Reply::call(
            "write_file",
            json!({ "path": "/usr/local/windlass-test", "content": "" }),
        ),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("secrets/k", "x");
    let test = |rules: &str, which: &[&str]| {
        let mut args = vec!["permissions", "test"];
        args.extend(which);
        args.extend(["-c", rules]);
        workspace.run(&args).output()
    };
    workspace
        .run(&["exec", "go", "-c", "security.deny=[\"read_file(secrets/**)\"]"])
        .output()
        .assert_code(5);
    // The same rules: nothing changes.
    let same = test("security.deny=[\"read_file(secrets/**)\"]", &["--all-sessions"]);
    let line = "3 calls in 1 session: 0 changed; now 1 allowed, 1 ask, 1 denied\n";
    assert_eq!(same.assert_code(0).stdout, line, "{same}");
    let listed = workspace.run(&["sessions", "list", "--json"]).output().json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let other = test("security.deny=[\"bash(echo *)\"]", &["--session", &id]);
    let lines: Vec<&str> = other.assert_code(0).stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{other}");
    assert!(
        lines[0].starts_with("ran                now deny     bash"),
        "{other}"
    );
    assert!(
        lines[1].starts_with("denied             now allow    read_file"),
        "{other}"
    );
    assert!(lines[2].contains("2 changed"), "{other}");
    assert_eq!(workspace.read("ran.txt"), "hi\n");
    workspace.run(&["permissions", "test"]).output().assert_code(2);
    test("security.mode=full", &["--session", "nothing"]).assert_code(2);
}

/// Returns the decisions of `permissions test` about these commands.
fn decisions(workspace: &windlass_testkit::Workspace, commands: &[&str], more: &[&str]) -> Vec<String> {
    let calls: Vec<String> = commands
        .iter()
        .map(|command| json!({ "tool": "bash", "arguments": { "command": command } }).to_string())
        .collect();
    let file = workspace
        .write("calls.jsonl", &calls.join("\n"))
        .display()
        .to_string();
    let mut args = vec!["permissions", "test", &file];
    args.extend(more);
    let output = workspace.run(&args).output();
    output.assert_code(0);
    let lines = output.stdout.lines();
    lines
        .filter_map(|line| Some(line.split_once(" bash [")?.0.trim().to_owned()))
        .collect()
}

#[track_caller]
fn assert_decisions(
    workspace: &windlass_testkit::Workspace,
    expected: &str,
    commands: &[&str],
    more: &[&str],
) {
    let found = decisions(workspace, commands, more);
    assert_eq!(found.len(), commands.len(), "{found:?}");
    for (command, decision) in commands.iter().zip(found) {
        assert_eq!(decision, expected, "{command}");
    }
}

/// SAFE-5: work in the project asks nothing, whichever folder a command line goes through and however it names it, and
/// commands that talk to a server of the same session need no network.
#[test]
fn work_in_the_project_does_not_ask() {
    let workspace = workspace();
    workspace.write("sub/inner/a.txt", "");
    let root = workspace.path().display().to_string();
    let commands = [
        format!("cd {root} && touch b"),
        format!("cd {root}/sub && make"),
        format!("cd '{root}/sub/..' && echo x > b"),
        format!("git -C {root} add ."),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    assert_decisions(&workspace, "allow", &commands, &[]);
    assert_decisions(
        &workspace,
        "allow",
        &[
            "cd sub && make && cd .. && touch b",
            "cd sub/inner && cp a.txt ../../b",
            "(cd sub && make) && touch b",
            "pushd sub && make; popd; touch b",
            "cd sub && touch a && cd - && touch b",
            "cd /tmp && touch a",
            "git stash push -m pull",
            "git submodule status",
            "git commit -m push",
            "PYTHONPATH=src python3 -m pytest",
            "GIT_EDITOR=true git rebase --continue",
            "./server & sleep 1; curl -s http://localhost:8080/health; kill %1",
        ],
        &[],
    );
    assert_decisions(
        &workspace,
        "ask",
        &[
            "cd .. && touch b",
            "cd sub && cd ../.. && touch b",
            "cd sub/inner && touch ../../../b",
            "cd / && touch b",
            "(cd ..); cd sub/../.. && touch b",
            "popd; touch b",
            "git stash push && git push",
            "curl -s http://localhost.example.org",
            "echo x > ~root/.bashrc",
            "cat //dev/tty",
        ],
        &[],
    );
    // With the network on, a server on this machine may be anyone's.
    let on = ["-c", "security.network=true"];
    assert_decisions(&workspace, "ask", &["curl -s http://localhost:8080"], &on);
}

/// SAFE-2 (S6.5): a listed command in an option of a launcher is found, whatever the spelling of the option.
#[test]
fn launchers_hide_no_listed_command() {
    assert_decisions(
        &workspace(),
        "deny",
        &[
            "tar cIf 'rm a' x.tar .",
            "make CC='rm a;' x.o",
            "cmake -E chdir . rm a",
            "cargo watch -s 'rm a'",
            "npm test --script-shell=rm",
            "bun exec 'rm a'",
            "unbuffer rm a",
            "python3 -m timeit '__import__(\"subprocess\").run([\"rm\",\"a\"])'",
        ],
        &[],
    );
}

/// SAFE-5, SAFE-4: a command that goes through the absolute path of the project writes there, and one that leaves it writes
/// nothing.
#[test]
fn the_folder_of_a_command_line_is_followed() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, []);
    let root = workspace.path().display().to_string();
    drop(sim);
    for (command, code, made) in [
        (format!("cd {root} && echo x > one.txt"), 0, "one.txt"),
        (
            "mkdir sub && cd sub && cd .. && echo x > two.txt".to_owned(),
            0,
            "two.txt",
        ),
        ("cd sub && echo x > ../../three.txt".to_owned(), 5, "../three.txt"),
    ] {
        let call = Reply::call("bash", json!({ "command": command }));
        let sim = windlass_testkit::SimServer::script(super::support::script([call, Reply::text("fine")]));
        workspace.use_sim(&sim, Protocol::Anthropic);
        workspace.run(&["exec", "go"]).output().assert_code(code);
        assert_eq!(workspace.has(made), code == 0, "{command}");
    }
}

/// SAFE-6, SAFE-3: the folder that a pattern of `glob` names is judged like one in its path: a rule that denies it holds, and one
/// that allows it lets the search reach it outside.
#[test]
fn the_folder_of_a_pattern_is_judged() {
    let outside = super::support::elsewhere();
    std::fs::write(outside.path().join("found.h"), "").unwrap();
    let folder = outside.path().display().to_string();
    let allow = format!("security.allow=[\"glob({folder})\"]");
    let found = format!("{folder}/*.h");
    for (pattern, setting, told) in [
        ("secrets/*", "security.deny=[\"glob(secrets)\"]", "forbids this"),
        (
            "./secrets/../secrets/k*",
            "security.deny=[\"glob(secrets)\"]",
            "forbids this",
        ),
        (found.as_str(), allow.as_str(), "found.h"),
        (found.as_str(), "security.allow=[]", "outside allowed paths"),
        ("src/**/*.h", "security.allow=[]", "src/below/own.h"),
    ] {
        let call = Reply::call("glob", json!({ "pattern": pattern }));
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call, Reply::text("fine")]);
        workspace.write("secrets/key", "");
        workspace.write("src/below/own.h", "");
        let output = workspace.run(&["exec", "go", "-c", setting]).output();
        output.assert_code(0);
        let outline = &sim.outlines()[1];
        assert!(outline.contains(told), "{pattern}: {outline}");
        assert!(!outline.contains("secrets/key"), "{pattern}: {outline}");
    }
}

/// SAFE-2: a pattern of `grep` that would keep the processor busy for minutes is refused.
#[test]
fn a_huge_pattern_is_refused() {
    let workspace = workspace();
    workspace.write("long.txt", &"x".repeat(1_000_000));
    let call = json!({ "pattern": "x{100000}" }).to_string();
    let output = workspace.run(&["tools", "run", "grep", &call]).output();
    output.assert_code(1).assert_says("size limit");
}
