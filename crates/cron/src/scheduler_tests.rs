use std::path::Path;
use std::sync::Mutex;

use tempfile::TempDir;
use tokio::sync::watch;
use windlass_core::event::Event;
use windlass_core::log::{Booking, JobStanding, SlotRecord};
use windlass_core::model::Usage;

use super::*;
use crate::file::JobFileContext;

/// A clock that moves when a test says so.
struct Hands(watch::Sender<u64>);

#[async_trait]
impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp(*self.0.borrow())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(*self.0.borrow())
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.now().0 + u64::try_from(duration.as_millis()).unwrap();
        let _ = self.0.subscribe().wait_for(|now| *now >= until).await;
    }
}

/// Records what ran, and answers as told.
#[derive(Default)]
struct Actor {
    prompts: Mutex<Vec<String>>,
    commands: Mutex<Vec<String>>,
    delivered: Mutex<Vec<JobReport>>,
    /// Number of deliveries that fail first.
    failing: Mutex<u32>,
    fails: bool,
    hangs: bool,
    forgotten: Mutex<Vec<SessionId>>,
}

#[async_trait]
impl JobRunner for Actor {
    async fn command(&self, _: &CronJob, command: &str, _: &CancellationToken) -> Result<CommandEnd, String> {
        self.commands.lock().unwrap().push(command.to_owned());
        Ok(CommandEnd {
            is_success: command != "false",
            output: format!("output of {command}"),
        })
    }

    async fn prompt(&self, run: PromptRun<'_>, cancel: &CancellationToken) -> RunEnd {
        self.prompts.lock().unwrap().push(run.prompt.to_owned());
        if self.hangs {
            cancel.cancelled().await;
        }
        let state = if self.fails {
            SlotState::Failed
        } else {
            SlotState::Ran
        };
        RunEnd {
            state,
            detail: String::new(),
            output: "answer".to_owned(),
        }
    }

    async fn forget(&self, session: &SessionId) -> Result<(), String> {
        self.forgotten.lock().unwrap().push(session.clone());
        Ok(())
    }
}

#[async_trait]
impl Courier for Actor {
    async fn deliver(&self, _: &DeliveryTarget, report: &JobReport) -> Result<(), String> {
        let mut failing = self.failing.lock().unwrap();
        if *failing > 0 {
            *failing -= 1;
            return Err("no route".to_owned());
        }
        self.delivered.lock().unwrap().push(report.clone());
        Ok(())
    }
}

/// A store, a file of jobs and a clock.
struct Scene {
    folder: TempDir,
    store: Arc<dyn Store>,
    clock: Arc<Hands>,
    actor: Arc<Actor>,
}

const MINUTE: u64 = 60_000;

impl Scene {
    /// Starts half a minute before a full hour, with a job that is due at full minutes.
    fn new(keys: &str, actor: Actor) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hands(watch::channel(1_800_000_000_000 - MINUTE / 2).0));
        let store = windlass_store::open(folder.path().join("w.db"), Arc::clone(&clock) as _).unwrap();
        let scene = Self {
            folder,
            store,
            clock,
            actor: Arc::new(actor),
        };
        scene.write(keys);
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, keys: &str) {
        let folder = self.path().display();
        let text = format!("[jobs.test]\nfolder = \"{folder}\"\ntimezone = \"UTC\"\n{keys}\n");
        let path = self.path().join("cron.toml");
        std::fs::write(&path, text).unwrap();
        let now = std::time::UNIX_EPOCH + self.clock.elapsed();
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(now)
            .unwrap();
    }

    fn wait(&self, milliseconds: u64) {
        self.clock.0.send_modify(|now| *now += milliseconds);
    }

    fn scheduler(&self, owner: &str) -> Scheduler {
        let ports = SchedulerPorts {
            store: Arc::clone(&self.store),
            runner: Arc::clone(&self.actor) as _,
            courier: Arc::clone(&self.actor) as _,
            clock: Arc::clone(&self.clock) as _,
            owner: owner.to_owned(),
            tell: Arc::new(|_| {}),
        };
        let jobs = JobSet::new(JobFileContext {
            path: self.path().join("cron.toml"),
            home: None,
        });
        Scheduler::new(ports, jobs, CancellationToken::new())
    }

    async fn run_due(&self) -> bool {
        self.scheduler(&windlass_store::owner()).run_due().await
    }

    async fn slots(&self) -> Vec<SlotRecord> {
        self.store.slots(Some("test"), 100).await.unwrap()
    }

    async fn states(&self) -> Vec<&'static str> {
        self.slots().await.iter().map(|slot| slot.state.name()).collect()
    }

    fn prompts(&self) -> usize {
        self.actor.prompts.lock().unwrap().len()
    }
}

