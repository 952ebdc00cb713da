//! Key bindings. Every action has a name for the settings and a line in the help.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Actions a key can be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyAction {
    /// Sends the message; a running turn receives it between two steps.
    Send,
    /// Queues the message until the running turn ends.
    Queue,
    /// Stops the turn; pressed twice with an empty composer, goes back to an earlier message.
    Stop,
    /// Clears the draft, stops the turn, or quits.
    Cancel,
    /// Quits if the composer is empty.
    Leave,
    /// Switches to the next mode.
    Mode,
    /// Searches the history.
    History,
    /// Opens the draft in the user's editor.
    Editor,
    /// Attaches the image from the clipboard.
    PasteImage,
    /// Expands pasted text.
    OpenPaste,
    /// Takes the last queued message back for editing.
    TakeBack,
    /// Shows the full-screen transcript.
    Transcript,
    /// Redraws the screen.
    Redraw,
    /// Suspends to the shell.
    Suspend,
    /// Lists the keys.
    KeyBindings,
}

/// An action with its name and help.
struct Named {
    action: KeyAction,
    name: &'static str,
    default: &'static str,
    help: &'static str,
}

#[rustfmt::skip]
const ACTIONS: &[Named] = &[
    Named { action: KeyAction::Send,       name: "send",        default: "enter",     help: "send; while a turn runs, the model gets it before its next step" },
    Named { action: KeyAction::Queue,      name: "queue",       default: "tab",       help: "while a turn runs: send when it ends" },
    Named { action: KeyAction::Stop,       name: "stop",        default: "esc",       help: "stop the turn; twice with no text: go back to an earlier message" },
    Named { action: KeyAction::Cancel,     name: "cancel",      default: "ctrl+c",    help: "clear the text, then stop the turn, then (twice) quit" },
    Named { action: KeyAction::Leave,      name: "leave",       default: "ctrl+d",    help: "quit, if there is no text" },
    Named { action: KeyAction::Mode,       name: "mode",        default: "shift+tab", help: "next mode: auto, plan, ask, edits" },
    Named { action: KeyAction::History,    name: "history",     default: "ctrl+r",    help: "search earlier messages" },
    Named { action: KeyAction::Editor,     name: "editor",      default: "ctrl+g",    help: "edit in your own editor ($VISUAL or $EDITOR)" },
    Named { action: KeyAction::PasteImage, name: "paste_image", default: "ctrl+v",    help: "attach the image from the clipboard" },
    Named { action: KeyAction::OpenPaste,  name: "open_paste",  default: "ctrl+x",    help: "expand the pasted text at the cursor, to see and edit it" },
    Named { action: KeyAction::TakeBack,   name: "take_back",   default: "alt+up",    help: "edit the last queued message" },
    Named { action: KeyAction::Transcript, name: "transcript",  default: "ctrl+o",    help: "full-screen conversation, everything unfolded" },
    Named { action: KeyAction::Redraw,     name: "redraw",      default: "ctrl+l",    help: "redraw the screen" },
    Named { action: KeyAction::Suspend,    name: "suspend",     default: "ctrl+z",    help: "suspend to the shell; fg returns" },
    Named { action: KeyAction::KeyBindings,       name: "keys",        default: "f1",        help: "this list" },
];

/// KeyBindings that edit text and cannot be rebound.
#[rustfmt::skip]
const FIXED: &[(&str, &str)] = &[
    ("shift+enter, alt+enter, ctrl+j", "new line; \\ before enter does the same"),
    ("/  @  !", "/ command and ! shell command at the start; @ file anywhere"),
    ("up, down", "earlier messages, from the first and the last line"),
    ("ctrl+a ctrl+e alt+b alt+f", "start, end, back a word, forward a word"),
    ("ctrl+w ctrl+u ctrl+k ctrl+y", "cut a word, to the start, to the end; paste"),
    ("ctrl+/", "undo"),
    ("y  s  a  n  t", "answer a request: yes, for this session, always, no, tell it what to do instead"),
];

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Invalid key binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyBindingError {
    /// Unknown action.
    #[error("unknown action `{0}`; the actions are {1}")]
    KeyAction(String, String),
    /// Unknown key.
    #[error("`{0}` is not a key; write it as `ctrl+o`, `alt+up`, `shift+tab`, `f2` or `esc`")]
    Key(String),
    /// One key bound to two actions.
    #[error("`{key}` is bound to both `{one}` and `{other}`")]
    Twice {
        /// Key in question.
        key: String,
        /// First action.
        one: String,
        /// Second action.
        other: String,
    },
}

