//! The tools of a turn, in a fixed order.

use std::collections::HashMap;
use std::sync::Arc;

use super::{AnyTool, Prepared, Tool, ToolError, ToolSpec, ToolTraits, erase};

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

    /// Returns the tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.by_name.get(name).and_then(|&index| self.tools.get(index))
    }

    /// Returns the same tools with wrapped calls: `around` receives each call after validation.
    #[must_use]
    pub fn wrapped(&self, around: impl Fn(&ToolSpec, Prepared) -> Prepared + Send + Sync + 'static) -> Self {
        let around: Arc<Hook> = Arc::new(around);
        let wrap = |tool: &Arc<dyn AnyTool>| -> Arc<dyn AnyTool> {
            Arc::new(Wrapped {
                tool: Arc::clone(tool),
                around: Arc::clone(&around),
            })
        };
        Self {
            tools: self.tools.iter().map(wrap).collect(),
            by_name: self.by_name.clone(),
        }
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

type Hook = dyn Fn(&ToolSpec, Prepared) -> Prepared + Send + Sync;

/// A tool with wrapped calls; otherwise identical to the inner tool.
struct Wrapped {
    tool: Arc<dyn AnyTool>,
    around: Arc<Hook>,
}

impl AnyTool for Wrapped {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn traits(&self) -> ToolTraits {
        self.tool.traits()
    }

    fn definition(&self) -> Option<String> {
        self.tool.definition()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let prepared = Arc::clone(&self.tool).prepare(arguments)?;
        Ok((self.around)(self.tool.spec(), prepared))
    }
}
