//! Texts that bash evaluates later: as arithmetic, as an index or as a list, which runs the substitutions in them.

/// Findings about such texts in one command line.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// True if variables are evaluated as arithmetic, which runs the substitutions in their values.
    pub(super) evaluates: bool,
    /// True if a word that is only known at run time may be an operator that does so.
    pub(super) may_evaluate: bool,
    /// True if some quoted text looks like code for an array index.
    holds_code: bool,
    /// True if some quoted text has an index with a substitution.
    holds_index: bool,
    /// True if a variable is given a text that looks like a substitution.
    assigns_code: bool,
}

impl Evaluation {
    /// Returns true if a text of the command line may run as code.
    pub(super) fn runs_code(&self) -> bool {
        self.evaluates && (self.holds_code || self.assigns_code) || self.may_evaluate && self.holds_index
    }

    /// Records a text that could be code if it were evaluated.
    pub(super) fn note_literal(&mut self, text: &str) {
        let index = text.split_once('[').map(|(_, index)| index);
        self.holds_index |= index.is_some_and(is_code);
        self.holds_code |= index.is_some_and(|index| {
            is_code(index) || index.contains("${") || index.ends_with('$') || index.contains("$'")
        });
    }

    /// Records the known text of a word that may be an assignment: its value may be put together to an index, and some
    /// built-ins evaluate it as a list.
    pub(super) fn note_assigned(&mut self, text: &str) {
        self.assigns_code |= is_code(text);
    }
}

/// Returns true if a text would run something if it were expanded.
fn is_code(text: &str) -> bool {
    let signs = ["`", "$(", "<(", ">(", "$[", "$\\\n", "<\\\n", ">\\\n"];
    signs.iter().any(|sign| text.contains(sign))
}
