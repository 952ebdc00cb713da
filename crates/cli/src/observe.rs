//! OBS-1: telemetry, the log file and dumps of a run, as the settings, variables and flags ask for them.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind, environment};
use windlass_core::compact::Subgoals;
use windlass_core::hook::Hook;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{SharedRecorder, Store};
use windlass_host::watch::Observer;
use windlass_providers::key::{Secret, is_credential, redact};
use windlass_telemetry::{
    DebugDump, ExportConfig, ExportConfigError, LogFormat, LogWriter, Probe, RotatingFile, SpanContext,
    Telemetry, TelemetryParts,
};

use crate::terminal::tell;

/// Variable with the span that started this process, and for the commands that it starts.
const TRACEPARENT: &str = "TRACEPARENT";
/// Ends of the names of variables that contain keys.
const KEY_NAMES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// Length from which a variable's value is taken for a key.
const KEY_LENGTH: usize = 8;

/// Observes the sessions of a run.
pub(crate) struct RunObserver {
    telemetry: Option<Arc<Telemetry>>,
    dump: Option<Arc<DebugDump>>,
}

/// Options of a run besides its settings.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Folder for requests and replies.
    pub(crate) dump: Option<&'a Path>,
    /// True to count metrics even if they are sent nowhere, for a page that shows them.
    pub(crate) metrics: bool,
}

impl RunObserver {
    /// Starts what is asked for; `None` if that is nothing. Also returns the recorder for the wire traffic.
    pub(crate) fn start(
        settings: &Settings,
        store: &Arc<dyn Store>,
        wanted: Wanted<'_>,
        recorder: Option<SharedRecorder>,
    ) -> Result<(Option<Arc<Self>>, Option<SharedRecorder>), Problem> {
        let has_log = start_log(settings)?;
        let dump = match wanted.dump {
            Some(folder) => Some(dump(folder, recorder.clone())?),
            None => None,
        };
        let recorder = match &dump {
            Some(dump) => Some(Arc::clone(dump) as SharedRecorder),
            None => recorder,
        };
        let telemetry = match export_config(settings) {
            Ok(config) if config.is_on() || wanted.metrics => Some(config),
            Ok(_) => None,
            Err(error) => {
                tell!("warning: no telemetry is exported: {error}");
                None
            }
        };
        let telemetry = telemetry.map(|config| {
            Telemetry::start(TelemetryParts {
                store: Arc::clone(store),
                clock: environment::clock(),
                config: Arc::new(config),
                outside: outside(),
                redact: mask,
            })
        });
        let is_on = has_log || dump.is_some() || telemetry.is_some();
        let observer = is_on.then(|| Arc::new(Self { telemetry, dump }));
        Ok((observer, recorder))
    }
}

#[async_trait]
impl Observer for RunObserver {
    fn hook(&self, session: &SessionId) -> Arc<dyn Hook> {
        Arc::new(Probe::new(session.clone(), self.telemetry.clone()))
    }

    async fn variables(&self, session: &SessionId, message: &MessageId) -> Vec<(String, String)> {
        let Some(telemetry) = &self.telemetry else {
            return Vec::new();
        };
        let span = telemetry.traceparent(session, message).await;
        span.into_iter()
            .map(|span| (TRACEPARENT.to_owned(), span))
            .collect()
    }

    fn subgoals(&self, session: &SessionId, subgoals: Arc<Subgoals>) {
        if let Some(dump) = &self.dump {
            dump.registry(session, Box::new(move || subgoals.registry()));
        }
    }

    fn metrics(&self) -> String {
        self.telemetry
            .as_ref()
            .map(|telemetry| telemetry.prometheus())
            .unwrap_or_default()
    }

    async fn close(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.close().await;
        }
    }
}

/// Reads the destination of spans and metrics: standard variables, then the user's settings.
pub(crate) fn export_config(settings: &Settings) -> Result<ExportConfig, ExportConfigError> {
    let own = &settings.agent.telemetry;
    ExportConfig::read(&environment::var, own.endpoint.as_deref(), own.content)
}

/// Masks everything that has the format of a key.
pub(crate) fn mask(text: &str) -> String {
    redact(text, &[])
}

/// Returns the span that started this process. One that is not valid is ignored, as the recommendation asks.
fn outside() -> Option<SpanContext> {
    SpanContext::parse(&environment::var(TRACEPARENT)?)
}

fn dump(folder: &Path, next: Option<SharedRecorder>) -> Result<Arc<DebugDump>, Problem> {
    let made = DebugDump::new(folder.to_owned(), mask, next);
    made.map(Arc::new).map_err(|error| {
        let text = format!("--debug-dump {}: {error}", folder.display());
        Problem::new(ProblemKind::Usage, text)
    })
}

/// Starts the log file, once per process. Returns true if there is one.
fn start_log(settings: &Settings) -> Result<bool, Problem> {
    static STARTED: OnceLock<()> = OnceLock::new();
    let log = &settings.agent.telemetry.log;
    if log.level == "off" || log.level.is_empty() {
        return Ok(false);
    }
    if STARTED.set(()).is_err() {
        return Ok(true);
    }
    let path = match &log.file {
        Some(path) => path.clone(),
        None => environment::folders()?.state.join("windlass.log"),
    };
    let file = RotatingFile::open(path.clone(), log.max_mb.saturating_mul(1 << 20));
    let file = file.map_err(|error| {
        let text = format!("log.file {}: {error}", path.display());
        Problem::new(ProblemKind::Config, text)
    })?;
    let format = match log.is_json {
        true => LogFormat::Json,
        false => LogFormat::Text,
    };
    let secrets = secrets(settings);
    let line = Box::new(move |line: &str| redact(line, &secrets));
    let writer = LogWriter::new(&log.level, format, file, line, environment::clock());
    Ok(writer.is_some_and(LogWriter::install))
}

/// Returns the keys in our environment and in headers of the settings, so that no line contains one.
fn secrets(settings: &Settings) -> Vec<Secret> {
    let is_key = |name: &str| {
        KEY_NAMES
            .iter()
            .any(|end| name.to_ascii_uppercase().ends_with(end))
    };
    let headers = settings.providers.values().flat_map(|provider| &provider.headers);
    let headers = headers.filter(|(name, value)| is_credential(name, value));
    environment::vars()
        .filter(|(name, value)| is_key(name) && value.len() >= KEY_LENGTH)
        .map(|(_, value)| Secret::new(&value))
        .chain(headers.map(|(_, value)| Secret::new(value)))
        .collect()
}
