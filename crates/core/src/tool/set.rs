//! The tools of a turn, in a fixed order.

use std::collections::HashMap;
use std::sync::Arc;

use super::{AnyTool, Tool, ToolSpec, erase};

/// An ordered set of tools. The order is part of the prompt, so it never depends on a hash.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn AnyTool>>,
    by_name: HashMap<String, usize>,
}

impl ToolSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool; a tool of the same name is replaced in place.
    #[must_use]
    pub fn with<T: Tool>(mut self, tool: T) -> Self {
        self.insert(erase(tool));
        self
    }

    /// Adds an erased tool; a tool of the same name is replaced in place.
    pub fn insert(&mut self, tool: Arc<dyn AnyTool>) {
        let name = tool.spec().name.clone();
        match self.by_name.get(&name) {
            Some(&index) => {
                if let Some(slot) = self.tools.get_mut(index) {
                    *slot = tool;
                }
            }
            None => {
                self.by_name.insert(name, self.tools.len());
                self.tools.push(tool);
            }
        }
    }

    /// Keeps the tools with these names, in their order.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        let tools = std::mem::take(self).tools;
        for tool in tools {
            if is_kept(&tool.spec().name) {
                self.insert(tool);
            }
        }
    }

    /// Returns the tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.by_name.get(name).and_then(|&index| self.tools.get(index))
    }

    /// Returns the tools as a model sees them, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Returns true if the set has no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}
