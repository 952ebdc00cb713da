//! Programs that run a command or code in one of their options, operands or inputs.

use windlass_core::tool::Category;

use super::options::{self, Grammar};
use super::reader::{Input, Reader};
use super::word::Word;

/// A program whose operands, after a subcommand, are a command.
struct Runner {
    name: &'static str,
    /// Subcommands that run a command; an empty one if the program itself does.
    verbs: &'static [&'static str],
    grammar: Grammar,
    /// Number of operands before the command.
    operands: usize,
}

const fn runner(
    name: &'static str,
    verbs: &'static [&'static str],
    options: &'static str,
    operands: usize,
) -> Runner {
    Runner {
        name,
        verbs,
        grammar: Grammar(options),
        operands,
    }
}

const NPM: &str = "-c:! --call:! -p: --package: -y --yes --no -w: --workspace: --workspaces --prefer-offline --offline -q \
    --quiet --silent -s --ignore-existing --no-install";
const UV: &str = "-p: -q -v -n -m --module --python: --with: --with-editable: --with-requirements: --extra: --group: \
    --all-extras --all-groups --no-sync --no-project --frozen --locked --isolated --offline --quiet --verbose --active \
    --no-dev --dev --only-dev --no-cache --from: --env-file: --package: --all-packages --exact --managed-python";

const RUNNERS: &[Runner] = &[
    runner("npm", &["exec", "x"], NPM, 0),
    runner("npx", &[""], NPM, 0),
    runner("bunx", &[""], "--bun --silent -p: --package:", 0),
    runner("pnpx", &[""], NPM, 0),
    runner(
        "pnpm",
        &["exec", "dlx"],
        "-r -c --recursive --parallel --package: -s --silent --no-bail",
        0,
    ),
    runner("yarn", &["exec", "dlx"], "-p: --package: -q --quiet", 0),
    runner("uv", &["run"], UV, 0),
    runner("uvx", &[""], UV, 0),
    runner("poetry", &["run"], "-q -v -n", 0),
    runner("pipenv", &["run"], "", 0),
    runner("pdm", &["run"], "-s -p: --site-packages --project:", 0),
    runner("hatch", &["run"], "", 0),
    runner("rye", &["run"], "", 0),
    runner("pixi", &["run"], "-e: --environment: --frozen --locked -q -v", 0),
    runner("devbox", &["run"], "-q --quiet", 0),
    runner("bundle", &["exec"], "--keep-file-descriptors --gemfile:", 0),
    runner("foreman", &["run"], "-e: -f: --env: --procfile:", 0),
    runner("rustup", &["run"], "--install", 1),
    runner(
        "conda",
        &["run"],
        "-n: -p: -v --name: --prefix: --no-capture-output --live-stream --cwd:",
        0,
    ),
    runner(
        "mamba",
        &["run"],
        "-n: -p: -v --name: --prefix: --no-capture-output --live-stream",
        0,
    ),
    runner(
        "micromamba",
        &["run"],
        "-n: -p: -a: --name: --prefix: --attach:",
        0,
    ),
    runner("pyenv", &["exec"], "", 0),
    runner("rbenv", &["exec"], "", 0),
    runner("nodenv", &["exec"], "", 0),
    runner("asdf", &["exec"], "", 0),
    runner("gem", &["exec"], "-g: -v: --gem: --version: --conservative", 0),
    runner("composer", &["exec"], "-l -q -v --list --quiet", 0),
    runner("corepack", &[""], "", 0),
    runner("mix", &["cmd"], "--cd: --app:", 0),
    runner("npm", &["explore"], "", 1),
];

