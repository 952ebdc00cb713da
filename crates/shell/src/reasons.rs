//! Plain reasons why a command needs approval, for the person who is asked.

use super::environment::{self, Effect};
use super::word::Word;
use super::{Analysis, SimpleCommand, launchers, wrappers};
use windlass_core::tool::Category;

/// Programs and the reason to ask about them.
const PROGRAMS: &[(&str, &str)] = &[
    ("rm unlink shred", "it deletes files"),
    (
        "dd wipefs mkswap fdisk sfdisk parted gdisk cfdisk debugfs tune2fs cryptsetup mdadm",
        "it overwrites files or disks",
    ),
    ("kill pkill killall skill xkill fuser", "it ends other programs"),
    (
        "shutdown reboot halt poweroff init telinit",
        "it stops the machine",
    ),
    (
        "sudo doas su pkexec runuser setpriv chroot unshare nsenter",
        "it runs a command with other privileges",
    ),
    (
        "chown chgrp setcap setfacl chattr",
        "it changes who may use files",
    ),
    (
        "docker podman docker-compose nerdctl lxc vagrant virsh",
        "it works with containers or machines, which the sandbox does not confine",
    ),
    ("kubectl helm", "it works on a cluster"),
    (
        "terraform ansible ansible-playbook aws gcloud az",
        "it works on remote systems",
    ),
    (
        "systemctl service initctl loginctl crontab at batch",
        "it changes the services or jobs of this machine",
    ),
    ("journalctl", "it reads or changes the system's log"),
    (
        "mount umount losetup swapon swapoff modprobe insmod rmmod sysctl",
        "it changes the running system",
    ),
    (
        "iptables ip6tables nft ufw firewall-cmd ip ifconfig route nmcli",
        "it changes the network of this machine",
    ),
    (
        "useradd userdel usermod groupadd groupdel passwd chpasswd visudo chsh chfn",
        "it changes the accounts of this machine",
    ),
    (
        "ssh-keygen ssh-add ssh-copy-id gpg",
        "it uses or changes your keys",
    ),
    ("gh glab", "it acts on your account on a server"),
    ("mysql psql mongo redis-cli", "it works on a database"),
    ("open xdg-open osascript", "it opens another program"),
    ("mail sendmail", "it sends mail"),
    (
        "apt apt-get aptitude dpkg dnf yum rpm zypper pacman apk brew port snap flatpak nix-env",
        "it installs or removes software on this machine",
    ),
];

/// Subcommands of `git` and the reason to ask about them.
const GIT: &[(&str, &str)] = &[
    ("push", "it changes the remote repository"),
    (
        "fetch pull clone ls-remote submodule",
        "it contacts a remote repository",
    ),
    ("clean", "it deletes untracked files"),
    ("reset", "it discards uncommitted changes"),
    (
        "checkout switch restore read-tree",
        "it discards uncommitted changes",
    ),
    ("rm", "it deletes files"),
    ("filter-branch filter-repo update-ref", "it rewrites the history"),
    ("gc prune reflog", "it removes what could restore lost commits"),
    (
        "branch tag stash worktree remote notes",
        "it removes or replaces branches, tags, stashes or remotes",
    ),
    ("bisect difftool mergetool hook", "it runs other programs"),
    ("send-email", "it sends mail"),
];

