//! Stores that cannot be written, sessions in use by another process, and many processes at once.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use windlass_sim::{Fault, Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, Run, Running, Workspace, eventually};

use super::support::with_replies;

const BINARY: &str = env!("CARGO_BIN_EXE_windlass");

/// Returns the sessions of all folders.
fn sessions(workspace: &Workspace) -> Vec<Value> {
    let listed = workspace
        .run(&["sessions", "list", "--all", "-n", "0", "--json"])
        .output();
    listed.assert_code(0).json().as_array().unwrap().clone()
}

/// Runs a shell with private mounts, where `$W` is the program. `None` if this system does not allow that.
fn in_own_mounts(workspace: &Workspace, script: &str) -> Option<Output> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).output();
    if !allowed.is_ok_and(|tried| tried.status.success()) {
        return None;
    }
    let run = Run::new(Path::new("unshare"), &["-rm", "sh", "-c", script]);
    Some(in_shell(workspace, run))
}

fn in_shell(workspace: &Workspace, run: Run) -> Output {
    run.cwd(workspace.path())
        .env("HOME", &workspace.user_home().display().to_string())
        .env("WINDLASS_HOME", &workspace.home().display().to_string())
        .env("W", BINARY)
        .output()
}

/// Returns the exit codes that a script has printed.
fn codes(output: &Output) -> Vec<&str> {
    let lines = output.stdout.lines();
    lines.filter_map(|line| line.strip_prefix("code ")).collect()
}

/// SES-5: a full disk is reported before anything runs, and in the middle of a turn; with free space the
/// session continues.
#[test]
fn a_full_disk_is_a_clear_error() {
    let replies = [
        Reply::text("one"),
        Reply::text(&"long ".repeat(80_000)),
        Reply::text("went on"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let script = r#"
        DATA="$WINDLASS_HOME/data"; mkdir -p "$DATA"
        mount -t tmpfs -o size=3000k tmpfs "$DATA" || exit 77
        "$W" exec first 2>&1; echo "code $?"
        head -c 10000000 /dev/zero > "$DATA/filler" 2>/dev/null
        "$W" exec --continue second 2>&1; echo "code $?"
        rm "$DATA/filler"
        FREE=$(( $(stat -f -c '%a * %S' "$DATA") ))
        head -c $(( FREE - 250000 )) /dev/zero > "$DATA/filler"
        "$W" exec --continue third > /dev/null 2> err.txt; echo "code $?"; cat err.txt
        rm "$DATA/filler"
        "$W" exec --continue fourth 2>&1; echo "code $?"
        "$W" db check; echo "code $?"
    "#;
    let Some(output) = in_own_mounts(&workspace, script) else {
        return;
    };
    assert_eq!(codes(&output), ["0", "10", "10", "0", "0"], "{output}");
    assert_eq!(output.stdout.matches("the disk is full").count(), 2, "{output}");
    assert!(output.stdout.contains("went on") && output.stdout.contains("no problems found"));
    assert_eq!(sim.count(), 3, "nothing was asked that could not be stored");
    sim.assert_valid();
}

/// SES-5: the same with a limit on the size of files, where no mounts are allowed.
#[test]
fn a_limit_on_files_is_a_clear_error() {
    let replies = [Reply::text(&"long ".repeat(80_000)), Reply::text("went on")];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    // Blocks of 512 bytes. A write beyond the limit is an error, not a signal.
    let script = r#"
        trap '' XFSZ
        (ulimit -f 800; exec "$W" exec first > /dev/null 2> err.txt); echo "code $?"
        "$W" exec --continue second 2>&1; echo "code $?"
        "$W" db check; echo "code $?"
    "#;
    let output = in_shell(&workspace, Run::new(Path::new("sh"), &["-c", script]));
    let error = workspace.read("err.txt");
    assert_eq!(codes(&output), ["10", "0", "0"], "{output}\n{error}");
    assert!(
        error.contains("error: the record could not be written"),
        "{error}"
    );
    sim.assert_valid();
}

/// SES-5: an empty database file is damage: it is reported, and the file stays as it is.
#[test]
fn an_empty_database_is_damage() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one").forever()]);
    workspace.run(&["exec", "first"]).output().assert_code(0);
    let path = workspace.run(&["db", "path"]).output().stdout.trim().to_owned();
    std::fs::write(&path, "").unwrap();
    for args in [
        &["exec", "--continue", "second"][..],
        &["exec", "new"],
        &["sessions", "list"],
        &["db", "check"],
        &["db", "vacuum"],
    ] {
        let output = workspace.run(args).output();
        output.assert_code(10).assert_says("is empty").assert_says(&path);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "{args:?}");
    }
    assert_eq!(sim.count(), 1);
    for left in [&path, &format!("{path}-wal"), &format!("{path}-shm")] {
        let _ = std::fs::remove_file(left);
    }
    workspace.run(&["exec", "new"]).output().assert_code(0);
    workspace.run(&["db", "check"]).output().assert_code(0);
}

