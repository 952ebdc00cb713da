//! Instruction files through the binary: names, imports, nested folders, compaction.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{elsewhere, results, with_replies};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// EXT-1: one file per folder counts, `GEMINI.md` where there is no other; `/status` and `doctor` name the files.
#[test]
fn the_first_name_counts_and_is_shown() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("a"), Reply::text("b")]);
    workspace.write("GEMINI.md", "from gemini");
    run(&workspace, &["exec", "go"]).assert_code(0);
    assert!(sim.requests()[0].seen.system.contains("from gemini"));
    let status = run(&workspace, &["exec", "--continue", "/status"]);
    assert!(status.stdout.contains("instructions GEMINI.md"), "{status}");
    workspace.write("CLAUDE.md", "from claude");
    run(&workspace, &["exec", "go"]).assert_code(0);
    let system = sim.requests()[1].seen.system.clone();
    assert!(
        system.contains("from claude") && !system.contains("from gemini"),
        "{system}"
    );
    let doctor = run(&workspace, &["doctor", "--offline"]);
    assert!(doctor.stdout.contains("CLAUDE.md"), "{doctor}");
}

/// EXT-1: `@path` imports files of the repository, each once, with limits; nothing outside it and nothing denied.
#[test]
fn imports_stay_inside() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("done")]);
    let outside = elsewhere();
    fs::write(outside.path().join("secret.md"), "hunter2").unwrap();
    symlink(outside.path().join("secret.md"), workspace.path().join("link.md")).unwrap();
    workspace.write(".env", "hunter2");
    let away = format!("@{}/secret.md", outside.path().display());
    workspace.write(
        "AGENTS.md",
        &format!(
            "Top. @docs/style.md and @link.md, @.env {away} @../up.md `@docs/no.md` @missing/x.md @someone\n"
        ),
    );
    workspace.write("docs/style.md", "Style here. @more.md\n");
    workspace.write("docs/more.md", "More here. @style.md @../AGENTS.md\n");
    workspace.write("docs/no.md", "Not this.\n");
    let output = run(&workspace, &["exec", "go"]);
    output.assert_code(0);
    let system = sim.requests()[0].seen.system.clone();
    for text in ["Top.", "Style here.", "More here.", "from=\"docs/more.md\""] {
        assert_eq!(system.matches(text).count(), 1, "{text}: {system}");
    }
    assert!(
        !system.contains("hunter2") && !system.contains("Not this."),
        "{system}"
    );
    for name in ["@link.md", "@.env", "@../up.md", "@missing/x.md"] {
        output.assert_says(&format!("{name} is not imported"));
    }
    assert!(!output.stderr.contains("someone"), "{output}");
}

/// EXT-1: an import loop of many files ends at the limits, and the size limit is reported.
#[test]
fn imports_have_limits() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("done")]);
    workspace.write("AGENTS.md", "zero @f1.md\n");
    for number in 1..9 {
        workspace.write(
            &format!("f{number}.md"),
            &format!("text{number} @f{}.md\n", number + 1),
        );
    }
    let output = run(&workspace, &["exec", "go"]);
    output.assert_code(0).assert_says("at most 5 levels");
    let system = sim.requests()[0].seen.system.clone();
    assert!(system.contains("text5") && !system.contains("text6"), "{system}");
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("done")]);
    workspace.write("AGENTS.md", "@big.md\n");
    workspace.write("big.md", &"words ".repeat(20_000));
    run(&workspace, &["exec", "go"]).assert_says("limited to 32768 bytes");
    assert!(sim.requests()[0].seen.system.contains("[the rest is left out]"));
}

/// EXT-1: the instructions of a nested folder come once, when a tool first uses the folder, and again after a
/// compaction.
#[test]
fn nested_instructions_come_with_their_folder() {
    let mut replies = vec![
        Reply::call("read_file", json!({ "path": "web/src/a.txt" })),
        Reply::call("read_file", json!({ "path": "web/src/b.txt" })),
    ];
    replies
        .extend((0..12).map(|number| Reply::text(&format!("answer {number} {}", "and more ".repeat(100)))));
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("AGENTS.md", "Root rules.\n");
    workspace.write("web/CLAUDE.md", "Web rules. @extra.md\n");
    workspace.write("web/extra.md", "Extra rules.\n");
    workspace.write("web/src/a.txt", "a\n");
    workspace.write("web/src/b.txt", "b\n");
    run(&workspace, &["exec", "one"]).assert_code(0);
    assert!(!sim.requests()[0].seen.system.contains("Web rules."));
    let found = results(&sim);
    assert!(
        found[0].contains("Web rules.") && found[0].contains("Extra rules."),
        "{found:?}"
    );
    assert!(!found[1].contains("Web rules."), "{found:?}");
    for prompt in ["two", "three", "four", "five", "six", "seven"] {
        run(&workspace, &["exec", "--continue", prompt]).assert_code(0);
    }
    run(&workspace, &["exec", "--continue", "/compact"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "eight"]).assert_code(0);
    let requests = sim.requests();
    let last = requests.last().unwrap();
    assert!(last.seen.results().next().is_none(), "the call is still there");
    let raw = String::from_utf8_lossy(&last.raw).into_owned();
    assert!(
        last.seen.system.contains("Root rules.") && raw.contains("Web rules."),
        "{raw}"
    );
}
