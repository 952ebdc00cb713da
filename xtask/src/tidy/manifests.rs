//! Manifests: shared lints, shared dependency versions, no features, one registry.

use toml_edit::{Document, Item, TableLike};

use super::finding::{Finding, Rule};
use super::tree::Tree;

/// The only source of crates. Any other source in the lock file is a fork or a mirror that others cannot
/// reach.
const REGISTRY: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// The parts of a package's `Cargo.toml` that the checks use.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) path: String,
    /// Folder of the package, without a trailing slash.
    pub(crate) folder: String,
    pub(crate) package: String,
    /// Empty if the manifest has none.
    pub(crate) description: String,
    pub(crate) dependencies: Vec<Dependency>,
    features_line: Option<usize>,
    shares_lints: bool,
}

#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    from_workspace: bool,
}

/// The code that a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Product code and build scripts.
    Product,
    Tests,
}

const SECTIONS: &[(&str, Kind)] = &[
    ("dependencies", Kind::Product),
    ("build-dependencies", Kind::Product),
    ("dev-dependencies", Kind::Tests),
];

impl Manifest {
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, toml_edit::TomlError> {
        let document = Document::parse(text)?;
        let at = |table: &dyn TableLike, key: &str| {
            let start = table
                .get_key_value(key)
                .and_then(|(key, _)| key.span())
                .map_or(0, |span| span.start);
            text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1
        };
        let of_package = |key: &str| {
            let value = document.get("package").and_then(|package| package.get(key));
            value.and_then(Item::as_str).unwrap_or_default().to_owned()
        };
        let mut manifest = Self {
            path: path.to_owned(),
            folder: path.strip_suffix("/Cargo.toml").unwrap_or_default().to_owned(),
            package: of_package("name"),
            description: of_package("description"),
            dependencies: Vec::new(),
            features_line: document
                .contains_key("features")
                .then(|| at(document.as_table(), "features")),
            shares_lints: document
                .get("lints")
                .and_then(|lints| lints.get("workspace"))
                .is_some_and(is_true),
        };
        let targets = document.get("target").and_then(Item::as_table_like);
        let targets = targets.into_iter().flat_map(|targets| targets.iter());
        let holders = targets.filter_map(|(_, target)| target.as_table_like());
        for holder in std::iter::once(document.as_table() as &dyn TableLike).chain(holders) {
            for (section, kind) in SECTIONS {
                let Some(table) = holder.get(section).and_then(Item::as_table_like) else {
                    continue;
                };
                manifest.dependencies.extend(table.iter().map(|(name, item)| {
                    Dependency {
                        name: item
                            .get("package")
                            .and_then(Item::as_str)
                            .unwrap_or(name)
                            .to_owned(),
                        line: at(table, name),
                        kind: *kind,
                        from_workspace: item.get("workspace").is_some_and(is_true),
                    }
                }));
            }
        }
        Ok(manifest)
    }
}

fn is_true(item: &Item) -> bool {
    item.as_bool() == Some(true)
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let packages = tree.manifests.iter().flat_map(package);
    packages
        .chain(
            tree.file("Cargo.lock")
                .into_iter()
                .flat_map(|file| sources(&file.text)),
        )
        .collect()
}

fn package(manifest: &Manifest) -> Vec<Finding> {
    let at = |rule, line, message: String| Finding::new(rule, &manifest.path, line, message);
    let mut findings = Vec::new();
    if let Some(line) = manifest.features_line {
        let message = "our crates have no features; make the choice a setting, read at run time";
        findings.push(at(Rule::Features, line, message.to_owned()));
    }
    if !manifest.shares_lints {
        let message = "the package does not use the workspace's lints; add `[lints]` with `workspace = true`";
        findings.push(at(Rule::Lints, 1, message.to_owned()));
    }
    for dependency in manifest
        .dependencies
        .iter()
        .filter(|dependency| !dependency.from_workspace)
    {
        let name = &dependency.name;
        let message = format!(
            "`{name}` has its own version; list it in the workspace's Cargo.toml and write `{name}.workspace = true`"
        );
        findings.push(at(Rule::WorkspaceDependency, dependency.line, message).about(name));
    }
    findings
}

fn sources(lock: &str) -> Vec<Finding> {
    let lines = lock.lines().enumerate();
    let foreign = lines.filter(|(_, line)| line.starts_with("source = ") && *line != REGISTRY);
    foreign
        .map(|(index, line)| {
            let message = format!("`{line}` is not the public registry; depend on a published crate");
            Finding::new(Rule::LockedSource, "Cargo.lock", index + 1, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(manifest: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/core/Cargo.toml", manifest)]);
        check(&tree)
            .iter()
            .map(|finding| format!("{} {} {}", finding.line, finding.rule, finding.item))
            .collect()
    }

    #[test]
    fn a_plain_manifest_passes() {
        let manifest = "[package]\nname = \"windlass-core\"\n[lints]\nworkspace = true\n[dependencies]\n\
                        serde.workspace = true\ntokio = { workspace = true, features = [\"sync\"] }\n";
        assert_eq!(findings(manifest), [""; 0]);
    }

    #[test]
    fn features_versions_and_missing_lints_are_found() {
        let manifest = "[package]\nname = \"windlass-core\"\n[features]\nfast = []\n[dependencies]\nserde = \"1\"\n\
                        [target.'cfg(unix)'.dev-dependencies]\nlibc = { version = \"0.2\" }\n";
        let expected = [
            "3 features ",
            "1 lints ",
            "6 workspace-dependency serde",
            "8 workspace-dependency libc",
        ];
        assert_eq!(findings(manifest), expected);
    }

    #[test]
    fn only_the_public_registry_is_a_source() {
        let tree = Tree::of(&[(
            "Cargo.lock",
            &format!("{REGISTRY}\nsource = \"git+ssh://example.org/fork\"\n"),
        )]);
        assert_eq!(
            check(&tree)
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>(),
            [2]
        );
    }
}
