//! Every cap of a turn in one place.

use std::time::Duration;

/// The caps of a turn. Each has a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Iterations of a turn.
    pub max_iterations: u32,
    /// What happens at the iteration limit.
    pub on_max_iterations: OnMaxIterations,
    /// US dollars of a turn. Checked before every iteration after the first.
    pub max_cost_usd: Option<f64>,
    /// How often the incomplete-work hook may send the model back.
    pub max_incomplete_prompts: u32,
    /// How often in a row a reply may be cut at the output limit before the turn ends.
    pub max_cut_replies: u32,
    /// How often in a row an empty reply is asked again.
    pub max_empty_replies: u32,
    /// How often a context overflow may be answered with compaction.
    pub max_overflow_compactions: u32,
    /// How often in a row middleware may have the context compacted.
    pub max_compactions: u32,
    /// After this many equal calls with equal results, the next is answered with a note.
    pub repeat_note: u32,
    /// At this many, the turn ends.
    pub repeat_stop: u32,
    /// SES-13: the most messages of a conversation when a turn begins; 0 for no limit. Whoever keeps the conversation looks
    /// at it.
    pub max_conversation_messages: usize,
    /// CTX-12: how long preparing the context may take. After that the turn goes on with the context as it is.
    pub context_prep_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 200,
            on_max_iterations: OnMaxIterations::Summary,
            max_cost_usd: None,
            max_incomplete_prompts: 2,
            max_cut_replies: 3,
            max_empty_replies: 1,
            max_overflow_compactions: 1,
            max_compactions: 3,
            repeat_note: 3,
            repeat_stop: 5,
            max_conversation_messages: 0,
            context_prep_timeout: Duration::from_secs(30),
        }
    }
}

/// What happens at the iteration limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMaxIterations {
    /// The model gets one last word without tools.
    #[default]
    Summary,
    /// A fixed text.
    Message,
}
