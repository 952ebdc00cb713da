//! Variables that change the effect of later commands. A name that is not listed as harmless needs at least
//! the write category, unless it is a lower-case shell variable: lists of bad names have always been
//! incomplete.

use windlass_core::tool::Category;

use super::word::Word;

/// Effect of an assignment on the commands after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Requires at least this category.
    Needs(Category),
    /// Makes the shell run code that is not visible in the command.
    Refused,
}

/// Names that the shell itself acts on: its search path, the code it runs before a command, its word
/// splitting.
const SHELL: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "BASH_CMDS",
    "BASH_ALIASES",
    "BASH_LOADABLES_PATH",
    "BASH_COMPAT",
    "POSIXLY_CORRECT",
    "EXECIGNORE",
    "GLOBIGNORE",
    "FIGNORE",
];

/// Names that make some program run another, load code, or look elsewhere for its files.
const PROGRAMS: &[&str] = &[
    "PATH",
    "SHELL",
    "HOME",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "HOSTALIASES",
    "VIMINIT",
    "EXINIT",
    "INPUTRC",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "TERMINFO",
    "CDPATH",
    "MAKEFLAGS",
    "RIPGREP_CONFIG_PATH",
    "GREP_OPTIONS",
    "TAR_OPTIONS",
    "RSYNC_RSH",
    "CVS_RSH",
    "SUDO_ASKPASS",
    "SSH_ASKPASS",
];
const PROGRAM_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "LESS",
    "MAN",
    "PYTHON",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE",
    "LUA_",
    "PHP",
    "NPM_",
    "npm_",
    "CARGO_",
    "RUSTC",
    "RUSTDOC",
    "DOCKER_",
    "KUBE",
    "AWS_",
    "SSH_",
    "BASH_FUNC_",
    "GCONV_",
    "GTK_",
    "QT_",
    "http",
    "HTTP",
    "https",
    "HTTPS",
    "all_proxy",
    "ALL_PROXY",
];

/// Names that change only how a program prints.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "TERM",
    "CI",
    "DEBUG",
    "VERBOSE",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "GIT_PAGER_IN_USE",
    "CARGO_TERM_COLOR",
    "OLDPWD",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONFAULTHANDLER",
    "PYTHONOPTIMIZE",
    "PYTHONNOUSERSITE",
    "CARGO_INCREMENTAL",
    "CARGO_BUILD_JOBS",
    "CARGO_NET_OFFLINE",
    "CARGO_NET_RETRY",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_MERGE_AUTOEDIT",
    "GIT_TERMINAL_PROMPT",
    "NPM_CONFIG_LOGLEVEL",
    "npm_config_loglevel",
    "npm_config_yes",
    "MANWIDTH",
];

/// Names of lists of folders that an interpreter or a build tool loads code from, or writes to. In the workspace they
/// give it nothing that a script there does not give it as well.
const FOLDERS: &[&str] = &[
    "PYTHONPATH",
    "NODE_PATH",
    "PERL5LIB",
    "RUBYLIB",
    "CLASSPATH",
    "CARGO_TARGET_DIR",
];

/// Folders of programs, from which a search for programs may start: nothing in the workspace can shadow a program there.
const PROGRAM_FOLDERS: &[&str] = &[
    "$PATH",
    "${PATH}",
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/go/bin",
    "/opt/homebrew/bin",
    "/opt/homebrew/sbin",
    "/snap/bin",
];
/// The same below the home folder.
const HOME_FOLDERS: &[&str] = &["/.cargo/bin", "/.local/bin", "/.bun/bin", "/.deno/bin", "/go/bin"];

/// Names that take a program which git or a like program runs.
const EDITORS: &[&str] = &["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"];

