//! Responses of a usual terminal to a program's queries. It does not know the newer keyboard protocols.

/// Collects the responses until they are sent.
#[derive(Debug, Default)]
pub(crate) struct Answers(Vec<u8>);

impl Answers {
    /// Takes the bytes to send.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    fn say(&mut self, answer: &str) {
        self.0.extend_from_slice(answer.as_bytes());
    }
}

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let number = parameters.first().and_then(|parameter| parameter.first());
        let number = number.copied().unwrap_or_default();
        match (first, second, number, last) {
            (None, None, 5, 'n') => self.say("\x1b[0n"),
            (None, None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                let columns = screen.size().1.get();
                self.say(&format!("\x1b[{};{}R", row + 1, column.min(columns - 1) + 1));
            }
            (None, None, 0, 'c') => self.say("\x1b[?62;22c"),
            (Some(b'>'), None, 0, 'c') => self.say("\x1b[>41;390;0c"),
            (Some(b'>'), None, 0, 'q') => self.say("\x1bP>|XTerm(390)\x1b\\"),
            (None, None, 18, 't') => {
                let (rows, columns) = screen.size();
                self.say(&format!("\x1b[8;{rows};{columns}t"));
            }
            (Some(b'?'), Some(b'$'), mode, 'p') => {
                // Known and off, or unknown.
                let state = match mode {
                    1004 | 1006 | 1049 | 2004 | 2026 => 2,
                    _ => 0,
                };
                self.say(&format!("\x1b[?{mode};{state}$y"));
            }
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        let color = match parameters {
            [b"10" | b"12", b"?"] => "d0d0/d0d0/d0d0",
            [b"11", b"?"] => "1e1e/1e1e/1e1e",
            [b"4", _, b"?"] => "8080/8080/8080",
            _ => return,
        };
        let asked = parameters
            .split_last()
            .map(|(_, asked)| asked)
            .unwrap_or_default();
        let asked = String::from_utf8_lossy(&asked.join(&b';')).into_owned();
        self.say(&format!("\x1b]{asked};rgb:{color}\x1b\\"));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    /// UI-2: a program that queries the cursor position, the terminal's features and its colours gets
    /// responses.
    #[test]
    fn questions_are_answered() {
        let size = NonZeroU16::new(40).unwrap_or(NonZeroU16::MIN);
        let mut parser = vt100::Parser::new_with_callbacks(size, size, 0, Answers::default());
        let mut asked = |question: &str| {
            parser.process(question.as_bytes());
            String::from_utf8_lossy(&parser.callbacks_mut().take()).into_owned()
        };
        assert_eq!(asked("ab\x1b[6n"), "\x1b[1;3R");
        assert_eq!(asked("\x1b[c"), "\x1b[?62;22c");
        assert_eq!(asked("\x1b]11;?\x1b\\"), "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\");
        assert_eq!(asked("\x1b]4;7;?\x07"), "\x1b]4;7;rgb:8080/8080/8080\x1b\\");
        assert_eq!(asked("\x1b[?2026$p"), "\x1b[?2026;2$y");
        assert_eq!(asked("\x1b[?u\x1b[31mtext"), "");
    }
}
