//! Scheduled jobs through the binary.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, Script};
use windlass_testkit::{
    PATIENCE, Running, Signal, SimServer, Workspace, at_once, eventually, processes_with,
};

use super::support::{Dice, with_replies, workspace};

/// Writes the file of jobs: one job `test` with these keys.
fn jobs(workspace: &Workspace, keys: &str) {
    let path = workspace.home().join("config/cron.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let folder = workspace.path().display().to_string();
    fs::write(path, format!("[jobs.test]\nfolder = \"{folder}\"\n{keys}\n")).unwrap();
}

const EACH_SECOND: &str = "schedule = \"every 1s\"\n";

/// Returns the slots of all jobs, newest first.
fn slots(workspace: &Workspace) -> Vec<Value> {
    let output = workspace.run(&["cron", "logs", "-n", "1000", "--json"]).output();
    output.assert_code(0);
    serde_json::from_str::<Vec<Value>>(&output.stdout).unwrap()
}

fn daemon(workspace: &Workspace) -> Running {
    let mut daemon = workspace.run(&["cron", "daemon"]).start();
    daemon.wait_for_stdout("Ctrl+C stops");
    daemon
}

fn stop(daemon: Running) {
    daemon.terminate();
    daemon.output().assert_code(0);
}

/// CRON-1, CRON-2: a job fires in the daemon; its run is a session with an answer, and `cron logs` and `cron list` show
/// it.
#[test]
fn a_job_fires() {
    let sim = SimServer::script(Script::new().reply(Reply::text("all is well").forever()));
    let workspace = workspace();
    workspace.use_sim(&sim, Protocol::Anthropic);
    jobs(&workspace, &format!("{EACH_SECOND}prompt = \"look around\"\n"));
    let mut running = daemon(&workspace);
    running.wait_for_stdout("test: ");
    running.wait_until("a run ended", |run| run.stdout().matches(": ran").count() >= 2);
    stop(running);
    let slots = slots(&workspace);
    let ran: Vec<&Value> = slots.iter().filter(|slot| slot["state"] == "ran").collect();
    assert!(ran.len() >= 2, "{slots:?}");
    assert_eq!(ran[0]["output"], "all is well");
    assert_ne!(
        ran[0]["session"], ran[1]["session"],
        "each run has its own session"
    );
    let session = ran[0]["session"].as_str().unwrap();
    let shown = workspace.run(&["sessions", "show", session]).output();
    assert!(shown.stdout.contains("look around"), "{shown}");
    assert!(shown.stdout.contains("[cron] test - "), "{shown}");
    let listed = workspace.run(&["cron", "list"]).output();
    assert!(listed.stdout.contains("test  every 1s ("), "{listed}");
    assert!(
        listed.stdout.contains("  last: ") && listed.stdout.contains("  next: "),
        "{listed}"
    );
    let command = workspace.run(&["exec", "/cron"]).output();
    assert!(command.stdout.contains("test  every 1s ("), "{command}");
    sim.assert_valid();
}

/// CRON-2: a job that runs often leaves no more sessions behind than it keeps, and what the others cost is still known.
#[test]
fn old_sessions_of_a_job_are_deleted() {
    let sim = SimServer::script(Script::new().reply(Reply::text("all is well").forever()));
    let workspace = workspace();
    workspace.use_sim(&sim, Protocol::Anthropic);
    let keys = format!("{EACH_SECOND}prompt = \"look around\"\nkeep_sessions = 2\n");
    jobs(&workspace, &keys);
    let mut running = daemon(&workspace);
    running.wait_until("runs ended", |run| run.stdout().matches(": ran").count() >= 6);
    stop(running);
    let listed = workspace.run(&["sessions", "list", "--json"]).output();
    let sessions = listed.json().as_array().unwrap().len();
    let ran = slots(&workspace)
        .iter()
        .filter(|slot| slot["state"] == "ran")
        .count();
    // The last look was before the last run.
    assert!(
        (2..=4).contains(&sessions) && ran >= 6,
        "{sessions} of {ran}: {listed}"
    );
    let wrong = format!("{EACH_SECOND}prompt = \"x\"\nkeep_sessions = -1\n");
    jobs(&workspace, &wrong);
    let list = workspace.run(&["cron", "list"]).output();
    list.assert_code(3)
        .assert_says("jobs.test.keep_sessions: expected a whole number");
}

/// CRON-3: two daemons, a session and a crontab line at the same time run each slot once.
#[test]
fn one_process_runs_a_slot() {
    let workspace = workspace();
    jobs(
        &workspace,
        &format!("{EACH_SECOND}command = \"echo x >> ran.txt\"\n"),
    );
    let mut first = daemon(&workspace);
    let second = daemon(&workspace);
    let session = workspace
        .run(&["--plain", "--provider", "sim"])
        .open_stdin()
        .start();
    at_once(3, |_| {
        for _ in 0..3 {
            workspace.run(&["cron", "run-due"]).output().assert_code(0);
        }
    });
    first.wait_until("some slots ran", |_| {
        workspace.has("ran.txt") && workspace.read("ran.txt").lines().count() >= 4
    });
    stop(first);
    stop(second);
    session.terminate();
    session.output();
    let slots = slots(&workspace);
    let count = |state: &str| slots.iter().filter(|slot| slot["state"] == state).count();
    let effects = workspace.read("ran.txt").lines().count();
    // A run that was stopped with its process may have written, and was not repeated.
    let most = count("ran") + count("interrupted") + count("failed");
    assert!(
        count("ran") <= effects && effects <= most,
        "{effects} effects: {slots:?}"
    );
}

/// CRON-2: jobs run in an open session.
#[test]
fn jobs_run_in_a_session() {
    let workspace = workspace();
    jobs(
        &workspace,
        &format!("{EACH_SECOND}command = \"echo x >> ran.txt\"\n"),
    );
    let mut session = workspace
        .run(&["--plain", "--provider", "sim"])
        .open_stdin()
        .start();
    session.wait_until("a slot ran, and the next", |_| {
        workspace.has("ran.txt") && workspace.read("ran.txt").lines().count() >= 2
    });
    session.wait_for_stderr("scheduled job test: ");
    session.wait_for_stderr(": ran · session ");
    session.say("/exit\n");
    session.output().assert_code(0);
    assert!(slots(&workspace).iter().any(|slot| slot["state"] == "ran"));
    let mut screen = workspace.run(&["--provider", "sim"]).on_screen(100, 30);
    screen.wait_for(super::tui::EMPTY);
    screen.wait_for(": ran · session ");
    super::tui::leave(&mut screen);
}

/// CRON-5: a notice goes to the desktop's program, as arguments and never as options; one that fails is tried again
/// later, and the run stays as it is.
#[test]
fn a_notice_reaches_the_desktop() {
    let notify = |script: &str| {
        let workspace = workspace();
        jobs(
            &workspace,
            "schedule = \"@yearly\"\ncommand = \"echo --urgency=low\"\ndeliver = [\"notice\"]\n",
        );
        let program = workspace.write("bin/notify-send", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = program.parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        let ran = workspace
            .run(&["cron", "run", "test"])
            .env("PATH", &path)
            .output();
        ran.assert_code(0);
        workspace
    };
    let told = notify("printf '%s|' \"$@\" > told.txt");
    assert_eq!(told.read("told.txt"), "--|windlass: test ran|--urgency=low|");
    assert_eq!(slots(&told)[0]["deliveries"][0]["state"], "delivered");
    let failed = notify("exit 3");
    let slot = &slots(&failed)[0];
    assert_eq!(slot["state"], "ran");
    assert_eq!(slot["deliveries"][0]["state"], "waiting", "{slot}");
    let detail = slot["deliveries"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("notify-send failed"), "{slot}");
}

/// CRON-3, LOOP-8: a daemon that is killed in the middle of runs runs no slot twice, leaves no process, and its runs are
/// marked as interrupted.
#[test]
fn a_killed_daemon_runs_nothing_twice() {
    let kills = std::env::var("WINDLASS_CRASH_RUNS").ok();
    let kills: u64 = kills.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut dice = Dice::new(20_261_116);
    for round in 0..kills.div_ceil(KILLS) {
        kill_daemons(round, &mut dice);
    }
}

/// Number of kills in one folder; `WINDLASS_CRASH_RUNS` sets the number of all.
const KILLS: u64 = 6;

fn kill_daemons(round: u64, dice: &mut Dice) {
    let marker = format!("47.{}{round:03}", std::process::id());
    let workspace = workspace();
    let command = format!("echo $$ >> ran.txt; sleep 0.2; (sleep {marker} &) ; sleep 0.4");
    jobs(
        &workspace,
        &format!("{EACH_SECOND}command = \"{command}\"\nmissed = \"skip\"\n"),
    );
    for _ in 0..KILLS {
        let running = daemon(&workspace);
        eventually(std::time::Duration::from_millis(800 + dice.roll(1_500)), || false);
        running.signal(Signal::KILL);
        running.output();
    }
    let sleepers = || processes_with(&format!("sleep {marker}"));
    assert!(eventually(PATIENCE, || sleepers().is_empty()), "{:?}", sleepers());
    // The next process marks what was left.
    workspace
        .run(&["cron", "disable", "test"])
        .output()
        .assert_code(0);
    workspace.run(&["cron", "run-due"]).output().assert_code(0);
    let slots = slots(&workspace);
    let started = slots
        .iter()
        .filter(|slot| ["ran", "interrupted"].contains(&slot["state"].as_str().unwrap()))
        .count();
    assert!(slots.iter().all(|slot| slot["state"] != "running"), "{slots:?}");
    let effects = match workspace.has("ran.txt") {
        true => workspace.read("ran.txt").lines().count(),
        false => 0,
    };
    let ran = slots.iter().filter(|slot| slot["state"] == "ran").count();
    assert!(
        started > 0 && ran <= effects && effects <= started,
        "round {round}: {effects} effects of {started} runs: {slots:?}"
    );
}

/// CRON-3: a run that was killed is continued in its session, if its job says so, and its calls do not run again.
#[test]
fn a_killed_run_is_continued() {
    let call = Reply::call("bash", json!({ "command": "echo once >> ran.txt" }));
    let stuck = Reply::text("never").fault(Fault::new().stall_after_events(1));
    let script = Script::new()
        .reply(call)
        .reply(stuck)
        .reply(Reply::text("finished"));
    let sim = SimServer::script(script);
    let workspace = workspace();
    workspace.use_sim(&sim, Protocol::Anthropic);
    let keys = "prompt = \"do it\"\nallowed_tools = [\"bash\"]\non_interrupted = \"continue\"\n";
    jobs(&workspace, &format!("schedule = \"every 2s\"\n{keys}"));
    let running = daemon(&workspace);
    assert!(
        eventually(PATIENCE, || sim.count() == 2),
        "the second request is on its way"
    );
    running.signal(Signal::KILL);
    running.output();
    let mut running = daemon(&workspace);
    running.wait_for_stdout("continued after an interruption");
    running.wait_until("it ended", |run| run.stdout().contains(": ran"));
    running.signal(Signal::KILL);
    running.output();
    assert_eq!(workspace.read("ran.txt"), "once\n");
    let slots = slots(&workspace);
    let ran = slots.iter().find(|slot| slot["state"] == "ran").unwrap();
    assert_eq!(ran["output"], "finished");
    assert!(
        sim.outlines()[2].contains("finish the rest"),
        "{}",
        sim.outlines()[2]
    );
}

/// SAFE-5 (S6.14), CRON-1: a run reads, and does nothing else that its job does not list; the rules of the settings
/// allow nothing here.
#[test]
fn a_run_does_what_is_listed() {
    for (listed, writes, kills) in [
        ("[]", false, false),
        ("[\"write_file(a.txt)\"]", true, false),
        ("[\"bash(kill *)\"]", false, true),
    ] {
        let replies = [
            Reply::call("read_file", json!({ "path": "plain.txt" })),
            Reply::call("bash", json!({ "command": "kill -0 1" })),
            Reply::call("write_file", json!({ "path": "a.txt", "content": "x" })),
            Reply::text("as far as I could"),
        ];
        let sim = SimServer::script(super::support::script(replies));
        let workspace = workspace();
        workspace.use_sim_with(
            &sim,
            Protocol::Anthropic,
            "[security]\nmode = \"full\"\nallow = [\"write_file\"]\n",
        );
        workspace.write("plain.txt", "plain to see");
        jobs(
            &workspace,
            &format!("schedule = \"@yearly\"\nprompt = \"go\"\nallowed_tools = {listed}\n"),
        );
        let output = workspace.run(&["cron", "run", "test"]).output();
        output.assert_code(0);
        assert!(output.stdout.contains("as far as I could"), "{output}");
        let outlines = sim.outlines();
        assert!(outlines[1].contains("plain to see"), "{}", outlines[1]);
        assert_eq!(
            outlines[2].contains("this run is unattended"),
            !kills,
            "{listed}: {}",
            outlines[2]
        );
        assert_eq!(workspace.has("a.txt"), writes, "{listed}");
    }
}

/// CRON-4: a question ends the run as "needs a person", and is delivered.
#[test]
fn a_question_needs_a_person() {
    let ask = Reply::call("ask_user", json!({ "question": "Which branch?" }));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [ask, Reply::text("never")]);
    jobs(
        &workspace,
        "schedule = \"@yearly\"\nprompt = \"go\"\ndeliver = [\"file:out/{job}.md\"]\n",
    );
    let output = workspace.run(&["cron", "run", "test"]).output();
    output.assert_code(5);
    assert_eq!(sim.count(), 1);
    let report = workspace.read("out/test.md");
    assert!(
        report.contains("needs a person") && report.contains("Which branch?"),
        "{report}"
    );
    assert!(report.contains("windlass --resume "), "{report}");
    assert_eq!(slots(&workspace)[0]["state"], "needs_person");
}

/// CRON-4, LOOP-9: a run has 20 iterations unless its job says otherwise.
#[test]
fn a_run_has_twenty_iterations() {
    for (keys, requests) in [("", 20), ("max_iterations = 3\n", 3)] {
        let script = (0..40).fold(Script::new(), |script, number| {
            script.reply(Reply::call(
                "read_file",
                json!({ "path": format!("{number}.txt") }),
            ))
        });
        let sim = SimServer::script(script);
        let workspace = workspace();
        workspace.use_sim(&sim, Protocol::Anthropic);
        jobs(
            &workspace,
            &format!("schedule = \"@yearly\"\nprompt = \"go\"\n{keys}"),
        );
        let output = workspace.run(&["cron", "run", "test"]).output();
        output.assert_code(1);
        assert!(output.stderr.contains("max_iterations"), "{output}");
        // One more request asks for a summary.
        assert_eq!(sim.count(), requests + 1);
    }
}

/// CRON-5: a condition that fails costs no request; one that succeeds gives its output to the prompt.
#[test]
fn a_condition_saves_requests() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("seen")]);
    jobs(
        &workspace,
        "schedule = \"@yearly\"\nprompt = \"summarize\"\nwhen = \"cat news.txt\"\n",
    );
    let output = workspace.run(&["cron", "run", "test"]).output();
    output.assert_code(0);
    assert!(output.stderr.contains("skipped (condition)"), "{output}");
    assert_eq!(sim.count(), 0);
    let listed = workspace.run(&["sessions", "list"]).output();
    assert!(listed.stdout.contains("No sessions"), "{listed}");
    workspace.write("news.txt", "the sky is blue");
    workspace.run(&["cron", "run", "test"]).output().assert_code(0);
    let session = slots(&workspace)[0]["session"].as_str().unwrap().to_owned();
    let exported = workspace.run(&["sessions", "export", &session]).output();
    assert!(exported.stdout.contains("the sky is blue"), "{exported}");
    assert_eq!(sim.count(), 1);
}

