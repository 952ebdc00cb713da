//! Draws a terminal's screen as a picture.

use std::fmt::Write;

use windlass_testkit::vt100::{Cell, Color, Screen};

/// Width of a column: that of a letter in most monospaced fonts, at [`FONT`].
const COLUMN: f64 = 8.43;
const ROW: f64 = 19.0;
const FONT: f64 = 14.0;
/// Margin around the text; the window's bar is above it.
const MARGIN: f64 = 18.0;
const BAR: f64 = 34.0;

type Rgb = (u8, u8, u8);

const BACKGROUND: Rgb = (0x12, 0x16, 0x1c);
const FOREGROUND: Rgb = (0xd5, 0xdb, 0xe3);
const CURSOR: Rgb = (0x5c, 0x66, 0x73);
const BORDER: Rgb = (0x2b, 0x32, 0x3c);
/// The sixteen named colours of a terminal.
const NAMED: [Rgb; 16] = [
    (0x1d, 0x23, 0x2b),
    (0xf0, 0x71, 0x78),
    (0x9e, 0xce, 0x6a),
    (0xe0, 0xaf, 0x68),
    (0x6c, 0xa8, 0xf0),
    (0xc0, 0x9a, 0xe8),
    (0x5f, 0xc4, 0xd0),
    (0xc8, 0xd0, 0xda),
    (0x6b, 0x76, 0x84),
    (0xff, 0x8f, 0x95),
    (0xb8, 0xe0, 0x8a),
    (0xf0, 0xc6, 0x88),
    (0x8f, 0xc0, 0xff),
    (0xd6, 0xb8, 0xf5),
    (0x84, 0xd9, 0xe3),
    (0xf2, 0xf5, 0xf8),
];

/// Style of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    text: Rgb,
    behind: Rgb,
    is_bold: bool,
    is_italic: bool,
    is_underlined: bool,
}

/// Letters of one style, starting at a column.
#[derive(Debug)]
struct Run {
    column: usize,
    columns: usize,
    text: String,
    look: Look,
}

/// Draws the screen from its first non-empty row to its last one.
pub(crate) fn picture(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let mut drawn: Vec<(u16, Vec<Run>)> = (0..rows).map(|row| (row, runs(screen, row, columns))).collect();
    while drawn.pop_if(|(_, runs)| runs.is_empty()).is_some() {}
    let blank = drawn.iter().take_while(|(_, runs)| runs.is_empty()).count();
    drawn.drain(..blank);
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    let width = f64::from(columns) * COLUMN + 2.0 * MARGIN;
    let height = BAR + drawn.len() as f64 * ROW + MARGIN;
    let mut svg = frame(width, height, title);
    for (place, (row, runs)) in drawn.iter().enumerate() {
        let top = BAR + place as f64 * ROW;
        for run in runs {
            put_background(&mut svg, run.column, run.columns, run.look.behind, top);
        }
        if let Some((_, column)) = cursor.filter(|(cursor, _)| cursor == row) {
            put_background(&mut svg, column.into(), 1, CURSOR, top);
        }
        put_text(&mut svg, runs, top);
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Draws the window without its contents.
fn frame(width: f64, height: f64, title: &str) -> String {
    let (background, border) = (hex(BACKGROUND), hex(BORDER));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\" fill=\"{background}\" stroke=\"{border}\"/>\n",
        escaped(title),
        width - 1.0,
        height - 1.0
    );
    for (index, color) in [NAMED[1], NAMED[3], NAMED[2]].into_iter().enumerate() {
        let x = 20 + 18 * index;
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"17\" r=\"5\" fill=\"{}\"/>",
            hex(color)
        );
    }
    let _ = writeln!(
        svg,
        "<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"{FONT}\">"
    );
    svg
}

fn put_background(svg: &mut String, column: usize, columns: usize, color: Rgb, top: f64) {
    if color == BACKGROUND {
        return;
    }
    let (x, width) = (left(column), columns as f64 * COLUMN);
    let color = hex(color);
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{ROW:.1}\" fill=\"{color}\"/>"
    );
}

