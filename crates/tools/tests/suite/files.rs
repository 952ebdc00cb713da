//! Reading, writing, editing and listing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;
use windlass_core::tool::{Category, ToolError};

use crate::desk::Desk;

fn message(error: &ToolError) -> String {
    error.to_string()
}

/// TOOL-1: what kind of effect each file tool has.
#[test]
fn categories_are_known() {
    let desk = Desk::new();
    let cases = [
        ("read_file", json!({ "path": "a" }), Category::Read),
        ("list_directory", json!({}), Category::Read),
        ("glob", json!({ "pattern": "*" }), Category::Read),
        ("grep", json!({ "pattern": "a" }), Category::Read),
        (
            "write_file",
            json!({ "path": "a", "content": "" }),
            Category::Write,
        ),
        (
            "edit_file",
            json!({ "path": "a", "old_string": "a", "new_string": "b" }),
            Category::Write,
        ),
    ];
    for (tool, arguments, category) in cases {
        assert_eq!(
            desk.prepare(tool, &arguments).expect(tool).category,
            category,
            "{tool}"
        );
    }
}

/// TOOL-1: validation names the field; common other names of a field are taken.
#[test]
fn arguments_are_validated() {
    let desk = Desk::new();
    for (tool, arguments, word) in [
        ("read_file", json!({}), "path"),
        ("read_file", json!({ "path": "a", "offset": "x" }), "offset"),
        ("write_file", json!({ "path": "a" }), "content"),
        (
            "edit_file",
            json!({ "path": "a", "old_string": "b" }),
            "new_string",
        ),
        ("grep", json!({ "pattern": "a", "colour": true }), "colour"),
    ] {
        match desk.prepare(tool, &arguments).map(drop) {
            Err(ToolError::Invalid(text)) => assert!(text.contains(word), "{text}"),
            other => panic!("{tool}: {other:?}"),
        }
    }
    for (tool, arguments) in [
        ("read_file", json!({ "file_path": "a", "offset": null })),
        (
            "edit_file",
            json!({ "path": "a", "old_str": "a", "new_str": "b", "replace_all": null }),
        ),
        (
            "grep",
            json!({ "pattern": "a", "path": null, "ignore_case": null, "context": null }),
        ),
        ("list_directory", json!({ "path": null })),
    ] {
        assert!(desk.prepare(tool, &arguments).is_ok(), "{tool}");
    }
}

