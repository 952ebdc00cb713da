//! Walks a syntax tree and finds simple commands, assignments and redirections at any depth.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::Node;

use super::category;
use super::environment::split_assignment;
use super::reader::Reader;
use super::source::{self, Hole};
use super::tree::{children, text_of};
use super::word::Word;
use super::{Redirect, RedirectKind};

/// One walk over one text.
pub(super) struct Walk<'w, 'r> {
    pub(super) reader: &'w mut Reader<'r>,
    pub(super) text: &'w str,
    pub(super) via: &'w [String],
}

/// A part of a simple command: a word, or an assignment before it.
struct Part {
    range: Range<usize>,
    array: bool,
}

/// The words and redirections of a command. bash takes only the first word after a redirection as its file;
/// the rest belong to the command.
#[derive(Default)]
struct Collected<'t> {
    parts: Vec<Part>,
    nodes: Vec<Node<'t>>,
    redirect_starts: Vec<usize>,
}

impl Walk<'_, '_> {
    /// Refuses functions that a text defines anywhere with the name of a program.
    pub(super) fn functions(&mut self, node: Node<'_>) {
        if node.kind() == "function_definition"
            && let Some(name) = node.child_by_field_name("name")
        {
            let name = text_of(name, self.text).to_owned();
            if category::is_known(&name)
                || self.reader.blocks(&name)
                || name.contains(['$', '\\', '\'', '"', '/'])
            {
                self.reader.refuse(
                    "shell.redefined",
                    format!("`{name}` is redefined as a function, which hides the effect of later commands. Use a name that is not a program's."),
                );
            }
        }
        for child in children(node) {
            self.functions(child);
        }
    }

    /// Visits a node and all its descendants.
    pub(super) fn visit(&mut self, node: Node<'_>) {
        match node.kind() {
            // A `cd` in a subshell does not move the shell around it.
            "subshell" | "pipeline" | "command_substitution" | "process_substitution" => {
                let shell = self.reader.place.shell.clone();
                self.each(node);
                self.reader.place.shell = shell;
            }
            "command" | "declaration_command" | "unset_command" | "variable_assignment" => {
                self.command(&[node]);
            }
            // One command: bash takes `a-b=c` and everything after it as words.
            "variable_assignments" => self.command(&children(node)),
            "redirected_statement" => self.redirected(node),
            "file_redirect" => {
                let mut collected = Collected::default();
                self.redirect(node, &mut collected);
                for hole in std::mem::take(&mut collected.nodes) {
                    self.visit(hole);
                }
                if !collected.parts.is_empty() {
                    self.unclear("words after a redirection");
                }
            }
            "expansion" => self.expansion(node),
            "function_definition" => {
                // Known from here on: a call further up runs a program of that name.
                if let Some(name) = node.child_by_field_name("name") {
                    self.reader.functions.insert(text_of(name, self.text).to_owned());
                }
                self.each(node);
            }
            "for_statement" => {
                if let Some(name) = node.child_by_field_name("variable") {
                    self.reader.assigned(&format!("{}=?", text_of(name, self.text)));
                }
                self.each(node);
            }
            "arithmetic_expansion" | "subscript" | "c_style_for_statement" => {
                self.reader.evaluates |= has_name(node);
                self.each(node);
            }
            "compound_statement" if text_of(node, self.text).starts_with("((") => {
                self.reader.evaluates |= has_name(node);
                self.each(node);
            }
            "test_command" => {
                self.reader.evaluates |= self.compares_numbers(node);
                self.each(node);
            }
            "herestring_redirect" => {
                self.reader.note_input(text_of(node, self.text));
                self.each(node);
            }
            "raw_string" | "ansi_c_string" | "heredoc_body" => {
                if node.kind() == "heredoc_body" {
                    self.reader.note_input(text_of(node, self.text));
                }
                self.reader.note_literal(text_of(node, self.text));
                self.each(node);
            }
            _ => self.each(node),
        }
    }

