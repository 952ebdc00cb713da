//! Long outputs and background commands, through whole turns.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::clock::SystemClock;
use windlass_core::log::SessionQuery;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, PATIENCE, Run, WIRES, Workspace, eventually, processes_with};

use super::support::{check_events, with_replies};

const STREAM: [&str; 4] = ["exec", "-o", "stream-json", "go"];

fn contents(output: &Output) -> Vec<String> {
    let results = output.events_of("tool_result");
    let content = |event: &Value| event["content"].as_str().unwrap().to_owned();
    results.iter().map(content).collect()
}

/// Returns the outputs that the store has for all sessions, each with its content. Nothing may be left outside of it.
fn kept(workspace: &Workspace) -> Vec<(String, String)> {
    let outputs = workspace.home().join("state/outputs");
    for session in fs::read_dir(outputs).into_iter().flatten().flatten() {
        let left = fs::read_dir(session.path()).unwrap().flatten();
        let left: Vec<PathBuf> = left.map(|file| file.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    let database = workspace.home().join("data/windlass.db");
    let store = windlass_store::open(database, Arc::new(SystemClock::default())).unwrap();
    let reading = async {
        let mut kept = Vec::new();
        for session in store.list(&SessionQuery::default()).await.unwrap() {
            for attachment in store.attachments(&session.id).await.unwrap() {
                let content = store.content(&attachment.address).await.unwrap().unwrap();
                kept.push((attachment.name, String::from_utf8(content).unwrap()));
            }
        }
        kept
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(reading)
}

/// TOOL-3 (S6.3), CTX-11: a long result is truncated with a notice as its last line, the user is warned, and
/// the model reads the full output in the next iteration, by range and by pattern.
#[test]
fn a_cut_output_is_read_in_the_next_iteration() {
    for wire in WIRES {
        let (sim, workspace) = with_replies(
            wire,
            [
                Reply::call("bash", json!({"command": "seq 1 400000; exit 3"})),
                Reply::call(
                    "tool_output",
                    json!({"id": "{{last_quoted}}", "offset": 200_000, "limit": 2}),
                )
                .and_call(
                    "tool_output",
                    json!({"id": "{{last_quoted}}", "pattern": "^31415.$", "limit": 2}),
                ),
                Reply::text("read"),
            ],
        );
        let output = workspace.run(&STREAM).output();
        output.assert_code(0);
        check_events(&output);
        sim.assert_valid();
        let contents = contents(&output);
        let (shown, notices) = contents[0].split_at(contents[0].find("\n\n[The whole").unwrap());
        assert!(shown.starts_with("1\n2\n3\n"));
        assert_eq!(shown.chars().count(), 40_000);
        let [(id, whole)] = &kept(&workspace)[..] else {
            panic!("one output is kept\n{output}");
        };
        assert!(whole.starts_with("1\n2\n") && whole.ends_with("\n399999\n400000\n"));
        let expected = format!(
            "\n\n[The whole output is kept; read it with tool_output, id \"{id}\"]\n\
             [OUTPUT TRUNCATED: Showing 40,000 of 2,688,895 characters from bash]"
        );
        assert_eq!(notices, expected, "{wire}");
        assert_eq!(
            contents[1..],
            [
                "200000\t200000\n200001\t200001\n[lines 200000-200001 of 400000; continue with offset=200002]",
                "314150: 314150\n314151: 314151\n[2 matches so far; continue with offset=314152, or narrow the pattern]"
            ],
            "{wire}"
        );
        let warnings = output.events_of("warning");
        assert_eq!(warnings.len(), 1, "{output}");
        assert_eq!(
            warnings[0]["message"],
            "the output of bash was cut for the model: 40,000 of 2,688,895 characters"
        );
        let results = output.events_of("tool_result");
        assert_eq!(results[0]["is_error"], true);
    }
}

/// TOOL-3: outputs of other tools are stored as well, the user sees the warning as text, and a disk error
/// loses only the rest of the output.
#[test]
fn every_long_result_is_kept() {
    let script = || [Reply::call("grep", json!({"pattern": "x"})), Reply::text("seen")];
    let fill = |workspace: &Workspace| {
        workspace.write("long.txt", &format!("{}\n", "x".repeat(300)).repeat(300));
        let config = workspace.config_file();
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, format!("{text}\n[tools]\nmax_tool_result_chars = 1000\n")).unwrap();
    };
    let (_sim, workspace) = with_replies(Protocol::Anthropic, script());
    fill(&workspace);
    let output = workspace.run(&["exec", "go"]).output();
    output
        .assert_code(0)
        .assert_says("the output of grep was cut for the model: 1,000 of ");
    assert_eq!(kept(&workspace).len(), 1);

    let (sim, workspace) = with_replies(Protocol::Anthropic, script());
    fill(&workspace);
    fs::create_dir_all(workspace.home().join("state")).unwrap();
    fs::write(workspace.home().join("state/outputs"), "in the way").unwrap();
    fs::create_dir_all(workspace.home().join("data")).unwrap();
    fs::write(workspace.home().join("data/blobs"), "in the way").unwrap();
    let output = workspace.run(&STREAM).output();
    output.assert_code(0);
    check_events(&output);
    let content = &contents(&output)[0];
    assert!(!content.contains("is kept"), "{content}");
    assert!(
        content.contains("\n\n[OUTPUT TRUNCATED: Showing 1,000 of "),
        "{content}"
    );
    sim.assert_valid();
}

/// CTX-11: an output is read after a restart, from the store, by range and by pattern; its content goes with its session.
#[test]
fn an_output_is_read_after_a_restart() {
    let command = "seq 1 400000";
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("bash", json!({"command": command})),
            Reply::text("counted"),
            Reply::call("tool_output", json!({"id": "{{user}}", "offset": 399_999})).and_call(
                "tool_output",
                json!({"id": "{{user}}", "pattern": "^31415.$", "limit": 1}),
            ),
            Reply::text("read"),
        ],
    );
    workspace.run(&STREAM).output().assert_code(0);
    let [(id, whole)] = &kept(&workspace)[..] else {
        panic!("one output is stored");
    };
    assert_eq!(whole.lines().count(), 400_000);
    let mut again = vec!["exec", "-o", "stream-json", "--continue"];
    again.push(id);
    let output = workspace.run(&again).output();
    output.assert_code(0);
    sim.assert_valid();
    assert_eq!(
        contents(&output),
        [
            "399999\t399999\n400000\t400000\n[lines 399999-400000 of 400000; this is the end]",
            "314150: 314150\n[1 match so far; continue with offset=314151, or narrow the pattern]"
        ]
    );
    let blobs = workspace.home().join("data/blobs");
    let files = || {
        let folders = fs::read_dir(&blobs).unwrap().flatten();
        folders.flat_map(|folder| {
            fs::read_dir(folder.path())
                .unwrap()
                .flatten()
                .map(|file| file.path())
        })
    };
    let stored: Vec<PathBuf> = files().collect();
    assert_eq!(stored.len(), 1);
    let mode = fs::metadata(&stored[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let list = workspace.run(&["sessions", "list", "--json"]).output().json();
    let session = list[0]["id"].as_str().unwrap();
    let deleted = workspace.run(&["sessions", "delete", "--yes", session]).output();
    deleted.assert_code(0);
    assert_eq!(files().count(), 0);
}

/// Returns the peak memory of a process in KB, if it still exists.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Runs to the end and returns the peak memory in KB.
fn run_and_measure(run: Run, limit: Duration) -> (Output, u64) {
    let run = run.limit(limit).start();
    let mut peak = 0;
    let ended = eventually(limit, || {
        let now = peak_memory(run.pid());
        peak = peak.max(now.unwrap_or_default());
        // A zombie process has no memory any more.
        now.is_none()
    });
    assert!(ended, "it still runs");
    (run.output(), peak)
}

/// CTX-1: a turn far from the limit loads no tokenizer, although the model's is public: it takes no more memory
/// than with a model that has none.
#[test]
fn a_short_turn_loads_no_tokenizer() {
    let peak = |model: &str| {
        let calls = (0..6)
            .map(|number| Reply::call("bash", json!({"command": format!("sleep 0.1; seq {number} 300")})));
        let (_sim, workspace) = with_replies(Protocol::Chat, calls.chain([Reply::text("done")]));
        let (output, peak) = run_and_measure(workspace.run(&["exec", "--model", model, "go"]), PATIENCE);
        output.assert_code(0);
        peak
    };
    let (public, other) = (peak("gpt-4o"), peak("sim-1"));
    println!("{public} KB and {other} KB");
    // The vocabulary alone takes 20 MB.
    assert!(
        other > 1_000 && public < other + 10_000,
        "{public} KB and {other} KB"
    );
}

/// TOOL-3: three gigabytes of output take no memory; the first 64 MB are stored, and the model is informed
/// that there was more.
#[test]
fn a_flood_costs_no_memory() {
    let command = "yes | head -c 3000000000";
    let (sim, workspace) = with_replies(
        Protocol::Chat,
        [
            Reply::call("bash", json!({"command": command, "timeout_secs": 600})),
            Reply::text("dry"),
        ],
    );
    let limit = Duration::from_secs(600);
    let (output, peak) = run_and_measure(workspace.run(&["exec", "go"]), limit);
    output.assert_code(0);
    println!("{peak} KB at most, {:?}", output.elapsed);
    assert!(peak > 1_000 && peak < 100_000, "{peak} KB");
    let request = sim.requests().pop().unwrap();
    let content = &request.seen.last_result().unwrap().text;
    assert!(
        content.contains("[The beginning of the output is kept; read it with"),
        "{}",
        content.len()
    );
    assert!(content.ends_with("[OUTPUT TRUNCATED: Showing 40,000 of 3,000,000,000 characters from bash]"));
    let [(_, whole)] = &kept(&workspace)[..] else {
        panic!("one output is kept");
    };
    assert!(
        whole.len() > 64_000_000 && whole.len() < 64_000_200,
        "{}",
        whole.len()
    );
    assert!(whole.ends_with("\n[the output was longer; only its first 64.0 MB are kept]\n"));
}

/// Returns a marker that identifies the processes of one test.
fn marker(workspace: &Workspace) -> String {
    let root = workspace.path();
    let name = root.parent().and_then(|root| root.file_name());
    name.and_then(|name| name.to_str()).unwrap().to_owned()
}

/// TOOL-9: a background command is started, read and ended over several iterations; its turn continues in the
/// meantime.
#[test]
fn a_job_lives_over_iterations() {
    let serve = "while [ ! -e go ]; do sleep 0.01; done; echo went; sleep 100";
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::call("bash", json!({"command": serve, "background": true})),
            Reply::call("write_file", json!({"path": "go", "content": ""})),
            Reply::call(
                "bash_job",
                json!({"action": "read", "job": "job-1", "wait_secs": 20}),
            ),
            Reply::call("bash_job", json!({"action": "kill", "job": "job-1"})),
            Reply::call("bash_job", json!({"action": "list"})),
            Reply::text("served"),
        ],
    );
    let output = workspace.run(&STREAM).output();
    output.assert_code(0);
    check_events(&output);
    sim.assert_valid();
    let contents = contents(&output);
    assert!(
        contents[0].starts_with("(no output)\n[job-1: running for "),
        "{output}"
    );
    assert!(contents[2].starts_with("went\n[job-1: running for "), "{output}");
    assert!(
        contents[3].starts_with("(no new output)\n[job-1: ended with signal TERM after "),
        "{output}"
    );
    assert!(
        contents[4].starts_with("job-1: while [ ! -e go ]; ")
            && contents[4].contains("(ended with signal TERM after"),
        "{output}"
    );
    let results = output.events_of("tool_result");
    assert!(results.iter().all(|event| event["is_error"] == false), "{output}");
}

