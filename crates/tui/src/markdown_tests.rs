use proptest::prelude::*;
use ratatui::style::{Modifier, Style};

use super::*;
use crate::text::width;
use crate::theme::{Palette, Tone};

fn theme() -> Theme {
    Theme::default()
}

fn texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(source: &str, columns: usize, expected: &[&str]) {
    assert_eq!(
        texts(&render(source, columns, theme())),
        expected,
        "{source:?} in {columns}"
    );
}

/// Style of the span that starts with this text.
fn style_of(source: &str, text: &str) -> Style {
    let lines = render(source, 80, theme());
    let mut spans = lines.iter().flat_map(|line| &line.spans);
    spans
        .find(|span| span.content.starts_with(text))
        .expect("the text is shown")
        .style
}

/// UI-2: paragraphs are filled, line breaks are kept, and blank lines separate blocks.
#[test]
fn paragraphs() {
    check(
        "one\ntwo  \nthree\n\nfour",
        20,
        &["one", "two", "three", "", "four"],
    );
    check("the quick brown fox", 10, &["the quick", "brown fox"]);
    check("a<br>b <b>c</b> &amp; &lt;d&gt;", 30, &["a", "b <b>c</b> & <d>"]);
    check("~/a:~/b and ~~gone~~", 30, &["~/a:~/b and gone"]);
    check("", 10, &[]);
    check("\n\n", 10, &[]);
}

/// UI-2: headings, emphasis, code and links are styled, and their markup is removed.
#[test]
fn styles() {
    check("# One\n## Two\nThree\n===", 20, &["One", "", "Two", "", "Three"]);
    let one = style_of("# One", "One");
    let two = style_of("## Two", "Two");
    assert!(one.add_modifier.contains(Modifier::BOLD) && two.add_modifier.contains(Modifier::BOLD));
    assert_ne!(one, two);
    check("*a* **b** ***c*** `d`", 20, &["a b c d"]);
    assert_eq!(style_of("*a*", "a").add_modifier, Modifier::ITALIC);
    assert_eq!(style_of("**b**", "b").add_modifier, Modifier::BOLD);
    assert_eq!(style_of("~~s~~", "s").add_modifier, Modifier::CROSSED_OUT);
    assert_eq!(style_of("`d`", "d"), theme().style(Tone::Code));
    assert_eq!(style_of("[l](u)", "l"), theme().style(Tone::Link));
    assert_eq!(style_of("[l](u)", " (u)"), theme().style(Tone::Dim));
}

/// UI-2: a link shows its target once.
#[test]
fn links() {
    check("[docs](https://x.y) here", 40, &["docs (https://x.y) here"]);
    check(
        "<https://x.y> [https://x.y](https://x.y)",
        40,
        &["https://x.y https://x.y"],
    );
    check("<a@b.c>", 40, &["a@b.c"]);
    check(
        "![a *b*](u.png) ![](v)",
        40,
        &["[image: a b] (u.png) [image: ] (v)"],
    );
    check(
        "see [a][1]\n\n[1]: https://x.y",
        40,
        &["see [a][1]", "", "[1]: https://x.y"],
    );
    check("see[^1]\n\n[^1]: note", 40, &["see[^1]", "", "[^1]: note"]);
}

/// UI-2: lists have hanging indents at every level, and blank lines only where the text has them.
#[test]
fn lists() {
    check(
        "- one two\n- b\n  - c\n    1. d",
        8,
        &["• one", "  two", "• b", "  ◦ c", "    1.", "    d"],
    );
    check(
        "- one two\n- b\n  - c\n    1. d",
        20,
        &["• one two", "• b", "  ◦ c", "    1. d"],
    );
    check("9. a\n10. b\n\n11. c", 20, &["9. a", "", "10. b", "", "11. c"]);
    check("- [x] a b c\n- [ ] d", 8, &["[x] a b", "    c", "[ ] d"]);
    check(
        "1. a\n\n   b\n\n   - c\n2. d",
        20,
        &["1. a", "", "   b", "   ◦ c", "", "2. d"],
    );
    check("a\n- b\n\nc", 20, &["a", "", "• b", "", "c"]);
    check("- a\n  ```x\n  b\n  ```", 20, &["• a", "    x", "    b"]);
}

/// UI-2: quotes have a bar on every line, rules are as wide as the text.
#[test]
fn quotes_and_rules() {
    check(
        "> a b c d\n> e\n>\n> - f",
        7,
        &["▌ a b c", "▌ d", "▌ e", "▌", "▌ • f"],
    );
    check("> > a", 10, &["▌ ▌ a"]);
    check("> [!NOTE]\n> a", 10, &["▌ Note", "▌", "▌ a"]);
    check("a\n\n---\nb", 5, &["a", "", "─────", "", "b"]);
}

