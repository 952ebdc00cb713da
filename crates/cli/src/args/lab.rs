//! The command line of `windlass lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What the help of `windlass lab context` adds.
pub(crate) const LAB_CONTEXT_HELP: &str = "\
Requests are made as the loop makes them and measured instead of sent: no model is asked, and nothing leaves this machine.
Where a strategy asks a model, plain rules answer. `docs/context.md` says what is real and what is not.

The columns:
  input tokens  of all requests, those of the strategy itself included
  saved         against `none`
  cost          at the model's prices, with its discount for what the request before began with
  reuse         how much of a request is the unchanged beginning of the one before, by bytes
  said          of what the user said, and of what stands open: how much was in the request when the reply depended on it
  in sight      the same of facts that stood in outputs
  found         with those an agent finds that looks under references without knowing which is the right one; the calls
                for that are in the numbers
  readable      with those under any reference in the request: what is guaranteed
  requests      model calls, those of the strategy itself included
  compactions   how often the history was made smaller

A SESSION is its id, the beginning of its id as far as it is unique, or its name. Nobody planted facts in recorded sessions;
what counts there are names and numbers that the model wrote into a call long after they were last said.

Try:
  windlass lab context --synthetic                     made-up sessions, the same on every machine
  windlass lab context 0197a1b2 --window 32000         one of yours, as if the window were smaller
  windlass lab context --synthetic --svg context.svg   with a picture

Exit codes:
  0    done
  1    a file could not be written
  2    no such session, several that fit, or nothing to look at
  10   the store of sessions cannot be used: see `windlass db check`";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Send sessions through every context strategy again, without a model, and compare what it costs and what is kept
    #[command(after_help = LAB_CONTEXT_HELP)]
    Context(LabContextOptions),
}

#[derive(Debug, Args)]
pub(crate) struct LabContextOptions {
    /// Recorded sessions
    pub(crate) sessions: Vec<String>,
    /// Made-up sessions as well: so many, 2 if no number is given
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "2",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) synthetic: Option<u64>,
    /// Tool calls in each of them
    #[arg(long, value_name = "N", default_value_t = 300, requires = "synthetic",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) calls: u64,
    /// What the first of them is made from; the next number for the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "synthetic")]
    pub(crate) seed: u64,
    /// Tokens of the window; smaller than that of most models, so that sessions fill it
    #[arg(long, value_name = "TOKENS", default_value_t = 64_000,
          value_parser = clap::value_parser!(u64).range(4_000..=100_000_000))]
    pub(crate) window: u64,
    /// The model whose prices and tokens count
    #[arg(short, long, value_name = "NAME", default_value = "claude-sonnet-4-5")]
    pub(crate) model: String,
    /// What answers where a strategy asks a model
    #[arg(long, value_enum, default_value_t)]
    pub(crate) summarizer: LabSummarizer,
    /// Write a picture of the first session to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// As one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LabSummarizer {
    /// Picks lines by plain rules
    #[default]
    Extract,
    /// Keeps nothing: what is still there is there by guarantee
    Nothing,
}
