//! Changes the file of jobs.

use toml_edit::{Array, Value};
use windlass_config::private_file::PrivateFile;
use windlass_config::{Problem, ProblemKind};
use windlass_cron::JobFileContext;
use windlass_cron::file::{EditError, NewJob, add_job, parse, remove_job, set_enabled};

use super::context;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_args::CronAddOptions;

/// Adds a job.
pub(super) fn add(options: &CronAddOptions) -> Result<Exit, Problem> {
    let new = new_job(options)?;
    let context = context()?;
    change(&context, |text| add_job(text, &new, &context))?;
    let added = PrivateFile::new(context.path.clone()).read().ok().flatten();
    let jobs = parse(&added.unwrap_or_default(), &context).unwrap_or_default();
    let next = jobs.iter().find(|job| job.id == new.id).and_then(|job| {
        let next = job.schedule.next(windlass_config::environment::clock().now())?;
        Some(format!(
            "; next: {} ({})",
            job.schedule.local(next),
            job.schedule.zone()
        ))
    });
    say!(
        "added `{}` to {}{}",
        new.id,
        plain(&context.path.display().to_string()),
        next.unwrap_or_default()
    );
    say!("Jobs run while a session or `windlass cron daemon` is running.");
    Ok(Exit::Ok)
}

fn new_job(options: &CronAddOptions) -> Result<NewJob, Problem> {
    let (work, limits, policy) = (&options.work, &options.limits, &options.policy);
    let folder = working_directory(work.folder.as_deref()).map_err(|problem| {
        // The option has another name here.
        Problem::new(problem.kind, problem.message.replace("--cd", "--folder"))
    })?;
    let folder = Some(folder.display().to_string());
    let texts = [
        ("schedule", Some(options.schedule.clone())),
        ("timezone", work.timezone.clone()),
        ("prompt", options.prompt.clone()),
        ("command", work.command.clone()),
        ("when", work.when.clone()),
        ("folder", folder),
        ("session", work.session.clone()),
        ("provider", work.provider.clone()),
        ("model", work.model.clone()),
        ("timeout", limits.timeout.clone()),
        ("missed", policy.missed.clone()),
        ("overlap", policy.overlap.clone()),
        ("on_interrupted", policy.on_interrupted.clone()),
        ("jitter", policy.jitter.clone()),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, Value::from(text?))));
    let numbers = [
        ("max_iterations", limits.max_iterations),
        ("disable_after", policy.disable_after),
        ("keep_sessions", policy.keep_sessions),
    ];
    let numbers = numbers
        .into_iter()
        .filter_map(|(key, number)| Some((key, Value::from(i64::from(number?)))));
    let amounts = [
        ("max_cost_usd", limits.max_cost),
        ("max_cost_per_day_usd", limits.max_cost_per_day),
    ];
    let amounts = amounts
        .into_iter()
        .filter_map(|(key, amount)| Some((key, Value::from(amount?))));
    let lists = [
        ("allowed_tools", &limits.allowed_tools),
        ("deliver", &work.deliver),
    ];
    let lists = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(key, list)| (key, Value::from(list.iter().collect::<Array>())));
    let enabled = policy.disabled.then(|| ("enabled", Value::from(false)));
    Ok(NewJob {
        id: options.job.clone(),
        keys: texts
            .chain(numbers)
            .chain(amounts)
            .chain(lists)
            .chain(enabled)
            .collect(),
    })
}

/// Removes a job.
pub(super) fn remove(job: &str) -> Result<Exit, Problem> {
    let context = context()?;
    change(&context, |text| remove_job(text, job, &context))?;
    say!("removed `{job}`");
    Ok(Exit::Ok)
}

/// Enables or disables a job.
pub(super) fn enable(job: &str, is_enabled: bool) -> Result<Exit, Problem> {
    let context = context()?;
    change(&context, |text| set_enabled(text, job, is_enabled, &context))?;
    say!("{} `{job}`", if is_enabled { "enabled" } else { "disabled" });
    Ok(Exit::Ok)
}

/// Replaces the file by a changed text, while no other process changes it.
fn change(
    context: &JobFileContext,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<(), Problem> {
    let file = PrivateFile::new(context.path.clone());
    let failed = |error: std::io::Error| {
        Problem::new(
            ProblemKind::Failed,
            format!("{}: {error}", context.path.display()),
        )
    };
    let held = file.hold().map_err(failed)?;
    let text = file.read().map_err(failed)?.unwrap_or_default();
    let changed = edit(&text).map_err(|error| {
        let kind = match &error {
            EditError::Invalid(_) => ProblemKind::Config,
            EditError::Exists(_) | EditError::Unknown { .. } | EditError::Name(..) => ProblemKind::Usage,
        };
        Problem::new(kind, error.to_string())
    })?;
    held.write(&changed).map_err(failed)
}
