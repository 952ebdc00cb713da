//! Parsed patches, as outlines.

use super::super::patch::{Action, Hunk, Kind};
use super::*;

/// Returns a compact outline of a patch: the action for each file, and each hunk with its place and lines.
fn outline(text: &str) -> String {
    match parse(text) {
        Ok(patches) => patches.iter().map(file).collect::<Vec<_>>().join("; "),
        Err(error) => format!("error: {error}"),
    }
}

fn file(patch: &FilePatch) -> String {
    let path = &patch.path;
    match &patch.action {
        Action::Add(content) => format!("add {path} {content:?}"),
        Action::Delete(hunks) => format!("delete {path}{}", all(hunks)),
        Action::Update { move_to, hunks } => {
            let to = move_to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
            format!("update {path}{to}{}", all(hunks))
        }
    }
}

fn all(hunks: &[Hunk]) -> String {
    hunks.iter().map(hunk).collect()
}

fn hunk(hunk: &Hunk) -> String {
    let hint = hunk.hint.map(|hint| format!("{hint}:")).unwrap_or_default();
    let anchors: String = hunk.anchors.iter().map(|anchor| format!("@{anchor}:")).collect();
    let lines: Vec<String> = hunk
        .lines
        .iter()
        .map(|line| {
            let kind = match line.kind {
                Kind::Context => '=',
                Kind::Removed => '-',
                Kind::Added => '+',
            };
            let bare = if line.bare { "\\" } else { "" };
            format!("{kind}{}{bare}", line.text)
        })
        .collect();
    let end = if hunk.at_end { " $" } else { "" };
    format!(" [{hint}{anchors}{}{end}]", lines.join(","))
}

/// TOOL-2: the format between `*** Begin Patch` and `*** End Patch` is parsed, both as specified and as
/// models write it.
#[test]
fn envelopes_are_read() {
    let cases = [
        (
            "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n+two\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d/c.txt\n@@ fn x()\n a\n-b\n+c\n*** End Patch\n",
            "add a.txt \"one\\n\\ntwo\\n\"; delete b.txt; update c.txt to d/c.txt [@fn x():=a,-b,+c]",
        ),
        (
            "*** Begin Patch\n*** Update File: c\n@@ class A\n@@   def b():\n-x\n+y\n\n@@\n z\n+w\n*** End of File\n*** End Patch",
            "update c [@class A:@def b()::-x,+y] [=z,+w $]",
        ),
        // No end marker, empty lines, CRLF transport, a code fence, a here-document, text around the patch.
        (
            "*** Begin Patch\r\n*** Update File: c\r\n-x\r\n+y\r\n",
            "update c [-x,+y]",
        ),
        (
            "```diff\n*** Begin Patch\n*** Update File: c\n-x\n+y\n```\n",
            "update c [-x,+y]",
        ),
        (
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: c\n-x\n+y\nEOF\n",
            "update c [-x,+y]",
        ),
        (
            "Here it is:\n\n  *** Begin Patch\n*** Update File: c\n a\n\n-x\n*** End Patch\nDone!\n",
            "update c [=a,=,-x]",
        ),
        ("*** Update File: c\n@@\n-x\n", "update c [-x]"),
        // Line numbers and file names of the other format.
        (
            "*** Begin Patch\n*** Update File: c\n--- a/c\n+++ b/c\n@@ -4,2 +4,1 @@ fn\n-x\n y\n\\ No newline at end of file\n*** End Patch",
            "update c [3:-x,=y\\]",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n*** End Patch\n*** Begin Patch\n*** Delete File: b\n*** End Patch\n",
            "add a \"\"; delete b",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(outline(text), expected, "{text}");
    }
}

/// TOOL-2: unified diffs of git, of `diff -u`, and with wrong line counts are parsed.
#[test]
fn unified_diffs_are_read() {
    let cases = [
        (
            "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -3,3 +3,3 @@ fn x\n a\n-b\n+c\n d\n@@ -9,0 +10 @@\n+e\n",
            "update x.rs [2:=a,-b,+c,=d] [9:+e]",
        ),
        (
            "--- x.rs.orig\t2026-01-01\n+++ x.rs\t2026-01-02\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n",
            "update x.rs [0:-a\\,+b]",
        ),
        (
            "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\ndiff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "add n \"a\\nb\"; delete o [0:-a]",
        ),
        (
            "diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\ndiff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n",
            "add e \"\"; update old name to new name",
        ),
        // A removed line that starts with two dashes, and a mail signature.
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-- a\n--- b\n+++ c\n++ d\n-- \n2.40\n",
            "update x [0:-- a,--- b,+++ c,++ d]",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- b\n+++ c\n@@ -5 +5 @@\n-e\n+f\n",
            "update x [0:--- b,+++ c] [4:-e,+f]",
        ),
        // Counts too high and too low, no numbers, an empty line without its leading blank.
        (
            "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n\n+b\n--- a/y\n+++ b/y\n@@ -1,1 +1,1 @@\n a\n-b\n+c\n\n",
            "update x [0:-a,=,+b]; update y [0:=a,-b,+c]",
        ),
        (
            "--- a/x\n+++ b/x\n@@ ... @@\n-a\n+b\n@@ def f():\n-c\n\n",
            "update x [-a,+b] [@def f()::-c]",
        ),
        // The line end is recorded if only some lines have it.
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n",
            "update x [0:-a\r,+b\r]",
        ),
        (
            "--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
            "update x [0:-a,+b]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(outline(text), expected, "{text}");
    }
}