/// CRON-5, SAFE-4: a command job runs in the sandbox, without the network and outside access that it does not list.
#[test]
fn commands_run_in_the_sandbox() {
    let outside = super::support::elsewhere();
    let file = outside.path().join("x");
    for (command, code) in [
        ("echo in > here.txt".to_owned(), 0),
        (format!("echo out > {}", file.display()), 1),
        ("rm -rf /tmp/nothing".to_owned(), 1),
        ("exit 3".to_owned(), 1),
    ] {
        let workspace = workspace();
        jobs(
            &workspace,
            &format!("schedule = \"@yearly\"\ncommand = '{command}'\n"),
        );
        let output = workspace.run(&["cron", "run", "test"]).output();
        assert_eq!(output.code, Some(code), "{command}: {output}");
        assert_eq!(workspace.has("here.txt"), code == 0);
        // CRON-2: the run of a command is a session as well.
        let session = slots(&workspace)[0]["session"].as_str().unwrap().to_owned();
        let shown = workspace.run(&["sessions", "export", &session]).output();
        assert!(shown.assert_code(0).stdout.contains(&command), "{shown}");
        assert!(shown.stdout.contains("[cron] test - "), "{shown}");
    }
    assert!(!file.exists());
}

/// CRON-5: results go to a webhook, and to a session, whose model reads it with the next message.
#[test]
fn results_are_delivered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        while !seen.contains("\"output\"") {
            let count = stream.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        seen
    });
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text("the report"), Reply::text("thanks")],
    );
    let deliver = format!("[\"webhook:http://{address}/hook\", \"session:agent:main:main\"]");
    jobs(
        &workspace,
        &format!("schedule = \"@yearly\"\nprompt = \"go\"\ndeliver = {deliver}\n"),
    );
    workspace.run(&["cron", "run", "test"]).output().assert_code(0);
    let seen = receiver.join().unwrap();
    assert!(seen.contains("idempotency-key: test/"), "{seen}");
    assert!(
        seen.contains("\"state\":\"ran\"") && seen.contains("the report"),
        "{seen}"
    );
    let delivered = slots(&workspace)[0]["deliveries"].clone();
    assert!(
        delivered
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["state"] == "delivered"),
        "{delivered}"
    );
    let resumed = workspace
        .run(&["exec", "--resume", "agent:main:main", "and?", "--allow-home"])
        .output();
    resumed.assert_code(0);
    assert!(sim.outlines()[1].contains("the report"), "{}", sim.outlines()[1]);
}

