//! Tools on their own: searching a big tree compared with ripgrep, the cost of the sandbox, parallel reads.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{median, told};
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let mut figures = search(lab)?;
    figures.push(launch(lab)?);
    figures.push(side_by_side(lab)?);
    Ok(figures)
}

/// Measures `grep` and `glob` on a tree of 100,000 files, each compared with `rg` for the same query.
fn search(lab: &Lab) -> Result<Vec<Figure>> {
    let (folders, rounds) = if lab.quick { (50, 3) } else { (1_000, 11) };
    let tree = lab.path("tree");
    plant(&tree, folders)?;
    let files = folders * FILES;
    let question = format!("grep in {files} files (floor: rg)");
    let grep = compare(
        rounds,
        question,
        || lab.tool(&tree, "grep", "{\"pattern\": \"needle_[0-9]+\"}"),
        || {
            let mut rg = lab.other(&tree, "rg");
            rg.args([
                "--line-number",
                "--hidden",
                "--no-require-git",
                "needle_[0-9]+",
                ".",
            ]);
            rg
        },
    )?;
    let question = format!("glob in {files} files (floor: rg)");
    let glob = compare(
        rounds,
        question,
        || lab.tool(&tree, "glob", "{\"pattern\": \"*3_70.toml\"}"),
        || {
            let mut rg = lab.other(&tree, "rg");
            rg.args([
                "--files",
                "--hidden",
                "--no-require-git",
                "--glob",
                "*3_70.toml",
                ".",
            ]);
            rg
        },
    )?;
    Ok(vec![grep, glob])
}

/// Number of files in each folder of the tree.
const FILES: usize = 100;

/// Creates a tree of source files, some of which are ignored and a few of which contain the needle.
pub(super) fn plant(tree: &Path, folders: usize) -> Result<()> {
    let line = "    let value = compute(input, &options).map_err(Error::from)?; // and so on\n";
    for folder in 0..folders {
        let path = tree
            .join(format!("part{}", folder / 50))
            .join(format!("module{folder}"));
        fs::create_dir_all(&path)?;
        fs::write(path.join(".gitignore"), "*.log\n")?;
        for file in 0..FILES {
            let kind = match file % 10 {
                0 => "toml",
                1 => "log",
                2..=4 => "md",
                _ => "rs",
            };
            let mut text = line.repeat(8 + (file * 7 + folder) % 24);
            if file == 42 && folder % 10 == 3 {
                text.push_str(&format!("needle_{folder}\n"));
            }
            fs::write(path.join(format!("file{folder}_{file}.{kind}")), text)?;
        }
    }
    Ok(())
}

pub(super) fn compare(
    rounds: usize,
    name: String,
    agent: impl Fn() -> Command,
    floor: impl Fn() -> Command,
) -> Result<Figure> {
    let time = |command: &mut Command| -> Result<f64> {
        let cost = process::run(command, Memory::Ignored)?;
        Ok(super::milliseconds(cost.begun, cost.ended))
    };
    // The first pass over a tree measures the disk, not us.
    time(&mut floor())?;
    time(&mut agent())?;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        pairs.push((time(&mut floor())?, time(&mut agent())?));
    }
    Ok(Figure {
        name,
        agent: told(median(pairs.iter().map(|pair| pair.1).collect())),
        floor: told(median(pairs.iter().map(|pair| pair.0).collect())),
        value: median(pairs.iter().map(|(floor, agent)| agent / floor).collect()),
        unit: "×",
        target: Target::AtMost(1.2),
    })
}

/// Measures what the sandbox adds to the start of a command.
#[allow(clippy::cast_precision_loss)]
fn launch(lab: &Lab) -> Result<Figure> {
    let rounds = if lab.quick { 20 } else { 300 };
    let output = lab.launch(rounds).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("commands could not be started");
    }
    let mut pairs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (bare, confined) = line.split_once(' ').context("unexpected output")?;
        let time = |text: &str| -> Result<f64> { Ok(text.parse::<u64>()? as f64 / 1_000_000.0) };
        pairs.push((time(bare)?, time(confined)?));
    }
    Ok(Figure {
        name: "start of a command in the sandbox (floor: without)".to_owned(),
        agent: told(median(pairs.iter().map(|pair| pair.1).collect())),
        floor: told(median(pairs.iter().map(|pair| pair.0).collect())),
        value: median(pairs.iter().map(|(bare, confined)| confined - bare).collect()),
        unit: "ms more",
        target: Target::AtMost(0.4),
    })
}

/// Compares eight sleeping reads in one reply with one.
fn side_by_side(lab: &Lab) -> Result<Figure> {
    let rounds = if lab.quick { 1 } else { 5 };
    let config = lab.path("home").join("config");
    fs::create_dir_all(&config)?;
    let tools = "tools:\n  - { name: nap, description: Sleeps., category: read, cmd: sleep, args: [\"0.4{{n}}\"], \
                 parameters: { n: { type: integer, min: 1, max: 8 } } }\n";
    fs::write(config.join("tools.yaml"), tools)?;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        pairs.push((naps(lab, 1)?, naps(lab, 8)?));
    }
    fs::remove_file(config.join("tools.yaml"))?;
    Ok(Figure {
        name: "8 sleeping reads (floor: one)".to_owned(),
        agent: told(median(pairs.iter().map(|pair| pair.1).collect())),
        floor: told(median(pairs.iter().map(|pair| pair.0).collect())),
        value: median(pairs.iter().map(|(one, eight)| eight / one).collect()),
        unit: "×",
        target: Target::AtMost(1.3),
    })
}

/// Returns the duration of a turn whose only reply calls this many naps.
fn naps(lab: &Lab, count: usize) -> Result<f64> {
    let calls: Vec<String> = (1..=count)
        .map(|number| format!("{{ tool: nap, args: {{ n: {number} }} }}"))
        .collect();
    let script = lab.path("naps.yaml");
    let text = format!("replies:\n  - calls: [{}]\n  - text: rested\n", calls.join(", "));
    fs::write(&script, text)?;
    let mut sim = lab
        .other(&lab.path("work"), &lab.windlass().display().to_string())
        .args(["sim", "serve", "--port", "0", "--script"])
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(sim.stdout.take().context("the model has no output")?).read_line(&mut line)?;
    let url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    let mut exec = lab.other(&lab.path("work"), &lab.windlass().display().to_string());
    exec.args(["exec", "--provider", "anthropic", "go"])
        .env("ANTHROPIC_API_KEY", "bench")
        .env("ANTHROPIC_BASE_URL", url);
    let cost = process::run(&mut exec, Memory::Ignored);
    sim.kill()?;
    sim.wait()?;
    let cost = cost?;
    Ok(super::milliseconds(cost.begun, cost.ended))
}
