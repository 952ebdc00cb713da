//! A parsed patch, file by file.

/// Maximum size of a patch in bytes.
pub(super) const MAX_BYTES: usize = 2_000_000;
/// Maximum number of files in a patch.
pub(super) const MAX_FILES: usize = 200;

/// Change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    /// Path as written.
    pub(super) path: String,
    /// Line of the patch where the section starts, from 1.
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Creates a file with this content.
    Add(String),
    /// Deletes the file. Hunks, if present, are its entire content.
    Delete(Vec<Hunk>),
    /// Changes the file, moves it, or both.
    Update {
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// Returns every path that the change touches.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let moved = match &self.action {
            Action::Update { move_to, .. } => move_to.as_deref(),
            Action::Add(_) | Action::Delete(_) => None,
        };
        std::iter::once(self.path.as_str()).chain(moved)
    }
}

/// Adjacent lines, and their expected place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// Line of the patch where the hunk starts, from 1.
    pub(super) line: usize,
    /// Expected index of its first line in the file.
    pub(super) hint: Option<usize>,
    /// Lines that come before the hunk, each after the previous one.
    pub(super) anchors: Vec<String>,
    pub(super) lines: Vec<HunkLine>,
    /// True if the hunk is at the end of the file.
    pub(super) at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkLine {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// True if no line break follows.
    pub(super) bare: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Context,
    Removed,
    Added,
}

impl HunkLine {
    /// Parses a line of a hunk by its first character. An empty line counts as one that lost its leading
    /// blank.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut letters = line.chars();
        let kind = match letters.next() {
            None | Some(' ') => Kind::Context,
            Some('-') => Kind::Removed,
            Some('+') => Kind::Added,
            Some(_) => return None,
        };
        Some(Self {
            kind,
            text: letters.as_str().to_owned(),
            bare: false,
        })
    }
}

impl Hunk {
    /// Returns the lines as they are in the old file.
    pub(super) fn old(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != Kind::Added)
    }

    /// Marks the last line as having no line break.
    pub(super) fn no_break(&mut self) {
        if let Some(last) = self.lines.last_mut() {
            last.bare = true;
        }
    }
}

/// Reason a patch cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("The patch has {0} bytes; at most {MAX_BYTES} are allowed. Send it in parts.")]
    TooLarge(usize),
    #[error("The patch touches more than {MAX_FILES} files. Send it in parts.")]
    TooManyFiles,
    #[error(
        "This is not a patch: it has neither `*** Begin Patch` nor a unified diff (`--- a/x`, `+++ b/x`, `@@ … @@`)."
    )]
    None,
    #[error("Line {line} of the patch: {problem}")]
    At { line: usize, problem: Problem },
}

/// Problem with one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `, found `{0}`.")]
    NoHeader(String),
    #[error("a path is missing.")]
    NoPath,
    #[error("lines of a new file start with `+`, found `{0}`.")]
    NotAdded(String),
    #[error("lines of a hunk start with a blank, `-` or `+`, found `{0}`.")]
    NotOfHunk(String),
    #[error("the hunk has no lines.")]
    EmptyHunk,
    #[error("no change is given for {0}.")]
    Nothing(String),
    #[error("a hunk before any `--- ` and `+++ ` lines.")]
    NoFile,
    #[error("binary patches are not supported; write the file with bash.")]
    Binary,
    #[error("copies are not supported; add the new file with its content.")]
    Copy,
    #[error("links and submodules are not supported; use bash.")]
    Special,
}

impl Problem {
    pub(super) fn at(self, line: usize) -> PatchError {
        PatchError::At { line, problem: self }
    }
}
