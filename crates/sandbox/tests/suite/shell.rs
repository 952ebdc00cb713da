//! The shell analyzer against arbitrary text, and against bash itself.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use tempfile::TempDir;
use windlass_sandbox::{Sandbox, SandboxPolicy};
use windlass_shell::{Blocklist, analyse};

use crate::sandbox::{helper, run_with};

/// Names of programs in generated commands. Each of them only records that it ran.
const STUBS: &[&str] = &[
    "ls", "cat", "head", "grep", "rm", "dd", "id", "git", "cp", "mv", "tool", "sort", "wc", "tee", "x", "b",
    "rmdir", "curl",
];
/// Real programs that run others.
const REAL: &[&str] = &[
    "xargs", "timeout", "nice", "nohup", "setsid", "stdbuf", "find", "sh", "bash", "time", "flock", "ionice",
];
const BLOCKED: &[&str] = &["rm", "dd"];

/// Places of a substitution, marked `@`, where bash follows other rules of quoting than elsewhere, or evaluates a text
/// later.
const PLACES: &[&str] = &[
    "echo ${y:-@}",
    "echo \"${y:-@}\"",
    "echo \"${y:-'@'}\"",
    "echo ${y:-'@'}",
    "echo ${y:-\"@\"} ${v#@}",
    "echo ${v//@/b} ${v%%@}",
    "echo ${v^@} ${v:@}",
    "echo \"${y:-${z:-'@'}}\"",
    "echo \"${y:-it's @ it's}\"",
    "echo ${b[@]} ${b['@']}",
    "echo \"${y:-$'@'}\"",
    "b[@]=1",
    "b['@']=1",
    "b=(['@']=1)",
    "y='b[@]'; b[y]=1",
    "y='b[@]'; echo $((y))",
    "y='b['; y+='@]'; b[y]=1",
    "y='b[@]'; b=([y]=1)",
    "y='b[@]'; [ -v \"$y\" ]",
    "for y in 'b[''@]'; do ((y)); done",
    "declare 'y[@]=1'",
    "declare -a y='(@)'",
    "read 'y[@]' < f",
    "unset 'b[@]'; [ '-v' 'b[@]' ]",
    "OPTIND='b[@]'",
    "echo $[1+'@'] $((1+'@'))",
    "echo a >&'o@'",
    "y='o@'; echo a >&\"$y\"",
    "cat <<EOF\n${y:-it's @ it's} '@'\nEOF",
    "cat <<EOF\n$((1+'@'))\nEOF",
    "[[ a =~ (@) ]]",
    "[[ a =~ @ ]]",
    "case a in *\"@\"|'@') ;; esac",
    "echo \"a'@'\" '@'",
];
/// Ways to write a substitution of the command `@`.
const SUBSTITUTIONS: &[&str] = &[
    "$(@)",
    "`@`",
    "<(@)",
    ">(@)",
    "$\\\n(@)",
    "${z:-`@`}",
    "${z:-$(@)}",
    "\\$(@)",
    "\\`@\\`",
    "$'\\x24(@)'",
    "}$(@)",
    "\"$(@)\"",
    "'$(@)'",
    "\"}\"; @; \"",
    "'}'; @; '",
    "\n@\n",
    "$\n@\n",
    "$[$(@)]",
    "#'\n@\n#'",
];

/// An `env` that always keeps its PATH.
const ENV: &str = r#"#!/bin/sh
PATH=BIN; export PATH
while :; do
  case $1 in
    -i | - | -0) shift ;;
    --) shift; break ;;
    -u) shift 2 ;;
    -S) shift; words=$1; shift; set -f; set -- $words "$@"; set +f ;;
    *) break ;;
  esac
done
while :; do
  case $1 in
    *=*) shift ;;
    *) break ;;
  esac
