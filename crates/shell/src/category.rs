//! Permission category of a program that hides no other command.

use windlass_core::tool::Category;

use super::options::{self, Grammar};
use super::programs::{ADMIN, VERSIONED, WRITE};
use super::reader::Reader;
use super::word::Word;
use super::{builtins, effects, find, git, interpreters, launchers, local, readers, sed, wrappers};

/// Directories of system programs.
const STANDARD: &[&str] = &[
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
];

/// Programs and built-ins that print their arguments or test files, also when started by their path.
const SIMPLE: &[&str] = &["echo", "printf", "test", "[", "pwd"];

/// Returns true if a name belongs to a program or built-in that a function must not shadow.
pub(super) fn is_known(name: &str) -> bool {
    is_judged(name)
        || readers::find(name).is_some()
        || builtins::is_builtin(name)
        || wrappers::is_wrapper(name)
        || find::is_find(name)
        || interpreters::is_interpreter(name)
}

/// Returns true if this module knows a program's arguments, so that none of them is a command.
fn is_judged(name: &str) -> bool {
    WRITE.contains(&name) || ADMIN.contains(&name) || SIMPLE.contains(&name) || launchers::is_launcher(name)
}

/// Returns true if a path is the system's location of the program, so that its name is enough.
pub(super) fn is_standard_path(path: &str, program: &str) -> bool {
    path.strip_suffix(program)
        .is_some_and(|folder| STANDARD.contains(&folder))
}

/// Records the permission that a program needs.
pub(super) fn judge(reader: &mut Reader<'_>, path: &str, program: &str, arguments: &[Word], via: &[String]) {
    // A file with that name in the workspace may be anything.
    if path.contains('/') && !is_standard_path(path, program) {
        unknown(reader, arguments);
        return;
    }
    let launches = launchers::read(reader, program, arguments, via);
    if is_version(program, arguments) || effects::judge(reader, program, arguments) {
        return;
    }
    written_paths(reader, program, arguments);
    match program {
        "git" => git::judge(reader, arguments),
        "sed" | "gsed" => sed::judge(reader, arguments),
        "tar" | "bsdtar" => tar(reader, arguments),
        "ip" if is_ip_query(arguments) => {}
        "unzip" if is_unzip_query(arguments) => {}
        "rsync" if is_local_copy(arguments) => reader.raise(Category::Write),
        "curl" | "wget" | "nc" | "ncat" | "netcat" | "ping"
            if talks_to_this_machine(reader, program, arguments) =>
        {
            reader.raise(Category::Write);
        }
        "dpkg" if is_dpkg_query(arguments) => {}
        "rpm" if cluster_starts(arguments, "-q") => reader.raise(Category::Write),
        "kill" if builtins::ends_own_jobs(reader, arguments) => reader.raise(Category::Write),
        "ssh" | "scp" | "rsync" | "curl" | "wget" | "ftp" | "nc" | "socat" => {
            for word in arguments {
                reader.foreign_code(word.prefix(), Category::Admin);
            }
            reader.raise(Category::Admin);
        }
        _ => reader.raise(category(program, arguments)),
    }
    if !launches && !is_known(program) {
        unknown(reader, arguments);
    }
}

/// Records an unknown program. It may be another launcher, so none of its arguments may be a blocked command.
pub(super) fn unknown(reader: &mut Reader<'_>, arguments: &[Word]) {
    reader.raise(Category::Write);
    for (index, word) in arguments.iter().enumerate() {
        let Some(value) = word.value() else { continue };
        let name = super::word::base_name(value);
        let after = arguments.get(index + 1..).unwrap_or_default();
        if let Some(entry) = reader.blocklist.hit(name, after) {
            reader.blocked(&entry, value, super::blocked::targets(name, after));
        }
        // The value of an option may be a command line.
        let line = value.split_once('=').map_or(value, |(_, line)| line);
        if line.contains(' ') && starts_blocked(reader, line) {
            reader.raise(Category::Admin);
        }
    }
}

/// Returns true if a text that may be a command line, or code with one in quotes, starts a blocked command.
pub(super) fn starts_blocked(reader: &Reader<'_>, line: &str) -> bool {
    let starts = line.split([';', '&', '|', '!', '`', '(', '\n', '"', '\'']);
    let mut programs = starts.filter_map(|part| part.split_whitespace().next());
    programs.any(|name| reader.blocks(super::word::base_name(name)))
}

/// Returns true if a program only prints its version or its options.
pub(super) fn is_version(program: &str, arguments: &[Word]) -> bool {
    let [only] = arguments else { return false };
    let Some(only) = only.fixed() else { return false };
    VERSIONED
        .iter()
        .any(|(options, names)| options.contains(&only) && names.contains(&program))
}

