//! Parsing, and checks that the syntax tree covers the text the way bash reads it.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::regions;
use super::source::is_joined;

/// Maximum length of a text in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Tokens for which the parser's time is quadratic in their number. At most [`MAX_SLOW`] of each are allowed.
const SLOW: &[&str] = &["|", "<<", "=("];
const MAX_SLOW: usize = 1_000;
/// Maximum depth of a tree. The walk is recursive.
const MAX_DEPTH: usize = 100;
/// Maximum number of nodes in a tree.
const MAX_NODES: usize = 20_000;
/// Maximum number of progress reports before the parser is stopped. Reports are counted because a clock would
/// make results differ between runs.
const MAX_REPORTS: usize = 20_000;

/// Reason a text was not parsed.
#[derive(Debug)]
pub(super) enum Unreadable {
    TooComplex,
    /// Description of the syntax error.
    Syntax(String),
}

/// Parses a text, and checks that bash would read it the same way.
pub(super) fn parse(text: &str) -> Result<Tree, Unreadable> {
    if text.len() > MAX_BYTES || SLOW.iter().any(|sign| text.matches(sign).count() > MAX_SLOW) {
        return Err(Unreadable::TooComplex);
    }
    if let Some(odd) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(Unreadable::Syntax(format!(
            "it contains the control character {}",
            odd.escape_default()
        )));
    }
    let tree = grow(text)?;
    Checks {
        text,
        nodes: 0,
        end_of_last: 0,
    }
    .node(tree.root_node(), 0)?;
    regions::check(tree.root_node(), text).or_else(syntax)?;
    Ok(tree)
}

fn grow(text: &str) -> Result<Tree, Unreadable> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .map_err(|error| Unreadable::Syntax(error.to_string()))?;
    let mut reports = 0;
    let mut progress = |_: &ParseState| {
        reports += 1;
        if reports > MAX_REPORTS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    // The scanner calls the C library to classify digits, which reads past its table for characters above
    // 255. bash treats those as letters of a word, so letters are substituted for them.
    let mut bytes: Vec<u8> = text
        .bytes()
        .map(|byte| if byte.is_ascii() { byte } else { b'Z' })
        .collect();
    for at in dashes_before_documents(text) {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = b'Z';
        }
    }
    parser
        .parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut progress)),
        )
        .ok_or(Unreadable::TooComplex)
}

/// Returns the positions of words that are a lone dash before a here-document, as in `python3 - <<EOF`. The
/// scanner drops that dash; as a letter it is the word that bash sees.
fn dashes_before_documents(text: &str) -> Vec<usize> {
    let blank = |c: char| matches!(c, ' ' | '\t');
    let starts = text.match_indices("<<").map(|(at, _)| at);
    starts
        .filter_map(|at| {
            let before = text.get(..at)?;
            let word = before.trim_end_matches(blank);
            let rest = word.strip_suffix('-')?;
            (word.len() < before.len() && rest.ends_with(blank)).then_some(rest.len())
        })
        .collect()
}

fn syntax<T>(what: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable::Syntax(what.into()))
}

/// Returns the text of a node.
pub(super) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// Returns the children of a node.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

struct Checks<'t> {
    text: &'t str,
    nodes: usize,
    end_of_last: usize,
}

