//! Commands that write, in workspaces of many files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{median, milliseconds, told};
use crate::lab::{Lab, Log};
use crate::process::Memory;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Files per folder.
const FILES: usize = 100;
/// Calls until the workspace is known: the first is preceded and followed by a scan.
const FIRST: usize = 2;

/// Cost of a run in one workspace.
struct Run {
    /// Milliseconds of one iteration after the first look.
    iteration: f64,
    /// Peak memory in megabytes.
    peak: f64,
    /// Kilobytes of disk for each command.
    disk: f64,
}

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (sizes, rounds): (&[usize], _) = if lab.quick {
        (&[5_000], 1)
    } else {
        (&[200_000, 500_000], 3)
    };
    let empty = runs(lab, 0, rounds)?;
    let mut figures = Vec::new();
    for files in sizes {
        let large = runs(lab, *files, rounds)?;
        let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        let time = |runs: &[Run]| of(runs, |run| run.iteration);
        let peak = |runs: &[Run]| of(runs, |run| run.peak);
        let disk = |runs: &[Run]| of(runs, |run| run.disk);
        figures.push(Figure {
            name: format!("writing command in {files} files (floor: in an empty folder)"),
            agent: told(time(&large)),
            floor: told(time(&empty)),
            value: time(&large) - time(&empty),
            unit: "ms more",
            target: Target::AtMost(10.0),
        });
        figures.push(Figure {
            name: format!("disk for it in {files} files (floor: in an empty folder)"),
            agent: format!("{:.1} KB", disk(&large)),
            floor: format!("{:.1} KB", disk(&empty)),
            value: disk(&large) - disk(&empty),
            unit: "KB more",
            target: Target::AtMost(4.0),
        });
        figures.push(Figure {
            name: format!("peak memory in {files} files (floor: in an empty folder)"),
            agent: format!("{:.1} MB", peak(&large)),
            floor: format!("{:.1} MB", peak(&empty)),
            value: peak(&large) - peak(&empty),
            unit: "MB more",
            target: Target::AtMost(10.0),
        });
    }
    Ok(figures)
}

fn runs(lab: &Lab, files: usize, rounds: usize) -> Result<Vec<Run>> {
    let workspace = lab.path(&format!("files{files}"));
    plant(&workspace, files)?;
    // The first look at a folder reads and stores everything.
    run(lab, &workspace, FIRST)?;
    let all = (0..rounds).map(|_| run(lab, &workspace, 30)).collect();
    fs::remove_dir_all(&workspace)?;
    all
}

fn run(lab: &Lab, workspace: &Path, calls: usize) -> Result<Run> {
    let options = ServeOptions {
        write: true,
        ..ServeOptions::new(Wire::Anthropic, calls)
    };
    let stored = lab.path("home").join("data/checkpoints");
    let before = size(&stored)?;
    let (cost, log) = lab.measure(&options, Memory::Watched, |server| {
        let mut agent = lab.agent(server, Wire::Anthropic, "text");
        agent.current_dir(workspace);
        agent
    })?;
    let written = fs::read(workspace.join("written0.txt"));
    written.context("the commands wrote nothing")?;
    let kilobytes = |bytes: u64| f64::from(u32::try_from(bytes / 16).unwrap_or(u32::MAX)) / 64.0;
    Ok(Run {
        iteration: later_iterations(&log),
        peak: f64::from(u32::try_from(cost.peak).unwrap_or(u32::MAX)) / 1_024.0,
        disk: kilobytes(size(&stored)?.saturating_sub(before)) / f64::from(u32::try_from(calls)?),
    })
}

fn later_iterations(log: &Log) -> f64 {
    let times = log.arrivals.windows(2).skip(FIRST);
    median(
        times
            .filter_map(|pair| Some(milliseconds(*pair.first()?, *pair.last()?)))
            .collect(),
    )
}

/// Creates a tree of small files.
fn plant(tree: &Path, files: usize) -> Result<()> {
    fs::create_dir_all(tree)?;
    for folder in 0..files / FILES {
        let path = tree
            .join(format!("part{}", folder / 50))
            .join(format!("module{folder}"));
        fs::create_dir_all(&path)?;
        for file in 0..FILES {
            fs::write(
                path.join(format!("file{file}.rs")),
                format!("fn f{folder}_{file}() {{}}\n"),
            )?;
        }
    }
    Ok(())
}

/// Returns the bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let data = entry.metadata()?;
            if data.is_dir() {
                folders.push(entry.path());
            } else {
                sum += data.len();
            }
        }
    }
    Ok(sum)
}
