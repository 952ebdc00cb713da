//! Generates commands that the analysis takes for reads, for tests that run them and check that nothing
//! changed.

use windlass_core::tool::Category;

use crate::git_table::READ;
use crate::options::Grammar;
use crate::readers;
use crate::{Blocklist, analyse};

/// Maximum number of commands that are made for each one that is kept.
const TRIES: usize = 200;

/// Programs that run until they are stopped, or need a terminal or a device.
const ENDLESS: &[&str] = &[
    "sleep", "top", "vmstat", "iostat", "less", "more", "dmesg", "lsof", "free",
];
/// Options that wait for more input.
const WAITING: &[&str] = &["-f", "-F", "-s", "--follow", "--retry", "-c", "--stdin"];

/// Words that have an effect in some place: as an option, its value, an operand or a part of a script.
const BAIT: &[&str] = &[
    "-o",
    "-oout",
    "-i",
    "-r",
    "-w",
    "-x",
    "-X",
    "-O",
    "-C",
    "-T.",
    "-e",
    "-f",
    "-exec",
    "-delete",
    "-fprint",
    "-ok",
    "--",
    "-",
    "+",
    "--output=out",
    "--output",
    "--outp=out",
    "--in-place",
    "--pre=touch",
    "--exec=touch",
    "--compress-program=touch",
    "--ext-diff",
    "--textconv",
    "--set=now",
    "out",
    "touch out",
    "touch",
    "$(touch out)",
    "\"$x\"",
    "$x",
    "*",
    "@out",
    "+!touch",
    "1e touch out",
    "w out",
    "s/a/b/w out",
    "s/a/b/e",
    "1!w out",
    "{print > \"out\"}",
    "{print | \"sh\"}",
    "BEGIN{system(\"touch out\")}",
    "> out",
    ">> out",
    "< out",
    "2> /dev/null",
    "| tee out",
    "; touch out",
    "&& touch out",
    "-k",
    "-a",
    "-d",
    "-D",
    "-m",
    "-u",
    "-v",
    "-V",
    "-p",
    "add",
    "set",
    "get",
    "list",
    "show",
    "HEAD",
    "-c",
    "alias.x=!touch out",
    "core.pager=touch out",
    "--git-dir=.",
];
const SED: &[&str] = &[
    "p", "1d", "$!N", "s/a/b/g", "s,a,b,", "/a/,/b/p", "y/ab/ba/", "=", "1,3{p;d}", ":a;N;ba", "/[a/]/p",
    "s/[/]/x/", "1q", "a x", "h;G",
];
const AWK: &[&str] = &[
    "{print $1}",
    "NR==1",
    "/a|b/",
    "$1 > 1",
    "{s+=$1} END {print s}",
    "{print $1/2}",
    "!s[$0]++",
    "{print \"a>b\"}",
    "length > 3",
    "/[]/]\"/ {print}",
    "{x = $1 / 2 / 3; print x}",
];
const FIND: &[&str] = &[
    "-name",
    "'*.txt'",
    "-type",
    "f",
    "-maxdepth",
    "1",
    "-print",
    "-print0",
    "-empty",
    "-newer",
    "-size",
    "+1k",
    "-o",
    "!",
    "-ls",
];
const WRAPPERS: &[&str] = &[
    "env",
    "timeout 3",
    "nice",
    "time",
    "command",
    "nice -n 5",
    "env LC_ALL=C",
    "stdbuf -oL",
    "xargs -r",
    "env -i",
    "env -u A",
    "busybox",
    "sh -c",
];
const VALUES: &[&str] = &[
    "1", "2", "a", "x", ":", ".", "f", "%s", "none", "never", "--", "-1", "out",
];

/// Returns commands that are classed as reads, made from declared options, the names of existing files and
/// words with effects. The same seed gives the same commands. There may be fewer than `count` of them.
///
/// ```
/// let commands = windlass_shell::fuzzing::read_commands(7, 20, &["a.txt", "b.txt"]);
/// assert_eq!(commands.len(), 20);
/// assert_eq!(commands, windlass_shell::fuzzing::read_commands(7, 20, &["a.txt", "b.txt"]));
/// ```
pub fn read_commands(seed: u64, count: usize, files: &[&str]) -> Vec<String> {
    let mut dice = Dice(seed);
    let list = Blocklist::default();
    let mut commands = Vec::new();
    for _ in 0..count.saturating_mul(TRIES) {
        if commands.len() == count {
            break;
        }
        let command = line(&mut dice, files);
        let analysis = analyse(&command, &list);
        if analysis.refusal.is_none() && analysis.category == Category::Read && !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// A generator of numbers: SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let sides = u64::try_from(sides.max(1)).unwrap_or(1);
        usize::try_from((z ^ (z >> 31)) % sides).unwrap_or(0)
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.roll(from.len());
        from.get(at).copied().unwrap_or("x")
    }
}

