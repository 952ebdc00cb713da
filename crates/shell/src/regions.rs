//! Checks a command line character by character: wherever bash expands or runs something, the syntax tree must have a node.
//! Inside `${…}`, arithmetic and indexes, quotes follow other rules than the tree assumes, so they hide nothing there.

use std::ops::Range;

use tree_sitter::Node;

use super::tree::{children, text_of};

/// Stands for a part that is read on its own. A text has no control characters, so it cannot be mistaken.
const PART: char = '\u{1}';
/// Stands for a text in double quotes.
const STRING: char = '\u{2}';

/// A stretch of text in which the same characters are special.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    /// Words and signs outside quotes.
    Code,
    /// The inside of double quotes.
    Quoted,
    /// The body of a here-document that bash expands.
    Document,
    /// The inside of `${…}`, or the index of an array.
    Parameter,
    /// The inside of `$((…))`, `$[…]`, `((…))` and the head of `for ((…))`.
    Arithmetic,
    /// A regular expression or a pattern that the tree does not look into.
    Pattern,
}

/// A part of a region.
struct Part<'t> {
    range: Range<usize>,
    sign: char,
    inside: Option<Inside<'t>>,
}

/// The inside of a part, if it has to be read as well.
struct Inside<'t> {
    region: Region,
    range: Range<usize>,
    nodes: Vec<Node<'t>>,
}

/// Checks the whole text of a tree. The error says what is unclear.
pub(super) fn check(root: Node<'_>, text: &str) -> Result<(), &'static str> {
    Reading { text }.region(&Inside {
        region: Region::Code,
        range: 0..text.len(),
        nodes: children(root),
    })
}

struct Reading<'s> {
    text: &'s str,
}

