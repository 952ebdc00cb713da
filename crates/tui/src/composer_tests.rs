use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::notation::{keys, screen, state, type_keys};
use super::*;
use crate::theme::Theme;

fn composer() -> Composer {
    Composer::new(Vec::new(), false)
}

fn with_history(texts: &[&str]) -> Composer {
    Composer::new(texts.iter().map(ToString::to_string).collect(), false)
}

fn image(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        media_type: "image/png".to_owned(),
        data: Arc::from(name.as_bytes()),
    }
}

fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "line {line}");
        text
    })
}

/// Types keys into an empty composer.
#[track_caller]
fn check(notation: &str, expected: &str) {
    let mut composer = composer();
    type_keys(&mut composer, notation);
    assert_eq!(state(&composer), expected, "{notation}");
}

/// UI-2: common shell keys edit the text.
#[test]
fn keys_edit_as_in_a_shell() {
    let cases = [
        ("hello", "hello|"),
        ("hello<Left><Left>X", "helX|lo"),
        ("hello<C-a>X<C-e>Y", "XhelloY|"),
        ("hello<Home>X<End>Y", "XhelloY|"),
        ("hello<C-b><C-b><C-f>X", "hellX|o"),
        ("one two-three<A-b>X", "one two-X|three"),
        ("one two three<C-Left><C-Left>X", "one X|two three"),
        ("one two<C-a><A-f>X", "oneX| two"),
        ("one two<C-a><C-Right><A-Right>X", "one twoX|"),
        ("one two-three<C-w>", "one |"),
        ("one two-three<A-BS>", "one two-|"),
        ("one two-three<C-BS>", "one two-|"),
        ("one two<C-a><A-d>", "| two"),
        ("one two<A-b><C-u>", "|two"),
        ("one two<A-b><C-k>", "one |"),
        ("a<C-j>b<C-u><C-u>", "a|"),
        ("a<C-j>b<Up><C-k>", "a|b"),
        ("one two<C-w>x<C-y>", "one xtwo|"),
        ("one two three<C-w><C-w>x<C-y>", "one xtwo three|"),
        ("one two<C-a><A-d><A-d>x<C-y>", "xone two|"),
        ("abc<C-a><C-d>", "|bc"),
        ("abc<C-a><Del>", "|bc"),
        ("abc<C-h><BS>", "a|"),
        ("abc<C-Home>x<C-End>y", "xabcy|"),
        ("a<S-Enter>b<A-Enter>c<C-j>d", "a\nb\nc\nd|"),
        ("a\\<Enter>b", "a\nb|"),
        ("ab<C-t>", "ba|"),
        ("abc<Left><C-t>", "acb|"),
        ("a<lt>b", "a<b|"),
        ("日本<BS>語", "日語|"),
        ("<C-A-@>", "@|"),
    ];
    for (notation, expected) in cases {
        check(notation, expected);
    }
}

/// UI-2: keys the composer does not use are left to the app.
#[test]
fn other_keys_are_left_to_the_app() {
    let untouched = [
        "<Enter>",
        "<Tab>",
        "<BackTab>",
        "<Esc>",
        "<C-c>",
        "<C-z>",
        "<C-d>",
        "<BS>",
        "<Up>",
        "<Down>",
        "<D-a>",
        "<C-Enter>",
    ];
    for notation in untouched {
        let mut composer = composer();
        assert_eq!(type_keys(&mut composer, notation), Did::Nothing, "{notation}");
        assert!(composer.is_empty());
    }
    let mut composer = composer();
    assert_eq!(type_keys(&mut composer, "ab"), Did::Changed);
    assert_eq!(type_keys(&mut composer, "<Enter>"), Did::Nothing);
    assert_eq!(type_keys(&mut composer, "<C-d>"), Did::Moved);
    assert_eq!(type_keys(&mut composer, "<Left>"), Did::Moved);
    let mut released = keys("x")[0];
    released.kind = KeyEventKind::Release;
    assert_eq!(composer.handle(released), Did::Nothing);
}

/// UI-2: undo goes back by words, and redo forward again.
#[test]
fn undo_goes_by_words() {
    let cases = [
        ("one two<C-_>", "one |"),
        ("one two<C-7><C-/>", "|"),
        ("one two<C-_><C-_><A-_>", "one |"),
        ("one two<C-_><C-_><A-_><A-_>", "one two|"),
        ("one<C-w><C-_>", "one|"),
        ("one<BS><BS><C-S-->", "one|"),
        ("one<C-_>x<A-_>", "x|"),
        ("abcd<Left><Left>xy<C-_>", "ab|cd"),
    ];
    for (notation, expected) in cases {
        check(notation, expected);
    }
}

