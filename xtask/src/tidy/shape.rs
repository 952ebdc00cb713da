//! Sizes of files, functions and types. Only lines with code count; comments are free.

use syn::visit::{self, Visit};

use super::finding::{Finding, Rule};
use super::nesting;
use super::tree::Tree;
use crate::rust_file::RustFile;

const FILE_LINES: usize = 600;
const LONG_FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 80;
const NESTING: usize = 5;
const STRUCT_FIELDS: usize = 12;
const TRAIT_METHODS: usize = 6;
const EVENT_VARIANTS: usize = 20;
const INLINE_TEST_LINES: usize = 100;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.production().flat_map(file).collect()
}

/// Lists files that are close to the limit.
pub(crate) fn long_files(tree: &Tree) -> Vec<String> {
    let files = tree.production().map(|file| (file, file.production_lines()));
    let long = files.filter(|(_, lines)| (LONG_FILE_LINES + 1..=FILE_LINES).contains(lines));
    long.map(|(file, lines)| format!("{}: long: {lines} lines of code", file.path))
        .collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    let mut shapes = Shapes {
        file,
        owner: None,
        findings: Vec::new(),
    };
    let lines = file.production_lines();
    if lines > FILE_LINES {
        let message = format!("{lines} lines of code; split it into modules of at most {FILE_LINES}");
        shapes
            .findings
            .push(Finding::new(Rule::FileLength, &file.path, 1, message).sized(lines));
    }
    shapes.visit_file(&file.syntax);
    shapes.findings
}

/// Measures the items of a file.
struct Shapes<'a> {
    file: &'a RustFile,
    /// Type or trait that contains the current function.
    owner: Option<String>,
    findings: Vec<Finding>,
}

/// One measurement of an item, and its limit.
struct Measure {
    rule: Rule,
    size: usize,
    limit: usize,
    /// For example "lines of code" or "fields".
    unit: &'static str,
    advice: &'static str,
}

impl Shapes<'_> {
    fn measure(&mut self, name: &syn::Ident, measure: Measure) {
        let Measure {
            rule,
            size,
            limit,
            unit,
            advice,
        } = measure;
        if size <= limit {
            return;
        }
        let item = match &self.owner {
            Some(owner) => format!("{owner}::{name}"),
            None => name.to_string(),
        };
        let message = format!("`{item}` has {size} {unit}, at most {limit}; {advice}");
        let line = name.span().start().line;
        self.findings.push(
            Finding::new(rule, &self.file.path, line, message)
                .about(item)
                .sized(size),
        );
    }

    fn function(&mut self, name: &syn::Ident, body: &syn::Block) {
        let braces = body.brace_token.span;
        let (open, close) = (braces.open().start().line, braces.close().start().line);
        self.measure(
            name,
            Measure {
                rule: Rule::FunctionLength,
                size: self.file.code_lines_between(open, close),
                limit: FUNCTION_LINES,
                unit: "lines of code",
                advice: "extract its steps into functions",
            },
        );
        self.measure(
            name,
            Measure {
                rule: Rule::Nesting,
                size: nesting::depth(body),
                limit: NESTING,
                unit: "levels of nesting",
                advice: "return early, or extract the inner part into a function",
            },
        );
    }

    fn within(&mut self, owner: Option<String>, inside: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.owner, owner);
        inside(self);
        self.owner = outer;
    }

    fn is_test(&self, name: &syn::Ident) -> bool {
        self.file.is_test_line(name.span().start().line)
    }
}

impl<'ast> Visit<'ast> for Shapes<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !self.is_test(&module.ident) {
            return visit::visit_item_mod(self, module);
        }
        let Some((braces, _)) = &module.content else {
            return;
        };
        let (open, close) = (braces.span.open().start().line, braces.span.close().start().line);
        self.measure(
            &module.ident,
            Measure {
                rule: Rule::InlineTests,
                size: self.file.code_lines_between(open, close),
                limit: INLINE_TEST_LINES,
                unit: "lines of code",
                advice: "move them to a sibling file whose name ends in `_tests.rs`",
            },
        );
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if self.is_test(&function.sig.ident) {
            return;
        }
        self.function(&function.sig.ident, &function.block);
        self.within(None, |shapes| visit::visit_item_fn(shapes, function));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        self.within(owner, |shapes| visit::visit_item_impl(shapes, item));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if self.is_test(&function.sig.ident) {
            return;
        }
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if self.is_test(&item.ident) {
            return;
        }
        let is_method = |item: &&syn::TraitItem| matches!(item, syn::TraitItem::Fn(_));
        self.measure(
            &item.ident,
            Measure {
                rule: Rule::TraitMethods,
                size: item.items.iter().filter(is_method).count(),
                limit: TRAIT_METHODS,
                unit: "methods",
                advice: "split the port by its callers",
            },
        );
        self.within(Some(item.ident.to_string()), |shapes| {
            visit::visit_item_trait(shapes, item);
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if self.is_test(&item.ident) {
            return;
        }
        let fields = match &item.fields {
            syn::Fields::Named(fields) => fields.named.len(),
            syn::Fields::Unnamed(_) | syn::Fields::Unit => 0,
        };
        self.measure(
            &item.ident,
            Measure {
                rule: Rule::StructFields,
                size: fields,
                limit: STRUCT_FIELDS,
                unit: "fields",
                advice: "group fields that change together into a type",
            },
        );
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        if self.is_test(&item.ident) || !item.ident.to_string().ends_with("Event") {
            return;
        }
        self.measure(
            &item.ident,
            Measure {
                rule: Rule::EventVariants,
                size: item.variants.len(),
                limit: EVENT_VARIANTS,
                unit: "variants",
                advice: "group related events under one variant",
            },
        );
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
