//! `apply_patch`: changes several files at once, all or nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_core::permission::Subject;
use windlass_core::tool::{Category, ToolError};
use windlass_tools::{ToolsConfig, builtin};

use windlass_sandbox::Workspace;

use crate::desk::Desk;

fn patch(body: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{body}*** End Patch\n") })
}

async fn refused(desk: &Desk, arguments: Value) -> String {
    let call = desk.prepare("apply_patch", &arguments).expect("valid");
    assert_eq!(call.preview(&desk.context().execution), None);
    desk.error("apply_patch", arguments).await.to_string()
}

/// TOOL-2: files are added, changed, moved and deleted in one call, and the answer is short.
#[tokio::test]
async fn a_patch_changes_several_files() {
    let desk = Desk::new();
    desk.put("src/a.rs", "fn a() {\n    one();\n    two();\n}\n")
        .put("old.txt", "x\ny\n")
        .put("run.sh", "echo 1\n")
        .put("gone.bin", b"\xff\xfe");
    fs::set_permissions(desk.path("run.sh"), fs::Permissions::from_mode(0o750)).expect("a mode");
    let arguments = patch(
        "*** Update File: src/a.rs\n@@ fn a() {\n one();\n-two();\n+three();\n*** Add File: new/deep/b.txt\n+1\n+2\n*** \
         Delete File: gone.bin\n*** Update File: old.txt\n-x\n+z\n*** Update File: run.sh\n*** Move to: bin/run.sh\n",
    );
    let call = desk.prepare("apply_patch", &arguments).expect("valid");
    let preview = call.preview(&desk.context().execution).expect("a preview");
    let output = call.run(desk.context()).await.expect("patched");
    assert_eq!(
        output.content,
        "Patched 5 files: src/a.rs (+1 −1), new/deep/b.txt (new, +2), gone.bin (deleted), old.txt (+1 −1), run.sh → \
         bin/run.sh (moved, +0 −0)\nsrc/a.rs: hunk 1 at line 2: matched except for indentation, which was kept as in the file"
    );
    assert_eq!(
        desk.content("src/a.rs"),
        "fn a() {\n    one();\n    three();\n}\n"
    );
    assert_eq!(desk.content("new/deep/b.txt"), "1\n2\n");
    assert_eq!(desk.content("old.txt"), "z\ny\n");
    assert!(!desk.path("gone.bin").exists() && !desk.path("run.sh").exists());
    let mode = fs::metadata(desk.path("bin/run.sh"))
        .expect("moved")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750, "a moved file keeps its mode");
    let details = output.details.expect("details");
    let kinds: Vec<_> = details["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| (file["path"].clone(), file["kind"].clone()))
        .collect();
    let expected = [
        ("src/a.rs", "update"),
        ("new/deep/b.txt", "add"),
        ("gone.bin", "delete"),
        ("old.txt", "update"),
        ("bin/run.sh", "move"),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (json!(path), json!(kind))));
    assert!(preview.contains("-    two();\n+    three();\n"), "{preview}");
    assert!(preview.contains("moved run.sh → bin/run.sh\n"), "{preview}");
    // Our own write does not make the file stale, and the changed file can be changed again.
    desk.text("apply_patch", patch("*** Update File: src/a.rs\n-    three();\n"))
        .await;
}

/// TOOL-2: a unified diff has the same effect, whatever its argument is called.
#[tokio::test]
async fn unified_diffs_are_taken() {
    let desk = Desk::new();
    desk.put("a.txt", "1\r\n2\r\n3\r\n")
        .put("c.txt", "x\n")
        .put("d.txt", "1\n2\n");
    let diff = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n--- /dev/null\n+++ \
                b/b.txt\n@@ -0,0 +1 @@\n+new\n--- a/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/d.txt \
                b/e.txt\nrename from d.txt\nrename to e.txt\n--- a/d.txt\n+++ b/e.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n";
    let text = desk.text("apply_patch", json!({ "diff": diff })).await;
    assert_eq!(
        text,
        "Patched 4 files: a.txt (+1 −1), b.txt (new, +1), c.txt (deleted), d.txt → e.txt (moved, +1 −1)"
    );
    assert_eq!(desk.content("a.txt"), "1\r\nzwei\r\n3\r\n");
    assert_eq!(desk.content("e.txt"), "1\n3\n");
    assert!(!desk.path("c.txt").exists() && !desk.path("d.txt").exists());
}

