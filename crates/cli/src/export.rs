//! `windlass export otel`: the trace of a session, after the fact.

use std::io::Write;
use std::sync::Arc;

use windlass_config::{Problem, ProblemKind, environment};
use windlass_core::log::{AgentQuery, Store};
use windlass_core::text::count;
use windlass_telemetry::{Collector, Encoding, ExportConfig, Sender, TraceSpan, checked};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::observe::{export_config, mask};
use crate::session_choice::{find, problem, store};
use crate::terminal::{Stdout, tell};
use windlass_args::{ExportCommand, ExportOtelOptions, OtelFormat};

/// Runs `windlass export`.
pub(crate) async fn command(command: ExportCommand) -> Result<Exit, Problem> {
    match command {
        ExportCommand::Otel(options) => otel(&options).await,
    }
}

async fn otel(options: &ExportOtelOptions) -> Result<Exit, Problem> {
    let settings = environment::settings(&options.settings.given(), &working_directory(None)?)?;
    let unusable = |error: windlass_telemetry::ExportConfigError| {
        Problem::new(ProblemKind::Config, format!("cannot export: {error}"))
    };
    let mut config = export_config(&settings).map_err(unusable)?;
    if let Some(url) = &options.endpoint {
        let url = format!("{}/v1/traces", url.trim_end_matches('/'));
        let url = checked("--endpoint", url).map_err(|error| Problem::usage(error.to_string()))?;
        config.traces = Some(url);
    }
    let store = store()?;
    let info = find(&*store, &options.session).await?;
    let spans = spans(&*store, &info.id, &config).await.map_err(problem)?;
    if options.endpoint.is_some() {
        return send(config, &spans).await;
    }
    let encoding = match (options.format, &options.out) {
        (Some(OtelFormat::Protobuf), _) => Encoding::Protobuf,
        (Some(OtelFormat::Json), _) | (None, None) => Encoding::Json,
        (None, Some(path)) if path.extension().is_some_and(|end| end == "json") => Encoding::Json,
        (None, Some(_)) => Encoding::Protobuf,
    };
    let body = encoding.traces(&config.resource, &spans);
    let Some(path) = &options.out else {
        let mut out = Stdout;
        return Ok(match out.write_all(&body).and_then(|()| out.flush()) {
            Ok(()) => Exit::Ok,
            Err(_) => Exit::BrokenPipe,
        });
    };
    let written = std::fs::write(path, &body);
    written.map_err(|error| Problem::new(ProblemKind::Failed, format!("{}: {error}", path.display())))?;
    tell!("wrote {} to {}", count(spans.len(), "span"), path.display());
    Ok(Exit::Ok)
}

/// Reads the spans of a session and of the sub-agents below it.
async fn spans(
    store: &dyn Store,
    session: &windlass_core::id::SessionId,
    config: &ExportConfig,
) -> Result<Vec<TraceSpan>, windlass_core::log::LogError> {
    let collector = Collector {
        store,
        content: config.content,
        redact: mask,
    };
    let below = store.agents(&AgentQuery::Below(session.clone())).await?;
    let below = below.into_iter().map(|row| row.session);
    let mut spans = Vec::new();
    for session in std::iter::once(session.clone()).chain(below) {
        let collected = collector.session(&session, 0, None).await?;
        spans.extend(collected.turns.into_iter().flatten());
    }
    Ok(spans)
}

async fn send(config: ExportConfig, spans: &[TraceSpan]) -> Result<Exit, Problem> {
    let failed = |error: windlass_telemetry::SendError| {
        Problem::new(ProblemKind::Failed, format!("not sent: {error}"))
    };
    let url = config.traces.clone().unwrap_or_default();
    let sender = Sender::new(Arc::new(config), environment::clock()).await;
    sender.map_err(failed)?.traces(spans).await.map_err(failed)?;
    tell!("sent {} to {url}", count(spans.len(), "span"));
    Ok(Exit::Ok)
}
