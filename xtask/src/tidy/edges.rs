//! Edges between crates: `core` is at the bottom, then `api`, then the libraries, `host` and `cli` at the
//! top.

use super::finding::{Finding, Rule};
use super::manifests::{Dependency, Kind, Manifest};
use super::tree::Tree;

/// One of our crates and the siblings it may use.
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
    /// These, and the two crates that every library may use: [`BASE`].
    BaseAnd(&'static [&'static str]),
}

const BASE: &[&str] = &["windlass-api", "windlass-core"];
const NONE: Siblings = Siblings::Only(&[]);
const ONLY_BASE: Siblings = Siblings::BaseAnd(&[]);
/// Not `core`: the simulated model must not share a mistake with our own client.
const FOR_SIM: Siblings = Siblings::Only(&["windlass-yaml"]);
const FOR_WORKTREE: Siblings = Siblings::Only(&["windlass-checkpoint", "windlass-sandbox"]);
const FOR_TOOLS: Siblings = Siblings::BaseAnd(&[
    "windlass-sandbox",
    "windlass-shell",
    "windlass-checkpoint",
    "windlass-yaml",
]);
/// The trust check reads the tools that a project declares, and their parser is in `tools`.
const FOR_CONFIG: Siblings = Siblings::BaseAnd(&[
    "windlass-providers",
    "windlass-sandbox",
    "windlass-shell",
    "windlass-tools",
]);
const FOR_HOST: Siblings = Siblings::BaseAnd(&[
    "windlass-config",
    "windlass-providers",
    "windlass-tools",
    "windlass-sandbox",
    "windlass-shell",
    "windlass-checkpoint",
    "windlass-worktree",
    "windlass-yaml",
    "windlass-service",
    "windlass-store",
    "windlass-users",
    // The embedded simulated model.
    "windlass-sim",
    // The jobs that `/cron` shows.
    "windlass-cron",
    // Extensions of a session.
    "windlass-hooks",
    "windlass-skills",
    "windlass-mcp",
    "windlass-memory",
    "windlass-codeindex",
]);
const WITH_JSONRPC: Siblings = Siblings::BaseAnd(&["windlass-jsonrpc"]);
/// The checks of requests are those of the server.
const FOR_MCP_SERVER: Siblings = Siblings::BaseAnd(&["windlass-jsonrpc", "windlass-server"]);
const WITH_WORDS: Siblings = Siblings::BaseAnd(&["windlass-words"]);
/// Names that options accept are those of the settings and of imports.
const FOR_ARGS: Siblings = Siblings::BaseAnd(&["windlass-config", "windlass-host"]);
const WITH_SANDBOX: Siblings = Siblings::BaseAnd(&["windlass-sandbox"]);

