//! Shared parts of `glob` and `grep`: a walk that respects ignore files, patterns for paths, and a bounded
//! sorted result.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::{WalkBuilder, WalkParallel};
use windlass_core::tool::ToolError;

use windlass_sandbox::{Roots, can_read_ignore_files, can_read_ignore_files_above};

/// Walks everything below `root` that is neither ignored nor denied. Hidden files are included, `.git` is
/// not. `root` contains no links, and none are followed, so every path is a real one.
///
/// Only ignore files in the tree and above it count, not the user's own: the same tree gives the same result
/// for everyone.
///
/// All folders are walked, but of the other entries only those that are `wanted`. Filtering here is cheaper
/// than skipping them later, because they are not passed from one thread to another.
pub(crate) fn walk(
    roots: &Arc<Roots>,
    root: &Path,
    wanted: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> WalkParallel {
    let denied = roots.denied_inside(root);
    let roots = Arc::clone(roots);
    let readable = can_read_ignore_files_above(root);
    WalkBuilder::new(root)
        .hidden(false)
        .git_ignore(readable)
        .git_exclude(readable)
        .ignore(readable)
        .parents(readable)
        .git_global(false)
        .require_git(false)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if !is_folder && !wanted(entry.path()) {
                return false;
            }
            let is_denied = || denied.iter().any(|path| entry.path() == path);
            (entry.file_name() != ".git" || entry.depth() == 0)
                && (!is_folder || entry.depth() == 0 || can_read_ignore_files(entry.path()))
                && !roots.denies_name(entry.file_name())
                && (denied.is_empty() || !is_denied())
        })
        .build_parallel()
}

/// Maps a path found below the real form of a folder to the folder as requested.
pub(crate) fn as_asked(asked: &Path, real: &Path, found: &Path) -> PathBuf {
    match found.strip_prefix(real) {
        Ok(below) if below.as_os_str().is_empty() => asked.to_owned(),
        Ok(below) => asked.join(below),
        Err(_) => found.to_owned(),
    }
}

/// A pattern for paths below a folder.
pub(crate) struct PathPattern {
    /// A set of one: a set rejects most names by their extension, without a regular expression.
    matcher: GlobSet,
    /// True if the pattern applies to the name alone, at any depth.
    name_only: bool,
}

impl PathPattern {
    /// Creates a pattern. Without a slash, it matches names at any depth.
    ///
    /// # Errors
    /// When the pattern is malformed; the message explains the problem.
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        Ok(Self {
            name_only: !pattern.contains('/'),
            ..Self::anchored(pattern)?
        })
    }

    /// Creates a pattern. Without a slash, it matches only direct entries of the folder.
    ///
    /// # Errors
    /// When the pattern is malformed; the message explains the problem.
    pub(crate) fn anchored(pattern: &str) -> Result<Self, ToolError> {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| {
                ToolError::Invalid(format!("The pattern `{pattern}` is malformed: {}.", error.kind()))
            })?;
        let set = GlobSetBuilder::new().add(glob).build();
        let malformed = |error: globset::Error| {
            ToolError::Invalid(format!("The pattern `{pattern}` is malformed: {}.", error.kind()))
        };
        Ok(Self {
            matcher: set.map_err(malformed)?,
            name_only: false,
        })
    }

    /// Returns true if the pattern matches a path below a folder.
    pub(crate) fn fits_below(&self, folder: &Path, path: &Path) -> bool {
        if self.name_only {
            // This runs for every file of a tree, and the name is at hand.
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        path.strip_prefix(folder)
            .is_ok_and(|relative| self.fits(relative))
    }

    /// Returns true if the pattern matches a path, given relative to the folder.
    pub(crate) fn fits(&self, relative: &Path) -> bool {
        if self.name_only {
            relative
                .file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(relative)
        }
    }
}

/// Splits the leading part without wildcards off a pattern, so that the walk starts as deep as possible.
pub(crate) fn split_root(pattern: &str) -> (PathBuf, String) {
    let mut root = PathBuf::new();
    let mut rest = Path::new(pattern).components().peekable();
    let mut pending: Option<Component<'_>> = None;
    while let Some(next) = rest.next_if(|part| {
        !part
            .as_os_str()
            .to_string_lossy()
            .contains(['*', '?', '[', '{', '\\'])
    }) {
        // The last part always stays in the pattern.
        if let Some(part) = pending.replace(next) {
            root.push(part);
        }
    }
    let mut left = PathBuf::new();
    match pending {
        Some(part) if rest.peek().is_some() => root.push(part),
        Some(part) => left.push(part),
        None => {}
    }
    left.extend(rest);
    (root, left.to_string_lossy().into_owned())
}

/// The first `limit` results in sorted order, in whatever order they arrive, and the total count.
pub(crate) struct Smallest<T> {
    limit: usize,
    kept: BTreeMap<PathBuf, (usize, T)>,
    /// Sum of the weights of the stored results.
    weight: usize,
    /// Sum of the weights of all results.
    total: usize,
}

impl<T> Smallest<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: BTreeMap::new(),
            weight: 0,
            total: 0,
        }
    }

    /// Adds a result at one path that counts as `weight` results.
    pub(crate) fn add(&mut self, path: PathBuf, weight: usize, value: T) {
        self.total += weight;
        self.weight += weight;
        self.kept.insert(path, (weight, value));
        while let Some(last) = self.kept.last_entry() {
            let without_last = self.weight - last.get().0;
            if without_last < self.limit {
                break;
            }
            self.weight = without_last;
            last.remove();
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Returns the results in order. The last one may exceed the limit.
    pub(crate) fn into_kept(self) -> impl Iterator<Item = (PathBuf, T)> {
        self.kept.into_iter().map(|(path, (_, value))| (path, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/deep/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("**/*.{ts,tsx}", "web/a.tsx", true),
            ("[ab].txt", "b.txt", true),
            ("a?c", "abc", true),
        ];
        for (pattern, path, fits) in cases {
            let pattern = PathPattern::new(pattern).expect(pattern);
            assert_eq!(pattern.fits(Path::new(path)), fits, "{path}");
        }
        assert!(matches!(
            PathPattern::new("a[").map(drop),
            Err(ToolError::Invalid(_))
        ));
    }

    #[test]
    fn the_walk_starts_as_deep_as_it_can() {
        let cases = [
            ("*.rs", "", "*.rs"),
            ("src/*.rs", "src", "*.rs"),
            ("src/a/**/b/*.rs", "src/a", "**/b/*.rs"),
            ("src/a.rs", "src", "a.rs"),
            ("a.rs", "", "a.rs"),
            ("/etc/*.conf", "/etc", "*.conf"),
            ("../x/*", "../x", "*"),
            ("./src/*", "./src", "*"),
        ];
        for (pattern, root, rest) in cases {
            assert_eq!(
                split_root(pattern),
                (PathBuf::from(root), rest.to_owned()),
                "{pattern}"
            );
        }
    }

    #[test]
    fn the_first_results_are_kept_in_any_order() {
        let mut paths: Vec<String> = (0..50).map(|number| format!("{number:02}")).collect();
        for _ in 0..2 {
            paths.reverse();
            let mut smallest = Smallest::new(3);
            for path in &paths {
                smallest.add(PathBuf::from(path), 2, ());
            }
            assert_eq!(smallest.total(), 100);
            let kept: Vec<PathBuf> = smallest.into_kept().map(|(path, ())| path).collect();
            assert_eq!(kept, [PathBuf::from("00"), PathBuf::from("01")]);
        }
    }
}
