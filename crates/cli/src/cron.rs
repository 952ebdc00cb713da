//! `windlass cron`: scheduled jobs.

mod edit;
mod runner;
mod show;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_config::environment::{self, Given};
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::log::{JobStanding, SlotState, Store};
use windlass_cron::{CronJob, JobFileContext, JobSet, Scheduler, SchedulerPorts};
use windlass_host::job_courier::LocalCourier;

use self::runner::LocalRunner;
use crate::exit::Exit;
use crate::session_choice::{self, problem};
use crate::signals::Signals;
use crate::terminal::{plain, say, tell};
use windlass_args::{CronCommand, SettingsOptions};

/// Time after the start of a session at which its scheduler looks at the jobs first.
const SETTLING: std::time::Duration = std::time::Duration::from_secs(2);

/// Runs a subcommand.
pub(crate) async fn command(command: CronCommand) -> Result<Exit, Problem> {
    match command {
        CronCommand::Add(options) => edit::add(&options),
        CronCommand::Remove { job } => edit::remove(&job),
        CronCommand::Enable { job } => {
            edit::enable(&job, true)?;
            let store = session_choice::store()?;
            let standing = JobStanding::default();
            store.set_standing(&job, &standing).await.map_err(problem)?;
            Ok(Exit::Ok)
        }
        CronCommand::Disable { job } => edit::enable(&job, false),
        CronCommand::List { json } => show::list(json).await,
        CronCommand::Logs {
            job,
            limit,
            output,
            json,
        } => show::logs(job.as_deref(), limit, output, json).await,
        CronCommand::Test {
            what,
            timezone,
            limit,
            json,
        } => show::test(&what, timezone.as_deref(), limit, json),
        CronCommand::Run { job, settings } => run(&job, &settings).await,
        CronCommand::RunDue { settings } => run_due(&settings).await,
        CronCommand::Daemon { settings } => daemon(&settings).await,
    }
}

/// Returns where the jobs are.
pub(crate) fn context() -> Result<JobFileContext, Problem> {
    Ok(JobFileContext {
        path: environment::folders()?.jobs_file(),
        home: environment::var("HOME").map(Into::into),
    })
}

/// Reads the jobs. A mistake in the file is an error.
fn jobs() -> Result<JobSet, Problem> {
    let mut jobs = JobSet::new(context()?);
    jobs.refresh();
    match jobs.error() {
        None => Ok(jobs),
        Some(error) => Err(Problem::new(ProblemKind::Config, error.to_string())),
    }
}

/// Returns one job.
fn find<'a>(jobs: &'a JobSet, id: &str) -> Result<&'a CronJob, Problem> {
    jobs.jobs().iter().find(|job| job.id == id).ok_or_else(|| {
        let names: Vec<&str> = jobs.jobs().iter().map(|job| job.id.as_str()).collect();
        let hint = match names.as_slice() {
            [] => "`windlass cron add` adds one".to_owned(),
            names => format!("there is {}", names.join(", ")),
        };
        Problem::usage(format!("there is no job `{id}`; {hint}"))
    })
}

/// Tells the user what happens.
type Tell = Arc<dyn Fn(String) + Send + Sync>;

fn ports(store: Arc<dyn Store>, given: Given, tell: Tell) -> SchedulerPorts {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    SchedulerPorts {
        runner: Arc::new(LocalRunner {
            store: Arc::clone(&store),
            given,
            clock: Arc::clone(&clock),
        }),
        courier: Arc::new(LocalCourier {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
        }),
        store,
        clock,
        owner: windlass_store::owner(),
        tell,
    }
}

/// Lines about things beside the session, for the front end.
pub(crate) type News = tokio::sync::broadcast::Sender<String>;

/// Stops the scheduler at the first signal.
fn stop_on_signals() -> CancellationToken {
    let stop = CancellationToken::new();
    let signals = Signals::listen();
    let stopped = stop.clone();
    tokio::spawn(async move {
        signals.interrupted().await;
        stopped.cancel();
    });
    stop
}

async fn run(id: &str, options: &SettingsOptions) -> Result<Exit, Problem> {
    let jobs = jobs()?;
    let job = find(&jobs, id)?.clone();
    let stop = stop_on_signals();
    let told: Tell = Arc::new(|line| tell!("{}", plain(&line)));
    let scheduler = Scheduler::new(ports(session_choice::store()?, options.given(), told), jobs, stop);
    let end = scheduler.run_now(&job).await.map_err(problem)?;
    settle().await;
    let Some(end) = end else {
        return Err(Problem::new(
            ProblemKind::Busy,
            format!("the job `{id}` is running already; `windlass cron logs {id}` shows since when"),
        ));
    };
    if !end.output.is_empty() {
        say!("{}", plain(end.output.trim_end()));
    }
    Ok(match end.state {
        SlotState::NeedsPerson => Exit::Denied,
        SlotState::Interrupted => Exit::Interrupted,
        state if state.is_failure() => Exit::Failed,
        _ => Exit::Ok,
    })
}

async fn run_due(options: &SettingsOptions) -> Result<Exit, Problem> {
    let jobs = jobs()?;
    let stop = stop_on_signals();
    let told: Tell = Arc::new(|line| tell!("{}", plain(&line)));
    let scheduler = Scheduler::new(
        ports(session_choice::store()?, options.given(), told),
        jobs,
        stop.clone(),
    );
    let is_good = scheduler.run_due().await;
    settle().await;
    Ok(match is_good {
        _ if stop.is_cancelled() => Exit::Interrupted,
        true => Exit::Ok,
        false => Exit::Failed,
    })
}

async fn daemon(options: &SettingsOptions) -> Result<Exit, Problem> {
    let jobs = jobs()?;
    let stop = stop_on_signals();
    let told: Tell = Arc::new(|line| say!("{}", plain(&line)));
    say!(
        "windlass cron: {} from {}; Ctrl+C stops",
        windlass_core::text::count(jobs.jobs().len(), "job"),
        plain(&jobs.path().display().to_string())
    );
    Scheduler::new(ports(session_choice::store()?, options.given(), told), jobs, stop)
        .run()
        .await;
    settle().await;
    Ok(Exit::Ok)
}

/// Ends every process before the program does.
async fn settle() {
    windlass_sandbox::process::settle(crate::engine::LAST_CALL).await;
}

/// CRON-2: runs the user's jobs while a session is open.
pub(crate) struct InSession {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl InSession {
    /// Starts the scheduler in the background. The session's own options do not apply to jobs.
    pub(crate) fn start(store: &Arc<dyn Store>, options: &SettingsOptions, news: &News) -> Option<Self> {
        let stop = CancellationToken::new();
        let jobs = JobSet::new(context().ok()?);
        let given = Given {
            config: options.config.clone(),
            ..Given::default()
        };
        let news = news.clone();
        // Nobody may listen, at the start and at the end.
        let told: Tell = Arc::new(move |line| drop(news.send(format!("scheduled job {line}"))));
        let ports = ports(Arc::clone(store), given, told);
        let (clock, begun) = (Arc::clone(&ports.clock), stop.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = begun.cancelled() => return,
                () = clock.sleep(SETTLING) => {}
            }
            Scheduler::new(ports, jobs, begun).run().await;
        });
        Some(Self { stop, task })
    }

    /// Stops the scheduler; runs that have not ended are marked as interrupted.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}
