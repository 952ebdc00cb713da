//! The warden of a server that is stopped or killed.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use windlass_testkit::{PATIENCE, eventually, processes_with};

use super::sandbox::helper;

/// A server with a warden, and a command that it started.
struct Scene {
    server: Child,
    /// An argument of the processes of the command.
    mark: String,
}

impl Scene {
    /// Starts a server. In the script, `MARK` is an argument by which its processes are found.
    fn start(milliseconds: u32, script: &str, mark: &str) -> Self {
        let mark = format!("{}.{mark}", 70_000 + std::process::id());
        let server = Command::new(helper())
            .args(["warden", &milliseconds.to_string()])
            .arg(script.replace("MARK", &mark))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("a server");
        Self { server, mark }
    }

    fn signal(&self, signal: Signal) {
        send(self.server.id(), signal);
    }

    /// The warden, among the children of the server.
    fn warden(&self) -> u32 {
        let server = self.server.id();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children: Vec<u32> = children
            .expect("the children")
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect();
        let wardens = processes_with("--warden");
        let own = children.iter().find(|pid| wardens.contains(pid));
        *own.expect("a warden")
    }

    fn count(&self) -> usize {
        processes_with(&format!("sleep\0{}", self.mark)).len()
    }

    fn wait_for(&self, count: usize) {
        assert!(
            eventually(PATIENCE, || self.count() == count),
            "{} processes instead of {count}",
            self.count()
        );
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("a signal");
}

fn exists(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// DIST-3: the processes of a stopped server end at its deadline, also those that hide; the server itself is left to
/// go on, and so is its warden, which no signal to a group reaches.
#[test]
fn a_stopped_server_has_no_processes_past_its_deadline() {
    let script = "sleep MARK & setsid sleep MARK & env -i setsid sleep MARK & trap '' TERM; sleep MARK";
    let scene = Scene::start(700, script, "1");
    scene.wait_for(4);
    let warden = scene.warden();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        send(warden, signal);
    }
    scene.signal(Signal::STOP);
    scene.wait_for(0);
    assert!(exists(scene.server.id()));
    assert!(exists(warden));
}

/// DIST-3: what a killed server started ends with it; then the warden exits.
#[test]
fn a_killed_server_leaves_nothing_behind() {
    let script = "sleep MARK & setsid sh -c 'sleep MARK & sleep MARK' & exec sleep MARK";
    let mut scene = Scene::start(60_000, script, "2");
    scene.wait_for(4);
    let warden = scene.warden();
    scene.signal(Signal::KILL);
    scene.server.wait().expect("its end");
    scene.wait_for(0);
    assert!(eventually(PATIENCE, || !exists(warden)), "the warden still runs");
}

/// DIST-3: a process without the mark is known from the deadline before.
#[test]
fn a_process_without_a_mark_is_remembered() {
    let script = "env -i setsid sleep MARK & exec sleep MARK";
    let mut scene = Scene::start(300, script, "3");
    scene.wait_for(2);
    // Two deadlines pass without an event that a test could wait for.
    let since = windlass_sandbox::since_boot();
    let passed = || windlass_sandbox::since_boot() - since > std::time::Duration::from_millis(900);
    assert!(eventually(PATIENCE, passed));
    scene.signal(Signal::KILL);
    scene.server.wait().expect("its end");
    scene.wait_for(0);
}

/// DIST-3: a warden that was killed is started again.
#[test]
fn a_killed_warden_is_replaced() {
    let scene = Scene::start(700, "exec sleep MARK", "4");
    scene.wait_for(1);
    let first = scene.warden();
    send(first, Signal::KILL);
    let another = || {
        let wardens = processes_with("--warden");
        let server = scene.server.id();
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children = children.unwrap_or_default();
        let mut children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        children.any(|pid: u32| pid != first && wardens.contains(&pid))
    };
    assert!(eventually(PATIENCE, another), "no other warden");
    scene.signal(Signal::STOP);
    scene.wait_for(0);
}
