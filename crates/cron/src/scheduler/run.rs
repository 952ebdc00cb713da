//! One run of a job, from its claimed slot to its recorded end.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::event::Event;
use windlass_core::id::SessionId;
use windlass_core::log::{Batch, Durability, JobStanding, Opened, SlotEnd, SlotKey, SlotSession, SlotState};
use windlass_core::message::{FinishReason, FragmentSource, Message, Part, Role};

use super::{LAST_CALL, PromptRun, RunEnd, SchedulerPorts, delivery};
use crate::job::{CronJob, JobAction};
use crate::plan::standing;
use crate::schedule::duration_text;

/// Maximum length of a stored output, in characters.
const MAX_OUTPUT: usize = 20_000;
/// Maximum length of a condition's output in the prompt, in characters.
const MAX_CONDITION: usize = 20_000;
/// Maximum length of a reason, in characters.
const MAX_DETAIL: usize = 500;
/// Number of attempts to record the end of a run.
const ATTEMPTS: u32 = 5;

/// Message for a run that is continued.
const GO_ON: &str =
    "The program ended while you worked on this scheduled task. Look at what is done, and finish the rest.";

/// A run whose slot is ours.
pub(super) struct JobRun {
    pub(super) ports: SchedulerPorts,
    pub(super) job: CronJob,
    pub(super) key: SlotKey,
    pub(super) session: Option<SessionId>,
    /// Session to be created if the condition holds.
    pub(super) new_session: SlotSession,
    /// True if the run was started by another process, which has ended.
    pub(super) is_continued: bool,
    /// Failures of the job before this run.
    pub(super) standing: JobStanding,
    pub(super) budget_usd: Option<f64>,
    pub(super) stop: CancellationToken,
}

impl JobRun {
    /// Runs the job and records the end. Returns it, or `None` if the slot was lost to another process.
    pub(super) async fn execute(mut self) -> Option<RunEnd> {
        let mut end = self.within_time().await;
        end.detail = end
            .detail
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(MAX_DETAIL)
            .collect();
        end.output = cut(&end.output, MAX_OUTPUT);
        let now = self.ports.clock.now();
        let (standing, disabled) = match end.state {
            SlotState::Ran | SlotState::Failed | SlotState::NeedsPerson => {
                let (standing, notice) = standing(&self.job, &self.standing, end.state, now);
                (Some(standing), notice)
            }
            _ => (None, None),
        };
        if let Some(notice) = &disabled {
            let text = notice
                .strip_prefix(&format!("{}: ", self.job.id))
                .unwrap_or(notice);
            end.detail = format!("{}; {text}", end.detail);
        }
        let session = self.session.as_ref().map(ToString::to_string);
        let stored = SlotEnd {
            key: self.key.clone(),
            owner: self.ports.owner.clone(),
            state: end.state,
            detail: end.detail.clone(),
            output: end.output.clone(),
            standing,
            deliveries: delivery::deliveries(&self.job, &self.key, &end, session),
            time: now,
        };
        let is_ours = self.record(&stored).await;
        let time = self.job.schedule.local(self.key.slot);
        let colon = if end.detail.is_empty() { "" } else { ": " };
        let place = self
            .session
            .as_ref()
            .map(|session| format!(" · session {session}"));
        (self.ports.tell)(format!(
            "{}: {time}: {}{colon}{}{}",
            self.job.id,
            end.state.words(),
            end.detail,
            place.unwrap_or_default()
        ));
        is_ours.then_some(end)
    }

