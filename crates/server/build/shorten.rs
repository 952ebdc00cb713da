//! Shortens the names that a script declares at its top level.
//!
//! There is no scope analysis: a name is left as it is if it also appears where it may be something else, such as a
//! property, a key, a method, or part of a template.

use std::collections::{HashMap, HashSet};

use super::squeeze::{Token, tokens};

/// Shortest name that is worth it.
const LEAST: usize = 4;

/// Replaces `names` by short ones, which begin with a dollar sign, wherever that is safe.
pub(crate) fn shorten<'a>(script: &str, names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<Token<'_>> = tokens(script).collect();
    let solid: Vec<&str> = all
        .iter()
        .filter(|token| !matches!(token, Token::Blank(_)))
        .map(|token| token.text())
        .collect();
    let known: HashSet<&str> = names.filter(|name| name.len() >= LEAST).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut unsafe_names: HashSet<&str> = HashSet::new();
    for (at, text) in solid.iter().enumerate() {
        if text.starts_with('`') {
            unsafe_names.extend(words(text));
        }
        if known.contains(text) {
            *counts.entry(text).or_default() += 1;
            if is_other(&solid, at) {
                unsafe_names.insert(text);
            }
        }
    }
    let mut ranked: Vec<(&str, usize)> = counts
        .into_iter()
        .filter(|(name, _)| !unsafe_names.contains(name))
        .collect();
    ranked.sort_by(|(one, first), (other, second)| second.cmp(first).then(one.cmp(other)));
    let short: HashMap<&str, String> = ranked
        .into_iter()
        .enumerate()
        .map(|(number, (name, _))| (name, brief(number)))
        .collect();
    let renamed = all.iter().map(|token| match token {
        Token::Word(word) => short.get(word).map_or(*word, String::as_str),
        other => other.text(),
    });
    renamed.collect()
}

/// Returns true if the piece at a place may be something else than a variable.
fn is_other(solid: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |place| solid[place]);
    let after = solid.get(at + 1).copied().unwrap_or_default();
    let in_list = matches!(before, "{" | ",");
    match (before, after) {
        ("." | "?." | "get" | "set" | "static", _) | (_, ":") => true,
        (_, "," | "}" | "=") => in_list,
        ("function", _) => false,
        (_, "(") => ends_before_body(solid, at + 1),
        _ => false,
    }
}

/// Returns true if the bracket that opens at a place is the parameter list of a method: a body follows it.
fn ends_before_body(solid: &[&str], open: usize) -> bool {
    let mut depth = 0_usize;
    for (place, text) in solid.iter().enumerate().skip(open) {
        match *text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return solid.get(place + 1) == Some(&"{");
        }
    }
    false
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$')
}

/// Returns the name with this number.
fn brief(mut number: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut name = String::from("$");
    loop {
        name.push(char::from(LETTERS[number % LETTERS.len()]));
        number /= LETTERS.len();
        if number == 0 {
            return name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &str) {
        let names = ["helper", "drawing", "thing"];
        assert_eq!(shorten(script, names.into_iter()), expected);
    }

    #[test]
    fn variables_are_renamed() {
        check(
            "function helper(a){return a}helper(helper(1))",
            "function $a(a){return a}$a($a(1))",
        );
        check("const thing=1;if(thing)drawing(thing)", "const $a=1;if($a)$b($a)");
        check("class thing{}new thing", "class $a{}new $a");
    }

    #[test]
    fn other_meanings_are_kept() {
        for kept in [
            "const helper=1;x.helper",
            "const helper=1;x?.helper",
            "const helper=1;f({helper})",
            "const helper=1;f({a,helper,b})",
            "const helper=1;({helper:2})",
            "const helper=1;const {helper=2}=x",
            "const helper=1;class A{helper(){}}",
            "const helper=1;const A={async helper(x){}}",
            "const helper=1;`a ${helper} b`",
        ] {
            check(kept, kept);
        }
        check("const helper=1;'helper'", "const $a=1;'helper'");
    }
}
