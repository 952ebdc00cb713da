//! `windlass sim`: the simulated model as a server, for trying clients and for tests.

use std::path::Path;

use windlass_sim::{Brain, Script, Sim, SimConfig};

use crate::exit::Exit;
use crate::terminal::say;
use windlass_config::{Problem, ProblemKind};

/// Serves until interrupted.
pub(crate) async fn serve(
    script: Option<&Path>,
    port: u16,
    api_key: Option<String>,
) -> Result<Exit, Problem> {
    let brain = match script {
        Some(path) => {
            Brain::script(Script::from_file(path).map_err(|error| Problem::usage(error.to_string()))?)
        }
        None => Brain::rules(),
    };
    let config = SimConfig {
        port,
        brain,
        api_key,
        keep_bodies: false,
    };
    let sim = Sim::start(config)
        .await
        .map_err(|error| Problem::new(ProblemKind::Failed, error.to_string()))?;
    say!("listening on {}", sim.url());
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        () = sim.wait() => Ok(Exit::Ok),
    }
}
