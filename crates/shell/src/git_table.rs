//! Subcommands of `git` and their effects.

use super::options::Grammar;

/// A subcommand that only reads when it is given nothing but these options and operands.
pub(super) struct GitRead {
    pub(super) name: &'static str,
    /// Options in groups.
    pub(super) options: &'static [Grammar],
    pub(super) operands: GitOperands,
}

/// Operands with which a subcommand only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitOperands {
    Any,
    Most(usize),
    /// Operands are patterns only with `--list`; without, they are names to create.
    Listed,
    /// The first operand is one of these, or there is none if the list begins with an empty name.
    Verb(&'static [&'static str]),
    /// At most one operand without an option that reads, which is the name of a setting; a second one is a
    /// new value.
    Setting,
}

use GitOperands::{Any, Listed, Most, Setting, Verb};

const fn read(name: &'static str, options: &'static [Grammar], operands: GitOperands) -> GitRead {
    GitRead {
        name,
        options,
        operands,
    }
}

/// Options of commands that show differences.
const DIFF: Grammar = Grammar(
    "-p -u -s -U: -b -w -a -R -z -B? -M? -C? -D -G: -S: -l: -O: -W -1 -2 -3 -0 --abbrev? --anchored: --base --binary --break-rewrites? --cc \
     --check --color? --color-moved? --color-moved-ws: --color-words? --combined-all-paths --compact-summary \
     --cumulative --default-prefix --diff-algorithm: --diff-filter: --diff-merges: --dirstat? --dirstat-by-file? \
     --dst-prefix: --exit-code --find-copies? --find-copies-harder --find-object: --find-renames? --full-index \
     --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-matching-lines: \
     --ignore-space-at-eol --ignore-space-change --ignore-submodules? --indent-heuristic --inter-hunk-context: \
     --irreversible-delete --ita-invisible-in-index --line-prefix: --max-depth: --merge-base --minimal --name-only \
     --name-status --no-color --no-color-moved --no-diff-merges --no-ext-diff --no-indent-heuristic --no-patch \
     --no-prefix --no-relative --no-rename-empty --no-renames --no-textconv --numstat --ours --output-indicator-new: \
     --patch --patch-with-raw --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? \
     --rename-empty --rotate-to: --shortstat --skip-to: --src-prefix: --stat? --stat-count: --stat-graph-width: \
     --stat-name-width: --stat-width: --submodule? --summary --text --theirs --unified: --word-diff? --word-diff-regex: \
     --ws-error-highlight:",
);
/// Options of commands that walk the history.
const LOG: Grammar = Grammar(
    "-# -c -g -h -i -m -n: -q -t -E -F -P -L: --abbrev-commit --after: --all --all-match --ancestry-path? --author: \
     --author-date-order --basic-regexp --before: --bisect --boundary --branches? --cherry --cherry-mark --cherry-pick \
     --children --clear-decorations --commit-header --committer: --count --date: --date-order --decorate? \
     --decorate-refs: --decorate-refs-exclude: --dense --disk-usage? --do-walk --encoding: --end-of-options \
     --exclude: --exclude-first-parent-only --exclude-hidden: --expand-tabs? --extended-regexp --first-parent \
     --fixed-strings --follow --format: --full-diff --full-history --glob: --graph --grep: --grep-reflog: --header \
     --ignore-missing --in-commit-order --invert-grep --left-only --left-right --log-size --mailmap --max-count: \
     --max-count-oldest: --max-parents: --merge --merges --min-parents: --no-abbrev-commit --no-commit-header --no-decorate --no-expand-tabs \
     --no-graph --no-mailmap --no-max-parents --no-merges --no-min-parents --no-notes --no-object-names --no-standard-notes \
     --no-use-mailmap --no-walk? --not --notes? --object-names --objects --objects-edge --oneline --parents --perl-regexp \
     --pretty? --reflog --regexp-ignore-case --relative-date --remotes? --remove-empty --reverse --right-only \
     --show-linear-break? --show-notes? --show-pulls --simplify-by-decoration --simplify-merges --since: --since-as-filter: \
     --single-worktree --skip: --source --sparse --standard-notes --tags? --timestamp --topo-order --until: --use-mailmap \
     --walk-reflogs",
);
/// Options of commands that list references.
const REFS: Grammar = Grammar(
    "-i --color? --column? --contains: --count: --exclude: --format: --ignore-case --include-root-refs --merged: \
     --no-column --no-contains: --no-merged: --omit-empty --points-at: --sort: --start-after:",
);
const NONE: Grammar = Grammar("");

