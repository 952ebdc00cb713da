//! Command-line arguments of `windlass lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Text at the end of `windlass lab context --help`.
pub(crate) const LAB_CONTEXT_HELP: &str = "\
Requests are built exactly as the loop builds them, but measured instead of sent: no model is
called, and nothing leaves this machine. Where a strategy calls a model, simple rules answer
instead. `docs/context.md` explains what is simulated.

Columns:
  input tokens  over all requests, including those of the strategy itself
  saved         compared with `none`
  cost          at the model's prices, with the discount for the cached prefix
  reuse         share of a request that is an unchanged prefix of the previous one, in bytes
  said          user statements and open work: the share in the request that needed it
  in sight      the same for facts from tool outputs
  found         plus facts an agent finds by opening references without knowing which one is
                right; the calls this takes are counted
  readable      plus facts behind any reference in the request: the guaranteed share
  requests      model calls, including those of the strategy itself
  compactions   number of times the history was compacted

SESSION is an id, a unique start of an id, or a name. Recorded sessions contain no planted facts;
instead, the names and numbers count that the model used in a call long after they were last
mentioned.

Examples:
  windlass lab context --synthetic                     generated sessions, the same on every machine
  windlass lab context 0197a1b2 --window 32000         your session in a smaller window
  windlass lab context --synthetic --svg context.svg   with a chart

Exit codes:
  0    success
  1    a file could not be written
  2    no such session, several matching sessions, or no sessions given
  10   the session store cannot be used: see `windlass db check`";

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run sessions through every context strategy without a model, and compare cost and retained facts
    #[command(after_help = LAB_CONTEXT_HELP)]
    Context(LabContextOptions),
    /// Run sessions one after the other with memory and without, and compare tokens, cost and known facts
    #[command(after_help = LAB_MEMORY_HELP)]
    Memory(LabMemoryOptions),
}

/// Text at the end of `windlass lab memory --help`.
pub(crate) const LAB_MEMORY_HELP: &str = "\
The sessions are taken in the order in which they took place. Memory starts empty and keeps each
session for those after it; your own memory is neither read nor changed, and no model is called. A
fact is a name or number in a reply that nothing before it in the session contains, and that was
said in an earlier session.

SESSION is an id, a unique start of an id, or a name.

Examples:
  windlass lab memory --synthetic          generated sessions, the same on every machine
  windlass lab memory --all                every session of this folder
  windlass lab memory --all --words        without vectors

Exit codes:
  0    success
  1    failed
  2    no such session, several matching sessions, or no sessions given
  10   the session store cannot be used: see `windlass db check`";

#[derive(Debug, Args)]
pub struct LabMemoryOptions {
    /// Recorded sessions to use
    pub sessions: Vec<String>,
    /// Use every session of this folder, up to the newest 500
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,
    /// Use generated sessions: 13, unless a number is given
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "13",
          value_parser = clap::value_parser!(u64).range(1..=1_000), conflicts_with_all = ["sessions", "all"])]
    pub synthetic: Option<u64>,
    /// Seed of the generated sessions
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "synthetic")]
    pub seed: u64,
    /// Search memory by words only, also if vectors are set up
    #[arg(long)]
    pub words: bool,
    /// The model whose prices and tokenizer are used
    #[arg(short, long, value_name = "NAME", default_value = "claude-sonnet-4-5")]
    pub model: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LabContextOptions {
    /// Recorded sessions to use
    pub sessions: Vec<String>,
    /// Also use this many generated sessions; 2 if no number is given
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "2",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub synthetic: Option<u64>,
    /// Number of tool calls in each generated session
    #[arg(long, value_name = "N", default_value_t = 300, requires = "synthetic",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub calls: u64,
    /// Seed of the first generated session; each further one uses the next number
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "synthetic")]
    pub seed: u64,
    /// Size of the context window in tokens; smaller than that of most models, so that sessions fill it
    #[arg(long, value_name = "TOKENS", default_value_t = 64_000,
          value_parser = clap::value_parser!(u64).range(4_000..=100_000_000))]
    pub window: u64,
    /// The model whose prices and tokenizer are used
    #[arg(short, long, value_name = "NAME", default_value = "claude-sonnet-4-5")]
    pub model: String,
    /// Stand-in for the model when a strategy calls one
    #[arg(long, value_enum, default_value_t)]
    pub summarizer: LabSummarizer,
    /// Write a chart of the first session to this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LabSummarizer {
    /// Select lines by simple rules
    #[default]
    Extract,
    /// Keep nothing: only guaranteed facts remain
    Nothing,
}