/// Returns the name of an owner on this machine whose process has ended.
fn dead() -> String {
    let owner = windlass_store::owner();
    let mut parts: Vec<&str> = owner.split('/').collect();
    parts[1] = "2147483647";
    parts.join("/")
}

const EACH_MINUTE: &str = "schedule = \"* * * * *\"\nprompt = \"go\"\n";

/// CRON-3: of many schedulers at the same time one runs a slot, and its session exists from the start.
#[tokio::test]
async fn one_winner_per_slot() {
    let scene = Scene::new(EACH_MINUTE, Actor::default());
    assert!(scene.run_due().await, "introduces the job");
    for round in 1..=5 {
        scene.wait(MINUTE);
        let runs: Vec<_> = (0..6)
            .map(|_| tokio::spawn(scene.scheduler(&windlass_store::owner()).run_due()))
            .collect();
        for run in runs {
            assert!(run.await.unwrap());
        }
        assert_eq!(scene.prompts(), round);
    }
    let slots = scene.slots().await;
    assert_eq!(slots.len(), 5);
    let newest = slots[0].session.clone().unwrap();
    let info = scene.store.get(&newest).await.unwrap().unwrap();
    assert!(
        info.label
            .title
            .unwrap()
            .starts_with("[cron] test - 2027-01-15 08:0")
    );
}

/// CRON-1: runs of a job with `session = "continue"` are in one session.
#[tokio::test]
async fn a_continuing_job_has_one_session() {
    let scene = Scene::new(&format!("{EACH_MINUTE}session = \"continue\""), Actor::default());
    for _ in 0..3 {
        scene.run_due().await;
        scene.wait(MINUTE);
    }
    let slots = scene.slots().await;
    assert_eq!(slots.len(), 2);
    assert!(slots[0].session.is_some() && slots[0].session == slots[1].session);
}

/// CRON-2: sessions of runs before the last `keep_sessions` are deleted, except one that somebody worked in afterwards.
#[tokio::test]
async fn old_sessions_are_deleted() {
    let scene = Scene::new(&format!("{EACH_MINUTE}keep_sessions = 2"), Actor::default());
    scene.run_due().await;
    for round in 1..=4 {
        scene.wait(MINUTE);
        scene.run_due().await;
        if round == 2 {
            let session = scene.slots().await[0].session.clone().unwrap();
            scene.wait(2 * MINUTE);
            let opened = scene
                .store
                .open(&session, &windlass_store::owner())
                .await
                .unwrap();
            let batch = windlass_core::log::Batch {
                first_seq: opened.info.last_seq + 1,
                events: vec![Event::Warning {
                    message: "the user was here".to_owned(),
                }],
                time: scene.clock.now(),
                ..windlass_core::log::Batch::default()
            };
            scene.store.append(&opened.lease, batch).await.unwrap();
            scene.store.release(&opened.lease).await.unwrap();
        }
    }
    scene.run_due().await;
    let sessions: Vec<_> = scene
        .slots()
        .await
        .into_iter()
        .filter_map(|slot| slot.session)
        .collect();
    let oldest = sessions.last().unwrap();
    let forgotten = scene.actor.forgotten.lock().unwrap();
    assert!(
        !forgotten.is_empty() && forgotten.iter().all(|id| id == oldest),
        "{forgotten:?}"
    );
}

/// CRON-3: editing a job keeps its slots, and does not make an earlier time due.
#[tokio::test]
async fn editing_keeps_slots() {
    let scene = Scene::new("schedule = \"0 8 * * *\"\nprompt = \"go\"\n", Actor::default());
    scene.run_due().await;
    scene.wait(MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["ran"]);
    scene.write("schedule = \"0 7 * * *\"\nprompt = \"other\"\n");
    scene.wait(2 * 60 * MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["ran"]);
    scene.wait(21 * 60 * MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["ran", "ran"]);
}

