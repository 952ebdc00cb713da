//! Tools declared in YAML, with real programs.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use windlass_core::tool::{AnyTool, Category, ToolError, ToolOutput, ToolSet};
use windlass_tools::declared::{Declarations, LastGood, Paths, Refresh, Source};
use windlass_tools::{ToolsConfig, builtin};

use crate::desk::{Desk, pids, runs, until};

/// Writes its arguments to the file `argv`, each terminated by NUL, which no argument can contain.
const ARGV: &str = "printf '%s\\0' \"$@\" > argv\n";

/// Returns the only tool of a file with these additional lines.
fn declared(lines: &str) -> Arc<dyn AnyTool> {
    declared_with(lines, &ToolsConfig::default())
}

fn declared_with(lines: &str, config: &ToolsConfig) -> Arc<dyn AnyTool> {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!("tools:\n  - name: probe\n    description: Probes.\n    category: write\n{lines}");
    let declarations = Declarations::parse(&text, "tools.yaml", Source::User).expect("valid");
    let host = |name: &str| (name == "SECRET_OF_HOST").then(|| "s3cret".to_owned());
    declarations.tools(config, &host).pop().expect("a tool")
}

async fn call(desk: &Desk, tool: &Arc<dyn AnyTool>, arguments: Value) -> Result<ToolOutput, ToolError> {
    let call = Arc::clone(tool).prepare(&arguments.to_string())?;
    call.run(desk.context()).await
}