/// The key bindings.
#[derive(Debug, Clone)]
pub struct KeyBindings(Vec<(Chord, KeyAction)>);

impl Default for KeyBindings {
    fn default() -> Self {
        let bound = ACTIONS
            .iter()
            .filter_map(|named| Some((chord(named.default)?, named.action)));
        Self(bound.collect())
    }
}

impl KeyBindings {
    /// Returns the defaults with changes, each an action's name and its key.
    ///
    /// # Errors
    /// If an action or a key is unknown, or a key is bound to two actions.
    pub fn with<'a>(changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, KeyBindingError> {
        let mut keys = Self::default();
        for (name, key) in changes {
            let named = ACTIONS.iter().find(|named| named.name == name).ok_or_else(|| {
                let all: Vec<&str> = ACTIONS.iter().map(|named| named.name).collect();
                KeyBindingError::KeyAction(name.to_owned(), all.join(", "))
            })?;
            let chord = chord(key).ok_or_else(|| KeyBindingError::Key(key.to_owned()))?;
            keys.0.retain(|(_, action)| *action != named.action);
            keys.0.push((chord, named.action));
        }
        for (index, (chord, action)) in keys.0.iter().enumerate() {
            let other = keys.0.iter().skip(index + 1).find(|(other, _)| other == chord);
            if let Some((_, other)) = other {
                return Err(KeyBindingError::Twice {
                    key: written(*chord),
                    one: name_of(*action).to_owned(),
                    other: name_of(*other).to_owned(),
                });
            }
        }
        Ok(keys)
    }

    /// Returns the action of a key.
    pub(crate) fn action(&self, key: &KeyEvent) -> Option<KeyAction> {
        let chord = Chord::of(key);
        let found = self.0.iter().find(|(bound, _)| *bound == chord);
        found.map(|(_, action)| *action)
    }

    /// Returns the key of an action, as written in the settings.
    pub(crate) fn key(&self, action: KeyAction) -> String {
        let found = self.0.iter().find(|(_, bound)| *bound == action);
        found.map(|(chord, _)| written(*chord)).unwrap_or_default()
    }

    /// Lists all keys with their help.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        let bound = ACTIONS
            .iter()
            .map(|named| (self.key(named.action), format!("{} ({})", named.help, named.name)));
        let fixed = FIXED
            .iter()
            .map(|(keys, help)| ((*keys).to_owned(), (*help).to_owned()));
        bound.chain(fixed).collect()
    }
}

fn name_of(action: KeyAction) -> &'static str {
    let found = ACTIONS.iter().find(|named| named.action == action);
    found.map_or("", |named| named.name)
}

impl Chord {
    /// Normalises a key event. Terminals differ in how they report shift+tab, and in whether they report
    /// shift with a letter.
    fn of(key: &KeyEvent) -> Self {
        let mut modifiers = key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match key.code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(letter) => {
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(letter.to_ascii_lowercase())
            }
            code => code,
        };
        Self { code, modifiers }
    }
}

/// Parses a key.
fn chord(text: &str) -> Option<Chord> {
    let lower = text.trim().to_ascii_lowercase();
    let mut parts: Vec<&str> = lower.split('+').collect();
    let last = parts.pop()?;
    let mut modifiers = KeyModifiers::NONE;
    for part in parts {
        modifiers |= match part {
            "ctrl" | "control" => KeyModifiers::CONTROL,
            "alt" | "option" | "meta" => KeyModifiers::ALT,
            "shift" => KeyModifiers::SHIFT,
            _ => return None,
        };
    }
    let mut letters = last.chars();
    let code = match (letters.next(), letters.next()) {
        (Some(letter), None) => KeyCode::Char(letter),
        _ => named_key(last)?,
    };
    // A letter alone, or with shift, is text.
    let is_text =
        matches!(code, KeyCode::Char(_)) && !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    (!is_text).then(|| Chord::of(&KeyEvent::new(code, modifiers)))
}

