use toml_edit::Value;

use super::*;
use crate::job::{DeliveryTarget, JobAction, Missed, Overlap};

fn context() -> JobFileContext {
    JobFileContext {
        path: "/config/cron.toml".into(),
        home: Some("/home/me".into()),
    }
}

const FULL: &str = r#"
# Every morning.
[jobs.review]
schedule = "weekdays at 08:30"
timezone = "Europe/Berlin"
prompt = "Review the commits of yesterday."
when = "git log --oneline --since=yesterday | grep ."
folder = "~/src/project"
enabled = true
session = "continue"
allowed_tools = ["write_file(reports/**)", "bash(cargo test*)"]
max_iterations = 30
max_cost_usd = 1
max_cost_per_day_usd = 2.5
timeout = "30m"
missed = "once within 2h"
overlap = "queue"
on_interrupted = "continue"
jitter = "5m"
disable_after = 3
keep_sessions = 10
deliver = ["notice", "file:reports/{slot}.md", "webhook:https://example.com/hook", "session:agent:main:main"]
provider = "anthropic"
model = "m"

[jobs.backup]
schedule = "@daily"
command = "tar czf notes.tgz notes"
folder = "/home/me"
"#;

/// CRON-1, CRON-5: every key of a job, and the defaults.
#[test]
fn a_job_has_these_keys() {
    let jobs = parse(FULL, &context()).unwrap();
    let [review, backup] = jobs.as_slice() else {
        panic!("{jobs:?}")
    };
    assert_eq!(review.id, "review");
    assert_eq!(review.schedule.zone(), "Europe/Berlin");
    assert_eq!(review.work.folder, Path::new("/home/me/src/project"));
    assert_eq!(
        review.session_key().as_deref(),
        Some("agent:main:cron:group:review")
    );
    assert_eq!(review.limits.max_iterations, 30);
    assert_eq!(review.limits.max_cost_per_day_usd, Some(2.5));
    assert_eq!(review.policy.missed.to_string(), "once within 2h");
    assert_eq!(review.policy.overlap, Overlap::Queue);
    assert!(review.policy.continues_interrupted);
    assert_eq!(
        (review.policy.keep_sessions, backup.policy.keep_sessions),
        (10, 100)
    );
    assert_eq!(
        review.deliver[1],
        DeliveryTarget::File("reports/{slot}.md".to_owned())
    );
    for target in &review.deliver {
        assert_eq!(target.to_string().parse(), Ok(target.clone()));
    }
    // LOOP-9: 20 iterations by default.
    assert_eq!(backup.limits.max_iterations, 20);
    assert_eq!(backup.policy.missed, Missed::HalfInterval);
    assert_eq!(
        backup.work.action,
        JobAction::Command("tar czf notes.tgz notes".to_owned())
    );
    assert!(backup.enabled && backup.session_key().is_none());
    for (key, _) in KEYS {
        assert!(FULL.contains(key), "{key} is tested");
    }
}

