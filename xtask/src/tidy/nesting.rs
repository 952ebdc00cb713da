//! Nesting depth of a function: `if`, `match`, loops, closures with a block, `async` blocks, `let … else`.
//!
//! An `else if` is as deep as its `if`, an arm as deep as its `match`, and a bare block is no level at all.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Returns the deepest level inside a function's body. The body itself is level 0.
pub(crate) fn depth(body: &syn::Block) -> usize {
    let mut levels = Levels {
        current: 0,
        deepest: 0,
    };
    visit::visit_block(&mut levels, body);
    levels.deepest
}

struct Levels {
    current: usize,
    deepest: usize,
}

impl Levels {
    fn nested(&mut self, inside: impl FnOnce(&mut Self)) {
        self.current += 1;
        self.deepest = self.deepest.max(self.current);
        inside(self);
        self.current -= 1;
    }
}

impl<'ast> Visit<'ast> for Levels {
    fn visit_expr_if(&mut self, node: &'ast syn::ExprIf) {
        self.visit_expr(&node.cond);
        self.nested(|levels| levels.visit_block(&node.then_branch));
        match node.else_branch.as_ref().map(|(_, branch)| &**branch) {
            Some(syn::Expr::Block(block)) => self.nested(|levels| levels.visit_block(&block.block)),
            Some(branch) => self.visit_expr(branch),
            None => {}
        }
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        self.visit_expr(&node.expr);
        self.nested(|levels| node.arms.iter().for_each(|arm| levels.visit_arm(arm)));
    }

    fn visit_expr_loop(&mut self, node: &'ast syn::ExprLoop) {
        self.nested(|levels| levels.visit_block(&node.body));
    }

    fn visit_expr_for_loop(&mut self, node: &'ast syn::ExprForLoop) {
        self.visit_expr(&node.expr);
        self.nested(|levels| levels.visit_block(&node.body));
    }

    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.visit_expr(&node.cond);
        self.nested(|levels| levels.visit_block(&node.body));
    }

    fn visit_expr_closure(&mut self, node: &'ast syn::ExprClosure) {
        match &*node.body {
            syn::Expr::Block(block) => self.nested(|levels| levels.visit_block(&block.block)),
            body => self.visit_expr(body),
        }
    }

    fn visit_expr_async(&mut self, node: &'ast syn::ExprAsync) {
        self.nested(|levels| levels.visit_block(&node.block));
    }

    fn visit_local(&mut self, node: &'ast syn::Local) {
        let Some(init) = &node.init else { return };
        self.visit_expr(&init.expr);
        if let Some((_, diverge)) = &init.diverge {
            self.nested(|levels| levels.visit_expr(diverge));
        }
    }

    /// Skips inner items: a function inside a function is measured separately.
    fn visit_item(&mut self, _: &'ast syn::Item) {}

    /// Counts a macro with braces (`select!`) as a level. Its contents are tokens, not syntax.
    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let own = usize::from(matches!(node.delimiter, syn::MacroDelimiter::Brace(_)));
        self.deepest = self
            .deepest
            .max(self.current + own + depth_of_tokens(node.tokens.clone()));
    }
}

/// Counts levels by tokens: braces after a keyword that opens a block.
fn depth_of_tokens(tokens: TokenStream) -> usize {
    let mut deepest = 0;
    let mut opens = false;
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) => {
                let word = word.to_string();
                opens |= matches!(
                    word.as_str(),
                    "if" | "else" | "match" | "loop" | "for" | "while" | "async"
                );
            }
            TokenTree::Punct(sign) => opens &= !matches!(sign.as_char(), ';' | ','),
            TokenTree::Group(group) => {
                let is_block = group.delimiter() == Delimiter::Brace;
                let own = usize::from(is_block && opens);
                deepest = deepest.max(own + depth_of_tokens(group.stream()));
                opens &= !is_block;
            }
            TokenTree::Literal(_) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth_of(body: &str) -> usize {
        let function: syn::ItemFn =
            syn::parse_str(&format!("fn f() {{ {body} }}")).expect("the fixture is a function");
        depth(&function.block)
    }

    #[test]
    fn blocks_that_branch_or_repeat_are_levels() {
        assert_eq!(depth_of("a(); { b(); }"), 0);
        assert_eq!(depth_of("if a { b() }"), 1);
        assert_eq!(depth_of("for a in b { while c { loop { d() } } }"), 3);
        assert_eq!(depth_of("match a { B => { c() } D => match e { F => {} } }"), 2);
        assert_eq!(depth_of("let Some(a) = b else { return };"), 1);
    }

    #[test]
    fn a_chain_of_else_if_stays_on_its_level() {
        assert_eq!(depth_of("if a {} else if b {} else if c {} else { if d {} }"), 2);
    }

    #[test]
    fn closures_count_when_they_have_a_block() {
        assert_eq!(depth_of("a.map(|b| b + 1)"), 0);
        assert_eq!(depth_of("a.map(|b| { if b { c() } })"), 2);
        assert_eq!(depth_of("spawn(async move { if a {} })"), 2);
        assert_eq!(depth_of("a.map(|b| async move { b })"), 1);
    }

    #[test]
    fn macros_do_not_hide_levels() {
        assert_eq!(depth_of("select! { a = b => { if c { d() } } }"), 2);
        assert_eq!(depth_of("json!({ \"a\": { \"b\": { \"c\": 1 } } });"), 0);
        assert_eq!(
            depth_of("loop { select! { a = b => match c { D => { for e in f {} } } } }"),
            4
        );
    }

    #[test]
    fn inner_functions_are_their_own() {
        assert_eq!(depth_of("fn g() { if a { if b {} } }"), 0);
    }
}
