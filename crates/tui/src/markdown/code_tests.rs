use proptest::prelude::*;

use super::*;

fn theme(palette: Palette) -> Theme {
    Theme {
        palette,
        ascii: false,
    }
}

fn styles(lines: &[Line<'_>]) -> usize {
    let mut styles: Vec<Style> = lines
        .iter()
        .flat_map(|line| &line.spans)
        .map(|span| span.style)
        .collect();
    styles.dedup();
    styles.len()
}

fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

const CODE: &str = "// why\nfn main() {\n    let x = \"a\";\n\n}\n";

/// Highlights code: one line per source line, tabs expanded, not wrapped.
fn highlight(code: &str, language: &str, theme: Theme) -> Vec<Line<'static>> {
    let mut colouring = Colouring::new(language, theme);
    code.lines()
        .map(|line| Line::from(colouring.line(line)))
        .collect()
}

/// UI-2: code is highlighted and otherwise unchanged, one line for each.
#[test]
fn code_is_coloured() {
    for palette in [Palette::Terminal, Palette::Dark, Palette::Light] {
        let lines = highlight(CODE, "rust", theme(palette));
        assert_eq!(text(&lines), CODE);
        assert!(styles(&lines) > 4, "{palette:?}: {lines:?}");
    }
}

/// UI-2: the terminal palette uses only the terminal's own colours.
#[test]
fn the_terminal_keeps_its_colours() {
    for line in highlight(CODE, "rs", theme(Palette::Terminal)) {
        for span in line.spans {
            assert!(
                !matches!(span.style.fg, Some(Color::Rgb(..) | Color::Indexed(_))),
                "{span:?}"
            );
        }
    }
}

/// UI-2: without colours, or in an unknown language, code is plain.
#[test]
fn code_can_be_plain() {
    for (language, palette) in [
        ("rust", Palette::None),
        ("", Palette::Dark),
        ("nonsense", Palette::Dark),
    ] {
        let lines = highlight(CODE, language, theme(palette));
        assert_eq!(text(&lines), CODE);
        assert_eq!(styles(&lines), 1);
    }
}

/// UI-2: languages are recognised by their common names.
#[test]
fn languages_are_known_by_their_names() {
    let known = [
        "rust",
        "rs",
        "Python",
        "py",
        "js",
        "JavaScript",
        "ts",
        "tsx",
        "jsx",
        "go",
        "golang",
        "c",
        "c++",
        "cpp",
        "csharp",
        "java",
        "kotlin",
        "swift",
        "ruby",
        "php",
        "sh",
        "bash",
        "zsh",
        "shell",
        "console",
        "json",
        "jsonc",
        "yaml",
        "yml",
        "toml",
        "html",
        "css",
        "sql",
        "diff",
        "dockerfile",
        "makefile",
        "lua",
        "xml",
    ];
    let line = "for x = \"a\" in 12 # SELECT // --\n+added <a b=\"c\"> key: 1\nFROM a\n";
    for language in known {
        let lines = highlight(line, language, theme(Palette::Terminal));
        assert!(
            lines
                .iter()
                .any(|line| line.spans.iter().any(|span| span.style != Style::new())),
            "{language}"
        );
    }
}

/// UI-2: highlighting has a limit, so that a long text is cheap.
#[test]
fn long_code_is_not_coloured_to_its_end() {
    let is_coloured = |line: &Line<'_>| line.spans.iter().any(|span| span.style != Style::new());
    let lines = highlight(
        &"let x = 1;\n".repeat(MAX_LINES + 1),
        "rust",
        theme(Palette::Dark),
    );
    assert!(is_coloured(&lines[MAX_LINES - 1]));
    assert!(!is_coloured(&lines[MAX_LINES]));
    let long = format!("let x = 1;\n// {}\nlet y = 2;\n", "x".repeat(MAX_LINE_BYTES));
    let lines = highlight(&long, "rust", theme(Palette::Dark));
    assert_eq!(
        lines.iter().map(is_coloured).collect::<Vec<_>>(),
        [true, false, false]
    );
}

