//! A list below what the terminal shows, one line of which is chosen with the arrow keys: for a choice that has to be made
//! before the app starts. The lists of the app are in `overlay/picker.rs`.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveUp, Show};
use crossterm::event::{Event, EventStream as Inputs, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::queue;
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use futures_util::StreamExt;

use crate::text::cut;

/// Rows that the list leaves free: its title, the line with the keys, and one for the cursor.
const FREE: usize = 3;
/// Lines that a page key moves.
const PAGE: usize = 8;

/// Effect of a key.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Select(usize),
    Done(Option<usize>),
}

/// Lets the user choose one of the lines, the first of which is selected. `None` means that they cancelled, or that `stop`
/// came first. The list is removed in the end.
///
/// # Errors
/// Fails if the terminal cannot be read or written.
pub async fn pick(
    title: &str,
    lines: &[String],
    stop: impl Future<Output = ()>,
) -> io::Result<Option<usize>> {
    enable_raw_mode()?;
    let mut out = io::stdout();
    let picked = tokio::select! {
        picked = choose(title, lines, &mut out) => picked,
        () = stop => Ok(None),
    };
    disable_raw_mode()?;
    queue!(out, Print("\r"), Clear(ClearType::FromCursorDown), Show)?;
    out.flush()?;
    picked
}

async fn choose(title: &str, lines: &[String], out: &mut impl Write) -> io::Result<Option<usize>> {
    let mut inputs = Inputs::new();
    let mut selected = 0;
    loop {
        draw(out, title, lines, selected)?;
        let step = match inputs.next().await.transpose()? {
            Some(Event::Key(key)) if key.kind != KeyEventKind::Release => step(key, selected, lines.len()),
            Some(_) => Step::Select(selected),
            None => Step::Done(None),
        };
        match step {
            Step::Done(picked) => return Ok(picked),
            Step::Select(line) => selected = line,
        }
    }
}

fn step(key: KeyEvent, selected: usize, count: usize) -> Step {
    let last = count.saturating_sub(1);
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if has_control => Step::Done(None),
        KeyCode::Esc | KeyCode::Char('q') => Step::Done(None),
        KeyCode::Enter => Step::Done((count > 0).then_some(selected)),
        KeyCode::Char('p') if has_control => Step::Select(selected.checked_sub(1).unwrap_or(last)),
        KeyCode::Char('n') if has_control => Step::Select(if selected < last { selected + 1 } else { 0 }),
        KeyCode::Up | KeyCode::Char('k') => Step::Select(selected.checked_sub(1).unwrap_or(last)),
        KeyCode::Down | KeyCode::Char('j') => Step::Select(if selected < last { selected + 1 } else { 0 }),
        KeyCode::PageUp => Step::Select(selected.saturating_sub(PAGE)),
        KeyCode::PageDown => Step::Select((selected + PAGE).min(last)),
        KeyCode::Home => Step::Select(0),
        KeyCode::End => Step::Select(last),
        KeyCode::Char(digit @ '1'..='9') => match usize::from(digit as u8 - b'1') {
            line if line < count => Step::Done(Some(line)),
            _ => Step::Select(selected),
        },
        _ => Step::Select(selected),
    }
}

/// Returns the first visible line, so that the selected one is visible.
fn first_visible(selected: usize, visible: usize) -> usize {
    (selected + 1).saturating_sub(visible)
}

/// Draws the list, and leaves the cursor at its start.
fn draw(out: &mut impl Write, title: &str, lines: &[String], selected: usize) -> io::Result<()> {
    let (columns, height) = size()?;
    let (columns, height) = (usize::from(columns), usize::from(height));
    let visible = lines.len().min(height.saturating_sub(FREE)).max(1);
    let first = first_visible(selected, visible);
    queue!(out, Hide, Print("\r"), Clear(ClearType::FromCursorDown))?;
    queue!(out, Print(cut(title, columns)), Print("\r\n"))?;
    for (number, line) in lines.iter().enumerate().skip(first).take(visible) {
        let is_selected = number == selected;
        let mark = if is_selected { '❯' } else { ' ' };
        if is_selected {
            queue!(out, SetAttribute(Attribute::Bold))?;
        }
        let text = cut(&format!("{mark} {:>2}  {line}", number + 1), columns);
        queue!(out, Print(text), SetAttribute(Attribute::Reset), Print("\r\n"))?;
    }
    queue!(out, Print(cut("↑ ↓ select · Enter opens · Esc cancels", columns)))?;
    queue!(
        out,
        Print("\r"),
        MoveUp(u16::try_from(visible + 1).unwrap_or(u16::MAX))
    )?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(code: KeyCode, selected: usize, count: usize) -> Step {
        step(KeyEvent::new(code, KeyModifiers::NONE), selected, count)
    }

    #[test]
    fn keys_move_choose_and_cancel() {
        for (code, selected, expected) in [
            (KeyCode::Down, 0, Step::Select(1)),
            (KeyCode::Down, 2, Step::Select(0)),
            (KeyCode::Up, 0, Step::Select(2)),
            (KeyCode::PageDown, 0, Step::Select(2)),
            (KeyCode::Home, 2, Step::Select(0)),
            (KeyCode::End, 0, Step::Select(2)),
            (KeyCode::Char('2'), 0, Step::Done(Some(1))),
            (KeyCode::Char('4'), 1, Step::Select(1)),
            (KeyCode::Enter, 1, Step::Done(Some(1))),
            (KeyCode::Esc, 1, Step::Done(None)),
            (KeyCode::Char('q'), 1, Step::Done(None)),
            (KeyCode::F(5), 1, Step::Select(1)),
        ] {
            assert_eq!(after(code, selected, 3), expected, "{code:?} at {selected}");
        }
        let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(step(stop, 1, 3), Step::Done(None));
        assert_eq!(after(KeyCode::Enter, 0, 0), Step::Done(None));
    }

    #[test]
    fn the_selected_line_is_visible() {
        assert_eq!(first_visible(0, 5), 0);
        assert_eq!(first_visible(4, 5), 0);
        assert_eq!(first_visible(5, 5), 1);
    }
}
