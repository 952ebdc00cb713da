//! Suggestions for a file that does not exist.

use std::fs;
use std::path::Path;

use windlass_core::tool::ToolError;

use windlass_sandbox::Roots;

const SUGGESTED: usize = 3;
/// Maximum number of entries examined in a folder.
const LOOKED_AT: usize = 10_000;
/// Minimum similarity of two names, from 0 to 1.
const ALIKE: f64 = 0.6;

/// Returns the error for a file that does not exist.
pub(super) fn missing(roots: &Roots, path: &Path, name: &str) -> ToolError {
    let path = &roots.meant(path);
    let mut text = format!("{name} does not exist.");
    match path.parent() {
        Some(folder) if !folder.is_dir() => text.push_str(" Its folder does not exist either."),
        Some(folder) => {
            let alike = alike(roots, folder, path);
            if !alike.is_empty() {
                text.push_str(&format!(" In the same folder: {}.", alike.join(", ")));
            }
        }
        None => {}
    }
    ToolError::Permanent(text)
}

fn alike(roots: &Roots, folder: &Path, path: &Path) -> Vec<String> {
    let wanted = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let names = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(LOOKED_AT)
        .filter(|entry| !roots.denies(&entry.path()));
    let mut scored: Vec<(f64, String)> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (score(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    scored.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

fn score(wanted: &str, name: &str) -> f64 {
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let same_stem = !stem(wanted).is_empty() && stem(wanted) == stem(name);
    let part = wanted.len() > 2 && (name.contains(wanted) || wanted.contains(name));
    let likeness = strsim::normalized_damerau_levenshtein(wanted, name);
    if same_stem || part {
        likeness.max(ALIKE)
    } else {
        likeness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_the_wanted_one_are_suggested() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["config.toml", "config.yaml", "Main.rs", "unrelated"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let cases: &[(&str, &[&str])] = &[
            ("confg.toml", &["config.toml", "config.yaml"]),
            ("config.json", &["config.toml", "config.yaml"]),
            ("main.rs", &["Main.rs"]),
            ("zzz", &[]),
        ];
        for (wanted, expected) in cases {
            let mut found = alike(&Roots::default(), folder.path(), &folder.path().join(wanted));
            found.sort();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{wanted}");
        }
    }
}
