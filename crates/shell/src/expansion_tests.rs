//! Expansions in which bash follows other rules than the syntax tree, and texts that it evaluates later.

use super::read_tests::all;
use super::{Blocklist, analyse};

/// SAFE-2: a substitution anywhere inside `${…}` is seen, or the command is refused. Quotes hide nothing there.
#[test]
fn substitutions_in_parameters_are_seen_or_refused() {
    all(
        "x",
        &[
            "echo \"${x:-'$(rm -rf src)'}\"",
            "echo ${x:-`rm a`}",
            "echo \"${x:-`rm a`}\"",
            "echo ${x:+`rm a`}",
            "echo ${x#$(rm a)}",
            "echo ${x%%$(rm a)}",
            "echo ${x//`rm a`}",
            "echo ${x^$(rm a)}",
            "echo ${x:->(rm a)}",
            "echo ${x:-${y:-`rm a`}}",
            "echo \"${x:-<(echo '$(rm a)')}\"",
            "echo \"${x:-$'\\x24(rm a)'}\"",
            "echo \"${x:-\"$\"$(cat <<'E'\n`rm a`\nE\n)\"\"}\"",
            "echo \"${x@\\\nP}\"",
            "echo ${b['$(rm a)']}",
            "echo \"a\\\"$${#'\"'$_`rm a`'\"'}\"",
            "cat <<E\n${x:-it's $(rm a) it's}\nE",
            "cat <<E\n$((1+'$(rm a)'))\nE",
            "echo \"${x:-'}\"; rm a; echo '}\"",
            "echo `echo '`; rm a; echo '`'",
        ],
    );
    all(
        "r",
        &[
            "echo \"${x:-a b}\" ${x:-\"a b\"} ${x%.*} ${x##*/} ${x//a/b} ${x^^} ${#x}",
            "echo \"${a} ${b}  ${c}\" \"a$$\"",
            "echo \"${x//$'\\n'/ }\" ${x//\\\"/} ${x%\\}}",
            "cat <<E\n${x:-a} it's \"$y\" $z\nE",
            "[[ $x =~ ^[0-9]+$ ]] && [[ $x =~ ^\"$y\"(.*)$ ]] && [[ $x =~ ${y} ]]",
            "case $x in *\"a\"*|'b') ls;; esac",
        ],
    );
    all("w", &["echo $((x + 1)) ${x:1:2}", "cat <<E\n$((1 + 2))\nE"]);
}

/// SAFE-2: a dollar sign is an expansion also if its bracket is on the next line, and a pattern may run a command.
#[test]
fn split_expansions_and_patterns_are_refused() {
    all(
        "x",
        &[
            "echo \"$\\\n(rm a)\"",
            "echo $\\\n(rm a)",
            "cat <<E\n$\\\n(rm a)\nE",
            "let \"x=$\\\n(rm a)\"",
            "a=$\nrm a\nx ls",
            "[[ a =~ (`rm a`) ]]",
            "[[ a =~ <(rm a) ]]",
            "case a in `rm a`) ls;; esac",
        ],
    );
}

/// SAFE-2: bash expands the file of `>&` twice, so that quotes do not protect its name.
#[test]
fn files_after_descriptors_are_expanded_twice() {
    all(
        "x",
        &[
            "echo hi >&'a$(rm a)'",
            "echo hi >&'a`rm a`'",
            "echo hi >&'<(rm a)'",
            "x='a$(rm a)'; echo hi >&\"$x\"",
            "echo hi >&$x",
            "echo hi >&\"\"\\${a/\"$(cat f)\"/b}",
        ],
    );
    all("r", &["ls >&2", "ls 2>&1", "ls 3>&1- 4<&0-", "ls 2>&-"]);
    all("w", &["ls >& out", "ls >&out", "ls >&2-3"]);
}

