//! Applying patches to texts, by table and by property.

use proptest::prelude::*;
use similar::TextDiff;

use super::super::parse::parse;
use super::*;

/// Returns the text after a patch with one statement about one file.
fn patched(old: &str, body: &str) -> Result<(String, Vec<Note>), Misfit> {
    let head = if body.starts_with("@@ -") {
        "--- a/x\n+++ b/x\n"
    } else {
        "*** Begin Patch\n*** Update File: x\n"
    };
    let patches = parse(&format!("{head}{body}")).unwrap();
    apply(old, &patches[0]).map(|applied| (applied.text, applied.notes))
}

/// TOOL-2: hunks are placed correctly whatever their line numbers are, and the file keeps its format.
#[test]
fn hunks_land_where_they_belong() {
    let cases = [
        (
            "plain",
            "a\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n",
            "a\nx\nc\n",
        ),
        (
            "wrong number",
            "a\nb\nc\n",
            "@@ -40,2 +40,2 @@\n-b\n+x\n c\n",
            "a\nx\nc\n",
        ),
        (
            "number decides",
            "a\nb\na\nb\na\nb\n",
            "@@ -3,2 +3,2 @@\n a\n-b\n+x\n",
            "a\nb\na\nx\na\nb\n",
        ),
        (
            "drift",
            "0\n0\na\nb\na\nb\n",
            "@@ -1,2 +1,2 @@\n-0\n-0\n+1\n@@ -3,2 +3,2 @@\n a\n-b\n+x\n",
            "1\na\nx\na\nb\n",
        ),
        (
            "anchor",
            "fn a\n x\nfn b\n x\n",
            "@@ fn b\n- x\n+ y\n",
            "fn a\n x\nfn b\n y\n",
        ),
        (
            "anchor, beginning of a line",
            "class A:\n x\nclass B(A):\n x\n",
            "@@ class B\n- x\n+ y\n",
            "class A:\n x\nclass B(A):\n y\n",
        ),
        (
            "two anchors",
            "c A\n f\n  x\nc B\n g\n  x\n f\n  x\n",
            "@@ c B\n@@ f\n-  x\n+  y\n",
            "c A\n f\n  x\nc B\n g\n  x\n f\n  y\n",
        ),
        (
            "anchor repeated as context",
            "fn a\n x\nfn b\n x\n",
            "@@ fn b\n fn b\n- x\n+ y\n",
            "fn a\n x\nfn b\n y\n",
        ),
        (
            "order decides",
            "a\nb\na\n",
            "@@\n-b\n+x\n@@\n-a\n+y\n",
            "a\nx\ny\n",
        ),
        (
            "not in order",
            "a\nb\nc\n",
            "@@\n-c\n+z\n@@\n-a\n+x\n",
            "x\nb\nz\n",
        ),
        (
            "shared context",
            "a\nb\nc\n",
            "@@ -1,2 +1,2 @@\n-a\n+x\n b\n@@ -2,2 +2,2 @@\n b\n-c\n+z\n",
            "x\nb\nz\n",
        ),
        (
            "end of file",
            "a\nb\na\n",
            "@@\n-a\n+x\n*** End of File\n",
            "a\nb\nx\n",
        ),
        ("insert after an anchor", "a\nb\n", "@@ a\n+x\n", "a\nx\nb\n"),
        ("append", "a\nb\n", "+x\n", "a\nb\nx\n"),
        ("append, no break", "a\nb", "+x\n", "a\nb\nx"),
        ("insert by number", "a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"),
        ("insert into nothing", "", "@@ -0,0 +1 @@\n+x\n", "x\n"),
        ("remove all", "a\n", "@@ -1 +0,0 @@\n-a\n", ""),
        ("break kept away", "a\nb", "@@\n a\n-b\n+x\n", "a\nx"),
        (
            "break taken away",
            "a\nb\n",
            "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n",
            "a\nb",
        ),
        (
            "break added",
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
            "a\nb\n",
        ),
        ("crlf", "a\r\nb\r\n", "@@\n a\n-b\n+x\n+y\n", "a\r\nx\r\ny\r\n"),
        ("crlf, no break", "a\r\nb", "@@\n a\n-b\n+x\n+y\n", "a\r\nx\r\ny"),
        (
            "crlf spelled out",
            "a\r\nb\r\n",
            "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n",
            "a\r\nb\n",
        ),
        (
            "crlf in a plain file",
            "a\nb\n",
            "@@\n a\r\n-b\r\n+x\r\n",
            "a\nx\n",
        ),
        ("mark kept", "\u{FEFF}a\nb\n", "@@\n-a\n+x\n", "\u{FEFF}x\nb\n"),
        (
            "mark spelled out",
            "\u{FEFF}a\n",
            "@@ -1 +1 @@\n-\u{FEFF}a\n+a\n",
            "a\n",
        ),
        ("blanks at line ends", "a  \nb\n", "@@\n a\n-b\n+x\n", "a  \nx\n"),
        (
            "indentation",
            "    a {\n        b\n    }\n",
            "@@\n a {\n-    b\n+    c\n+        d\n }\n",
            "    a {\n        c\n            d\n    }\n",
        ),
        (
            "quotes",
            "say(“a”)\nb\n",
            "@@\n say(\"a\")\n-b\n+c\n",
            "say(“a”)\nc\n",
        ),
    ];
    for (name, old, body, expected) in cases {
        let result = patched(old, body).map(|(text, _)| text);
        assert_eq!(result.as_deref(), Ok(expected), "{name}");
    }
}

