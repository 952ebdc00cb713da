use std::num::NonZeroU16;

use proptest::collection::vec;
use proptest::prelude::*;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use vt100::Parser;

use super::*;

/// A terminal with a long scrollback.
struct Terminal(Parser);

impl Terminal {
    fn new(columns: u16, rows: u16) -> Self {
        Self(Parser::new(size(rows), size(columns), 10_000))
    }

    fn show(&mut self, frame: &[u8]) {
        self.0.process(frame);
    }

    /// Returns everything printed, without blank rows at the end.
    fn everything(&self) -> Vec<String> {
        let mut screen = self.0.screen().clone();
        let columns = screen.size().1.get();
        let mut rows = Vec::new();
        for offset in (1..=screen.scrollback_len()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Returns all visible rows.
    fn visible(&self) -> Vec<String> {
        let screen = self.0.screen();
        screen.rows(0, screen.size().1.get()).collect()
    }

    /// Returns the styles of a visible row, without trailing blanks.
    fn looks(&self, row: u16) -> Vec<String> {
        let screen = self.0.screen();
        let mut looks: Vec<String> = (0..screen.size().1.get())
            .filter_map(|column| screen.cell(row, column))
            .filter(|cell| !cell.is_wide_continuation())
            .map(|cell| {
                let flags = [
                    cell.bold(),
                    cell.dim(),
                    cell.italic(),
                    cell.underline(),
                    cell.inverse(),
                ];
                let text = if cell.has_contents() { cell.contents() } else { " " };
                format!("{text} {:?} {:?} {flags:?}", cell.fgcolor(), cell.bgcolor())
            })
            .collect();
        let blank = format!(
            "  {:?} {:?} {:?}",
            vt100::Color::Default,
            vt100::Color::Default,
            [false; 5]
        );
        while looks.last() == Some(&blank) {
            looks.pop();
        }
        looks
    }
}

/// Nothing to draw again.
fn none(_: usize) -> Vec<Line<'static>> {
    Vec::new()
}

fn size(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).unwrap()
}

fn picture(rows: &[&str], cursor: Option<(u16, u16)>) -> Picture {
    Picture {
        rows: rows.iter().map(|row| Line::raw((*row).to_owned())).collect(),
        cursor,
    }
}

/// Returns a row as the terminal reports it.
fn text(line: &Line<'_>, columns: u16) -> String {
    cells(line, usize::from(columns))
        .iter()
        .map(|cell| cell.text.as_ref())
        .collect::<String>()
        .trim_end()
        .to_owned()
}

fn trimmed(rows: Vec<String>) -> Vec<String> {
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

/// Expected result of [`Terminal::looks`], from the styles of a row.
fn looks_of(line: &Line<'static>, columns: u16) -> Vec<String> {
    let mut looks = Vec::new();
    let mut left = usize::from(columns);
    for grapheme in line.styled_graphemes(Style::new()) {
        match left.checked_sub(crate::text::width(grapheme.symbol)) {
            Some(rest) => left = rest,
            None => break,
        }
        let style = grapheme.style;
        let has = |modifier| style.add_modifier.contains(modifier);
        let flags = [
            has(Modifier::BOLD),
            has(Modifier::DIM),
            has(Modifier::ITALIC),
            has(Modifier::UNDERLINED),
            has(Modifier::REVERSED),
        ];
        let (fg, bg) = (colour(style.fg), colour(style.bg));
        let is_blank = grapheme.symbol == " " && bg == vt100::Color::Default && !flags[3] && !flags[4];
        looks.push((format!("{} {fg:?} {bg:?} {flags:?}", grapheme.symbol), is_blank));
    }
    while looks.last().is_some_and(|(_, is_blank)| *is_blank) {
        looks.pop();
    }
    looks.into_iter().map(|(look, _)| look).collect()
}

fn colour(colour: Option<Color>) -> vt100::Color {
    match colour {
        Some(Color::Red) => vt100::Color::Idx(1),
        Some(Color::LightCyan) => vt100::Color::Idx(14),
        Some(Color::Indexed(index)) => vt100::Color::Idx(index),
        Some(Color::Rgb(red, green, blue)) => vt100::Color::Rgb(red, green, blue),
        _ => vt100::Color::Default,
    }
}

fn a_style() -> impl Strategy<Value = Style> {
    let colour = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Color::Red)),
        1 => Just(Some(Color::LightCyan)),
        1 => Just(Some(Color::Indexed(99))),
        1 => Just(Some(Color::Rgb(1, 2, 3))),
    ];
    // This terminal merges bold and dim.
    let modifier = prop_oneof![
        4 => Just(Modifier::empty()),
        1 => Just(Modifier::BOLD),
        1 => Just(Modifier::DIM | Modifier::ITALIC),
        1 => Just(Modifier::UNDERLINED),
        1 => Just(Modifier::REVERSED | Modifier::BOLD),
    ];
    (colour.clone(), colour, modifier).prop_map(|(fg, bg, modifier)| {
        let style = Style {
            fg,
            bg,
            ..Style::new()
        };
        style.add_modifier(modifier)
    })
}

