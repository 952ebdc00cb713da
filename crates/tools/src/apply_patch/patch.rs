//! What a patch says, file by file.

/// A longer patch is refused.
pub(super) const MAX_BYTES: usize = 2_000_000;
/// One that touches more files, too.
pub(super) const MAX_FILES: usize = 200;

/// What is to be done with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePatch {
    /// As it was written.
    pub(super) path: String,
    /// The line of the patch where it begins, from 1.
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A new file with this content.
    Add(String),
    /// The file goes. With hunks, these are all of its content.
    Delete(Vec<Hunk>),
    /// The file changes, moves, or both.
    Update {
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// Every path it touches.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let moved = match &self.action {
            Action::Update { move_to, .. } => move_to.as_deref(),
            Action::Add(_) | Action::Delete(_) => None,
        };
        std::iter::once(self.path.as_str()).chain(moved)
    }
}

/// Lines that belong together, and where they should be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// The line of the patch where it begins, from 1.
    pub(super) line: usize,
    /// The index of the line of the file where it should begin.
    pub(super) hint: Option<usize>,
    /// Lines that come somewhere before it, each after the one before.
    pub(super) anchors: Vec<String>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether the file ends with it.
    pub(super) at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkLine {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// No line break follows.
    pub(super) bare: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Context,
    Removed,
    Added,
}

impl HunkLine {
    /// A line of a hunk by its first letter. An empty one is an empty line whose blank somebody cut off.
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
    /// The lines as they are in the file before.
    pub(super) fn old(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != Kind::Added)
    }

    /// Marks the last line as one that no line break follows.
    pub(super) fn no_break(&mut self) {
        if let Some(last) = self.lines.last_mut() {
            last.bare = true;
        }
    }
}

/// Why a patch cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("The patch has {0} bytes; at most {MAX_BYTES} are taken. Send it in parts.")]
    TooLarge(usize),
    #[error("The patch touches more than {MAX_FILES} files. Send it in parts.")]
    TooManyFiles,
    #[error(
        "This is no patch: it has neither `*** Begin Patch` nor a unified diff (`--- a/x`, `+++ b/x`, `@@ … @@`)."
    )]
    None,
    #[error("Line {line} of the patch: {problem}")]
    At { line: usize, problem: Problem },
}

/// What is wrong with one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("expected `*** Add File: `, `*** Update File: ` or `*** Delete File: `, found `{0}`.")]
    NoHeader(String),
    #[error("a path is missing.")]
    NoPath,
    #[error("lines of a new file begin with `+`, found `{0}`.")]
    NotAdded(String),
    #[error("lines of a hunk begin with a blank, `-` or `+`, found `{0}`.")]
    NotOfHunk(String),
    #[error("the hunk has no lines.")]
    EmptyHunk,
    #[error("nothing is said to be changed in {0}.")]
    Nothing(String),
    #[error("a hunk before any `--- ` and `+++ ` lines.")]
    NoFile,
    #[error("binary patches are not taken; write the file with bash.")]
    Binary,
    #[error("copies are not taken; add the new file with its content.")]
    Copy,
    #[error("links and submodules are not taken; use bash.")]
    Special,
}

impl Problem {
    pub(super) fn at(self, line: usize) -> PatchError {
        PatchError::At { line, problem: self }
    }
}
