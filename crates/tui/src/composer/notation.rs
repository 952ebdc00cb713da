//! Text notation for keys and states, for tests.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Composer, Did};

/// Parses keys: letters as they are, others as `<Up>`, `<C-w>`, `<A-Enter>`; `<lt>` is `<`.
pub(super) fn keys(notation: &str) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    let mut rest = notation;
    while let Some(letter) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        match named {
            Some((name, after)) => {
                keys.push(named_key(name));
                rest = after;
            }
            None => {
                keys.push(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
                rest = rest.split_at(letter.len_utf8()).1;
            }
        }
    }
    keys
}

/// Types the keys and returns the effect of the last one.
pub(super) fn type_keys(composer: &mut Composer, notation: &str) -> Did {
    let did = keys(notation).into_iter().map(|key| composer.handle(key));
    did.last().unwrap_or(Did::Nothing)
}

/// Returns the text with chips as labels and a bar at the cursor.
pub(super) fn state(composer: &Composer) -> String {
    let (before, after) = composer.text().split_at(composer.cursor());
    format!("{}|{}", composer.chips.show(before), composer.chips.show(after))
}

/// Returns the screen of the given size, with a bar at the cursor.
pub(super) fn screen(composer: &mut Composer, columns: usize, rows: usize) -> Vec<String> {
    let drawn = composer.render(columns, rows, crate::theme::Theme::default());
    let mut lines: Vec<String> = drawn.lines.iter().map(ToString::to_string).collect();
    let (column, row) = drawn.cursor;
    let line = &mut lines[row];
    let mut used = 0;
    let mut at = line.len();
    for (index, letter) in super::cluster::all(line, 0..line.len()) {
        if used >= column {
            at = index;
            break;
        }
        used += crate::text::width(letter);
    }
    line.extend(std::iter::repeat_n(' ', column.saturating_sub(used)));
    let at = if used < column { line.len() } else { at };
    line.insert(at, '|');
    lines
}

fn named_key(name: &str) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    let mut name = name;
    while let Some((modifier, rest)) = name.split_once('-').filter(|(_, rest)| !rest.is_empty()) {
        modifiers |= match modifier {
            "C" => KeyModifiers::CONTROL,
            "A" => KeyModifiers::ALT,
            "S" => KeyModifiers::SHIFT,
            "D" => KeyModifiers::SUPER,
            other => panic!("{other} is not a modifier"),
        };
        name = rest;
    }
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "BS" => KeyCode::Backspace,
        "Del" => KeyCode::Delete,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "lt" => KeyCode::Char('<'),
        letter => letter.chars().next().map_or(KeyCode::Null, KeyCode::Char),
    };
    KeyEvent::new(code, modifiers)
}
