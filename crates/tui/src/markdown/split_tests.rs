use super::*;

fn blocks(source: &str) -> Vec<String> {
    let mut splitter = Splitter::default();
    let mut pieces = Vec::new();
    for line in source.lines() {
        splitter.line(line, &mut pieces);
    }
    splitter.finish(&mut pieces);
    let mut blocks: Vec<String> = Vec::new();
    for piece in pieces {
        match (piece, blocks.last_mut()) {
            (Piece::Block(text), _) => blocks.push(text.trim_end().to_owned()),
            (Piece::CodeBegins { info }, _) => blocks.push(format!("<{info}>")),
            (Piece::CodeLine(line), Some(code)) => *code += &format!("{line};"),
            (Piece::CodeEnds, Some(code)) => *code += "</>",
            (Piece::CodeLine(_) | Piece::CodeEnds, None) => panic!("no code is open"),
        }
    }
    blocks
}

/// UI-2: a text is split where a block ends and nowhere else.
#[test]
fn texts_are_cut_into_blocks() {
    let cases: [(&str, &[&str]); 19] = [
        ("a\nb\n\nc", &["a\nb", "c"]),
        ("# a\nb\n## c", &["# a", "b", "## c"]),
        ("a\n===\nb\n---\nc\n\n---", &["a\n===", "b\n---", "c", "---"]),
        ("a\n```x y\nb\n\nc\n```\nd", &["a", "<x y>b;;c;</>", "d"]),
        ("~~~~\n```\n~~~\n~~~~~\nx", &["<>```;~~~;</>", "x"]),
        ("``` a`b\nc", &["``` a`b\nc"]),
        ("  ```\n  a\n b\n   c\n", &["<>a;b; c;</>"]),
        ("- a\n\n  b\n- c\n\nd", &["- a\n\n  b\n- c", "d"]),
        ("- a\nlazy\n\n1. b\n# c", &["- a\nlazy\n\n1. b", "# c"]),
        ("a\n- b\n\n- c", &["a", "- b\n\n- c"]),
        ("a\n2. b\n1. c", &["a\n2. b", "1. c"]),
        ("1. a\n   ```\nb\n   ```", &["1. a\n   ```", "b", "<></>"]),
        (
            "- a\n\n  ```\n  b\n\n  # c\n  ```\n\n  d\ne",
            &["- a\n\n  ```\n  b\n\n  # c\n  ```\n\n  d\ne"],
        ),
        ("- ```\n  a\n\nb", &["- ```\n  a", "b"]),
        ("> a\nb\n\n> c\n- d", &["> a\nb", "> c", "- d"]),
        ("    a\n\n\n    b\nc", &["    a\n\n\n    b", "c"]),
        ("<!-- a\n\nb -->\nc", &["<!-- a\n\nb -->", "c"]),
        ("<pre>a</pre>\n<p>\nb\n\nc", &["<pre>a</pre>", "<p>\nb", "c"]),
        ("[^1]: a\n\n    b\n\nc", &["[^1]: a\n\n    b", "c"]),
    ];
    for (source, expected) in cases {
        assert_eq!(blocks(source), expected, "{source:?}");
    }
}

/// SAFE-7: control sequences are removed before a line is parsed.
#[test]
fn control_sequences_hide_nothing() {
    assert_eq!(
        blocks("\u{1b}[0m```\u{7}\na\u{1b}[1mb\r\n```\r\nc"),
        ["<>ab;</>", "c"]
    );
}