    /// Records the end. A store that is locked or full for a moment must not leave the slot open.
    async fn record(&self, end: &SlotEnd) -> bool {
        let mut attempt = 0;
        loop {
            match self.ports.store.end_slot(end).await {
                Ok(is_ours) => return is_ours,
                Err(error) if attempt == ATTEMPTS => {
                    (self.ports.tell)(format!(
                        "{}: the end of the run is not recorded: {error}",
                        self.job.id
                    ));
                    return false;
                }
                Err(_) => {
                    attempt += 1;
                    self.ports.clock.sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }

    async fn within_time(&mut self) -> RunEnd {
        let clock = Arc::clone(&self.ports.clock);
        let (stop, timeout) = (self.stop.clone(), self.job.limits.timeout);
        let mut work = Box::pin(self.work());
        tokio::select! {
            end = &mut work => return end,
            () = clock.sleep(timeout) => {}
        }
        stop.cancel();
        // What it has so far is worth keeping, if it ends in time.
        let output = tokio::select! {
            end = &mut work => end.output,
            () = clock.sleep(LAST_CALL) => String::new(),
        };
        RunEnd {
            state: SlotState::Failed,
            detail: format!("it took longer than {}", duration_text(timeout)),
            output,
        }
    }

    async fn work(&mut self) -> RunEnd {
        let runner = Arc::clone(&self.ports.runner);
        let prompt = match &self.job.work.action {
            JobAction::Command(command) => {
                let end = match runner.command(&self.job, command, &self.stop).await {
                    Ok(end) if end.is_success => ended(SlotState::Ran, "", &end.output),
                    Ok(end) => ended(SlotState::Failed, "the command failed", &end.output),
                    Err(why) => self.refused(&why),
                };
                self.keep_output(command, &end).await;
                return end;
            }
            JobAction::Prompt(prompt) => prompt.clone(),
        };
        let prompt = match self.condition(prompt).await {
            Ok(prompt) => prompt,
            Err(end) => return end,
        };
        let Some(session) = &self.session else {
            return ended(SlotState::Failed, "the run has no session", "");
        };
        let run = PromptRun {
            job: &self.job,
            session,
            prompt: &prompt,
            budget_usd: self.budget_usd,
        };
        let end = runner.prompt(run, &self.stop).await;
        match end.state {
            SlotState::Failed if self.stop.is_cancelled() => self.refused(&end.detail),
            _ => end,
        }
    }

    /// CRON-2: puts the output of a command into the session of the run.
    async fn keep_output(&self, command: &str, end: &RunEnd) {
        let Some(session) = &self.session else { return };
        let SchedulerPorts {
            store, owner, clock, ..
        } = &self.ports;
        let (state, job) = (end.state.words(), &self.job.id);
        let output = match end.output.trim_end() {
            "" => &end.detail,
            output => output,
        };
        let text = format!(
            "The scheduled job `{job}` ran this command:\n\n{command}\n\nResult: {state}\n\n{output}"
        );
        let text = cut(&text, MAX_OUTPUT);
        let time = clock.now();
        let parts = vec![Part::context(FragmentSource::UserCommand, text.clone())];
        let message = Arc::new(Message::new(session, Role::User, parts, time));
        let finish = FinishReason::EndTurn;
        let kept = async {
            let Opened { lease, info, .. } = store.open(session, owner).await?;
            let batch = Batch {
                first_seq: info.last_seq + 1,
                events: vec![
                    Event::Message { message },
                    Event::Final {
                        content: text,
                        finish,
                    },
                ],
                time,
                durability: Durability::Disk,
                ..Batch::default()
            };
            let stored = store.append(&lease, batch).await;
            store.release(&lease).await.and(stored)
        };
        // The slot has the output as well.
        if let Err(error) = kept.await {
            (self.ports.tell)(format!("{job}: the output is not in session {session}: {error}"));
        }
    }

    /// Returns the prompt to run, or the end if the condition does not hold.
    async fn condition(&mut self, prompt: String) -> Result<String, RunEnd> {
        if self.is_continued {
            return Ok(GO_ON.to_owned());
        }
        let Some(when) = &self.job.work.when else {
            return Ok(prompt);
        };
        let end = self.ports.runner.command(&self.job, when, &self.stop).await;
        let output = match end {
            Ok(end) if end.is_success => end.output,
            Ok(end) => {
                let why = "the condition does not hold";
                return Err(ended(SlotState::SkippedCondition, why, &end.output));
            }
            Err(why) => return Err(self.refused(&why)),
        };
        let owner = &self.ports.owner;
        let linked = self
            .ports
            .store
            .link_slot(&self.key, owner, &self.new_session)
            .await;
        match linked {
            Ok(Some(session)) => self.session = Some(session),
            Ok(None) => return Err(ended(SlotState::Failed, "another process has taken the slot", "")),
            Err(error) => return Err(ended(SlotState::Failed, &error.to_string(), "")),
        }
        let output = cut(output.trim_end(), MAX_CONDITION);
        Ok(format!("{prompt}\n\nOutput of `{when}`:\n\n{output}"))
    }

    /// Returns the end of work that did not run: the user stopped Windlass, or the work was refused.
    fn refused(&self, why: &str) -> RunEnd {
        match self.stop.is_cancelled() {
            true => ended(SlotState::Interrupted, "Windlass was stopped", ""),
            false => ended(SlotState::Failed, why, ""),
        }
    }
}

fn ended(state: SlotState, detail: &str, output: &str) -> RunEnd {
    RunEnd {
        state,
        detail: detail.to_owned(),
        output: output.to_owned(),
    }
}

/// Cuts a text in the middle.
fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2).collect();
    let tail: String = text.chars().skip(count - most / 2).collect();
    format!("{head}\n… {} characters left out …\n{tail}", count - most / 2 * 2)
}
