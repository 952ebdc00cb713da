//! Package managers: the subcommands that download, and the registries they usually talk to.

use super::word::Word;

/// A package manager.
struct Manager {
    names: &'static str,
    /// Subcommands that need the network. `""` stands for a call without one, `*` for every call.
    network: &'static str,
    /// Subcommands and options that also write outside the workspace.
    outside: &'static str,
    /// Usual registries.
    hosts: &'static [&'static str],
}

const fn row(
    names: &'static str,
    network: &'static str,
    outside: &'static str,
    hosts: &'static [&'static str],
) -> Manager {
    Manager {
        names,
        network,
        outside,
        hosts,
    }
}

const NPM: &[&str] = &["registry.npmjs.org"];
const PYPI: &[&str] = &["pypi.org", "files.pythonhosted.org"];
const CONDA: &[&str] = &["conda.anaconda.org", "repo.anaconda.com"];
const RUBY: &[&str] = &["rubygems.org", "index.rubygems.org"];
const PUB: &[&str] = &["pub.dev", "storage.googleapis.com"];

const MANAGERS: &[Manager] = &[
    row(
        "npm",
        "install i in ci add update up upgrade install-test it exec x create view info show search outdated audit \
         publish unpublish login adduser deprecate dist-tag owner access team token whoami ping",
        "-g --global publish unpublish login adduser",
        NPM,
    ),
    row("npx pnpx bunx", "*", "", NPM),
    row(
        "yarn",
        "\"\" install add up upgrade upgrade-interactive dlx create global info outdated audit npm publish login",
        "global publish login",
        &["registry.yarnpkg.com", "registry.npmjs.org"],
    ),
    row(
        "pnpm",
        "install i add update up upgrade dlx create fetch import outdated audit publish login view info search",
        "-g --global publish login",
        NPM,
    ),
    row(
        "bun",
        "install i add update x create upgrade publish outdated",
        "-g --global upgrade publish",
        NPM,
    ),
    row(
        "deno",
        "install add cache upgrade outdated publish",
        "-g --global install upgrade",
        &["jsr.io", "deno.land", "registry.npmjs.org"],
    ),
    row(
        "cargo",
        "add install update fetch search info publish login logout yank owner generate-lockfile vendor binstall",
        "install uninstall publish login logout yank owner binstall",
        &["index.crates.io", "static.crates.io", "crates.io"],
    ),
    row("rustup", "*", "*", &["static.rust-lang.org"]),
    row(
        "go",
        "get install mod:download mod:tidy mod:vendor work:sync",
        "install",
        &["proxy.golang.org", "sum.golang.org"],
    ),
    row(
        "pip pip3 pip3.9 pip3.10 pip3.11 pip3.12 pip3.13",
        "install uninstall download wheel index search",
        "install uninstall download",
        PYPI,
    ),
    row(
        "uv",
        "add sync lock pip tool python publish self",
        "tool python publish self",
        PYPI,
    ),
    row("uvx", "*", "", PYPI),
    row(
        "poetry",
        "install add update lock publish self search",
        "publish self",
        PYPI,
    ),
    row(
        "pdm rye hatch pipenv",
        "install add update lock sync publish",
        "publish",
        PYPI,
    ),
    row(
        "pipx",
        "install run upgrade upgrade-all inject reinstall",
        "install upgrade upgrade-all inject reinstall",
        PYPI,
    ),
    row(
        "conda mamba micromamba",
        "install create update search env",
        "install create update env",
        CONDA,
    ),
    row(
        "bundle bundler",
        "\"\" install update add outdated lock cache package",
        "",
        RUBY,
    ),
    row(
        "gem",
        "install update uninstall push fetch search",
        "install update uninstall push",
        RUBY,
    ),
    row(
        "composer",
        "install require update create-project global search outdated",
        "global",
        &["repo.packagist.org", "packagist.org"],
    ),
    row(
        "mix",
        "deps.get deps.update local.hex local.rebar archive.install hex.publish",
        "local.hex local.rebar archive.install",
        &["repo.hex.pm", "hex.pm"],
    ),
    row(
        "dotnet",
        "restore add tool new nuget workload",
        "tool workload",
        &["api.nuget.org"],
    ),
    row("nuget", "install restore update push", "push", &["api.nuget.org"]),
    row(
        "dart flutter",
        "pub:get pub:add pub:upgrade pub:global upgrade",
        "pub:global upgrade",
        PUB,
    ),
    row("pod", "install update repo", "repo", &["cdn.cocoapods.org"]),
    row(
        "pyenv asdf mise volta fnm",
        "install update upgrade",
        "install update upgrade",
        &[],
    ),
    row(
        "apt apt-get aptitude",
        "*",
        "*",
        &[
            "deb.debian.org",
            "security.debian.org",
            "archive.ubuntu.com",
            "security.ubuntu.com",
        ],
    ),
    row("dnf yum zypper pacman port snap flatpak nix-env", "*", "*", &[]),
    row("apk", "*", "*", &["dl-cdn.alpinelinux.org"]),
    row("brew", "*", "*", &["formulae.brew.sh", "ghcr.io"]),
];

