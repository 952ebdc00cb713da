//! Limits of a turn.

use std::time::Duration;

/// Limits of a turn. Each has a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Maximum number of iterations.
    pub max_iterations: u32,
    /// Behavior at the iteration limit.
    pub on_max_iterations: OnMaxIterations,
    /// Maximum cost in US dollars. Checked before every iteration after the first.
    pub max_cost_usd: Option<f64>,
    /// Maximum number of times the incomplete-work hook may send the model back.
    pub max_incomplete_prompts: u32,
    /// Maximum number of consecutive replies cut off at the output limit before the turn ends.
    pub max_cut_replies: u32,
    /// Maximum number of consecutive retries after an empty reply.
    pub max_empty_replies: u32,
    /// Maximum number of compactions after a context overflow.
    pub max_overflow_compactions: u32,
    /// Maximum number of consecutive compactions that middleware may request.
    pub max_compactions: u32,
    /// Number of equal calls with equal results after which the next one is answered with a note.
    pub repeat_note: u32,
    /// Number of equal calls at which the turn ends.
    pub repeat_stop: u32,
    /// SES-13: maximum number of messages of a conversation when a turn starts; 0 for no limit. Enforced by
    /// the owner of the conversation.
    pub max_conversation_messages: usize,
    /// CTX-12: timeout for preparing the context. After it the turn continues with the context unchanged.
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

/// Behavior at the iteration limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMaxIterations {
    /// The model gets one last word without tools.
    #[default]
    Summary,
    /// A fixed text.
    Message,
}
