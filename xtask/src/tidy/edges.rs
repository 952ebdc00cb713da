//! Which crate may use which: `cli → {tui, server, service, providers, tools, mcp, sim, store} → api → core`.

use super::finding::{Finding, Rule};
use super::manifests::{Dependency, Kind, Manifest};
use super::tree::Tree;

/// One of our crates and the siblings it may name.
struct Member {
    folder: &'static str,
    package: &'static str,
    product: Siblings,
    tests: Siblings,
}

enum Siblings {
    Any,
    AnyBut(&'static [&'static str]),
    Only(&'static [&'static str]),
}

const NONE: Siblings = Siblings::Only(&[]);
const BELOW: Siblings = Siblings::Only(&["windlass-api", "windlass-core"]);

/// The table to edit when a crate is added. Tests may use any sibling, except in core.
#[rustfmt::skip]
const MEMBERS: &[Member] = &[
    Member { folder: "crates/core",      package: "windlass-core",      product: NONE, tests: NONE },
    Member { folder: "crates/api",       package: "windlass-api",       product: Siblings::Only(&["windlass-core"]), tests: Siblings::Any },
    Member { folder: "crates/providers", package: "windlass-providers", product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/sim",       package: "windlass-sim",       product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/tools",     package: "windlass-tools",     product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/mcp",       package: "windlass-mcp",       product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/store",     package: "windlass-store",     product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/service",   package: "windlass-service",   product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/tui",       package: "windlass-tui",       product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/server",    package: "windlass-server",    product: BELOW, tests: Siblings::Any },
    Member { folder: "crates/cli",       package: "windlass",           product: Siblings::AnyBut(&["windlass-testkit", "windlass-bench"]), tests: Siblings::Any },
    Member { folder: "crates/testkit",   package: "windlass-testkit",   product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "bench",            package: "windlass-bench",     product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "fuzz",             package: "windlass-fuzz",      product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "xtask",            package: "xtask",              product: NONE, tests: NONE },
];

/// A foreign crate that stops at a border, and the packages behind it.
struct Border {
    dependency: &'static str,
    packages: &'static [&'static str],
    why: &'static str,
}

/// Protocol, database and screen types live in one crate each. Tests are free.
#[rustfmt::skip]
const BORDERS: &[Border] = &[
    Border { dependency: "anyhow",                packages: &["windlass", "windlass-bench", "xtask"], why: "libraries name their errors" },
    Border { dependency: "rmcp",                  packages: &["windlass-mcp"],                        why: "MCP types stay in mcp" },
    Border { dependency: "agent-client-protocol", packages: &["windlass-server"],                     why: "ACP types stay in server" },
    Border { dependency: "rusqlite",              packages: &["windlass-store"],                      why: "SQL stays in store" },
    Border { dependency: "tokio-postgres",        packages: &["windlass-store"],                      why: "SQL stays in store" },
    Border { dependency: "ratatui",               packages: &["windlass-tui"],                        why: "screens stay in tui" },
];

/// Core decides and does not act: no network, no database, no files, no terminal. Not in its tests either.
const NOT_IN_CORE: &[&str] = &[
    "axum",
    "clap",
    "crossterm",
    "deadpool-postgres",
    "hyper",
    "hyper-util",
    "ignore",
    "notify",
    "ratatui",
    "reqwest",
    "rmcp",
    "rusqlite",
    "rustix",
    "rustls",
    "sqlx",
    "tempfile",
    "tokio-postgres",
    "tower-http",
    "walkdir",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests.iter().flat_map(package).collect()
}

fn package(manifest: &Manifest) -> Vec<Finding> {
    let Some(member) = MEMBERS.iter().find(|member| member.package == manifest.package) else {
        let message = format!(
            "the crate `{}` is not in the table of crates; add it to MEMBERS in xtask/src/tidy/edges.rs",
            manifest.package
        );
        return vec![Finding::new(Rule::CrateEdge, &manifest.path, 1, message).about(&manifest.package)];
    };
    let mut findings = Vec::new();
    if member.folder != manifest.folder {
        let message = format!("`{}` belongs into the folder {}", member.package, member.folder);
        findings.push(Finding::new(Rule::CrateEdge, &manifest.path, 1, message).about(member.package));
    }
    let wrong = |dependency: &Dependency| {
        let message = objection(member, dependency)?;
        Some(Finding::new(Rule::CrateEdge, &manifest.path, dependency.line, message).about(&dependency.name))
    };
    findings.extend(manifest.dependencies.iter().filter_map(wrong));
    findings
}

/// Why this crate may not have this dependency.
fn objection(member: &Member, dependency: &Dependency) -> Option<String> {
    let (package, name) = (member.package, dependency.name.as_str());
    if MEMBERS.iter().any(|sibling| sibling.package == name) {
        return sibling_objection(member, dependency);
    }
    if package == "windlass-core" && NOT_IN_CORE.contains(&name) {
        return Some(format!(
            "core does no IO, so it may not use `{name}`; put the code behind a port"
        ));
    }
    let border = BORDERS.iter().find(|border| border.dependency == name)?;
    let inside = dependency.kind == Kind::Tests || border.packages.contains(&package);
    (!inside).then(|| {
        format!(
            "{}, so `{name}` may be used by {} only",
            border.why,
            border.packages.join(", ")
        )
    })
}

fn sibling_objection(member: &Member, dependency: &Dependency) -> Option<String> {
    let (siblings, whose) = match dependency.kind {
        Kind::Product => (&member.product, "may use"),
        Kind::Tests => (&member.tests, "may use in tests"),
    };
    let name = dependency.name.as_str();
    let allowed = match siblings {
        Siblings::Any => return None,
        Siblings::AnyBut(not) if !not.contains(&name) => return None,
        Siblings::Only(only) if only.contains(&name) => return None,
        Siblings::AnyBut(not) => format!("any sibling but {}", not.join(", ")),
        Siblings::Only([]) => "no sibling".to_owned(),
        Siblings::Only(only) => format!("only {}", only.join(" and ")),
    };
    Some(format!(
        "`{name}` is out of reach: {} {whose} {allowed}",
        member.package
    ))
}

#[cfg(test)]
mod tests {
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
}