/// Leaves a run whose process has ended, and returns its session.
async fn lose(scene: &Scene) -> Option<SessionId> {
    scene.run_due().await;
    scene.wait(MINUTE);
    let scheduler = scene.scheduler(&dead());
    let mut jobs = JobSet::new(JobFileContext {
        path: scene.path().join("cron.toml"),
        home: None,
    });
    jobs.refresh();
    let now = Timestamp(1_800_000_000_000);
    let facts = JobFacts::default();
    let run = scheduler
        .claim(&jobs.jobs()[0], &facts, (now, SlotCause::Schedule), "", None)
        .await
        .unwrap();
    run.unwrap().session
}

/// CRON-3: a run whose process ended is marked, and not started again.
#[tokio::test]
async fn an_interrupted_run_is_marked() {
    let scene = Scene::new(&format!("{EACH_MINUTE}deliver = [\"notice\"]"), Actor::default());
    lose(&scene).await;
    assert!(scene.run_due().await);
    assert_eq!(scene.states().await, ["interrupted"]);
    assert_eq!(scene.prompts(), 0);
    let told = scene.actor.delivered.lock().unwrap().clone();
    assert_eq!(told[0].state, SlotState::Interrupted);
}

/// CRON-3, LOOP-17: a job that says so continues an interrupted run in its session, by one of several processes.
#[tokio::test]
async fn an_interrupted_run_is_continued_once() {
    let scene = Scene::new(
        &format!("{EACH_MINUTE}on_interrupted = \"continue\""),
        Actor::default(),
    );
    let session = lose(&scene).await;
    let runs: Vec<_> = (0..4)
        .map(|_| tokio::spawn(scene.scheduler(&windlass_store::owner()).run_due()))
        .collect();
    for run in runs {
        run.await.unwrap();
    }
    let slots = scene.slots().await;
    assert_eq!((slots.len(), slots[0].state), (1, SlotState::Ran));
    assert_eq!(slots[0].session, session);
    let prompts = scene.actor.prompts.lock().unwrap().clone();
    assert_eq!(prompts.len(), 1);
    assert!(prompts[0].contains("finish the rest"), "{prompts:?}");
}

/// CRON-5: a condition that does not hold costs no session and no prompt; one that holds gives its output.
#[tokio::test]
async fn conditions_decide() {
    let scene = Scene::new(&format!("{EACH_MINUTE}when = \"false\""), Actor::default());
    scene.run_due().await;
    scene.wait(MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["skipped_condition"]);
    assert_eq!(scene.slots().await[0].session, None);
    scene.write(&format!("{EACH_MINUTE}when = \"true\""));
    scene.wait(MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["ran", "skipped_condition"]);
    assert!(scene.slots().await[0].session.is_some());
    let prompts = scene.actor.prompts.lock().unwrap().clone();
    assert_eq!(prompts, ["go\n\nOutput of `true`:\n\noutput of true"]);
}

/// CRON-2, CRON-5: a command runs without a model, and its output is kept with the slot and in a session of its own.
#[tokio::test]
async fn commands_need_no_model() {
    let scene = Scene::new("schedule = \"* * * * *\"\ncommand = \"make\"\n", Actor::default());
    scene.run_due().await;
    scene.wait(MINUTE);
    assert!(scene.run_due().await);
    scene.write("schedule = \"* * * * *\"\ncommand = \"false\"\n");
    scene.wait(MINUTE);
    assert!(!scene.run_due().await, "it failed");
    let slots = scene.slots().await;
    assert_eq!(slots[1].output, "output of make");
    assert_eq!(slots[0].state, SlotState::Failed);
    assert_ne!(slots[0].session, slots[1].session);
    for (slot, words) in [(&slots[1], "output of make"), (&slots[0], "Result: failed")] {
        let session = slot.session.clone().unwrap();
        let entries = scene.store.entries(&session, 0, 10).await.unwrap();
        let [_, end] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        let told = matches!(&end.event, Event::Final { content, .. } if content.contains(words));
        assert!(told, "{words}: {end:?}");
    }
    assert_eq!(scene.prompts(), 0);
}