/// UI-2: code is indented, shows its language, and is broken only at the width.
#[test]
fn code_blocks() {
    check(
        "```rust\nfn x() {\n\n\ty\n```",
        20,
        &["  rust", "  fn x() {", "", "      y"],
    );
    check(
        "a\n```\nb  c d e f g h\n```\nd",
        12,
        &["a", "", "  b  c d e f", "   g h", "", "d"],
    );
    check("    a\n      b", 20, &["  a", "    b"]);
    check("```\n```\nx", 20, &["x"]);
    assert_eq!(style_of("```rust\nx\n```", "rust"), theme().style(Tone::Dim));
}

/// UI-2: tables keep their columns, with alignment and wide characters.
#[test]
fn tables() {
    let table = "|Name|Qty|日|\n|:-|-:|:-:|\n|apple|3|a|\n|梨|12|👍|\n|*x*|||";
    check(
        table,
        40,
        &[
            "Name  │ Qty │ 日",
            "──────┼─────┼───",
            "apple │   3 │ a",
            "梨    │  12 │ 👍",
            "x     │     │ ",
        ],
    );
    check("|a|b|\n|-|-|", 40, &["a │ b", "──┼──"]);
    check(
        "|a|b|\n|-|-|\n|1<br>2|`x|y`|",
        40,
        &["a │ b", "──┼───", "1 │ `x", "2 │ "],
    );
}

/// UI-2: a table that is too wide is wrapped within its columns, and becomes a list if there is no room.
#[test]
fn wide_tables() {
    let table = "|id|what it does|\n|-|-|\n|alpha|one two three four|\n|b|five|";
    check(
        table,
        20,
        &[
            "id    │ what it does",
            "──────┼─────────────",
            "alpha │ one two",
            "      │ three four",
            "──────┼─────────────",
            "b     │ five",
        ],
    );
    check(
        table,
        11,
        &[
            "id: alpha",
            "what it",
            "does: one",
            "two three",
            "four",
            "",
            "id: b",
            "what it",
            "does: five",
        ],
    );
}

/// UI-2: ASCII terminals get only ASCII.
#[test]
fn ascii_alone() {
    let source = "- a\n  - b\n\n> c\n\n---\n\n|a|b|\n|-|-|\n|1|2|";
    let theme = Theme {
        palette: Palette::Terminal,
        ascii: true,
    };
    let lines = texts(&render(source, 9, theme));
    assert_eq!(
        lines,
        [
            "- a",
            "  - b",
            "",
            "| c",
            "",
            "---------",
            "",
            "a | b",
            "--+--",
            "1 | 2"
        ]
    );
}

/// UI-2: however deep the nesting, text keeps half of the width.
#[test]
fn deep_nesting() {
    let source = format!("{} x", ">".repeat(2_000));
    let lines = texts(&render(&source, 20, theme()));
    assert_eq!(lines, ["▌ ▌ ▌ ▌ ▌ x"]);
}

/// UI-2: finished blocks are returned while the text grows, and the open block is shown meanwhile.
#[test]
fn growing_texts_settle() {
    let mut text = StreamingMarkdown::default();
    text.push("# A\nb *c*");
    assert_eq!(texts(&text.settle(20, theme())), ["A"]);
    assert_eq!(texts(text.open(20, theme())), ["", "b c"]);
    text.push(" d\n\n```rust\nfn x() {}\nlet");
    assert_eq!(
        texts(&text.settle(20, theme())),
        ["", "b c d", "", "  rust", "  fn x() {}"]
    );
    assert_eq!(texts(text.open(20, theme())), ["  let"]);
    assert_eq!(texts(text.open(14, theme())), ["  let"]);
    text.push(" x = 1;\n``");
    assert_eq!(texts(&text.settle(20, theme())), ["  let x = 1;"]);
    assert!(text.open(20, theme()).is_empty());
    text.push("`\n- e\n");
    assert!(text.settle(20, theme()).is_empty());
    assert_eq!(texts(text.open(20, theme())), ["", "• e"]);
    assert_eq!(
        text.source(),
        "# A\nb *c* d\n\n```rust\nfn x() {}\nlet x = 1;\n```\n- e\n"
    );
    assert_eq!(texts(&text.finish(20, theme())), ["", "• e"]);
}