/// Subcommands that only read.
pub(super) const READ: &[GitRead] = &[
    read(
        "status",
        &[Grammar(
            "-s -b -v -u? -z --ahead-behind --branch --column? --find-renames? --ignore-submodules? --ignored? --long \
             --no-ahead-behind --no-column --no-renames --null --porcelain? --renames --short --show-stash \
             --untracked-files? --verbose",
        )],
        Any,
    ),
    read("log", &[LOG, DIFF], Any),
    read("whatchanged", &[LOG, DIFF], Any),
    read("show", &[LOG, DIFF], Any),
    read("diff", &[DIFF, Grammar("--cached --staged --no-index -q")], Any),
    read(
        "diff-tree",
        &[
            DIFF,
            Grammar("-r -t -m -c -v -s --root --stdin --no-commit-id --always --pretty? --format:"),
        ],
        Any,
    ),
    read("diff-index", &[DIFF, Grammar("-m -q -r --cached")], Any),
    read("diff-files", &[DIFF, Grammar("-c -m -q -r --cc")], Any),
    read(
        "range-diff",
        &[
            DIFF,
            Grammar("--creation-factor: --left-only --no-dual-color --no-notes --notes? --right-only"),
        ],
        Any,
    ),
    read(
        "rev-list",
        &[
            LOG,
            Grammar("--abbrev? --quiet --use-bitmap-index --filter: --missing:"),
        ],
        Any,
    ),
    read(
        "shortlog",
        &[
            LOG,
            Grammar("-s -e -w? --summary --numbered --email --group: --no-merges"),
        ],
        Any,
    ),
    read(
        "rev-parse",
        &[Grammar(
            "-q --abbrev-ref? --absolute-git-dir --after: --all --before: --branches? --default: --disambiguate: \
             --end-of-options --exclude: --flags --git-common-dir --git-dir --git-path: --glob: --is-bare-repository \
             --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --local-env-vars --no-flags --no-revs --not \
             --path-format: --prefix: --quiet --remotes? --revs-only --shared-index-path --short? --show-cdup \
             --show-object-format? --show-prefix --show-ref-format --show-superproject-working-tree --show-toplevel \
             --since: --sq --symbolic --symbolic-full-name --tags? --until: --verify",
        )],
        Any,
    ),
    read(
        "ls-files",
        &[Grammar(
            "-c -d -f -i -k -m -o -s -t -u -v -x: -X: -z --abbrev? --cached --debug --deduplicate --deleted --directory \
             --empty-directory --eol --error-unmatch --exclude: --exclude-from: --exclude-per-directory: --exclude-standard \
             --format: --full-name --ignored --killed --modified --no-empty-directory --others --recurse-submodules \
             --resolve-undo --sparse --stage --unmerged --with-tree:",
        )],
        Any,
    ),
    read(
        "ls-tree",
        &[Grammar(
            "-d -l -r -t -z --abbrev? --format: --full-name --full-tree --long --name-only --name-status --object-only",
        )],
        Any,
    ),
    read(
        "blame",
        &[Grammar(
            "-b -c -C? -e -f -h -k -l -L: -M? -n -p -s -S: -t -w --abbrev: --color-by-age --color-lines --date: --encoding: \
             --first-parent --ignore-rev: --incremental --line-porcelain --minimal --porcelain --progress --no-progress \
             --reverse --root --score-debug --show-email --show-name --show-number --show-stats --since:",
        )],
        Any,
    ),
    read(
        "describe",
        &[Grammar(
            "--abbrev? --all --always --candidates: --contains --debug --exact-match --exclude: \
             --first-parent --long --match: --tags",
        )],
        Any,
    ),
    read(
        "grep",
        &[Grammar(
            "-a -A: -b -B: -c -C: -e: -E -f: -F -G -h -H -i -I -l -L -m: -n -o -p -P -q -r -v -w -W -z -# --after-context: \
             --all-match --and --basic-regexp --before-context: --break --cached --color? --column --context: --count \
             --exclude-standard --extended-regexp --files-with-matches --files-without-match --fixed-strings \
             --full-name --function-context --heading --ignore-case --invert-match --line-number --max-count: --max-depth: \
             --name-only --no-color --no-exclude-standard --no-index --no-textconv --not --null --only-matching --or \
             --perl-regexp --quiet --recursive --no-recursive --show-function --text --threads: --untracked --word-regexp",
        )],
        Any,
    ),
    read(
        "cat-file",
        &[Grammar(
            "-e -p -s -t --allow-unknown-type --batch? --batch-all-objects --batch-check? --buffer \
        --follow-symlinks --unordered",
        )],
        Any,
    ),
    read(
        "merge-base",
        &[Grammar(
            "-a --all --fork-point --independent --is-ancestor --octopus",
        )],
        Any,
    ),
    read(
        "name-rev",
        &[Grammar(
            "--all --always --annotate-stdin --exclude: --name-only --no-undefined --refs: --tags",
        )],
        Any,
    ),
    read(
        "for-each-ref",
        &[REFS, Grammar("-p -s --perl --python --shell --stdin --tcl")],
        Any,
    ),
    read(
        "show-ref",
        &[Grammar(
            "-d -h -q -s --abbrev? --branches --dereference --exclude-existing? --exists --hash? --head \
        --heads --quiet --tags --verify",
        )],
        Any,
    ),
    read(
        "show-branch",
        &[Grammar(
            "-a -g? -r --all --color? --current --date-order --independent --list --merge-base --more? \
        --no-color --no-name --reflog? --remotes --sha1-name --sparse --topics --topo-order",
        )],
        Any,
    ),
    read(
        "count-objects",
        &[Grammar("-v -H --human-readable --verbose")],
        Any,
    ),
    read(
        "check-ignore",
        &[Grammar(
            "-n -q -v -z --no-index --non-matching --quiet --stdin --verbose",
        )],
        Any,
    ),
    read(
        "check-attr",
        &[Grammar("-a -z --all --cached --source: --stdin")],
        Any,
    ),
    read("check-mailmap", &[Grammar("--stdin")], Any),
    read(
        "check-ref-format",
        &[Grammar("--allow-onelevel --branch --normalize --refspec-pattern")],
        Any,
    ),
    read("cherry", &[Grammar("-v --abbrev? --verbose")], Any),
    read("patch-id", &[Grammar("--stable --unstable --verbatim")], Any),
    read("var", &[Grammar("-l")], Any),
    read("version", &[Grammar("--build-options")], Any),
    read(
        "help",
        &[Grammar(
            "-a -c -g --aliases --all --config --external-commands --guides --no-aliases --user-interfaces -v --verbose",
        )],
        Most(0),
    ),
    read(
        "branch",
        &[
            REFS,
            Grammar(
                "-a -l -r -v -q --abbrev: --all --list --no-abbrev --quiet --remotes --show-current --verbose",
            ),
        ],
        Listed,
    ),
    read("tag", &[REFS, Grammar("-l -n? --list")], Listed),
    read(
        "stash",
        &[LOG, DIFF, Grammar("--include-untracked --only-untracked")],
        Verb(&["list", "show"]),
    ),
    read(
        "worktree",
        &[Grammar("-v -z --porcelain --verbose")],
        Verb(&["list"]),
    ),
    read(
        "remote",
        &[Grammar("-v --all --push --verbose")],
        Verb(&["", "get-url"]),
    ),
    read(
        "notes",
        &[Grammar("--ref:")],
        Verb(&["", "list", "show", "get-ref"]),
    ),
    read("reflog", &[LOG, DIFF], Verb(&["", "show", "exists", "list"])),
    read("sparse-checkout", &[NONE], Verb(&["list"])),
    read(
        "bundle",
        &[Grammar("-q --quiet")],
        Verb(&["verify", "list-heads"]),
    ),
    read(
        "symbolic-ref",
        &[Grammar("-q --no-recurse --quiet --recurse --short")],
        Most(1),
    ),
    read(
        "config",
        &[Grammar(
            "-f: -l -z --all --blob: --bool --bool-or-int --default: --expiry-date --file: --fixed-value --get --get-all \
             --get-regexp --get-urlmatch --global --includes --int --list --local --name-only --no-includes --null --path \
             --regexp --show-names --show-origin --show-scope --system --type: --url: --value: --worktree",
        )],
        Setting,
    ),
];

