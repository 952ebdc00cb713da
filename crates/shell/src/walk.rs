//! Walks a syntax tree and finds simple commands, assignments and redirections at any depth.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::Node;

use super::category;
use super::environment::{assigned_text, split_assignment};
use super::reader::Reader;
use super::source::{self, Hole};
use super::tree::{children, text_of};
use super::word::{Piece, Word};
use super::{Redirect, RedirectKind};

/// One walk over one text.
pub(super) struct Walk<'w, 'r> {
    pub(super) reader: &'w mut Reader<'r>,
    pub(super) text: &'w str,
    pub(super) via: &'w [String],
    /// The substitutions that were visited.
    seen: HashSet<usize>,
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

impl<'w, 'r> Walk<'w, 'r> {
    pub(super) fn new(reader: &'w mut Reader<'r>, text: &'w str, via: &'w [String]) -> Self {
        Self {
            reader,
            text,
            via,
            seen: HashSet::new(),
        }
    }

    /// Reads the whole tree.
    pub(super) fn read(&mut self, root: Node<'_>) {
        self.functions(root);
        self.visit(root);
        if self.misses(root) {
            self.unclear("a substitution");
        }
    }

    /// Returns true if a substitution was not visited, so that its commands are not known.
    fn misses(&self, node: Node<'_>) -> bool {
        let runs = matches!(node.kind(), "command_substitution" | "process_substitution");
        runs && !self.seen.contains(&node.id()) || children(node).into_iter().any(|child| self.misses(child))
    }

    /// Refuses functions that a text defines anywhere with the name of a program.
    fn functions(&mut self, node: Node<'_>) {
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
    fn visit(&mut self, node: Node<'_>) {
        match node.kind() {
            // A `cd` in a subshell does not move the shell around it.
            "subshell" | "pipeline" | "command_substitution" | "process_substitution" => {
                let shell = self.reader.place.shell.clone();
                self.seen.insert(node.id());
                // bash prefers to read this as arithmetic.
                self.reader.evaluation.evaluates |= text_of(node, self.text).trim_start().starts_with("$((");
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
                let mut cursor = node.walk();
                let values = node.children_by_field_name("value", &mut cursor);
                let values: String = values.map(|value| self.literal(value)).collect();
                self.reader.evaluation.note_literal(&values);
                if let Some(name) = node.child_by_field_name("variable") {
                    self.reader.assigned(&format!("{}=?", text_of(name, self.text)));
                }
                self.each(node);
            }
            "arithmetic_expansion" | "subscript" | "c_style_for_statement" => {
                self.reader.evaluation.evaluates |= has_name(node);
                self.each(node);
            }
            "compound_statement" if text_of(node, self.text).starts_with("((") => {
                self.reader.evaluation.evaluates |= has_name(node);
                self.each(node);
            }
            "string_content" | "word" => {
                let text = text_of(node, self.text).replace("\\\n", "");
                self.reader.evaluation.note_literal(&text.replace('\\', ""));
                self.each(node);
            }
            "concatenation" | "array" | "string" => {
                self.reader.evaluation.note_literal(&self.literal(node));
                self.each(node);
            }
            "test_command" => {
                let text = text_of(node, self.text);
                // An operator may be quoted, or come from a variable.
                let plain = text.replace(['\\', '\'', '"'], "");
                self.reader.evaluation.evaluates |=
                    self.compares_numbers(node) || plain.split_whitespace().any(|word| word == "-v");
                self.reader.evaluation.may_evaluate |= text.contains('$');
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
                self.reader.evaluation.note_literal(text_of(node, self.text));
                self.each(node);
            }
            _ => self.each(node),
        }
    }

    /// Returns the text of a word without quotes and expansions.
    fn literal(&self, node: Node<'_>) -> String {
        match node.kind() {
            // Escapes may stand for any character.
            "ansi_c_string" if text_of(node, self.text).contains('\\') => "`".to_owned(),
            "expansion" => children(node)
                .into_iter()
                .map(|child| self.literal(child))
                .collect(),
            kind if is_hole(kind) => " ".to_owned(),
            _ if node.child_count() > 0 => children(node)
                .into_iter()
                .map(|child| self.literal(child))
                .collect(),
            _ => text_of(node, self.text)
                .replace("\\\n", "")
                .replace(['\\', '\'', '"'], ""),
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
        self.reader.evaluation.evaluates |= inner.starts_with('!');
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
            self.reader.evaluation.evaluates = true;
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
                Some(found) if is_assignment => assignments.push(match found.as_slice() {
                    [only] => assigned_text(only),
                    _ => source.to_owned(),
                }),
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
                self.reader.evaluation.evaluates |= self.has_computed_index(node);
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

    /// Returns true if an assignment has an index other than a number, which bash evaluates: `a[i]=1` and `a=([i]=1)`.
    /// Only the index of an associative array is plain text, but which arrays are is not known.
    fn has_computed_index(&self, assignment: Node<'_>) -> bool {
        let text = |field| {
            let node = assignment.child_by_field_name(field);
            node.map_or("", |node| text_of(node, self.text))
        };
        let list = text("value");
        let is_indexed = list.starts_with('(') && (list.contains("]=") || list.contains("]+="));
        let indexes = list.split('[').skip(1).map(|rest| format!("[{rest}"));
        assignment.kind() == "variable_assignment"
            && (is_computed(text("name")) || is_indexed && indexes.into_iter().any(|text| is_computed(&text)))
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
        if is_hole(node.kind()) {
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
        let known = known_text(&pieces);
        self.reader.evaluation.note_literal(&known);
        if split_assignment(&known).is_some() {
            self.reader.evaluation.note_assigned(&known);
        }
        let words = Word::from_pieces(source, &pieces);
        if words.is_none() {
            self.reader.too_complex();
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
        let after = self.text.get(target.end_byte()..).unwrap_or_default();
        if !after.is_empty()
            && !after.starts_with(|c| " \t\n;&|()<>`".contains(c))
            && !after.starts_with("\\\n")
        {
            self.unclear("the file of a redirection");
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
            // bash expands the name of such a file twice.
            Some("<&" | ">&" | "<&-" | ">&-")
                if value.as_deref().is_none_or(|file| file.contains(['$', '`', '('])) =>
            {
                return self.unclear("the file after `>&`; write `> file 2>&1`");
            }
            _ => RedirectKind::Write,
        };
        self.reader.redirect(Redirect { kind, target: value });
    }
}

fn is_hole(kind: &str) -> bool {
    matches!(
        kind,
        "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
    )
}

/// Returns true for the descriptor of `>&1`, `>&-` and `>&1-`. `2-3` is a file.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    number.chars().all(|c| c.is_ascii_digit())
}

/// Returns true for `name[index]`, `[index]` and what follows, unless the index is a number.
pub(super) fn is_computed(text: &str) -> bool {
    let Some((name, rest)) = text.split_once('[') else {
        return false;
    };
    let is_index = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let index = rest.split_once(']').map_or(rest, |(index, _)| index);
    is_index && (index.is_empty() || !index.chars().all(|c| c.is_ascii_digit()))
}

/// Returns true if arithmetic reads a variable.
fn has_name(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "variable_name" | "simple_expansion" | "expansion" | "command_substitution" | "word"
    ) || children(node).into_iter().any(has_name)
}

/// Returns the known parts of a word.
fn known_text(pieces: &[Piece]) -> String {
    let known = pieces.iter().map(|piece| match piece {
        Piece::Char { value, .. } => *value,
        Piece::Unknown { .. } => ' ',
    });
    known.collect()
}
