//! `grep`: finds text in files.

mod hits;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_core::tool::{Category, Judgement, Tool, ToolContext, ToolError, ToolOutput};

use self::hits::{Collector, Hits};
use crate::arguments::null_is_default;
use crate::blocking;
use crate::disk;
use crate::search::{PathPattern, Smallest, as_asked, walk};
use windlass_core::text;
use windlass_sandbox::Roots;
use windlass_sandbox::Workspace;
use windlass_sandbox::path::{resolve_path, shown};

const MAX_MATCHES: usize = 200;
/// Maximum size of a result for the model, less the note at its end.
const MAX_BYTES: usize = 38_000;
const MAX_CONTEXT: usize = 20;
/// Maximum memory for a line. A longer line is not searched, and neither is the rest of its file.
const MAX_LINE_MEMORY: usize = 64 << 20;
/// Maximum size of a compiled pattern in bytes. The time that a search takes grows with it.
const MAX_PATTERN_MEMORY: usize = 2 << 20;

/// Searches file contents for a regular expression (Rust syntax). Prints `path:line: text`. Skips binary files and
/// what .gitignore excludes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepInput {
    pattern: String,
    /// A file or folder; the working directory by default.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
    /// Only files that match, such as `*.rs`.
    #[serde(default, alias = "include")]
    glob: Option<String>,
    #[serde(default, alias = "case_insensitive", deserialize_with = "null_is_default")]
    ignore_case: bool,
    /// Lines around each match.
    #[serde(default, deserialize_with = "null_is_default")]
    context: usize,
}

/// The tool.
pub(crate) struct Grep {
    pub(crate) workspace: Workspace,
}

impl Tool for Grep {
    type Input = GrepInput;
    const NAME: &'static str = "grep";

    fn category(&self, _: &GrepInput) -> Category {
        Category::Read
    }

    fn judge(&self, input: &GrepInput) -> Judgement {
        self.workspace.reading(input.path.as_deref().unwrap_or("."))
    }

    async fn run(&self, input: GrepInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let root = resolve_path(&cx, input.path.as_deref().unwrap_or("."))?;
        let roots = self.workspace.files_of(&cx);
        let name = shown(&cx.execution.cwd, &root);
        let (real, _) = disk::real(&roots, &root).map_err(|error| error.about(&name))?;
        let glob = input
            .glob
            .as_deref()
            .map(|glob| PathPattern::new(glob).map(Arc::new));
        let search = Search {
            roots,
            real,
            matcher: matcher(&input)?,
            glob: glob.transpose()?,
            context: input.context.min(MAX_CONTEXT),
            root,
        };
        let cancel = cx.cancel.clone();
        blocking::look(&cancel, move || search.answer(&input.pattern, &cx)).await
    }
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, ToolError> {
    if input.pattern.is_empty() {
        return Err(ToolError::Invalid("`pattern` is empty.".to_owned()));
    }
    // `$` also matches before a carriage return; lines end at the line feed, which lets the search skip
    // through whole buffers instead of line by line.
    let built = RegexMatcherBuilder::new()
        .case_insensitive(input.ignore_case)
        .multi_line(true)
        .crlf(true)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_PATTERN_MEMORY)
        .build(&input.pattern);
    built.map_err(|error| {
        ToolError::Invalid(format!(
            "`pattern` is not a valid regular expression for single lines: {error}\nTo search for text as it is, put a \
             backslash before each of . * + ? ( ) [ ] {{ }} | ^ $ \\"
        ))
    })
}

struct Search {
    matcher: RegexMatcher,
    glob: Option<Arc<PathPattern>>,
    context: usize,
    roots: Arc<Roots>,
    /// The root as requested.
    root: PathBuf,
    /// The same with every link resolved.
    real: PathBuf,
}

impl Search {
    fn answer(&self, pattern: &str, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = self.run(&|| cx.cancel.is_cancelled());
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Canceled(String::new()));
        }
        let total = found.total();
        let (mut content, printed) = self.print(found, &cx.execution.cwd);
        if total == 0 {
            content = format!("No match for {pattern}");
        } else if printed < total {
            content.push_str(&format!(
                "[{} more left out; narrow the search]",
                text::count(total - printed, "match")
            ));
        }
        content.truncate(content.trim_end_matches('\n').len());
        Ok(ToolOutput::text(content).with_details(json!({ "pattern": pattern, "matches": total })))
    }

    fn run(&self, stopped: &(dyn Fn() -> bool + Sync)) -> Smallest<Hits> {
        let found = Mutex::new(Smallest::new(MAX_MATCHES));
        // A root that is a file was requested by name, so the glob does not apply to it.
        let (glob, real) = (self.glob.clone(), self.real.clone());
        let wanted = move |path: &Path| glob.as_ref().is_none_or(|glob| glob.fits_below(&real, path));
        walk(&self.roots, &self.real, wanted).run(|| {
            let mut searcher = self.searcher();
            let found = &found;
            Box::new(move |entry| {
                if stopped() {
                    return WalkState::Quit;
                }
                let file = entry
                    .ok()
                    .filter(|entry| entry.file_type().is_none_or(|kind| !kind.is_dir()));
                if let Some(entry) = file
                    && let Some(hits) = self.hits(&mut searcher, entry.path(), stopped)
                {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.add(entry.into_path(), hits.total(), hits);
                }
                WalkState::Continue
            })
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE_MEMORY))
            .build()
    }

    /// Returns the matches in one file, if any. A file that cannot be read has none.
    fn hits(&self, searcher: &mut Searcher, path: &Path, stopped: &dyn Fn() -> bool) -> Option<Hits> {
        // Folders, pipes and devices end here.
        let file = self.roots.open_walked(path).ok()?;
        let mut collector = Collector::new(MAX_MATCHES, stopped);
        searcher.search_file(&self.matcher, &file, &mut collector).ok()?;
        collector.into_hits()
    }

    /// Returns the lines to show, and the number of matches among them.
    fn print(&self, found: Smallest<Hits>, cwd: &Path) -> (String, usize) {
        let mut content = String::new();
        let mut printed = 0;
        for (path, hits) in found.into_kept() {
            let name = shown(cwd, &as_asked(&self.root, &self.real, &path));
            for line in hits.lines {
                let text = line.print(&name);
                if printed == MAX_MATCHES || content.len() + text.len() > MAX_BYTES {
                    return (content, printed);
                }
                content.push_str(&text);
                printed += usize::from(line.is_match());
            }
        }
        (content, printed)
    }
}
