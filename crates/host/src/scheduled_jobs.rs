//! The scheduled jobs of the user, for `/cron`.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_config::environment;
use windlass_core::log::Store;
use windlass_cron::{JobFileContext, JobSet, job_lines, job_list};
use windlass_service::ScheduledJobs;

/// Reads the jobs and their slots.
pub(crate) struct UserJobs {
    pub(crate) store: Arc<dyn Store>,
}

#[async_trait]
impl ScheduledJobs for UserJobs {
    async fn text(&self) -> Result<String, String> {
        let folders = environment::folders().map_err(|problem| problem.to_string())?;
        let mut jobs = JobSet::new(JobFileContext {
            path: folders.jobs_file(),
            home: environment::var("HOME").map(Into::into),
        });
        jobs.refresh();
        if let Some(error) = jobs.error() {
            return Err(error.to_string());
        }
        let now = environment::clock().now();
        let lines = job_list(&jobs, &*self.store, now).await;
        lines
            .map(|lines| job_lines(&lines))
            .map_err(|error| error.to_string())
    }
}
