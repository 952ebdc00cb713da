use super::*;

fn findings(path: &str, package: &str, dependencies: &str) -> Vec<String> {
    let manifest = format!("[package]\nname = \"{package}\"\n{dependencies}");
    let tree = Tree::of(&[(path, &manifest)]);
    check(&tree)
        .iter()
        .map(|finding| format!("{} {}", finding.line, finding.item))
        .collect()
}

fn core(dependencies: &str) -> Vec<String> {
    findings("crates/core/Cargo.toml", "windlass-core", dependencies)
}

fn cli(dependencies: &str) -> Vec<String> {
    findings("crates/cli/Cargo.toml", "windlass", dependencies)
}

#[test]
fn core_stands_alone_even_in_tests() {
    assert_eq!(core("[dependencies]\nserde.workspace = true\n"), [""; 0]);
    assert_eq!(core("[dependencies]\nreqwest.workspace = true\n"), ["4 reqwest"]);
    assert_eq!(
        core("[dev-dependencies]\nwindlass-sim.workspace = true\n"),
        ["4 windlass-sim"]
    );
}

#[test]
fn siblings_do_not_see_each_other_except_in_tests() {
    let tools = |dependencies| findings("crates/tools/Cargo.toml", "windlass-tools", dependencies);
    assert_eq!(tools("[dependencies]\nwindlass-core.workspace = true\n"), [""; 0]);
    assert_eq!(
        tools("[dependencies]\nwindlass-providers.workspace = true\n"),
        ["4 windlass-providers"]
    );
    assert_eq!(
        tools("[dev-dependencies]\nwindlass-testkit.workspace = true\n"),
        [""; 0]
    );
}

#[test]
fn libraries_use_the_siblings_in_their_row() {
    let edge = |name: &str, sibling: &str| {
        let path = format!("crates/{name}/Cargo.toml");
        let dependency = format!("[dependencies]\nwindlass-{sibling}.workspace = true\n");
        findings(&path, &format!("windlass-{name}"), &dependency).is_empty()
    };
    for (name, sibling) in [
        ("shell", "core"),
        ("sim", "yaml"),
        ("checkpoint", "sandbox"),
        ("tools", "shell"),
        ("config", "providers"),
        ("host", "service"),
        ("lab", "api"),
    ] {
        assert!(edge(name, sibling), "{name} → {sibling}");
    }
    for (name, sibling) in [
        ("sandbox", "shell"),
        ("sim", "core"),
        ("yaml", "core"),
        ("checkpoint", "tools"),
        ("tools", "config"),
        ("config", "host"),
        ("host", "tui"),
        ("service", "store"),
    ] {
        assert!(!edge(name, sibling), "{name} → {sibling}");
    }
}

#[test]
fn the_product_leaves_out_what_does_not_ship() {
    let names: Vec<&str> = product().map(|(_, name)| name).collect();
    assert!(
        names.starts_with(&["text", "core", "api"]) && names.ends_with(&["cli"]),
        "{names:?}"
    );
    assert!(!names.contains(&"testkit"), "{names:?}");
}

#[test]
fn the_binary_uses_the_testkit_only_in_tests() {
    assert_eq!(
        cli("[dev-dependencies]\nwindlass-testkit.workspace = true\n"),
        [""; 0]
    );
    assert_eq!(
        cli("[dependencies]\nwindlass-testkit.workspace = true\n"),
        ["4 windlass-testkit"]
    );
}

#[test]
fn foreign_types_stop_at_their_border() {
    assert_eq!(cli("[dependencies]\nanyhow.workspace = true\n"), [""; 0]);
    assert_eq!(cli("[dependencies]\nrusqlite.workspace = true\n"), ["4 rusqlite"]);
    assert_eq!(core("[dependencies]\nanyhow.workspace = true\n"), ["4 anyhow"]);
}

#[test]
fn an_unknown_crate_must_enter_the_table() {
    assert_eq!(
        findings("crates/extra/Cargo.toml", "windlass-extra", ""),
        ["1 windlass-extra"]
    );
    assert_eq!(
        findings("crates/kern/Cargo.toml", "windlass-core", ""),
        ["1 windlass-core"]
    );
}
