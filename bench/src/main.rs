//! The speed of Windlass, as ratios to a raw client that does the same work. `README.md` explains every
//! figure.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod alone;
mod bare;
mod clock;
mod crowd;
mod figures;
mod fill;
mod floor;
mod lab;
mod launch;
mod parts;
mod peers;
mod process;
mod record;
mod report;
mod sandbox;
mod server;
mod survey;
mod terminal;
mod tool_server;
mod wire;
mod worktree;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::alone::AloneOptions;
use crate::crowd::CrowdOptions;
use crate::figures::Group;
use crate::fill::FillOptions;
use crate::floor::ClientOptions;
use crate::lab::Lab;
use crate::launch::LaunchOptions;
use crate::server::ServeOptions;
use crate::survey::SurveyOptions;
use crate::tool_server::ToolServerOptions;
use crate::worktree::WorktreeOptions;

/// Measures the speed of Windlass.
#[derive(Debug, Parser)]
struct Options {
    /// Measure only these figures
    #[arg(long, value_enum)]
    only: Vec<Group>,
    /// Fewer and shorter runs, to check that everything works
    #[arg(long)]
    quick: bool,
    /// Write the table to bench/RESULTS.md; only allowed for a complete run of the built program
    #[arg(long, conflicts_with_all = ["only", "quick", "windlass"])]
    write: bool,
    /// Program to measure, instead of the one built next to this one
    #[arg(long, value_name = "FILE")]
    windlass: Option<PathBuf>,
    #[command(flatten)]
    code: figures::CodeData,
    /// Data of the memory benchmark: locomo10.json of LoCoMo
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Embedding model, as `windlass memory setup` writes it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// The processes of a run.
#[derive(Debug, Subcommand)]
#[command(hide = true)]
enum Part {
    /// Run the model.
    Serve(ServeOptions),
    /// Run the raw client.
    Floor(ClientOptions),
    /// Run the bare HTTP client.
    Bare(ClientOptions),
    /// Start a program that does nothing, repeatedly, without and with the sandbox.
    Launch(LaunchOptions),
    /// Scan a workspace.
    Survey(SurveyOptions),
    /// Create the worktree of a sub-agent.
    Worktree(WorktreeOptions),
    /// Run the loop as a library, without a store.
    Alone(AloneOptions),
    /// Create a big session.
    Fill(FillOptions),
    /// Let many sessions stream at once.
    Crowd(CrowdOptions),
    /// Run an MCP server.
    ToolServer(ToolServerOptions),
}

fn main() -> ExitCode {
    // `cargo xtask bench -- --write` passes the separator on.
    let options = Options::parse_from(std::env::args_os().filter(|argument| argument != "--"));
    let done = match &options.part {
        Some(Part::Serve(serve)) => server::serve(serve.clone()).map(|()| true),
        Some(Part::Floor(client)) => floor::floor(client).map(|()| true),
        Some(Part::Bare(client)) => bare::send_once(client).map(|()| true),
        Some(Part::Launch(launch)) => launch::launch(launch).map(|()| true),
        Some(Part::Survey(options)) => survey::survey(options).map(|()| true),
        Some(Part::Worktree(options)) => worktree::worktree(options).map(|()| true),
        Some(Part::Alone(options)) => alone::alone(options).map(|()| true),
        Some(Part::Fill(options)) => fill::fill(options).map(|()| true),
        Some(Part::Crowd(options)) => crowd::crowd(options).map(|()| true),
        Some(Part::ToolServer(options)) => tool_server::tool_server(options).map(|()| true),
        None => measure(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the figures and prints them; false if one misses its target.
fn measure(options: &Options) -> Result<bool> {
    let mut lab = Lab::new(options.windlass.clone(), options.quick)?;
    lab.is_written = options.write;
    lab.code = options.code.clone();
    lab.memory = (options.data.clone(), options.model.clone());
    let mut figures = Vec::new();
    for group in Group::ALL {
        if options.only.is_empty() || options.only.contains(&group) {
            eprintln!("{group:?} …");
            figures.extend(group.measure(&lab)?);
        }
    }
    let table = report::table(&figures);
    print!("{table}");
    if options.write {
        report::write(&table)?;
    }
    Ok(figures.iter().all(|figure| figure.is_met()))
}