/// SES-5: a store that cannot be written is a clear error, and no model is called.
#[test]
fn a_store_that_cannot_be_written_is_a_clear_error() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one")]);
    std::fs::write(workspace.home().join("data"), "a file").unwrap();
    let output = workspace.run(&["exec", "go"]).output();
    output.assert_code(10).assert_says("cannot be written");
    assert_eq!(output.stdout, "");
    std::fs::remove_file(workspace.home().join("data")).unwrap();
    let script = r#"
        DATA="$WINDLASS_HOME/data"; mkdir -p "$DATA"
        mount -t tmpfs tmpfs "$DATA" || exit 77
        "$W" exec first 2>&1; echo "code $?"
        # `bind` changes the mount alone: an ordinary user may do that, and may not remount the file system.
        mount -o remount,bind,ro "$DATA" || exit 78
        "$W" exec --continue second 2>&1; echo "code $?"
        "$W" exec --ephemeral third 2>&1; echo "code $?"
    "#;
    let Some(output) = in_own_mounts(&workspace, script) else {
        return;
    };
    // The last request has no reply left, which shows that the model was called.
    assert_eq!(codes(&output), ["0", "10", "8"], "{output}");
    assert_eq!(sim.count(), 2);
}

/// Starts a run that waits for a model that does not answer.
fn stalled(workspace: &Workspace, arguments: &[&str]) -> Running {
    let mut run = workspace.run(arguments).start();
    run.wait_for_stdout(r#""type":"delta""#);
    run
}

/// SES-2: a session has one owner: a second process gets a separate exit code, can read and cannot delete;
/// once the first has ended, it can continue.
#[test]
fn a_session_that_is_in_use_is_busy() {
    let stall = Reply::text("one two three")
        .delta_chars(3)
        .fault(Fault::new().stall_after_events(5));
    let (sim, workspace) = with_replies(Protocol::Anthropic, [stall, Reply::text("went on")]);
    let run = stalled(&workspace, &["exec", "-o", "stream-json", "go"]);
    let id = sessions(&workspace)[0]["id"].as_str().unwrap().to_owned();
    let second = workspace.run(&["exec", "--resume", &id, "me too"]).output();
    second
        .assert_code(4)
        .assert_says("is busy: it runs a turn, or is open in another Windlass")
        .assert_says("--fork");
    assert_eq!(second.stdout, "");
    let gone = workspace.run(&["sessions", "delete", "--yes", &id]).output();
    gone.assert_code(4).assert_says("in use by");
    let shown = workspace.run(&["sessions", "show", &id]).output();
    assert!(shown.assert_code(0).stdout.contains("In use by"), "{shown}");
    assert_eq!(sim.count(), 1);
    run.interrupt();
    run.output().assert_code(130);
    let again = workspace.run(&["exec", "--resume", &id, "go on"]).output();
    assert_eq!(again.assert_code(0).stdout, "went on\n");
    sim.assert_valid();
}

/// SES-2, SES-5: many processes share one database, created by the first one: all succeed, and nothing is
/// lost.
#[test]
fn many_processes_share_a_database() {
    const PROCESSES: usize = 32;
    let call = Reply::call("bash", serde_json::json!({ "command": "true" }));
    let done = Reply::text("done").when(windlass_sim::When::new().last_tool("bash"));
    let replies = [done.forever(), call.forever()];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let runs: Vec<Running> = (0..PROCESSES)
        .map(|number| workspace.run(&["exec", &format!("number {number}")]).start())
        .collect();
    for run in runs {
        let output = run.output();
        assert_eq!(output.assert_code(0).stdout, "done\n");
    }
    let sessions = sessions(&workspace);
    assert_eq!(sessions.len(), PROCESSES);
    for session in &sessions {
        assert_eq!(session["totals"]["messages"], 4, "{session}");
        assert_eq!(session["standing"], "answered", "{session}");
    }
    workspace.run(&["db", "check"]).output().assert_code(0);
    sim.assert_valid();
}

/// SES-2: when two processes want the same session at the same moment, one gets it.
#[test]
fn one_of_two_gets_the_session() {
    let slow = Reply::text("answer").fault(Fault::new().delay_ms(300)).forever();
    let (sim, workspace) = with_replies(Protocol::Anthropic, [slow]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let runs = [(); 4].map(|()| workspace.run(&["exec", "--continue", "again"]).start());
    let mut codes = runs.map(|run| run.output().code);
    codes.sort_unstable();
    let answered = codes.iter().filter(|code| **code == Some(0)).count();
    // On a busy machine they may also run one after the other.
    assert!(answered >= 1, "{codes:?}");
    assert!(
        codes.iter().all(|code| [Some(0), Some(4)].contains(code)),
        "{codes:?}"
    );
    assert_eq!(sim.count(), 1 + answered);
    assert!(eventually(PATIENCE, || sessions(&workspace).len() == 1));
    sim.assert_valid();
}

/// SES-1, SES-5: a database that is foreign, newer or damaged is reported with advice, and left unchanged.
#[test]
fn a_foreign_database_is_left_alone() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one")]);
    let file = workspace.home().join("data/windlass.db");
    workspace.expect_damage();
    let content = "this is not a database ".repeat(200);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, &content).unwrap();
    for arguments in [
        vec!["exec", "go"],
        vec!["sessions", "list"],
        vec!["db", "check"],
        vec!["db", "vacuum"],
        vec!["db", "backup", "copy.db"],
    ] {
        let output = workspace.run(&arguments).output();
        output.assert_code(10).assert_says("not a database of Windlass's");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    assert!(!workspace.has("copy.db"));
    assert_eq!(sim.count(), 0);
}

/// SES-1: the database can be checked, copied and compacted; no file is overwritten.
#[test]
fn a_database_is_looked_after() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one")]);
    let nothing = workspace.run(&["db", "check"]).output();
    assert!(
        nothing.assert_code(0).stdout.contains("no database yet"),
        "{nothing}"
    );
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let path = workspace.run(&["db", "path"]).output();
    let file = workspace.home().join("data/windlass.db");
    assert_eq!(path.assert_code(0).stdout.trim(), file.display().to_string());
    let check = workspace.run(&["db", "check"]).output();
    assert!(check.assert_code(0).stdout.contains("1 session,"), "{check}");
    workspace
        .run(&["db", "backup", "copy.db"])
        .output()
        .assert_code(0);
    let again = workspace.run(&["db", "backup", "copy.db"]).output();
    again.assert_code(1).assert_says("copy.db: already exists");
    workspace.run(&["db", "vacuum"]).output().assert_code(0);
    // The copy is a regular database.
    std::fs::copy(workspace.path().join("copy.db"), &file).unwrap();
    assert_eq!(sessions(&workspace).len(), 1);
}