/// UI-2: words cut one after another are pasted together, until another edit intervenes.
#[test]
fn kills_add_up() {
    let mut composer = composer();
    type_keys(&mut composer, "one two three<C-w>");
    composer.insert("");
    type_keys(&mut composer, "<C-w><C-y>");
    assert_eq!(state(&composer), "one two |");
    composer.search();
    composer.insert("x");
    assert!(!composer.is_searching());
    assert_eq!(state(&composer), "one two x|");
}

/// UI-2: rows are wrapped between words, and every position has one cursor cell.
#[test]
fn text_is_drawn_in_rows() {
    let cases: [(&str, usize, &[&str]); 11] = [
        ("", 20, &["› |say something"]),
        ("hi", 20, &["› hi|"]),
        ("one two three", 11, &["› one two ", "  three|"]),
        ("one two", 10, &["› one two|"]),
        ("one two ", 10, &["› one two", "  |"]),
        ("one two <Left>", 10, &["› one two|", "  "]),
        ("abcdefghij", 8, &["› abcde", "  fghij|"]),
        ("abcdefghij<Home>", 8, &["› |abcde", "  fghij"]),
        ("日本語の文", 9, &["› 日本語", "  の文|"]),
        ("a<C-j><C-j>b<Up>", 20, &["› a", "  |", "  b"]),
        ("👩‍👩‍👧e\u{301}x<Left>", 20, &["› 👩‍👩‍👧e\u{301}|x"]),
    ];
    for (notation, columns, expected) in cases {
        let mut composer = composer();
        composer.set_placeholder("say something");
        type_keys(&mut composer, notation);
        assert_eq!(screen(&mut composer, columns, 10), expected, "{notation}");
    }
    let ascii = Theme {
        ascii: true,
        ..Theme::default()
    };
    assert_eq!(composer().render(20, 1, ascii).lines[0].to_string(), "> ");
}

/// UI-2: a text longer than the composer scrolls with the cursor.
#[test]
fn long_texts_scroll() {
    let mut composer = composer();
    composer.insert("a\nb\nc\nd\ne");
    assert_eq!(screen(&mut composer, 20, 3), ["  c", "  d", "  e|"]);
    type_keys(&mut composer, "<Up><Up>");
    assert_eq!(screen(&mut composer, 20, 3), ["  c|", "  d", "  e"]);
    type_keys(&mut composer, "<Up>");
    assert_eq!(screen(&mut composer, 20, 3), ["  b|", "  c", "  d"]);
    type_keys(&mut composer, "<C-Home>");
    assert_eq!(screen(&mut composer, 20, 3), ["› |a", "  b", "  c"]);
    assert_eq!(screen(&mut composer, 20, 9).len(), 5);
}

/// UI-2: vertical movements keep the column across shorter rows.
#[test]
fn rows_keep_the_column() {
    let cases = [
        ("abcd<C-j>x<C-j>abcd<Left><Up><Up>", "abc|d\nx\nabcd"),
        ("abcd<C-j>x<C-j>abcd<Up><Left><Down>", "abcd\nx\n|abcd"),
        ("abcdefghij<Up>", "abcd|efghij"),
        ("abcdefghij<Up><Down>", "abcdefghij|"),
    ];
    for (notation, expected) in cases {
        let mut composer = composer();
        composer.render(8, 5, Theme::default());
        type_keys(&mut composer, notation);
        assert_eq!(state(&composer).replace('|', "").len(), composer.text().len());
        assert_eq!(state(&composer), expected, "{notation}");
    }
}

/// UI-2: at the first and the last row, the arrows step through the history, and the draft is restored.
#[test]
fn arrows_walk_through_the_history() {
    let cases = [
        ("<Up>", "two\nlines|"),
        ("<Up><Up>", "one|"),
        ("<Up><Up><Up>", "one|"),
        ("draft<Up><Up><Down>", "two\nlines|"),
        ("draft<Up><Up><Down><Down>", "draft|"),
        ("draft<Up><Home><Up>", "|two\nlines"),
        ("draft<Up><Home><Up><Up>", "one|"),
        ("draft<Up><C-_>", "draft|"),
        ("a<C-j>b<Up><Up>", "two\nlines|"),
        ("draft<Down>", "draft|"),
    ];
    for (notation, expected) in cases {
        let mut composer = with_history(&["one", "two\nlines", "two\nlines", " "]);
        type_keys(&mut composer, notation);
        assert_eq!(state(&composer), expected, "{notation}");
    }
    let mut long = Composer::new((0..1_500).map(|number| number.to_string()).collect(), false);
    for _ in 0..1_500 {
        type_keys(&mut long, "<Up>");
    }
    assert_eq!(long.text(), "500");
}