    fn each(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.visit(child);
        }
    }

    /// Returns true if a test evaluates its operands: `[[ x -eq y ]]` does, and so does `-v` with an index.
    fn compares_numbers(&self, node: Node<'_>) -> bool {
        let operator = text_of(node, self.text);
        let found = node.kind() == "test_operator"
            && matches!(
                operator,
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R"
            );
        found
            || children(node)
                .into_iter()
                .any(|child| self.compares_numbers(child))
    }

    fn unclear(&mut self, what: &str) {
        self.reader
            .unparsed(&format!("{what} cannot be read with certainty"));
    }

    fn expansion(&mut self, node: Node<'_>) {
        let text = text_of(node, self.text);
        let inner = text.trim_start_matches("${");
        if text.contains("@P}") {
            self.reader.refuse(
                "shell.hidden_code",
                "`@P` runs the content of a variable. Write the command out.".to_owned(),
            );
        }
        self.reader.evaluates |= inner.starts_with('!');
        if children(node)
            .iter()
            .any(|child| matches!(child.kind(), "=" | ":="))
        {
            let name: String = inner
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            self.reader.assigned(&format!("{name}=?"));
        }
        // A substring is arithmetic, whose variables may hold code.
        if children(node).iter().any(|child| child.kind() == ":") {
            self.reader.evaluates = true;
        }
        self.each(node);
    }

    fn redirected(&mut self, node: Node<'_>) {
        let body = node.child_by_field_name("body");
        match body.map(|body| body.kind()) {
            Some("command" | "declaration_command" | "unset_command" | "variable_assignment") | None => {
                self.command(&children(node));
            }
            Some(_) => {
                for child in children(node) {
                    if child.kind() == "heredoc_redirect" && child.child_by_field_name("argument").is_some() {
                        self.unclear("words after a here-document");
                    }
                    self.visit(child);
                }
            }
        }
    }

    /// Reads a simple command from its nodes: the command itself, and the redirections around it.
    fn command(&mut self, nodes: &[Node<'_>]) {
        let mut collected = Collected::default();
        for node in nodes {
            self.collect(*node, &mut collected);
        }
        for node in &collected.nodes {
            self.visit(*node);
        }
        let parts = self.merged(collected.parts, &collected.redirect_starts);
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let holes: Vec<Node<'_>> = nodes.iter().flat_map(|node| self.holes(*node)).collect();
        for part in parts {
            let source = self.text.get(part.range.clone()).unwrap_or_default();
            let is_assignment = words.is_empty() && split_assignment(source).is_some();
            if part.array && is_assignment {
                let name = split_assignment(source).map_or("", |(name, _)| name);
                assignments.push(format!("{name}=(…)"));
                continue;
            }
            match self.words(&part, source, &holes) {
                Some(found) if is_assignment => assignments.push(assigned_text(source, &found)),
                Some(found) => words.extend(found),
                None => return,
            }
        }
        self.reader.simple(words, assignments, self.via);
    }

    /// Sorts the parts of a command into words, redirections, and nodes that are visited separately.
    fn collect<'t>(&mut self, node: Node<'t>, out: &mut Collected<'t>) {
        match node.kind() {
            "command" | "declaration_command" | "unset_command" => {
                for child in children(node) {
                    self.collect(child, out);
                }
            }
            "comment" => {}
            "file_redirect" => {
                out.redirect_starts.push(node.start_byte());
                self.redirect(node, out);
            }
            "herestring_redirect" => {
                out.redirect_starts.push(node.start_byte());
                out.nodes.push(node);
            }
            "heredoc_redirect" => {
                out.redirect_starts.push(node.start_byte());
                let arguments: HashSet<usize> = node
                    .children_by_field_name("argument", &mut node.walk())
                    .map(|argument| argument.id())
                    .collect();
                for child in children(node) {
                    match child.kind() {
                        "file_redirect" => self.redirect(child, out),
                        _ if arguments.contains(&child.id()) => self.collect(child, out),
                        _ => out.nodes.push(child),
                    }
                }
            }
            "subshell" | "compound_statement" => self.unclear("a group after a command"),
            kind => {
                let array = kind == "variable_assignment"
                    && node
                        .child_by_field_name("value")
                        .is_some_and(|value| value.kind() == "array");
                if array {
                    out.nodes.extend(children(node));
                } else {
                    out.nodes.extend(self.holes(node));
                }
                out.parts.push(Part {
                    range: node.byte_range(),
                    array,
                });
            }
        }
    }

    /// Merges nodes without a blank between them, which are one word in bash. A digit directly before `>` is
    /// not a word, so it is reported as unclear.
    fn merged(&mut self, mut parts: Vec<Part>, redirects: &[usize]) -> Vec<Part> {
        parts.sort_by_key(|part| part.range.start);
        let mut merged: Vec<Part> = Vec::new();
        for part in parts {
            match merged.last_mut() {
                Some(last) if last.range.end == part.range.start => {
                    last.range.end = part.range.end;
                    last.array |= part.array;
                }
                _ => merged.push(part),
            }
        }
        let touching = merged.iter().any(|part| {
            let text = self.text.get(part.range.clone()).unwrap_or_default();
            let odd = text.starts_with('{') || text.chars().all(|c| c.is_ascii_digit());
            odd && redirects.contains(&part.range.end)
        });
        if touching {
            self.unclear("a word that touches a redirection");
        }
        merged
    }

    /// Returns the outermost expansions inside a node.
    fn holes<'t>(&self, node: Node<'t>) -> Vec<Node<'t>> {
        let is_hole = matches!(
            node.kind(),
            "simple_expansion"
                | "expansion"
                | "command_substitution"
                | "process_substitution"
                | "arithmetic_expansion"
        );
        if is_hole {
            return vec![node];
        }
        children(node)
            .into_iter()
            .flat_map(|child| self.holes(child))
            .collect()
    }

    fn words(&mut self, part: &Part, source: &str, holes: &[Node<'_>]) -> Option<Vec<Word>> {
        let holes: Vec<Hole> = holes
            .iter()
            .filter(|node| part.range.start <= node.start_byte() && node.end_byte() <= part.range.end)
            .map(|node| Hole {
                range: node.byte_range(),
                list: text_of(*node, self.text).contains('@'),
                single: node.kind() == "process_substitution",
            })
            .collect();
        let Some(pieces) = source::pieces(source, part.range.start, &holes) else {
            let short: String = source.chars().take(40).collect();
            self.unclear(&format!("the word `{short}`"));
            return None;
        };
        let words = Word::from_pieces(source, &pieces);
        match &words {
            Some(words) => words
                .iter()
                .for_each(|word| self.reader.note_literal(word.prefix())),
            None => self.reader.too_complex(),
        }
        words
    }

    fn redirect<'t>(&mut self, node: Node<'t>, out: &mut Collected<'t>) {
        let parts = children(node);
        let operator = parts
            .iter()
            .map(|part| part.kind())
            .find(|kind| kind.contains(['<', '>']));
        let mut targets = node
            .children_by_field_name("destination", &mut node.walk())
            .collect::<Vec<_>>()
            .into_iter();
        let Some(target) = targets.next() else { return };
        for extra in targets {
            self.collect(extra, out);
        }
        let holes = self.holes(target);
        let part = Part {
            range: target.byte_range(),
            array: false,
        };
        let words = self.words(&part, text_of(target, self.text), &holes);
        out.nodes.extend(holes);
        let value = words.and_then(|words| match words.as_slice() {
            [only] => only.fixed().map(str::to_owned),
            _ => None,
        });
        let kind = match operator {
            Some("<") => RedirectKind::Read,
            Some(">>" | "&>>") => RedirectKind::Append,
            // A number is another descriptor; anything else is a file.
            Some("<&" | ">&" | "<&-" | ">&-") if value.as_deref().is_some_and(is_descriptor) => return,
            _ => RedirectKind::Write,
        };
        self.reader.redirect(Redirect { kind, target: value });
    }
}

fn is_descriptor(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '-')
}

/// Returns true if arithmetic reads a variable.
fn has_name(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "variable_name" | "simple_expansion" | "expansion" | "command_substitution" | "word"
    ) || children(node).into_iter().any(has_name)
}

/// Returns `NAME=value`, with the known part of the value.
fn assigned_text(source: &str, words: &[Word]) -> String {
    match words {
        [only] => only.value().unwrap_or(source).to_owned(),
        _ => source.to_owned(),
    }
}
