//! Definitions by grammar: a walk over the syntax tree that looks for the kinds of nodes that define something.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, Tree, TreeCursor};

use super::{Definition, DefinitionKind, MAX_DEFINITIONS};
use crate::language::Language;

/// Number of reports of progress after which a file counts as unreadable. A parser reports about every hundred steps,
/// so this is some seconds.
const MAX_PROGRESS: u32 = 400_000;
/// Maximum depth at which a declarator has its name.
const MAX_DECLARATORS: usize = 16;

use DefinitionKind::{Constant, Function, Module, Type};

type Table = &'static [(&'static str, DefinitionKind)];

const PYTHON: Table = &[("function_definition", Function), ("class_definition", Type)];
const RUST: Table = &[
    ("function_item", Function),
    ("function_signature_item", Function),
    ("macro_definition", Function),
    ("struct_item", Type),
    ("enum_item", Type),
    ("union_item", Type),
    ("trait_item", Type),
    ("type_item", Type),
    ("associated_type", Type),
    ("mod_item", Module),
    ("const_item", Constant),
    ("static_item", Constant),
];
const TYPESCRIPT: Table = &[
    ("function_declaration", Function),
    ("generator_function_declaration", Function),
    ("function_signature", Function),
    ("method_definition", Function),
    ("method_signature", Function),
    ("abstract_method_signature", Function),
    ("class_declaration", Type),
    ("abstract_class_declaration", Type),
    ("interface_declaration", Type),
    ("type_alias_declaration", Type),
    ("enum_declaration", Type),
    ("internal_module", Module),
    ("module", Module),
    ("variable_declarator", Constant),
];
const GO: Table = &[
    ("function_declaration", Function),
    ("method_declaration", Function),
    ("method_elem", Function),
    ("type_spec", Type),
    ("type_alias", Type),
    ("const_spec", Constant),
];
const JAVA: Table = &[
    ("method_declaration", Function),
    ("constructor_declaration", Function),
    ("class_declaration", Type),
    ("interface_declaration", Type),
    ("enum_declaration", Type),
    ("record_declaration", Type),
    ("annotation_type_declaration", Type),
];
const CPP: Table = &[
    ("function_definition", Function),
    ("preproc_function_def", Function),
    ("struct_specifier", Type),
    ("class_specifier", Type),
    ("union_specifier", Type),
    ("enum_specifier", Type),
    ("type_definition", Type),
    ("alias_declaration", Type),
    ("concept_definition", Type),
    ("namespace_definition", Module),
    ("preproc_def", Constant),
];

/// Parsers by language, created when they are needed.
#[derive(Default)]
pub(super) struct Parsers {
    ready: HashMap<&'static str, Option<Reader>>,
}

impl Parsers {
    /// Returns the definitions of a text, or `None` if there is no grammar or it cannot read the text.
    pub(super) fn parse(&mut self, language: Language, text: &str) -> Option<Vec<Definition>> {
        let (name, grammar, table): (_, tree_sitter::Language, _) = match language {
            Language::Python => ("python", tree_sitter_python::LANGUAGE.into(), PYTHON),
            Language::Rust => ("rust", tree_sitter_rust::LANGUAGE.into(), RUST),
            Language::TypeScript => (
                "ts",
                tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
                TYPESCRIPT,
            ),
            Language::Tsx => ("tsx", tree_sitter_typescript::LANGUAGE_TSX.into(), TYPESCRIPT),
            Language::Go => ("go", tree_sitter_go::LANGUAGE.into(), GO),
            Language::Java => ("java", tree_sitter_java::LANGUAGE.into(), JAVA),
            Language::Cpp => ("cpp", tree_sitter_cpp::LANGUAGE.into(), CPP),
            Language::Other | Language::Prose | Language::Data => return None,
        };
        let reader = self
            .ready
            .entry(name)
            .or_insert_with(|| Reader::new(name, &grammar, table));
        reader.as_mut()?.read(text)
    }
}

/// Nodes that contain no definition, in any of the languages: what is below them is not looked at.
const EMPTY: &[&str] = &[
    "import_statement",
    "import_from_statement",
    "import_declaration",
    "use_declaration",
    "attribute_item",
    "token_tree",
    "parameters",
    "formal_parameters",
    "string",
    "string_literal",
    "template_string",
    "comment",
    "line_comment",
    "block_comment",
];