impl Reading<'_> {
    fn region(&self, inside: &Inside<'_>) -> Result<(), &'static str> {
        let mut parts = Vec::new();
        for node in &inside.nodes {
            self.collect(inside.region, *node, &mut parts)?;
        }
        parts.sort_by_key(|part| part.range.start);
        read(inside.region, &self.own(inside, &parts))?;
        parts
            .iter()
            .filter_map(|part| part.inside.as_ref())
            .try_for_each(|inside| self.region(inside))
    }

    /// Returns the text of a region with one sign for each of its parts.
    fn own(&self, inside: &Inside<'_>, parts: &[Part<'_>]) -> String {
        let mut own = String::new();
        let mut at = inside.range.start;
        for part in parts {
            own.push_str(self.text.get(at..part.range.start).unwrap_or_default());
            own.push(part.sign);
            at = at.max(part.range.end);
        }
        own.push_str(self.text.get(at..inside.range.end).unwrap_or_default());
        own
    }

    /// Collects the parts of a region in a node.
    fn collect<'t>(
        &self,
        region: Region,
        node: Node<'t>,
        parts: &mut Vec<Part<'t>>,
    ) -> Result<(), &'static str> {
        if node.kind() == "process_substitution" && region != Region::Code {
            // In double quotes it is text, and the quotes in it are others.
            return Err(EXPANDS);
        }
        let found = match self.expanding(node)? {
            None if region == Region::Code => self.quoting(node)?,
            found => found,
        };
        if let Some(part) = found {
            parts.push(part);
            return Ok(());
        }
        let mut nodes = children(node);
        if node.kind() == "c_style_for_statement" {
            let part = head_of_loop(&mut nodes).ok_or("the head of a loop is unclear")?;
            parts.push(part);
        }
        match node.kind() {
            "heredoc_redirect" => self.document(&mut nodes, parts),
            "array" => {
                let text = text_of(node, self.text);
                let is_indexed = text.contains("]=") || text.contains("]+=");
                if is_indexed && self.quotes_code(node) {
                    return Err("an index with quotes is unclear");
                }
            }
            _ => {}
        }
        nodes
            .into_iter()
            .try_for_each(|child| self.collect(region, child, parts))
    }

    /// Returns the part for a node that bash expands wherever it stands.
    fn expanding<'t>(&self, node: Node<'t>) -> Result<Option<Part<'t>>, &'static str> {
        let text = text_of(node, self.text).trim_start_matches([' ', '\t', '\n']);
        let (region, before, after) = match node.kind() {
            "simple_expansion" if is_simple(text) => {
                let after = self.text.get(node.end_byte()..).unwrap_or_default();
                // bash takes the second sign of `$$(` for the start of an expansion in some places only.
                return if text == "$$" && after.starts_with(['{', '(', '[']) {
                    Err(EXPANDS)
                } else {
                    Ok(Some(whole(node, PART)))
                };
            }
            "expansion" => (Region::Parameter, "${", "}"),
            "process_substitution" if text.starts_with('<') => (Region::Code, "<(", ")"),
            "process_substitution" => (Region::Code, ">(", ")"),
            "command_substitution" if text.contains('`') && !text.starts_with("$(") => {
                if text.matches('`').count() != 2 {
                    return Err("it is unclear where a backtick ends; use $( )");
                }
                let before = if text.starts_with('$') { "$`" } else { "`" };
                (Region::Code, before, "`")
            }
            // In a here-document, the tree takes arithmetic for a subshell.
            "command_substitution" if text.starts_with("$((") => (Region::Arithmetic, "$((", "))"),
            "command_substitution" => (Region::Code, "$(", ")"),
            "arithmetic_expansion" if text.starts_with("$[") => (Region::Arithmetic, "$[", "]"),
            "arithmetic_expansion" => (Region::Arithmetic, "$((", "))"),
            "compound_statement" if text.starts_with("((") => (Region::Arithmetic, "((", "))"),
            _ => return Ok(None),
        };
        self.within(node, PART, region, [before, after]).map(Some)
    }

    /// Returns true if quotes or backslashes in a node keep something from being expanded, which they do not in an index.
    fn quotes_code(&self, node: Node<'_>) -> bool {
        let text = text_of(node, self.text);
        match node.kind() {
            "command_substitution" | "process_substitution" => false,
            "ansi_c_string" => text.contains('\\') || plain(text).is_err(),
            "raw_string" => plain(text).is_err(),
            _ if node.child_count() > 0 => children(node).into_iter().any(|child| self.quotes_code(child)),
            _ => text.contains('\\') && plain(text).is_err(),
        }
    }

    /// Returns the part for a node whose quotes are special outside of other expansions.
    fn quoting<'t>(&self, node: Node<'t>) -> Result<Option<Part<'t>>, &'static str> {
        let text = text_of(node, self.text);
        Ok(match node.kind() {
            "string" => Some(self.within(node, STRING, Region::Quoted, ["\"", "\""])?),
            "subscript" => Some(self.within(node, PART, Region::Parameter, ["", ""])?),
            "regex" | "extglob_pattern" => Some(self.within(node, PART, Region::Pattern, ["", ""])?),
            "raw_string" if is_single_quoted(text) => Some(whole(node, PART)),
            "ansi_c_string" if is_ansi_quoted(text) => Some(whole(node, PART)),
            "comment" if !text.contains('\n') => Some(whole(node, PART)),
            "heredoc_start" | "heredoc_end" => Some(whole(node, PART)),
            _ => None,
        })
    }

    fn within<'t>(
        &self,
        node: Node<'t>,
        sign: char,
        region: Region,
        [before, after]: [&str; 2],
    ) -> Result<Part<'t>, &'static str> {
        // The parser counts blanks before an expansion in quotes as a part of it.
        let text = text_of(node, self.text).trim_start_matches([' ', '\t', '\n']);
        let start = node.end_byte() - text.len();
        if text.len() < before.len() + after.len() || !text.starts_with(before) || !text.ends_with(after) {
            return Err("it is unclear where an expansion ends");
        }
        Ok(Part {
            sign,
            inside: Some(Inside {
                region,
                range: start + before.len()..node.end_byte() - after.len(),
                nodes: children(node),
            }),
            ..whole(node, sign)
        })
    }

    /// Takes the body of a here-document, which is expanded unless its delimiter is quoted.
    fn document<'t>(&self, nodes: &mut Vec<Node<'t>>, parts: &mut Vec<Part<'t>>) {
        let is_plain = nodes
            .iter()
            .find(|node| node.kind() == "heredoc_start")
            .is_some_and(|start| !text_of(*start, self.text).contains(['\'', '"', '\\']));
        nodes.retain(|node| {
            let is_body = node.kind() == "heredoc_body";
            if is_body {
                parts.push(Part {
                    inside: is_plain.then(|| Inside {
                        region: Region::Document,
                        range: node.byte_range(),
                        nodes: children(*node),
                    }),
                    ..whole(*node, PART)
                });
            }
            !is_body
        });
    }
}