/// A random text made of markdown elements.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => one_of(&[
            "a", "word ", "longer-word", " ", "  ", "\n", "\n\n", "\n\n", "\n", "    ", "\t", "日本語", "、", "👩‍👩‍👧", "👍", "e\u{301}",
            "\u{fe0f}", "☁", "🇩🇪", "🇩", "क्षि", "\u{200d}", "\u{301}", "لا", "1\u{fe0f}\u{20e3}",
        ]),
        4 => one_of(&[
            "# ", "## ", "- ", "* ", "1. ", "2) ", "- [ ] ", "> ", "```", "```rust\n", "~~~", "\n```\n", "---", "===", "***", "|", "|a|b|\n|-|:-:|\n|",
            "| x | y |\n", "*", "**", "_", "~~", "`", "[", "](u)", "![", "](<x y>)", "[a]: b", "[^1]", "[^1]: ", "<https://x.y>", "<br>",
            "<div>", "<!--", "-->", "<pre>", "\\", "let x = \"a\"; // b", "> [!NOTE]\n",
        ]),
        1 => one_of(&[
            "\u{1b}[31m", "\u{1b}]0;x\u{7}", "\u{1b}", "\r", "\r\n", "\u{9b}", "\u{0}", "\u{202e}", "&#27;", "&#x9b;", "&#10;", "&#9;", "&#x202e;",
            "&NewLine;", "\u{2028}", "\u{8}",
        ]),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn themes() -> impl Strategy<Value = Theme> {
    let palette = prop::sample::select(Palette::ALL.to_vec());
    (palette, any::<bool>()).prop_map(|(palette, ascii)| Theme { palette, ascii })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// UI-2: no line is wider than the screen, however narrow.
    #[test]
    fn every_line_fits(source in markdown(), columns in 1_usize..30, theme in themes()) {
        for line in render(&source, columns, theme) {
            prop_assert!(width(&line.to_string()) <= columns, "{:?} in {columns}", line.to_string());
        }
    }

    /// SAFE-7: no control character in a markdown text reaches the terminal, however it is written.
    #[test]
    fn no_control_character_is_shown(source in markdown(), columns in 1_usize..60, theme in themes()) {
        for line in render(&source, columns, theme) {
            let text = line.to_string();
            prop_assert!(!text.contains(|letter: char| letter.is_control() || letter == '\u{202e}'), "{text:?}");
        }
    }

    /// UI-2: a text looks the same however it arrived, and no returned line changes.
    #[test]
    fn growing_is_the_same(source in markdown(), cuts in prop::collection::vec(1_usize..9, 1..30), theme in themes()) {
        let mut growing = StreamingMarkdown::default();
        let mut lines = Vec::new();
        let mut letters = source.chars().peekable();
        let mut sizes = cuts.iter().cycle();
        while letters.peek().is_some() {
            let size = *sizes.next().unwrap_or(&1);
            growing.push(&letters.by_ref().take(size).collect::<String>());
            if size % 2 == 0 {
                lines.extend(growing.settle(17, theme));
            }
            if size % 3 == 0 {
                let open = growing.open(17, theme);
                prop_assert!(open.iter().all(|line| width(&line.to_string()) <= 17));
            }
        }
        prop_assert_eq!(growing.source(), &source);
        lines.extend(growing.finish(17, theme));
        prop_assert_eq!(lines, render(&source, 17, theme));
    }
}

/// UI-2: of a long block that is still streaming, only the end is drawn; once complete, all of it.
#[test]
fn a_long_open_block_is_drawn_from_its_end() {
    let list: String = (0..2_000).map(|number| format!("- item {number}\n")).collect();
    let rows: String = (0..2_000)
        .map(|number| format!("| row {number} | x |\n"))
        .collect();
    let table = format!("| name | value |\n|---|---|\n{rows}");
    let prose = "some words 日本語 ".repeat(4_000);
    for source in [list.as_str(), &table, &prose] {
        let mut growing = StreamingMarkdown::default();
        growing.push(source);
        let open = growing.open(60, Theme::default()).to_vec();
        assert!(open.len() < 700, "{}", open.len());
        let last = open.iter().rev().find(|line| !line.to_string().trim().is_empty());
        let whole = render(source, 60, Theme::default());
        assert!(whole.len() > 900, "{}", whole.len());
        let end = whole.last().map(ToString::to_string);
        if source != prose {
            let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(last.map(|line| words(line.to_string())), end.map(words));
        }
    }
    let mut growing = StreamingMarkdown::default();
    growing.push(&table);
    assert!(
        growing.open(60, Theme::default())[0]
            .to_string()
            .starts_with("name")
    );
}
