//! Patches between `*** Begin Patch` and `*** End Patch`.

use super::parse::{Place, place};
use super::patch::{Action, FilePatch, Hunk, HunkLine, PatchError, Problem};
use super::source::Source;

pub(super) const BEGIN: &str = "*** Begin Patch";

/// A line about the patch rather than part of its content.
enum Marker<'a> {
    Begin,
    End,
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    MoveTo(&'a str),
    EndOfFile,
}

impl<'a> Marker<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let text = line.strip_prefix("*** ")?.trim();
        let path = |name: &str| text.strip_prefix(name).map(str::trim);
        match text {
            "Begin Patch" => Some(Self::Begin),
            "End Patch" => Some(Self::End),
            "End of File" => Some(Self::EndOfFile),
            _ => path("Add File:")
                .map(Self::Add)
                .or_else(|| path("Delete File:").map(Self::Delete))
                .or_else(|| path("Update File:").map(Self::Update))
                .or_else(|| path("Move to:").map(Self::MoveTo)),
        }
    }
}

/// Returns true if a line starts the section of a file.
pub(super) fn is_header(line: &str) -> bool {
    matches!(
        Marker::read(line),
        Some(Marker::Add(_) | Marker::Delete(_) | Marker::Update(_))
    )
}

pub(super) fn parse(source: &mut Source<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut patches = Vec::new();
    while let Some(text) = source.peek() {
        let line = source.number();
        source.next();
        let (path, action) = match Marker::read(text) {
            Some(Marker::Add(path)) => (path, Action::Add(content(source)?)),
            Some(Marker::Delete(path)) => (path, Action::Delete(Vec::new())),
            Some(Marker::Update(path)) => (path, update(source, path, line)?),
            Some(Marker::Begin) => continue,
            Some(Marker::End) => {
                skip_to_next(source);
                continue;
            }
            None if text.trim().is_empty() || text.trim() == BEGIN => continue,
            Some(Marker::MoveTo(_) | Marker::EndOfFile) | None => {
                return Err(Problem::NoHeader(shown(text)).at(line));
            }
        };
        if path.is_empty() {
            return Err(Problem::NoPath.at(line));
        }
        patches.push(FilePatch {
            path: path.to_owned(),
            line,
            action,
        });
    }
    Ok(patches)
}

/// Skips text after the end marker, which is not part of the patch, up to the next patch if there is one.
fn skip_to_next(source: &mut Source<'_>) {
    while source.peek().is_some_and(|line| line.trim() != BEGIN) {
        source.next();
    }
}

fn content(source: &mut Source<'_>) -> Result<String, PatchError> {
    let mut content = String::new();
    // Empty lines at the end separate this file from the next.
    let mut empty = 0;
    while let Some(line) = source.peek() {
        if Marker::read(line).is_some() {
            if matches!(Marker::read(line), Some(Marker::EndOfFile)) {
                source.next();
            }
            break;
        }
        let number = source.number();
        source.next();
        if line.is_empty() {
            empty += 1;
            continue;
        }
        let Some(text) = line.strip_prefix('+') else {
            return Err(Problem::NotAdded(shown(line)).at(number));
        };
        content.extend(std::iter::repeat_n('\n', empty));
        empty = 0;
        content.push_str(text);
        content.push('\n');
    }
    Ok(content)
}

fn update(source: &mut Source<'_>, path: &str, line: usize) -> Result<Action, PatchError> {
    let mut move_to = None;
    if let Some(Marker::MoveTo(to)) = source.peek().and_then(Marker::read) {
        if to.is_empty() {
            return Err(Problem::NoPath.at(source.number()));
        }
        move_to = Some(to.to_owned()).filter(|to| to != path);
        source.next();
    }
    // Some models name the files a second time.
    if source.names_files() {
        source.next();
        source.next();
    }
    let hunks = hunks(source)?;
    if hunks.is_empty() && move_to.is_none() {
        return Err(Problem::Nothing(path.to_owned()).at(line));
    }
    Ok(Action::Update { move_to, hunks })
}

fn hunks(source: &mut Source<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut draft: Option<Draft> = None;
    while let Some(line) = source.peek() {
        let number = source.number();
        match Marker::read(line) {
            Some(Marker::EndOfFile) => {
                if let Some(mut done) = draft.take() {
                    done.hunk.at_end = true;
                    hunks.push(done.finish()?);
                }
            }
            Some(_) => break,
            None if line.starts_with("@@") => {
                // Several of them in a row narrow the place down.
                if let Some(done) = draft.take_if(|draft| draft.has_lines()) {
                    hunks.push(done.finish()?);
                }
                draft.get_or_insert_with(|| Draft::new(number)).at(line);
            }
            None if line.starts_with('\\') => {
                if let Some(draft) = &mut draft {
                    draft.hunk.no_break();
                }
            }
            None if line.is_empty() && draft.is_none() => {}
            None => {
                let draft = draft.get_or_insert_with(|| Draft::new(number));
                draft.add(line, number)?;
            }
        }
        source.next();
    }
    if let Some(done) = draft {
        hunks.push(done.finish()?);
    }
    Ok(hunks)
}

/// A hunk being parsed.
struct Draft {
    hunk: Hunk,
    /// Number of empty lines at the end, which may only separate this hunk from the next.
    empty: usize,
}

impl Draft {
    fn new(line: usize) -> Self {
        let hunk = Hunk {
            line,
            ..Hunk::default()
        };
        Self { hunk, empty: 0 }
    }

    fn has_lines(&self) -> bool {
        !self.hunk.lines.is_empty()
    }

    fn at(&mut self, line: &str) {
        match place(line) {
            Place::Lines(span) => self.hunk.hint = Some(span.index()),
            Place::Anchor(words) => self.hunk.anchors.push(words),
            Place::Nowhere => {}
        }
    }

    fn add(&mut self, line: &str, number: usize) -> Result<(), PatchError> {
        let read = HunkLine::read(line).ok_or_else(|| Problem::NotOfHunk(shown(line)).at(number))?;
        self.empty = if line.is_empty() { self.empty + 1 } else { 0 };
        self.hunk.lines.push(read);
        Ok(())
    }

    fn finish(mut self) -> Result<Hunk, PatchError> {
        let kept = self.hunk.lines.len().saturating_sub(self.empty);
        self.hunk.lines.truncate(kept);
        if self.hunk.lines.is_empty() {
            return Err(Problem::EmptyHunk.at(self.hunk.line));
        }
        Ok(self.hunk)
    }
}

/// Returns the start of a line, for a message.
pub(super) fn shown(line: &str) -> String {
    let (text, cut) = windlass_core::text::shorten(line.trim_end(), 60);
    format!("{text}{}", if cut > 0 { "…" } else { "" })
}