fn whole(node: Node<'_>, sign: char) -> Part<'_> {
    Part {
        range: node.byte_range(),
        sign,
        inside: None,
    }
}

/// Takes the arithmetic of `for ((…))` out of the children of the loop.
fn head_of_loop<'t>(nodes: &mut Vec<Node<'t>>) -> Option<Part<'t>> {
    let open = nodes.iter().position(|node| node.kind() == "((")?;
    let close = nodes.iter().position(|node| node.kind() == "))")?;
    let range = nodes.get(open)?.end_byte()..nodes.get(close)?.start_byte();
    let head: Vec<Node<'t>> = nodes.get(open + 1..close)?.to_vec();
    nodes.drain(open + 1..close);
    Some(Part {
        range: range.clone(),
        sign: PART,
        inside: Some(Inside {
            region: Region::Arithmetic,
            range,
            nodes: head,
        }),
    })
}

/// Returns true for `$name` and `$?`.
fn is_simple(text: &str) -> bool {
    text.strip_prefix('$').is_some_and(|name| {
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        !name.is_empty() && (is_name || matches!(name, "@" | "*" | "#" | "?" | "-" | "$" | "!"))
    })
}

fn is_single_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.contains('\''))
}

fn is_ansi_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("$'") else {
        return false;
    };
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\'' => return chars.as_str().is_empty(),
            _ => {}
        }
    }
    false
}

/// Reads the own text of a region, in which nothing may start an expansion.
fn read(region: Region, own: &str) -> Result<(), &'static str> {
    match region {
        Region::Code => code(own),
        Region::Quoted => quoted(own, true),
        Region::Document => quoted(own, false),
        Region::Parameter => parameter(own),
        Region::Arithmetic => arithmetic(own),
        Region::Pattern => pattern(own),
    }
}

const EXPANDS: &str = "an expansion is unclear. Put its parts into variables";

/// Returns true if a dollar sign before this text starts an expansion. A line continuation between the two
/// characters does not separate them.
fn starts_expansion(rest: &str) -> bool {
    let rest = rest.strip_prefix('$').unwrap_or(rest);
    rest.starts_with(['(', '{', '[', PART]) || rest.starts_with("\\\n")
}

/// Returns true if a `<` or a `>` before this text starts a process substitution.
fn starts_process(rest: &str) -> bool {
    rest.trim_start_matches("\\\n").starts_with('(')
}

/// Skips the character after a backslash. It must not be the first one of an expansion.
fn escaped(chars: &mut std::str::Chars<'_>) -> Result<(), &'static str> {
    match chars.next() {
        Some(PART | STRING) => Err(EXPANDS),
        _ => Ok(()),
    }
}

fn code(own: &str) -> Result<(), &'static str> {
    let mut chars = own.chars();
    let mut previous = None;
    while let Some(c) = chars.next() {
        let rest = chars.as_str();
        match c {
            '\\' if rest.starts_with('\n') => {
                chars.next();
                continue;
            }
            '\\' => escaped(&mut chars)?,
            '\'' | '"' | '`' => return Err("a quotation mark is unclear"),
            '$' if starts_expansion(rest) => return Err(EXPANDS),
            // The number of the shell, which is a part of its own in most places.
            '$' if rest.starts_with('$') => drop(chars.next()),
            // The parser goes on with the next line.
            '$' if rest.starts_with('\n') => return Err("a `$` at the end of a line is unclear; quote it"),
            '<' | '>' if starts_process(rest) => return Err(EXPANDS),
            '#' if previous.is_none_or(|c| " \t\n;&|()<>".contains(c)) => {
                return Err("a `#` at the start of a word is unclear; quote it");
            }
            _ => {}
        }
        previous = Some(if c == '\\' { PART } else { c });
    }
    Ok(())
}