/// The table to edit when a crate is added, from the bottom up: a crate comes after those it uses.
/// Tests may use any sibling, except in core.
#[rustfmt::skip]
const MEMBERS: &[Member] = &[
    Member { folder: "crates/text",       package: "windlass-text",       product: NONE, tests: NONE },
    Member { folder: "crates/core",       package: "windlass-core",       product: Siblings::Only(&["windlass-text"]), tests: NONE },
    Member { folder: "crates/api",        package: "windlass-api",        product: Siblings::Only(&["windlass-core"]), tests: Siblings::Any },
    Member { folder: "crates/providers",  package: "windlass-providers",  product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/yaml",       package: "windlass-yaml",       product: NONE, tests: NONE },
    Member { folder: "crates/sim",        package: "windlass-sim",        product: FOR_SIM, tests: Siblings::Any },
    Member { folder: "crates/shell",      package: "windlass-shell",      product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/sandbox",    package: "windlass-sandbox",    product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/checkpoint", package: "windlass-checkpoint", product: WITH_SANDBOX, tests: Siblings::Any },
    Member { folder: "crates/worktree",   package: "windlass-worktree",   product: FOR_WORKTREE, tests: Siblings::Any },
    Member { folder: "crates/tools",      package: "windlass-tools",      product: FOR_TOOLS, tests: Siblings::Any },
    Member { folder: "crates/mcp",        package: "windlass-mcp",        product: WITH_SANDBOX, tests: Siblings::Any },
    Member { folder: "crates/hooks",      package: "windlass-hooks",      product: WITH_SANDBOX, tests: Siblings::Any },
    Member { folder: "crates/skills",     package: "windlass-skills",     product: Siblings::BaseAnd(&["windlass-yaml"]), tests: Siblings::Any },
    Member { folder: "crates/words",      package: "windlass-words",      product: NONE, tests: NONE },
    Member { folder: "crates/memory",     package: "windlass-memory",     product: WITH_WORDS, tests: Siblings::Any },
    Member { folder: "crates/codeindex",  package: "windlass-codeindex",  product: WITH_SANDBOX, tests: Siblings::Any },
    Member { folder: "crates/postgres",   package: "windlass-postgres",   product: Siblings::Only(&["windlass-core", "windlass-words"]), tests: Siblings::Any },
    Member { folder: "crates/store",      package: "windlass-store",      product: Siblings::BaseAnd(&["windlass-postgres", "windlass-words"]), tests: Siblings::Any },
    Member { folder: "crates/service",    package: "windlass-service",    product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/replay",     package: "windlass-replay",     product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/lab",        package: "windlass-lab",        product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/cron",       package: "windlass-cron",       product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/telemetry",  package: "windlass-telemetry",  product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/users",      package: "windlass-users",      product: Siblings::Only(&["windlass-core"]), tests: Siblings::Any },
    Member { folder: "crates/config",     package: "windlass-config",     product: FOR_CONFIG, tests: Siblings::Any },
    Member { folder: "crates/host",       package: "windlass-host",       product: FOR_HOST, tests: Siblings::Any },
    Member { folder: "crates/tui",        package: "windlass-tui",        product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/jsonrpc",    package: "windlass-jsonrpc",    product: NONE, tests: NONE },
    Member { folder: "crates/acp",        package: "windlass-acp",        product: WITH_JSONRPC, tests: Siblings::Any },
    Member { folder: "crates/server",     package: "windlass-server",     product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/cluster",    package: "windlass-cluster",    product: ONLY_BASE, tests: Siblings::Any },
    Member { folder: "crates/mcp-server", package: "windlass-mcp-server", product: FOR_MCP_SERVER, tests: Siblings::Any },
    Member { folder: "crates/args",       package: "windlass-args",       product: FOR_ARGS, tests: Siblings::Any },
    Member { folder: "crates/cli",        package: "windlass",            product: Siblings::AnyBut(&["windlass-testkit", "windlass-bench"]), tests: Siblings::Any },
    Member { folder: "crates/testkit",    package: "windlass-testkit",    product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "bench",             package: "windlass-bench",      product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "fuzz",              package: "windlass-fuzz",       product: Siblings::Any, tests: Siblings::Any },
    Member { folder: "xtask",             package: "xtask",               product: NONE, tests: NONE },
];

/// A third-party crate, and the only packages that may use it.
struct Border {
    dependency: &'static str,
    packages: &'static [&'static str],
    why: &'static str,
}

/// Protocol, database and screen types stay in one crate each. Tests may use any.
#[rustfmt::skip]
const BORDERS: &[Border] = &[
    Border { dependency: "anyhow",                packages: &["windlass", "windlass-bench", "xtask"], why: "libraries name their errors" },
    Border { dependency: "rmcp",                  packages: &["windlass-mcp", "windlass-mcp-server"], why: "MCP types stay in mcp and mcp-server" },
    Border { dependency: "agent-client-protocol", packages: &["windlass-server"],                     why: "ACP types stay in server" },
    Border { dependency: "rusqlite",              packages: &["windlass-store"],                      why: "SQL stays in store" },
    Border { dependency: "tokio-postgres",        packages: &["windlass-postgres", "windlass-bench"], why: "SQL stays in store and postgres" },
    Border { dependency: "ratatui",               packages: &["windlass-tui"],                        why: "screens stay in tui" },
];

/// Core does no IO: no network, database, files or terminal, not even in its tests.
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

/// The crates of the product, each as its package and its short name, in the order of the table.
pub(crate) fn product() -> impl Iterator<Item = (&'static str, &'static str)> {
    MEMBERS.iter().filter_map(|member| {
        let name = member.folder.strip_prefix("crates/")?;
        (name != "testkit").then_some((member.package, name))
    })
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests.iter().flat_map(package).collect()
}

fn package(manifest: &Manifest) -> Vec<Finding> {
    let Some(member) = MEMBERS.iter().find(|member| member.package == manifest.package) else {
        let message = format!(
            "the crate `{}` is missing in the table of crates; add it to MEMBERS in xtask/src/tidy/edges.rs",
            manifest.package
        );
        return vec![Finding::new(Rule::CrateEdge, &manifest.path, 1, message).about(&manifest.package)];
    };
    let mut findings = Vec::new();
    if member.folder != manifest.folder {
        let message = format!("`{}` belongs in the folder {}", member.package, member.folder);
        findings.push(Finding::new(Rule::CrateEdge, &manifest.path, 1, message).about(member.package));
    }
    let wrong = |dependency: &Dependency| {
        let message = objection(member, dependency)?;
        Some(Finding::new(Rule::CrateEdge, &manifest.path, dependency.line, message).about(&dependency.name))
    };
    findings.extend(manifest.dependencies.iter().filter_map(wrong));
    findings
}

/// Returns the reason why this crate may not have this dependency, if there is one.
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
            "{}, so only {} may use `{name}`",
            border.why,
            border.packages.join(", ")
        )
    })
}

fn sibling_objection(member: &Member, dependency: &Dependency) -> Option<String> {
    let (siblings, may_use) = match dependency.kind {
        Kind::Product => (&member.product, "may use"),
        Kind::Tests => (&member.tests, "may use in tests"),
    };
    let name = dependency.name.as_str();
    let allowed = match siblings {
        Siblings::Any => return None,
        Siblings::AnyBut(not) if !not.contains(&name) => return None,
        Siblings::Only(only) if only.contains(&name) => return None,
        Siblings::BaseAnd(more) if BASE.contains(&name) || more.contains(&name) => return None,
        Siblings::AnyBut(not) => format!("any sibling but {}", not.join(", ")),
        Siblings::Only([]) => "no sibling".to_owned(),
        Siblings::Only(only) => format!("only {}", only.join(", ")),
        Siblings::BaseAnd(more) => format!("only {}", [BASE, more].concat().join(", ")),
    };
    Some(format!(
        "`{name}` is not allowed here: {} {may_use} {allowed}",
        member.package
    ))
}

#[cfg(test)]
#[path = "edges_tests.rs"]
mod tests;