/// TOOL-2: an ambiguous hunk is refused with the reason.
#[test]
fn unclear_hunks_are_refused() {
    let cases = [
        ("nowhere", "a\nb\n", "@@\n-x\n+y\n", 0, Why::Nowhere),
        ("twice", "a\nb\na\n", "@@\n-a\n+y\n", 0, Why::Several(vec![0, 2])),
        (
            "as near",
            "a\nb\na\n",
            "@@ -2 +2 @@\n-a\n+y\n",
            0,
            Why::Several(vec![0, 2]),
        ),
        (
            "alike twice",
            " a\n  a\n",
            "@@ -1 +1 @@\n-a\n+y\n",
            0,
            Why::Several(vec![0, 1]),
        ),
        (
            "before its anchor",
            "x\nfn b\n",
            "@@ fn b\n-x\n+y\n",
            0,
            Why::Nowhere,
        ),
        (
            "anchor twice",
            "f\nx\nf\nx\n",
            "@@ f\n-x\n+y\n",
            0,
            Why::Several(vec![1, 3]),
        ),
        (
            "insert at two anchors",
            "f\nf\n",
            "@@ f\n+x\n",
            0,
            Why::Several(vec![0, 1]),
        ),
        ("insert at no anchor", "f\n", "@@ g\n+x\n", 0, Why::NoAnchor),
        ("second", "a\nb\n", "@@\n-a\n+x\n@@\n-c\n+y\n", 1, Why::Nowhere),
        (
            "same lines",
            "a\nb\n",
            "@@\n-a\n+x\n@@\n-a\n-b\n+y\n",
            1,
            Why::Overlap,
        ),
        (
            "indents differ",
            "a\n  b\n    c\n",
            "@@\n-\ta\n-\tb\n+x\n",
            0,
            Why::Nowhere,
        ),
    ];
    for (name, old, body, hunk, why) in cases {
        assert_eq!(patched(old, body), Err(Misfit { hunk, why }), "{name}");
    }
    let gone = |hunks: &str| parse(&format!("--- a/x\n+++ /dev/null\n{hunks}")).unwrap();
    let all = gone("@@ -1,2 +0,0 @@\n-a\n-b\n");
    assert_eq!(
        apply("a\nb\n", &all[0]).map(|applied| applied.text),
        Ok(String::new())
    );
    let some = apply("a\nb\nc\n", &all[0]).map_err(|misfit| misfit.why);
    assert_eq!(some, Err(Why::Remains));
}

/// TOOL-2: a hunk that was not placed exactly is reported.
#[test]
fn notes_say_how_a_place_was_found() {
    let note = |old: &str, body: &str| {
        let (_, notes) = patched(old, body).unwrap();
        notes
            .into_iter()
            .map(|note| (note.line, note.closeness, note.among, note.lost_anchor))
            .collect::<Vec<_>>()
    };
    use Closeness::{Exact, Indentation, TrailingSpace, Typography};
    assert_eq!(note("a\nb\n", "@@ -9 +9 @@\n-b\n+c\n"), []);
    assert_eq!(
        note("a \nb\n", "@@\n a\n-b\n+c\n"),
        [(1, TrailingSpace, None, false)]
    );
    assert_eq!(note("x\n  b\n", "@@\n-b\n+c\n"), [(2, Indentation, None, false)]);
    assert_eq!(
        note("b – c\n", "@@\n-b - c\n+c\n"),
        [(1, Typography, None, false)]
    );
    assert_eq!(
        note("b\n0\n0\n0\nb\n", "@@ -2 +2 @@\n-b\n+c\n"),
        [(1, Exact, Some(2), false)]
    );
    assert_eq!(note("b\n", "@@ fn gone\n-b\n+c\n"), [(1, Exact, None, true)]);
}

