//! `glob` and `grep`.

use serde_json::json;
use windlass_core::tool::ToolError;

use crate::desk::Desk;

fn project() -> Desk {
    let desk = Desk::new();
    desk.put(".gitignore", "target/\n*.log\n")
        .put("src/main.rs", "fn main() {\n    run();\n}\n")
        .put("src/deep/run.rs", "pub fn run() {}\n// fn old()\n")
        .put("target/out.rs", "fn generated() {}\n")
        .put("notes.log", "fn in a log\n")
        .put(".github/ci.yml", "fn: none\n")
        .put(".git/HEAD", "fn ref\n")
        .put("web/app.tsx", "export const a = 1;\r\n")
        .put("image.bin", b"fn \0 binary\n");
    desk
}

/// TOOL-2: files are found by name, ignore files are respected, and the order is fixed.
#[tokio::test]
async fn glob_finds_names() {
    let desk = project();
    let cases = [
        (json!({ "pattern": "*.rs" }), "src/deep/run.rs\nsrc/main.rs"),
        (json!({ "pattern": "src/*.rs" }), "src/main.rs"),
        (
            json!({ "pattern": "./src/**/*.rs" }),
            "src/deep/run.rs\nsrc/main.rs",
        ),
        (json!({ "pattern": "**/*.{ts,tsx}" }), "web/app.tsx"),
        (
            json!({ "pattern": "*.rs", "path": "src/deep" }),
            "src/deep/run.rs",
        ),
        (json!({ "pattern": "*.yml" }), ".github/ci.yml"),
        (json!({ "pattern": "HEAD" }), "No file matches HEAD."),
        (json!({ "pattern": "*.log" }), "No file matches *.log."),
        (json!({ "pattern": "gone/*.rs" }), "No file matches gone/*.rs."),
        (json!({ "pattern": "**/deep/" }), "src/deep"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            desk.text("glob", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    let absolute = desk.path("src/*.rs").display().to_string();
    assert_eq!(
        desk.text("glob", json!({ "pattern": absolute })).await,
        "src/main.rs"
    );
    for (arguments, word) in [
        (json!({ "pattern": "a[" }), "malformed"),
        (json!({ "pattern": "a", "path": "gone" }), "gone"),
    ] {
        let text = desk.error("glob", arguments).await.to_string();
        assert!(text.contains(word), "{text}");
    }
}

/// TOOL-3: results are bounded and say how much is missing.
#[tokio::test]
async fn results_are_bounded() {
    let desk = Desk::new();
    for number in 0..250 {
        desk.put(&format!("f{number:03}"), "needle\n");
    }
    let text = desk.text("glob", json!({ "pattern": "f*" })).await;
    assert!(text.starts_with("f000\nf001\n"), "{text}");
    assert!(
        text.ends_with("f199\n[50 more left out; narrow the pattern]"),
        "{text}"
    );
    let text = desk.text("grep", json!({ "pattern": "needle" })).await;
    assert!(text.starts_with("f000:1: needle\nf001:1: needle\n"), "{text}");
    assert!(
        text.ends_with("f199:1: needle\n[50 matches more left out; narrow the search]"),
        "{text}"
    );
    desk.put("f000", "needle\n".repeat(1000));
    let text = desk.text("grep", json!({ "pattern": "needle" })).await;
    assert!(
        text.ends_with("f000:200: needle\n[1049 matches more left out; narrow the search]"),
        "{text}"
    );
}

/// TOOL-2: text is found in files that are neither binary nor ignored.
#[tokio::test]
async fn grep_finds_text() {
    let desk = project();
    let cases = [
        (
            json!({ "pattern": "fn " }),
            "src/deep/run.rs:1: pub fn run() {}\nsrc/deep/run.rs:2: // fn old()\nsrc/main.rs:1: fn main() {",
        ),
        (
            json!({ "pattern": "FN MAIN", "ignore_case": true }),
            "src/main.rs:1: fn main() {",
        ),
        (
            json!({ "pattern": r"run\(\);", "context": 1 }),
            "src/main.rs-1- fn main() {\nsrc/main.rs:2:     run();\nsrc/main.rs-3- }",
        ),
        (
            json!({ "pattern": "export", "glob": "*.tsx" }),
            "web/app.tsx:1: export const a = 1;",
        ),
        (json!({ "pattern": "fn ", "glob": "*.tsx" }), "No match for fn "),
        (
            json!({ "pattern": "run", "path": "src/main.rs" }),
            "src/main.rs:2:     run();",
        ),
        (
            json!({ "pattern": "in a log", "path": "notes.log" }),
            "notes.log:1: fn in a log",
        ),
        (
            json!({ "pattern": "^fn:", "path": ".github" }),
            ".github/ci.yml:1: fn: none",
        ),
        (json!({ "pattern": "^}$" }), "src/main.rs:3: }"),
        (
            json!({ "pattern": "= 1;$" }),
            "web/app.tsx:1: export const a = 1;",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            desk.text("grep", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
}

/// TOOL-3: long lines are cut at a character boundary.
#[tokio::test]
async fn long_lines_are_cut() {
    let desk = Desk::new();
    desk.put("a", format!("{}\n{}\n", "ä".repeat(300), "🦀".repeat(5000)));
    let text = desk.text("grep", json!({ "pattern": "." })).await;
    assert_eq!(
        text,
        format!("a:1: {}\na:2: {}…", "ä".repeat(300), "🦀".repeat(300))
    );
}

/// TOOL-1: an invalid pattern is explained.
#[tokio::test]
async fn bad_patterns_are_explained() {
    let desk = project();
    for (pattern, word) in [
        ("foo(", "unclosed group"),
        ("a\nb", "backslash"),
        ("", "empty"),
        ("x{999999}{999999}", "pattern"),
    ] {
        match desk.error("grep", json!({ "pattern": pattern })).await {
            ToolError::Invalid(text) => assert!(text.contains(word), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(
        desk.error("grep", json!({ "pattern": "a", "path": "gone" }))
            .await
            .to_string()
            .contains("does not exist")
    );
}

/// LOOP-8: a cancelled search reports its cancellation.
#[tokio::test]
async fn searches_can_be_canceled() {
    let desk = project();
    desk.cancel.cancel();
    for (tool, arguments) in [
        ("glob", json!({ "pattern": "*" })),
        ("grep", json!({ "pattern": "." })),
        ("read_file", json!({ "path": "src/main.rs" })),
        ("list_directory", json!({})),
    ] {
        assert_eq!(
            desk.error(tool, arguments).await,
            ToolError::Canceled(String::new()),
            "{tool}"
        );
    }
}