/// CRON-5: a delivery that fails is tried again apart from the run, which is not.
#[tokio::test]
async fn deliveries_are_retried_apart_from_the_run() {
    let actor = Actor {
        failing: Mutex::new(2),
        ..Actor::default()
    };
    let keys = "schedule = \"@hourly\"\nprompt = \"go\"\ndeliver = [\"file:{job}-{slot}.md\"]\n";
    let scene = Scene::new(keys, actor);
    scene.run_due().await;
    scene.wait(MINUTE / 2);
    assert!(scene.run_due().await, "the run is fine");
    let delivery = scene.slots().await[0].deliveries[0].clone();
    let path = scene.path().join("test-2027-01-15T08-00-00.md");
    assert_eq!(delivery.target, format!("file:{}", path.display()));
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("waiting", 1));
    assert_eq!(delivery.detail, "no route");
    for milliseconds in [29_000, 1_000, 59_000, 1_000] {
        scene.wait(milliseconds);
        scene.run_due().await;
    }
    let delivery = scene.slots().await[0].deliveries[0].clone();
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("delivered", 3));
    assert_eq!(scene.prompts(), 1);
    assert_eq!(scene.actor.delivered.lock().unwrap()[0].output, "answer");
}

/// CRON-4: a job is disabled after repeated failures, with a notice, and can be enabled again.
#[tokio::test]
async fn a_failing_job_is_disabled() {
    let actor = Actor {
        fails: true,
        ..Actor::default()
    };
    let keys = "schedule = \"@hourly\"\nprompt = \"go\"\ndisable_after = 2\ndeliver = [\"notice\"]\n";
    let scene = Scene::new(keys, actor);
    scene.run_due().await;
    scene.wait(MINUTE);
    for _ in 0..4 {
        scene.run_due().await;
        scene.wait(60 * MINUTE);
    }
    assert_eq!(scene.states().await, ["skipped_disabled", "failed", "failed"]);
    let told = scene.actor.delivered.lock().unwrap().clone();
    assert!(
        told[1].detail.contains("disabled: 2 runs in a row failed"),
        "{told:?}"
    );
    scene
        .store
        .set_standing("test", &JobStanding::default())
        .await
        .unwrap();
    scene.run_due().await;
    assert_eq!(scene.prompts(), 3);
}

/// CRON-4: the money of a day is counted from what the job's sessions cost.
#[tokio::test]
async fn a_day_has_a_budget() {
    let keys = "schedule = \"@hourly\"\nprompt = \"go\"\nmax_cost_per_day_usd = 0.5\n";
    let scene = Scene::new(keys, Actor::default());
    scene.run_due().await;
    scene.wait(MINUTE);
    scene.run_due().await;
    let session = scene.slots().await[0].session.clone().unwrap();
    let booking = Booking {
        time: scene.clock.now(),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        cause: "turn".to_owned(),
        usage: Usage::default(),
        cost_usd: Some(0.6),
    };
    scene.store.book(&session, booking).await.unwrap();
    scene.wait(60 * MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await, ["skipped_budget", "ran"]);
    // It is 9:01, and the next day starts in fifteen hours.
    scene.wait(15 * 60 * MINUTE);
    scene.run_due().await;
    assert_eq!(scene.states().await[0], "ran");
}

/// CRON-4: a run that takes too long ends as failed.
#[tokio::test]
async fn a_run_has_a_time_limit() {
    let actor = Actor {
        hangs: true,
        ..Actor::default()
    };
    let scene = Scene::new(&format!("{EACH_MINUTE}timeout = \"10s\""), actor);
    scene.run_due().await;
    scene.wait(MINUTE);
    let run = tokio::spawn(scene.scheduler(&windlass_store::owner()).run_due());
    while scene.prompts() == 0 {
        tokio::task::yield_now().await;
    }
    scene.wait(10_000);
    assert!(!run.await.unwrap());
    let slots = scene.slots().await;
    assert_eq!(
        (slots[0].state, slots[0].detail.as_str()),
        (SlotState::Failed, "it took longer than 10s")
    );
}

/// CRON-2: a scheduler that is stopped marks its runs as interrupted and ends.
#[tokio::test]
async fn a_stopped_scheduler_ends() {
    let actor = Actor {
        hangs: true,
        fails: true,
        ..Actor::default()
    };
    let scene = Scene::new(EACH_MINUTE, actor);
    scene.run_due().await;
    scene.wait(MINUTE);
    let scheduler = scene.scheduler(&windlass_store::owner());
    let stop = scheduler.stop.clone();
    let running = tokio::spawn(scheduler.run());
    while scene.prompts() == 0 {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    running.await.unwrap();
    assert_eq!(scene.states().await, ["interrupted"]);
}