/// Writes each run at its column and in its width, whatever font is used.
fn put_text(svg: &mut String, runs: &[Run], top: f64) {
    let is_seen = |run: &&Run| run.look.is_underlined || !run.text.trim().is_empty();
    let seen: Vec<&Run> = runs.iter().filter(is_seen).collect();
    if seen.is_empty() {
        return;
    }
    let _ = write!(
        svg,
        "<text y=\"{:.1}\" xml:space=\"preserve\" style=\"white-space:pre\">",
        top + 14.0
    );
    for run in seen {
        let (x, look) = (left(run.column), run.look);
        let _ = write!(svg, "<tspan x=\"{x:.1}\"");
        if run.columns > 1 {
            let _ = write!(svg, " textLength=\"{:.1}\"", run.columns as f64 * COLUMN);
        }
        let _ = write!(svg, " fill=\"{}\"", hex(look.text));
        for (is_so, attribute) in [
            (look.is_bold, " font-weight=\"bold\""),
            (look.is_italic, " font-style=\"italic\""),
            (look.is_underlined, " text-decoration=\"underline\""),
        ] {
            svg.push_str(if is_so { attribute } else { "" });
        }
        let _ = write!(svg, ">{}</tspan>", escaped(&run.text));
    }
    svg.push_str("</text>\n");
}

fn left(column: usize) -> f64 {
    MARGIN + column as f64 * COLUMN
}

/// Splits a row into runs, without trailing blanks.
fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen
            .cell(row, column)
            .filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let columns = if cell.is_wide() { 2 } else { 1 };
        let look = Look::of(cell);
        match runs.last_mut() {
            Some(last) if last.look == look && is_regular(text) && is_regular(&last.text) => {
                last.text.push_str(text);
                last.columns += columns;
            }
            _ => runs.push(Run {
                column: column.into(),
                columns,
                text: text.to_owned(),
                look,
            }),
        }
    }
    let is_blank = |run: &mut Run| run.text.trim().is_empty() && run.look.behind == BACKGROUND;
    while runs.pop_if(is_blank).is_some() {}
    if let Some(last) = runs.last_mut().filter(|run| run.look.behind == BACKGROUND) {
        last.columns -= last.text.len() - last.text.trim_end_matches(' ').len();
        last.text.truncate(last.text.trim_end_matches(' ').len());
    }
    even_out(&mut runs);
    runs
}

/// Replaces values that differ between runs of the program: durations, and the position of the spinner.
fn even_out(runs: &mut [Run]) {
    let row: String = runs.iter().map(|run| run.text.as_str()).collect();
    // A command takes time; for anything else it is chance whether the duration is shown.
    let takes_time = ["bash ", "esc stops", "esc to cancel"]
        .iter()
        .any(|text| row.contains(text));
    for run in runs {
        if run
            .text
            .chars()
            .all(|letter| ('\u{2800}'..='\u{28ff}').contains(&letter))
        {
            run.text = "⠹".to_owned();
        } else if is_regular(&run.text) {
            run.text = without_chance(&run.text, takes_time);
            run.columns = run.text.chars().count();
        }
    }
}

fn without_chance(text: &str, takes_time: bool) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let is_number = word.parse::<f64>().is_ok();
        let is_seconds = is_number && rest.peek().is_some_and(|next| next.trim_end_matches(':') == "s");
        let is_short = word
            .strip_suffix('s')
            .is_some_and(|number| number.parse::<f64>().is_ok());
        if is_seconds && takes_time {
            words.push(if word.contains('.') { "1.2" } else { "2" });
        } else if is_seconds {
            rest.next();
        } else {
            words.push(if is_short { "0.00s" } else { word });
        }
    }
    words.join(" ")
}

/// Returns true if a monospaced font has these letters in its usual width. Symbols may come from another
/// font, so each is its own run.
fn is_regular(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_ascii() || ('─'..='╿').contains(&letter))
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let text = color(cell.fgcolor(), FOREGROUND);
        let behind = color(cell.bgcolor(), BACKGROUND);
        let (text, behind) = if cell.inverse() {
            (behind, text)
        } else {
            (text, behind)
        };
        Self {
            text: if cell.dim() { between(text, behind) } else { text },
            behind,
            is_bold: cell.bold(),
            is_italic: cell.italic(),
            is_underlined: cell.underline(),
        }
    }
}

fn color(color: Color, default: Rgb) -> Rgb {
    match color {
        Color::Default => default,
        Color::Rgb(red, green, blue) => (red, green, blue),
        Color::Idx(index) => match (NAMED.get(usize::from(index)), index) {
            (Some(named), _) => *named,
            (None, 232..) => {
                let grey = 8 + 10 * (index - 232);
                (grey, grey, grey)
            }
            (None, _) => {
                let level = |place: u8| match (index - 16) / place % 6 {
                    0 => 0,
                    level => 55 + 40 * level,
                };
                (level(36), level(6), level(1))
            }
        },
    }
}

/// Mixes the text colour of dimmed text with its background.
fn between(text: Rgb, behind: Rgb) -> Rgb {
    let mix = |one: u8, other: u8| {
        let mixed = (u16::from(one) * 11 + u16::from(other) * 9) / 20;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    };
    (
        mix(text.0, behind.0),
        mix(text.1, behind.1),
        mix(text.2, behind.2),
    )
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
