//! Programs that show the state of the system, and programs that print values.

use super::Operands::{Any, Most, Only};
use super::Otherwise::{Harmless, Runs, Writes};
use super::{ReadProgram, row};

const PS: &str = "-A -a -c -d -e -f -F -H -j -l -L -m -M -N -r -T -V -w -x -y -Z -C: -G: -g: -O: -o: -p: -q: -s: -t: -u: \
    -U: --Group: --User: --cols: --columns: --context --cumulative --deselect --forest --format: --group: --headers \
    --lines: --no-headers --no-heading --pid: --ppid: --quick-pid: --rows: --sid: --sort: --tty: --user: --width:";
const LSOF: &str =
    "-a -b -C -F? -h -H -i? -l -L -M -n -N -O -P -R -t -T? -U -v -V -w -X -z -c: -d: -g: -p: -s? -u:";

pub(super) const PROGRAMS: &[ReadProgram] = &[
    row(
        "date",
        "-d: -I? -j -n -R -r: -u --date: --iso-8601? --reference: --resolution --rfc-2822 --rfc-3339: --rfc-email \
        --universal --utc",
        Only('+'),
        Writes,
    ),
    row(
        "cal",
        "-1 -3 -h -j -m -n: -s -S -w -y -Y --color? --julian --monday --months: --one --sunday --three --twelve --week \
        --year",
        Any,
        Harmless,
    ),
    row(
        "uname",
        "-a -i -m -n -o -p -r -s -v --all --hardware-platform --kernel-name --kernel-release --kernel-version --machine \
        --nodename --operating-system --processor",
        Most(0),
        Writes,
    ),
    row(
        "hostname",
        "-a -A -d -f -i -I -s -V -y --alias --all-fqdns --all-ip-addresses --domain --fqdn --ip-address --long \
        --short",
        Most(0),
        Writes,
    ),
    row(
        "id",
        "-a -A -F -g -G -n -p -P -r -u -z -Z --context --group --groups --name --real --user --zero",
        Any,
        Harmless,
    ),
    row("tty", "-s --silent --quiet", Any, Writes),
    row(
        "which",
        "-a -s --all --skip-alias --skip-dot --skip-functions --skip-tilde --tty-only",
        Any,
        Harmless,
    ),
    row(
        "who",
        "-a -b -d -H -l -m -p -q -r -s -t -T -u -w --all --boot --count --dead --heading --login --lookup --mesg \
        --message --process --runlevel --short --time --users --writable",
        Any,
        Harmless,
    ),
    row(
        "w",
        "-f -h -i -o -s -u -V --from --ip-addr --no-current --no-header --old-style --short",
        Any,
        Harmless,
    ),
    row("uptime", "-p -s -V --pretty --since", Most(0), Writes),
    row(
        "free",
        "-b -c: -g -h -k -l -m -s: -t -v -w --bytes --count: --gibi --giga --human --kibi --kilo --lohi --mebi --mega \
        --seconds: --si --tebi --tera --total --wide",
        Any,
        Harmless,
    ),
    row("nproc", "--all --ignore:", Most(0), Writes),
    row("ps", PS, Any, Harmless),
    row(
        "pgrep",
        "-a -c -d: -f -F: -g: -G: -i -l -L -n -o -O: -P: -r: -s: -t: -u: -U: -v -w -x --count --delimiter: --euid: \
        --exact --full --ignore-case --inverse --lightweight --list-full --list-name --newest --ns: --nslist: --oldest \
        --older: --parent: --pgroup: --pidfile: --runstates: --session: --terminal: --uid:",
        Any,
        Writes,
    ),
    row("pidof", "-c -o: -q -s -S: -x -z", Any, Harmless),
    row("lsof", LSOF, Any, Writes),
    row(
        "lsblk",
        "-a -A -b -d -D -e: -E: -f -h -i -I: -J -l -m -M -n -N -o: -O -p -P -r -s -S -t -T? -V -w: -x: -y -z --all --bytes \
        --fs --json --list --nodeps --noheadings --output: --output-all --pairs --paths --perms --raw --topology --tree?",
        Any,
        Harmless,
    ),
    row(
        "lscpu",
        "-a -b -B -c -C? -e? -J -p? -V -x -y --all --bytes --caches? --extended? --hex --json --offline --online \
        --parse? --physical",
        Any,
        Writes,
    ),
    row(
        "lspci",
        "-b -D -F: -i: -k -m -n -N -P -q -s: -t -v -V -x -d:",
        Most(0),
        Writes,
    ),
    row("lsusb", "-d: -s: -t -v -V --tree --verbose", Most(0), Writes),
    row(
        "vmstat",
        "-a -d -D -f -m -n -s -S: -t -w --active --disk --disk-sum --forks --one-header --slabs --stats --timestamp \
        --unit: --wide",
        Any,
        Harmless,
    ),
    row(
        "iostat",
        "-c -d -g: -h -j: -k -m -N -p? -s -t -V -x -y -z --dec? --human",
        Any,
        Writes,
    ),
    row(
        "dmesg",
        "-d -e -F: -f: -h -k -l: -L? -P -r -S -t -T -u -V -w -x --color? --ctime --decode --facility: --follow \
        --json --kernel --level: --nopager --notime --raw --reltime --show-delta --since: --until: \
        --time-format: --userspace",
        Most(0),
        Writes,
    ),
    row(
        "ss",
        "-0 -4 -6 -a -e -f: -h -H -i -l -m -n -o -O -p -Q -r -s -S -t -T -u -w -x -Z --all --extended --family: --info \
        --ipv4 --ipv6 --listening --memory --no-header --numeric --oneline --options --processes --raw --resolve --sctp \
        --summary --tcp --udp --unix",
        Any,
        Writes,
    ),
    row(
        "netstat",
        "-4 -6 -a -e -g -i -l -n -o -p -r -s -t -u -v -w -W -x --all --extend --listening --numeric --program --route \
        --statistics --tcp --udp --unix --wide",
        Any,
        Writes,
    ),
    row(
        "top",
        "-b -c -d: -e: -E: -H -i -n: -o: -O -p: -S -u: -U: -w? -1",
        Most(0),
        Writes,
    ),
    row("whereis", "-b -B: -f -l -m -M: -s -S: -u", Any, Harmless),
    row(
        "lsb_release",
        "-a -c -d -i -r -s -v --all --codename --description --id --release --short",
        Most(0),
        Writes,
    ),
    row("getconf", "-a -v:", Any, Harmless),
    row("getent", "-i -s: --no-idn --service:", Any, Writes),
    row(
        "locale",
        "-a -c -k -m -v --all-locales --category-name --charmaps --keyword-name --verbose",
        Any,
        Harmless,
    ),
    row("printenv", "-0 --null", Any, Harmless),
    row(
        "dpkg-query",
        "-l -L -s -S -W -f: -p --control-list --list --listfiles --print-avail --search --show --showformat: \
        --status",
        Any,
        Writes,
    ),
    row(
        "apt-cache",
        "-a -f -g -i -n -q --all-versions --full --generate --installed --names-only --no-all-versions --quiet",
        Any,
        Runs,
    ),
    row(
        "apropos",
        "-a -d -e -l -L: -m: -M: -r -s: -v -w --and --exact --long --regex --section: --wildcard",
        Any,
        Runs,
    ),
    row(
        "seq",
        "-f: -s: -t: -w -# --equal-width --format: --separator:",
        Any,
        Harmless,
    ),
    row("sleep", "", Any, Harmless),
    row("true", "", Any, Harmless),
    row("factor", "-h --exponents", Any, Harmless),
    row("expr", "", Any, Harmless),
    row(
        "numfmt",
        "-d: -z --debug --delimiter: --field: --format: --from: --from-unit: --grouping --header? --invalid: --padding: \
        --round: --suffix: --to: --to-unit: --zero-terminated",
        Any,
        Harmless,
    ),
    row("zipinfo", "-1 -2 -h -l -m -s -t -T -v -z -C", Any, Writes),
];