/// TOOL-2: a file that repeats one line a hundred thousand times, with a patch that nearly matches
/// everywhere, finishes quickly.
#[test]
fn repetition_does_not_make_it_slow() {
    let old = "x\n".repeat(100_000);
    let many = format!("@@\n{}-y\n+z\n", " x\n".repeat(50_000));
    assert_eq!(patched(&old, &many).unwrap_err().why, Why::Nowhere);
    let old = format!("{}y\n", "x\n".repeat(100_000)).repeat(2);
    let long = format!("@@\n{}-x\n+z\n y\n", " x\n".repeat(50_000)).repeat(2);
    assert!(patched(&old, &long).is_err());
    let alike = format!("@@\n{}-x\n+z\n", " x\n".repeat(90_000));
    assert!(patched(&old, &alike).is_err());
}

fn unified(old: &str, new: &str, context: usize) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(context)
        .header("a/x", "b/x")
        .to_string()
}

fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[ab]{0,2}",
        1 => "[-+ @\\\\*]{1,3}[ab]?",
        1 => Just("-- a".to_owned()),
        1 => Just("++ b/x".to_owned()),
        1 => Just("*** End Patch".to_owned()),
        1 => "[ä🦀“ \t]{0,3}",
    ];
    (prop::collection::vec(line, 0..24), any::<bool>(), 0..3_u8).prop_map(|(lines, ends, breaks)| {
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let is_last = index + 1 == lines.len();
            text.push_str(line);
            text.push_str(match breaks {
                _ if is_last && !ends => "",
                0 => "\n",
                1 => "\r\n",
                _ if index % 3 == 0 => "\r\n",
                _ => "\n",
            });
        }
        text
    })
}

proptest! {
    /// TOOL-2: applying the unified diff between two texts to the first gives the second, byte for byte.
    #[test]
    fn diffs_apply_exactly(old in texts(), new in texts(), context in 0_usize..4) {
        // Without context, new lines end like most lines of the file.
        let context = if old.contains('\r') { context.max(1) } else { context };
        let diff = unified(&old, &new, context);
        if old != new {
            let patches = parse(&diff).unwrap();
            prop_assert_eq!(patches.len(), 1, "{}", diff);
            let applied = apply(&old, &patches[0]);
            prop_assert_eq!(applied.as_ref().map(|applied| applied.text.as_str()), Ok(new.as_str()), "{}", diff);
        }
    }

    /// TOOL-2: the same holds if lines were added before, so that no line number is right.
    #[test]
    fn numbers_are_only_hints(old in "([a-z]{1,8}\n){1,12}", new in "([a-z]{1,8}\n){1,12}", before in "([0-9]{1,8}\n){0,6}") {
        let diff = unified(&old, &new, 20);
        if old != new {
            let patches = parse(&diff).unwrap();
            let applied = apply(&format!("{before}{old}"), &patches[0]).map(|applied| applied.text);
            prop_assert_eq!(applied, Ok(format!("{before}{new}")), "{}", diff);
        }
    }

    /// No input causes a panic.
    #[test]
    fn anything_may_be_a_patch(
        lines in prop::collection::vec(prop_oneof![
            Just("*** Begin Patch"), Just("*** Update File: x"), Just("*** Add File: y"), Just("*** End of File"), Just("*** Move to: z"),
            Just("--- a/x"), Just("+++ b/x"), Just("@@"), Just("@@ -1,2 +1,2 @@"), Just("@@ -18446744073709551615,0 +9 @@"), Just("@@ a"),
            Just(" a"), Just("-a"), Just("+b"), Just(""), Just("\\ No newline"), Just("+"), Just("diff --git \"a/\\3"), Just("```"), Just("ä"),
        ], 0..12),
        old in "[ab \n\r]{0,12}",
        crlf: bool,
    ) {
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        super::super::fuzz(&text, &old);
    }
}
