//! `--debug-dump`: every model request and reply in files of its own.

use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions, read_dir};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use windlass_core::compact::subgoal::{Registry, Subgoal, SubgoalState};
use windlass_core::id::SessionId;
use windlass_core::log::{Exchange, Recorder, SharedRecorder};

use crate::derive::Redact;

/// Returns the registry of a session's subgoals, as it is now.
pub type RegistrySource = Box<dyn Fn() -> Registry + Send + Sync>;

/// Writes exchanges to a folder: `1-request.json`, `1-response.txt`, `1-subgoal-registry.txt`, and so on.
pub struct DebugDump {
    folder: PathBuf,
    redact: Redact,
    /// The recorder that also gets the exchanges.
    next: Option<SharedRecorder>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    registries: HashMap<SessionId, RegistrySource>,
}

impl DebugDump {
    /// Creates the folder, readable only by its user. Numbers continue after those of files that exist.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or read.
    pub fn new(folder: PathBuf, redact: Redact, next: Option<SharedRecorder>) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut last = 0;
        for entry in read_dir(&folder)? {
            let name = entry?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.split_once('-')?.0.parse().ok());
            last = last.max(number.unwrap_or(0));
        }
        let state = Mutex::new(State {
            last,
            registries: HashMap::new(),
        });
        Ok(Self {
            folder,
            redact,
            next,
            state,
        })
    }

    /// Sets the source of a session's subgoals.
    pub fn registry(&self, session: &SessionId, source: RegistrySource) {
        self.lock().registries.insert(session.clone(), source);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, session: &SessionId, exchange: &Exchange) -> io::Result<()> {
        let (number, registry) = {
            let mut state = self.lock();
            state.last += 1;
            (state.last, state.registries.get(session).map(|source| source()))
        };
        let answer = &exchange.answer;
        let status = answer
            .status
            .map_or_else(|| "no response".to_owned(), |status| format!("HTTP {status}"));
        let head = format!("{status} {}", answer.form);
        let cut = answer.cut.as_ref().map(|why| format!("incomplete: {why}\n"));
        let body = String::from_utf8_lossy(&answer.body);
        let response = format!("{}\n{}\n{body}", head.trim_end(), cut.unwrap_or_default());
        self.file(
            number,
            "request.json",
            &String::from_utf8_lossy(&exchange.request),
        )?;
        self.file(number, "response.txt", &response)?;
        match registry {
            Some(registry) => self.file(number, "subgoal-registry.txt", &outline(&registry)),
            None => Ok(()),
        }
    }

    fn file(&self, number: u64, name: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(format!("{number}-{name}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all((self.redact)(text).as_bytes())
    }
}

impl Recorder for DebugDump {
    fn keep(&self, session: &SessionId, exchange: Exchange) {
        if let Err(error) = self.write(session, &exchange) {
            tracing::warn!(%error, folder = %self.folder.display(), "the dump cannot be written");
        }
        if let Some(next) = &self.next {
            next.keep(session, exchange);
        }
    }
}

/// Lists the subgoals, one per line.
fn outline(registry: &Registry) -> String {
    let line = |goal: &Subgoal| {
        let state = match goal.standing {
            SubgoalState::Active => "active",
            SubgoalState::Completed => "completed",
        };
        format!("{state} {}..{} {}\n", goal.span.start, goal.span.end, goal.text)
    };
    let lines: String = registry.subgoals().iter().map(line).collect();
    match lines.is_empty() {
        true => "no subgoals\n".to_owned(),
        false => lines,
    }
}
