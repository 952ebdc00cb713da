//! The list of crates in `ARCHITECTURE.md`: generated from the manifests, so that it cannot go stale.

use anyhow::{Context, Result};

use super::edges;
use super::finding::{Finding, Rule};
use super::manifests::{Kind, Manifest};
use super::tree::Tree;
use crate::repo::{self, Root};

const PATH: &str = "ARCHITECTURE.md";
const OPEN: &str = "<!-- crates -->\n";
const CLOSE: &str = "<!-- /crates -->";
const COMMAND: &str = "`cargo xtask tidy --write-architecture`";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(PATH).map_or("", |file| file.text.as_str());
    let at = |line, message: String| vec![Finding::new(Rule::Drawing, PATH, line, message)];
    let Some(page) = Page::split(text) else {
        return at(1, no_markers());
    };
    let expected = list(tree);
    if page.list == expected {
        return Vec::new();
    }
    let same = page
        .list
        .lines()
        .zip(expected.lines())
        .take_while(|(written, expected)| written == expected);
    let line = page.before.lines().count() + same.count() + 1;
    at(
        line,
        format!("the list of crates differs from the manifests; {COMMAND} writes it"),
    )
}

/// Writes the list of crates between the markers of `ARCHITECTURE.md`.
pub(crate) fn write(root: &Root) -> Result<()> {
    let (tree, _) = Tree::read(repo::text_files(root)?);
    let text = tree.file(PATH).map_or("", |file| file.text.as_str());
    let Page { before, after, .. } = Page::split(text).with_context(no_markers)?;
    let text = format!("{before}{}{after}", list(&tree));
    std::fs::write(root.join(PATH), text).with_context(|| format!("cannot write {PATH}"))?;
    println!("tidy: wrote the list of crates in {PATH}");
    Ok(())
}

fn no_markers() -> String {
    format!(
        "{PATH} has no list of crates; add the lines `{}` and `{CLOSE}`, then run {COMMAND}",
        OPEN.trim_end()
    )
}

/// The text of the page, split at the markers. Both markers stay outside the list.
struct Page<'a> {
    before: &'a str,
    list: &'a str,
    after: &'a str,
}

impl<'a> Page<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let (before, rest) = text.split_at(text.find(OPEN)? + OPEN.len());
        let (list, after) = rest.split_at(rest.find(CLOSE)?);
        Some(Self { before, list, after })
    }
}

/// One row per product crate: the crate, the siblings its product code uses, and its description.
fn list(tree: &Tree) -> String {
    let manifest = |package: &str| tree.manifests.iter().find(|manifest| manifest.package == package);
    let rows = edges::product().filter_map(|(package, name)| Some(row(name, manifest(package)?)));
    format!(
        "\n| crate → crates it uses | purpose |\n|---|---|\n{}\n",
        rows.collect::<String>()
    )
}

fn row(name: &str, manifest: &Manifest) -> String {
    let uses = |package: &str| {
        let mut dependencies = manifest.dependencies.iter();
        dependencies.any(|dependency| dependency.kind == Kind::Product && dependency.name == package)
    };
    let siblings: Vec<String> = edges::product()
        .filter(|(package, _)| uses(package))
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    let arrow = if siblings.is_empty() { "" } else { " → " };
    let description = manifest.description.replace('|', "\\|");
    format!("| `{name}`{arrow}{} | {description} |\n", siblings.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: (&str, &str) = (
        "crates/core/Cargo.toml",
        "[package]\nname = \"windlass-core\"\ndescription = \"The loop.\"\n",
    );
    const CLI: (&str, &str) = (
        "crates/cli/Cargo.toml",
        "[package]\nname = \"windlass\"\ndescription = \"The binary.\"\n[dependencies]\nserde.workspace = true\n\
         windlass-tui.workspace = true\nwindlass-core.workspace = true\n\
         [dev-dependencies]\nwindlass-testkit.workspace = true\nwindlass-sim.workspace = true\n",
    );
    const TESTKIT: (&str, &str) = (
        "crates/testkit/Cargo.toml",
        "[package]\nname = \"windlass-testkit\"\n",
    );
    const LIST: &str = "\n| crate → crates it uses | purpose |\n|---|---|\n| `core` | The loop. |\n\
                        | `cli` → `core`, `tui` | The binary. |\n\n";

    fn findings(page: &str) -> Vec<usize> {
        let tree = Tree::of(&[CLI, CORE, TESTKIT, (PATH, page)]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    fn page(list: &str) -> String {
        format!("# Map\n\n{OPEN}{list}{CLOSE}\n\nText.\n")
    }

    #[test]
    fn the_list_shows_product_crates_and_their_edges() {
        assert_eq!(list(&Tree::of(&[CLI, CORE, TESTKIT])), LIST);
        assert_eq!(findings(&page(LIST)), [0; 0]);
    }

    #[test]
    fn a_difference_is_found_at_its_line() {
        assert_eq!(findings(&page("")), [4]);
        assert_eq!(findings(&page(&LIST.replace("`core`, `tui`", "`core`"))), [8]);
        assert_eq!(findings(&page(&format!("{LIST}More.\n"))), [10]);
        let tree = Tree::of(&[CORE, (PATH, &page(""))]);
        let message = check(&tree).first().map(ToString::to_string).unwrap_or_default();
        assert!(
            message.contains("cargo xtask tidy --write-architecture"),
            "{message}"
        );
    }

    #[test]
    fn the_markers_are_required() {
        assert_eq!(findings(LIST), [1]);
        assert_eq!(findings(&format!("{OPEN}{LIST}")), [1]);
        assert_eq!(check(&Tree::of(&[CORE])).len(), 1, "no page at all");
    }

    #[test]
    fn text_around_the_list_is_kept() {
        let text = page("old\n");
        let split = Page::split(&text).expect("the fixture has markers");
        assert_eq!(format!("{}{LIST}{}", split.before, split.after), page(LIST));
    }
}
