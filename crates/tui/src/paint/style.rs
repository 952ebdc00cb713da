//! Cell styles, and the shortest sequence from one style to another.

use ratatui::style::{Color, Modifier, Style};

/// Supported modifiers, each with the code that switches it on.
const DRAWN: [(Modifier, &str); 6] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::REVERSED, "7"),
    (Modifier::CROSSED_OUT, "9"),
];

/// Bold and dim share the code that ends them.
const INTENSITY: Modifier = Modifier::BOLD.union(Modifier::DIM);

/// Modifiers with the code that switches them off.
const ENDS: [(Modifier, &str); 5] = [
    (INTENSITY, "22"),
    (Modifier::ITALIC, "23"),
    (Modifier::UNDERLINED, "24"),
    (Modifier::REVERSED, "27"),
    (Modifier::CROSSED_OUT, "29"),
];

/// Fully resolved style of a cell: anything a style leaves open is the terminal's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CellStyle {
    ink: Color,
    paper: Color,
    modifiers: Modifier,
}

impl CellStyle {
    /// True if this style is visible on a blank.
    pub(super) fn shows_on_blank(self) -> bool {
        let lines = Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT;
        self.paper != Color::Reset || self.modifiers.intersects(lines)
    }

    /// Returns the sequence that changes the terminal's style from `self` to `next`.
    pub(super) fn sequence_to(self, next: Self) -> String {
        if self == next {
            return String::new();
        }
        if next == Self::default() {
            return "\u{1b}[m".to_owned();
        }
        let change = self.codes_to(next).join(";");
        let anew = format!("0;{}", Self::default().codes_to(next).join(";"));
        let shorter = if change.len() <= anew.len() { change } else { anew };
        format!("\u{1b}[{shorter}m")
    }

    fn codes_to(self, next: Self) -> Vec<String> {
        let mut codes = Vec::new();
        let ended = self.modifiers - next.modifiers;
        let mut begun = next.modifiers - self.modifiers;
        for (modifiers, code) in ENDS {
            if ended.intersects(modifiers) {
                codes.push(code.to_owned());
                begun |= next.modifiers & modifiers;
            }
        }
        for (modifier, code) in DRAWN {
            if begun.contains(modifier) {
                codes.push(code.to_owned());
            }
        }
        if self.ink != next.ink {
            codes.push(colour(next.ink, 0));
        }
        if self.paper != next.paper {
            codes.push(colour(next.paper, 10));
        }
        codes
    }
}

impl From<Style> for CellStyle {
    fn from(style: Style) -> Self {
        let drawn = DRAWN
            .iter()
            .fold(Modifier::empty(), |all, (modifier, _)| all | *modifier);
        Self {
            ink: style.fg.unwrap_or_default(),
            paper: style.bg.unwrap_or_default(),
            modifiers: (style.add_modifier - style.sub_modifier) & drawn,
        }
    }
}

/// Returns the code of a colour; `shift` is 10 for the background.
fn colour(colour: Color, shift: u8) -> String {
    let code = match colour {
        Color::Reset => 39,
        Color::Black => 30,
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::Gray => 37,
        Color::DarkGray => 90,
        Color::LightRed => 91,
        Color::LightGreen => 92,
        Color::LightYellow => 93,
        Color::LightBlue => 94,
        Color::LightMagenta => 95,
        Color::LightCyan => 96,
        Color::White => 97,
        Color::Indexed(index) => return format!("{};5;{index}", 38 + shift),
        Color::Rgb(red, green, blue) => return format!("{};2;{red};{green};{blue}", 38 + shift),
    };
    (code + shift).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a style change uses the shortest sequence.
    #[test]
    fn a_change_of_look_is_short() {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let all = bold.add_modifier(Modifier::ITALIC | Modifier::UNDERLINED | Modifier::CROSSED_OUT);
        let cases = [
            (plain, plain, ""),
            (plain, plain.fg(Color::Red), "\u{1b}[31m"),
            (plain, plain.bg(Color::LightBlue), "\u{1b}[104m"),
            (plain, plain.fg(Color::Indexed(200)), "\u{1b}[38;5;200m"),
            (plain, plain.bg(Color::Rgb(1, 2, 3)), "\u{1b}[48;2;1;2;3m"),
            (bold.fg(Color::Red), plain, "\u{1b}[m"),
            (bold.fg(Color::Red), bold, "\u{1b}[39m"),
            (bold, plain.add_modifier(Modifier::DIM), "\u{1b}[0;2m"),
            (
                bold.fg(Color::Red),
                plain.fg(Color::Red).add_modifier(Modifier::DIM),
                "\u{1b}[22;2m",
            ),
            (all, plain.fg(Color::Red), "\u{1b}[0;31m"),
            (bold, bold.remove_modifier(Modifier::BOLD), "\u{1b}[m"),
        ];
        for (from, to, expected) in cases {
            assert_eq!(
                CellStyle::from(from).sequence_to(to.into()),
                expected,
                "{from:?} to {to:?}"
            );
        }
    }
}
