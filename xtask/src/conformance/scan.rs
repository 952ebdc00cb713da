//! Finds tests that name requirements. Reads lines, not syntax, because a test may be inside `proptest!`.

use super::register::Register;
use crate::repo::TextFile;

/// A test and the requirements in its comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedTest {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) ids: Vec<String>,
}

/// Returns the tests in a file that name a requirement.
pub(crate) fn tests(file: &TextFile, register: &Register) -> Vec<NamedTest> {
    // The tests of this tool use made-up requirements.
    let found = if file.path.starts_with("xtask/") {
        Vec::new()
    } else if file.path.ends_with(".rs") {
        rust(&file.text)
    } else if file.path.ends_with(".py") && file.path.split('/').any(|part| part == "tests") {
        python(&file.text)
    } else {
        Vec::new()
    };
    let named = found.into_iter().map(|Found { line, name, comment }| {
        let mut ids: Vec<String> = comment.iter().flat_map(|line| ids(line, register)).collect();
        ids.sort();
        ids.dedup();
        NamedTest {
            path: file.path.clone(),
            line,
            name,
            ids,
        }
    });
    named.filter(|test| !test.ids.is_empty()).collect()
}

/// Returns the ids at the start of a comment line. An id in the middle of a sentence is only a mention.
fn ids(line: &str, register: &Register) -> Vec<String> {
    let words = line
        .split([' ', ',', '(', ')', ':', '.'])
        .filter(|word| !word.is_empty());
    // A scenario number contains a dot.
    let aliases = line
        .split([' ', ',', '(', ')', ':'])
        .filter(|word| !word.is_empty());
    let leading = |words: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        words
            .map(|word| register.ids(word))
            .take_while(|ids| !ids.is_empty())
            .flatten()
            .collect()
    };
    [leading(&mut { words }), leading(&mut { aliases })].concat()
}

/// A test function with the lines of its comment, without comment markers.
struct Found {
    line: usize,
    name: String,
    comment: Vec<String>,
}

fn rust(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut comment = Vec::new();
    let mut is_test = false;
    let mut open_brackets = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if open_brackets > 0 || line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            open_brackets += line.matches('[').count();
            open_brackets -= line.matches(']').count().min(open_brackets);
        } else if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim().to_owned());
        } else if !line.starts_with("//") {
            let comment = std::mem::take(&mut comment);
            if let (Some(name), true) = (name_after(line, "fn "), std::mem::take(&mut is_test)) {
                found.push(Found {
                    line: index + 1,
                    name,
                    comment,
                });
            }
        }
    }
    found
}

fn python(text: &str) -> Vec<Found> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut above = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(text) = line.strip_prefix('#') {
            above.push(text.trim().to_owned());
        } else if let Some(name) = name_after(line, "def ").filter(|name| name.starts_with("test")) {
            let mut comment = std::mem::take(&mut above);
            comment.extend(docstring(lines.get(index..).unwrap_or_default()));
            found.push(Found {
                line: index + 1,
                name,
                comment,
            });
        } else if !line.starts_with('@') {
            above.clear();
        }
    }
    found
}

/// Returns the docstring of the function that starts on the first line.
fn docstring(lines: &[&str]) -> Vec<String> {
    let signature = lines
        .iter()
        .position(|line| line.ends_with(':'))
        .unwrap_or(lines.len());
    let body = lines
        .iter()
        .skip(signature + 1)
        .skip_while(|line| line.is_empty());
    let mut text = Vec::new();
    for (index, line) in body.enumerate() {
        let start = line.strip_prefix("\"\"\"");
        if index == 0 && start.is_none() {
            break;
        }
        let line = start.unwrap_or(line);
        text.push(line.trim_end_matches('"').trim().to_owned());
        if line.ends_with("\"\"\"") {
            break;
        }
    }
    text
}

/// Returns the name in `pub async fn name(…)`, if only other keywords precede the keyword.
fn name_after(line: &str, keyword: &str) -> Option<String> {
    let (before, after) = line.split_once(keyword)?;
    let only_keywords = before
        .split_whitespace()
        .all(|word| matches!(word, "pub" | "async" | "pub(crate)"));
    let name: String = after
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    (only_keywords && !name.is_empty()).then_some(name)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