/// LOOP-7, TOOL-2: a patch may come as plain text; other texts are refused.
#[tokio::test]
async fn a_patch_may_come_as_text() {
    let desk = Desk::new();
    let tools = builtin(&ToolsConfig::default());
    let tool = || Arc::clone(tools.get("apply_patch").expect("the tool"));
    let text = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.txt\n+raw\n*** End Patch\nEOF\n";
    let call = tool().prepare(text).expect("taken");
    assert_eq!(call.arguments, json!({ "_raw": text }));
    call.run(desk.context()).await.expect("patched");
    assert_eq!(desk.content("a.txt"), "raw\n");
    for text in ["please patch", "{ \"patch\": "] {
        assert!(matches!(
            tool().prepare(text).map(drop),
            Err(ToolError::Invalid(_))
        ));
    }
}

/// TOOL-2: if anything is wrong with one file, no file changes, and the message says what to do.
#[tokio::test]
async fn a_patch_is_all_or_nothing() {
    let desk = Desk::new();
    let content = "alpha\nlet total = first + second;\nbeta\nbeta\n";
    desk.put("a.txt", "one\n")
        .put("b.txt", content)
        .put("bin", b"\xff")
        .put("dir/x", "");
    symlink("b.txt", desk.path("link")).expect("a link");
    let cases = [
        (
            "*** Update File: b.txt\n-let total = first + third;\n+x\n",
            "b.txt: hunk 1 (line 6 of the patch) its lines are not in the file. Nothing was changed. The nearest lines are:\n     \
             2\tlet total = first + second;",
        ),
        (
            "*** Update File: b.txt\n-beta\n+x\n",
            "fits 2 places (lines 3, 4)",
        ),
        (
            "*** Update File: gone.txt\n-a\n",
            "gone.txt does not exist (line 5 of the patch)",
        ),
        ("*** Delete File: gone.txt\n", "does not exist"),
        (
            "*** Add File: b.txt\n+x\n",
            "b.txt exists already (line 5 of the patch); change it with `*** Update File: b.txt`",
        ),
        (
            "*** Update File: a.txt\n*** Move to: b.txt\n",
            "b.txt exists already; a file cannot be moved over it",
        ),
        ("*** Update File: bin\n-a\n", "not UTF-8"),
        ("*** Update File: b.txt\n alpha\n", "would not change b.txt"),
        ("*** Update File: dir\n-a\n", "is a folder"),
        ("*** Add File: dir/\n+a\n", "names a folder"),
        ("*** Delete File: link\n", "link is a link"),
        (
            "*** Update File: b.txt\nalpha\n",
            "Line 6 of the patch: lines of a hunk start",
        ),
    ];
    for (body, word) in cases {
        let arguments = patch(&format!("*** Update File: a.txt\n-one\n+1\n{body}"));
        let text = refused(&desk, arguments).await;
        assert!(text.contains(word), "{word} in {text}");
        assert_eq!(desk.content("a.txt"), "one\n", "{body}");
        assert_eq!(desk.content("b.txt"), content, "{body}");
    }
    assert!(
        refused(&desk, json!({ "patch": "" }))
            .await
            .contains("This is not a patch")
    );
}

/// TOOL-2: when a write fails, the files written before it are restored.
#[tokio::test]
async fn what_was_written_is_put_back() {
    let desk = Desk::new();
    desk.put("a.txt", "one\n").put("z.txt", "last\n");
    fs::set_permissions(desk.path("a.txt"), fs::Permissions::from_mode(0o640)).expect("a mode");
    // The folder that the second file needs has the path of the third file.
    let body = "*** Update File: a.txt\n-one\n+1\n*** Add File: d/x\n+x\n*** Add File: d\n+y\n*** Delete File: z.txt\n";
    let text = desk.error("apply_patch", patch(body)).await.to_string();
    assert!(text.starts_with("d: "), "{text}");
    assert!(
        text.contains("The 2 files changed before it were restored; nothing was changed."),
        "{text}"
    );
    assert_eq!(desk.content("a.txt"), "one\n");
    assert_eq!(desk.content("z.txt"), "last\n");
    let mode = fs::metadata(desk.path("a.txt"))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!desk.path("d/x").exists());
    // The file counts as seen.
    desk.text("apply_patch", patch("*** Update File: a.txt\n-one\n+2\n"))
        .await;
}