/// Needs of a command of a package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackageNeeds {
    pub(super) network: bool,
    pub(super) outside: bool,
    pub(super) hosts: &'static [&'static str],
}

/// Returns the needs of a command, if its program is a package manager.
pub(super) fn needs(program: &str, arguments: &[Word]) -> Option<PackageNeeds> {
    let values: Vec<&str> = arguments.iter().filter_map(Word::value).collect();
    // `python -m pip install`.
    if program.starts_with("python") || program == "py" {
        let module = values.iter().position(|value| *value == "-m")?;
        let name = values.get(module + 1)?;
        let rest = values.get(module + 2..).unwrap_or_default();
        return manager_needs(name, rest);
    }
    manager_needs(program, &values)
}

fn manager_needs(program: &str, values: &[&str]) -> Option<PackageNeeds> {
    let manager = MANAGERS
        .iter()
        .find(|manager| manager.names.split_whitespace().any(|name| name == program))?;
    let only_asks = matches!(
        values,
        [
            "--version" | "-V" | "-v" | "--help" | "-h" | "version" | "help",
            ..
        ]
    ) || matches!(
        (program, values),
        (
            "rustup",
            ["toolchain" | "target" | "component", "list", ..] | ["show" | "which", ..]
        ) | ("uv", ["pip", "list" | "show" | "freeze" | "check" | "tree", ..])
    ) && !values.contains(&"--outdated");
    let called = subcommands(values);
    let is_called = |table: &str| {
        let mut entries = table.split_whitespace();
        entries.any(|entry| match entry {
            "*" => true,
            "\"\"" => called.is_empty(),
            option if option.starts_with('-') => values.contains(&option),
            entry => called.iter().any(|name| name == entry),
        })
    };
    let outside = !only_asks && is_called(manager.outside);
    let network = !only_asks && is_called(manager.network);
    Some(PackageNeeds {
        network,
        outside,
        hosts: if network { manager.hosts } else { &[] },
    })
}

/// Returns the words that may be the subcommand: the first operand, the one after it if options come first, and
/// both as `first:second`.
fn subcommands(values: &[&str]) -> Vec<String> {
    let operands: Vec<&str> = values
        .iter()
        .filter(|value| !value.starts_with(['-', '+']))
        .copied()
        .collect();
    let has_options = values.first().is_some_and(|value| value.starts_with('-'));
    let mut names = Vec::new();
    if let Some(first) = operands.first() {
        names.push((*first).to_owned());
    }
    if let [first, second, ..] = operands.as_slice() {
        names.push(format!("{first}:{second}"));
        if has_options {
            names.push((*second).to_owned());
        }
    }
    names
}
