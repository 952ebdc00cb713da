//! What things look like. Colours are the terminal's own sixteen wherever that is enough, so that a screen follows the
//! terminal's theme by itself.

use ratatui::style::{Color, Modifier, Style};

/// Which set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// The terminal's own colours, on whatever background it has.
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
    /// All of them, in the order of the menu.
    pub const ALL: [Self; 4] = [Self::Terminal, Self::Dark, Self::Light, Self::None];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Dark => "dark",
            Self::Light => "light",
            Self::None => "none",
        }
    }

    /// The palette of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Text,
    /// Beside the point: durations, hints, folded things.
    Dim,
    /// What draws the eye: the prompt mark, a selection's mark.
    Accent,
    /// What the user said.
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
    /// A line that a diff takes away.
    Removed,
    /// The chosen row of a list.
    Selected,
}

/// The look of everything. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    /// The colours.
    pub palette: Palette,
    /// Whether only ASCII is drawn, where the terminal's encoding is not UTF-8.
    pub ascii: bool,
}

impl Theme {
    /// How a piece of text is drawn.
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

    /// A sign, or its ASCII stand-in.
    pub(crate) fn sign(self, sign: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { sign }
    }
}

/// The colours of a palette, all of the terminal's sixteen.
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
            // The dark ones, blue above all, are hard to read on black in many terminals.
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

    /// UI-2: each palette looks different from the others, and the one without colour has none.
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