/// UI-2: sent and cleared texts can be recalled.
#[test]
fn what_was_written_is_remembered() {
    let mut composer = composer();
    type_keys(&mut composer, "sent");
    let draft = composer.take();
    assert_eq!((draft.text.as_str(), draft.shown.as_str()), ("sent", "sent"));
    assert!(composer.is_empty() && !composer.clear());
    type_keys(&mut composer, "<C-_>");
    assert_eq!(state(&composer), "|");
    type_keys(&mut composer, "cleared");
    composer.paste(&lines(5));
    assert!(composer.clear() && composer.is_empty());
    type_keys(&mut composer, "<Up>");
    assert_eq!(state(&composer), "cleared[pasted 5 lines]|");
    assert!(composer.clear());
    type_keys(&mut composer, "<Up><Up>");
    assert_eq!(state(&composer), "sent|");
    type_keys(&mut composer, "<Down>!");
    assert_eq!(composer.take().text, format!("cleared{}!", lines(5)));
}

/// UI-2: short pastes are text, long ones are one unit that is sent in full.
#[test]
fn long_pastes_are_chips() {
    let mut composer = composer();
    composer.paste("a\r\nb\rc\u{1b}[31m\u{7}");
    assert_eq!(state(&composer), "a\nb\nc|");
    composer.clear();
    composer.paste(&lines(42));
    type_keys(&mut composer, " and ");
    composer.paste(&"x".repeat(1_234));
    assert_eq!(
        state(&composer),
        "[pasted 42 lines] and [pasted 1,234 characters #2]|"
    );
    assert_eq!(
        screen(&mut composer, 30, 5),
        ["› [pasted 42 lines] and ", "  [pasted 1,234 characters #…|"]
    );
    type_keys(&mut composer, "<Left><Left>");
    assert_eq!(
        state(&composer),
        "[pasted 42 lines] and| [pasted 1,234 characters #2]"
    );
    type_keys(&mut composer, "<End><BS>");
    assert_eq!(state(&composer), "[pasted 42 lines] and |");
    type_keys(&mut composer, "<C-_>");
    let draft = composer.take();
    assert_eq!(draft.text, format!("{} and {}", lines(42), "x".repeat(1_234)));
    assert_eq!(draft.shown, "[pasted 42 lines] and [pasted 1,234 characters #2]");
    assert_eq!(draft.remembered, draft.text);
    composer.paste(&lines(5_000));
    assert_eq!(composer.take().remembered, "[pasted 5,000 lines]");
    type_keys(&mut composer, "<Up>");
    assert_eq!(composer.text(), "[pasted 5,000 lines]");
}

/// UI-2: the text of a chip can be expanded and edited.
#[test]
fn chips_can_be_opened() {
    let mut composer = composer();
    assert!(!composer.open_chip());
    composer.paste(&lines(4));
    assert!(composer.open_chip());
    type_keys(&mut composer, "!");
    assert_eq!(composer.text(), format!("{}!", lines(4)));
    assert!(!composer.open_chip());
    type_keys(&mut composer, "<C-_><C-_><Left>");
    assert_eq!(state(&composer), "|[pasted 4 lines]");
    assert!(composer.open_chip());
    composer.clear();
    composer.attach(image("a.png"));
    assert!(!composer.open_chip());
}

/// UI-2: images have a numbered label in the text, and are sent with it.
#[test]
fn images_go_along() {
    let mut composer = composer();
    composer.attach(image("a.png"));
    type_keys(&mut composer, " or ");
    composer.attach(image("b\u{1b}[2J.png"));
    assert_eq!(state(&composer), "[image 1: a.png] or [image 2: b.png]|");
    type_keys(&mut composer, "<C-w><Home><C-y> ");
    let draft = composer.take();
    assert_eq!(draft.text, "[image 2: b.png] [image 1: a.png] or ");
    let names: Vec<_> = draft.images.iter().map(|image| image.data.as_ref()).collect();
    assert_eq!(names, [&b"a.png"[..], b"b\x1b[2J.png"]);
    composer.attach(image("c.png"));
    assert_eq!(composer.shown(), "[image 1: c.png]");
}

