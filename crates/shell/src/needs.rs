//! Access that a command cannot work without: the network, or files outside the workspace.

use super::{Analysis, SimpleCommand};
use windlass_core::permission::Escalation;

/// Programs whose only purpose is to talk to other machines.
const NETWORK: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "netcat", "socat", "telnet", "dig",
    "host", "nslookup", "ping", "whois", "http", "https", "gh", "glab", "aws", "gcloud", "az",
];
/// Programs that always download and install outside the workspace.
const INSTALLERS: &[&str] = &[
    "apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "pacman", "apk", "brew", "port", "snap", "flatpak",
    "nix-env", "rustup",
];
/// Programs that need the network or install outside the workspace only with one of these words among their
/// arguments.
const NETWORK_WHEN: &[(&str, &[&str])] = &[(
    "git",
    &[
        "fetch",
        "pull",
        "push",
        "clone",
        "ls-remote",
        "submodule",
        "send-email",
    ],
)];
const INSTALLS_WHEN: &[(&str, &[&str])] = &[
    ("pip", &["install", "uninstall", "download"]),
    ("pip3", &["install", "uninstall", "download"]),
    ("gem", &["install", "uninstall", "push"]),
    (
        "cargo",
        &["install", "uninstall", "publish", "login", "yank", "owner"],
    ),
    ("go", &["install"]),
    (
        "npm",
        &["-g", "--global", "publish", "unpublish", "login", "adduser"],
    ),
    ("yarn", &["global", "publish", "login"]),
    ("pnpm", &["-g", "--global", "publish", "login"]),
];

impl Analysis {
    /// Returns the access that the commands plainly need. A program that is not listed needs nothing, and
    /// fails if it does.
    pub fn needs(&self) -> Escalation {
        let mut reach = Escalation::default();
        for command in &self.commands {
            let program = command.program.as_deref().unwrap_or_default();
            let installs = INSTALLERS.contains(&program) || given(INSTALLS_WHEN, program, command);
            reach.outside |= installs;
            reach.network |= installs || NETWORK.contains(&program) || given(NETWORK_WHEN, program, command);
        }
        reach
    }
}

fn given(table: &[(&str, &[&str])], program: &str, command: &SimpleCommand) -> bool {
    let words = table.iter().find(|(name, _)| *name == program);
    words.is_some_and(|(_, words)| {
        let mut values = command.words.iter().filter_map(super::Word::value);
        values.any(|value| words.contains(&value))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Blocklist, analyse};
    use super::*;

    /// SAFE-4: the access that a command plainly needs is known before it runs, also behind wrappers and in
    /// lists.
    #[test]
    fn needs_are_read_from_the_command() {
        let nothing = Escalation::default();
        let network = Escalation {
            network: true,
            outside: false,
        };
        let both = Escalation {
            network: true,
            outside: true,
        };
        let cases = [
            ("ls -la", nothing),
            ("git status && git log --grep=pull", nothing),
            ("cargo build && npm test", nothing),
            ("curl https://example.org", network),
            ("make; git -C sub pull --rebase", network),
            ("env A=b timeout 5 ssh host", network),
            ("pip install requests", both),
            ("npm install -g x", both),
            ("npm install", nothing),
        ];
        for (command, needs) in cases {
            assert_eq!(
                analyse(command, &Blocklist::default()).needs(),
                needs,
                "{command}"
            );
        }
    }
}