fn argv(desk: &Desk) -> Vec<String> {
    let bytes = fs::read(desk.path("argv")).expect("the arguments");
    let text = String::from_utf8(bytes).expect("UTF-8");
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// TOOL-5 (S6.7): a declared tool is offered with the built-in ones and can be called.
#[tokio::test]
async fn a_declared_tool_is_called() {
    let desk = Desk::new();
    let tool = declared(
        "cmd: printf\nargs: ['%s-%s', '{{a}}', '{{b}}']\nparameters:\n  a: { type: string }\n  b: { type: integer }",
    );
    let mut tools: ToolSet = builtin(&ToolsConfig::default());
    tools.insert(Arc::clone(&tool));
    assert!(tools.get("probe").is_some());
    let prepared = Arc::clone(&tool).prepare(r#"{"a": "x", "b": 5}"#).expect("valid");
    assert_eq!(prepared.category, Category::Write);
    assert_eq!(prepared.arguments, json!({ "a": "x", "b": 5 }));
    let output = prepared.run(desk.context()).await.expect("an answer");
    assert_eq!(output.content, "x-5");
    assert!(!output.failed);
    let details = output.details.expect("details");
    assert_eq!(details["args"], json!(["%s-%s", "x", "5"]));
    assert_eq!(details["exit_code"], 0);
    assert_eq!(desk.live(), "x-5");
}

/// TOOL-6 (S6.8): shell metacharacters reach the program unchanged.
#[tokio::test]
async fn metacharacters_stay_literal() {
    let desk = Desk::new();
    desk.put("argv.sh", ARGV).put("a.rs", "").put("b.rs", "");
    let tool = declared("cmd: sh\nargs: [argv.sh, '{{x}}', 'a{{x}}']\nparameters:\n  x: { type: string }");
    let values = [
        "; touch made",
        "$(touch made)",
        "`touch made`",
        "| touch made",
        "\ntouch made\n",
        "*.rs",
        "$HOME ~ ${PATH}",
        "two words",
        "' \" \\",
        "ä€🦀",
        "",
    ];
    for value in values {
        let output = call(&desk, &tool, json!({ "x": value })).await.expect(value);
        assert_eq!(output.content, "(no output)", "{value}");
        assert_eq!(argv(&desk), [value, &format!("a{value}")], "{value}");
    }
    assert!(!desk.path("made").exists());
}

/// TOOL-6 (S6.8): any text stays inside its one argument, byte by byte.
#[test]
fn one_template_is_one_argument() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let desk = Desk::new();
    desk.put("argv.sh", ARGV);
    let tool = declared(
        "cmd: sh\nargs: [argv.sh, 'a b', '{{x}}', '--k={{x}}:{{y}}', --, '{{y}}', end]\nparameters:\n  \
         x: { type: string, allow_leading_dash: true }\n  y: { type: string }",
    );
    let any_text = || "[^\\x00]{0,12}|-[^\\x00]{0,4}|[ '\"\\\\$`;|&<>(){}*?~\n-]{0,12}";
    let mut runner = TestRunner::new(Config::with_cases(96));
    runner
        .run(&(any_text(), any_text()), |(x, y)| {
            let arguments = json!({ "x": x, "y": y });
            let output = runtime
                .block_on(call(&desk, &tool, arguments))
                .expect("an answer");
            prop_assert_eq!(output.content, "(no output)");
            let expected = [
                "a b".to_owned(),
                x.clone(),
                format!("--k={x}:{y}"),
                "--".to_owned(),
                y,
                "end".to_owned(),
            ];
            prop_assert_eq!(argv(&desk), expected);
            Ok(())
        })
        .expect("every text stays inside");
}

/// TOOL-6 (S6.9): values that do not match their declaration are refused before anything runs, with all
/// problems listed.
#[test]
fn injections_are_refused() {
    let tool = declared(
        "cmd: kubectl\nargs: [get, '{{resource}}', '{{name}}']\nparameters:\n  \
         resource: { type: string, enum: [pods, nodes] }\n  name: { type: string, pattern: '^[a-z.-]+$' }\n  \
         count: { type: integer, min: 1, optional: true }\noptional_args:\n  - { args: [--limit, '{{count}}'] }",
    );
    let cases = [
        (json!({ "resource": "pods", "name": "web" }), None),
        (json!({ "resource": "pods", "name": "web", "count": null }), None),
        (
            json!({ "resource": "pods; rm -rf ~", "name": "web" }),
            Some("`resource`: must be one of pods, nodes, not `pods; rm -rf ~`"),
        ),
        (
            json!({ "resource": "pods", "name": "web\n" }),
            Some(r"`name`: must match `^[a-z.-]+$` as a whole, not `web\n`"),
        ),
        (
            json!({ "resource": "pods", "name": "--raw" }),
            Some("`name`: must not make `--raw` of an argument, which the program would treat as an option"),
        ),
        (
            json!({ "resource": 5, "count": 0 }),
            Some(
                "`resource`: must be a string, not 5; `name`: is missing; `count`: must be at least 1, not 0",
            ),
        ),
        (
            json!({ "resource": "pods", "nam": "x" }),
            Some("`nam`: is not an argument; did you mean `name`?; `name`: is missing"),
        ),
        (
            json!([]),
            Some("send one JSON object that matches the tool's schema."),
        ),
    ];
    for (arguments, expected) in cases {
        let error = Arc::clone(&tool).prepare(&arguments.to_string()).err();
        let expected = expected.map(|why| ToolError::Invalid(format!("Invalid arguments for probe: {why}")));
        assert_eq!(error, expected, "{arguments}");
    }
    let twice = Arc::clone(&tool)
        .prepare(r#"{"name": "web", "name": "--raw"}"#)
        .err();
    assert!(matches!(twice, Some(ToolError::Invalid(text)) if text.contains("duplicate key `name`")));
}

/// SAFE-1 (S6.13): declared variables and the allowlist reach the program, and nothing else does.
#[tokio::test]
async fn only_declared_variables_are_passed() {
    let desk = Desk::new();
    let tool = declared("cmd: env\nenv: { PLAIN: a b, TOKEN: '${SECRET_OF_HOST}', GIT_PAGER: less }");
    let output = call(&desk, &tool, json!({})).await.expect("an answer");
    let allowed = [
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TERM",
        "SHELL",
        "TMPDIR",
        "TZ",
        "AGENT",
        "AI_AGENT",
        "WINDLASS_SESSION",
        "WINDLASS_CALL",
        "PAGER",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_TERMINAL_PROMPT",
        "DEBIAN_FRONTEND",
        "PLAIN",
        "TOKEN",
    ];
    for line in output.content.lines() {
        let (name, _) = line.split_once('=').expect("a variable");
        assert!(allowed.contains(&name), "{line}");
    }
    for line in ["PLAIN=a b", "TOKEN=s3cret", "GIT_PAGER=less"] {
        assert!(output.content.lines().any(|found| found == line), "{line}");
    }
    let tool = declared("cmd: env\nenv: { TOKEN: '${NOT_SET}' }");
    let error = call(&desk, &tool, json!({})).await.expect_err("not set");
    let expected = "probe passes on the variable NOT_SET, which is not set. Tell the user.";
    assert_eq!(error, ToolError::Permanent(expected.to_owned()));
}

/// TOOL-4 (S6.4): on timeout, the whole tree is ended.
#[tokio::test]
async fn a_timeout_ends_the_tree() {
    let desk = Desk::new();
    desk.put("run.sh", "echo begun\nsetsid sh -c 'echo $$ >> pids; trap \"\" TERM; sleep 100; true' &\necho $$ >> pids\nwait\n");
    let tool = declared("cmd: sh\nargs: [run.sh]\ntimeout: 2");
    assert_eq!(tool.traits().timeout, Some(Duration::from_secs(12)));
    let file = desk.path("pids");
    let (output, pids) = tokio::join!(call(&desk, &tool, json!({})), pids(&file, 2));
    let output = output.expect("an answer");
    assert_eq!(output.content, "begun\n[timed out after 2 s]");
    assert!(output.failed);
    until("all have ended", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// LOOP-8: cancelling ends the tree, and the output so far is kept.
#[tokio::test]
async fn a_cancel_ends_the_tree() {
    let desk = Desk::new();
    desk.put("run.sh", "echo begun\necho $$ >> pids\nsleep 100\ntrue\n");
    let tool = declared("cmd: sh\nargs: [run.sh]");
    let call = tool.prepare("").expect("valid");
    let running = tokio::spawn(call.run(desk.context()));
    let pids = pids(&desk.path("pids"), 1).await;
    until("the output is there", || desk.live().contains("begun")).await;
    desk.cancel.cancel();
    let result = running.await.expect("no panic");
    assert_eq!(result, Err(ToolError::Canceled("begun\n".to_owned())));
    until("it has ended", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// TOOL-3 (S6.3): too much output loses its middle, with a notice.
#[tokio::test]
async fn output_is_capped() {
    let desk = Desk::new();
    let config = ToolsConfig {
        max_command_output: 1000,
        ..ToolsConfig::default()
    };
    let tool = declared_with(
        "cmd: seq\nargs: ['{{n}}']\nparameters:\n  n: { type: integer }",
        &config,
    );
    let output = call(&desk, &tool, json!({ "n": 100_000 }))
        .await
        .expect("an answer");
    assert!(output.content.len() < 1100, "{}", output.content.len());
    assert!(output.content.starts_with("1\n2\n") && output.content.ends_with("99999\n100000"));
    assert!(output.content.contains(" bytes left out …]"));
    assert_eq!(output.details.expect("details")["truncated"], true);
}

/// TOOL-6: a program that cannot be started is named, and a program in the working directory is not used.
#[tokio::test]
async fn programs_that_are_not_there_are_named() {
    let desk = Desk::new();
    desk.put("hidden_tool", "#!/bin/sh\necho taken\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(desk.path("hidden_tool"), mode).expect("a mode");
    for cmd in ["hidden_tool", "/no/such/program"] {
        let error = call(&desk, &declared(&format!("cmd: {cmd}")), json!({})).await;
        let expected = format!("The program {cmd} of probe was not found.");
        assert_eq!(error, Err(ToolError::Permanent(expected)));
    }
    let tool = declared("cmd: printf\nargs: ['{{x}}']\nparameters:\n  x: { type: string }");
    let error = call(&desk, &tool, json!({ "x": "x".repeat(300_000) })).await;
    assert!(matches!(error, Err(ToolError::Invalid(text)) if text.contains("too long")));
    let failing = declared("cmd: sh\nargs: [-c, 'echo bad >&2; exit 3']");
    let output = call(&desk, &failing, json!({})).await.expect("an answer");
    assert_eq!(
        (output.content.as_str(), output.failed),
        ("bad\n[exit code 3]", true)
    );
}

/// TOOL-5 (S6.7): a changed file changes the tools, and a broken one leaves them callable.
#[tokio::test]
async fn tools_are_reloaded() {
    let desk = Desk::new();
    let text = |word: &str| {
        format!(
            "tools:\n  - {{ name: say, description: Says it., category: read, cmd: echo, args: [{word}] }}\n"
        )
    };
    let mut files = LastGood::new(Paths {
        user: Some(desk.path("tools.yaml")),
        project: None,
    });
    let said = async |files: &LastGood| {
        let tools = files.current().tools(&ToolsConfig::default(), &|_| None);
        let output = call(&desk, tools.first().expect("a tool"), json!({})).await;
        output.expect("an answer").content
    };
    desk.put("tools.yaml", text("one"));
    assert!(matches!(files.refresh(), Refresh::Loaded { .. }));
    assert_eq!(said(&files).await, "one");
    desk.put("tools.yaml", text("two"));
    assert!(matches!(files.refresh(), Refresh::Loaded { .. }));
    assert_eq!(said(&files).await, "two");
    desk.put("tools.yaml", text("three").replace("cmd", "command"));
    let Refresh::Broken { error, kept } = files.refresh() else {
        panic!("it is broken");
    };
    assert!(
        error
            .to_string()
            .contains("tools.yaml:2: unknown key `say.command`"),
        "{error}"
    );
    assert_eq!(kept, ["say"]);
    assert_eq!(said(&files).await, "two");
}
