//! `bash`: results of commands.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_core::permission::Subject;
use windlass_core::tool::{Category, ToolError};
use windlass_tools::ToolsConfig;

use crate::desk::{Desk, SOON, until};

/// TOOL-1, TOOL-2: output, exit code and signal as the model sees them.
#[tokio::test]
async fn the_answer_says_what_happened() {
    let cases = [
        ("echo hello", "hello", false, Some(0)),
        ("true", "(no output)", false, Some(0)),
        ("exit 3", "(no output)\n[exit code 3]", true, Some(3)),
        (
            "echo out; echo err >&2; exit 1",
            "out\nerr\n[exit code 1]",
            true,
            Some(1),
        ),
        (
            "for i in 1 2 3; do echo o$i; echo e$i >&2; done",
            "o1\ne1\no2\ne2\no3\ne3",
            false,
            Some(0),
        ),
        (
            "kill -KILL $$",
            "(no output)\n[killed by signal KILL]",
            true,
            None,
        ),
        ("printf 'no newline'", "no newline", false, Some(0)),
        ("printf '\\xff\\xc3\\xa4'", "\u{FFFD}ä", false, Some(0)),
        ("cat", "(no output)", false, Some(0)),
        ("-x", "", true, Some(127)),
        ("pwd -P | wc -l", "1", false, Some(0)),
    ];
    let desk = Desk::new();
    for (command, expected, failed, exit_code) in cases {
        let output = desk
            .call("bash", json!({ "command": command }))
            .await
            .expect(command);
        if !expected.is_empty() {
            assert_eq!(output.content, expected, "{command}");
        }
        assert_eq!(output.failed, failed, "{command}");
        let details = output.details.expect("details");
        assert_eq!(details["exit_code"], json!(exit_code), "{command}");
        assert_eq!(details["command"], command);
        assert_eq!(details["truncated"], false);
        assert!(details["duration_ms"].is_u64());
    }
}

/// SAFE-5, SAFE-2: a command is judged by its effects, piece by piece, and some commands are refused, or
/// left to a person, whatever the rules say.
#[test]
fn a_command_is_judged_by_what_it_does() {
    let cases = [
        ("ls -la | head", Category::Read, &["ls -la", "head"][..], false),
        (
            "make && touch x",
            Category::Write,
            &["make", "touch x"][..],
            false,
        ),
        ("git push", Category::Admin, &["git push"][..], false),
        (
            "echo hi; rm -rf x",
            Category::Admin,
            &["echo hi", "rm -rf x"][..],
            true,
        ),
        ("echo 'unfinished", Category::Admin, &[][..], true),
    ];
    for (command, category, pieces, refused) in cases {
        let call = Desk::new()
            .prepare("bash", &json!({ "command": command }))
            .expect("valid");
        assert_eq!(
            (call.category, call.refusal.is_some() || call.blocked.is_some()),
            (category, refused),
            "{command}"
        );
        let expected: Vec<_> = pieces
            .iter()
            .map(|piece| Subject::Command((*piece).to_owned()))
            .collect();
        assert!(
            refused || call.subjects == expected,
            "{command}: {:?}",
            call.subjects
        );
    }
}

/// SAFE-5: a git command that only reads runs no program that the settings of the repository name.
#[tokio::test]
async fn reading_git_commands_ignore_programs_in_settings() {
    let desk = Desk::new();
    let run = async |command: &str| {
        let output = desk.call("bash", json!({ "command": command })).await;
        output.expect(command).content
    };
    desk.put("f", "one\n");
    run("git init -q . && git add f && git -c user.name=a -c user.email=b commit -qm one; touch -d 2001-01-01 f").await;
    let evil = desk.path("evil");
    let settings = [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "gpg.program",
        "pager.log",
        "alias.log",
    ];
    let script = format!("#!/bin/sh\ntouch {}\n", evil.display());
    desk.put(".git/program", &script)
        .put(".git/hooks/post-index-change", &script);
    run("chmod +x .git/program .git/hooks/post-index-change").await;
    let program = desk.path(".git/program");
    let mut config = desk.content(".git/config");
    for (section, key) in settings.iter().filter_map(|name| name.split_once('.')) {
        config.push_str(&format!("[{section}]\n\t{key} = {}\n", program.display()));
    }
    config.push_str("[log]\n\tshowSignature = true\n[format]\n\tpretty = %h %G?\n");
    desk.put(".git/config", config);
    for command in [
        "git status",
        "git diff",
        "git log -p",
        "git show",
        "git branch",
        "git -C . status -sb",
    ] {
        let call = desk
            .prepare("bash", &json!({ "command": command }))
            .expect(command);
        assert_eq!(call.category, Category::Read, "{command}");
        run(command).await;
        assert!(!evil.exists(), "{command} ran a program of the settings");
    }
    // The same settings take effect in a command that writes.
    run("git status; touch x").await;
    assert!(evil.exists(), "the settings of the test name no program");
}

