//! Languages by file name, and the part a file plays in a workspace.

use std::path::Path;

/// Language of a file, as far as definitions are found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Rust,
    /// Also JavaScript.
    TypeScript,
    /// TypeScript and JavaScript with elements in angle brackets.
    Tsx,
    Go,
    Java,
    /// Also C.
    Cpp,
    /// Any other language; a scanner looks for the usual keywords.
    Other,
    /// Text without definitions.
    Prose,
    /// Found by its name only.
    Data,
}

/// Part that a file plays in a workspace. Ranking prefers the code itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// Source code.
    Code,
    /// A test or a test's data.
    Test,
    /// Documentation.
    Prose,
    /// Anything else: settings, tables, generated files.
    Data,
}

const PROSE: &[&str] = &["md", "markdown", "rst", "txt", "adoc", "tex", "org"];
/// Files whose contents say little: they are found by name.
const DATA: &[&str] = &[
    "lock", "map", "csv", "tsv", "svg", "ipynb", "snap", "po", "pot", "log", "sum", "patch", "diff", "jsonl",
    "geojson", "har", "pem", "crt", "key", "ics", "xlf",
];
/// Files that are never read.
const BINARY: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "webp",
    "ico",
    "bmp",
    "tiff",
    "pdf",
    "zip",
    "gz",
    "xz",
    "zst",
    "bz2",
    "tar",
    "tgz",
    "7z",
    "jar",
    "war",
    "class",
    "o",
    "a",
    "so",
    "dylib",
    "dll",
    "exe",
    "bin",
    "wasm",
    "pyc",
    "pyo",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "eot",
    "mp3",
    "mp4",
    "wav",
    "ogg",
    "webm",
    "mov",
    "avi",
    "sqlite",
    "sqlite3",
    "db",
    "mo",
    "npy",
    "npz",
    "pkl",
    "parquet",
    "gguf",
    "onnx",
    "safetensors",
    "psd",
    "jks",
    "p12",
    "pfx",
    "rlib",
    "rmeta",
    "pdb",
];
const SETTINGS: &[&str] = &[
    "json",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "xml",
    "conf",
    "properties",
    "plist",
];

impl Language {
    /// Returns the language of a file by its name, or `None` if the file is not text.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = extension(name);
        if BINARY.contains(&ending.as_str()) {
            return None;
        }
        let is_packed =
            name.contains(".min.") || name.ends_with("-lock.json") || name.ends_with("-lock.yaml");
        if is_packed || DATA.contains(&ending.as_str()) {
            return Some(Self::Data);
        }
        Some(match ending.as_str() {
            "py" | "pyi" | "pyx" => Self::Python,
            "rs" => Self::Rust,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" | "jsx" | "js" | "mjs" | "cjs" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "ino" | "cu" => Self::Cpp,
            ending if PROSE.contains(&ending) => Self::Prose,
            _ => Self::Other,
        })
    }
}

impl FileRole {
    /// Returns the role of a file by its path.
    pub fn of(path: &str) -> Self {
        let mut folders = path.split('/').rev();
        let name = folders.next().unwrap_or(path);
        let in_tests = folders.any(|folder| {
            matches!(
                folder,
                "test" | "tests" | "testing" | "__tests__" | "spec" | "testdata" | "fixtures"
            )
        });
        let stem = name.split('.').next().unwrap_or(name);
        let is_test = stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem.ends_with("_tests")
            || stem == "conftest"
            || name.contains(".test.")
            || name.contains(".spec.");
        let ending = extension(name);
        if in_tests || is_test {
            return Self::Test;
        }
        match Language::of(path) {
            Some(Language::Prose) => Self::Prose,
            None | Some(Language::Data) => Self::Data,
            Some(Language::Other) if SETTINGS.contains(&ending.as_str()) || ending.is_empty() => Self::Data,
            Some(_) => Self::Code,
        }
    }
}

fn extension(name: &str) -> String {
    let ending = Path::new(name).extension().unwrap_or_default();
    ending.to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_roles() {
        let cases = [
            ("src/flask/app.py", FileRole::Code),
            ("tests/test_app.py", FileRole::Test),
            ("src/net/retry_tests.rs", FileRole::Test),
            ("web/button.spec.tsx", FileRole::Test),
            ("docs/index.rst", FileRole::Prose),
            ("Cargo.lock", FileRole::Data),
            ("package.json", FileRole::Data),
            ("Makefile", FileRole::Data),
        ];
        for (path, role) in cases {
            assert_eq!(FileRole::of(path), role, "{path}");
        }
        assert_eq!(Language::of("logo.PNG"), None);
        assert_eq!(Language::of("a/b.h"), Some(Language::Cpp));
        assert_eq!(Language::of("dist/app.min.js"), Some(Language::Data));
    }
}