/// Programs with options whose value is code, or a text for the shell if marked with `!`. A word counts as the
/// option if it is a shortened form of it, or a cluster with its letter.
const RUNNING_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["--eval", "-E"]),
    (&["npm", "npx", "pnpm", "yarn"], &["script-shell!", "--shell!"]),
    (&["tox"], &["-x", "--override"]),
    (&["nano", "pico"], &["-s!", "--speller!"]),
    (&["split"], &["--filter!"]),
    (
        &["man"],
        &[
            "-P!",
            "-H!",
            "-C",
            "--pager!",
            "--html!",
            "--config-file",
            "--preprocessor",
        ],
    ),
    (&["zip"], &["-TT!", "--unzip-command!"]),
    (&["install"], &["--strip-program!"]),
    (&["cargo"], &["--config", "linker=", "runner="]),
    (
        &["go"],
        &[
            "-exec!",
            "-toolexec!",
            "-vettool!",
            "--exec!",
            "--toolexec!",
            "--vettool!",
            "extld",
        ],
    ),
    (
        &["gcc", "cc", "g++", "clang", "clang++", "c++"],
        &["-wrapper", "-fplugin", "-specs", "--specs", "-fuse-ld", "-load"],
    ),
    (&["ld", "ar", "nm"], &["-plugin", "--plugin"]),
    (&["rustc", "rustdoc"], &["linker=", "--runtool", "--test-runtool"]),
    (
        &["java", "javac", "jar", "jshell", "javadoc"],
        &[
            "XX:OnError",
            "XX:OnOutOfMemoryError",
            "-agentpath",
            "-agentlib",
            "-javaagent",
            "-J-agent",
            "-J-javaagent",
        ],
    ),
    (
        &["pandoc"],
        &["-F", "-L", "--filter", "--lua-filter", "--pdf-engine"],
    ),
    (
        &["tex", "latex", "pdflatex", "xelatex", "lualatex", "pdftex"],
        &[
            "-shell-escape",
            "--shell-escape",
            "-enable-write18",
            "--enable-write18",
        ],
    ),
    (&["cpio"], &["--rsh-command"]),
    (&["diff3", "sdiff"], &["--diff-program"]),
    (&["rake"], &["-e", "-E", "-p", "--execute"]),
    (&["mix", "elixir", "iex"], &["-e", "--eval", "--rpc-eval"]),
    (&["fzf", "sk"], &["--preview", "--bind", "--execute"]),
    (&["just"], &["-c", "--command", "--shell", "--chooser"]),
    (&["gnuplot"], &["-e"]),
    (&["gs", "ps2pdf"], &["-c", "-dNOSAFER"]),
    (&["ranger", "mutt", "neomutt", "mc"], &["-e", "--cmd"]),
    (&["xmllint"], &["--shell"]),
    (&["mvn"], &["-Dexec."]),
    (&["gradle"], &["-I", "--init-script"]),
    (&["pytest"], &["--pdbcls"]),
    (&["patch"], &["-e", "--ed"]),
    (&["rename", "prename", "file-rename"], &["-e", "s/", "y/", "tr/"]),
];

/// Editors and macro languages that take commands from their options or their input.
const SCRIPTED: &[&str] = &[
    "vim",
    "vi",
    "nvim",
    "view",
    "vimdiff",
    "gvim",
    "ex",
    "ed",
    "red",
    "emacs",
    "emacsclient",
    "kak",
    "hx",
    "micro",
    "dc",
    "m4",
    "expect",
    "lftp",
    "gdb",
    "lldb",
];

/// Subcommands that cargo carries out itself.
const CARGO: &str = "add b bench build c check clean clippy d doc fetch fix fmt generate-lockfile help info init install \
    locate-project login logout metadata new owner package pkgid publish r read-manifest remove report rm run rustc \
    rustdoc search t test tree uninstall update vendor verify-project version yank";

/// Commands of sqlite3 that only print or change the output.
const SQLITE_PLAIN: &[&str] = &[
    ".tables",
    ".schema",
    ".mode",
    ".headers",
    ".header",
    ".databases",
    ".indexes",
    ".indices",
    ".dump",
    ".width",
    ".separator",
    ".nullvalue",
    ".quit",
    ".exit",
    ".timeout",
    ".timer",
    ".changes",
    ".echo",
    ".show",
    ".stats",
    ".fullschema",
    ".dbinfo",
    ".bail",
    ".explain",
    ".eqp",
    ".help",
    ".print",
    ".limits",
];

/// Returns true if a program takes commands of its own, which may run others.
pub(super) fn is_scripted(name: &str) -> bool {
    SCRIPTED.contains(&name)
}

/// Returns true if a program is listed here.
pub(super) fn is_launcher(name: &str) -> bool {
    RUNNERS.iter().any(|runner| runner.name == name)
        || SCRIPTED.contains(&name)
        || RUNNING_OPTIONS.iter().any(|(names, _)| names.contains(&name))
}

/// Reads the commands that a program runs; returns true if the program is listed here.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    if SCRIPTED.contains(&program) {
        scripted(reader, arguments);
    }
    if let Some((_, options)) = RUNNING_OPTIONS.iter().find(|(names, _)| names.contains(&program)) {
        running_options(reader, arguments, options, via);
    }
    match program {
        "sqlite3" | "sqlite" | "duckdb" => sqlite(reader, arguments),
        "make" | "gmake" => make(reader, arguments),
        "cmake" => cmake(reader, arguments, via),
        "cargo" => cargo(reader, arguments, via),
        "gnuplot" if arguments.iter().all(|word| word.starts_with('-')) => {
            reader.takes_code_from(Input::Program);
        }
        "fd" | "fdfind" => fd(reader, arguments, via),
        _ => {}
    }
    for runner in RUNNERS.iter().filter(|runner| runner.name == program) {
        run(reader, runner, arguments, via);
    }
    is_launcher(program)
}

