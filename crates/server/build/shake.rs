//! Leaves out the declarations of a vendored module that nothing of ours reaches.

use std::collections::HashSet;

use super::squeeze::{Token, tokens};

/// One declaration, or one assignment to a property of it.
struct Item<'a> {
    name: &'a str,
    /// True for a part of a `var` statement.
    is_variable: bool,
    text: &'a str,
    words: HashSet<&'a str>,
}

/// Returns the part of a minified module that `roots` need. A declaration that is not needed is left out with its
/// initial value, so computing that value must have no effect of its own.
pub(crate) fn shake(text: &str, roots: &[&str]) -> String {
    let items: Vec<Item<'_>> = statements(text).into_iter().flat_map(items).collect();
    let declared: HashSet<&str> = items.iter().map(|item| item.name).collect();
    let mut needed: HashSet<&str> = HashSet::from([""]);
    let mut open: Vec<&str> = roots.to_vec();
    // Statements of no name have an effect: they and what they need stay.
    open.push("");
    while let Some(name) = open.pop() {
        for word in items
            .iter()
            .filter(|item| item.name == name)
            .flat_map(|item| &item.words)
        {
            if declared.contains(word) && needed.insert(word) {
                open.push(word);
            }
        }
        needed.insert(name);
    }
    let mut out = String::new();
    for item in items.iter().filter(|item| needed.contains(item.name)) {
        out.push_str(if item.is_variable { "var " } else { "" });
        out.push_str(item.text);
        out.push_str(if item.is_variable { ";" } else { "" });
    }
    out
}

/// Splits a module into the statements of its top level.
fn statements(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    for token in tokens(text) {
        let is_first = start == at;
        at += token.text().len();
        match token {
            Token::Blank(_) if is_first => start = at,
            Token::Other("(" | "[" | "{") => depth += 1,
            Token::Other(")" | "]" | "}") => depth -= 1,
            _ => {}
        }
        let statement = &text[start..at];
        let is_end = match token {
            Token::Other(";") => true,
            Token::Other("}") => statement.starts_with("function") || statement.starts_with("class"),
            _ => false,
        };
        if depth == 0 && is_end {
            found.push(statement);
            start = at;
        }
    }
    found.push(text[start..].trim());
    found.retain(|statement| !statement.is_empty() && *statement != ";");
    found
}

/// Returns what a statement declares or changes.
fn items(statement: &str) -> Vec<Item<'_>> {
    if let Some(list) = statement.strip_prefix("var ") {
        let list = list.trim_end_matches(';');
        return parts(list).into_iter().map(|text| item(text, 0, true)).collect();
    }
    let is_declared = statement.starts_with("function ") || statement.starts_with("class ");
    vec![item(statement, usize::from(is_declared), false)]
}

/// Makes an item whose name is the word at `place`; a text that starts with no word has no name.
fn item(text: &str, place: usize, is_variable: bool) -> Item<'_> {
    let all: Vec<Token<'_>> = tokens(text).collect();
    let solid = all.iter().filter(|token| !matches!(token, Token::Blank(_)));
    let name = match solid.clone().nth(place) {
        Some(Token::Word(name)) => *name,
        _ => "",
    };
    let (mut words, mut last) = (HashSet::new(), "");
    for token in solid {
        match token {
            Token::Word(word) if last != "." && last != "?." => {
                words.insert(*word);
            }
            // An expression in a template may use any of its words.
            Token::Quoted(quoted) if quoted.starts_with('`') && quoted.contains("${") => {
                words.extend(
                    quoted.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$'),
                );
            }
            _ => {}
        }
        last = token.text();
    }
    Item {
        name,
        is_variable,
        text,
        words,
    }
}

/// Splits a list at the commas that are in no bracket.
fn parts(list: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    for token in tokens(list) {
        match token {
            Token::Other("(" | "[" | "{") => depth += 1,
            Token::Other(")" | "]" | "}") => depth -= 1,
            Token::Other(",") if depth == 0 => {
                found.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += token.text().len();
    }
    found.push(&list[start..]);
    found
}

#[cfg(test)]
mod tests {
    use super::shake;

    #[test]
    fn only_what_is_needed_stays() {
        let module = "function a(x){return b(x)+`${c}`}function b(){return/}[w]/.test('d;')}var c=1,d={e:[1,2]};class F{g=a}\nvar used=a,other=F;F.h=d;";
        assert_eq!(
            shake(module, &["used"]),
            "function a(x){return b(x)+`${c}`}function b(){return/}[w]/.test('d;')}var c=1;var used=a;"
        );
        assert!(shake(module, &["other"]).ends_with("class F{g=a}var other=F;F.h=d;"));
    }

    #[test]
    fn properties_are_no_references() {
        assert_eq!(shake("var a=x.b?.c,b=1,c=2;", &["a"]), "var a=x.b?.c;");
    }

    #[test]
    fn statements_without_a_name_stay() {
        assert_eq!(shake("var a=1,b=2;(()=>a)();", &[]), "var a=1;(()=>a)();");
    }
}
