//! Files that other programs run by themselves: attacks through file tools and commands, and the approvals that lift
//! the protection.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, SimServer, Workspace};

use super::support::{elsewhere, results, with_replies};

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments).env("HOME", folder);
    let identity = [("NAME", "Ann"), ("EMAIL", "ann@example.org")];
    for (name, value) in identity {
        command.env(format!("GIT_AUTHOR_{name}"), value);
        command.env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

/// A repository with a submodule, a worktree, a nested repository, and a link to its hooks.
fn repository(workspace: &Workspace) {
    let root = workspace.path();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["config", "user.name", "Ann"]);
    git(&root, &["config", "user.email", "ann@example.org"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "first"]);
    for name in ["nested", "vendor/lib"] {
        fs::create_dir_all(root.join(name)).unwrap();
        git(&root.join(name), &["init", "-q"]);
    }
    fs::create_dir_all(root.join(".git/modules/lib/hooks")).unwrap();
    fs::write(root.join(".git/modules/lib/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(root.join(".git/modules/lib/config"), "[core]\n").unwrap();
    workspace.write("lib/.git", "gitdir: ../.git/modules/lib\n");
    std::os::unix::fs::symlink(".git/hooks", root.join("innocent")).unwrap();
    workspace.write("plain.sh", "#!/bin/sh\n");
}

fn scene(call: (&str, Value)) -> (SimServer, Workspace) {
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::call(call.0, call.1), Reply::text("done")],
    );
    repository(&workspace);
    (sim, workspace)
}

/// Returns the content of every file in the project, without what git writes when it commits.
fn state(workspace: &Workspace) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![workspace.path()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => files.push((path.display().to_string(), fs::read(&path).unwrap_or_default())),
            }
        }
    }
    files.sort();
    files
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": "echo hit\n" }))
}

fn patch(text: &str) -> (&'static str, Value) {
    let patch = format!("*** Begin Patch\n{text}*** End Patch\n");
    ("apply_patch", json!({ "patch": patch }))
}

fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

fn file_attacks() -> Vec<(&'static str, Value)> {
    vec![
        write(".git/hooks/post-merge"),
        write("./src/../.git/hooks/post-merge"),
        write("innocent/post-merge"),
        write(".git/config"),
        write(".git/config.worktree"),
        write(".git/commondir"),
        write(".git/info/attributes"),
        write(".git/modules/lib/hooks/update"),
        write("nested/.git/config"),
        write("lib/.git"),
        write("new/.git"),
        write(".windlass/tools.yaml"),
        write(".vscode/tasks.json"),
        write(".claude/settings.json"),
        write(".mcp.json"),
        write(".GIT/hooks/post-merge"),
        (
            "edit_file",
            json!({ "path": ".git/config", "old_string": "Ann", "new_string": "Eve" }),
        ),
        patch(
            "*** Update File: plain.sh\n*** Move to: .git/hooks/post-merge\n@@\n-#!/bin/sh\n+#!/bin/bash\n",
        ),
        patch("*** Add File: .idea/workspace.xml\n+x\n"),
        patch("*** Delete File: .git/config\n"),
    ]
}

/// SAFE-10, SAFE-5: a file tool that changes what another program runs automatically asks, in every mode and under every
/// spelling; without a person it is refused.
#[test]
fn file_tools_ask_in_every_mode() {
    for call in file_attacks() {
        for mode in ["default", "full"] {
            let (_sim, workspace) = scene(call.clone());
            let before = state(&workspace);
            let output = workspace
                .run(&[
                    "exec",
                    "-o",
                    "stream-json",
                    "--mode",
                    mode,
                    "-c",
                    "security.allow=[\"*\"]",
                    "go",
                ])
                .output();
            assert_eq!(state(&workspace), before, "{call:?}: {output}");
            let asked = output.events_of("permission_request");
            assert_eq!(asked.len(), 1, "{call:?}: {output}");
            let reasons = asked[0]["reasons"].to_string();
            assert!(reasons.contains("runs automatically"), "{call:?}: {reasons}");
        }
    }
}

/// SAFE-10: with approval the same calls work, so the tests above can fail.
#[test]
fn an_approved_change_is_made() {
    let calls = [
        write(".git/hooks/post-merge"),
        write(".windlass/tools.yaml"),
        write(".GIT/hooks/post-merge"),
    ];
    for call in calls {
        let (_sim, workspace) = scene(call.clone());
        let output = workspace.run_on_terminal("exec go").stdin("y\n").output();
        let path = call.1["path"].as_str().unwrap();
        assert!(workspace.has(path), "{path}: {output}");
    }
}

