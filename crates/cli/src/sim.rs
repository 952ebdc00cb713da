//! `windlass sim`: the simulated model as a server, for trying clients and for tests.

use std::path::Path;

use windlass_sandbox::read_given_text;
use windlass_sim::{Brain, Script, Sim, SimConfig};

use crate::exit::Exit;
use crate::terminal::say;
use windlass_config::{Problem, ProblemKind};

/// Size of the largest script.
const MAX_SCRIPT: u64 = 64 << 20;

fn read(path: &Path) -> Result<Script, Problem> {
    let name = path.display();
    let text = read_given_text(path, MAX_SCRIPT)
        .map_err(|error| Problem::usage(format!("cannot read {name}: {error}")))?;
    Script::from_yaml(&text, &name.to_string()).map_err(|error| Problem::usage(error.to_string()))
}

/// Serves until interrupted.
pub(crate) async fn serve(
    script: Option<&Path>,
    port: u16,
    api_key: Option<String>,
) -> Result<Exit, Problem> {
    let brain = match script {
        Some(path) => Brain::script(read(path)?),
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