/// CRON-1: a mistake names the file, the line, the key and what is right.
#[test]
fn mistakes_name_their_place() {
    let start = "[jobs.a]\nfolder = \"/tmp\"\nprompt = \"go\"\n";
    for (text, expected) in [
        (
            format!("{start}schedul = \"@daily\""),
            "/config/cron.toml:4:1: jobs.a.schedul: unknown key; did you mean `schedule`?",
        ),
        (
            start.to_owned(),
            "/config/cron.toml:1:7: jobs.a.schedule: is missing",
        ),
        (
            format!("{start}schedule = 5"),
            "/config/cron.toml:4:12: jobs.a.schedule: expected a text in quotes, found a number",
        ),
        (
            format!("{start}schedule = \"0 0 30 2 *\""),
            "cron.toml:4:12: jobs.a.schedule: `0 0 30 2 *` never fires",
        ),
        (
            format!("{start}schedule = \"@daily\"\ntimezone = \"Europe/Berln\""),
            "cron.toml:5:12: jobs.a.timezone: `Europe/Berln` is not a time zone; did you mean `Europe/Berlin`?",
        ),
        (
            format!("{start}schedule = \"@daily\"\noverlap = \"wait\""),
            "expected skip or queue or parallel, found `wait`",
        ),
        (
            format!("{start}schedule = \"@daily\"\nmissed = \"twice\""),
            "expected skip, once or `once within 2h`",
        ),
        (
            format!("{start}schedule = \"@daily\"\nmax_iterations = 0"),
            "expected a whole number from 1 to 10000",
        ),
        (
            format!("{start}schedule = \"@daily\"\nmax_cost_usd = -1"),
            "expected an amount above 0",
        ),
        (
            format!("{start}schedule = \"@daily\"\nenabled = \"yes\""),
            "expected true or false",
        ),
        (
            format!("{start}schedule = \"@daily\"\ncommand = \"ls\""),
            "either a prompt or a command",
        ),
        (
            format!("{start}schedule = \"@daily\"\ndeliver = [\"mail:me\"]"),
            "`mail:me` is no place for results",
        ),
        (
            format!("{start}schedule = \"@daily\"\ndeliver = [\"webhook:ftp://x\"]"),
            "starts with https://",
        ),
        (
            format!("{start}schedule = \"@daily\"\nallowed_tools = [\"bash(\"]"),
            "jobs.a.allowed_tools: `bash(` is not a permission rule",
        ),
        (
            "[jobs.\"a b\"]".to_owned(),
            "expected a name of at most 64 letters",
        ),
        (
            "[job.a]".to_owned(),
            "cron.toml:1:2: job: unknown key; each job is a table such as [jobs.nightly]",
        ),
        ("jobs = 1".to_owned(), "expected tables such as"),
        ("[jobs.a\n".to_owned(), "not valid TOML"),
        ("[jobs.a]\n[jobs.a]".to_owned(), "not valid TOML"),
        (start.replace("/tmp", "tmp"), "`tmp` is relative"),
    ] {
        let error = parse(&text, &context()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

/// CRON-1: a file with a mistake leaves the last good jobs, and says where the mistake is.
#[test]
fn a_bad_file_keeps_the_last_good_jobs() {
    let mut jobs = JobSet::new(context());
    assert!(jobs.update(Some(FULL)));
    assert!(!jobs.update(Some(FULL)), "nothing new");
    assert!(jobs.update(Some(&FULL.replace("@daily", "@dayly"))));
    assert_eq!(jobs.jobs().len(), 2);
    assert!(jobs.error().unwrap().to_string().contains("jobs.backup.schedule"));
    assert!(jobs.update(None));
    assert_eq!((jobs.jobs().len(), jobs.error()), (0, None));
}

/// CRON-5: adding, removing and disabling a job leaves everything else as it was written.
#[test]
fn changes_keep_the_rest() {
    let new = NewJob {
        id: "new".to_owned(),
        keys: vec![
            ("schedule", Value::from("@hourly")),
            ("command", Value::from("true")),
            ("folder", Value::from("/tmp")),
        ],
    };
    let added = add_job(FULL, &new, &context()).unwrap();
    assert!(added.starts_with(FULL.trim_end_matches('\n')), "{added}");
    assert_eq!(parse(&added, &context()).unwrap().len(), 3);
    assert_eq!(
        add_job(&added, &new, &context()).unwrap_err(),
        EditError::Exists("new".to_owned())
    );
    let off = set_enabled(FULL, "review", false, &context()).unwrap();
    assert_eq!(off, FULL.replace("enabled = true", "enabled = false"));
    assert!(
        !parse(
            &set_enabled(FULL, "backup", false, &context()).unwrap(),
            &context()
        )
        .unwrap()[1]
            .enabled
    );
    let removed = remove_job(FULL, "backup", &context()).unwrap();
    assert_eq!(parse(&removed, &context()).unwrap().len(), 1);
    assert!(removed.contains("# Every morning."));
    let unknown = remove_job(FULL, "bakup", &context()).unwrap_err().to_string();
    assert_eq!(unknown, "there is no job `bakup`; there is review, backup");
    let first = add_job("", &new, &context()).unwrap();
    assert!(
        first.starts_with("[jobs.new]\nschedule = \"@hourly\"\n"),
        "{first}"
    );
    assert!(matches!(
        add_job("[", &new, &context()),
        Err(EditError::Invalid(_))
    ));
}
