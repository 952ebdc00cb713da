//! A hook that does nothing before a call, compared with running its program.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::json;
use windlass_core::clock::system;
use windlass_core::hook::{CallAction, CallHook};
use windlass_core::id::CallId;
use windlass_core::permission::{Escalation, Proposal, Subject};
use windlass_core::tool::Category;
use windlass_hooks::{HookFile, HookHost, HookOrigin, HookSet, SessionFacts, SessionHooks};

use super::{median, milliseconds, told};
use crate::clock::now;
use crate::lab::Lab;
use crate::report::{Figure, Target};

const FILE: &str =
    r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]}}"#;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let rounds = if lab.quick { 20 } else { 300 };
    let file = HookFile::parse(Path::new("hooks.json"), HookOrigin::User, FILE);
    let host = HookHost {
        cwd: PathBuf::from("/"),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        sandbox: None,
        clock: system(),
    };
    let hooks = SessionHooks::new(SessionFacts::default(), host, HookSet::new(vec![file]), |_| {});
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut floor, mut agent) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let begun = now();
        bare()?;
        floor.push(milliseconds(begun, now()));
        let proposal = proposal(round);
        let begun = now();
        let action = runtime.block_on(hooks.before_call(&proposal));
        agent.push(milliseconds(begun, now()));
        anyhow::ensure!(action == CallAction::Proceed, "the hook did not let the call run");
    }
    let (floor, agent) = (median(floor), median(agent));
    Ok(vec![Figure {
        name: "a hook that does nothing, beyond its process".to_owned(),
        agent: told(agent),
        floor: told(floor),
        value: (agent - floor).max(0.0),
        unit: "ms",
        target: Target::AtMost(1.0),
    }])
}

/// Runs the program of the hook with the same input and nothing else.
fn bare() -> Result<()> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // The program may have ended before it could read.
    let _ = child.stdin.take().context("no input")?.write_all(FILE.as_bytes());
    child.wait_with_output()?;
    Ok(())
}

fn proposal(round: usize) -> Proposal {
    Proposal {
        call_id: CallId::from(format!("call{round}").as_str()),
        tool: "bash".to_owned(),
        category: Category::Write,
        arguments: json!({"command": "cargo test"}),
        subjects: vec![Subject::Command("cargo test".to_owned())],
        refusal: None,
        reasons: Vec::new(),
        escalation: Escalation::default(),
        blocked: None,
        cwd: PathBuf::from("/"),
        definition: None,
        preview: None,
    }
}
