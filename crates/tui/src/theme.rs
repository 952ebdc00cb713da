//! Styles. Colours are the terminal's own sixteen wherever possible, so that the screen follows the
//! terminal's theme.

use ratatui::style::{Color, Modifier, Style};

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// The terminal's own colours, on any background.
    #[default]
    Terminal,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// No colour at all: bold, dim, underlined and reversed text only.
    None,
}

impl Palette {
    /// All palettes, in the order of the menu.
    pub const ALL: [Self; 4] = [Self::Terminal, Self::Dark, Self::Light, Self::None];

    /// Name of the palette.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::None => "none",
        }
    }

    /// Returns the palette with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }
}

/// Role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Text,
    /// Secondary text: durations, hints, folded output.
    Dim,
    /// Text that draws the eye: the prompt mark, the selection mark.
    Accent,
    /// Text of the user.
    User,
    /// Code within a line.
    Code,
    Heading,
    Link,
    Good,
    Warn,
    Bad,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
    /// The selected row of a list.
    Selected,
}

/// Appearance of all text. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    /// The colours.
    pub palette: Palette,
    /// True to draw only ASCII, for terminals whose encoding is not UTF-8.
    pub ascii: bool,
}

impl Theme {
    /// Returns the style of a tone.
    pub(crate) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        if self.palette == Palette::None {
            return match tone {
                Tone::Text | Tone::Code | Tone::Good | Tone::User => plain,
                Tone::Dim => plain.add_modifier(Modifier::DIM),
                Tone::Accent | Tone::Heading | Tone::Warn | Tone::Bad | Tone::Added => {
                    plain.add_modifier(Modifier::BOLD)
                }
                Tone::Link => plain.add_modifier(Modifier::UNDERLINED),
                Tone::Removed => plain.add_modifier(Modifier::DIM),
                Tone::Selected => plain.add_modifier(Modifier::REVERSED),
            };
        }
        let colours = Colours::of(self.palette);
        match tone {
            Tone::Text => plain,
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Accent => plain.fg(colours.accent),
            Tone::User => plain.add_modifier(Modifier::BOLD),
            Tone::Code | Tone::Warn => plain.fg(colours.warm),
            Tone::Heading => plain.fg(colours.accent).add_modifier(Modifier::BOLD),
            Tone::Link => plain.fg(colours.link).add_modifier(Modifier::UNDERLINED),
            Tone::Good | Tone::Added => plain.fg(colours.good),
            Tone::Bad | Tone::Removed => plain.fg(colours.bad),
            Tone::Selected => plain.add_modifier(Modifier::REVERSED),
        }
    }

    /// Returns the background of a line in a diff. The terminal's own sixteen colours are too strong for one.
    pub(crate) fn tint(self, is_added: bool, is_removed: bool) -> Option<Color> {
        match (self.palette, is_added, is_removed) {
            (Palette::Dark, true, _) => Some(Color::Rgb(0x12, 0x2b, 0x1b)),
            (Palette::Dark, _, true) => Some(Color::Rgb(0x37, 0x1a, 0x1d)),
            (Palette::Light, true, _) => Some(Color::Rgb(0xe6, 0xf6, 0xe8)),
            (Palette::Light, _, true) => Some(Color::Rgb(0xfb, 0xe9, 0xe9)),
            _ => None,
        }
    }

    /// Returns the style of the changed part of a line in a diff.
    pub(crate) fn changed(self, is_added: bool) -> Style {
        let marked = Style::new().add_modifier(Modifier::BOLD);
        match (self.palette, is_added) {
            (Palette::Dark, true) => marked.bg(Color::Rgb(0x1f, 0x5a, 0x32)),
            (Palette::Dark, false) => marked.bg(Color::Rgb(0x7a, 0x2a, 0x31)),
            (Palette::Light, true) => marked.bg(Color::Rgb(0xab, 0xe5, 0xb5)),
            (Palette::Light, false) => marked.bg(Color::Rgb(0xf5, 0xb8, 0xbb)),
            (Palette::Terminal | Palette::None, _) => marked.add_modifier(Modifier::UNDERLINED),
        }
    }

    /// Returns a sign or its ASCII replacement.
    pub(crate) fn sign(self, sign: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { sign }
    }
}

/// Colours of a palette, all from the terminal's sixteen.
struct Colours {
    accent: Color,
    /// Code and warnings.
    warm: Color,
    link: Color,
    good: Color,
    bad: Color,
}

impl Colours {
    fn of(palette: Palette) -> Self {
        match palette {
            // The dark variants, blue above all, are hard to read on black in many terminals.
            Palette::Dark => Self {
                accent: Color::LightCyan,
                warm: Color::LightYellow,
                link: Color::LightBlue,
                good: Color::LightGreen,
                bad: Color::LightRed,
            },
            // Cyan and yellow are hard to read on white.
            Palette::Light => Self {
                accent: Color::Blue,
                warm: Color::Magenta,
                link: Color::Blue,
                good: Color::Green,
                bad: Color::Red,
            },
            Palette::Terminal | Palette::None => Self {
                accent: Color::Cyan,
                warm: Color::Yellow,
                link: Color::Blue,
                good: Color::Green,
                bad: Color::Red,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: each palette looks different, and the one without colour has none.
    #[test]
    fn palettes_differ() {
        let tones = [Tone::Accent, Tone::Code, Tone::Heading, Tone::Link, Tone::Bad];
        let look = |palette| {
            let theme = Theme {
                palette,
                ascii: false,
            };
            tones.map(|tone| theme.style(tone))
        };
        for (place, palette) in Palette::ALL.into_iter().enumerate() {
            for other in &Palette::ALL[place + 1..] {
                assert_ne!(look(palette), look(*other), "{palette:?} and {other:?}");
            }
        }
        assert!(look(Palette::None).iter().all(|style| style.fg.is_none()));
    }
}