/// The same in Python, where an expression defines nothing.
const EMPTY_PYTHON: &[&str] = &["expression_statement", "return_statement"];

struct Reader {
    parser: Parser,
    /// Kind of definition by the number of a node's kind.
    kinds: Vec<Option<DefinitionKind>>,
    /// True for kinds of nodes that contain no definition.
    empty: Vec<bool>,
}

impl Reader {
    fn new(name: &str, grammar: &tree_sitter::Language, table: Table) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(grammar).ok()?;
        let mut kinds = vec![None; grammar.node_kind_count()];
        for (name, kind) in table {
            let number = usize::from(grammar.id_for_node_kind(name, true));
            if number > 0
                && let Some(slot) = kinds.get_mut(number)
            {
                *slot = Some(*kind);
            }
        }
        let mut empty = vec![false; grammar.node_kind_count()];
        let more = if name == "python" { EMPTY_PYTHON } else { &[] };
        for kind in EMPTY.iter().chain(more) {
            let number = usize::from(grammar.id_for_node_kind(kind, true));
            if number > 0
                && let Some(slot) = empty.get_mut(number)
            {
                *slot = true;
            }
        }
        Some(Self { parser, kinds, empty })
    }

    fn read(&mut self, text: &str) -> Option<Vec<Definition>> {
        let tree = self.tree(text)?;
        let mut found = Vec::new();
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            let number = usize::from(node.kind_id());
            if let Some(Some(kind)) = self.kinds.get(number)
                && let Some(definition) = definition(node, *kind, text.as_bytes())
            {
                found.push(definition);
                if found.len() >= MAX_DEFINITIONS {
                    break;
                }
            }
            let is_empty = self.empty.get(number).copied().unwrap_or_default();
            if !advance(&mut cursor, is_empty) {
                break;
            }
        }
        Some(found)
    }

    fn tree(&mut self, text: &str) -> Option<Tree> {
        let bytes = text.as_bytes();
        let mut reports: u32 = 0;
        let mut watch = |_: &tree_sitter::ParseState| {
            reports += 1;
            match reports > MAX_PROGRESS {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut input = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
        let tree = self.parser.parse_with_options(&mut input, None, Some(options));
        if tree.is_none() {
            self.parser.reset();
        }
        tree
    }
}

/// Moves to the next node in reading order, without those below an empty one.
fn advance(cursor: &mut TreeCursor<'_>, is_empty: bool) -> bool {
    if !is_empty && cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

fn definition(node: Node<'_>, kind: DefinitionKind, text: &[u8]) -> Option<Definition> {
    let is_forward = matches!(
        node.kind(),
        "struct_specifier" | "class_specifier" | "union_specifier" | "enum_specifier"
    ) && node.child_by_field_name("body").is_none();
    if is_forward {
        return None;
    }
    let mut kind = kind;
    if node.kind() == "variable_declarator" {
        kind = variable(node)?;
    }
    let name = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("declarator").and_then(declared))?;
    let name = String::from_utf8_lossy(text.get(name.byte_range())?);
    let name = name.rsplit("::").next().unwrap_or(&name);
    Some(Definition {
        name: name.trim_matches(['"', '\'', '#', '`']).to_owned(),
        kind,
        line: u32::try_from(node.start_position().row)
            .unwrap_or(u32::MAX)
            .saturating_add(1),
    })
}

/// Returns the kind of a variable of JavaScript: only functions, and the constants of a module, are definitions.
fn variable(node: Node<'_>) -> Option<DefinitionKind> {
    let value = node.child_by_field_name("value").map(|value| value.kind());
    if matches!(value, Some("arrow_function" | "function_expression" | "function")) {
        return Some(Function);
    }
    if matches!(value, Some("class")) {
        return Some(Type);
    }
    let outer = node.parent()?.parent()?;
    matches!(outer.kind(), "program" | "export_statement").then_some(Constant)
}

/// Returns the name that a declarator of C declares.
fn declared(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut node = declarator;
    for _ in 0..MAX_DECLARATORS {
        match node.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "operator_name"
            | "destructor_name"
            | "qualified_identifier" => return Some(node),
            _ => {}
        }
        node = node.child_by_field_name("declarator").or_else(|| {
            node.named_child(0)
                .filter(|_| node.kind().ends_with("declarator"))
        })?;
    }
    None
}
