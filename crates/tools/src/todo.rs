//! `todo`: the agent's own list of open tasks.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_core::tool::{Category, Tool, ToolContext, ToolError, ToolOutput, ToolTraits};

use windlass_core::text;

const MAX_ITEMS: usize = 100;
const MAX_CHARS: usize = 500;

/// A task list, shared by the tool that writes it and the callers that read the open tasks.
#[derive(Debug, Clone, Default)]
pub struct TodoList {
    items: Arc<Mutex<Vec<TodoItem>>>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub struct TodoItem {
    /// Description of the task.
    #[serde(alias = "content", alias = "task")]
    #[schemars(description = "")]
    pub text: String,
    /// Progress of the task.
    #[schemars(description = "")]
    pub status: TodoStatus,
}

/// Progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// Started.
    InProgress,
    /// Completed.
    Completed,
}

/// Written by hand: the derived schema is three times as long, and every request carries it.
impl JsonSchema for TodoStatus {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TodoStatus".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["pending", "in_progress", "completed"] })
    }
}

impl TodoList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all items, in order.
    pub fn items(&self) -> Vec<TodoItem> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the texts of the items that are not completed.
    pub fn open(&self) -> Vec<String> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items
            .iter()
            .filter(|item| item.status != TodoStatus::Completed)
            .map(|item| item.text.clone())
            .collect()
    }

    /// Replaces all items.
    pub fn replace(&self, items: Vec<TodoItem>) {
        *self.items.lock().unwrap_or_else(PoisonError::into_inner) = items;
    }
}

/// Keeps your todo list for work of several steps. Each call replaces it. Mark items completed once they are done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoInput {
    #[serde(alias = "todos")]
    items: Vec<TodoItem>,
}

/// The tool.
pub(crate) struct Todo {
    pub(crate) list: TodoList,
}

impl Tool for Todo {
    type Input = TodoInput;
    const NAME: &'static str = "todo";

    /// Changes only the agent's own notes.
    fn category(&self, _: &TodoInput) -> Category {
        Category::Read
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            exclusive: true,
            ..ToolTraits::default()
        }
    }

    async fn run(&self, input: TodoInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        check(&input.items)?;
        let content = summary(&input.items);
        let details = json!({ "items": input.items });
        self.list.replace(input.items);
        Ok(ToolOutput::text(content).with_details(details))
    }
}

fn check(items: &[TodoItem]) -> Result<(), ToolError> {
    if items.len() > MAX_ITEMS {
        return Err(ToolError::Invalid(format!(
            "`items` has {}; {MAX_ITEMS} are allowed.",
            items.len()
        )));
    }
    for (index, item) in items.iter().enumerate() {
        if item.text.trim().is_empty() {
            return Err(ToolError::Invalid(format!("`items[{index}].text` is empty.")));
        }
        if item.text.chars().count() > MAX_CHARS {
            return Err(ToolError::Invalid(format!(
                "`items[{index}].text` is longer than {MAX_CHARS} characters."
            )));
        }
    }
    Ok(())
}

fn summary(items: &[TodoItem]) -> String {
    if items.is_empty() {
        return "The todo list is empty.".to_owned();
    }
    let count = |status| items.iter().filter(|item| item.status == status).count();
    format!(
        "{}: {} completed, {} in progress, {} pending.",
        text::count(items.len(), "todo"),
        count(TodoStatus::Completed),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    )
}
