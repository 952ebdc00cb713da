//! First words of doc comments: a noun or a verb, not a question word.

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::rust_file::{DocBlock, RustFile};

/// Words that describe a thing by a question about it, instead of naming it.
const QUESTION_WORDS: &[&str] = &[
    "what", "how", "why", "who", "where", "whether", "whoever", "whose", "which",
];

/// Folders of the workspace's packages.
const FOLDERS: &[&str] = &["crates/", "xtask/", "bench/"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_ours = |file: &&RustFile| FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    tree.rust.iter().filter(is_ours).flat_map(file).collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    let finding = |doc: &DocBlock| {
        let word = first_word(&doc.first_line);
        let is_question = QUESTION_WORDS.contains(&word.to_lowercase().as_str());
        is_question.then(|| {
            let message = format!(
                "the doc comment starts with `{word}`; start with the noun it describes, or with a verb (`Returns …`)"
            );
            Finding::new(Rule::DocComment, &file.path, doc.line, message).about(word)
        })
    };
    file.docs().iter().filter_map(finding).collect()
}

/// The first word of a line, without the markup before it. Code (`` `where` ``) is not a word.
fn first_word(line: &str) -> &str {
    let text = line.trim_start_matches(|letter: char| letter.is_whitespace() || "*_#>-".contains(letter));
    text.split(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_in(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| format!("{} {}", finding.line, finding.item))
            .collect()
    }

    fn findings(text: &str) -> Vec<String> {
        findings_in("crates/core/src/turn.rs", text)
    }

    #[test]
    fn a_doc_comment_starts_with_no_question_word() {
        assert_eq!(findings("/// Returns a turn.\nfn a() {}"), [""; 0]);
        for word in [
            "What", "How", "Why", "Who", "Where", "Whether", "Whoever", "Whose", "Which", "what",
        ] {
            let text = format!("/// {word} a turn is.\nfn a() {{}}");
            assert_eq!(findings(&text), [format!("1 {word}")]);
        }
        assert_eq!(findings("/// However, a turn.\nfn a() {}"), [""; 0]);
        assert_eq!(findings("/// `where` clauses.\nfn a() {}"), [""; 0]);
        assert_eq!(findings("/// **What** it is.\nfn a() {}"), ["1 What"]);
    }

    #[test]
    fn every_kind_of_doc_comment_is_read() {
        let text = "//! What it is.\n\n/// A turn.\nstruct A {\n    /// Where it starts.\n    a: u8,\n}\n\
                    enum B {\n    /// Who asked.\n    C,\n}\n/**\n * How it ends.\n */\nfn d() {}\n";
        assert_eq!(findings(text), ["1 What", "5 Where", "9 Who", "13 How"]);
        assert_eq!(
            findings("proptest! {\n    /// Whether it holds.\n    #[test]\n    fn a(b in 0..9) {}\n}"),
            ["2 Whether"]
        );
    }

    #[test]
    fn only_the_first_line_of_a_block_counts() {
        assert_eq!(
            findings("/// A turn, and\n/// what it did.\n///\n/// How it ends.\nfn a() {}"),
            [""; 0]
        );
        assert_eq!(findings("///\n/// What it did.\nfn a() {}"), ["2 What"]);
        assert_eq!(findings("// What it did.\nfn a() {}"), [""; 0]);
    }

    #[test]
    fn tests_and_tools_are_read_too() {
        let text = "/// What holds.\n#[test]\nfn a() {}";
        for path in [
            "crates/core/tests/suite.rs",
            "xtask/src/main.rs",
            "bench/src/main.rs",
        ] {
            assert_eq!(findings_in(path, text), ["1 What"]);
        }
        assert_eq!(findings_in("fuzz/fuzz_targets/edit.rs", text), [""; 0]);
    }
}