/// SES-5: damage to a database is reported with its location, and the rest stays readable.
#[test]
fn damage_is_found() {
    let replies = (0..40).map(|number| Reply::text(&format!("answer {number} {}", "x".repeat(3000))));
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    for _ in 0..4 {
        workspace.run(&["exec", "go"]).output().assert_code(0);
    }
    workspace.run(&["db", "vacuum"]).output().assert_code(0);
    workspace.expect_damage();
    let file = workspace.home().join("data/windlass.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    for byte in bytes.iter_mut().skip(middle).take(8192) {
        *byte = 0xff;
    }
    std::fs::write(&file, &bytes).unwrap();
    let output = workspace.run(&["db", "check"]).output();
    assert!(matches!(output.code, Some(1 | 10)), "{output}");
    assert!(!output.stdout.contains("no problems found"), "{output}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing was changed");
}

/// SES-5: stored files are readable only by their user.
#[test]
fn what_is_kept_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one")]);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&workspace.home().join("data/windlass.db")), 0o600);
    workspace
        .run(&["db", "backup", "copy.db"])
        .output()
        .assert_code(0);
    assert_eq!(mode(&workspace.path().join("copy.db")), 0o600);
    let list = workspace.run(&["sessions", "list", "--json"]).output().json();
    let id = list[0]["id"].as_str().unwrap();
    workspace
        .run(&["sessions", "export", id, "-o", "session.md"])
        .output()
        .assert_code(0);
    assert_eq!(mode(&workspace.path().join("session.md")), 0o600);
}

