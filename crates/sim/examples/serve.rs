//! Serves a script, or the rules, until killed: `serve [--script FILE] [--port N] [--api-key KEY]`.
//!
//! Prints `listening on URL` once it is ready, like the command line program, so that the client tests can
//! use either.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::Write as _;

use windlass_sim::{Brain, Script, Sim, SimConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = SimConfig::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--script" => config.brain = Brain::script(Script::from_file(&value)?),
            "--port" => config.port = value.parse()?,
            "--api-key" => config.api_key = Some(value),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let sim = Sim::start(config).await?;
    println!("listening on {}", sim.url());
    std::io::stdout().flush()?;
    sim.wait().await;
    Ok(())
}