/// TOOL-2: a file is shown with line numbers, and in pages.
#[tokio::test]
async fn reading_shows_numbered_pages() {
    let desk = Desk::new();
    let long: String = (1..=5321).map(|number| format!("line {number}\n")).collect();
    desk.put("a.txt", "one\r\ntwo\n")
        .put("empty", "")
        .put("long.txt", long)
        .put("sub/b", "x");
    desk.put("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let cases = [
        (json!({ "path": "a.txt" }), "     1\tone\n     2\ttwo"),
        (
            json!({ "path": "a.txt", "offset": 2 }),
            "     2\ttwo\n[showing lines 2-2 of 2]",
        ),
        (
            json!({ "path": "a.txt", "limit": 1 }),
            "     1\tone\n[showing lines 1-1 of 2; use offset=2]",
        ),
        (
            json!({ "path": "./sub/../a.txt", "offset": 0, "limit": 9 }),
            "     1\tone\n     2\ttwo",
        ),
        (json!({ "path": "empty" }), "(empty is empty)"),
        (
            json!({ "path": "image.png" }),
            "image.png is a PNG image, 16 B; it is not shown.",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            desk.text("read_file", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    let page = desk.text("read_file", json!({ "path": "long.txt" })).await;
    assert!(page.starts_with("     1\tline 1\n"));
    assert!(
        page.ends_with("  2000\tline 2000\n[showing lines 1-2000 of 5321; use offset=2001]"),
        "{page}"
    );
    let past = message(
        &desk
            .error("read_file", json!({ "path": "a.txt", "offset": 9 }))
            .await,
    );
    assert_eq!(past, "`offset` is 9, but a.txt has only 2 lines.");
}

/// TOOL-2: what cannot be read is refused with what to do instead, and never waited for.
#[tokio::test]
async fn unreadable_things_are_named() {
    let desk = Desk::new();
    desk.put("folder/config.toml", "");
    desk.text("bash", json!({ "command": "mkfifo pipe && ln -s pipe link" }))
        .await;
    let cases = [
        ("folder", "list_directory"),
        ("folder/confg.toml", "In the same folder: config.toml."),
        ("nowhere/a", "Its folder does not exist either."),
        ("pipe", "named pipe"),
        ("link", "named pipe"),
        ("/dev/zero", "device"),
        ("a\0b", "NUL"),
        ("", "empty"),
    ];
    for (path, word) in cases {
        let text = message(&desk.error("read_file", json!({ "path": path })).await);
        assert!(text.contains(word), "{path}: {text}");
    }
    for path in ["pipe", "folder"] {
        let error = desk
            .error("write_file", json!({ "path": path, "content": "x" }))
            .await;
        assert!(matches!(error, ToolError::Permanent(_)), "{path}: {error:?}");
        let error = desk
            .error(
                "edit_file",
                json!({ "path": path, "old_string": "x", "new_string": "y" }),
            )
            .await;
        assert!(matches!(error, ToolError::Permanent(_)), "{path}: {error:?}");
    }
}

/// TOOL-2: a file is created with its folders, replaced with its mode kept, and people get a diff.
#[tokio::test]
async fn writing_creates_and_replaces() {
    let desk = Desk::new();
    let output = desk
        .call("write_file", json!({ "path": "a/b/c.txt", "content": "1\n2\n" }))
        .await
        .expect("written");
    assert_eq!(output.content, "Created a/b/c.txt (2 lines)");
    let mode = |name: &str| {
        fs::metadata(desk.path(name))
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    desk.put("plain", "");
    assert_eq!(mode("a/b/c.txt"), mode("plain"), "a new file has the usual mode");
    fs::set_permissions(desk.path("a/b/c.txt"), fs::Permissions::from_mode(0o750)).expect("a mode");
    let output = desk
        .call(
            "write_file",
            json!({ "path": "a/b/c.txt", "content": "1\n3\n4\n" }),
        )
        .await
        .expect("written");
    assert_eq!(output.content, "Updated a/b/c.txt (+2 −1)");
    let diff = output.details.expect("details")["diff"]
        .as_str()
        .expect("a diff")
        .to_owned();
    assert!(diff.contains("\n-2\n+3\n+4\n"), "{diff}");
    assert_eq!(desk.content("a/b/c.txt"), "1\n3\n4\n");
    assert_eq!(mode("a/b/c.txt"), 0o750);
    let again = desk
        .text(
            "write_file",
            json!({ "path": "a/b/c.txt", "content": "1\n3\n4\n" }),
        )
        .await;
    assert!(again.contains("nothing was written"), "{again}");
    let left: Vec<_> = fs::read_dir(desk.path("a/b"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["c.txt"], "no temporary file is left");
}

/// TOOL-2: a link stays a link, and through one that leads nowhere the file it means is made.
#[tokio::test]
async fn links_are_followed() {
    let desk = Desk::new();
    desk.put("real.txt", "old\n");
    symlink("real.txt", desk.path("link")).expect("a link");
    symlink("nothing", desk.path("dangling")).expect("a link");
    desk.text("write_file", json!({ "path": "link", "content": "new\n" }))
        .await;
    desk.text(
        "edit_file",
        json!({ "path": "link", "old_string": "new", "new_string": "newer" }),
    )
    .await;
    assert_eq!(desk.content("real.txt"), "newer\n");
    assert!(
        fs::symlink_metadata(desk.path("link"))
            .expect("there")
            .is_symlink()
    );
    desk.text("write_file", json!({ "path": "dangling", "content": "x" }))
        .await;
    assert_eq!(desk.content("nothing"), "x");
}

/// TOOL-2: a file that changed after it was read is not written over; after another read it is.
#[tokio::test]
async fn stale_files_are_refused() {
    for (tool, arguments) in [
        ("write_file", json!({ "path": "a.txt", "content": "mine\n" })),
        (
            "edit_file",
            json!({ "path": "./a.txt", "old_string": "second", "new_string": "mine" }),
        ),
    ] {
        let desk = Desk::new();
        desk.put("a.txt", "first\n");
        desk.text("read_file", json!({ "path": "a.txt" })).await;
        desk.put("a.txt", "second, longer\n");
        let text = message(&desk.error(tool, arguments.clone()).await);
        assert!(text.contains("changed on disk after you read it"), "{text}");
        assert_eq!(desk.content("a.txt"), "second, longer\n");
        desk.text("read_file", json!({ "path": "a.txt" })).await;
        desk.text(tool, arguments).await;
        // What we wrote ourselves is not stale.
        desk.text("write_file", json!({ "path": "a.txt", "content": "again\n" }))
            .await;
        assert_eq!(desk.content("a.txt"), "again\n");
    }
}

/// TOOL-2: an edit answers with the change and the lines around it.
#[tokio::test]
async fn editing_shows_the_change() {
    let desk = Desk::new();
    desk.put("a.rs", "fn a() {\n    one();\n    two();\n}\n");
    let edit =
        json!({ "path": "a.rs", "old_string": "    two();", "new_string": "    two();\n    three();" });
    let output = desk.call("edit_file", edit).await.expect("edited");
    let expected = "Edited a.rs (+1 −0)\n     1\tfn a() {\n     2\t    one();\n     3\t    two();\n     4\t    three();\n     5\t}";
    assert_eq!(output.content, expected);
    assert!(
        output.details.expect("details")["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("+    three();"))
    );
    let forgiving =
        json!({ "path": "a.rs", "old_string": "one();\ntwo();", "new_string": "one();\nzwei();" });
    let text = desk.text("edit_file", forgiving).await;
    assert!(text.contains("matched but for indentation"), "{text}");
    assert_eq!(
        desk.content("a.rs"),
        "fn a() {\n    one();\n    zwei();\n    three();\n}\n"
    );
    let everywhere =
        json!({ "path": "a.rs", "old_string": "();", "new_string": "()?;", "replace_all": true });
    assert!(
        desk.text("edit_file", everywhere)
            .await
            .starts_with("Edited a.rs (+3 −3), 3 places\n")
    );
}

/// TOOL-2: an edit that is not clear changes nothing and says what to do.
#[tokio::test]
async fn unclear_edits_change_nothing() {
    let desk = Desk::new();
    let content = "alpha beta\nalpha gamma\nlet total = first + second;\n";
    desk.put("a.txt", content).put("binary", b"\xff\xfe\x00");
    let cases = [
        ("a.txt", "alpha", "x", "2 times (lines 1, 2)"),
        (
            "a.txt",
            "let total = first + third;",
            "x",
            "     3\tlet total = first + second;",
        ),
        ("a.txt", "zzz", "x", "nor anything like it"),
        ("a.txt", "alpha", "alpha", "the same"),
        ("a.txt", "", "x", "empty"),
        ("gone.txt", "a", "b", "does not exist"),
        ("binary", "a", "b", "not UTF-8"),
    ];
    for (path, old, new, word) in cases {
        let text = message(
            &desk
                .error(
                    "edit_file",
                    json!({ "path": path, "old_string": old, "new_string": new }),
                )
                .await,
        );
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(desk.content("a.txt"), content);
}

/// TOOL-2: line ends, byte order mark and mode survive an edit.
#[tokio::test]
async fn editing_keeps_the_form_of_a_file() {
    let desk = Desk::new();
    desk.put("a.bat", "\u{FEFF}one\r\ntwo\r\n");
    fs::set_permissions(desk.path("a.bat"), fs::Permissions::from_mode(0o755)).expect("a mode");
    desk.text(
        "edit_file",
        json!({ "path": "a.bat", "old_string": "one\ntwo", "new_string": "1\n2\n3" }),
    )
    .await;
    assert_eq!(desk.content("a.bat"), "\u{FEFF}1\r\n2\r\n3\r\n");
    assert_eq!(
        fs::metadata(desk.path("a.bat"))
            .expect("a file")
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
}

/// TOOL-2: a folder is listed in order, with sizes, and up to a limit.
#[tokio::test]
async fn listing_is_sorted_and_bounded() {
    let desk = Desk::new();
    desk.put("b.txt", "12345")
        .put("a/x", "")
        .put(".git/config", "")
        .put(".hidden", "");
    symlink("b.txt", desk.path("c")).expect("a link");
    let expected = ".hidden (0 B)\na/\nb.txt (5 B)\nc -> b.txt";
    assert_eq!(desk.text("list_directory", json!({})).await, expected);
    assert_eq!(
        desk.text("list_directory", json!({ "path": "a" })).await,
        "x (0 B)"
    );
    for number in 0..510 {
        desk.put(&format!("many/{number}"), "");
    }
    let text = desk.text("list_directory", json!({ "path": "many" })).await;
    assert_eq!(text.lines().count(), 501);
    assert!(text.ends_with("[10 more entries left out]"));
    assert!(
        message(&desk.error("list_directory", json!({ "path": "gone" })).await).contains("does not exist")
    );
    assert!(message(&desk.error("list_directory", json!({ "path": "b.txt" })).await).contains("read_file"));
}

/// TOOL-8: `~` is the home folder of the execution context, not of this process.
#[tokio::test]
async fn home_comes_from_the_context() {
    let desk = Desk::new();
    desk.put("home/a.txt", "at home\n");
    let call = desk
        .prepare("read_file", &json!({ "path": "~/a.txt" }))
        .expect("valid");
    let mut cx = desk.context();
    let mut execution = (*cx.execution).clone();
    execution
        .env
        .insert("HOME".to_owned(), desk.path("home").display().to_string());
    cx.execution = execution.into();
    assert_eq!(call.run(cx).await.expect("an answer").content, "     1\tat home");
}