/// Scripts, because a command line that names a protected file is asked about and does not reach the sandbox.
fn command_attacks() -> Vec<&'static str> {
    vec![
        "echo hit > .git/hooks/post-merge",
        "echo hit >> .git/config",
        "printf x > new; ln -f new .git/config; mv -f new .git/config; cp new .git/config",
        "mv .git .old; mkdir -p .git/hooks; echo hit > .git/hooks/x",
        "echo hit > .git/config.worktree",
        "echo hit > .git/info/attributes",
        "echo hit > .git/modules/lib/config",
        "echo hit > .git/modules/lib/hooks/update",
        "echo hit > nested/.git/config",
        "mv nested other; mkdir -p nested/.git; echo hit > nested/.git/config",
        "echo hit > lib/.git",
        "mkdir -p .windlass; echo hit > .windlass/tools.yaml",
        "mkdir -p .vscode; echo hit > .vscode/tasks.json",
        "mkdir -p .idea; echo hit > .idea/x",
        "mkdir -p .cursor; echo hit > .cursor/x",
        "mkdir -p .codex; echo hit > .codex/x",
        "mkdir -p .claude; echo hit > .claude/settings.json",
        "rmdir .mcp.json; echo hit > .mcp.json",
        "mv .claude .x; mkdir .claude; echo hit > .claude/x",
        "chmod +x .git/hooks/* .git/config",
        "ln -sf plain.sh .git/hooks/post-merge",
    ]
}

/// SAFE-10, SAFE-4: no command changes what other programs run by themselves, whether it exists or not, in any mode.
#[test]
fn commands_cannot_change_protected_files() {
    for command in command_attacks() {
        for mode in [
            &["--mode", "default"][..],
            &["--mode", "full", "-c", "security.allow=[\"*\"]"],
        ] {
            let outside = mode.len() > 2;
            let call = ("bash", json!({ "command": "sh attack.sh", "outside": outside }));
            let (sim, workspace) = scene(call);
            workspace.write("attack.sh", command);
            let before = state(&workspace);
            let output = workspace.run(&["exec", "go"]).args(mode).output();
            let hit = |(path, content): &(String, Vec<u8>)| {
                let is_protected = [
                    ".git",
                    ".windlass",
                    ".vscode",
                    ".idea",
                    ".cursor",
                    ".codex",
                    ".claude",
                    ".mcp.json",
                ];
                let old = before
                    .iter()
                    .find(|(known, _)| known == path)
                    .map(|(_, content)| content);
                let inside = |name: &&str| Path::new(path).iter().any(|part| part == *name);
                is_protected.iter().any(inside) && old != Some(content)
            };
            let changed: Vec<String> = state(&workspace)
                .into_iter()
                .filter(hit)
                .map(|(path, _)| path)
                .collect();
            assert!(changed.is_empty(), "{command} {mode:?}: {changed:?}\n{output}");
            assert_eq!(sim.count(), 2, "the command ran: {command} {mode:?}\n{output}");
            assert!(
                workspace.has(".git/HEAD") && workspace.has("nested/.git/HEAD"),
                "{command}\n{output}"
            );
        }
    }
}

/// SAFE-10: commands that name protected files ask first, and work once a person has approved them.
#[test]
fn approved_commands_change_git_settings() {
    let cases = [
        ("git config core.editor ed", ".git/config", "editor = ed"),
        (
            "git remote add up https://example.net/x",
            ".git/config",
            "example.net",
        ),
        ("echo hit > .git/hooks/post-merge", ".git/hooks/post-merge", "hit"),
        ("git submodule--none || git config a.b c", ".git/config", "b = c"),
    ];
    for (command, file, expected) in cases {
        let (_sim, workspace) = scene(("bash", json!({ "command": command })));
        let denied = workspace.run(&["exec", "go"]).output();
        let text = fs::read_to_string(workspace.path().join(file)).unwrap_or_default();
        assert!(!text.contains(expected), "{command}: {denied}");
        let (_sim, workspace) = scene(("bash", json!({ "command": command })));
        let output = workspace.run_on_terminal("exec go").stdin("y\n").output();
        assert!(output.stdout.contains("automatically"), "{command}: {output}");
        assert!(workspace.read(file).contains(expected), "{command}: {output}");
    }
}