/// CRON-1: a mistake names file, line, key and what is right, with the exit code of settings; a running daemon keeps the
/// last good jobs.
#[test]
fn mistakes_are_reported() {
    let workspace = workspace();
    for (keys, expected) in [
        (
            "schedul = \"@daily\"\nprompt = \"x\"",
            "cron.toml:3:1: jobs.test.schedul: unknown key; did you mean `schedule`?",
        ),
        (
            "schedule = \"0 0 30 2 *\"\nprompt = \"x\"",
            "cron.toml:3:12: jobs.test.schedule: `0 0 30 2 *` never fires",
        ),
        (
            "schedule = \"@daily\"\ntimezone = \"Europe/Berln\"\nprompt = \"x\"",
            "did you mean `Europe/Berlin`?",
        ),
    ] {
        jobs(&workspace, keys);
        for arguments in [
            &["cron", "list"][..],
            &["cron", "daemon"],
            &["cron", "run-due"],
            &["cron", "run", "test"],
        ] {
            let output = workspace.run(arguments).output();
            output.assert_code(3);
            assert!(output.stderr.contains(expected), "{arguments:?}: {output}");
        }
    }
    let never = workspace.run(&["cron", "test", "0 0 30 2 *"]).output();
    never.assert_code(3);
    jobs(
        &workspace,
        &format!("{EACH_SECOND}command = \"echo x >> ran.txt\"\n"),
    );
    let mut running = daemon(&workspace);
    running.wait_until("it ran", |_| workspace.has("ran.txt"));
    jobs(&workspace, "schedule = \"evry 1s\"\ncommand = \"true\"\n");
    running.wait_for_stdout("jobs.test.schedule: `evry 1s` is not a schedule");
    let before = workspace.read("ran.txt").lines().count();
    running.wait_until("the old job goes on", |_| {
        workspace.read("ran.txt").lines().count() > before + 1
    });
    stop(running);
}