/// UI-2: a text from an external editor has its chips restored, and chips cannot be typed by hand.
#[test]
fn chips_survive_another_editor() {
    let mut composer = composer();
    composer.paste(&lines(9));
    type_keys(&mut composer, "see above");
    let edited = composer.shown().replace("above", "what is above");
    composer.set(&edited);
    assert_eq!(composer.take().text, format!("{}see what is above", lines(9)));
    composer.set("[pasted 9 lines]\u{10e000}");
    composer.insert("\u{10e000}");
    composer.paste("\u{10e000}");
    type_keys(&mut composer, "\u{10e000}");
    assert_eq!(composer.take().text, "[pasted 9 lines]");
}

/// UI-2: a command at the start of the text and a file at the start of a word offer completions.
#[test]
fn words_ask_for_completions() {
    let command = |text: &str| Some(CompletionQuery::Command(text.to_owned()));
    let file = |text: &str| Some(CompletionQuery::File(text.to_owned()));
    let cases = [
        ("/", command("/")),
        ("/mod", command("/mod")),
        ("/model gp", command("/model gp")),
        ("/mod<Left>", command("/mo")),
        ("/mod<Home>", None),
        (" /mod", None),
        ("/a<C-j>b", None),
        ("x /mod", None),
        ("@", file("")),
        ("see @src/li", file("src/li")),
        ("(@src", file("src")),
        ("me@example", None),
        ("@src done", None),
        ("@\"my fi", file("my fi")),
        ("@\"my file\" x", None),
        ("/review @sr", file("sr")),
    ];
    for (notation, expected) in cases {
        let mut composer = composer();
        type_keys(&mut composer, notation);
        assert_eq!(composer.completion_query(), expected, "{notation}");
    }
}

/// UI-2: a completion replaces the word at the cursor.
#[test]
fn completions_replace_the_word() {
    let cases = [
        ("/mo", "/model ", "/model |"),
        ("/mo<Left>", "/model ", "/model |"),
        ("see @li x<Left><Left><Left>", "src/lib.rs", "see @src/lib.rs |x"),
        ("see @li x<Left><Left>", "a b.rs", "see @\"a b.rs\" |x"),
        ("@\"my", "my file", "@\"my file\" |"),
        ("@sr", "src/", "@src/|"),
        ("@sr", "my src/", "@\"my src/|"),
        ("nothing", "src/", "nothing|"),
    ];
    for (notation, with, expected) in cases {
        let mut composer = composer();
        type_keys(&mut composer, notation);
        composer.complete(with);
        assert_eq!(state(&composer), expected, "{notation}");
    }
}

/// UI-2: the history is searched from the newest, and the draft stays until a match is accepted.
#[test]
fn the_history_is_searched() {
    let cases = [
        ("<C-r>car", &["› cargo test again", "  search: car|"][..], None),
        ("<C-r>car<C-r>", &["› cargo build", "  search: car|"], None),
        (
            "<C-r>car<C-r><C-r><Down>",
            &["› cargo test again", "  search: car|"],
            None,
        ),
        ("<C-r>Car", &["› draft", "  not found: Car|"], None),
        ("<C-r>", &["› draft", "  search: |"], None),
        (
            "<C-r>carx<BS><Enter>",
            &["› cargo test again|"],
            Some("cargo test again|"),
        ),
        ("<C-r>b<Tab>", &["› cargo build|"], Some("cargo build|")),
        ("<C-r>b<Right>", &["› cargo build|"], Some("cargo build|")),
        ("<C-r>b<Left>", &["› cargo buil|d"], Some("cargo buil|d")),
        ("<C-r>b<Esc>", &["› draft|"], Some("draft|")),
        ("<C-r>zzz<Enter>", &["› draft|"], Some("draft|")),
        ("<C-r>b<Enter><C-_>", &["› draft|"], Some("draft|")),
    ];
    for (notation, expected, after) in cases {
        let mut composer = with_history(&["cargo build", "cargo test again", "ls", "cargo test again"]);
        type_keys(&mut composer, "draft");
        type_keys(&mut composer, notation);
        assert_eq!(screen(&mut composer, 30, 5), expected, "{notation}");
        assert_eq!(composer.is_searching(), after.is_none(), "{notation}");
        let after = after.unwrap_or("draft|");
        assert_eq!(state(&composer), after, "{notation}");
    }
    let mut composer = with_history(&["old"]);
    composer.search();
    assert!(composer.clear() && !composer.is_searching() && !composer.clear());
}

/// UI-2: the time per key is linear in the length of the text.
#[test]
fn long_texts_stay_usable() {
    let mut composer = composer();
    composer.insert(&"a few words of text, and some more 日本\n".repeat(5_000));
    for _ in 0..20 {
        type_keys(&mut composer, "x<Up><C-w><C-_>");
        composer.render(80, 10, Theme::default());
    }
    assert!(composer.text().len() > 200_000);
}

