//! Access that a command cannot work without: the network, or files outside the workspace.

use super::packages::{self, PackageNeeds};
use super::{Analysis, SimpleCommand};
use windlass_core::permission::Escalation;

/// Programs whose only purpose is to talk to other machines.
const NETWORK: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "netcat", "socat", "telnet", "dig",
    "host", "nslookup", "ping", "whois", "http", "https", "gh", "glab", "aws", "gcloud", "az",
];
/// Programs that need the network only with one of these words among their arguments.
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
impl Analysis {
    /// Returns the access that the commands plainly need. A program that is not listed needs nothing, and
    /// fails if it does.
    pub fn needs(&self) -> Escalation {
        let mut reach = Escalation::default();
        for command in &self.commands {
            let program = command.program.as_deref().unwrap_or_default();
            let packages = packages(command);
            reach.outside |= packages.is_some_and(|needs| needs.outside);
            reach.network |= packages.is_some_and(|needs| needs.network)
                || NETWORK.contains(&program)
                || given(NETWORK_WHEN, program, command);
        }
        reach
    }

    /// Returns the hosts that the command needs, in order, if only package managers in it need the network;
    /// otherwise none, because they are not known.
    pub fn hosts(&self) -> Vec<&'static str> {
        let mut hosts: Vec<&str> = Vec::new();
        for command in &self.commands {
            let program = command.program.as_deref().unwrap_or_default();
            let packages = packages(command).filter(|needs| needs.network);
            match packages {
                Some(needs) if !needs.hosts.is_empty() => {
                    hosts.extend(
                        needs
                            .hosts
                            .iter()
                            .filter(|host| !hosts.contains(*host))
                            .copied()
                            .collect::<Vec<_>>(),
                    );
                }
                Some(_) => return Vec::new(),
                None if NETWORK.contains(&program) || given(NETWORK_WHEN, program, command) => {
                    return Vec::new();
                }
                None => {}
            }
        }
        hosts
    }
}

fn packages(command: &SimpleCommand) -> Option<PackageNeeds> {
    let arguments = command.words.get(1..).unwrap_or_default();
    packages::needs(command.program.as_deref()?, arguments)
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
            protected: false,
        };
        let both = Escalation {
            network: true,
            outside: true,
            protected: false,
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
            ("npm install", network),
            ("npm test && npm run install", nothing),
            ("npm --prefix web ci", network),
            ("npm ls", nothing),
            ("npx create-app x", network),
            ("yarn", network),
            ("yarn test", nothing),
            ("pnpm add -g x", both),
            ("cargo add serde", network),
            ("cargo +nightly install x", both),
            ("cargo --version; go version", nothing),
            ("go get x", network),
            ("go mod download", network),
            ("go mod edit", nothing),
            ("uv sync", network),
            ("uv run pytest", nothing),
            ("bundle", network),
            ("bundle exec rake", nothing),
            ("python3 -m pip install x", both),
            ("python3 -m pytest", nothing),
            ("cd web && env CI=1 timeout 60 npm ci", network),
            ("apt-get install x", both),
        ];
        for (command, needs) in cases {
            assert_eq!(
                analyse(command, &Blocklist::default()).needs(),
                needs,
                "{command}"
            );
        }
        let hosts = |command| analyse(command, &Blocklist::default()).hosts();
        assert_eq!(hosts("npm ci && npx x"), ["registry.npmjs.org"]);
        assert_eq!(hosts("pip install x"), ["pypi.org", "files.pythonhosted.org"]);
        assert_eq!(hosts("npm test"), [""; 0]);
        assert_eq!(hosts("npm ci && curl https://example.org"), [""; 0]);
    }
}
