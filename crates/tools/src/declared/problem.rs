//! Mistakes in a file.

use std::fmt;

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclarationProblem {
    /// The file.
    pub file: String,
    /// The line, from 1; `None` if the mistake concerns the whole file.
    pub line: Option<u64>,
    /// The field, and the expected value.
    pub message: String,
}

impl fmt::Display for DeclarationProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// All mistakes in the declarations, one per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DeclarationError {
    problems: Vec<DeclarationProblem>,
}

impl DeclarationError {
    pub(super) fn new(mut problems: Vec<DeclarationProblem>) -> Self {
        problems.sort_by(|left, right| (&left.file, left.line).cmp(&(&right.file, right.line)));
        Self { problems }
    }

    /// Returns the mistakes, by file and line.
    pub fn problems(&self) -> &[DeclarationProblem] {
        &self.problems
    }
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{problem}")?;
        }
        Ok(())
    }
}
