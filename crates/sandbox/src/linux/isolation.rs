//! The parts of the machine that commands have for themselves, as a command in the sandbox sees them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;

use super::Confinement;
use crate::{Isolation, Launch};

/// Namespaces by their names in `/proc`, and what each separates.
const NAMESPACES: [(&str, &str); 5] = [
    ("mnt", "files"),
    ("pid", "processes"),
    ("ipc", "shared memory"),
    ("net", "network"),
    ("user", "users"),
];

/// Prints each namespace, a device that only the machine's folder has, and a process id, which is small in a
/// namespace of its own.
const SCRIPT: &str = "for n in mnt pid ipc net user; do echo \"$n $(readlink /proc/self/ns/$n)\"; done; \
                      [ -e /dev/kmsg ] || [ -e /dev/mem ] && echo /dev shared || echo /dev own; \
                      [ \"$(readlink /proc/self)\" -lt 1000 ] && echo /proc own || echo /proc shared";

/// Runs a command in the sandbox and compares what it sees with what this process sees. Its output goes to a file
/// below `scratch`.
pub(super) fn of(sandbox: &Confinement, cwd: &Path, scratch: &Path) -> io::Result<Vec<Isolation>> {
    let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let start = Launch {
        program: Path::new("/bin/sh"),
        arguments: &["-c".as_ref(), SCRIPT.as_ref()],
        cwd,
        env: &environment,
    };
    let mut output = tempfile::tempfile_in(scratch)?;
    let nothing = File::open("/dev/null")?;
    let streams = [nothing.as_fd(), output.as_fd(), nothing.as_fd()];
    sandbox.start(start, streams)?.wait()?;
    let mut text = String::new();
    output.rewind()?;
    output.read_to_string(&mut text)?;
    let inside: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let namespaces = NAMESPACES.iter().map(|(name, what)| {
        let outside = fs::read_link(format!("/proc/self/ns/{name}"));
        let outside = outside.map(|link| link.display().to_string()).unwrap_or_default();
        let seen = inside.get(name).copied().unwrap_or_default();
        Isolation {
            what,
            is_own: !seen.is_empty() && seen != outside,
        }
    });
    let folders = ["/dev", "/proc"].map(|what| Isolation {
        what,
        is_own: inside.get(what) == Some(&"own"),
    });
    let temp = Isolation {
        what: "/tmp",
        is_own: sandbox.temp().is_some_and(|temp| temp == Path::new("/tmp")),
    };
    Ok(namespaces.chain([temp]).chain(folders).collect())
}