fn scripted(reader: &mut Reader<'_>, arguments: &[Word]) {
    if matches!(arguments, [only] if matches!(only.fixed(), Some("--version" | "--help"))) {
        return;
    }
    for word in arguments {
        reader.foreign_code(word.prefix(), Category::Admin);
    }
    reader.takes_code_from(Input::Commands);
    reader.raise(Category::Admin);
}

/// Runs the shell text or the code in the value of an option, which is the rest of the word or the next word.
fn running_options(reader: &mut Reader<'_>, arguments: &[Word], options: &[&str], via: &[String]) {
    for (index, word) in arguments.iter().enumerate() {
        let Some(option) = options
            .iter()
            .find(|option| is_given(word.prefix(), option.trim_end_matches('!')))
        else {
            continue;
        };
        let is_shell = option.ends_with('!');
        let option = option.trim_end_matches('!');
        let rest = word.prefix().split_once('=').map_or_else(
            || {
                word.prefix()
                    .split_once(option.trim_start_matches('-'))
                    .map_or("", |(_, rest)| rest)
            },
            |(_, value)| value,
        );
        let next = arguments.get(index + 1).filter(|_| rest.is_empty());
        let code = next.map_or(rest, Word::prefix);
        let unknown = word.value().is_none() || next.is_some_and(|next| next.value().is_none());
        match is_shell {
            true if unknown => reader.unknown_program(next.unwrap_or(word).source()),
            true => reader.read(code, via),
            false => reader.foreign_code(code, Category::Admin),
        }
    }
}

/// Returns true if a word is or contains an option.
fn is_given(text: &str, option: &str) -> bool {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    match option.strip_prefix('-') {
        Some(long) if long.starts_with('-') => name.len() >= 4 && option.starts_with(name),
        Some(letter) if letter.len() == 1 => {
            text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
        }
        Some("TT") => text.starts_with('-') && text.contains("TT"),
        Some(_) => text.starts_with(option),
        None => text.contains(option),
    }
}

fn run(reader: &mut Reader<'_>, runner: &Runner, arguments: &[Word], via: &[String]) {
    let words = if runner.verbs == [""] {
        arguments
    } else {
        let verb = arguments
            .iter()
            .position(|word| word.fixed().is_some_and(|text| runner.verbs.contains(&text)));
        // A subcommand that is only known at run time may be one of these.
        let unknown = arguments.first().is_some_and(|word| word.value().is_none());
        match verb {
            Some(at) => arguments.get(at + 1..).unwrap_or_default(),
            None if unknown => return reader.raise(Category::Admin),
            None => return,
        }
    };
    let Ok((given, rest)) = options::parse(runner.grammar, words) else {
        super::category::unknown(reader, words);
        reader.raise(Category::Admin);
        return;
    };
    for option in given
        .iter()
        .filter(|option| option.meaning == options::Meaning::Runs)
    {
        match option.value.as_ref().map(|word| (word.value(), word)) {
            Some((Some(text), _)) => reader.read(text, via),
            Some((None, word)) => reader.unknown_program(word.source()),
            None => {}
        }
    }
    let rest = rest.get(runner.operands.min(rest.len())..).unwrap_or_default();
    let rest = match rest.first().and_then(Word::fixed) {
        Some("--") => rest.get(1..).unwrap_or_default(),
        _ => rest,
    };
    if !rest.is_empty() {
        reader.simple(rest.to_vec(), Vec::new(), via);
    }
}

fn sqlite(reader: &mut Reader<'_>, arguments: &[Word]) {
    let mut operands = 0;
    for word in arguments {
        let text = word.prefix();
        if !text.starts_with('-') {
            operands += 1;
        }
        let unknown = word.value().is_none() && operands > 1;
        if unknown
            || is_running_sql(text)
            || matches!(text.trim_start_matches('-'), "init" | "unsafe-testing")
        {
            reader.foreign_code(text, Category::Admin);
        }
    }
    if operands < 2 {
        reader.takes_code_from(Input::Sql);
    }
}

