//! `windlass code`: the code index outside of sessions.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_codeindex::{CodeIndex, Index, SearchScope, shown_text};
use windlass_core::text::{count, size};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say, tell, tell_warnings};
use windlass_args::SettingsOptions;
use windlass_args::code::{CodeCommand, CodeSearchOptions};
use windlass_config::{Problem, ProblemKind, environment};
use windlass_host::extension::code::open;

/// Runs a subcommand.
pub(crate) fn command(command: CodeCommand) -> Result<Exit, Problem> {
    match command {
        CodeCommand::Index {
            rebuild,
            json,
            settings,
        } => index(&settings, rebuild, json),
        CodeCommand::Search(options) => search(&options),
        CodeCommand::Map {
            prompt,
            tokens,
            settings,
        } => map(&prompt.join(" "), tokens, &settings),
    }
}

/// Opens the index of this folder.
fn opened(options: &SettingsOptions) -> Result<(CodeIndex, PathBuf, usize), Problem> {
    let cwd = working_directory(None)?;
    let settings = environment::settings(&options.given(), &cwd)?;
    tell_warnings(&settings.warnings);
    Ok((open(&settings, &cwd)?, cwd, settings.tools.code.map_tokens))
}

/// Brings an index up to date, and reports what happened to the stored one.
fn updated(index: &CodeIndex) -> Result<(std::sync::Arc<Index>, windlass_codeindex::IndexChanges), Problem> {
    let changes = index.update_now();
    tell_warnings(&index.take_notices());
    let whole = index.current().zip(changes);
    whole.ok_or_else(|| Problem::new(ProblemKind::Failed, "the folder could not be read".to_owned()))
}

fn index(options: &SettingsOptions, rebuild: bool, as_json: bool) -> Result<Exit, Problem> {
    let (index, cwd, _) = opened(options)?;
    if rebuild {
        match std::fs::remove_file(index.file()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let text = format!("{}: {error}", index.file().display());
                return Err(Problem::new(ProblemKind::Failed, text));
            }
            _ => {}
        }
    }
    let (whole, changes) = updated(&index)?;
    let sizes = whole.size();
    if as_json {
        let object = json!({
            "folder": cwd, "file": index.file(), "files": sizes.files, "definitions": sizes.definitions,
            "bytes": sizes.bytes, "read": changes.read, "removed": changes.removed, "partial": whole.is_partial(),
        });
        say!("{object}");
        return Ok(Exit::Ok);
    }
    say!(
        "{}, {}, {} ({} read, {} removed)",
        count(sizes.files, "file"),
        count(sizes.definitions, "definition"),
        size(sizes.bytes as u64),
        changes.read,
        changes.removed
    );
    say!("{}", index.file().display());
    Ok(Exit::Ok)
}

fn search(options: &CodeSearchOptions) -> Result<Exit, Problem> {
    let (index, cwd, _) = opened(&options.settings)?;
    let below = match &options.path {
        Some(path) => Some(below(&index, &cwd, path)?),
        None => None,
    };
    let (whole, _) = updated(&index)?;
    let wanted = |path: &str| {
        below
            .as_ref()
            .is_none_or(|below| Path::new(path).starts_with(below))
    };
    let scope = SearchScope {
        wanted: Some(&wanted),
        code_only: options.code,
    };
    let found = whole.search(&options.query.join(" "), options.files.clamp(1, 1_000), &scope);
    let best = whole.best_lines(index.folder(), &found, options.lines);
    if options.json {
        let files: Vec<_> = best
            .iter()
            .map(|file| {
                let lines = file
                    .lines
                    .iter()
                    .map(|(line, text)| json!({ "line": line, "text": text }));
                json!({ "path": file.path, "score": file.score, "lines": lines.collect::<Vec<_>>() })
            })
            .collect();
        say!("{}", json!(files));
    } else if best.is_empty() {
        tell!("no matching files");
    } else {
        say!("{}", plain(&shown_text(&best)));
    }
    Ok(if best.is_empty() { Exit::Failed } else { Exit::Ok })
}

/// Returns a path of the user below the indexed folder.
fn below(index: &CodeIndex, cwd: &Path, path: &str) -> Result<PathBuf, Problem> {
    let wrong = |why: String| Problem::new(ProblemKind::Usage, format!("--path {path}: {why}"));
    let real = std::fs::canonicalize(cwd.join(path)).map_err(|error| wrong(error.to_string()))?;
    let root = &index.folder().root;
    let below = real.strip_prefix(root);
    below
        .map(Path::to_owned)
        .map_err(|_| wrong(format!("it is outside {}", root.display())))
}

fn map(prompt: &str, tokens: Option<usize>, options: &SettingsOptions) -> Result<Exit, Problem> {
    let (index, _, usual) = opened(options)?;
    let (whole, _) = updated(&index)?;
    let found = whole.search(prompt, 15, &SearchScope::default());
    match whole.map(index.folder(), &found, tokens.unwrap_or(usual) * 7 / 2) {
        Some(map) => {
            say!("{}", plain(map.trim_end()));
            Ok(Exit::Ok)
        }
        None => {
            tell!("the prompt names nothing that tells files apart");
            Ok(Exit::Failed)
        }
    }
}