fn line(dice: &mut Dice, files: &[&str]) -> String {
    let mut line = simple(dice, files);
    while dice.one_in(4) {
        let sign = dice.pick(&[" | ", " && ", "; ", " || ", "\n"]);
        line = format!("{line}{sign}{}", simple(dice, files));
    }
    match dice.roll(12) {
        0 => format!("for f in {}; do {line}; done", dice.pick(files)),
        1 => format!("f() {{ {line}; }}; f"),
        2 => format!("echo $({line})"),
        3 => format!("LC_ALL=C {line}"),
        4 => format!("set -e; {line}"),
        _ => line,
    }
}

fn simple(dice: &mut Dice, files: &[&str]) -> String {
    let mut words = match dice.roll(10) {
        0 => script(
            dice,
            "sed",
            SED,
            &["-n", "-E", "-e", "-s", "-ne", "-z", "--expression"],
        ),
        1 => script(dice, "awk", AWK, &["-F:", "-v x=1", "-F ,", "-e", "-f"]),
        2 => find(dice),
        3..=5 => git(dice),
        _ => reader(dice),
    };
    for _ in 0..dice.roll(3) {
        words.push(dice.pick(files).to_owned());
    }
    while dice.one_in(3) {
        let at = 1 + dice.roll(words.len());
        let bait = dice.pick(BAIT);
        let is_syntax = bait.starts_with(['>', '<', '|', ';', '&', '2', '$', '"', '*']);
        let bait = if is_syntax || dice.one_in(8) {
            bait.to_owned()
        } else {
            crate::word::quoted(bait)
        };
        words.insert(at.min(words.len()), bait);
    }
    if dice.one_in(6) {
        words.insert(0, dice.pick(WRAPPERS).to_owned());
    }
    words.join(" ")
}

fn script(dice: &mut Dice, program: &str, scripts: &[&str], options: &[&str]) -> Vec<String> {
    let mut words = vec![program.to_owned()];
    for _ in 0..dice.roll(3) {
        words.push(dice.pick(options).to_owned());
    }
    words.push(crate::word::quoted(dice.pick(scripts)));
    words
}

fn find(dice: &mut Dice) -> Vec<String> {
    let mut words = vec!["find".to_owned(), ".".to_owned()];
    for _ in 0..dice.roll(4) {
        words.push(dice.pick(FIND).to_owned());
    }
    words
}

fn git(dice: &mut Dice) -> Vec<String> {
    let mut words = vec!["git".to_owned()];
    if dice.one_in(4) {
        words.push(
            dice.pick(&[
                "--no-pager",
                "-C .",
                "-P",
                "-c color.ui=always",
                "--no-optional-locks",
            ])
            .to_owned(),
        );
    }
    let at = dice.roll(READ.len());
    if let Some(read) = READ.get(at) {
        words.push(read.name.to_owned());
        options(dice, read.options, &mut words);
    }
    words
}

fn reader(dice: &mut Dice) -> Vec<String> {
    let names: Vec<&str> = readers::names().filter(|name| !ENDLESS.contains(name)).collect();
    let name = dice.pick(&names);
    let mut words = vec![name.to_owned()];
    if let Some(program) = readers::find(name) {
        options(dice, &[program.options], &mut words);
    }
    words
}

/// Adds some declared options, also shortened or in a cluster.
fn options(dice: &mut Dice, groups: &[Grammar], words: &mut Vec<String>) {
    let known: Vec<&str> = groups
        .iter()
        .flat_map(|group| group.0.split_whitespace())
        .collect();
    for _ in 0..dice.roll(4) {
        let option = dice.pick(&known);
        let name = option.trim_end_matches(['>', '!', ':', '?']);
        if WAITING.contains(&name) && dice.roll(4) > 0 || known.is_empty() || name == "-#" {
            continue;
        }
        let value = dice.pick(VALUES);
        let is_long = name.starts_with("--");
        words.push(match (option.len() > name.len(), is_long) {
            (true, true) => format!("{name}={value}"),
            (true, false) if dice.one_in(2) => format!("{name}{value}"),
            (true, false) => format!("{name} {value}"),
            (false, true) if dice.one_in(10) => name.get(..name.len() - 1).unwrap_or(name).to_owned(),
            _ => name.to_owned(),
        });
    }
}
