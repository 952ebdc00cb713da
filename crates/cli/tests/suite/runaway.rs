//! Runaway commands: they are stopped before the machine, and the session goes on.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{eventually, processes_with};

use super::support::{results, with_replies};

fn call(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command, "write": true }))
}

/// SAFE-10: a command whose processes use too much memory together is killed with all of them, and the result says
/// why; memory that they share counts once.
#[test]
fn too_much_memory_ends_the_command() {
    let mark = format!("5301.{}", std::process::id());
    let hog = format!("python3 -c 'import time; x = b\"x\" * 60_000_000; time.sleep({mark})'");
    let several = format!("echo begun; for i in 1 2 3 4; do {hog} & done; (setsid {hog} &); wait");
    let shared = "python3 -c 'import os, time\nx = b\"x\" * 90_000_000\nfor i in range(4):\n \
                  if os.fork() == 0: time.sleep(2); os._exit(0)\nfor i in range(4): os.wait()\nprint(\"all sh\" + \"ared\")'";
    let (sim, workspace) = with_replies(
        Protocol::Anthropic,
        [call(&several), call(shared), Reply::text("done")],
    );
    let started = Instant::now();
    let args = ["exec", "go", "--mode", "full", "-c", "security.max_memory_mb=200"];
    let output = workspace.run(&args).output();
    output.assert_code(0);
    assert!(started.elapsed() < Duration::from_secs(30), "{output}");
    let results = results(&sim);
    for text in ["begun", "200.0 MB", "security.max_memory_mb", "signal KILL"] {
        assert!(results[0].contains(text), "{text}: {}", results[0]);
    }
    assert!(results[1].contains("all shared"), "{}", results[1]);
    assert_eq!(processes_with(&mark), [0_u32; 0]);
}

/// SAFE-10: a background job that uses too much memory ends, and says why.
#[test]
fn too_much_memory_ends_a_job() {
    let hog = "python3 -c 'import time; x = b\"x\" * 120_000_000; time.sleep(60)'";
    let replies = [
        Reply::call(
            "bash",
            json!({ "command": hog, "write": true, "background": true }),
        ),
        Reply::call(
            "bash_job",
            json!({ "action": "read", "job": "job-1", "wait_secs": 20 }),
        ),
        Reply::text("done"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let args = ["exec", "go", "--mode", "full", "-c", "security.max_memory_mb=100"];
    workspace.run(&args).output().assert_code(0);
    let results = results(&sim).concat();
    assert!(results.contains("security.max_memory_mb"), "{results}");
}

/// SAFE-10: `windlass sandbox` has the same limit.
#[test]
fn the_sandbox_command_has_the_limit() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let hog = "import time; x = b'x' * 120_000_000; time.sleep(60)";
    let args = [
        "sandbox",
        "-c",
        "security.max_memory_mb=100",
        "--",
        "python3",
        "-c",
        hog,
    ];
    let output = workspace.run(&args).output();
    output.assert_code(137);
    output.assert_says("security.max_memory_mb");
}

/// Starts up to 600 processes where 100 are allowed, and 300 more for root, and returns their number.
fn started_processes() -> usize {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, []);
    let script = "import os, signal, time\nown = []\ntry:\n while len(own) < 600:\n  pid = os.fork()\n  \
                  if pid == 0: time.sleep(60); os._exit(0)\n  own.append(pid)\nexcept OSError: pass\nprint(len(own))\n\
                  for pid in own: os.kill(pid, signal.SIGKILL)";
    let limit = "security.max_processes=100";
    let args = ["sandbox", "-c", limit, "--", "python3", "-c", script];
    let output = workspace.run(&args).output();
    output.assert_code(0);
    output.stdout.trim().parse().unwrap()
}

