//! Names of files and modules: a name describes the contents.

use syn::visit::{self, Visit};

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::rust_file::RustFile;

/// Words that do not describe any contents.
const EMPTY_WORDS: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(file).collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    let parts = file
        .path
        .split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let of_path =
        parts.filter_map(|part| Some(Finding::new(Rule::Name, &file.path, 1, objection(part)?).about(part)));
    let mut modules = Modules {
        path: &file.path,
        findings: of_path.collect(),
    };
    modules.visit_file(&file.syntax);
    modules.findings
}

fn objection(name: &str) -> Option<String> {
    if name == "mod" {
        return Some("modules are `x.rs` beside `x/`, not `x/mod.rs`".to_owned());
    }
    let empty = name.split('_').find(|word| EMPTY_WORDS.contains(word));
    if let Some(word) = empty {
        return Some(format!(
            "`{word}` in `{name}` does not describe anything; name the contents"
        ));
    }
    let last = name.rsplit('_').next().unwrap_or_default();
    let is_version = last != name
        && last
            .strip_prefix('v')
            .is_some_and(|rest| rest.parse::<u32>().is_ok());
    is_version.then(|| format!("`{name}` is a second version; replace the first one"))
}

/// Modules written inside a file.
struct Modules<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Modules<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        // A module without a body is a file; its path was checked above.
        if let (Some(message), Some(_)) = (objection(&name), &module.content) {
            let line = module.ident.span().start().line;
            self.findings
                .push(Finding::new(Rule::Name, self.path, line, message).about(name));
        }
        visit::visit_item_mod(self, module);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| format!("{} {}", finding.line, finding.item))
            .collect()
    }

    #[test]
    fn file_names_say_what_is_inside() {
        for path in [
            "crates/core/src/turn.rs",
            "crates/core/src/turn/ask.rs",
            "crates/store/src/commonmark.rs",
        ] {
            assert_eq!(findings(path, ""), [""; 0]);
        }
        assert_eq!(findings("crates/core/src/utils.rs", ""), ["1 utils"]);
        assert_eq!(findings("crates/core/src/common/text.rs", ""), ["1 common"]);
        assert_eq!(
            findings("crates/core/src/session_manager.rs", ""),
            ["1 session_manager"]
        );
        assert_eq!(findings("crates/core/src/turn/mod.rs", ""), ["1 mod"]);
        assert_eq!(findings("crates/core/src/turn_v2.rs", ""), ["1 turn_v2"]);
    }

    #[test]
    fn inline_modules_do_too() {
        assert_eq!(findings("crates/core/src/turn.rs", "mod ask {}"), [""; 0]);
        assert_eq!(
            findings("crates/core/src/turn.rs", "\nmod helpers {}"),
            ["2 helpers"]
        );
    }
}
