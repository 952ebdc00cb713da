//! `/cron`: the scheduled jobs of the user.

use super::{CommandContext, Outcome, Said, Stop, Words};

pub(super) async fn cron(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(0, &[])?;
    match cx.env.jobs() {
        None => Ok(Said::text("No scheduled jobs: this session is not saved.")),
        Some(jobs) => jobs.text().await.map(Said::text).map_err(Stop::Failed),
    }
}