/// CRON-5: jobs are added, listed, disabled, enabled and removed from the command line.
#[test]
fn jobs_are_managed() {
    let workspace = workspace();
    let add = [
        "cron",
        "add",
        "review",
        "weekdays at 08:30",
        "Review it",
        "--timezone",
        "Europe/Berlin",
    ];
    let more = [
        "--allow",
        "write_file",
        "--deliver",
        "notice",
        "--max-cost",
        "0.5",
        "--missed",
        "once within 2h",
    ];
    let added = workspace.run(&add).args(&more).output();
    added.assert_code(0);
    assert!(
        added.stdout.contains("added `review`") && added.stdout.contains("next: "),
        "{added}"
    );
    workspace.run(&add).output().assert_code(2);
    let bad = workspace.run(&["cron", "add", "b", "whenever", "x"]).output();
    bad.assert_code(3);
    assert!(
        bad.stderr
            .contains("jobs.b.schedule: `whenever` is not a schedule"),
        "{bad}"
    );
    let file = fs::read_to_string(workspace.home().join("config/cron.toml")).unwrap();
    assert!(
        file.contains("max_cost_usd = 0.5") && !file.contains("jobs.b"),
        "{file}"
    );
    let tested = workspace.run(&["cron", "test", "review"]).output();
    assert_eq!(tested.stdout.lines().count(), 11, "{tested}");
    assert!(
        tested.stdout.starts_with("weekdays at 08:30 in Europe/Berlin\n"),
        "{tested}"
    );
    workspace
        .run(&["cron", "disable", "review"])
        .output()
        .assert_code(0);
    let listed = workspace.run(&["cron", "list", "--json"]).output();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (listed[0]["id"].as_str(), listed[0]["disabled"].as_str()),
        (Some("review"), Some("enabled = false"))
    );
    workspace
        .run(&["cron", "enable", "review"])
        .output()
        .assert_code(0);
    workspace
        .run(&["cron", "remove", "review"])
        .output()
        .assert_code(0);
    let gone = workspace.run(&["cron", "run", "review"]).output();
    gone.assert_code(2);
    assert!(gone.stderr.contains("there is no job `review`"), "{gone}");
}

/// CRON-4, CRON-5: `cron test` shows the nights on which the clock changes.
#[test]
fn the_next_slots_name_changes_of_the_clock() {
    let workspace = workspace();
    let output = workspace
        .run(&[
            "cron",
            "test",
            "30 2 * * *",
            "--timezone",
            "Europe/Berlin",
            "-n",
            "400",
        ])
        .output();
    output.assert_code(0);
    let notes: Vec<&str> = output
        .stdout
        .lines()
        .filter(|line| line.contains("the clock"))
        .collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.contains("02:30 does not exist, so it runs at 03:00")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.contains("02:30 comes twice, and the first one counts")),
        "{notes:?}"
    );
}
