//! Events of work towards a goal without input, of its evidence, and of plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::MessageId;

/// Work towards a goal, its evidence, and plans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GoalEvent {
    /// GOAL-3: the session works on its goal without input from here on, or with new limits.
    GoalRun(GoalRun),
    /// A turn without input starts.
    GoalTurn {
        /// Number of the turn, starting at 1.
        number: u32,
    },
    /// GOAL-8: Windlass checked a criterion of the goal.
    GoalCheck(CheckRun),
    /// GOAL-4: the supervisor judged the goal.
    GoalVerdict {
        /// Number of turns so far.
        turn: u32,
        /// True if the supervisor considers the goal reached.
        achieved: bool,
        /// Its reason.
        reason: String,
    },
    /// GOAL-9: the state of the work changed.
    GoalState {
        /// The state from here on.
        state: GoalState,
        /// Reason, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<GoalStop>,
        /// Reason, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Time of the change.
        at: Timestamp,
        /// Time until which active work waits, such as for a rate limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// GOAL-7: the model claimed something, and Windlass compared the claim with its calls.
    Claim(ClaimCheck),
    /// GOAL-6: the user wants the session to go ahead with its plan. This input follows by itself.
    GoAhead {
        /// Message that follows.
        input: MessageId,
    },
    /// GOAL-6: the plan of the session was set, edited, or made progress; an empty one was dropped.
    Plan(Plan),
}

/// Effect of later messages on a goal that comes from messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaterMessages {
    /// They are added to it.
    #[default]
    Extend,
    /// Each is the new goal.
    Replace,
    /// They do not change it.
    Keep,
}

/// State of work towards a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalState {
    /// Turns run without input.
    Active,
    /// The work was stopped, and can be resumed as it is.
    Paused,
    /// The work cannot continue without the user.
    Blocked,
    /// The goal was reached.
    Completed,
}

/// Reason work towards a goal stopped or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalStop {
    /// The turn limit was reached.
    TurnLimit,
    /// The cost limit of the goal was reached.
    Cost,
    /// The daily limit of unattended spending was reached.
    DailyCost,
    /// The token limit was reached.
    Tokens,
    /// The time limit was reached.
    Time,
    /// Several turns in a row had the same answer.
    Stuck,
    /// Several turns in a row failed for the same reason.
    SameBlocker,
    /// A question or a permission request was not answered.
    Unanswered,
    /// The user stopped the work.
    User,
    /// The supervisor failed too often.
    Supervisor,
    /// The process ended.
    ProcessEnded,
    /// The provider asked to wait.
    RateLimit,
}

/// A goal that a session works on without input, and the limits of that work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalRun {
    /// Goal as given by the user.
    pub text: String,
    /// Criteria that must all be met. Without any, the supervisor decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// True if the steps of the plan are carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan: bool,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Spending limit in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Cost of the session before the work, in US dollars.
    #[serde(default)]
    pub before_usd: f64,
    /// Tokens of the session before the work.
    #[serde(default)]
    pub before_tokens: u64,
}

/// A criterion of a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Criterion {
    /// This command succeeds.
    Command {
        /// The command line.
        command: String,
    },
    /// This file exists and is not empty.
    File {
        /// Path, relative to the session's folder.
        path: String,
    },
    /// The user confirms that the goal is reached.
    User,
}

impl std::fmt::Display for Criterion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { command } => write!(f, "`{command}`"),
            Self::File { path } => write!(f, "the file {path}"),
            Self::User => f.write_str("your confirmation"),
        }
    }
}

/// Result of checking a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    /// The criterion.
    pub criterion: Criterion,
    /// True if it is met.
    pub passed: bool,
    /// The observation.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// End of the output, or the reason the check could not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

impl CheckRun {
    /// Returns the command of a check that could not be run: the shell's exit codes for a program that does not exist,
    /// or is not executable.
    fn not_run(&self) -> Option<&str> {
        match (&self.criterion, self.evidence.exit_code) {
            (Criterion::Command { command }, Some(126 | 127)) => Some(command),
            _ => None,
        }
    }

    /// Returns the reason one of the checks can never pass. The work may create the file that a check runs, so only a
    /// name that the shell does not find counts at once; anything else counts if it was so `before`.
    pub fn never_passes(checks: &[Self], before: &[Self]) -> Option<String> {
        checks.iter().find_map(|check| {
            let command = check.not_run()?;
            let program = command.split_whitespace().next()?;
            let is_unknown = check.excerpt.contains(&format!("{program}: command not found"));
            let was_so = before.iter().any(|before| before.not_run() == Some(command));
            let why = check.excerpt.lines().find(|line| line.contains(program));
            let why = why.map_or("its program cannot be started", str::trim);
            (is_unknown || was_so).then(|| {
                format!(
                    "the check `{command}` cannot run: {why}. Make it run, or start a goal with another check"
                )
            })
        })
    }
}

/// An observation that can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Exit code of the command; absent if it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Digest of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Digest of the workspace's files. Files that version control ignores are not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A claim of the model, and the facts known about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimCheck {
    /// The claim in words.
    pub text: String,
    /// Command that shows it.
    pub command: String,
    /// Claimed exit code.
    pub claimed_exit_code: i64,
    /// Result of the comparison.
    pub status: ClaimStatus,
    /// The observation.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl ClaimCheck {
    /// Describes the claim and the facts in one line.
    pub fn line(&self) -> String {
        let Self { text, command, .. } = self;
        match (self.status, self.evidence.exit_code) {
            (ClaimStatus::Verified, _) => format!("Verified: {text} (`{command}`)"),
            (ClaimStatus::False, Some(code)) => {
                format!("False claim: {text} (`{command}` had exit code {code})")
            }
            (ClaimStatus::False, None) => format!("False claim: {text} (`{command}`)"),
            (ClaimStatus::Stale, _) => {
                format!("Stale claim: {text} (files changed after `{command}` ran)")
            }
            (ClaimStatus::Unproven, _) => format!("Unproven claim: {text} (`{command}` was not run)"),
        }
    }
}

/// Result of comparing a claim with what Windlass observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimStatus {
    /// The command ran and had the claimed exit code.
    Verified,
    /// The command ran and had another exit code.
    False,
    /// Files changed after the command ran.
    Stale,
    /// The command was not run in this turn, or could not run.
    Unproven,
}

/// GOAL-6: a task graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Purpose of the plan.
    #[serde(default)]
    pub goal: String,
    /// The steps, in the order in which they were proposed.
    #[serde(default)]
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Short name, unique in the plan.
    pub id: String,
    /// Work to be done.
    pub title: String,
    /// Steps that must be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Command that succeeds once the step is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Progress.
    #[serde(default)]
    pub status: StepState,
}

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not started.
    #[default]
    Open,
    /// Being worked on.
    Active,
    /// Done, and its check passed if it has one.
    Done,
}
