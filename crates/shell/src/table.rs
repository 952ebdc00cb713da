//! Programs that run the command in their arguments, with their options.

use windlass_core::tool::Category::{self, Admin, Read, Write};

use super::options::Grammar;

/// A program that runs the command after its options.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    pub(super) grammar: Grammar,
    /// Number of operands before the command.
    pub(super) operands: usize,
    pub(super) needs: Category,
    pub(super) kind: Kind,
}

/// Form in which a wrapper takes its command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The words are the command.
    Words,
    /// Assignments may precede the command.
    Environment,
    /// More arguments come from elsewhere.
    Arguments,
    /// The words are joined and passed to a shell.
    Text,
    /// The value of `-c` is passed to a shell; the words are something else.
    Option,
}

/// Launchers whose options are not known here. They need approval, and must not name a blocked command.
pub(super) const LAUNCHERS: &str = "at batch bwrap capsh catchsegv choom chpst chrt cpulimit daemonize \
    busctl cgexec dbus-run-session dbus-send devenv direnv docker doppler dotenv dotenvx dtach podman entr fakechroot fakeroot firejail gdbus gosu hyperfine i386 kubectl \
    linux32 linux64 ltrace mise nix nix-shell nsenter op numactl parallel perf pkexec prlimit proot proxychains proxychains4 reptyr rlwrap \
    run-parts runcon runuser screen setarch setpriv ssh-agent start-stop-daemon su-exec systemd-run taskset tini tmux \
    gnome-terminal konsole xterm torsocks valgrind vmtouch x86_64 xvfb-run ld.so ld-linux-x86-64.so.2 ld-linux-aarch64.so.1";

const fn row(
    name: &'static str,
    options: &'static str,
    operands: usize,
    needs: Category,
    kind: Kind,
) -> Wrapper {
    Wrapper {
        name,
        grammar: Grammar(options),
        operands,
        needs,
        kind,
    }
}

const TIME: &str = "-a -p -v -q -f: -o: --append --portability --verbose --quiet --format: --output:";
const XARGS: &str = "-0 -r -t -p -o -x -a: -d: -E: -I: -L: -n: -P: -s: -e? -i? -l? --null --no-run-if-empty --verbose \
    --interactive --exit --open-tty --replace --eof --max-lines --arg-file: --delimiter: --max-args: --max-procs: \
    --max-chars: --process-slot-var:";

/// Wrappers that the analysis looks through.
pub(super) const WRAPPERS: &[Wrapper] = &[
    row(
        "env",
        "-i -0 -v -u: -C: -S: --ignore-environment --null --debug --unset: --chdir: --split-string:",
        0,
        Read,
        Kind::Environment,
    ),
    row("nohup", "", 0, Write, Kind::Words),
    row(
        "nice",
        "-0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -n: --adjustment:",
        0,
        Read,
        Kind::Words,
    ),
    row(
        "ionice",
        "-t -c: -n: --ignore --class: --classdata:",
        0,
        Read,
        Kind::Words,
    ),
    row(
        "timeout",
        "-v -p -f -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:",
        1,
        Read,
        Kind::Words,
    ),
    row(
        "stdbuf",
        "-i: -o: -e: --input: --output: --error:",
        0,
        Read,
        Kind::Words,
    ),
    row("setsid", "-c -f -w --ctty --fork --wait", 0, Write, Kind::Words),
    // The bash keyword allows assignments before the command, and bash prefers it to the program of that
    // name.
    row("time", TIME, 0, Read, Kind::Environment),
    row("gtime", TIME, 0, Read, Kind::Words),
    row("xargs", XARGS, 0, Read, Kind::Arguments),
    row("gxargs", XARGS, 0, Read, Kind::Arguments),
    row(
        "sudo",
        "-A -b -B -E -e -H -i -K -k -l -n -P -S -s -V -v -C: -D: -g: -h: -p: -R: -r: -T: -t: -U: -u: --login --shell \
         --non-interactive --preserve-env --user: --group:",
        0,
        Admin,
        Kind::Environment,
    ),
    row("doas", "-n -s -L -u: -C:", 0, Admin, Kind::Words),
    row("cross-env", "", 0, Write, Kind::Environment),
    row("ccache", "-s -z -c -C -p -v", 0, Write, Kind::Words),
    row(
        "sccache",
        "-s -z --show-stats --start-server --stop-server",
        0,
        Write,
        Kind::Words,
    ),
    row("bear", "-o: -a --output: --append", 0, Write, Kind::Words),
    row("eatmydata", "", 0, Write, Kind::Words),
    row("faketime", "-f -m", 1, Write, Kind::Words),
    row("unbuffer", "-p", 0, Write, Kind::Words),
    row("busybox", "", 0, Read, Kind::Words),
    row("toybox", "", 0, Read, Kind::Words),
    row("chronic", "-v -e", 0, Read, Kind::Words),
    row(
        "watch",
        "-b -c -d? -e -g -t -w -r -n: -q: -s: --beep --color --no-title --errexit --chgexit --differences --interval:",
        0,
        Read,
        Kind::Text,
    ),
    row(
        "flock",
        "-e -o -s -x -n -u -F -v -w: -E: --exclusive --shared --nonblock --nb --unlock --close --no-fork --timeout: \
         --wait:",
        1,
        Write,
        Kind::Words,
    ),
    row(
        "chroot",
        "--skip-chdir --userspec: --groups:",
        1,
        Admin,
        Kind::Words,
    ),
    row(
        "unshare",
        "-m -i -p -n -u -U -C -T -r -c -f -R: -w: -S: -G: --mount --pid --net --user --fork --map-root-user --root: --wd:",
        0,
        Admin,
        Kind::Words,
    ),
    row(
        "strace",
        "-f -c -C -d -F -h -i -k -q -r -t -T -v -x -y -z -Z -n -w -Y -D -A -e: -o: -E: -p: -P: -s: -S: -u: -a: -X: -I: \
         -b: -O: --follow-forks --trace: --output:",
        0,
        Write,
        Kind::Environment,
    ),
    row(
        "su",
        "-l -m -p -P -f -c: -g: -G: -s: -w: --login --preserve-environment --command: --shell:",
        0,
        Admin,
        Kind::Option,
    ),
    row(
        "script",
        "-a -e -f -q -c: -E: -I: -o: -O: -T: -B: -m: --append --flush --quiet --return --command:",
        0,
        Write,
        Kind::Option,
    ),
];
