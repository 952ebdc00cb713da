//! Lines of a patch with their numbers, without the markup around it.

/// Iterates over the lines.
pub(super) struct Source<'a> {
    lines: Vec<&'a str>,
    at: usize,
    end: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        // If every line ends in CRLF, that is an artefact of the transport. If only some do, it is part of
        // their content.
        let (last, others) = lines
            .split_last()
            .map_or(("", [].as_slice()), |(last, others)| (*last, others));
        let carried = text.contains("\r\n") && others.iter().all(|line| line.ends_with('\r'));
        if carried && (last.ends_with('\r') || !text.ends_with('\n')) {
            for line in &mut lines {
                *line = line.strip_suffix('\r').unwrap_or(line);
            }
        }
        let end = lines.len();
        let mut source = Self { lines, at: 0, end };
        source.lay_bare();
        source.lay_bare();
        source
    }

    /// Removes a code fence or a here-document around the patch.
    fn lay_bare(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        let Some(first) = self.peek().map(str::trim) else {
            return;
        };
        let close = match first.split_once("<<") {
            _ if first.starts_with("```") => "```",
            Some((command, word))
                if ["apply_patch", "cat", "patch", "git"]
                    .iter()
                    .any(|name| command.starts_with(name)) =>
            {
                word.trim_start_matches('-')
                    .split_whitespace()
                    .next()
                    .map_or("", |word| word.trim_matches(['\'', '"']))
            }
            _ => return,
        };
        self.at += 1;
        let lines = self.lines.get(self.at..self.end).unwrap_or_default();
        let last = lines.iter().rposition(|line| !line.trim().is_empty());
        if let Some(last) = last
            && lines
                .get(last)
                .is_some_and(|line| !close.is_empty() && line.trim() == close)
        {
            self.end = self.at + last;
        }
    }

    /// Returns the number of the next line, from 1.
    pub(super) fn number(&self) -> usize {
        self.at + 1
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.ahead(0)
    }

    /// Returns a later line.
    pub(super) fn ahead(&self, by: usize) -> Option<&'a str> {
        let at = self.at.checked_add(by).filter(|at| *at < self.end)?;
        self.lines.get(at).copied()
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    /// Returns true if the file name lines of a unified diff come next.
    pub(super) fn names_files(&self) -> bool {
        self.peek().is_some_and(|line| line.starts_with("--- "))
            && self.ahead(1).is_some_and(|line| line.starts_with("+++ "))
    }
}