/// TOOL-9: background commands end with the program: at its normal end, however stubborn the command and
/// whatever it left behind, after one signal, and after two.
#[test]
fn nothing_is_left_after_the_end() {
    let deaf = "trap '' TERM INT HUP; while :; do sleep 0.1; done";
    for signals in [0, 1, 2] {
        let workspace = super::support::workspace();
        let marker = marker(&workspace);
        let job = |command: String| json!({"command": command, "background": true});
        let begin = Reply::call("bash", job(format!("sh -c \"{deaf}\" {marker}")))
            .and_call("bash", job(format!("setsid sh -c \"{deaf}\" {marker} & exit 0")))
            .and_call("bash", job(format!("sleep 1000; true {marker}")));
        let replies = if signals == 0 {
            vec![begin, Reply::text("begun")]
        } else {
            let wait = Reply::call(
                "bash",
                json!({"command": format!("echo up > up; sleep 1000; true {marker}")}),
            );
            vec![begin, wait]
        };
        let sim = windlass_testkit::SimServer::script(super::support::script(replies));
        workspace.use_sim(&sim, Protocol::Anthropic);
        let run = workspace.run(&STREAM).start();
        if signals > 0 {
            assert!(eventually(PATIENCE, || workspace.has("up")));
            assert!(processes_with(&marker).len() >= 4);
        }
        for _ in 0..signals {
            run.interrupt();
        }
        let output = run.output();
        output.assert_code(if signals == 0 { 0 } else { 130 });
        let begun = contents(&output);
        assert!(
            begun
                .iter()
                .take(3)
                .all(|text| text.contains("running for") || text.contains("still runs")),
            "{output}"
        );
        // A process killed at the last moment may take a while to disappear.
        let gone = eventually(PATIENCE, || processes_with(&marker).is_empty());
        assert!(
            gone,
            "after {signals} signals: {:?}\n{output}",
            processes_with(&marker)
        );
    }
}

/// The stored output of a command has the bytes that the command wrote.
#[test]
fn a_stored_output_keeps_its_bytes() {
    let command = "head -c 2000000 /dev/zero; printf 'caf\\303\\250 \\377\\n'; echo needle";
    let replies = [
        Reply::call("bash", json!({ "command": command })),
        Reply::text("fine"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let expected: Vec<u8> = [&[0; 2_000_000][..], b"caf\xc3\xa8 \xff\nneedle\n"].concat();
    let found = files_below(&workspace.home());
    assert!(
        found.contains(&expected),
        "no file with these bytes among {} files",
        found.len()
    );
}

/// Returns the contents of all files below a folder.
fn files_below(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files_below(&path));
        } else {
            all.push(std::fs::read(&path).unwrap());
        }
    }
    all
}
