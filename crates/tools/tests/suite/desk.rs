//! A temporary folder with the built-in tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::{
    CallModel, ExecutionContext, Person, Prepared, Progress, ToolContext, ToolError, ToolOutput, ToolSet,
};
use windlass_tools::{ToolsConfig, builtin};

use windlass_sandbox::child_environment;

/// Maximum time for anything that should happen soon, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Tools of one session in a folder of their own.
pub(crate) struct Desk {
    folder: TempDir,
    tools: ToolSet,
    execution: Arc<ExecutionContext>,
    pub(crate) cancel: CancellationToken,
    live: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(&ToolsConfig::default())
    }

    pub(crate) fn with(config: &ToolsConfig) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let env = child_environment(std::env::vars(), folder.path(), "session-1");
        Self {
            execution: Arc::new(ExecutionContext {
                cwd: folder.path().to_owned(),
                env,
                session: None,
            }),
            tools: builtin(config),
            folder,
            cancel: CancellationToken::new(),
            live: Arc::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and the folders above it.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("a file");
        self
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a text file")
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, ToolError> {
        Arc::clone(self.tools.get(tool).expect("a tool")).prepare(&arguments.to_string())
    }

    pub(crate) fn context(&self) -> ToolContext {
        let live = Arc::clone(&self.live);
        ToolContext {
            call_id: "call-1".into(),
            cancel: self.cancel.clone(),
            execution: Arc::clone(&self.execution),
            progress: Progress::new(move |piece| live.lock().expect("lock").push(piece.to_owned())),
            person: Person::nobody(),
            model: CallModel::none(),
            confirmed: false,
            places: Arc::default(),
        }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.prepare(tool, &arguments)?.run(self.context()).await
    }

    /// Returns the text of a successful call.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.expect("an answer").content
    }

    /// Returns the error of a failed call.
    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> ToolError {
        self.call(tool, arguments).await.expect_err("an error")
    }

    /// Returns the live output so far.
    pub(crate) fn live(&self) -> String {
        self.live.lock().expect("lock").concat()
    }
}

/// Polls until the condition holds. Fails if that takes too long.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let looking = async {
        while !is_so() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(SOON, looking)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"));
}

/// Returns the process ids in a file, once it has this many lines.
pub(crate) async fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = fs::read_to_string(file).unwrap_or_default();
        // A line is complete when its line break is there.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter_map(|line| line.trim().parse().ok())
            .collect()
    };
    until("the processes have started", || read().len() >= count).await;
    read()
}

/// Returns true if a process runs. A zombie does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
