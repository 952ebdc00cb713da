//! SUB-1: types of sub-agents, and the limits of a tree.

use std::time::Duration;

use windlass_core::log::{AgentBudget, AgentLimits};
use windlass_core::permission::Mode;

/// Maximum number of iterations of a sub-agent's turn, unless its type names another.
pub const MAX_TURNS: u32 = 20;

/// Types and limits of the sub-agents that a session can start.
#[derive(Debug, Clone)]
pub struct AgentCatalog {
    /// The types. If two have the same name, the first counts.
    pub types: Vec<AgentType>,
    /// Type of a sub-agent whose type is not named.
    pub default_type: String,
    /// Limits of the tree.
    pub limits: AgentLimits,
    /// Deadline of a run that names none.
    pub deadline: Duration,
    /// Time without an event after which the parent is told.
    pub silence: Duration,
    /// Errors in the files of types, one line each.
    pub warnings: Vec<String>,
}

impl Default for AgentCatalog {
    fn default() -> Self {
        Self {
            types: AgentType::built_in(),
            default_type: "task".to_owned(),
            limits: AgentLimits {
                max_spawn_depth: 1,
                max_children: 5,
                max_concurrent: 8,
                max_agents: 20,
                budget: AgentBudget {
                    tokens: Some(5_000_000),
                    cost_usd: None,
                    turns: Some(400),
                    seconds: Some(4 * 3_600),
                },
            },
            deadline: Duration::from_secs(1_800),
            silence: Duration::from_secs(300),
            warnings: Vec::new(),
        }
    }
}

impl AgentCatalog {
    /// Returns the type of this name.
    pub fn find(&self, name: &str) -> Option<&AgentType> {
        self.types.iter().find(|known| known.name == name)
    }
}

/// A type of sub-agents.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentType {
    /// Name of the type.
    pub name: String,
    /// Purpose, in one line, for the model that chooses.
    pub description: String,
    /// `built-in`, or the file that defines it.
    pub source: String,
    /// Instructions for the sub-agent.
    pub prompt: String,
    /// Tools that it gets.
    pub tools: AgentTools,
    /// Tools that it does not get, whatever `tools` names.
    pub disallowed_tools: Vec<String>,
    /// Model that it uses.
    pub model: AgentModel,
    /// Strictest mode that it runs in; the parent's if that is stricter.
    pub mode: Option<Mode>,
    /// Maximum number of iterations of a turn.
    pub max_turns: u32,
    /// Maximum cost in US dollars; the share of the tree's budget if `None`.
    pub max_cost_usd: Option<f64>,
    /// True if it works in its own copy of the files.
    pub isolated: bool,
    /// True if its parent does not wait for it unless told otherwise.
    pub background: bool,
}

/// Model of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentModel {
    /// Name, as `model` or `provider/model`; the parent's if `None`.
    pub name: Option<String>,
    /// Reasoning effort, as a word of the setting `agent.reasoning`; the parent's if `None`.
    pub effort: Option<String>,
}

/// Tools of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AgentTools {
    /// Tools that only read.
    #[default]
    ReadOnly,
    /// All tools of its parent.
    All,
    /// The tools with these names.
    Named(Vec<String>),
}

/// Names of the tools that only read.
const READ_ONLY: [&str; 7] = [
    "read_file",
    "list_directory",
    "glob",
    "grep",
    "tool_output",
    "recall",
    "fetch",
];

impl AgentTools {
    /// Returns true if a tool is among them.
    pub fn contains(&self, tool: &str) -> bool {
        match self {
            Self::ReadOnly => READ_ONLY.contains(&tool),
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == tool),
        }
    }
}

impl AgentType {
    /// Creates a type that only reads.
    pub fn new(name: &str, description: &str, prompt: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            source: "built-in".to_owned(),
            prompt: prompt.to_owned(),
            tools: AgentTools::ReadOnly,
            disallowed_tools: Vec::new(),
            model: AgentModel::default(),
            mode: None,
            max_turns: MAX_TURNS,
            max_cost_usd: None,
            isolated: false,
            background: false,
        }
    }

    /// Returns the built-in types.
    pub fn built_in() -> Vec<Self> {
        vec![
            Self::new(
                "task",
                "research",
                "Research the task with the tools you have, and answer it completely. Name the files and lines your \
                 answer rests on. You cannot change anything.",
            ),
            Self::new(
                "explorer",
                "finds things in files",
                "Find what the task asks for in the files. Search broadly first, then read the places that matter. Answer \
                 with paths and line numbers and one line about each. You cannot change anything.",
            ),
            Self {
                tools: AgentTools::All,
                isolated: true,
                ..Self::new(
                    "coder",
                    "edits its own copy of the files",
                    "Make the change that the task describes, in the style of the code around it, and verify it. Your files are \
                     your own copy: nobody else sees them until they are merged. Answer with what you changed and how you know \
                     that it works: end with `done`, and claim only what a command you ran shows.",
                )
            },
            Self {
                max_turns: 5,
                ..Self::new(
                    "summarizer",
                    "",
                    "Summarize what the task names. Keep names, numbers, decisions and open questions; leave out the rest.",
                )
            },
            Self {
                tools: AgentTools::Named(Vec::new()),
                max_turns: 1,
                ..Self::new(
                    "title",
                    "",
                    "Answer with a title of at most eight words for the text in the task, and nothing else.",
                )
            },
        ]
    }
}
