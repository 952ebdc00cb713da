//! Commands of git that change its settings, which the sandbox protects.

use super::{Analysis, SimpleCommand, Word};

/// Global options that take a value of their own.
const WITH_VALUE: &[&str] = &[
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
    "--exec-path",
    "--super-prefix",
    "--attr-source",
];

/// Subcommands that always change settings.
const ALWAYS: &[&str] = &[
    "init",
    "init-db",
    "clone",
    "lfs",
    "flow",
    "filter-repo",
    "maintenance",
];

/// Words with which `git config` only prints.
const PRINTING: &[&str] = &[
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--list",
    "-l",
    "get",
    "list",
];

impl Analysis {
    /// Returns true if a command is one of git that changes the settings of a repository, and cannot work in a
    /// sandbox that protects them. The sandbox does not depend on this: it only decides what is asked first.
    pub fn changes_git_settings(&self) -> bool {
        self.commands.iter().any(changes)
    }

    /// Returns true if a command is one of git that changes the settings of the user or the machine, which are outside
    /// any workspace.
    pub fn changes_users_git_settings(&self) -> bool {
        self.commands
            .iter()
            .any(|command| changes(command) && names_users_settings(command))
    }
}

fn names_users_settings(command: &SimpleCommand) -> bool {
    let words: Vec<&str> = command.words.iter().filter_map(Word::value).collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    has(&["--global", "--system"])
        || has(&["maintenance"])
        || has(&["lfs"]) && has(&["install", "uninstall"]) && !has(&["--local"])
}

/// Returns the subcommand of git that a command runs, and the words after it.
pub(super) fn subcommand(command: &SimpleCommand) -> Option<(&str, Vec<&str>)> {
    if command.program.as_deref() != Some("git") {
        return None;
    }
    let mut words = command.words.iter().skip(1).filter_map(Word::value);
    loop {
        match words.next()? {
            option if WITH_VALUE.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            subcommand => return Some((subcommand, words.collect())),
        }
    }
}

fn changes(command: &SimpleCommand) -> bool {
    let Some((subcommand, rest)) = subcommand(command) else {
        return false;
    };
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    let first = rest
        .iter()
        .find(|word| !word.starts_with('-'))
        .copied()
        .unwrap_or_default();
    match subcommand {
        _ if ALWAYS.contains(&subcommand) => true,
        "config" => {
            let is_query = rest.len() == 1 && first.contains('.');
            !has(PRINTING) && !is_query
        }
        "remote" => matches!(
            first,
            "add" | "rename" | "remove" | "rm" | "set-url" | "set-branches" | "set-head" | "update"
        ),
        "submodule" => !matches!(first, "" | "status" | "summary"),
        "sparse-checkout" => !matches!(first, "" | "list" | "check-rules"),
        "branch" => {
            has(&[
                "-m",
                "-M",
                "--move",
                "-c",
                "-C",
                "--copy",
                "--unset-upstream",
                "--edit-description",
                "-t",
                "--track",
            ]) || rest
                .iter()
                .any(|word| word.starts_with("-u") || word.starts_with("--set-upstream"))
                || tracks(&rest)
        }
        "checkout" | "switch" => has(&["-t", "--track"]) || has(&["-b", "-B", "-c", "-C"]) && tracks(&rest),
        "push" | "pull" | "fetch" => has(&["-u", "--set-upstream"]),
        _ => false,
    }
}

/// Returns true if a new branch starts at one of another repository, so that git records where it came from.
fn tracks(rest: &[&str]) -> bool {
    let operands: Vec<&&str> = rest.iter().filter(|word| !word.starts_with('-')).collect();
    let start = operands.get(1).map_or("", |start| start);
    let is_remote = ["origin/", "upstream/", "remotes/", "refs/remotes/"];
    is_remote.iter().any(|remote| start.starts_with(remote)) && !rest.contains(&"--no-track")
}

#[cfg(test)]
mod tests {
    use super::super::{Blocklist, analyse};

    /// SAFE-10: a command that changes the settings of one repository gets no access to those of the user.
    #[test]
    fn settings_of_the_user_are_known() {
        let changes = |command: &str| analyse(command, &Blocklist::default()).changes_users_git_settings();
        for command in [
            "git config --global user.name Ann",
            "git config --system core.editor vi",
            "git lfs install",
            "git maintenance start",
        ] {
            assert!(changes(command), "{command}");
        }
        for command in [
            "git config user.name Ann",
            "git remote add origin https://example.org/x",
            "git lfs track '*.bin'",
            "git log --global",
        ] {
            assert!(!changes(command), "{command}");
        }
    }

    /// SAFE-10: the commands that change git's settings are known before they run; everyday ones are not among them.
    #[test]
    fn commands_that_change_settings_are_known() {
        let changes = |command: &str| analyse(command, &Blocklist::default()).changes_git_settings();
        for command in [
            "git init",
            "git clone https://example.org/x .",
            "git config user.name Ann",
            "git -C sub config core.hooksPath x",
            "git remote add origin https://example.org/x",
            "git submodule add https://example.org/x",
            "git branch -u origin/main",
            "git branch -m old new",
            "git checkout --track origin/x",
            "git checkout -b x origin/x",
            "git switch -c x origin/x",
            "git push -u origin main",
            "cd sub && env A=b git init",
            "git sparse-checkout set src",
        ] {
            assert!(changes(command), "{command}");
        }
        for command in [
            "git commit -m 'git config'",
            "git add -A && git commit -m x",
            "git checkout -b feature",
            "git switch -c feature main",
            "git checkout -- a/b",
            "git config --get user.name",
            "git config user.name",
            "git config --list",
            "git remote -v",
            "git branch feature",
            "git branch -d old",
            "git push",
            "git stash",
            "git submodule status",
            "git log origin/main",
        ] {
            assert!(!changes(command), "{command}");
        }
    }
}