fn named_key(name: &str) -> Option<KeyCode> {
    Some(match name {
        "enter" | "return" => KeyCode::Enter,
        "esc" | "escape" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        _ => KeyCode::F(
            name.strip_prefix('f')?
                .parse()
                .ok()
                .filter(|number| (1..=24).contains(number))?,
        ),
    })
}

/// Formats a key.
fn written(chord: Chord) -> String {
    let mut text = String::new();
    for (modifier, name) in [
        (KeyModifiers::CONTROL, "ctrl+"),
        (KeyModifiers::ALT, "alt+"),
        (KeyModifiers::SHIFT, "shift+"),
    ] {
        if chord.modifiers.contains(modifier) {
            text.push_str(name);
        }
    }
    let name = match chord.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::F(number) => format!("f{number}"),
        KeyCode::Esc => "esc".to_owned(),
        code => format!("{code:?}").to_ascii_lowercase(),
    };
    text + &name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    /// UI-2: every default key can be written in the settings, and no key has two actions.
    #[test]
    fn defaults_can_be_written() {
        let keys = KeyBindings::with([]).unwrap();
        assert_eq!(keys.0.len(), ACTIONS.len());
        for named in ACTIONS {
            assert_eq!(keys.key(named.action), named.default, "{}", named.name);
        }
    }

    /// UI-2: keys can be rebound; an invalid binding is rejected with a hint.
    #[test]
    fn keys_can_be_bound_again() {
        let keys = KeyBindings::with([("transcript", "f2"), ("mode", "ctrl+t")]).unwrap();
        assert_eq!(
            keys.action(&press(KeyCode::F(2), KeyModifiers::NONE)),
            Some(KeyAction::Transcript)
        );
        assert_eq!(
            keys.action(&press(KeyCode::Char('o'), KeyModifiers::CONTROL)),
            None
        );
        let cases = [
            (("transcipt", "f2"), "unknown action `transcipt`"),
            (("transcript", "hyper+x"), "`hyper+x` is not a key"),
            (("transcript", "x"), "`x` is not a key"),
            (
                ("transcript", "ctrl+r"),
                "`ctrl+r` is bound to both `history` and `transcript`",
            ),
        ];
        for (change, expected) in cases {
            let error = KeyBindings::with([change]).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// UI-2: shift+tab is recognised however the terminal reports it.
    #[test]
    fn shifted_tabs_are_known() {
        let keys = KeyBindings::default();
        for key in [
            press(KeyCode::BackTab, KeyModifiers::SHIFT),
            press(KeyCode::BackTab, KeyModifiers::NONE),
            press(KeyCode::Tab, KeyModifiers::SHIFT),
        ] {
            assert_eq!(keys.action(&key), Some(KeyAction::Mode));
        }
        assert_eq!(
            keys.action(&press(KeyCode::Tab, KeyModifiers::NONE)),
            Some(KeyAction::Queue)
        );
    }

    /// UI-2: a letter is the same key with shift, which not every terminal reports: such bindings work.
    #[test]
    fn shifted_letters_are_known() {
        let keys = KeyBindings::with([("mode", "ctrl+shift+t")]).unwrap();
        for key in [
            press(KeyCode::Char('T'), KeyModifiers::CONTROL | KeyModifiers::SHIFT),
            press(KeyCode::Char('t'), KeyModifiers::CONTROL),
        ] {
            assert_eq!(keys.action(&key), Some(KeyAction::Mode));
        }
        let error = KeyBindings::with([("mode", "ctrl+shift+r")])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("`ctrl+r` is bound to both `history`"),
            "{error}"
        );
    }
}