impl Analysis {
    /// Returns the reasons to ask about a command line that needs approval, each a clause with "it" as its
    /// subject. Empty if it needs none, and where the access that it needs is the reason: the network, files outside, or
    /// git's settings.
    pub fn reasons(&self) -> Vec<String> {
        if self.category != Category::Admin {
            return Vec::new();
        }
        let mut reasons: Vec<String> = Vec::new();
        for command in &self.commands {
            let found = reason(command).map(str::to_owned);
            for reason in found.into_iter().chain(variables(command)) {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        if reasons.is_empty() && self.leaves {
            reasons.push("it works in another folder than this one".to_owned());
        }
        let needs = self.needs();
        let is_told = needs.network || needs.outside || self.refusal.is_some() || self.changes_git_settings();
        if reasons.is_empty() && !is_told {
            reasons.push("it may run other programs, or do more than work in this folder".to_owned());
        }
        reasons
    }
}

fn reason(command: &SimpleCommand) -> Option<&'static str> {
    let program = command.program.as_deref()?;
    let arguments = command.words.get(1..).unwrap_or_default();
    match program {
        "git" => git(arguments),
        "find" | "gfind" | "bfs" if has(arguments, "-delete") => Some("it deletes files"),
        "chmod" => Some("it changes who may use files"),
        "rg" | "fd" | "fdfind" | "sort" | "ag" | "bat" | "less" | "more" => {
            Some("its options can run other programs")
        }
        _ if program.starts_with("mkfs") => Some("it overwrites files or disks"),
        _ if launchers::is_scripted(program) => Some("its commands can run other programs"),
        _ => listed(PROGRAMS, program).or_else(|| {
            wrappers::is_launcher(program).then_some("it runs another program, which cannot be checked")
        }),
    }
}

/// Returns the reasons for the variables that a command sets.
fn variables(command: &SimpleCommand) -> Vec<String> {
    let before = command.assignments.iter().map(String::as_str);
    let is_declared = matches!(
        command.program.as_deref(),
        Some("export" | "declare" | "typeset" | "readonly" | "local")
    );
    let words = command.words.iter().skip(1).map(Word::prefix);
    let declared = words.filter(|word| is_declared && word.contains('='));
    let all = before.chain(declared);
    let asks = all.filter(|assignment| environment::judge(assignment) == Effect::Needs(Category::Admin));
    asks.map(|assignment| {
        let name = assignment.split_once('=').map_or(assignment, |(name, _)| name);
        format!("it sets {name}, which can change what programs run")
    })
    .collect()
}

fn git(arguments: &[Word]) -> Option<&'static str> {
    let words = arguments.iter().filter_map(Word::value);
    let operands: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    match operands.as_slice() {
        ["config", ..] => return None,
        ["remote", "add" | "set-url", ..] => return Some("it changes which servers git contacts"),
        ["worktree", "add", ..] => return Some("it creates files in another folder"),
        _ => {}
    }
    let subcommand = operands.iter().find_map(|word| listed(GIT, word));
    subcommand.or(Some("git may run other programs for it"))
}

fn has(arguments: &[Word], word: &str) -> bool {
    arguments.iter().any(|argument| argument.value() == Some(word))
}

fn listed(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let row = table
        .iter()
        .find(|(names, _)| names.split_whitespace().any(|name| name == word));
    row.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::super::{Blocklist, analyse};

    /// SAFE-5: whoever is asked about a command is told why in plain words.
    #[test]
    fn every_question_has_a_reason() {
        for (command, expected) in [
            ("git reset --hard", "it discards uncommitted changes"),
            ("git -C . reset --hard HEAD~1", "it discards uncommitted changes"),
            ("git clean -fdx", "it deletes untracked files"),
            ("docker run x", "it works with containers"),
            ("find . -name x -delete", "it deletes files"),
            ("kill -9 1", "it ends other programs"),
            ("git branch -D x", "it removes or replaces branches"),
            ("systemctl restart x", "it changes the services"),
            ("cd /etc && touch x", "it works in another folder"),
            ("git checkout -f", "it discards uncommitted changes"),
            ("git checkout .", "it discards uncommitted changes"),
            ("git checkout -- a b", "it discards uncommitted changes"),
            ("git checkout HEAD~2 src", "it discards uncommitted changes"),
            ("git checkout src/lib.rs", "it discards uncommitted changes"),
            ("git checkout '*.rs'", "it discards uncommitted changes"),
            ("git checkout -B main", "it discards uncommitted changes"),
            ("git checkout --theirs a", "it discards uncommitted changes"),
            ("git restore .", "it discards uncommitted changes"),
            ("git restore -SW a", "it discards uncommitted changes"),
            ("git restore --source HEAD~1 a", "it discards uncommitted changes"),
            ("git switch -C main", "it discards uncommitted changes"),
            ("git read-tree -u --reset HEAD", "it discards uncommitted changes"),
            ("git stash drop", "it removes or replaces branches"),
            ("git stash clear", "it removes or replaces branches"),
            ("git tag -d v1", "it removes or replaces branches"),
            ("git remote rm origin", "it removes or replaces branches"),
            ("git remote add x y", "it changes which servers"),
            ("git worktree add ../x", "it creates files in another folder"),
            ("dc -e 1", "its commands can run other programs"),
            ("vim x", "its commands can run other programs"),
            ("tmux new", "it runs another program"),
            ("export PATH=\"$PWD/bin:$PATH\"; cargo test", "it sets PATH"),
            ("PATH=$PWD/bin:$PATH make", "it sets PATH"),
            ("LD_PRELOAD=./x.so ls", "it sets LD_PRELOAD"),
            ("update-alternatives --config x", "it may run other programs"),
        ] {
            let reasons = analyse(command, &Blocklist::new::<&str>([])).reasons();
            assert!(
                reasons.iter().any(|reason| reason.starts_with(expected)),
                "{command}: {reasons:?}"
            );
        }
        assert_eq!(analyse("git status", &Blocklist::default()).reasons(), [""; 0]);
        assert_eq!(analyse("git reset x", &Blocklist::default()).reasons(), [""; 0]);
    }
}