done
[ $# = 0 ] || exec "$@"
"#;

/// A PATH of stubs that write their name to a log.
///
/// Generated commands run in the sandbox: one that finds a real program after all can change only this
/// folder.
struct Bench {
    folder: TempDir,
    sandbox: Sandbox,
    case: u32,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("bin");
        let log = folder.path().join("log");
        let script = format!(
            "#!/bin/sh\nprintf '%s %s\\n' \"${{CASE:-?}}\" \"${{0##*/}}\" >> {}\n",
            log.display()
        );
        for name in STUBS {
            put(&bin.join(name), &script);
        }
        // Started by a script, so that no command can lose the PATH and find the programs of this machine.
        for name in REAL {
            let script = format!(
                "#!/bin/sh\nPATH={}; export PATH\nexec /usr/bin/{name} \"$@\"\n",
                bin.display()
            );
            put(&bin.join(name), &script);
        }
        put(&bin.join("env"), &ENV.replace("BIN", &bin.display().to_string()));
        let policy = SandboxPolicy::for_workspace(folder.path(), folder.path(), &[]);
        let sandbox = Sandbox::with_helper(policy, &helper()).expect("a sandbox");
        Self {
            folder,
            sandbox,
            case: 0,
        }
    }

    /// Runs a command in an empty folder and returns the stubs that ran.
    fn run(&mut self, command: &str) -> BTreeSet<String> {
        self.case += 1;
        let case = self.case.to_string();
        let log = self.folder.path().join("log");
        fs::write(&log, "").expect("a log");
        let work = self.folder.path().join(format!("work-{case}"));
        fs::create_dir(&work).expect("a folder");
        fs::write(work.join("f"), "rm\nls f\n").expect("a file");
        // The limit on processor time also applies to processes that the command leaves behind.
        let limited = "ulimit -t 3; exec /bin/bash -c \"$1\"";
        let words = ["-k", "1", "5", "/bin/sh", "-c", limited, "sh", command];
        let text = |path: &Path| path.display().to_string();
        let env = [
            ("PATH", text(&self.folder.path().join("bin"))),
            ("CASE", case.clone()),
            ("v", "rm f".to_owned()),
            ("HOME", text(&work)),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).into();
        run_with(&self.sandbox, "/usr/bin/timeout", &words, &work, &env);
        let text = fs::read_to_string(&log).expect("the log");
        let ran = text.lines().filter_map(|line| line.split_once(' '));
        ran.filter(|(id, _)| *id == "?" || *id == case)
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    /// Fails if a program ran that the analyzer did not predict, or should have refused. Returns true if the
    /// command was run.
    fn check(&mut self, command: &str) -> Result<bool, TestCaseError> {
        let analysis = analyse(command, &Blocklist::new(BLOCKED));
        if analysis.refusal.is_some() {
            return Ok(false);
        }
        let mut predicted: BTreeSet<&str> = analysis
            .commands
            .iter()
            .filter_map(|command| command.program.as_deref())
            .collect();
        for command in &analysis.commands {
            // `bash ls` runs a script of that name, and the stubs are scripts.
            if matches!(command.program.as_deref(), Some("bash" | "sh" | "." | "source")) {
                predicted.extend(command.words.iter().filter_map(|word| word.value()));
            }
        }
        for name in self.run(command) {
            prop_assert!(
                predicted.contains(name.as_str()) && !BLOCKED.contains(&name.as_str()),
                "{name} ran, predicted were {predicted:?}: {command:?}"
            );
        }
        Ok(true)
    }
}

fn put(path: &Path, script: &str) {
    fs::write(path, script).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

fn program() -> impl Strategy<Value = String> {
    let plain = || prop::sample::select(STUBS);
    prop_oneof![
        8 => plain().prop_map(str::to_owned),
        1 => plain().prop_map(|name| format!("'{name}'")),
        1 => plain().prop_map(|name| format!("\"{name}\"")),
        1 => plain().prop_map(|name| format!("\\{name}")),
        1 => plain().prop_map(|name| format!("$'{name}'")),
        1 => plain().prop_map(|name| name.chars().map(|c| format!("''{c}\"\"")).collect()),
        1 => plain().prop_map(|name| name.chars().map(|c| format!("$'\\x{:x}'", u32::from(c))).collect()),
        1 => Just("$v".to_owned()),
        1 => Just("$(echo ls)".to_owned()),
        1 => Just("[r]m".to_owned()),
        1 => Just("echo".to_owned()),
        1 => Just("command".to_owned()),
        1 => Just("eval".to_owned()),
        1 => Just("exec".to_owned()),
    ]
}

fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(&[
            "f", "-n", "a=b", "\"a b\"", "'; rm f'", "#", "$v", "\"$v\"", "{rm,ls}", "*", "-c", "--", "rm", "2>&1",
            "> out", "< f", "\\;", "+", "{}", "$((1+1))", "${v:-x}", "a#b", "!", "}", "-exec", "[a]", "=", "<<< x",
            "1", ">|o", "&>o", "a\\\n", "$'\\''", "\"\\\"\"",
        ][..]).prop_map(str::to_owned),
        2 => program(),
    ]
}

