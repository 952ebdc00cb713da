//! `windlass mcp serve`: sessions as tools of another agent, over standard input and output or HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_acp::NotAdmitted;
use windlass_config::environment::Given;
use windlass_config::{Problem, ProblemKind};
use windlass_core::clock::SystemClock;
use windlass_mcp_server::McpHost;
use windlass_server::Guarded;

use crate::acp::{Sessions, admit, stop_on_signal};
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::terminal::say;
use windlass_args::McpServeOptions;

/// Serves one client over standard input and output, or many over HTTP.
pub(crate) async fn serve(options: &McpServeOptions) -> Result<Exit, Problem> {
    let signals = Signals::begin();
    let given = options.settings.given_with(options.flags());
    let folder = working_directory(options.cd.as_deref())?;
    let sessions = Sessions::begin(&given).await?;
    let host = Arc::new(McpSessions { given, folder });
    let stop = CancellationToken::new();
    let _on_signal = stop_on_signal(signals.ready(), stop.clone());
    let backend = Arc::new(sessions.service.clone());
    match options.http {
        None => windlass_mcp_server::serve(backend, host, std::io::stdin(), std::io::stdout(), stop).await,
        Some(addr) => {
            let (names, clock) = (options.name.clone(), Arc::new(SystemClock::default()));
            let server = Guarded::bind(addr, names, Arc::clone(&sessions.store), clock).await;
            let failed = |error: windlass_server::ServerError| {
                let text = error.to_string().replace("--listen", "--http");
                Problem::new(ProblemKind::Failed, text)
            };
            let server = server.map_err(failed)?;
            say!("listening on {}/mcp", server.access().url());
            say!("clients need a token: windlass token create NAME --scope write --scope approve");
            windlass_mcp_server::serve_http(backend, host, server, stop).await;
        }
    }
    sessions.end().await;
    Ok(Exit::Ok)
}

/// Folders of the client's sessions.
struct McpSessions {
    given: Given,
    /// Folder of sessions that name none.
    folder: PathBuf,
}

impl McpHost for McpSessions {
    fn admit(&self, folder: Option<&str>) -> Result<String, String> {
        let place = self.folder.join(folder.unwrap_or_default());
        match admit(&self.given, Path::new(&place)) {
            Ok(place) => Ok(place.display().to_string()),
            Err(NotAdmitted::NoModel(why) | NotAdmitted::Place(why)) => Err(why),
        }
    }
}
