//! Reading, writing, editing and listing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;
use windlass_core::tool::{Category, ToolError};

use crate::desk::Desk;

fn message(error: &ToolError) -> String {
    error.to_string()
}

/// TOOL-1: each file tool has the right category.
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
        (
            "apply_patch",
            json!({ "patch": "*** Delete File: a" }),
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

/// TOOL-1: validation names the field; common alternative names of a field are accepted.
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

/// TOOL-2: an image goes to the model as an image; one that no provider accepts is named.
#[tokio::test]
async fn images_are_shown() {
    let desk = Desk::new();
    let png = |width: u16, more: usize| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(b"\0\0\0\x10\x08\x06\0\0\0");
        bytes.extend(std::iter::repeat_n(7, more));
        bytes
    };
    desk.put("a.png", png(32, 0))
        .put("wide.png", png(9000, 0))
        .put("large.png", png(32, 4_000_000))
        .put("named.txt", b"GIF89a\x01\0\x01\0\0\0\0");
    let shown = desk
        .call("read_file", json!({ "path": "a.png" }))
        .await
        .expect("an answer");
    assert_eq!(shown.content, "a.png is a PNG image, 32×16, 29 B.");
    let [image] = shown.images.as_slice() else {
        panic!("one image: {:?}", shown.images)
    };
    assert_eq!((image.path.as_str(), image.mime.as_str()), ("a.png", "image/png"));
    assert!(
        image.data.starts_with("iVBORw0KGgoAAAANSUhEUgAAACAAAAAQ"),
        "{}",
        image.data
    );
    let other = desk.call("read_file", json!({ "path": "named.txt" })).await;
    assert_eq!(other.expect("an answer").images.len(), 1);
    for (path, text) in [
        (
            "wide.png",
            "wide.png is a PNG image, 9000×16, 29 B; it is too large to show.",
        ),
        (
            "large.png",
            "large.png is a PNG image, 32×16, 4.0 MB; it is too large to show.",
        ),
    ] {
        let output = desk
            .call("read_file", json!({ "path": path }))
            .await
            .expect("an answer");
        assert_eq!((output.content.as_str(), output.images.len()), (text, 0));
    }
}

/// TOOL-2: a notebook is read cell by cell, in pages like any file; a broken one is read as plain text.
#[tokio::test]
async fn notebooks_are_readable() {
    let desk = Desk::new();
    let notebook = json!({ "nbformat": 4, "cells": [
        { "cell_type": "markdown", "source": ["# Title"] },
        { "cell_type": "code", "execution_count": 1, "source": "1 + 1", "outputs": [
            { "output_type": "execute_result", "data": { "text/plain": "2", "image/png": "iVBORw0KGgo=" } } ] },
    ] });
    desk.put("a.ipynb", notebook.to_string())
        .put("b.ipynb", "{ broken");
    let expected = "     6\t[cell 2: code, run 1]\n     7\t1 + 1\n     8\t[output: text/plain]\n     9\t2\n    10\t[output: \
                    image/png, not shown]\n[showing lines 6-10 of 10]";
    let text = desk
        .text("read_file", json!({ "path": "a.ipynb", "offset": 6 }))
        .await;
    assert_eq!(text, expected);
    assert_eq!(
        desk.text("read_file", json!({ "path": "b.ipynb" })).await,
        "     1\t{ broken"
    );
}

/// TOOL-2: an unreadable file is refused with advice on what to do instead, and never blocks.
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

/// TOOL-2: a link stays a link, and writing through a dangling one creates its target.
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

/// TOOL-2: a file that changed after it was read is not overwritten; after another read it is.
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
        // Our own write does not make the file stale.
        desk.text("write_file", json!({ "path": "a.txt", "content": "again\n" }))
            .await;
        assert_eq!(desk.content("a.txt"), "again\n");
    }
}

/// TOOL-2: an edit returns the change and the lines around it.
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
    assert!(text.contains("matched except for indentation"), "{text}");
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

/// TOOL-2: an ambiguous edit changes nothing and says what to do.
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
        ("a.txt", "zzz", "x", "and nothing similar is"),
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

/// TOOL-2: several edits in one call apply in order, each to the result of the previous one, and people see
/// one diff.
#[tokio::test]
async fn several_edits_are_one_change() {
    let desk = Desk::new();
    let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    desk.put("a.txt", lines);
    let edits = json!({ "path": "a.txt", "edits": [
        { "old_string": "line 2\n", "new_string": "two\n2b\n" },
        { "old_string": "two\n  2b", "new_string": "zwei\n  2b" },
        { "old_string": "line 3", "new_string": "drei", "replace_all": true },
    ] });
    let call = desk.prepare("edit_file", &edits).expect("valid");
    let preview = call.preview(&desk.context().execution).expect("a preview");
    let output = call.run(desk.context()).await.expect("edited");
    let text = desk.content("a.txt");
    assert!(text.starts_with("line 1\nzwei\n2b\ndrei\nline 4\n"), "{text}");
    assert_eq!(text.matches("drei").count(), 11);
    assert!(
        output
            .content
            .starts_with("Edited a.txt (+13 −12), 3 edits\nedits[1]: matched except for indentation"),
        "{}",
        output.content
    );
    assert!(output.content.contains("\n     2\tzwei\n"), "{}", output.content);
    assert_eq!(output.details.expect("details")["diff"], preview.as_str());
}

/// TOOL-2: one failing edit leaves the file unchanged, and the message names the edit.
#[tokio::test]
async fn several_edits_are_all_or_nothing() {
    let desk = Desk::new();
    let content = "alpha\nbeta\nbeta\n";
    desk.put("a.txt", content);
    let good = json!({ "old_string": "alpha", "new_string": "omega" });
    let cases = [
        (
            json!([good, { "old_string": "alpha", "new_string": "x" }]),
            "`edits[1].old_string` is not in a.txt after the edits before it",
        ),
        (
            json!([good, { "old_string": "beta", "new_string": "x" }]),
            "`edits[1].old_string` is in a.txt after the edits before it 2 times (lines 2, 3). Nothing was changed.",
        ),
        (
            json!([good, { "old_string": "", "new_string": "x" }]),
            "`edits[1].old_string` is empty",
        ),
        (
            json!([good, { "old_string": "omega", "new_string": "alpha" }]),
            "The edits together would not change a.txt.",
        ),
        (json!([]), "`edits` is empty"),
        (json!([{ "old_string": 3, "new_string": "x" }]), "old_string"),
    ];
    for (edits, word) in cases {
        let arguments = json!({ "path": "a.txt", "edits": edits });
        let preview = desk.prepare("edit_file", &arguments).ok();
        assert_eq!(
            preview.and_then(|call| call.preview(&desk.context().execution)),
            None
        );
        let text = message(&desk.error("edit_file", arguments).await);
        assert!(text.contains(word), "{word} in {text}");
        assert_eq!(desk.content("a.txt"), content);
    }
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
