//! GOAL-8: commands that Windlass itself runs to verify something, one after the other, in the sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_api::{CallId, Criterion, Event, Evidence, SessionInfo, Waiting};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::clock::Clock;
use windlass_core::event::{EventSink, SinkError};
use windlass_core::log::AgentRow;
use windlass_core::message::{ToolCall, ToolResult};
use windlass_core::permission::{Asker, Question};

use super::plan_steps::StepReview;
use super::user_command::{Author, Job};
use super::{Activity, Running, SessionActor};
use crate::Inner;
use crate::environment::AgentCopies;
use crate::replies::Replies;
use crate::sink::Sink;

/// Maximum number of characters of an output that are kept: its end.
const EXCERPT: usize = 2_000;

/// Running checks.
pub(super) struct Checking {
    pub(super) running: Running<Vec<Observation>>,
    pub(super) purpose: Purpose,
}

/// Reason for checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The criteria of the goal.
    Goal(Vec<Criterion>),
    /// Steps of the plan.
    Steps(StepReview),
    /// The claims of the session, each with the tree it was made for.
    Claims(Vec<windlass_api::ClaimCheck>),
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) evidence: Evidence,
    /// End of the output, or the reason there is none.
    pub(super) excerpt: String,
    /// True if the user had to be asked and was not there.
    pub(super) is_unanswered: bool,
}

impl Observation {
    pub(super) fn has_passed(&self) -> bool {
        self.evidence.exit_code == Some(0)
    }
}

/// One check.
pub(super) enum Check {
    Command(String, Author),
    /// The user confirms the goal.
    Confirm(String),
    /// The changes of a sub-agent can be merged.
    Merge(Box<AgentRow>, Arc<dyn AgentCopies>),
}

impl Check {
    pub(super) fn of(criterion: &Criterion, goal: &str) -> Self {
        match criterion {
            Criterion::Command { command } => Self::Command(command.clone(), Author::User),
            Criterion::File { path } => {
                let path = path.replace('\'', "'\\''");
                Self::Command(format!("test -s './{path}' || test -s '{path}'"), Author::User)
            }
            Criterion::User => Self::Confirm(goal.to_owned()),
        }
    }
}

impl SessionActor {
    /// Starts checks. The user can stop them.
    pub(super) async fn check(&mut self, checks: Vec<Check>, purpose: Purpose) -> Activity {
        let limits = self.env.goals().autonomy;
        let start = self.turn_start(None, "");
        let stop = self.handle.begin();
        let mut steps = Vec::new();
        for (number, check) in checks.into_iter().enumerate() {
            let id = CallId::from(format!("check-{}-{number}", self.inner.clock.now().0));
            steps.push(match check {
                Check::Confirm(goal) => {
                    let is_attended = self.env.permissions().policy().attended;
                    Step::Confirm(Box::new(Confirm {
                        id,
                        goal,
                        replies: is_attended.then(|| self.handle.replies.clone()),
                        limit: limits.answer_timeout,
                    }))
                }
                Check::Merge(row, copies) => Step::Merge(Box::new(Merge {
                    row: *row,
                    copies,
                    into: self.info.clone(),
                    inner: Arc::clone(&self.inner),
                })),
                Check::Command(command, author) => {
                    let permissions = self.env.permissions();
                    let own = permissions
                        .check_command(&start, &command, limits.check_timeout)
                        .await;
                    Step::Run(Box::new(Job {
                        call: ToolCall {
                            id,
                            name: own.tool.clone(),
                            input: own.input.clone(),
                            finished: true,
                        },
                        own,
                        author,
                        events: Arc::new(Silent),
                        clock: Arc::clone(&self.inner.clock),
                        tasks: self.inner.strays.clone(),
                        cancel: stop.token.clone(),
                    }))
                }
            });
        }
        let series = Series {
            steps,
            files: self.env.checkpoints(),
            sink: Arc::clone(&self.sink),
            clock: Arc::clone(&self.inner.clock),
            cancel: stop.token.clone(),
        };
        Activity::Checking(Box::new(Checking {
            running: Running {
                stop,
                task: tokio::spawn(series.run()),
            },
            purpose,
        }))
    }
}

enum Step {
    Run(Box<Job>),
    Confirm(Box<Confirm>),
    Merge(Box<Merge>),
}

/// Checks, one after the other. Owned, so that they can run in a task of their own.
struct Series {
    steps: Vec<Step>,
    files: Option<Arc<dyn Checkpoints>>,
    sink: Arc<Sink>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
}