impl Checks<'_> {
    fn node(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(Unreadable::TooComplex);
        }
        if node.is_error() || node.is_missing() {
            let near: String = text_of(node, self.text).chars().take(40).collect();
            return syntax(format!("there is a syntax error near `{near}`"));
        }
        if !self.text.is_char_boundary(node.start_byte()) || !self.text.is_char_boundary(node.end_byte()) {
            return syntax("a character that is not ASCII is unclear; quote it");
        }
        match node.kind() {
            "heredoc_redirect" => self.here_document(node)?,
            "comment" => self.comment(node)?,
            "arithmetic_expansion" => self.arithmetic(node)?,
            "compound_statement" => {
                self.arithmetic(node)?;
                self.braces(node)?;
            }
            "command_substitution" => {
                let text = text_of(node, self.text);
                if text.starts_with('`') && text.contains('\\') {
                    return syntax("backticks contain a backslash; use $( )");
                }
            }
            _ => {}
        }
        if node.kind() == "heredoc_body" {
            // Everything in it except expansions is text.
            self.end_of_last = node.start_byte();
            for child in children(node) {
                self.end_of_last = child.start_byte();
                self.node(child, depth + 1)?;
            }
            self.end_of_last = node.end_byte();
            return Ok(());
        }
        if node.child_count() == 0 {
            self.gap(node.start_byte())?;
            self.end_of_last = self.end_of_last.max(node.end_byte());
            return Ok(());
        }
        for child in children(node) {
            self.node(child, depth + 1)?;
        }
        Ok(())
    }

    /// bash reads `((` as two subshells when the brackets that follow do not close as `))`. It counts
    /// brackets without parsing the text between them.
    fn arithmetic(&self, node: Node<'_>) -> Result<(), Unreadable> {
        let text = text_of(node, self.text);
        let Some(inner) = text.trim_start_matches('$').strip_prefix("((") else {
            return Ok(());
        };
        let mut depth = 2_usize;
        let mut closes = 0;
        for c in inner.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth < 2 {
                closes += 1;
            }
        }
        let odd = inner.contains(['\'', '"', '`', '\\', '#', ';']) && inner.contains("$(");
        if depth != 0 || closes != 2 || odd {
            return syntax("it is unclear whether `((` is arithmetic");
        }
        Ok(())
    }

    /// In bash, `{` and `}` group only as separate words: `{ls` and `{}` are programs.
    fn braces(&self, node: Node<'_>) -> Result<(), Unreadable> {
        let Some(inner) = text_of(node, self.text).strip_prefix('{') else {
            return Ok(());
        };
        let before = self.text.get(..node.start_byte()).unwrap_or_default();
        let after = self.text.get(node.end_byte()..).unwrap_or_default();
        let is_border = |c: char| " \t\n|&;()<>`".contains(c);
        let begins = before.is_empty() || before.ends_with(is_border);
        let ends = after.is_empty() || after.starts_with(is_border);
        if begins && ends && inner.starts_with(is_border) {
            Ok(())
        } else {
            syntax("it is unclear whether a brace groups commands; put blanks around it")
        }
    }

    /// Checks that the text between two tokens has no meaning to bash.
    fn gap(&self, start: usize) -> Result<(), Unreadable> {
        if start <= self.end_of_last {
            return Ok(());
        }
        let gap = self.text.get(self.end_of_last..start).unwrap_or("?");
        let before = self.text.get(..self.end_of_last).unwrap_or_default();
        let after = self.text.get(start..).unwrap_or_default();
        if gap
            .replace("\\\n", "")
            .contains(|c| !matches!(c, ' ' | '\t' | '\n'))
        {
            return syntax(format!("`{}` is unclear", gap.trim()));
        }
        if is_joined(before, gap, after) {
            return syntax("a line continuation splits a word");
        }
        Ok(())
    }

    fn comment(&self, node: Node<'_>) -> Result<(), Unreadable> {
        let before = self
            .text
            .get(..node.start_byte())
            .and_then(|text| text.chars().last());
        if before.is_none_or(|c| " \t\n;&|()".contains(c)) {
            Ok(())
        } else {
            syntax("a `#` inside a word is unclear; quote it")
        }
    }

    /// Checks that a here-document starts on the next line and ends at its own delimiter, and not before.
    fn here_document(&self, node: Node<'_>) -> Result<(), Unreadable> {
        let parts = children(node);
        let part = |kind: &str| parts.iter().find(|part| part.kind() == kind).copied();
        let (Some(start), Some(end)) = (part("heredoc_start"), part("heredoc_end")) else {
            return syntax("a here-document has no end");
        };
        let written = text_of(start, self.text);
        let delimiter = written.trim_start_matches('\\').trim_matches(['\'', '"']);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let spellings = [
            delimiter.to_owned(),
            format!("\\{delimiter}"),
            format!("'{delimiter}'"),
            format!("\"{delimiter}\""),
        ];
        if delimiter.is_empty() || !delimiter.chars().all(plain) || !spellings.iter().any(|it| it == written)
        {
            return syntax(format!("the here-document delimiter {written} is unclear"));
        }
        let tabs = parts.iter().any(|part| part.kind() == "<<-");
        let head = self.text.get(start.end_byte()..).unwrap_or_default();
        let Some((_, lines)) = head.split_once('\n') else {
            return syntax("a here-document has no body");
        };
        let first_line = self.text.len() - lines.len();
        let mut at = first_line;
        for line in lines.split('\n') {
            let content = if tabs { line.trim_start_matches('\t') } else { line };
            if content == delimiter {
                break;
            }
            at += line.len() + 1;
        }
        let body_ok = part("heredoc_body").is_none_or(|body| {
            body.start_byte() >= first_line
                && body.end_byte() <= at
                && self.is_blank(first_line, body.start_byte())
        });
        let end_ok = end.start_byte() >= at
            && text_of(end, self.text).trim() == delimiter
            && self.is_blank(at, end.start_byte());
        if !body_ok || !end_ok {
            return syntax("the end of a here-document is unclear");
        }
        Ok(())
    }

    fn is_blank(&self, from: usize, to: usize) -> bool {
        self.text
            .get(from..to)
            .is_some_and(|text| text.chars().all(|c| matches!(c, '\t' | ' ' | '\n')))
    }
}