fn category(program: &str, arguments: &[Word]) -> Category {
    let operands = || arguments.iter().filter(|word| !word.starts_with('-'));
    let first = arguments.first().and_then(Word::fixed).unwrap_or_default();
    let has = |wanted: &[&str]| {
        arguments
            .iter()
            .filter_map(Word::value)
            .any(|value| wanted.contains(&value))
    };
    match program {
        _ if SIMPLE.contains(&program) => Category::Read,
        "chmod" if recursive(arguments) && operands().skip(1).any(leads_out) => Category::Admin,
        "cargo" if is_cargo_query(first, arguments) => Category::Read,
        "cargo"
            if matches!(
                first,
                "publish" | "login" | "logout" | "yank" | "owner" | "install" | "uninstall"
            ) =>
        {
            Category::Admin
        }
        "npm" | "yarn" | "pnpm"
            if has(&[
                "-g",
                "--global",
                "global",
                "publish",
                "login",
                "unpublish",
                "adduser",
            ]) =>
        {
            Category::Admin
        }
        "npm" if matches!(first, "ls" | "list" | "root" | "prefix") => declared(
            arguments,
            "-a -l --all --depth: --json --long --omit: --parseable --prod",
        ),
        "pip" | "pip3" if matches!(first, "list" | "show" | "freeze" | "check") => declared(
            arguments,
            "-f -l -v -q --all --exclude: --exclude-editable --files --format: --local --not-required --user --verbose",
        ),
        "pip" | "pip3" => Category::Admin,
        "gem" if has(&["install", "push", "uninstall"]) => Category::Admin,
        "go" if matches!(first, "version" | "env") => declared(arguments, "-json -m -v -changed"),
        "rustup" if matches!(first, "show" | "which") => Category::Read,
        "rustup" if is_rustup_list(arguments) => Category::Read,
        "terraform" if first == "fmt" => Category::Write,
        "rustup" | "go" if has(&["default", "update", "install", "self", "toolchain"]) => Category::Admin,
        "man" if !launchers::man_runs(arguments) => Category::Read,
        _ if ADMIN.contains(&program) || program.starts_with("mkfs") => Category::Admin,
        _ => Category::Write,
    }
}

/// Returns true if `rustup` lists what is installed, or what it knows about.
pub(super) fn is_rustup_list(arguments: &[Word]) -> bool {
    options::parse_all(Grammar("-v --verbose --installed -q --quiet"), arguments, false).is_ok_and(|parsed| {
        let operands: Vec<&str> = parsed.operands.iter().filter_map(Word::fixed).collect();
        parsed.operands.len() == 2
            && matches!(
                operands.as_slice(),
                ["toolchain" | "target" | "component", "list"]
            )
    })
}

/// Returns `Read` if only these options are given.
fn declared(arguments: &[Word], options: &'static str) -> Category {
    match options::parse_all(Grammar(options), arguments, false) {
        Ok(_) => Category::Read,
        Err(_) => Category::Write,
    }
}

/// Returns true if `cargo` prints something and neither builds nor writes a lock file.
fn is_cargo_query(first: &str, arguments: &[Word]) -> bool {
    let has = |wanted: &str| arguments.iter().any(|word| word.fixed() == Some(wanted));
    let options = "-e: -i: -p: -q -v --all-features --all-targets --color: --depth: --edges: --exclude: --features: \
        --filter-platform: --format: --format-version: --frozen --invert: --locked --manifest-path: --message-format: \
        --no-dedupe --no-default-features --no-deps --offline --package: --prefix: --target: --workspace";
    let frozen = has("--frozen") || has("--locked") && has("--offline");
    match first {
        "--list" | "version" => arguments.len() == 1,
        "locate-project" => declared(arguments, options) == Category::Read,
        "metadata" | "tree" => frozen && declared(arguments, options) == Category::Read,
        _ => false,
    }
}

/// Returns true if a program of the network only talks to servers of earlier commands.
fn talks_to_this_machine(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) -> bool {
    let local = local::read(program, arguments).filter(|_| reader.place.facts.own_network);
    if let Some(parsed) = &local {
        effects::values(reader, parsed);
    }
    local.is_some()
}

/// Returns true if `rsync` copies between local folders, and removes nothing.
pub(super) fn is_local_copy(arguments: &[Word]) -> bool {
    let options = "-a -v -r -R -u -l -L -k -H -p -E -X -o -g -D -t -O -n -W -x -c -b -z -h -P -i -q -m -C --archive --verbose \
        --recursive --relative --update --links --copy-links --hard-links --perms --times --dry-run --whole-file --checksum \
        --progress --stats --human-readable --quiet --exclude: --include: --exclude-from: --include-from: --ignore-existing \
        --existing --size-only --partial --itemize-changes --prune-empty-dirs --info: --mkpath --max-size: --min-size:";
    let is_local = |word: &Word| word.fixed().is_some_and(|path| !path.contains(':'));
    options::parse_all(Grammar(options), arguments, false)
        .is_ok_and(|parsed| parsed.operands.len() > 1 && parsed.operands.iter().all(is_local))
}

/// Returns true if `dpkg` only prints what is installed.
fn is_dpkg_query(arguments: &[Word]) -> bool {
    let options = "-l -L -s -S -p --list --listfiles --status --search --print-avail --print-architecture \
        --print-foreign-architectures --get-selections --version";
    options::parse_all(Grammar(options), arguments, false).is_ok_and(|parsed| !parsed.given.is_empty())
}

