//! Unified diffs, as `diff -u` and git write them and as models remember them.

use super::envelope::shown;
use super::names::{file_name, git_names, stripped};
use super::parse::{Place, Span, place};
use super::patch::{Action, FilePatch, Hunk, HunkLine, Kind, PatchError, Problem};
use super::source::Source;

/// Name of a missing file: the other side is new or deleted.
const NOTHING: &str = "/dev/null";

/// Information so far about one file.
#[derive(Default)]
struct Draft {
    line: usize,
    git: Option<(String, String)>,
    named: Option<(String, String)>,
    renamed: (Option<String>, Option<String>),
    is_new: bool,
    is_gone: bool,
    hunks: Vec<Hunk>,
}

pub(super) fn parse(source: &mut Source<'_>) -> Result<Vec<FilePatch>, PatchError> {
    let mut patches = Vec::new();
    let mut draft: Option<Draft> = None;
    // After a mail signature, everything up to the next file is ignored.
    let mut signed = false;
    while let Some(line) = source.peek() {
        let number = source.number();
        if let Some(names) = line.strip_prefix("diff --git ") {
            finish(&mut patches, draft.take())?;
            signed = false;
            draft = Some(Draft {
                line: number,
                git: git_names(names),
                ..Draft::default()
            });
            source.next();
        } else if source.names_files() {
            signed = false;
            let is_open = |draft: &Draft| draft.named.is_none() && draft.hunks.is_empty();
            if !draft.as_ref().is_some_and(is_open) {
                finish(&mut patches, draft.take())?;
            }
            let draft = draft.get_or_insert_with(|| Draft {
                line: number,
                ..Draft::default()
            });
            let old = file_name(source.next().unwrap_or_default());
            let new = file_name(source.next().unwrap_or_default());
            draft.named = Some((old, new));
        } else if line.starts_with("@@") {
            let draft = draft.as_mut().filter(|draft| draft.named.is_some());
            let draft = draft.ok_or_else(|| Problem::NoFile.at(number))?;
            draft.hunks.push(hunk(source)?);
        } else {
            match &mut draft {
                Some(draft) if draft.hunks.is_empty() => draft.header(line, number)?,
                _ if is_signature(line) => signed = true,
                // A hunk line outside any hunk. It must not be dropped silently.
                Some(_) if !signed && line.starts_with([' ', '+', '-']) && !line.trim().is_empty() => {
                    return Err(Problem::NotOfHunk(shown(line)).at(number));
                }
                _ => {}
            }
            source.next();
        }
    }
    finish(&mut patches, draft)?;
    Ok(patches)
}

fn is_signature(line: &str) -> bool {
    line == "-- " || line == "--"
}

fn finish(patches: &mut Vec<FilePatch>, draft: Option<Draft>) -> Result<(), PatchError> {
    if let Some(draft) = draft {
        patches.push(draft.finish()?);
    }
    Ok(())
}