fn a_line() -> impl Strategy<Value = Line<'static>> {
    let letter = prop_oneof![
        6 => "[a-c]",
        2 => Just(" ".to_owned()),
        2 => Just("語".to_owned()),
        1 => Just("e\u{301}".to_owned()),
        1 => Just("😀".to_owned()),
    ];
    let span = (vec(letter, 0..9), a_style()).prop_map(|(text, style)| Span::styled(text.concat(), style));
    vec(span, 0..4).prop_map(Line::from)
}

fn a_picture() -> impl Strategy<Value = Picture> {
    let cursor = proptest::option::of((0_u16..24, 0_u16..9));
    (vec(a_line(), 0..8), cursor).prop_map(|(rows, cursor)| Picture { rows, cursor })
}

/// Asserts that the live area and the cursor are in place, with the area's first row at `first`.
fn assert_shown(terminal: &Terminal, view: &View<'_>, first: usize, columns: u16) {
    let screen = terminal.0.screen();
    for (index, line) in view.rows.iter().enumerate() {
        let row = u16::try_from(first + index).unwrap();
        assert_eq!(terminal.looks(row), looks_of(line, columns), "row {index}");
    }
    assert_eq!(screen.hide_cursor(), view.cursor.is_none());
    if let Some((column, row)) = view.cursor {
        let (at_row, at_column) = screen.cursor_position();
        assert_eq!(
            (usize::from(at_column), usize::from(at_row)),
            (column, first + row)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// UI-2: after any sequence of frames the terminal shows the last picture, and its scrollback has every
    /// printed line once and in order, with no remains of the live area.
    #[test]
    fn frames_add_up_inline(
        columns in 1_u16..24,
        rows in 1_u16..7,
        frames in vec((vec(a_line(), 0..4), a_picture()), 1..9),
    ) {
        let mut terminal = Terminal::new(columns, rows);
        let mut painter = Painter::new((columns, rows), false);
        let mut printed: Vec<String> = Vec::new();
        for (above, live) in &frames {
            terminal.show(&painter.inline(above, live, none));
            printed.extend(above.iter().map(|line| text(line, columns)));
            let view = painter.view(live);
            let mut expected = printed.clone();
            expected.extend(view.rows.iter().map(|line| text(line, columns)));
            let mut everything = trimmed(terminal.everything());
            everything.resize(expected.len().max(everything.len()), String::new());
            prop_assert_eq!(&everything, &expected);
            let scrolled = terminal.0.screen().scrollback_len();
            assert_shown(&terminal, &view, printed.len() - scrolled, columns);
            prop_assert!(painter.inline(&[], live, none).is_empty());
        }
        terminal.show(&painter.erase());
        let mut everything = trimmed(terminal.everything());
        everything.resize(printed.len().max(everything.len()), String::new());
        prop_assert_eq!(everything, printed);
        prop_assert!(!terminal.0.screen().hide_cursor());
    }

    /// UI-2: the same in full screen, across size changes.
    #[test]
    fn frames_add_up_on_the_whole_screen(
        frames in vec((a_picture(), 1_u16..24, 1_u16..7, 0_u8..4), 1..9),
    ) {
        let mut terminal = Terminal::new(20, 5);
        let mut painter = Painter::new((20, 5), false);
        let mut columns = 20;
        terminal.show(&painter.enter_full());
        for (screen, new_columns, rows, change) in &frames {
            if *change == 0 {
                columns = *new_columns;
                terminal.0.set_size(size(*rows), size(columns));
                painter.resize((columns, *rows));
            }
            terminal.show(&painter.full(screen));
            let view = painter.view(screen);
            assert_shown(&terminal, &view, 0, columns);
            let below = terminal.visible().split_off(view.rows.len());
            prop_assert!(below.iter().all(String::is_empty));
            prop_assert!(painter.full(screen).is_empty());
        }
    }

    /// UI-2: a size change loses nothing that was printed, and the live area is intact afterwards.
    #[test]
    fn a_change_of_size_is_repaired(
        frames in vec((0_usize..3, a_picture(), 8_u16..24, 1_u16..7), 1..9),
    ) {
        let mut terminal = Terminal::new(20, 5);
        let mut painter = Painter::new((20, 5), false);
        let mut printed = Vec::new();
        for (above, live, columns, rows) in &frames {
            terminal.0.set_size(size(*rows), size(*columns));
            painter.resize((*columns, *rows));
            let labels: Vec<String> = (0..*above).map(|index| format!("#{}", printed.len() + index)).collect();
            let lines: Vec<Line<'static>> = labels.iter().cloned().map(Line::raw).collect();
            printed.extend(labels);
            terminal.show(&painter.inline(&lines, live, none));
            let everything = terminal.everything();
            let found: Vec<&String> = everything.iter().filter(|row| row.starts_with('#')).collect();
            prop_assert_eq!(found, printed.iter().collect::<Vec<_>>());
            let view = painter.view(live);
            if let Some((_, row)) = view.cursor {
                let first = usize::from(terminal.0.screen().cursor_position().0) - row;
                assert_shown(&terminal, &view, first, *columns);
            }
        }
    }
}

/// UI-2: one more letter is a few dozen bytes, the same picture none, and a cursor movement hardly any.
#[test]
fn a_small_change_is_a_small_frame() {
    let mut painter = Painter::new((100, 30), true);
    let rows: Vec<String> = (0..10)
        .map(|row| format!("row {row} {}", "x".repeat(80)))
        .collect();
    let mut live = Picture {
        rows: rows.into_iter().map(Line::raw).collect(),
        cursor: Some((3, 9)),
    };
    assert!(painter.inline(&[], &live, none).len() > 800);
    assert_eq!(painter.inline(&[], &live, none).len(), 0);

    live.rows[4].spans[0].content.to_mut().push('y');
    let frame = painter.inline(&[], &live, none);
    assert!(frame.len() <= 48, "{}", String::from_utf8_lossy(&frame));

    live.rows[4] = Line::raw(live.rows[4].to_string().replace("row 4", "row 5"));
    let frame = painter.inline(&[], &live, none);
    assert!(frame.len() <= 48, "{}", String::from_utf8_lossy(&frame));

    live.cursor = Some((4, 9));
    let frame = painter.inline(&[], &live, none);
    assert!(frame.len() <= 24, "{}", String::from_utf8_lossy(&frame));
}

/// SAFE-7: no control character in a text reaches the terminal, whichever way it is drawn.
#[test]
fn control_characters_are_not_drawn() {
    let foul = "a\u{1b}[2Jb\u{7}\u{8}\r\n\tc\u{9b}31md\u{202e}e";
    let clean = "a[2Jbc31mde";
    let lines = [Line::raw(foul)];
    let live = Picture {
        rows: vec![Line::raw(foul)],
        cursor: None,
    };
    let mut painter = Painter::new((40, 5), false);
    for frame in [painter.inline(&lines, &live, none), painter.full(&live)] {
        let frame = String::from_utf8(frame).unwrap();
        assert!(frame.contains(clean), "{frame:?}");
        assert!(
            !frame.contains(['\u{7}', '\u{8}', '\t', '\u{9b}', '\u{202e}']),
            "{frame:?}"
        );
        assert!(!frame.contains("\u{1b}[2J"), "{frame:?}");
    }
    let mut terminal = Terminal::new(40, 5);
    terminal.show(&Painter::new((40, 5), false).inline(&lines, &live, none));
    assert_eq!(terminal.everything(), [clean, clean]);
}

/// UI-2: text after a grapheme of uncertain width stays in place, and nothing wraps.
#[test]
fn letters_of_uncertain_width_do_not_shift_a_row() {
    for emoji in [
        "👩\u{200d}👩\u{200d}👧",
        "❤\u{fe0f}",
        "👍🏽",
        "🇩🇪",
        "1\u{fe0f}\u{20e3}",
    ] {
        let mut terminal = Terminal::new(30, 4);
        let mut painter = Painter::new((30, 4), false);
        let row = format!("ab{emoji}the end");
        terminal.show(&painter.inline(&[], &picture(&["0123456789", &row], None), none));
        terminal.show(&painter.inline(&[], &picture(&[&row, &row], None), none));
        for index in 0..2 {
            let shown: String = terminal.0.screen().rows(4, 26).nth(index).unwrap();
            assert_eq!(shown, "the end", "{emoji} in row {index}");
        }
    }
    let mut painter = Painter::new((4, 4), false);
    let frame = painter.inline(&[], &picture(&["ab👩\u{200d}👩\u{200d}👧"], None), none);
    let frame = String::from_utf8(frame).unwrap();
    assert!(
        frame.contains("\u{1b}[?7l👩") && frame.contains("👧\u{1b}[?7h"),
        "{frame:?}"
    );
    assert!(!frame.contains("👧\u{1b}[?7h\u{1b}[K"), "{frame:?}");
}

/// UI-2: after a terminal rewrapped the shown rows, the live area is redrawn from its new start.
#[test]
fn a_reflow_is_found_again() {
    // Rows, cursor, new width, rows to go up.
    let three = ["aaaaaaaaaa", "bbbbbbbbbb", "cc"];
    let cases = [
        (three, (2, 2), 20, 2),
        (three, (2, 2), 5, 4),
        (three, (2, 2), 4, 6),
        (three, (9, 1), 4, 5),
        (["日本語日本語", "x", "y"], (0, 1), 3, 6),
        (["", "", "x"], (0, 2), 1, 2),
    ];
    for (rows, cursor, columns, expected) in cases {
        for reflows in [true, false] {
            let mut painter = Painter::new((30, 9), reflows);
            let live = picture(&rows, Some(cursor));
            painter.inline(&[], &live, none);
            painter.resize((columns, 9));
            let frame = String::from_utf8(painter.inline(&[], &live, none)).unwrap();
            let up = if reflows { expected } else { usize::from(cursor.1) };
            let begin = format!("{BEGIN}{HIDE_CURSOR}\u{1b}[{up}A\r\u{1b}[m\u{1b}[J").replace("[1A", "[A");
            assert!(frame.starts_with(&begin), "{rows:?} at {columns}: {frame:?}");
        }
    }
}

/// UI-2: a picture taller than the terminal shows its end, or its cursor if that is further up.
#[test]
fn a_tall_picture_keeps_its_cursor_visible() {
    let rows = ["0", "1", "2", "3", "4", "5"];
    let cases = [
        (None, ["3", "4", "5"]),
        (Some((0, 5)), ["3", "4", "5"]),
        (Some((0, 4)), ["3", "4", "5"]),
        (Some((0, 1)), ["1", "2", "3"]),
        (Some((0, 99)), ["3", "4", "5"]),
    ];
    for (cursor, expected) in cases {
        let mut terminal = Terminal::new(5, 3);
        terminal.show(&Painter::new((5, 3), false).inline(&[], &picture(&rows, cursor), none));
        assert_eq!(terminal.everything(), expected, "{cursor:?}");
    }
}

/// UI-2: after other programs wrote to the terminal, everything is redrawn below their output.
#[test]
fn what_is_forgotten_is_drawn_again() {
    let mut terminal = Terminal::new(20, 8);
    let mut painter = Painter::new((20, 8), false);
    let live = picture(&["one", "two", "three"], Some((1, 1)));
    terminal.show(&painter.inline(&[Line::raw("said")], &live, none));

    painter.forget();
    terminal.show(&painter.inline(&[], &live, none));
    assert_eq!(terminal.everything(), ["said", "one", "two", "three"]);

    terminal.show(&painter.erase());
    terminal.show(b"$ fg\r\n\x1b[?25l");
    painter.forget();
    terminal.show(&painter.inline(&[], &live, none));
    assert_eq!(terminal.everything(), ["said", "$ fg", "one", "two", "three"]);
    assert!(!terminal.0.screen().hide_cursor());
}

/// UI-2: after full screen, the inline content is back.
#[test]
fn the_whole_screen_comes_and_goes() {
    let mut terminal = Terminal::new(20, 4);
    let mut painter = Painter::new((20, 4), false);
    let live = picture(&["one", "two"], Some((1, 1)));
    terminal.show(&painter.inline(&[Line::raw("said")], &live, none));
    terminal.show(&painter.enter_full());
    terminal.show(&painter.full(&picture(&["a", "b", "c", "d"], None)));
    assert!(terminal.0.screen().alternate_screen());
    assert_eq!(terminal.visible(), ["a", "b", "c", "d"]);
    terminal.show(&painter.leave_full());
    terminal.show(&painter.inline(&[Line::raw("more")], &live, none));
    assert!(!terminal.0.screen().alternate_screen());
    assert_eq!(terminal.everything(), ["said", "more", "one", "two"]);
}

/// UI-2: no background leaks into rows that scroll in or are cleared, and a full row keeps its last
/// character, even on stricter terminals than the one above.
#[test]
fn a_full_row_with_a_background_stays_by_itself() {
    let full = Line::styled("abcde", Style::new().bg(Color::Blue));
    let mut painter = Painter::new((5, 3), false);
    let one = Picture {
        rows: vec![full.clone(), Line::raw("x"), Line::raw("y")],
        cursor: None,
    };
    painter.inline(&[], &one, none);
    let two = Picture {
        rows: vec![full.clone(), Line::raw("z")],
        cursor: None,
    };
    let frame = String::from_utf8(painter.inline(&[full.clone(), full], &two, none)).unwrap();
    let blue = "\u{1b}[44mabcde\u{1b}[m\r\n";
    assert!(
        frame.contains(&format!("{}z\r{END}", blue.repeat(3))),
        "{frame:?}"
    );
    assert!(!frame.contains("\u{1b}[K"), "{frame:?}");
}

/// UI-2: when a tall live area shrinks, the conversation fills the screen again, and no line is in the scrollback
/// twice, whatever comes afterwards.
#[test]
fn the_live_area_stays_at_the_bottom() {
    let mut terminal = Terminal::new(20, 12);
    let mut painter = Painter::new((20, 12), true);
    let mut said: Vec<Line<'static>> = Vec::new();
    let show = |terminal: &mut Terminal,
                painter: &mut Painter,
                said: &mut Vec<Line<'static>>,
                more: usize,
                live: usize| {
        let first = said.len();
        let above: Vec<_> = (first..first + more)
            .map(|number| Line::raw(format!("line {number}")))
            .collect();
        said.extend(above.iter().cloned());
        let rows: Vec<_> = (0..live).map(|row| Line::raw(format!("live {row}"))).collect();
        let live = Picture {
            rows,
            cursor: Some((0, 0)),
        };
        let past = |count: usize| said.split_at(said.len().saturating_sub(count)).1.to_vec();
        let bytes = painter.inline(&above, &live, past);
        terminal.show(&bytes);
    };
    let lines = |from: usize, to: usize| -> Vec<String> {
        (from..to).map(|number| format!("line {number}")).collect()
    };
    show(&mut terminal, &mut painter, &mut said, 20, 2);
    show(&mut terminal, &mut painter, &mut said, 0, 9);
    assert_eq!(terminal.visible()[..3], lines(17, 20));
    show(&mut terminal, &mut painter, &mut said, 0, 2);
    let visible = terminal.visible();
    assert_eq!(visible[..10], lines(10, 20), "{visible:?}");
    assert_eq!(visible[10..], ["live 0", "live 1"]);
    for (more, live) in [(2, 2), (1, 4), (0, 11), (3, 2), (9, 2), (30, 1)] {
        show(&mut terminal, &mut painter, &mut said, more, live);
        let visible = terminal.visible();
        assert_eq!(
            visible.last().unwrap(),
            &format!("live {}", live - 1),
            "{visible:?}"
        );
        assert_eq!(
            visible[..12 - live],
            lines(said.len() + live - 12, said.len()),
            "{visible:?}"
        );
    }
    show(&mut terminal, &mut painter, &mut said, 0, 10);
    show(&mut terminal, &mut painter, &mut said, 0, 1);
    terminal.show(&painter.erase());
    let all: Vec<_> = terminal
        .everything()
        .into_iter()
        .filter(|row| !row.is_empty())
        .collect();
    assert_eq!(all, lines(0, said.len()));
}