fn wrapper() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "",
            "",
            "",
            "",
            "env ",
            "env -i A=1 ",
            "env -u A ",
            "env -S ",
            "xargs ",
            "xargs -n1 ",
            "xargs -I{} ",
            "timeout 5 ",
            "timeout -s KILL 3 ",
            "nice ",
            "nice -n 5 ",
            "nohup ",
            "stdbuf -oL ",
            "time ",
            "time -p ",
            "! ",
            "command ",
            "exec ",
            "builtin ",
            "A=1 ",
            "a=(1 2) ",
            "find . -exec ",
            "find f -maxdepth 0 -execdir ",
            "> o ",
            "2>o ",
            "echo f | xargs ",
            "eval ",
            "bash -c ",
            "sh -c ",
            "trap ",
            "a[1]=2 ",
            "setsid ",
            "flock f ",
            "ionice -c3 ",
            "coproc ",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn simple() -> impl Strategy<Value = String> {
    (
        wrapper(),
        wrapper(),
        program(),
        prop::collection::vec(argument(), 0..4),
    )
        .prop_map(|(outer, inner, program, arguments)| {
            format!("{outer}{inner}{program} {}", arguments.join(" "))
        })
}

/// A command in a substitution at one of those places.
fn hidden(command: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let ways = (
        prop::sample::select(PLACES),
        prop::sample::select(SUBSTITUTIONS),
        prop::sample::select(SUBSTITUTIONS),
        any::<bool>(),
    );
    (ways, command).prop_map(|((place, outer, inner, nested), command)| {
        let inner = if nested {
            outer.replace('@', inner)
        } else {
            inner.to_owned()
        };
        place.replace('@', &inner.replace('@', &command))
    })
}

fn compound() -> impl Strategy<Value = String> {
    simple().prop_recursive(3, 12, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop::sample::select(&[" | ", "; ", " && ", " || ", "\n", " & ", ";", "|", " |& "][..])
            )
                .prop_map(|((a, b), by)| format!("{a}{by}{b}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            inner.clone().prop_map(|a| format!("echo $({a})")),
            inner.clone().prop_map(|a| format!("echo \"$({a})\"")),
            inner.clone().prop_map(|a| format!("echo `{a}`")),
            inner.clone().prop_map(|a| format!("cat <({a})")),
            inner
                .clone()
                .prop_map(|a| format!("bash -c '{}'", a.replace('\'', "'\\''"))),
            inner
                .clone()
                .prop_map(|a| format!("sh -c '{}'", a.replace('\'', "'\\''"))),
            inner
                .clone()
                .prop_map(|a| format!("eval '{}'", a.replace('\'', "'\\''"))),
            inner.clone().prop_map(|a| format!("bash -c \"{a}\"")),
            inner.clone().prop_map(|a| format!("cat <<EOF\n$({a})\nEOF")),
            inner.clone().prop_map(|a| format!("cat <<'EOF'\n{a}\nEOF")),
            inner
                .clone()
                .prop_map(|a| format!("cat <<-EOF | tee o\n\t{a}\n\tEOF\nls")),
            inner.clone().prop_map(|a| format!("f() {{ {a}; }}; f")),
            inner.clone().prop_map(|a| format!("for i in 1 2; do {a}; done")),
            inner.clone().prop_map(|a| format!("case f in f) {a};; esac")),
            inner.clone().prop_map(|a| format!("[[ -n x ]] && {a}")),
            inner.clone().prop_map(|a| format!("x=$({a})")),
            inner.clone().prop_map(|a| format!("echo ${{y:-$({a})}}")),
            hidden(inner.clone()),
            inner.prop_map(|a| format!("echo $(( $({a}) + 1 ))")),
            two.prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
        ]
    })
}

