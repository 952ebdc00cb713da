//! Command-line arguments of `windlass cron`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SettingsOptions;

/// Text at the end of `windlass cron --help`.
pub(crate) const CRON_HELP: &str = "\
Jobs are in `cron.toml`, beside your settings file; `add` writes them there. They run while any
Windlass is running: a session, `windlass cron daemon`, or `windlass cron run-due` from
a crontab. Each slot runs at most once, however many of these there are.

Examples:
  windlass cron add review \"weekdays at 08:30\" \"Review yesterday's commits\"
  windlass cron add backup \"@daily\" --command \"tar czf /backup/notes.tgz notes\"
  windlass cron test \"30 2 * * *\" --timezone Europe/Berlin
  windlass cron run review            run it now
  windlass cron list                  the jobs, their last and next slots
  windlass cron logs review --output  past slots and their answers
  windlass cron daemon                run the jobs until you stop it

Exit codes:
  0    success
  1    a run failed
  2    wrong usage
  3    a mistake in cron.toml or in a job
  4    the job is running already
  5    the run needs a person
  10   the session store cannot be used
  130  interrupted";

#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// Add a job
    Add(Box<CronAddOptions>),
    /// List the jobs: schedule, last slot and why it did not run, and the next slots
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Remove a job; its past slots stay
    Remove {
        /// The job
        job: String,
    },
    /// Enable a job, also one that was disabled after failures
    Enable {
        /// The job
        job: String,
    },
    /// Disable a job
    Disable {
        /// The job
        job: String,
    },
    /// Run a job now, whatever its schedule, and print its result
    Run {
        /// The job
        job: String,
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Run what is due and return when it has ended: for a line in a crontab
    RunDue {
        #[command(flatten)]
        settings: SettingsOptions,
    },
    /// Show past slots: their times and outcomes, and where results went
    Logs {
        /// The job [default: all]
        job: Option<String>,
        /// Maximum number of slots
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Also print the answers and outputs
        #[arg(long)]
        output: bool,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Print the next ten slots of a job or a schedule, with zone and changes of the clock
    Test {
        /// A job, or a schedule such as "30 2 * * *", "every 15m" or "weekdays at 09:00"
        what: String,
        /// Time zone of the schedule, such as Europe/Berlin [default: that of this machine]
        #[arg(long, value_name = "ZONE")]
        timezone: Option<String>,
        /// Number of slots
        #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 10)]
        limit: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Run the jobs when they are due, until it is stopped
    Daemon {
        #[command(flatten)]
        settings: SettingsOptions,
    },
}

#[derive(Debug, Args)]
pub struct CronAddOptions {
    /// Name of the job: letters, digits, `-` and `_`
    pub job: String,
    /// When: a cron pattern, @daily, "every 15m", "daily at 09:00", "weekdays at 09:00", "mon,thu at 18:30"
    pub schedule: String,
    /// The prompt for the model
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub prompt: Option<String>,
    #[command(flatten)]
    pub work: CronWorkOptions,
    #[command(flatten)]
    pub limits: CronLimitOptions,
    #[command(flatten)]
    pub policy: CronPolicyOptions,
}

#[derive(Debug, Args)]
pub struct CronWorkOptions {
    /// Run this command instead of a prompt, without a model
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Run the prompt only if this command succeeds; the prompt gets its output
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    pub when: Option<String>,
    /// Time zone of the schedule, such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Folder of the runs [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// `fresh` for a session per run, `continue` for one session for all runs [default: fresh]
    #[arg(long, value_name = "POLICY")]
    pub session: Option<String>,
    /// Place for the results: notice, file:PATH, webhook:URL or session:KEY; may be repeated
    #[arg(long, value_name = "PLACE")]
    pub deliver: Vec<String>,
    /// The provider [default: that of the folder's settings]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The model [default: that of the folder's settings]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Debug, Args)]
pub struct CronLimitOptions {
    /// Allow calls that do more than read, such as write_file or "bash(cargo test*)"; may be repeated
    #[arg(long = "allow", value_name = "RULE")]
    pub allowed_tools: Vec<String>,
    /// Maximum number of model requests of a run [default: 20]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// Maximum cost of a run in US dollars
    #[arg(long, value_name = "USD", value_parser = crate::dollars)]
    pub max_cost: Option<f64>,
    /// Maximum cost of all runs of a day in US dollars
    #[arg(long, value_name = "USD", value_parser = crate::dollars)]
    pub max_cost_per_day: Option<f64>,
    /// Maximum time of a run, such as 30m [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
}

#[derive(Debug, Args)]
pub struct CronPolicyOptions {
    /// Slots at which no Windlass was running: skip, once, "once within 2h" [default: half the interval]
    #[arg(long, value_name = "POLICY")]
    pub missed: Option<String>,
    /// Slots at which the previous run has not ended: skip, queue or parallel [default: skip]
    #[arg(long, value_name = "POLICY")]
    pub overlap: Option<String>,
    /// Runs whose process ended: leave or continue [default: leave]
    #[arg(long, value_name = "POLICY")]
    pub on_interrupted: Option<String>,
    /// Maximum random delay of a run, such as 5m
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<String>,
    /// Disable the job after this many failed runs in a row; 0 for never [default: 5]
    #[arg(long, value_name = "N")]
    pub disable_after: Option<u32>,
    /// Keep the sessions of this many runs; 0 for all [default: 100]
    #[arg(long, value_name = "N")]
    pub keep_sessions: Option<u32>,
    /// Add the job, but do not run it yet
    #[arg(long)]
    pub disabled: bool,
}