/// TOOL-2: a file that changed after it was read is not patched.
#[tokio::test]
async fn stale_files_are_not_patched() {
    let desk = Desk::new();
    for body in [
        "*** Update File: a.txt\n-second\n+x\n",
        "*** Delete File: a.txt\n",
        "*** Update File: a.txt\n*** Move to: b.txt\n",
    ] {
        desk.put("a.txt", "first\n");
        desk.text("read_file", json!({ "path": "a.txt" })).await;
        desk.put("a.txt", "second\nlonger\n");
        let text = refused(&desk, patch(body)).await;
        assert!(text.contains("changed on disk after you read it"), "{text}");
        assert_eq!(desk.content("a.txt"), "second\nlonger\n");
        desk.text("read_file", json!({ "path": "a.txt" })).await;
    }
}

/// TOOL-2: with the same file several times in one patch, each part sees the result of the previous one.
#[tokio::test]
async fn parts_build_on_each_other() {
    let desk = Desk::new();
    desk.put("a.txt", "1\n2\n").put("b.txt", "old\n");
    let body = "*** Update File: a.txt\n-1\n+one\n*** Update File: ./a.txt\n one\n-2\n+two\n*** Delete File: b.txt\n*** Add \
                File: b.txt\n+new\n*** Add File: c.txt\n+c\n*** Update File: c.txt\n-c\n+d\n";
    let text = desk.text("apply_patch", patch(body)).await;
    assert_eq!(
        text,
        "Patched 3 files: a.txt (+2 −2), b.txt (+1 −1), c.txt (new, +1)"
    );
    assert_eq!(
        [
            desk.content("a.txt"),
            desk.content("b.txt"),
            desk.content("c.txt")
        ],
        ["one\ntwo\n", "new\n", "d\n"]
    );
}

/// SAFE-6, TOOL-2: rules see every path, both ends of a move, and the highest category counts.
#[test]
fn every_path_is_judged() {
    let outside = tempfile::tempdir().expect("a folder");
    let inside = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(inside.path()).expect("real");
    symlink(outside.path(), root.join("away")).expect("a link");
    let config = ToolsConfig {
        workspace: Workspace::new(&root, None),
        ..ToolsConfig::default()
    };
    let tools = builtin(&config);
    let judged = |body: &str| {
        let tool = Arc::clone(tools.get("apply_patch").expect("the tool"));
        let call = tool.prepare(&patch(body).to_string()).expect("valid");
        let subjects = call.subjects.iter().map(|subject| match subject {
            Subject::Path(path) => path.clone(),
            other => format!("{other:?}"),
        });
        (call.category, subjects.collect::<Vec<_>>(), call.reasons)
    };
    let (category, subjects, reasons) =
        judged("*** Add File: a\n+1\n*** Update File: ./b\n*** Move to: sub/c\n*** Delete File: a\n");
    assert_eq!((category, reasons.len()), (Category::Write, 0));
    assert_eq!(subjects, ["a", "b", "sub/c"]);
    let real = fs::canonicalize(outside.path()).expect("real").join("x");
    let (category, subjects, reasons) =
        judged("*** Add File: a\n+1\n*** Update File: b\n*** Move to: away/x\n*** Add File: ../y\n+1\n");
    assert_eq!(category, Category::Admin);
    assert!(subjects.contains(&"away/x".to_owned()), "{subjects:?}");
    assert!(subjects.contains(&real.display().to_string()), "{subjects:?}");
    assert_eq!(reasons, ["it writes outside the workspace"]);
    let (category, subjects, _) = judged("nonsense\n");
    assert_eq!((category, subjects.len()), (Category::Write, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// TOOL-2: with random edits in one call, all are made, or the file stays unchanged.
    #[test]
    fn random_edits_are_all_or_nothing(
        text in "[ab“ \n]{0,20}",
        edits in prop::collection::vec(("[ab\" \n]{1,3}", "[abc\n]{0,3}", any::<bool>()), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let desk = Desk::new();
        desk.put("a.txt", &text);
        let list: Vec<Value> = edits
            .iter()
            .map(|(old, new, all)| json!({ "old_string": old, "new_string": new, "replace_all": all }))
            .collect();
        let arguments = json!({ "path": "a.txt", "edits": list });
        let one_by_one = Desk::new();
        one_by_one.put("a.txt", &text);
        let all = runtime.block_on(desk.call("edit_file", arguments));
        let mut failed = false;
        for edit in &list {
            let mut edit = edit.clone();
            edit["path"] = json!("a.txt");
            failed |= runtime.block_on(one_by_one.call("edit_file", edit)).is_err();
        }
        match all {
            Ok(_) if !failed => prop_assert_eq!(desk.content("a.txt"), one_by_one.content("a.txt")),
            Ok(_) => {}
            Err(_) => prop_assert_eq!(desk.content("a.txt"), text),
        }
    }
}