/// A command whose text was tampered with.
fn mutated() -> impl Strategy<Value = String> {
    let snippets = prop::sample::select(
        &[
            "'",
            "\"",
            "\\",
            "\n",
            ";",
            "&",
            "|",
            "(",
            ")",
            "{",
            "}",
            "`",
            "$",
            "$(",
            "#",
            " #",
            "<",
            ">",
            "<<EOF\n",
            "\nEOF\n",
            "\\\n",
            " ",
            "\t",
            "!",
            "=",
            "[",
            "]",
            "[[ ",
            " ]]",
            ",",
            "..",
            "*",
            "$'",
            "${",
            "rm ",
            " rm",
            "ls ",
            "\nrm f\n",
            ";;",
            "<<<",
            "&&",
            "((",
            "))",
            "-",
            "2",
            "é",
            "if ",
            "then ",
            "fi",
            "do ",
            "done",
            "in ",
            "time ",
            "function ",
            "case ",
        ][..],
    );
    let change = (
        any::<prop::sample::Index>(),
        prop::option::of(snippets),
        0_usize..3,
    );
    (compound(), prop::collection::vec(change, 1..5)).prop_map(|(command, changes)| {
        let mut chars: Vec<char> = command.chars().collect();
        for (at, snippet, removed) in changes {
            let at = at.index(chars.len() + 1);
            let end = (at + removed).min(chars.len());
            chars.splice(at..end, snippet.unwrap_or_default().chars());
        }
        chars.into_iter().collect()
    })
}

fn cases(count: u32) -> TestRunner {
    // The same commands in every run, unless a longer search is requested.
    let asked = std::env::var("WINDLASS_SHELL_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    TestRunner::new(ProptestConfig {
        failure_persistence: None,
        rng_seed: if asked.is_some() {
            RngSeed::Random
        } else {
            RngSeed::Fixed(1)
        },
        ..ProptestConfig::with_cases(asked.unwrap_or(count))
    })
}

/// SAFE-2 (S6.5): generated commands are run by bash, and every program that ran was predicted, or the
/// command was refused.
#[test]
fn whatever_runs_was_predicted() {
    let bench = std::cell::RefCell::new(Bench::new());
    let ran = std::cell::Cell::new(0);
    cases(300)
        .run(&compound(), |command| {
            ran.set(ran.get() + u32::from(bench.borrow_mut().check(&command)?));
            Ok(())
        })
        .expect("nothing runs unseen");
    assert!(
        ran.get() > 30,
        "only {} commands were run, the rest was refused",
        ran.get()
    );
}

/// SAFE-2 (S6.5): the same for commands inside `${…}`, indexes, arithmetic, here-documents and patterns.
#[test]
fn whatever_runs_in_expansions_was_predicted() {
    let bench = std::cell::RefCell::new(Bench::new());
    let ran = std::cell::Cell::new(0);
    let programs = prop::sample::select(STUBS).prop_map(|name| format!("{name} f"));
    cases(400)
        .run(&hidden(programs), |command| {
            ran.set(ran.get() + u32::from(bench.borrow_mut().check(&command)?));
            Ok(())
        })
        .expect("nothing runs unseen");
    assert!(ran.get() > 30, "only {} commands were run", ran.get());
}

/// SAFE-2 (S6.5): the same when the text of a command was tampered with.
#[test]
fn whatever_runs_was_predicted_after_tampering() {
    let bench = std::cell::RefCell::new(Bench::new());
    cases(400)
        .run(&mutated(), |command| bench.borrow_mut().check(&command).map(drop))
        .expect("nothing runs unseen");
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(500)
    })]

    /// SAFE-2 (S6.5): no text makes the analyzer panic or hang, and the same text gets the same answer.
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let list = Blocklist::default();
        prop_assert_eq!(analyse(&text, &list), analyse(&text, &list));
    }

    /// SAFE-2 (S6.5): no character of the shell's syntax makes the analyzer panic or hang.
    #[test]
    fn any_character_is_answered(text in "([\\PC]|[\\$(){}<>|&;'\"` \\n0-9a-c]){0,300}") {
        drop(analyse(&text, &Blocklist::default()));
    }

    /// SAFE-2 (S6.5): no nearly valid command makes the analyzer panic or hang.
    #[test]
    fn any_tampered_command_is_answered(text in mutated()) {
        let list = Blocklist::default();
        let analysis = analyse(&text, &list);
        prop_assert_eq!(&analysis, &analyse(&text, &list));
        drop(analysis.pieces());
        drop(analysis.write_targets());
    }

    /// SAFE-2 (S6.5): text that consists only of the shell's special characters is answered in time.
    #[test]
    fn any_signs_are_answered(text in "[\\$(){}\\[\\]<>|&;'\"`\\\\#!=*?~ \\na-c]{0,2000}") {
        drop(analyse(&text, &Blocklist::default()));
    }
}