fn cluster_starts(arguments: &[Word], start: &str) -> bool {
    arguments
        .first()
        .is_some_and(|word| word.prefix().starts_with(start))
}

/// Returns true if `ip` only shows addresses, links, routes or neighbours.
fn is_ip_query(arguments: &[Word]) -> bool {
    let options =
        "-4 -6 -a -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -s -stats";
    let Ok(parsed) = options::parse_all(Grammar(options), arguments, false) else {
        return false;
    };
    let mut operands = parsed.operands.iter().map(|word| word.fixed().unwrap_or("?"));
    let object = operands.next().unwrap_or_default();
    let verb = operands.next().unwrap_or("show");
    matches!(
        object,
        "a" | "addr" | "address" | "l" | "link" | "r" | "route" | "n" | "neigh" | "neighbour" | "rule"
    ) && matches!(verb, "show" | "list" | "ls" | "get")
}

/// Returns true if `unzip` only lists, tests or prints the files of an archive.
fn is_unzip_query(arguments: &[Word]) -> bool {
    options::parse_all(Grammar("-l -v -t -q -Z -z -p -c -1 -C"), arguments, false)
        .is_ok_and(|parsed| parsed.has(&["l", "v", "t", "Z", "z", "p", "c"]))
}

fn recursive(arguments: &[Word]) -> bool {
    has_option(arguments, &["-R", "-r", "--recursive"])
}

/// Returns true if a path may lead out of the directory.
fn leads_out(word: &Word) -> bool {
    word.value().is_none_or(|path| !super::builtins::is_below(path))
}

/// Returns true if one of these options may be given: alone, in a cluster, with a value or shortened. A word
/// after `--` counts as well, because `--` may be the value of an option.
fn has_option(arguments: &[Word], options: &[&str]) -> bool {
    arguments.iter().map(Word::prefix).any(|text| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        options.iter().any(|option| match option.strip_prefix('-') {
            Some(long) if long.starts_with('-') => name.len() > 2 && option.starts_with(name),
            Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
            None => text.starts_with(option),
        })
    })
}

/// Records the paths that a program names as its output.
fn written_paths(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) {
    let operands: Vec<&str> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .filter_map(Word::value)
        .collect();
    let option = |letter: &str| {
        let at = arguments.iter().position(|word| word.fixed() == Some(letter))?;
        arguments.get(at + 1).and_then(Word::value)
    };
    let written: Vec<&str> = match program {
        "cp" | "ln" | "install" | "scp" | "rsync" => {
            let into = arguments
                .iter()
                .filter_map(Word::value)
                .find_map(|word| word.strip_prefix("--target-directory="));
            option("-t")
                .or(into)
                .or(operands.last().copied())
                .into_iter()
                .collect()
        }
        "mv" | "tee" | "touch" | "mkdir" | "rm" | "rmdir" | "shred" | "truncate" | "unlink" | "mkfifo" => {
            operands
        }
        "chmod" | "chown" | "chgrp" => operands.get(1..).unwrap_or_default().to_vec(),
        "curl" | "gcc" | "cc" | "clang" | "rustc" => option("-o").into_iter().collect(),
        "wget" => option("-O").into_iter().collect(),
        "dd" => operands
            .iter()
            .filter_map(|word| word.strip_prefix("of="))
            .collect(),
        _ => Vec::new(),
    };
    for path in written {
        reader.writes_to(path);
    }
}

fn tar(reader: &mut Reader<'_>, arguments: &[Word]) {
    let running = [
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
        "-I",
        "-F",
    ];
    let arguments = &dashed(arguments);
    let unknown = arguments.iter().any(|word| word.may_be_option());
    if has_option(arguments, &running) || unknown {
        for word in arguments {
            reader.foreign_code(word.prefix(), Category::Admin);
        }
    }
    if !lists_archive(arguments) {
        reader.raise(Category::Write);
    }
}

/// Returns the arguments of `tar` with a dash before the first word, which may be a cluster without one.
fn dashed(arguments: &[Word]) -> Vec<Word> {
    let mut words = arguments.to_vec();
    if let Some(first) = words.first_mut()
        && let Some(cluster) = first
            .fixed()
            .filter(|text| !text.is_empty() && !text.starts_with('-'))
    {
        *first = Word::literal(&format!("-{cluster}"));
    }
    words
}

/// Returns true if `tar` lists a local archive. A name with a colon is an archive on another machine.
fn lists_archive(arguments: &[Word]) -> bool {
    let options = "-t -v -f: -z -j -J -a -R -C: --list --verbose --file: --gzip --bzip2 --xz --zstd --auto-compress \
        --exclude: --wildcards --full-time --numeric-owner --utc --quoting-style:";
    options::parse_all(Grammar(options), arguments, false).is_ok_and(|parsed| {
        let archive = parsed
            .option(&["f", "file"])
            .and_then(|given| given.value.as_ref());
        let local = archive.is_none_or(|path| path.value().is_some_and(|path| !path.contains(':')));
        parsed.has(&["t", "list"]) && local
    })
}