/// Variables whose values bash evaluates as arithmetic, at least in some versions.
const NUMBERS: &[&str] = &[
    "BASHPID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// Returns true if bash evaluates the value of an assignment as arithmetic because of the name.
pub(super) fn is_evaluated(assignment: &str) -> bool {
    split_assignment(assignment)
        .is_some_and(|(name, value)| NUMBERS.contains(&name) && !value.chars().all(|c| c.is_ascii_digit()))
}

/// Judges an assignment written as `NAME=value`.
pub(super) fn judge(assignment: &str) -> Effect {
    let (name, value) = split_assignment(assignment).unwrap_or((assignment, ""));
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    if is_harmless(assignment) {
        Effect::Needs(Category::Read)
    } else if SHELL.contains(&name) || name.starts_with("BASH_FUNC_") {
        Effect::Refused
    } else if is_local(name, value) {
        Effect::Needs(Category::Write)
    } else if PROGRAMS.contains(&name) || PROGRAM_PREFIXES.iter().any(|start| name.starts_with(start)) {
        Effect::Needs(Category::Admin)
    } else if name.chars().any(|c| c.is_ascii_lowercase()) {
        // By convention a shell variable, which no program reads.
        Effect::Needs(Category::Read)
    } else {
        Effect::Needs(Category::Write)
    }
}

/// Returns true if a name is of the kind that programs look at, and not only the shell.
pub(super) fn is_for_programs(assignment: &str) -> bool {
    let name = split_assignment(assignment).map_or("", |(name, _)| name);
    !name.chars().any(|c| c.is_ascii_lowercase())
}

/// Returns true if a value only names folders of the workspace, no editor, or options without an effect.
fn is_local(name: &str, value: &str) -> bool {
    let is_below =
        |folder: &str| super::builtins::is_below(folder) && !folder.contains(['$', '`', '*', '?', '[']);
    match name {
        "PATH" => value.replace('"', "").split(':').all(is_program_folder),
        "CARGO_TARGET_DIR" if value.starts_with("/tmp/") => !value.contains("..") && !value.contains('$'),
        _ if FOLDERS.contains(&name) => value
            .split(':')
            .all(|folder| folder.is_empty() || is_below(folder)),
        _ if EDITORS.contains(&name) => matches!(value, "true" | ":" | "cat"),
        "NODE_OPTIONS" => value.split_whitespace().all(|option| {
            let name = option.split_once('=').map_or(option, |(name, _)| name);
            matches!(
                name,
                "--max-old-space-size"
                    | "--max_old_space_size"
                    | "--no-warnings"
                    | "--enable-source-maps"
                    | "--trace-warnings"
                    | "--trace-deprecation"
                    | "--no-deprecation"
                    | "--experimental-vm-modules"
                    | "--stack-trace-limit"
                    | "--unhandled-rejections"
                    | "--openssl-legacy-provider"
            )
        }),
        "RUSTDOCFLAGS" => !value.contains("--runtool") && !value.contains("linker"),
        _ => false,
    }
}

fn is_program_folder(folder: &str) -> bool {
    let home = folder.strip_prefix("$HOME").or(folder.strip_prefix("${HOME}"));
    PROGRAM_FOLDERS.contains(&folder) || home.is_some_and(|rest| HOME_FOLDERS.contains(&rest))
}

/// Returns the text of `NAME=value` to judge: as written if a part is only known at run time, or if a dollar sign in it
/// is only a character.
pub(super) fn assigned_text(word: &Word) -> String {
    let value = word.value().filter(|value| !value.contains('$'));
    value.unwrap_or(word.source()).to_owned()
}

/// Returns true if an assignment cannot change the effect of a command.
pub(super) fn is_harmless(assignment: &str) -> bool {
    split_assignment(assignment).is_some_and(|(name, value)| {
        let harmless_value = matches!(
            (name, value),
            ("PAGER" | "GIT_PAGER" | "MANPAGER", "cat" | "") | ("GIT_OPTIONAL_LOCKS", "0" | "1")
        );
        harmless_value || HARMLESS.contains(&name) || name.starts_with("LC_")
    })
}

/// Returns the name and the value of `NAME=value`, `NAME+=value` or `NAME[index]=value`; `None` if bash would
/// not treat the text as an assignment.
pub(super) fn split_assignment(text: &str) -> Option<(&str, &str)> {
    let (left, value) = text.split_once('=')?;
    let left = left.strip_suffix('+').unwrap_or(left);
    let name = match left.split_once('[') {
        Some((name, index)) if index.ends_with(']') => name,
        Some(_) => return None,
        None => left,
    };
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some((name, value))
}