/// SAFE-1: a command sees the given environment and the marker of its call, no start-up files, and its
/// working directory.
#[tokio::test]
async fn the_environment_is_the_given_one() {
    let desk = Desk::new();
    desk.put(".bashrc", "echo START")
        .put("bash", "#!/bin/sh\necho FALSE")
        .put("here.txt", "");
    let command = "env | cut -d= -f1 | sort; ls; shopt -q login_shell || echo plain";
    let text = desk.text("bash", json!({ "command": command })).await;
    for name in [
        "AGENT",
        "AI_AGENT",
        "GIT_EDITOR",
        "PATH",
        "WINDLASS_CALL",
        "WINDLASS_SESSION",
        "here.txt",
        "plain",
    ] {
        assert!(text.lines().any(|line| line == name), "{name} in {text}");
    }
    for name in ["START", "FALSE", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
}

/// TOOL-1: invalid arguments are refused with the reason.
#[tokio::test]
async fn bad_arguments_name_the_field() {
    let desk = Desk::new();
    let cases = [
        (json!({}), "command"),
        (json!({ "command": "ls", "timeout_secs": 0 }), "timeout_secs"),
        (json!({ "command": "ls", "shell": "zsh" }), "shell"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({ "command": "x".repeat(300_000) }), "too long"),
    ];
    for (arguments, word) in cases {
        match desk.error("bash", arguments).await {
            ToolError::Invalid(text) => assert!(text.contains(word), "{word} in {text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// TOOL-1: a missing working directory is reported.
#[tokio::test]
async fn a_missing_folder_is_named() {
    let desk = Desk::new();
    let call = desk.prepare("bash", &json!({ "command": "ls" })).expect("valid");
    let mut cx = desk.context();
    let mut execution = (*cx.execution).clone();
    execution.cwd = desk.path("gone");
    cx.execution = execution.into();
    match call.run(cx).await {
        Err(ToolError::Permanent(text)) => {
            assert!(text.contains("gone") && text.contains("does not exist"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// TOOL-3: the start and the end of a large output are kept, whatever its size.
#[tokio::test]
async fn large_output_keeps_both_ends() {
    let desk = Desk::new();
    let output = desk
        .call("bash", json!({ "command": "seq 1 300000" }))
        .await
        .expect("an answer");
    assert!(output.content.starts_with("1\n2\n3\n"));
    assert!(output.content.ends_with("\n299999\n300000"));
    assert!(output.content.contains(" bytes left out …]\n"));
    assert!(output.content.len() <= 200_100, "{}", output.content.len());
    assert_eq!(output.details.expect("details")["truncated"], true);
}

/// TOOL-9: output is shown while the command runs, and all of it by the end.
#[tokio::test]
async fn output_is_shown_live() {
    let desk = Desk::new();
    let command = format!(
        "echo first; while [ ! -e {} ]; do sleep 0.01; done; echo last",
        desk.path("go").display()
    );
    let call = desk
        .prepare("bash", &json!({ "command": command }))
        .expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    until("the first line is shown", || desk.live().contains("first")).await;
    assert!(!running.is_finished());
    desk.put("go", "");
    let output = running.await.expect("no panic").expect("an answer");
    assert_eq!(output.content, "first\nlast");
    assert_eq!(desk.live(), "first\nlast\n");
}

/// TOOL-4: a command that times out is ended, and the answer contains the output so far.
#[tokio::test]
async fn a_timeout_keeps_the_output() {
    let desk = Desk::with(&ToolsConfig {
        command_timeout: Duration::from_millis(1500),
        ..ToolsConfig::default()
    });
    for (arguments, note) in [
        (
            json!({ "command": "echo before; sleep 100", "timeout_secs": 1 }),
            "[timed out after 1 s]",
        ),
        (
            json!({ "command": "echo before; sleep 100" }),
            "[timed out after 1.5 s]",
        ),
    ] {
        let output = desk.call("bash", arguments).await.expect("an answer");
        assert_eq!(output.content, format!("before\n{note}"));
        assert!(output.failed);
    }
}

/// LOOP-8: a background process does not block the call, and is left running.
#[tokio::test]
async fn a_background_process_does_not_hold_the_call() {
    let desk = Desk::new();
    let started = Instant::now();
    let output = desk
        .call("bash", json!({ "command": "sleep 100 & echo $!" }))
        .await
        .expect("an answer");
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    let (pid, note) = output.content.split_once('\n').expect("two lines");
    assert!(
        note.contains("background process") && note.contains("left running"),
        "{note}"
    );
    assert!(!output.failed);
    assert!(crate::desk::runs(pid.parse().expect("a pid")));
    desk.text("bash", json!({ "command": format!("kill {pid}") }))
        .await;
}