impl Draft {
    /// Parses a line between the file names and the hunks.
    fn header(&mut self, line: &str, number: usize) -> Result<(), PatchError> {
        let name = |rest: &str| Some(file_name(rest));
        if let Some(rest) = line.strip_prefix("rename from ") {
            self.renamed.0 = name(rest);
        } else if let Some(rest) = line.strip_prefix("rename to ") {
            self.renamed.1 = name(rest);
        } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
            return Err(Problem::Copy.at(number));
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(Problem::Binary.at(number));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            if mode.starts_with("12") || mode.starts_with("16") {
                return Err(Problem::Special.at(number));
            }
            self.is_new = true;
        } else if line.starts_with("deleted file mode ") {
            self.is_gone = true;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<FilePatch, PatchError> {
        let line = self.line;
        let has_git = self.git.is_some();
        let names = self.named.take().or_else(|| self.git.take());
        let (old, new) = match self.renamed {
            (Some(old), Some(new)) => (old, new),
            _ => names
                .map(|(old, new)| stripped(old, new))
                .ok_or_else(|| Problem::NoPath.at(line))?,
        };
        self.is_new |= old == NOTHING;
        self.is_gone |= new == NOTHING;
        let path = if self.is_gone || has_git && !self.is_new {
            old.clone()
        } else {
            new.clone()
        };
        if path.is_empty() || path == NOTHING {
            return Err(Problem::NoPath.at(line));
        }
        let action = if self.is_gone {
            Action::Delete(self.hunks)
        } else if self.is_new {
            Action::Add(content(&self.hunks)?)
        } else {
            // Without a git header, two names mean a file and its backup.
            let move_to = (has_git && new != old).then_some(new);
            if move_to.is_none() && self.hunks.is_empty() {
                return Err(Problem::Nothing(path).at(line));
            }
            Action::Update {
                move_to,
                hunks: self.hunks,
            }
        };
        Ok(FilePatch { path, line, action })
    }
}

fn content(hunks: &[Hunk]) -> Result<String, PatchError> {
    let mut content = String::new();
    for hunk in hunks {
        for line in &hunk.lines {
            if line.kind != Kind::Added {
                return Err(Problem::NotAdded(shown(&line.text)).at(hunk.line));
            }
            content.push_str(&line.text);
            if !line.bare {
                content.push('\n');
            }
        }
    }
    Ok(content)
}

/// Parses one hunk. Its numbers give its line count, but hand-written patches often have wrong counts.
fn hunk(source: &mut Source<'_>) -> Result<Hunk, PatchError> {
    let mut hunk = Hunk {
        line: source.number(),
        ..Hunk::default()
    };
    let mut left = None;
    match place(source.next().unwrap_or_default()) {
        Place::Lines(span) => {
            hunk.hint = Some(span.index());
            left = Some(span);
        }
        Place::Anchor(words) => hunk.anchors.push(words),
        Place::Nowhere => {}
    }
    let mut empty = 0;
    while let Some(line) = source.peek() {
        if line.starts_with('\\') {
            hunk.no_break();
            source.next();
            continue;
        }
        if ends(source, line, left) {
            break;
        }
        let Some(read) = HunkLine::read(line) else {
            if left.is_none_or(|left| left.is_open()) && !line.trim().is_empty() {
                return Err(Problem::NotOfHunk(shown(line)).at(source.number()));
            }
            break;
        };
        if let Some(left) = &mut left {
            left.take(read.kind);
        }
        empty = if line.is_empty() { empty + 1 } else { 0 };
        hunk.lines.push(read);
        source.next();
    }
    // Empty lines at the end belong to the hunk only if its count includes them.
    if left.is_none_or(|left| left.is_open()) {
        hunk.lines.truncate(hunk.lines.len().saturating_sub(empty));
    }
    if hunk.lines.is_empty() {
        return Err(Problem::EmptyHunk.at(hunk.line));
    }
    Ok(hunk)
}

/// Returns true if the hunk ends before this line.
fn ends(source: &Source<'_>, line: &str, left: Option<Span>) -> bool {
    if line.starts_with("@@") || line.starts_with("diff --git ") {
        return true;
    }
    let is_done = left.is_some_and(|left| !left.is_open());
    if is_done && (line.is_empty() || is_signature(line)) {
        return true;
    }
    // `--- x` may be a removed line that starts with two dashes.
    let is_counted = left.is_some_and(|left| (left.old, left.new) == (1, 1));
    let hunk_follows = source.ahead(2).is_none_or(|line| line.starts_with("@@"));
    source.names_files() && !is_counted && (is_done || hunk_follows)
}

impl Span {
    fn is_open(self) -> bool {
        self.old > 0 || self.new > 0
    }

    fn take(&mut self, kind: Kind) {
        if kind != Kind::Added {
            self.old = self.old.saturating_sub(1);
        }
        if kind != Kind::Removed {
            self.new = self.new.saturating_sub(1);
        }
    }
}