/// Subcommands that contact other machines, rewrite history, or run the commands they are given.
pub(super) const ADMIN: &[&str] = &[
    "push",
    "filter-branch",
    "filter-repo",
    "bisect",
    "submodule",
    "daemon",
    "send-email",
    "difftool",
    "mergetool",
    "credential",
    "gc",
    "prune",
    "reflog",
    "update-ref",
    "remote-https",
    "remote-ext",
    "upload-pack",
    "receive-pack",
    "shell",
    "instaweb",
    "web--browse",
    "maintenance",
    "hook",
    "config",
    "clone",
    "fetch",
    "pull",
    "ls-remote",
    "clean",
    "rm",
    "for-each-repo",
    "p4",
    "svn",
    "cvsimport",
    "archimport",
    "imap-send",
    "request-pull",
    "subtree",
];

/// Subcommands that change the repository or its files.
pub(super) const WRITE: &[&str] = &[
    "add",
    "commit",
    "checkout",
    "switch",
    "restore",
    "reset",
    "merge",
    "rebase",
    "cherry-pick",
    "revert",
    "mv",
    "init",
    "apply",
    "am",
    "format-patch",
    "archive",
    "bundle",
    "sparse-checkout",
    "rerere",
    "symbolic-ref",
    "update-index",
    "hash-object",
    "write-tree",
    "commit-tree",
    "read-tree",
    "mktag",
    "mktree",
    "stage",
    "fsck",
    "repack",
    "pack-refs",
    "branch",
    "tag",
    "stash",
    "worktree",
    "remote",
    "notes",
    "verify-commit",
    "verify-tag",
    "verify-pack",
    "help",
    "annotate",
    "merge-tree",
    "merge-file",
    "replace",
    "interpret-trailers",
    "stripspace",
    "mailinfo",
    "mailsplit",
    "index-pack",
    "unpack-objects",
    "pack-objects",
    "prune-packed",
    "multi-pack-index",
    "commit-graph",
    "update-server-info",
    "fast-export",
    "fast-import",
    "column",
    "diagnose",
    "bugreport",
    "checkout-index",
    "merge-index",
    "refs",
    "backfill",
];

/// Options that run a program, wherever they appear.
pub(super) const RUNNING: &[&str] = &[
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--open-files-in-pager",
    "--ext-diff",
    "--textconv",
    "--config",
    "--config-env",
    "--exec-path",
    "--paginate",
    "--template",
    "--editor",
    "--sequence-editor",
    "--extcmd",
    "--tool",
    "--tree-filter",
    "--index-filter",
    "--msg-filter",
    "--env-filter",
    "--commit-filter",
    "--tag-name-filter",
    "--parent-filter",
    "--filters",
];