/// Returns true if a script of sqlite3 may run a program, load code or write other files.
pub(super) fn is_running_sql(script: &str) -> bool {
    let lower = script.to_ascii_lowercase();
    let functions = ["load_extension", "edit(", "edit (", "writefile", "fts3_tokenizer"];
    let commands = lower.split(['\n', ';']).map(str::trim_start);
    functions.iter().any(|name| lower.contains(name))
        || lower.contains("\\n.")
        || commands.filter(|line| line.starts_with('.')).any(|line| {
            let name = line.split_whitespace().next().unwrap_or_default();
            !SQLITE_PLAIN.contains(&name)
        })
}

fn make(reader: &mut Reader<'_>, arguments: &[Word]) {
    for (index, word) in arguments.iter().enumerate() {
        let text = word.prefix();
        let next = arguments.get(index + 1).map_or("", Word::prefix);
        let file = text
            .strip_prefix("--file=")
            .or(text.strip_prefix("--makefile="))
            .or(text.strip_prefix("-f"))
            .map(|file| if file.is_empty() { next } else { file });
        if file.is_some_and(super::builtins::is_stream) {
            reader.takes_code_from(Input::Commands);
            reader.raise(Category::Admin);
        }
        let Some((name, value)) = text.split_once('=').filter(|_| !text.starts_with('-')) else {
            continue;
        };
        let name = name.trim_end_matches(['?', ':', '+', '!']);
        let runs = value.contains("$(") || value.contains('`') || value.contains("${") || text.contains("!=");
        if runs
            || super::category::starts_blocked(reader, value)
            || matches!(
                name,
                "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS" | "MAKE" | "GNUMAKEFLAGS"
            )
        {
            reader.foreign_code(text, Category::Admin);
        }
    }
}

/// A subcommand of cargo that is a program of its own may run its arguments.
fn cargo(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    let operands = arguments
        .iter()
        .skip_while(|word| word.starts_with('+') || word.starts_with('-'));
    let words: Vec<Word> = operands.cloned().collect();
    let Some((subcommand, rest)) = words.split_first() else {
        return;
    };
    let name = subcommand.fixed().unwrap_or_default();
    if CARGO.split_whitespace().any(|known| known == name) {
        return;
    }
    super::category::unknown(reader, rest);
    if name == "watch" {
        running_options(reader, rest, &["-s!", "--shell!"], via);
    }
}

/// `cmake -E` runs a command or does the work of one.
fn cmake(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    let Some(at) = arguments.iter().position(|word| word.fixed() == Some("-E")) else {
        return;
    };
    let tool = arguments.get(at + 1..).unwrap_or_default();
    let rest = tool.get(1..).unwrap_or_default();
    match tool.first().and_then(Word::fixed) {
        Some("env") => {
            let mut words = vec![Word::literal("env")];
            words.extend(rest.iter().cloned());
            reader.simple(words, Vec::new(), via);
        }
        Some("time") => reader.simple(rest.to_vec(), Vec::new(), via),
        Some("chdir") => {
            if let Some((folder, command)) = rest.split_first() {
                reader.place.enters(folder);
                reader.simple(command.to_vec(), Vec::new(), via);
            }
        }
        Some("rm" | "remove" | "remove_directory") => {
            let mut words = vec![Word::literal("rm")];
            words.extend(rest.iter().cloned());
            reader.simple(words, Vec::new(), via);
        }
        _ => {}
    }
}

/// `fd -x` runs the words up to a semicolon for each file.
fn fd(reader: &mut Reader<'_>, arguments: &[Word], via: &[String]) {
    let starts = |word: &Word| {
        let text = word.prefix();
        matches!(text, "--exec" | "--exec-batch")
            || super::git::cluster(word, 'x')
            || super::git::cluster(word, 'X')
    };
    let Some(at) = arguments.iter().position(starts) else {
        return;
    };
    let after = arguments.get(at + 1..).unwrap_or_default();
    let end = after.iter().position(|word| word.value() == Some(";"));
    let command = after.get(..end.unwrap_or(after.len())).unwrap_or_default();
    let mut words: Vec<Word> = command.iter().map(|word| word.with_unknown("{")).collect();
    if !words.is_empty() {
        words.push(Word::unknown("…", true));
        reader.simple(words, Vec::new(), via);
    }
}

/// Returns true if `man` is given more than a section and names of pages.
pub(super) fn man_runs(arguments: &[Word]) -> bool {
    let Ok(parsed) = options::parse_all(
        Grammar("-a -f -k -w -s: --all --apropos --path --where --whatis"),
        arguments,
        false,
    ) else {
        return true;
    };
    let is_name = |word: &Word| word.fixed().is_some_and(|name| !name.contains('/'));
    !parsed.operands.iter().all(is_name)
}