/// An input to a composer.
#[derive(Debug, Clone)]
enum Event {
    KeyBindings(&'static str),
    Letter(char),
    Paste(String),
    Render(usize, usize),
    Attach,
    Open,
    Complete,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let named = vec![
        "<Up>", "<Down>", "<Left>", "<Right>", "<Home>", "<End>", "<BS>", "<Del>", "<C-w>", "<C-u>", "<C-k>",
        "<C-y>", "<C-t>", "<A-b>", "<A-f>", "<A-d>", "<A-BS>", "<C-j>", "<C-_>", "<A-_>", "<C-r>", "<Enter>",
        "<Esc>", "<Tab>", "dw", "cw", "dd", "p", "P", "yy", "2x", "ciw", "da(", "f(", ";", "J", "~", ".",
        "u", "o", "gg", "G", "e", "b", "rx", "yi\"", "d3w", "v", "S",
    ];
    let letters = prop::sample::select(vec![
        'a',
        'b',
        ' ',
        '\t',
        '(',
        ')',
        '"',
        '@',
        '/',
        '-',
        '日',
        '\u{301}',
        '\u{200d}',
        '👩',
        '🇩',
        '🇪',
        '\u{600}',
        'é',
        '\u{ad}',
        '\u{10e001}',
        'ᄀ',
        'ᅡ',
    ]);
    let event = prop_oneof![
        6 => prop::sample::select(named).prop_map(Event::KeyBindings),
        8 => letters.prop_map(Event::Letter),
        1 => "[a-c\n日🇩\u{301}]{0,12}".prop_map(Event::Paste),
        1 => "(x\n\u{301}){4,6}".prop_map(Event::Paste),
        2 => (1..24_usize, 1..6_usize).prop_map(|(columns, rows)| Event::Render(columns, rows)),
        1 => prop::sample::select(vec![Event::Attach, Event::Open, Event::Complete]),
    ];
    proptest::collection::vec(event, 1..60)
}

fn happen(composer: &mut Composer, event: &Event) {
    match event {
        Event::KeyBindings(keys) => drop(type_keys(composer, keys)),
        Event::Letter(letter) => drop(type_keys(composer, letter.encode_utf8(&mut [0; 4]))),
        Event::Paste(text) => composer.paste(text),
        Event::Render(columns, rows) => drop(composer.render(*columns, *rows, Theme::default())),
        Event::Attach => composer.attach(image("a name.png")),
        Event::Open => drop(composer.open_chip()),
        Event::Complete => composer.complete("some path"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// UI-2: after any input, the cursor is at a grapheme boundary, and the rendering fits, with the cursor
    /// in it.
    #[test]
    fn every_state_can_be_drawn(events in events(), vim in any::<bool>(), columns in 1..30_usize, rows in 1..6_usize) {
        let mut composer = Composer::new(vec!["one (two) \"three\"".to_owned(), "日本\n語".to_owned()], vim);
        for event in &events {
            happen(&mut composer, event);
            let text = composer.text();
            let mut ends = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]);
            prop_assert!(ends.any(|at| at == composer.cursor()), "{:?} {}", text, composer.cursor());
            let drawn = composer.render(columns, rows, Theme::default());
            prop_assert!((1..=rows).contains(&drawn.lines.len()));
            for line in &drawn.lines {
                prop_assert!(text::width(&line.to_string()) <= columns, "{:?}", line);
            }
            prop_assert!(drawn.cursor.0 < columns && drawn.cursor.1 < drawn.lines.len(), "{:?}", drawn);
            composer.completion_query();
        }
        let draft = composer.take();
        prop_assert!(!draft.text.contains(chips::is_mark) && !draft.shown.contains(chips::is_mark));
    }

    /// UI-2: every edit can be undone.
    #[test]
    fn everything_can_be_undone(events in events(), vim in any::<bool>()) {
        let mut composer = Composer::new(vec!["earlier".to_owned()], vim);
        composer.insert("the start");
        composer.set("the start (of it)");
        for event in &events {
            happen(&mut composer, event);
        }
        composer.insert("the end");
        let end = composer.text().to_owned();
        (0..1_000).for_each(|_| composer.buffer.undo());
        prop_assert_eq!(composer.text(), "");
        (0..1_000).for_each(|_| composer.buffer.redo());
        prop_assert_eq!(composer.text(), end);
    }
}
