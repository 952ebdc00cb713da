//! Access that a command cannot work without: the network, or files outside the workspace.

use super::category::{is_local_copy, is_version};
use super::packages::{self, PackageNeeds};
use super::{Analysis, SimpleCommand, git_settings, local};
use windlass_core::permission::Escalation;

/// Programs whose only purpose is to talk to other machines.
const NETWORK: &[&str] = &[
    "curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "netcat", "socat", "telnet", "dig",
    "host", "nslookup", "ping", "whois", "http", "https", "gh", "glab", "aws", "gcloud", "az",
];
impl Analysis {
    /// Returns the access that the commands plainly need. A program that is not listed needs nothing, and
    /// fails if it does.
    pub fn needs(&self) -> Escalation {
        let mut reach = Escalation::default();
        for command in &self.commands {
            let program = command.program.as_deref().unwrap_or_default();
            let packages = packages(command);
            reach.outside |= packages.is_some_and(|needs| needs.outside);
            reach.network |= packages.is_some_and(|needs| needs.network) || self.contacts(program, command);
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
                None if self.contacts(program, command) => return Vec::new(),
                None => {}
            }
        }
        hosts
    }

    /// Returns true if a command that is no package manager talks to other machines.
    fn contacts(&self, program: &str, command: &SimpleCommand) -> bool {
        let arguments = command.words.get(1..).unwrap_or_default();
        if program == "git" {
            return git_contacts(command);
        }
        let stays_here = is_version(program, arguments)
            || self.own_network && local::read(program, arguments).is_some()
            || program == "rsync" && is_local_copy(arguments);
        NETWORK.contains(&program) && !stays_here
    }
}

/// Returns true if a subcommand of git contacts another repository.
fn git_contacts(command: &SimpleCommand) -> bool {
    let Some((subcommand, rest)) = git_settings::subcommand(command) else {
        return false;
    };
    match subcommand {
        "fetch" | "pull" | "push" | "clone" | "ls-remote" | "send-email" => true,
        "submodule" => matches!(
            rest.iter().find(|word| !word.starts_with('-')),
            Some(&("add" | "update"))
        ),
        _ => false,
    }
}

fn packages(command: &SimpleCommand) -> Option<PackageNeeds> {
    let arguments = command.words.get(1..).unwrap_or_default();
    packages::needs(command.program.as_deref()?, arguments)
}

#[cfg(test)]
#[path = "needs_tests.rs"]
mod tests;