/// SES-5, SES-12: a database that is removed or replaced during a conversation is noticed, nothing more is asked of
/// the model, and no session is offered that does not exist.
#[test]
fn a_database_that_disappears_is_noticed() {
    // During the first turn, at its end, and replaced by another one.
    for (during, replace) in [(true, false), (false, false), (false, true)] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, ["one", "two"].map(Reply::text));
        workspace.expect_damage();
        let mut running = workspace.run(&[]).open_stdin().start();
        running.say("first\n");
        match during {
            true => running.wait_until("the model is asked", |_| sim.count() > 0),
            false => running.wait_for_stdout("one"),
        }
        let data = workspace.home().join("data");
        for entry in std::fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("windlass.db"))
            {
                std::fs::remove_file(path).unwrap();
            }
        }
        if replace {
            workspace
                .run(&["exec", "--provider", "sim", "hello"])
                .output()
                .assert_code(0);
        }
        running.say("second\n");
        running.hush();
        let output = running.output();
        output.assert_says("was removed or replaced while it was in use");
        assert!(!output.stdout.contains("two"), "{output}");
        assert!(!output.stderr.contains("Resume with"), "{output}");
        assert_eq!(sim.count(), 1, "{output}");
    }
}

/// SES-1, SES-5: damage is reported with the file and the next step by whatever command meets it, a log with other
/// content is damage and not a reason to lose sessions, and what is not a file is no database.
#[test]
fn damage_names_the_next_step() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one").forever()]);
    workspace.run(&["exec", "first"]).output().assert_code(0);
    workspace.run(&["db", "vacuum"]).output().assert_code(0);
    workspace.expect_damage();
    let file = workspace.home().join("data/windlass.db");
    let log = workspace.home().join("data/windlass.db-wal");
    let whole = std::fs::read(&file).unwrap();
    let commands = [
        &["exec", "--continue", "second"][..],
        &["sessions", "list"],
        &["db", "check"],
    ];
    let check = |texts: &[&str]| {
        for command in commands {
            let output = workspace.run(command).limit(PATIENCE).output();
            output.assert_code(10).assert_says(&file.display().to_string());
            texts.iter().for_each(|text| {
                output.assert_says(text);
            });
        }
    };
    let _ = std::fs::remove_file(&log);
    std::fs::write(&file, &whole[..whole.len() / 3]).unwrap();
    check(&["is damaged", "windlass db check", "windlass db backup"]);
    std::fs::write(&file, &whole).unwrap();
    std::fs::write(&log, "other bytes ".repeat(100)).unwrap();
    check(&["-wal", "is not a write-ahead log", "windlass db check"]);
    std::fs::remove_file(&log).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    check(&["is not a regular file"]);
    assert_eq!(sim.count(), 1);
}