fn quoted(own: &str, ends: bool) -> Result<(), &'static str> {
    let mut chars = own.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => escaped(&mut chars)?,
            '`' => return Err("a backtick is unclear; use $( )"),
            '"' if ends => return Err("a quotation mark is unclear"),
            '$' if starts_expansion(chars.as_str()) => return Err(EXPANDS),
            _ => {}
        }
    }
    Ok(())
}

/// Returns an error if a text has a sign that starts an expansion, in quotes or not.
fn plain(own: &str) -> Result<(), &'static str> {
    let mut chars = own.chars();
    while let Some(c) = chars.next() {
        match c {
            '`' => return Err(EXPANDS),
            '$' if starts_expansion(chars.as_str()) => return Err(EXPANDS),
            '<' | '>' if starts_process(chars.as_str()) => return Err(EXPANDS),
            _ => {}
        }
    }
    Ok(())
}

/// The end of `${…}` must be the same whether single quotes are special, as outside double quotes, or not.
fn parameter(own: &str) -> Result<(), &'static str> {
    plain(own)?;
    // bash expands what it makes of `$'…'` and `$"…"` in double quotes once more.
    if own.contains("$\"") || own.split("$'").skip(1).any(|text| !is_plain_ansi(text)) {
        return Err(EXPANDS);
    }
    if own.contains("\\\n") || !is_balanced(own, false) || !is_balanced(own, true) {
        return Err("it is unclear where an expansion ends. Put its parts into variables");
    }
    Ok(())
}

/// Returns true if `$'` before this text has only escapes for control characters.
fn is_plain_ansi(text: &str) -> bool {
    let (inner, _) = text.split_once('\'').unwrap_or((text, ""));
    let mut escapes = inner.split('\\').skip(1);
    escapes.all(|rest| rest.starts_with(['a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v']))
}

/// Returns true if quotes are closed, nothing but an expansion closes a brace, and no backslash precedes one.
fn is_balanced(own: &str, singles: bool) -> bool {
    let (mut single, mut double) = (false, false);
    let mut chars = own.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !single && escaped(&mut chars).is_err() => return false,
            '\'' if singles && !double => single = !single,
            '"' if !single => double = !double,
            '}' => return false,
            _ => {}
        }
    }
    !single && !double
}

fn arithmetic(own: &str) -> Result<(), &'static str> {
    plain(own)?;
    let mut double = false;
    let mut brackets = 0_usize;
    let own = own.replace("\\\n", " ");
    for c in own.chars() {
        match c {
            '\\' | '\'' => return Err("arithmetic with quotes or backslashes is unclear"),
            '"' => double = !double,
            '(' | ')' | '[' | ']' if double => return Err("brackets in quotes are unclear in arithmetic"),
            '[' => brackets += 1,
            ']' if brackets == 0 => return Err("it is unclear where arithmetic ends"),
            ']' => brackets -= 1,
            _ => {}
        }
    }
    if double {
        Err("a quotation mark is unclear")
    } else {
        Ok(())
    }
}

/// A pattern may have quotes of its own, which must end in it. `$name` and `${name}` in it run nothing.
fn pattern(own: &str) -> Result<(), &'static str> {
    let mut chars = own.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match c {
            '\\' if quote != Some('\'') => escaped(&mut chars)?,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            '\'' | '"' if quote == Some(c) => quote = None,
            '$' if is_name_in_braces(chars.as_str()) => {}
            '`' => return Err(EXPANDS),
            '$' if starts_expansion(chars.as_str()) => return Err(EXPANDS),
            '<' | '>' if starts_process(chars.as_str()) => return Err(EXPANDS),
            _ => {}
        }
    }
    match quote {
        Some(_) => Err("a quotation mark is unclear"),
        None => Ok(()),
    }
}

/// Returns true for `{name}`.
fn is_name_in_braces(rest: &str) -> bool {
    let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    name.is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}