impl Series {
    async fn run(self) -> Vec<Observation> {
        let mut seen: Vec<Observation> = Vec::new();
        for step in self.steps {
            let mut observation = match step {
                Step::Run(job) => {
                    let text = format!("checking: {}", job.call.input);
                    self.sink.live(Event::Status { text });
                    observed(&job.run().await)
                }
                Step::Merge(_) if self.cancel.is_cancelled() => unconfirmed("stopped", false),
                // A merge that has started ends: half of one helps nobody.
                Step::Merge(merge) => merge.run(&self.sink).await,
                // Nobody is bothered about a goal whose checks fail.
                Step::Confirm(_) if !seen.iter().all(Observation::has_passed) => unconfirmed("", false),
                Step::Confirm(confirm) => tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => unconfirmed("stopped", false),
                    observation = confirm.ask(&self.sink, &*self.clock) => observation,
                },
            };
            if let Some(files) = &self.files {
                observation.evidence.tree = files.tree().await.ok().flatten();
            }
            seen.push(observation);
        }
        seen
    }
}

/// Reads the result of a command.
fn observed(result: &ToolResult) -> Observation {
    let details = result.metadata.as_ref();
    let exit_code = details.and_then(|details| details.get("exit_code")?.as_i64());
    // A tool without exit codes succeeds or fails.
    let has_none = details.is_none_or(|details| details.get("exit_code").is_none());
    let exit_code = exit_code.or((has_none && !result.is_error).then_some(0));
    let letters = result.content.chars().count();
    Observation {
        evidence: Evidence {
            exit_code,
            output: Some(digest(&result.content)),
            tree: None,
        },
        excerpt: result
            .content
            .chars()
            .skip(letters.saturating_sub(EXCERPT))
            .collect(),
        is_unanswered: false,
    }
}

/// Returns the digest of an output.
pub(crate) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn unconfirmed(why: &str, is_unanswered: bool) -> Observation {
    Observation {
        evidence: Evidence::default(),
        excerpt: why.to_owned(),
        is_unanswered,
    }
}

/// Changes of a sub-agent, to be merged into the files of the session as one checkpoint.
struct Merge {
    row: AgentRow,
    copies: Arc<dyn AgentCopies>,
    into: SessionInfo,
    inner: Arc<Inner>,
}

impl Merge {
    async fn run(self, sink: &Sink) -> Observation {
        let title = self.row.title();
        let agent = &self.row.session;
        let merged = self.copies.merge(agent, &self.into).await;
        let (text, is_complete) = match merged {
            Ok(merged) => (merged.text, merged.is_complete),
            Err(why) => (why, false),
        };
        let message = format!("Changes of agent {title}: {text}");
        if is_complete {
            let _ = self.copies.discard(agent).await;
            let _ = self.inner.store.set_worktree(agent, None).await;
        }
        let told = sink.record(Event::Warning {
            message: message.clone(),
        });
        let _ = told.await;
        Observation {
            evidence: Evidence {
                exit_code: Some(i64::from(!is_complete)),
                ..Evidence::default()
            },
            excerpt: message,
            is_unanswered: false,
        }
    }
}

/// A question to the user: is the goal reached?
struct Confirm {
    id: CallId,
    goal: String,
    /// `None` if nobody is there.
    replies: Option<Replies>,
    limit: Duration,
}

impl Confirm {
    async fn ask(self, sink: &Sink, clock: &dyn Clock) -> Observation {
        const NOBODY: &str = "nobody was there to confirm it";
        let Some(replies) = &self.replies else {
            return unconfirmed(NOBODY, true);
        };
        let question = Question {
            text: format!("Is the goal reached? {}", self.goal),
            options: vec!["yes".to_owned(), "no".to_owned()],
        };
        let event = Event::Waiting(Waiting::Question {
            call_id: self.id.clone(),
            text: question.text.clone(),
            options: question.options.clone(),
        });
        if sink.record(event).await.is_err() {
            return unconfirmed("the question could not be recorded", true);
        }
        let answer = tokio::select! {
            answer = replies.answer(&self.id, &question) => answer,
            () = clock.sleep(self.limit) => None,
        };
        let Some(answer) = answer else {
            return unconfirmed(NOBODY, true);
        };
        let first = answer.trim().to_lowercase();
        let is_yes = first == "y" || first.starts_with("yes");
        Observation {
            evidence: Evidence {
                exit_code: Some(i64::from(!is_yes)),
                ..Evidence::default()
            },
            excerpt: format!("The user answered: {answer}"),
            is_unanswered: false,
        }
    }
}

/// Checks report their results themselves.
struct Silent;

#[async_trait]
impl EventSink for Silent {
    fn live(&self, _: Event) {}

    async fn record(&self, _: Event) -> Result<(), SinkError> {
        Ok(())
    }
}