/// SAFE-10: `git init` and a clone into the empty workspace ask, and then work although absent paths are protected.
#[test]
fn approved_commands_create_a_repository() {
    let source = elsewhere();
    git(source.path(), &["init", "-q"]);
    git(source.path(), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let clone = format!("git clone -q {} .", source.path().display());
    for command in ["git init -q", clone.as_str()] {
        let replies = [
            bash("true"),
            bash(command),
            // In the new repository, everyday commands work and its settings are protected.
            bash(
                "touch a; git add a; python3 -c 'open(\".git/config\", \"a\").write(\"hit\")'; git status; ls -a",
            ),
            Reply::text("done"),
        ];
        let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let output = workspace.run_on_terminal("exec go").stdin("y\n").output();
        assert!(workspace.has(".git/HEAD"), "{command}: {output}");
        assert!(
            !workspace.read(".git/config").contains("hit"),
            "{command}: {output}"
        );
        assert!(workspace.has(".git/index"), "{command}: {output}");
        assert!(
            !workspace.has(".windlass") && !workspace.has(".mcp.json"),
            "{command}: {output}"
        );
    }
}

/// SAFE-10: everyday commands of git run without a question.
#[test]
fn everyday_git_is_not_asked_about() {
    let command = "touch a && git add a && git commit -q -m a && git checkout -q -b feature && git stash list && \
                   git log --oneline && git status --short";
    let (sim, workspace) = scene(("bash", json!({ "command": command })));
    let output = workspace.run(&["exec", "-o", "stream-json", "go"]).output();
    assert!(output.events_of("permission_request").is_empty(), "{output}");
    let result: &Output = &output;
    assert_eq!(result.events_of("tool_result")[0]["is_error"], false, "{output}");
    assert!(workspace.read(".git/HEAD").contains("feature"), "{output}");
    sim.assert_valid();
}

/// SAFE-10: nothing is left in the workspace, and the user can use the places meanwhile.
#[test]
fn placeholders_do_not_stay() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call(
                "bash",
                json!({ "command": "sleep 0.5; ls -A; git rev-parse --show-toplevel" }),
            ),
            Reply::call("list_directory", json!({ "path": "." })),
            Reply::text("done"),
        ],
    );
    let output = workspace.run(&["exec", "-o", "stream-json", "go"]).output();
    let listed = output.events_of("tool_result")[1]["content"].to_string();
    assert!(listed.contains("empty"), "{output}");
    assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0, "{output}");
}

/// SAFE-10: `tools run` does not change protected files by accident.
#[test]
fn tools_run_asks_for_yes() {
    let (_sim, workspace) = scene(write("x"));
    let arguments = r##"{"path":".git/hooks/post-merge","content":"#!/bin/sh\n"}"##;
    let output = workspace.run(&["tools", "run", "write_file", arguments]).output();
    output.assert_code(5);
    assert!(
        output
            .stderr
            .contains("it changes .git/hooks, which git runs automatically"),
        "{output}"
    );
    assert!(!workspace.has(".git/hooks/post-merge"));
    workspace
        .run(&["tools", "run", "write_file", "--yes", arguments])
        .output()
        .assert_code(0);
    assert!(workspace.has(".git/hooks/post-merge"));
}