/// SAFE-2: an index is evaluated wherever it stands, so a text that looks like code is refused beside one.
#[test]
fn indexes_are_evaluated() {
    all(
        "x",
        &[
            "y='b[$(rm a)]'; a[y]=1",
            "y='b[$(rm a)]'; a=([y]=1)",
            "y='b[$(rm a)]'; declare a[y]=1",
            "y='b['; y+='$(rm a)]'; a[y]=1",
            "a['$(rm a)']=1",
            "a=(['$(rm a)']=1)",
            "a=(['$(rm a)'$]=1)",
            "declare 'x[$(rm a)]=1'",
            "typeset 'x[$(rm a)]=1'",
            "f() { local 'x[$(rm a)]=1'; }; f",
            "readonly 'x[$(rm a)]=1'",
            "export 'x[$(rm a)]=1'",
            "read 'x[$(rm a)]' < f",
            "printf -v 'x[$(rm a)]' y",
            "unset 'x[$(rm a)]'",
            "test -v 'x[$(rm a)]'",
            "[ '-v' 'x[$(rm a)]' ]",
            "o=-v; test $o 'x[$(rm a)]'",
            "[ -v \"a[\"'$(rm a)]' ]",
            "for y in \"b[\\$(rm a)]\"; do ((y)); done",
            "for y in 'b[''$(rm a)]'; do ((y)); done",
            "q=('b[''$(rm a)]'); ((q))",
            "echo $[1+'$(rm a)']",
            "declare -a q='($(rm a))'",
            "readonly -a q='(<(rm a))'",
            "a=(1); declare a='($(rm a))'",
            "OPTIND='a[$(rm a)]'",
            "RANDOM='a[$(rm a)]'",
        ],
    );
    all(
        "w",
        &[
            "read -r y < f; a[y]=1",
            "read -r y < f; a=([y]=1)",
            "read -r y < f; RANDOM=$y",
        ],
    );
    all(
        "r",
        &[
            "a[0]=1",
            "a=([0]=b [12]=c)",
            "a=(b \"$c\" src/[a-z]*)",
            "grep '[a-z]$' f; [ $x ]",
        ],
    );
}

/// SAFE-5: a variable that is no longer passed on counts as changed.
#[test]
fn variables_are_taken_away() {
    all(
        "wa",
        &[
            "export -n GIT_CONFIG_COUNT; git status",
            "declare +x GIT_CONFIG_COUNT; git status",
            "typeset +x GIT_CONFIG_COUNT; git status",
            "f() { local GIT_CONFIG_COUNT; git status; }; f",
        ],
    );
    all("r", &["declare -p PATH", "export -p"]);
    all("w", &["f() { local x y; }; f", "OPTIND=1"]);
}

/// SAFE-5: words from elsewhere may name a variable or a subcommand.
#[test]
fn more_words_are_not_reads() {
    all(
        "a",
        &[
            "echo a | xargs --process-slot-var=PATH ls",
            "echo . push | xargs git -C",
        ],
    );
    all(
        "ax",
        &["git -C $x status", "echo a | xargs --process-slot-var=$x ls"],
    );
    all("r", &["echo a | xargs --process-slot-var=slot ls"]);
}

/// SAFE-6: `git-push` is `git push`, wherever it is kept.
#[test]
fn programs_of_git_are_its_subcommands() {
    for command in [
        "git-push origin main",
        "/usr/local/libexec/git-core/git-push origin main",
        "env git-push origin main",
    ] {
        let pieces = analyse(command, &Blocklist::default()).pieces();
        assert!(
            pieces.iter().any(|piece| piece == "git push origin main"),
            "{command}: {pieces:?}"
        );
    }
    all(
        "a",
        &[
            "git-reset --hard",
            "/usr/lib/git-core/git-clean -fd",
            "./git-push",
        ],
    );
    all("w", &["git-status"]);
}

/// SAFE-2: folders in front of the program path are judged as bash reads them.
#[test]
fn program_paths_that_shadow_programs_ask() {
    all(
        "a",
        &[
            "PATH='$HOME/.cargo/bin:$PATH' make",
            "PATH=\\$HOME/.cargo/bin:$PATH make",
            "PATH=\"\\$HOME/.cargo/bin:$PATH\" make",
            "env PATH='$HOME/.cargo/bin' make",
            "export PATH='$HOME/.cargo/bin:$PATH'",
            "PATH=$HOME/.cargo/bin:. make",
            "PATH=:$PATH make",
            "PATH=$PWD/bin:$PATH make",
            "export PATH=\"$x:$PATH\"",
            "PATH=\"$HOME/.cargo/bin\"x:$PATH make",
            "HOME=$PWD; PATH=$HOME/.cargo/bin:$PATH make",
            "CARGO_TARGET_DIR=/tmp/../etc cargo build",
        ],
    );
}
