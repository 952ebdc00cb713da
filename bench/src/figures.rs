//! The figures, grouped by the runs they need.

mod agents;
mod cluster;
mod code;
mod context;
mod cron;
mod deltas;
mod editor;
mod hooks;
mod iterations;
mod large;
mod mcp;
mod memory;
mod page;
mod prefix;
mod server;
mod sessions;
mod start;
mod terminal;
mod tools;
mod undo;
mod worktree;

use anyhow::Result;
use clap::ValueEnum;

pub(crate) use self::code::CodeData;
pub(crate) use self::mcp::ServerEntry;
use crate::lab::Lab;
use crate::report::Figure;

/// Figures that are measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// From the start of the process to the first request on the wire.
    Start,
    /// One iteration with a shell call.
    Iteration,
    /// A thousand iterations: growth, memory, processor time.
    Long,
    /// A reply of many text deltas.
    Deltas,
    /// Size of the fixed part of a request, and how much of it is sent again unchanged.
    Prefix,
    /// Tools on their own: searching a big tree, the sandbox, parallel reads.
    Tools,
    /// Cost of the snapshots for undo.
    Undo,
    /// Sub-agents: the cost of one, several in parallel, many one after the other.
    Agents,
    /// Creating the worktree of a sub-agent.
    Worktree,
    /// Stored sessions: their cost, a big one, many at once.
    Sessions,
    /// Preparing a request at the start of a conversation and deep in it.
    Context,
    /// The code index: files found for issues, and its time and memory.
    Code,
    /// A simulated year of scheduled jobs.
    Cron,
    /// The terminal UI, compared with others.
    Terminal,
    /// Editors over the Agent Client Protocol.
    Editor,
    /// A hook that does nothing, compared with its bare process.
    Hooks,
    /// MCP servers: the start with ten of them, beside another agent, and their memory.
    Mcp,
    /// The HTTP server: delay of a delta, many clients, refused requests, floods.
    Server,
    /// Servers of a cluster over Postgres.
    Cluster,
    /// The web page in a browser, compared with another.
    Page,
    /// Memory: evidence found, and the time of a search.
    Memory,
}

impl Group {
    pub(crate) const ALL: [Self; 21] = [
        Self::Start,
        Self::Iteration,
        Self::Long,
        Self::Deltas,
        Self::Prefix,
        Self::Tools,
        Self::Undo,
        Self::Agents,
        Self::Worktree,
        Self::Sessions,
        Self::Context,
        Self::Code,
        Self::Cron,
        Self::Terminal,
        Self::Editor,
        Self::Hooks,
        Self::Mcp,
        Self::Server,
        Self::Cluster,
        Self::Page,
        Self::Memory,
    ];

    pub(crate) fn measure(self, lab: &Lab) -> Result<Vec<Figure>> {
        match self {
            Self::Start => start::measure(lab),
            Self::Iteration => Ok([iterations::measure(lab)?, iterations::measure_chat(lab)?].concat()),
            Self::Long => iterations::measure_long(lab),
            Self::Deltas => deltas::measure(lab),
            Self::Prefix => prefix::measure(lab),
            Self::Tools => tools::measure(lab),
            Self::Undo => Ok([undo::measure(lab)?, large::measure(lab)?].concat()),
            Self::Agents => agents::measure(lab),
            Self::Worktree => worktree::measure(lab),
            Self::Sessions => sessions::measure(lab),
            Self::Context => context::measure(lab),
            Self::Code => code::measure(lab),
            Self::Cron => cron::measure(lab),
            Self::Terminal => terminal::measure(lab),
            Self::Editor => editor::measure(lab),
            Self::Hooks => hooks::measure(lab),
            Self::Mcp => mcp::measure(lab),
            Self::Server => server::measure(lab),
            Self::Cluster => cluster::measure(lab),
            Self::Page => page::measure(lab),
            Self::Memory => memory::measure(lab),
        }
    }
}

/// Returns the median of several measurements.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Converts a span in nanoseconds to milliseconds.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn milliseconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1_000_000.0
}

fn told(milliseconds: f64) -> String {
    format!("{milliseconds:.2} ms")
}