/// SAFE-10: a command that redirects git to settings of its own is ended, and the file is gone before its result is
/// seen, however it was created; ordinary work with git goes on.
#[test]
fn a_command_cannot_redirect_git() {
    let create = "import os, sys, time\nos.makedirs('evil', exist_ok=True)\nopen('evil/config', 'w').write('[core]\\n\\tfsmonitor = touch ../hit\\n')\n";
    let redirect = "open('.git/commondir', 'w').write('../evil')\n";
    let moved = "open('.git/x', 'w').write('../evil')\nos.rename('.git/x', '.git/commondir')\n";
    let linked =
        "os.chdir('.git/modules/lib')\nopen('y', 'w').write('../../../evil')\nos.link('y', 'commondir')\n";
    let unwatched = "os.kill(os.getppid(), 9)\n";
    let attacks = [
        format!("{create}{redirect}"),
        format!("{create}{redirect}time.sleep(20)\n"),
        format!("{create}{moved}time.sleep(20)\n"),
        format!("{create}{linked}time.sleep(20)\n"),
        format!("{create}{unwatched}{redirect}time.sleep(20)\n"),
        format!(
            "{create}if os.fork() == 0:\n os.setsid()\n time.sleep(0.3)\n {redirect} time.sleep(20)\ntime.sleep(1)\n"
        ),
    ];
    for attack in attacks {
        let replies = [
            bash("exec python3 attack.py"),
            bash("git add plain.sh && git commit -q -m second && git log --oneline"),
            Reply::text("done"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        repository(&workspace);
        workspace.write("attack.py", &attack);
        let started = std::time::Instant::now();
        let output = workspace.run(&["exec", "--mode", "full", "go"]).output();
        output.assert_code(0);
        assert!(started.elapsed().as_secs() < 15, "{attack}");
        for name in [".git/commondir", ".git/modules/lib/commondir", "hit"] {
            assert!(!workspace.has(name), "{name}: {attack}");
        }
        let results = results(&sim);
        // Whoever kills the process that watches it may end before the file is noticed.
        let was_ended = attack.contains(unwatched) && results[0].contains("launcher ended");
        assert!(
            results[0].contains("created commondir") || was_ended,
            "{attack}: {results:?}"
        );
        assert!(results[1].contains("second"), "{attack}: {results:?}");
    }
}

/// A script that tries to change files, and names those that it changed.
fn changing(files: &[&str]) -> String {
    format!(
        "for file in {}; do mkdir -p $(dirname $file); echo hit >> $file && echo changed $file; done; echo tried",
        files.join(" ")
    )
}

/// SAFE-10: what is protected in the workspace is protected in every other writable folder, however the settings spell
/// the folder.
#[test]
fn other_writable_folders_are_protected() {
    for (spelled, real) in [
        ("../lib", "../lib"),
        ("../link", "../lib"),
        ("sub/../../lib", "../lib"),
    ] {
        let (sim, workspace) = scene(("bash", json!({ "command": "sh attack.sh", "write": true })));
        let lib = workspace.path().join(real);
        for folder in [lib.clone(), lib.join("inner")] {
            fs::create_dir_all(&folder).unwrap();
            git(&folder, &["init", "-q"]);
        }
        fs::create_dir_all(workspace.path().join("sub")).unwrap();
        std::os::unix::fs::symlink(&lib, workspace.path().join("../link")).unwrap();
        let files = [
            "../lib/.git/config",
            "../lib/.git/hooks/post-commit",
            "../lib/.vscode/tasks.json",
            "../lib/.claude/settings.json",
            "../lib/inner/.git/config",
            "../lib/plain",
        ];
        workspace.write("attack.sh", &changing(&files));
        let allowed = format!("security.allowed_paths=[\".\", \"{spelled}\", \"$TMPDIR\"]");
        let output = workspace.run(&["exec", "go", "-c", &allowed]).output();
        let result = results(&sim).concat();
        let changed: Vec<&str> = result
            .lines()
            .filter(|line| line.starts_with("changed"))
            .collect();
        assert_eq!(changed, ["changed ../lib/plain"], "{spelled}: {result}\n{output}");
        assert!(result.contains("tried"), "{spelled}: {result}");
    }
}

/// SAFE-10: approving a command that changes git's settings lets nothing of its command line write elsewhere: not
/// outside, and not to other protected files.
#[test]
fn an_approval_lifts_only_what_it_names() {
    let command = "git config user.email eve@example.org && sh attack.sh";
    for (tool_mode, answer) in [
        (&["exec", "go"][..], "y\n"),
        (&["exec", "go", "--mode", "full"], "y\n"),
    ] {
        let (_sim, workspace) = scene(("bash", json!({ "command": command })));
        let files = [
            ".vscode/tasks.json",
            ".mcp.json/x",
            "../outside",
            "\"$HOME/.bashrc\"",
        ];
        workspace.write("attack.sh", &changing(&files));
        let home = elsewhere();
        let run = workspace.run_on_terminal(&tool_mode.join(" "));
        let run = run.env("HOME", &home.path().display().to_string());
        let output = run.stdin(answer).output();
        assert!(
            workspace.read(".git/config").contains("eve@example.org"),
            "{output}"
        );
        assert!(!home.path().join("outside").exists(), "{output}");
        assert!(!home.path().join(".bashrc").exists(), "{output}");
    }
    // With approval for more, the same script can write there, so the test can fail.
    let (_sim, workspace) = scene(("bash", json!({ "command": command, "outside": true })));
    let home = elsewhere();
    let outside = home.path().join("outside");
    workspace.write("attack.sh", &changing(&[&outside.display().to_string()]));
    let output = workspace.run_on_terminal("exec go").stdin("y\n").output();
    assert!(outside.exists(), "{output}");
}

/// SAFE-10: a job cannot wait for the moment in which an approved call replaces a protected file, and with it the mount
/// that protects the file: such a call runs alone.
#[test]
fn a_job_cannot_wait_for_an_approved_change() {
    let job = "for i in $(seq 1000); do echo hit 2>/dev/null >> .git/config && break; sleep 0.005; done";
    let waits = |background: bool| json!({ "command": "sh job.sh", "background": background, "write": true });
    let left = json!({ "command": "(setsid sh job.sh > /dev/null 2>&1 &); echo left", "write": true });
    let change = json!({ "command": "git remote add up https://example.net/x" });
    let edit = json!({ "path": ".git/config", "old_string": "Ann", "new_string": "Eve" });
    for (first, tool, arguments, is_refused) in [
        (waits(true), "bash", change.clone(), true),
        (waits(true), "edit_file", edit.clone(), true),
        (left.clone(), "bash", change.clone(), false),
        (left, "edit_file", edit.clone(), false),
        (waits(false), "bash", change, false),
        (json!({ "command": "true" }), "edit_file", edit, false),
    ] {
        let replies = [
            Reply::call("bash", first.clone()),
            Reply::call("read_file", json!({ "path": ".git/config" })),
            Reply::call(tool, arguments.clone()),
            Reply::text("done"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        repository(&workspace);
        workspace.write("job.sh", job);
        let output = workspace.run_on_terminal("exec go").stdin("y\n").output();
        let config = workspace.read(".git/config");
        let results = results(&sim);
        assert!(!config.contains("hit"), "{first} {tool}: {config}\n{output}");
        let was_refused = results
            .last()
            .unwrap()
            .contains("another command is still running");
        assert_eq!(was_refused, is_refused, "{first} {tool}: {results:?}\n{output}");
        let has_changed = config.contains("example.net") || config.contains("Eve");
        assert_eq!(has_changed, !is_refused, "{first} {tool}: {results:?}\n{output}");
    }
}

/// SAFE-10: scripts of the project that Windlass itself runs outside the sandbox of commands are protected: those of the
/// user's hooks, of a trusted tool, and of a server.
#[test]
fn scripts_that_windlass_runs_are_protected() {
    let scripts = ["scripts/hook.sh", "scripts/tool.sh", "scripts/server.py"];
    let attack = "for f in scripts/*; do printf '' >> $f && echo changed $f; mv -f plain.sh $f && echo replaced $f; \
                  done; mv scripts x && echo moved; echo tried";
    let files = scripts.map(write);
    let calls = [("bash", json!({ "command": "sh attack.sh", "write": true }))];
    for call in calls.into_iter().chain(files) {
        let (sim, workspace) = scene(call.clone());
        for script in scripts {
            workspace.write(script, "echo fine\n");
        }
        workspace.write("attack.sh", attack);
        let hooks = json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "sh scripts/hook.sh" }] }] } });
        fs::write(
            workspace.config_file().with_file_name("hooks.json"),
            hooks.to_string(),
        )
        .unwrap();
        let servers =
            json!({ "mcpServers": { "s": { "command": "python3", "args": ["scripts/server.py"] } } });
        fs::write(
            workspace.config_file().with_file_name("mcp.json"),
            servers.to_string(),
        )
        .unwrap();
        let tools = "tools:\n  - name: deploy\n    description: d\n    cmd: sh\n    args: [scripts/tool.sh]\n    category: write\n";
        workspace.write(".windlass/tools.yaml", tools);
        workspace.run(&["trust", "--yes"]).output().assert_code(0);
        let output = workspace.run(&["exec", "go", "--mode", "full"]).output();
        for script in scripts {
            assert_eq!(
                workspace.read(script),
                "echo fine\n",
                "{call:?}: {script}: {output}"
            );
        }
        if call.0 == "bash" {
            let result = results(&sim).concat();
            assert!(result.contains("tried"), "{result}\n{output}");
            assert!(!result.contains("changed"), "{result}\n{output}");
        }
    }
}

/// SAFE-10: a submodule that is not checked out stays so for commands: `git status` would run what the settings of its
/// repository name.
#[test]
fn a_command_cannot_create_the_repository_of_a_submodule() {
    let attack = "mkdir -p sub/.git/objects sub/.git/refs; cp .git/HEAD sub/.git/; \
                  printf '[core]\\n\\tfsmonitor = touch hit; false\\n' > sub/.git/config; echo tried";
    for is_there in [true, false] {
        let (sim, workspace) = scene(("bash", json!({ "command": "sh attack.sh", "write": true })));
        let entry = "160000,1234567890123456789012345678901234567890,sub";
        git(
            &workspace.path(),
            &["update-index", "--add", "--cacheinfo", entry],
        );
        if is_there {
            fs::create_dir(workspace.path().join("sub")).unwrap();
        }
        workspace.write("attack.sh", attack);
        let output = workspace.run(&["exec", "go", "--mode", "full"]).output();
        assert!(results(&sim).concat().contains("tried"), "{output}");
        assert!(!workspace.has("sub/.git/config"), "{output}");
        git(&workspace.path(), &["status"]);
        assert!(!workspace.has("hit") && !workspace.has("sub/hit"), "{output}");
    }
}
