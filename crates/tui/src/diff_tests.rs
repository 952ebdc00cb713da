use super::*;
use crate::text::width;
use crate::theme::Palette;

const DIFF: &str = "\
diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1,3 +1,3 @@ fn x
 kept
--- removed
+++ added
\tkept
\\ No newline at end of file
";

fn theme() -> Theme {
    Theme::default()
}

fn texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

/// UI-2: a diff is shown line by line with its signs, in distinct styles.
#[test]
fn parts_are_told_apart() {
    let lines = render(DIFF, 40, theme());
    assert_eq!(
        texts(&lines),
        [
            "diff --git a/x b/x",
            "index 1..2 100644",
            "--- a/x",
            "+++ b/x",
            "… fn x",
            "1  kept",
            "2 --- removed",
            "2 +++ added",
            "    kept",
            "\\ No newline at end of file",
        ]
    );
    let style = |index: usize| lines[index].spans[usize::from(index > 5)].style;
    assert!(style(2).add_modifier.contains(Modifier::BOLD));
    assert_eq!(style(4), theme().style(Tone::Dim));
    assert_eq!(style(6), theme().style(Tone::Removed));
    assert_eq!(style(7), theme().style(Tone::Added));
}

/// UI-2: the name of a file stands there once, and line numbers take the place of the ranges of hunks.
#[test]
fn headers_are_short() {
    let two = "--- src/a.rs\n+++ src/a.rs\n@@ -1 +1 @@\n-x\n+y\n@@ -9 +9 @@ fn f()\n-x\n+y\n";
    let lines = render(two, 40, theme());
    assert_eq!(
        texts(&lines),
        ["src/a.rs", "1 -x", "1 +y", "… fn f()", "9 -x", "9 +y"]
    );
    let renamed = "--- a.rs\n+++ b.rs\n@@ -1 +1 @@\n-x\n+y\n";
    assert_eq!(
        texts(&render(renamed, 40, theme()))[..2],
        ["--- a.rs", "+++ b.rs"]
    );
    let narrow = texts(&render(two, 20, theme()));
    assert_eq!(narrow[..3], ["src/a.rs", "@@ -1 +1 @@", "-x"]);
}

/// UI-2: lines are counted by hunk headers, so that a removed line that looks like a file header counts.
#[test]
fn lines_are_counted() {
    let cases = [
        (DIFF, (1, 1)),
        ("", (0, 0)),
        ("--- a\n+++ b\n+x\n+y\n-z\n", (2, 1)),
        ("@@ @@\n+x\n--- y\n z\n", (1, 1)),
        (
            "@@ -1 +1,2 @@\n-x\n+y\n+z\n--- c\n+++ d\n@@ -0,0 +1 @@\n+e\n",
            (3, 1),
        ),
        ("@@ -1,9 +1,9 @@\n-x\n[… diff cut …]\n", (0, 1)),
    ];
    for (diff, expected) in cases {
        assert_eq!(counts(diff), expected, "{diff:?}");
    }
}

/// UI-2: a line that is too long is wrapped, but not into the sign column.
#[test]
fn long_lines_go_on_below() {
    assert_eq!(
        texts(&render("+日本語 abc", 5, theme())),
        ["+日本", " 語 a", " bc"]
    );
    for columns in 1..20 {
        for line in render(DIFF, columns, theme()) {
            assert!(width(&line.to_string()) <= columns, "{line} in {columns}");
        }
    }
}

/// SAFE-7: control characters in a changed file do not reach the terminal, in any palette.
#[test]
fn control_characters_are_removed() {
    for palette in Palette::ALL {
        let theme = Theme {
            palette,
            ascii: false,
        };
        let lines = render("+a\u{1b}[31mb\u{7}\r\n-\u{9b}c", 20, theme);
        let texts: Vec<_> = lines
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect();
        assert_eq!(texts, ["+ab", "-c"]);
    }
}

/// UI-2: lines have their numbers in the file, code has the colours of its language, and what changed within a
/// line is marked.
#[test]
fn changes_within_a_line_are_marked() {
    let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -7,3 +7,3 @@\n fn a() {\n-    let x = 1;\n+    let x = 25;\n }\n";
    for palette in [Palette::Dark, Palette::Terminal] {
        let theme = Theme {
            palette,
            ascii: false,
        };
        let lines = render(diff, 40, theme);
        let texts: Vec<_> = lines
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect();
        assert_eq!(
            texts[2..],
            ["7  fn a() {", "8 -    let x = 1;", "8 +    let x = 25;", "9  }"]
        );
        let marked = |index: usize| -> String {
            let style = theme.changed(index == 4);
            let is_marked = |span: &&Span<'_>| match style.bg {
                Some(bg) => span.style.bg == Some(bg),
                None => span.style.add_modifier.contains(Modifier::UNDERLINED),
            };
            let spans = lines[index].spans.iter().filter(is_marked);
            spans.map(|span| span.content.as_ref()).collect()
        };
        assert_eq!((marked(3).as_str(), marked(4).as_str()), ("1", "25"));
        let keyword = lines[4].spans.iter().find(|span| span.content.contains("let"));
        let plain = lines[4].spans.iter().find(|span| span.content.contains("x"));
        assert_ne!(
            keyword.map(|span| span.style.fg),
            plain.map(|span| span.style.fg),
            "{palette:?}"
        );
    }
    // Lines with next to nothing in common are not marked.
    let other = render("@@ -1 +1 @@\n-abcdefgh\n+xyz\n", 40, Theme::default());
    assert!(other.iter().all(|line| {
        line.spans
            .iter()
            .all(|span| !span.style.add_modifier.contains(Modifier::UNDERLINED))
    }));
}