/// UI-2: the language is the first word after a fence.
#[test]
fn the_language_is_found() {
    for (info, expected) in [
        ("rust", "rust"),
        ("rust,ignore", "rust"),
        (" {.py #x}", "py"),
        ("js title=a", "js"),
        ("", ""),
    ] {
        assert_eq!(language(info), expected);
    }
}

/// Returns the tokens of each line as letters: comment, text, value, keyword, type, name.
fn tokens(code: &str, language: &str) -> Vec<String> {
    let grammar = grammar::named(language).expect("the language is known");
    let mut scanner = Scanner::new(grammar);
    let sign = |token: Token| match token {
        Token::Plain => "",
        Token::Comment => "c",
        Token::Text => "t",
        Token::Value => "v",
        Token::Keyword => "k",
        Token::Type => "T",
        Token::Name => "n",
        Token::Added => "+",
        Token::Removed => "-",
    };
    let show = |(token, text): (Token, &str)| match sign(token) {
        "" => text.to_owned(),
        sign => format!("{sign}<{text}>"),
    };
    code.lines()
        .map(|line| scanner.line(line).into_iter().map(show).collect())
        .collect()
}

/// UI-2: comments, strings, keywords and names are told apart, even across lines.
#[test]
fn parts_of_code_are_told_apart() {
    let cases: [(&str, &str, &[&str]); 10] = [
        (
            "rust",
            "let x: &'a str = f('b', \"\\\"\", 0x1f); // y",
            &["k<let> x: &'a str = n<f>(t<'b'>, t<\"\\\"\">, v<0x1f>); c<// y>"],
        ),
        (
            "rust",
            "/* a\nb */ Vec::new(1..2.5)",
            &["c</*>c< a>", "c<b */> T<Vec>::n<new>(v<1>..v<2.5>)"],
        ),
        ("rust", "r#\"a\"b\n\"# + c", &["t<r#\"a\"b>", "t<\"#> + c"]),
        (
            "python",
            "def f(): # a\n  \"\"\"b\nc\"\"\" + None",
            &["k<def> n<f>(): c<# a>", "  t<\"\"\"b>", "t<c\"\"\"> + v<None>"],
        ),
        (
            "ts",
            "const s: T = `a\nb`;",
            &["k<const> s: T<T> = t<`a>", "t<b`>;"],
        ),
        (
            "sh",
            "for i in $x ${y#z}; do # c",
            &["k<for> i k<in> v<$x> v<${y>#z}; k<do> c<# c>"],
        ),
        (
            "json",
            "{\"a\": [\"b\", 1, true]}",
            &["{n<\"a\">: [t<\"b\">, v<1>, v<true>]}"],
        ),
        ("toml", "[a]\nb-c = 'd' # e", &["[a]", "n<b-c> = t<'d'> c<# e>"]),
        (
            "html",
            "<a b=\"c\">d</a>",
            &["k<<a> T<b>=t<\"c\">k<>>dk<</a>k<>>"],
        ),
        ("diff", "-a\n+b\n c", &["-<-a>", "+<+b>", " c"]),
    ];
    for (language, code, expected) in cases {
        assert_eq!(tokens(code, language), expected, "{language}");
    }
}

proptest! {
    /// UI-2: for any code in any language, nothing is lost and nothing is added.
    #[test]
    fn code_stays_as_it_is(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "\"", "'", "`", "\"\"\"", "/*", "*/", "//", "#", "r#\"", "\"#", "\\", "<", ">", "<!--", "$", "${", "a", "Bé", "日", "1.5", " ", "\n", "if",
            ":", "=", "-", "!", "(", "--[[", "😀",
        ]), 0..30),
        language in prop::sample::select(vec!["rust", "ts", "py", "sh", "json", "yaml", "html", "diff", "lua", "sql", "php", "css"]),
    ) {
        let code = pieces.concat();
        let lines = highlight(&code, language, theme(Palette::Dark));
        let expected: String = code.lines().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(text(&lines), expected);
    }
}
