//! The list of exceptions. Each entry has a reason and a finding that needs it.

use serde::Deserialize;

use super::finding::{Finding, Rule};
use super::tree::Tree;

const PATH: &str = "xtask/tidy-exceptions.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    exception: Vec<Exception>,
}

/// One entry. Covers every finding of its rule about its item in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    rule: Rule,
    path: String,
    /// Empty if the finding is about the whole file.
    #[serde(default)]
    item: String,
    /// Limit that applies instead, for rules with a limit.
    limit: Option<usize>,
    reason: String,
}

impl Exception {
    fn is_about(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.path == finding.path && self.item == finding.item
    }

    /// Returns true if the entry allows the finding.
    fn covers(&self, finding: &Finding) -> bool {
        self.is_about(finding)
            && finding
                .size
                .is_none_or(|size| self.limit.is_some_and(|limit| size <= limit))
    }
}

/// Removes the excepted findings and adds the problems of the list itself.
pub(crate) fn apply(tree: &Tree, findings: Vec<Finding>) -> Vec<Finding> {
    let text = tree.file(PATH).map_or("", |file| file.text.as_str());
    let list: List = match toml_edit::de::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            let message = format!("cannot parse the list: {}", error.message());
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            return [findings, vec![Finding::new(Rule::Exception, PATH, line, message)]].concat();
        }
    };
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim() == "[[exception]]");
    let lines = lines.map(|(index, _)| index + 1).chain(std::iter::repeat(1));
    let wrong = lines.zip(&list.exception).filter_map(|(line, exception)| {
        let message = objection(exception, &findings)?;
        Some(Finding::new(Rule::Exception, PATH, line, message))
    });
    let wrong: Vec<Finding> = wrong.collect();
    let excused = |finding: &Finding| list.exception.iter().any(|exception| exception.covers(finding));
    findings
        .into_iter()
        .filter(|finding| !excused(finding))
        .chain(wrong)
        .collect()
}

/// Returns the problem with an entry, if there is one.
fn objection(exception: &Exception, findings: &[Finding]) -> Option<String> {
    let Exception { rule, path, item, .. } = exception;
    let about = || findings.iter().filter(|finding| exception.is_about(finding));
    if about().next().is_none() {
        let what = if item.is_empty() {
            String::new()
        } else {
            format!(" `{item}`")
        };
        return Some(format!("{rule} for {path}{what} is not needed; delete the entry"));
    }
    if exception.reason.trim().is_empty() {
        return Some(format!(
            "{rule} for {path} has no reason; explain why the exception is justified"
        ));
    }
    if about().any(|finding| finding.size.is_some()) && exception.limit.is_none() {
        return Some(format!(
            "{rule} has a limit; set `limit` to the one that applies to {path}"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[exception]]\nrule = \"function-length\"\npath = \"a.rs\"\nitem = \"flags\"\nlimit = 90\n\
                         reason = \"a flat list\"\n";

    fn long(size: usize) -> Finding {
        Finding::new(Rule::FunctionLength, "a.rs", 7, "too long")
            .about("flags")
            .sized(size)
    }

    fn left(list: &str, findings: Vec<Finding>) -> Vec<String> {
        let tree = Tree::of(&[(PATH, list)]);
        apply(&tree, findings)
            .iter()
            .map(|finding| format!("{}:{}", finding.rule, finding.line))
            .collect()
    }

    #[test]
    fn an_entry_excuses_its_finding_up_to_its_limit() {
        assert_eq!(left("", vec![long(85)]), ["function-length:7"]);
        assert_eq!(left(ENTRY, vec![long(85)]), [""; 0]);
        assert_eq!(left(ENTRY, vec![long(91)]), ["function-length:7"]);
        let other = Finding {
            item: "main".to_owned(),
            ..long(85)
        };
        assert_eq!(left(ENTRY, vec![long(85), other]), ["function-length:7"]);
    }

    #[test]
    fn an_entry_without_need_is_a_finding() {
        assert_eq!(left(ENTRY, vec![]), ["exception:1"]);
        assert_eq!(left(&format!("# Why.\n\n{ENTRY}"), vec![]), ["exception:3"]);
    }

    #[test]
    fn an_entry_needs_a_reason_and_a_limit() {
        assert_eq!(
            left(&ENTRY.replace("a flat list", " "), vec![long(85)]),
            ["exception:1"]
        );
        assert_eq!(
            left(&ENTRY.replace("limit = 90\n", ""), vec![long(85)]),
            ["function-length:7", "exception:1"]
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_excuses_nothing() {
        let unknown = ENTRY.replace("function-length", "function-beauty");
        assert_eq!(
            left(&unknown, vec![long(85)]),
            ["function-length:7", "exception:2"]
        );
    }
}