/// Returns true if the kernel limits the processes of root, too.
fn kernel_limits_processes() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    !is_root || (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// SAFE-10: a fork bomb fills the sandbox and not the machine, and ends with its call or the session, whether its shell
/// waits for it or not. Commands run again afterwards, and nothing is left.
#[test]
fn a_fork_bomb_ends() {
    let started = started_processes();
    assert!(started < 401 || !kernel_limits_processes(), "{started} processes");
    for tail in ["wait; sleep 60", "true"] {
        let mark = format!("bomb{}", std::process::id());
        // Where nothing limits it, it has at most 2,048 processes.
        let end = if kernel_limits_processes() { "never" } else { "$n" };
        let bomb = format!(
            "{mark}() {{ local n=$(($1 - 1)); [ {end} = 0 ] && exec sleep 30; {mark} $n | {mark} $n & }}; {mark} 10; {tail}"
        );
        let bomb = json!({ "command": bomb, "write": true, "timeout_secs": 3 });
        let again = "echo go''es on";
        let replies = [
            Reply::call("bash", bomb),
            call(again),
            call(again),
            call(again),
            call(again),
            Reply::text("done"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let started = Instant::now();
        let args = ["exec", "go", "--mode", "full", "-c", "security.max_processes=200"];
        let output = workspace.run(&args).output();
        output.assert_code(0);
        assert!(started.elapsed() < Duration::from_secs(60), "{output}");
        assert!(!output.stderr.contains("panicked"), "{output}");
        let ended = eventually(Duration::from_secs(5), || processes_with(&mark).is_empty());
        assert!(ended, "{tail}: {:?}", processes_with(&mark));
        // A bomb that its shell left behind may end with one of the next commands, which then fails.
        let results = results(&sim);
        let failed = results[1..]
            .iter()
            .filter(|result| !result.starts_with("goes on"));
        assert!(failed.count() <= 1, "{tail}: {results:?}");
    }
}

/// SAFE-10: a command that stops the process that watches it is ended with its sandbox, so it can escape neither its time
/// limit nor its memory limit, and commands run again afterwards.
#[test]
fn a_command_cannot_stop_its_supervisor() {
    let mark = format!("5302.{}", std::process::id());
    let stops = [
        format!("kill -STOP $PPID; sleep {mark}"),
        format!("kill -STOP -1; sleep {mark}"),
        format!("(setsid sh -c 'sleep 0.3; kill -STOP -1; sleep {mark}' &) ; sleep 1; sleep {mark}"),
    ];
    for stop in stops {
        let stopping = json!({ "command": stop, "write": true, "timeout_secs": 5 });
        let replies = [
            Reply::call("bash", stopping),
            call("echo go''es on"),
            Reply::text("done"),
        ];
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let started = Instant::now();
        let output = workspace.run(&["exec", "go", "--mode", "full"]).output();
        output.assert_code(0);
        assert!(started.elapsed() < Duration::from_secs(30), "{stop}: {output}");
        let results = results(&sim);
        assert!(results[0].contains("launcher ended"), "{stop}: {results:?}");
        assert!(results[1].contains("goes on"), "{stop}: {results:?}");
        assert_eq!(processes_with(&mark), [0_u32; 0], "{stop}");
    }
}

/// SAFE-10: memory that no process has mapped counts as well: files in memory, with and without a name, and System V
/// segments.
#[test]
fn memory_outside_of_processes_counts() {
    let wait = "\nprint('all', 'ocated', flush=True)\ntime.sleep(20)";
    let unnamed = "import os, time\nfor i in range(4):\n f = os.memfd_create('x')\n for j in range(100): os.write(f, b'x' * 1000000)";
    let hidden = format!("import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{unnamed}");
    let segments = "import ctypes, time\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\n\
                    c.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]\n\
                    c.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]\nc.shmdt.argtypes = [ctypes.c_void_p]\n\
                    for i in range(8):\n a = c.shmat(c.shmget(0, 50_000_000, 0o1600), None, 0)\n ctypes.memset(a, 1, 50_000_000)\n c.shmdt(a)";
    let named = "import time\nf = open('/dev/shm/x', 'wb')\nfor j in range(400): f.write(b'x' * 1000000)";
    for (script, expected) in [
        (unnamed, "security.max_memory_mb"),
        (hidden.as_str(), "security.max_memory_mb"),
        (segments, "security.max_memory_mb"),
        (named, "No space left"),
    ] {
        let command = "exec python3 hog.py";
        let (sim, workspace) = with_replies(Protocol::Anthropic, [call(command), Reply::text("done")]);
        workspace.write("hog.py", &format!("{script}{wait}"));
        let args = ["exec", "go", "--mode", "full", "-c", "security.max_memory_mb=200"];
        let started = Instant::now();
        let output = workspace.run(&args).output();
        output.assert_code(0);
        assert!(started.elapsed() < Duration::from_secs(15), "{script}: {output}");
        let result = results(&sim).concat();
        assert!(result.contains(expected), "{script}: {result}");
    }
}