/// TOOL-2: the error for an invalid patch names the wrong line.
#[test]
fn bad_patches_are_refused() {
    let cases = [
        ("", "This is not a patch"),
        ("hello\nworld\n", "This is not a patch"),
        ("*** Begin Patch\n*** End Patch\n", "This is not a patch"),
        (
            "*** Begin Patch\n*** Update File:\n-x\n",
            "Line 2 of the patch: a path",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "Line 2 of the patch: no change is given for a",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch",
            "Line 3 of the patch: the hunk has no lines",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n-x\nfoo\n",
            "Line 4 of the patch: lines of a hunk start",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\nfoo\n",
            "Line 4 of the patch: lines of a new file start",
        ),
        ("*** Begin Patch\nfoo\n", "Line 2 of the patch: expected `*** Add"),
        ("--- a/x\n+++ b/x\n", "no change is given"),
        (
            "diff --git a/x b/x\nold mode 1\nnew mode 2\n",
            "no change is given",
        ),
        (
            "diff --git a/x b/x\nGIT binary patch\nliteral 1\n",
            "Line 2 of the patch: binary",
        ),
        (
            "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
            "Line 2 of the patch: binary",
        ),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "links"),
        ("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n", "a hunk before any"),
        (
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\nfoo\n+b\n",
            "Line 5 of the patch: lines of a hunk start",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n+lost\n",
            "Line 7 of the patch: lines of a hunk start",
        ),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "the hunk has no lines"),
        (
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n b\n",
            "lines of a new file start",
        ),
        (
            "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n+a\n",
            "a path is missing",
        ),
    ];
    for (text, word) in cases {
        let said = outline(text);
        assert!(
            said.starts_with("error: ") && said.contains(word),
            "{text}: {said}"
        );
    }
    let long = format!("*** Begin Patch\n*** Add File: a\n+{}\n", "x".repeat(MAX_BYTES));
    assert!(outline(&long).contains("at most 2000000"));
    let many: String = (0..=MAX_FILES)
        .map(|number| format!("*** Delete File: {number}\n"))
        .collect();
    assert!(outline(&many).contains("more than 200 files"));
}

#[test]
fn only_patches_look_like_patches() {
    for (text, expected) in [
        ("*** Begin Patch\n*** Delete File: a\n*** End Patch", true),
        ("apply_patch <<EOF\n*** Begin Patch\n", true),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", true),
        ("diff --git a/x b/x\n", true),
        ("path = a.txt", false),
        ("--- a rule\n", false),
        ("", false),
    ] {
        assert_eq!(looks_like_patch(text), expected, "{text}");
    }
}
