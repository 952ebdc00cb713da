//! The sandbox from outside: commands run in it and try to get out.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;
use windlass_sandbox::{Gap, Guard, Launch, LocalSockets, Network, Sandbox, SandboxPolicy};

/// Folders with something to protect, and a policy for them.
pub(crate) struct Scene {
    _folder: TempDir,
    root: PathBuf,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let scene = Self {
            _folder: folder,
            root,
        };
        for name in [
            "work",
            "work/.git",
            "work/.git/hooks",
            "temp",
            "home",
            "home/.ssh",
            "outside",
        ] {
            fs::create_dir(scene.at(name)).expect(name);
        }
        fs::write(scene.at("home/.ssh/key"), "SECRET").expect("a key");
        fs::write(scene.at("home/notes"), "notes").expect("notes");
        fs::write(scene.at("work/.env"), "SECRET").expect("an env");
        fs::write(scene.at("work/.git/config"), "[core]").expect("a config");
        fs::write(scene.at("outside/file"), "outside").expect("a file");
        open_up(&scene.root);
        scene
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn policy(&self) -> SandboxPolicy {
        let denied = [
            "home/.ssh",
            "home/.gnupg",
            "work/.env",
            "work/.windlass/config.toml",
            "work/.git/hooks",
        ];
        let denied: Vec<PathBuf> = denied.iter().map(|name| self.at(name)).collect();
        let mut policy = SandboxPolicy::for_workspace(&self.at("work"), &self.at("temp"), &denied);
        policy.read_only = vec![self.at("work/.git/config"), self.at("work/.mcp")];
        policy
    }

    /// The names in the workspace.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("work")).expect("a folder").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn run(&self, policy: SandboxPolicy, script: &str) -> String {
        self.run_in(policy, &self.at("work"), script)
    }

    fn run_in(&self, policy: SandboxPolicy, cwd: &Path, script: &str) -> String {
        output_text(&start(&helper(), &policy, &[], "/bin/sh", &["-c", script], cwd))
    }
}

/// Opens a folder to other users.
fn open_up(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("a mode");
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            open_up(&path);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("a mode");
        }
    }
}

/// Returns the path of the example next to this test: a test program cannot be the helper itself.
pub(crate) fn helper() -> PathBuf {
    let test = std::env::current_exe().expect("our path");
    let target = test.parent().and_then(Path::parent).expect("the target folder");
    target.join("examples/sandbox")
}

/// Runs a program in a sandbox of its own, with `before` in front of the program that creates it.
fn start(
    helper: &Path,
    policy: &SandboxPolicy,
    before: &[&str],
    program: &str,
    args: &[&str],
    cwd: &Path,
) -> Output {
    let policy = serde_json::to_string(policy).expect("a policy");
    let helper = helper.display().to_string();
    let words = [before, &[&helper, "run", &policy, "--", program], args].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(cwd).stdin(Stdio::null());
    let outside = Outside::get();
    command.env("OUTSIDE", outside.process.id().to_string());
    command.env("TERMINAL", &outside.terminal);
    command.output().expect("a command")
}

/// Things outside every sandbox: a process, a terminal, and a message queue.
struct Outside {
    process: Child,
    terminal: PathBuf,
    _master: fs::File,
}

impl Outside {
    fn get() -> &'static Self {
        static OUTSIDE: OnceLock<Outside> = OnceLock::new();
        OUTSIDE.get_or_init(|| {
            let master = fs::File::options().read(true).write(true).open("/dev/ptmx");
            let master = master.expect("a terminal");
            let numbers = fs::read_dir("/dev/pts").expect("terminals").flatten();
            let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let script = format!("import ctypes; ctypes.CDLL(None).msgget({QUEUE}, 0o1666)");
            let queue = Command::new("python3").args(["-c", &script]).status();
            assert!(queue.expect("python").success());
            // Ends by itself, after the tests.
            let process = Command::new("sleep")
                .arg0("windlass-test-outside")
                .arg("180")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            Self {
                process: process.expect("a process"),
                terminal: format!("/dev/pts/{}", numbers.max().expect("a number")).into(),
                _master: master,
            }
        })
    }
}

/// Key of the message queue.
const QUEUE: &str = "0x77696e64";

/// Runs a program in an existing sandbox.
pub(crate) fn run_with(
    sandbox: &Sandbox,
    program: &str,
    args: &[&str],
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> (String, Option<i32>) {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let null = fs::File::open("/dev/null").expect("a device");
    let arguments: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let start = Launch {
        program: Path::new(program),
        arguments: &arguments,
        cwd,
        env,
    };
    let streams = [null.as_fd(), writer.as_fd(), writer.as_fd()];
    let mut confined = sandbox.start(start, streams).expect("a command");
    drop(writer);
    let code = confined.wait().expect("an end").code();
    // Processes that were left behind hold the pipe.
    drop(confined);
    let mut said = Vec::new();
    reader.read_to_end(&mut said).expect("output");
    (String::from_utf8_lossy(&said).trim().to_owned(), code)
}

/// Returns the output of a command, both streams, without the last newline.
pub(crate) fn output_text(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// A script that prints `REACHED` if it gets out of the sandbox, and the guards without which it does.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    guards: &'static [Guard],
}

const fn case(name: &'static str, script: &'static str, guards: &'static [Guard]) -> Case {
    Case { name, script, guards }
}

pub(crate) const CASES: &[Case] = &[
    case(
        "write outside",
        "echo x > ../outside/new && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "change outside",
        "echo x >> ../outside/file && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "truncate outside",
        "python3 -c 'import os; os.truncate(\"../outside/file\", 0)' && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "remove outside",
        "rm ../outside/file && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "move out",
        "echo x > a; mv a ../outside/a && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "read denied",
        "grep -q SECRET ../home/.ssh/key && echo REACHED",
        &[Guard::Paths, Guard::Masks],
    ),
    case(
        "list denied",
        "ls ../home/.ssh | grep -q key && echo REACHED",
        &[Guard::Paths, Guard::Masks],
    ),
    case(
        "read denied by a link",
        "ln -s ../home/.ssh x; grep -q SECRET x/key && echo REACHED",
        &[Guard::Paths, Guard::Masks],
    ),
    case(
        "read denied by a hard link",
        "ln ../home/.ssh/key x && grep -q SECRET x && echo REACHED",
        &[Guard::Paths, Guard::Masks, Guard::Mounts],
    ),
    case(
        "read denied by the process root",
        "grep -q SECRET /proc/self/root$PWD/../home/.ssh/key && echo REACHED",
        &[Guard::Paths, Guard::Masks],
    ),
    case(
        "read denied by a working directory",
        "cd ../home/.ssh && grep -q SECRET key && echo REACHED",
        &[Guard::Paths, Guard::Masks],
    ),
    case(
        "make absent denied outside",
        "mkdir ../home/.gnupg && echo REACHED",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "read denied inside",
        "grep -q SECRET .env && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "read denied inside by a hard link",
        "ln .env x && grep -q SECRET x && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "move denied inside",
        "mv .env x && grep -q SECRET x && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "replace denied inside",
        "echo x > y; mv -f y .env && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "remove denied inside",
        "rm -f .env && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "make in denied inside",
        "echo x > .git/hooks/pre-commit && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "make absent denied inside",
        "chmod 700 .windlass; echo x > .windlass/config.toml && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "take away what holds a place",
        "rmdir .windlass && mkdir .windlass && echo x > .windlass/config.toml && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "change read-only inside",
        "echo x >> .git/config && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "make absent read-only inside",
        "rmdir .mcp; mkdir .mcp && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "move the folder of a denied path",
        "mv .git .old && mkdir .git && mkdir .git/hooks && echo x > .git/hooks/a && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "inherit by a session",
        "setsid sh -c '(echo x > ../outside/new) && echo REACHED' 2>&1",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "own namespace",
        "unshare -U true && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "unmount",
        "umount .env && echo REACHED",
        &[Guard::Filter, Guard::Capabilities, Guard::Paths],
    ),
    case("personality", "setarch -R true && echo REACHED", &[Guard::Filter]),
    case(
        "new privileges",
        "grep -q 'NoNewPrivs:.0' /proc/self/status && echo REACHED",
        &[Guard::NewPrivileges, Guard::Paths, Guard::Filter],
    ),
    case(
        "signal outside",
        "kill -0 $OUTSIDE && echo REACHED",
        &[Guard::Paths, Guard::Processes],
    ),
    case(
        "see processes outside",
        "grep -aq windlass-test-outsid[e] /proc/[0-9]*/cmdline && echo REACHED",
        &[Guard::Processes],
    ),
    case(
        "change modes outside",
        "chmod 644 ../outside/file && echo REACHED",
        &[Guard::Mounts],
    ),
    case(
        "change times outside",
        "touch -d @0 ../outside/file && echo REACHED",
        &[Guard::Mounts],
    ),
    case(
        "change attributes outside",
        "python3 -c 'import os; os.setxattr(\"../outside/file\", \"user.x\", b\"x\")' && echo REACHED",
        &[Guard::Mounts],
    ),
    case(
        "change modes of protected files",
        "chmod 777 .git/config && echo REACHED",
        &[Guard::Masks],
    ),
    case(
        "programs that run as their owner",
        "cp /bin/true t && chmod u+s t && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "files made to run as their owner",
        "python3 -c 'import os; os.open(\"t\", os.O_CREAT | os.O_WRONLY, 0o4755)' && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "limits of others",
        "python3 -c 'import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)' && echo REACHED",
        &[Guard::Filter, Guard::Capabilities, Guard::Paths],
    ),
    case(
        "raw pairs",
        "python3 -c 'import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)' && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "messages between processes",
        "ipcs -q | grep -q 0x77696e64 && echo REACHED",
        &[Guard::Ipc],
    ),
    case(
        "terminals of the user",
        "test -e \"$TERMINAL\" && echo REACHED",
        &[Guard::Mounts],
    ),
    case(
        "environment of the parent",
        "tr -d '\\0' < /proc/$PPID/environ >/dev/null && echo REACHED",
        &[Guard::Paths, Guard::Capabilities],
    ),
    case(
        "raw disks",
        "for d in /dev/[a-z]*; do test -b $d && head -c 1 $d > /dev/null && echo REACHED; done; true",
        &[Guard::Paths, Guard::Mounts],
    ),
    case(
        "foreign numbers",
        "python3 -c 'import ctypes; ctypes.CDLL(None).syscall(0x40000027)' && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "rings",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); c.syscall(425, 1, 0); exit(ctypes.get_errno() == 1)' && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "memory of others",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); exit(c.process_vm_readv(0, 0, 0, 0, 0, 0) != 0 and ctypes.get_errno() == 1)' && echo REACHED",
        &[Guard::Filter],
    ),
    case(
        "trace",
        "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)' && echo REACHED",
        &[Guard::Filter],
    ),
];

/// Cases that the system allows only to root, even without a sandbox.
const NEED_ROOT: [&str; 3] = ["raw disks", "unmount", "environment of the parent"];

/// SAFE-4: every way out is closed, for commands and their children, and each case fails if its guard is off.
#[test]
fn every_way_out_is_closed() {
    let mut wrong = Vec::new();
    for Case { name, script, guards } in CASES {
        let scene = Scene::new();
        let with = scene.run(scene.policy(), script);
        if with.contains("REACHED") || with.contains("sandbox could not") {
            wrong.push(format!("{name}: {with}"));
        }
        let scene = Scene::new();
        let policy = guards
            .iter()
            .fold(scene.policy(), |policy, guard| policy.without_for_tests(*guard));
        let without = scene.run(policy, script);
        let missing = NEED_ROOT.contains(name) && !as_root();
        if !without.contains("REACHED") && !missing {
            wrong.push(format!("{name}, although its guard is off: {without}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn as_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("Uid:\t0"))
}

/// SAFE-4: every way out is closed for a user without privileges, too.
#[test]
fn every_way_out_is_closed_for_nobody() {
    if !as_root() {
        return;
    }
    // The helper must be where that user can start it.
    let place = tempfile::tempdir().expect("a folder");
    open_up(place.path());
    let program = place.path().join("sandbox");
    // Copied by another process: a file that we write ourselves could be busy in a child of another test.
    let copied = Command::new("cp").arg(helper()).arg(&program).status();
    assert!(copied.expect("a command").success());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut wrong = Vec::new();
    for Case { name, script, .. } in CASES {
        let scene = Scene::new();
        let before = ["runuser", "-u", "nobody", "--"];
        let run = |script| {
            let args = ["-c", script];
            start(
                &program,
                &scene.policy(),
                &before,
                "/bin/sh",
                &args,
                &scene.at("work"),
            )
        };
        let output = run(script);
        let said = output_text(&output);
        if said.contains("REACHED") || said.contains("sandbox could not") {
            wrong.push(format!("{name}: {said}"));
        }
        assert_eq!(output_text(&run("echo x > new && cat new")), "x");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// SAFE-10: a command has no controlling terminal, and the terminals it makes are its own.
#[test]
fn there_is_no_terminal() {
    let scene = Scene::new();
    let policy = serde_json::to_string(&scene.policy()).expect("a policy");
    let script = "(echo x > /dev/tty) && echo REACHED; ls /dev/pts; \
        python3 -c 'import os, pty; os.write(pty.openpty()[1], b\"x\"); print(os.listdir(\"/dev/pts\"))'";
    let line = format!("{} run '{policy}' -- /bin/sh -c \"$SCRIPT\"", helper().display());
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("SCRIPT", script)
        .current_dir(scene.at("work"))
        .stdin(Stdio::null())
        .output();
    let said = output_text(&output.expect("script"));
    assert!(
        !said.contains("REACHED") && said.contains("No such device"),
        "{said}"
    );
    assert!(
        said.contains("['0', 'ptmx']") || said.contains("['ptmx', '0']"),
        "{said}"
    );
}

/// SAFE-4: a command that crashes leaves no core file behind.
#[test]
fn there_are_no_core_files() {
    let scene = Scene::new();
    assert_eq!(scene.run(scene.policy(), "ulimit -Hc").trim(), "0");
}

/// SAFE-4: ordinary commands still work.
#[test]
fn ordinary_work_continues() {
    let scene = Scene::new();
    let script = "set -e; mkdir -p a/b; echo one > a/b/c; mv a/b/c a/d; ln a/d e; ln -s d a/f; cat a/f e > /dev/null; \
        rm -r a; echo two > ../temp/x; cat ../temp/x ../home/notes; cat .git/config; ls .. > /dev/null; \
        python3 -c 'import multiprocessing; multiprocessing.Semaphore()'; (sleep 0 & wait); git init -q new; \
        git -C new status -s; stat -c %A .windlass";
    assert_eq!(scene.run(scene.policy(), script), "two\nnotes[core]dr-xr-xr-x");
    assert!(!scene.at("work/.windlass").exists() && !scene.at("work/.mcp").exists());
}

/// SAFE-4: the exit code and the arguments pass through; a missing program is reported as a shell reports it.
#[test]
fn programs_are_what_they_are_without() {
    let scene = Scene::new();
    let sandbox = Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    let code = |program: &str, args: &[&str]| {
        run_with(&sandbox, program, args, &scene.at("work"), &BTreeMap::new()).1
    };
    assert_eq!(
        code("/bin/sh", &["-c", "exit $#", "sh", "a b", "", "--"]),
        Some(3)
    );
    assert_eq!(code("/no/such/program", &[]), Some(127));
    assert_eq!(
        code(&scene.at("work/.git/config").display().to_string(), &[]),
        Some(126)
    );
    let output = Command::new(helper())
        .args(["__sandbox", "{}", "--", "true"])
        .output()
        .expect("a command");
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(
        output_text(&output),
        "windlass: the sandbox helper got arguments that it does not understand"
    );
}

/// SAFE-4: the directory that a model chooses widens nothing, and the masks apply to relative paths from it.
#[test]
fn the_working_directory_widens_nothing() {
    let scene = Scene::new();
    let here = |cwd: &str, script: &str| scene.run_in(scene.policy(), &scene.at(cwd), script);
    assert!(here("outside", "echo x > new").contains("Read-only file system"));
    assert!(here("work/.git", "echo x > hooks/a").contains("Read-only file system"));
    assert!(here("work/.git/hooks", "echo x > a").contains("Read-only file system"));
    assert!(!here("home/.ssh", "cat key").contains("SECRET"));
    assert_eq!(here("work/.git", "echo x > new; cat new"), "x");
}

/// SAFE-4: a folder above a denied path cannot be moved away.
#[test]
fn folders_above_a_denied_path_are_pinned() {
    let script = "mv .git old && echo REACHED";
    let scene = Scene::new();
    assert!(!scene.run(scene.policy(), script).contains("REACHED"));
    let scene = Scene::new();
    let loose = scene.policy().without_for_tests(Guard::Pins);
    assert!(scene.run(loose, script).contains("REACHED"));
}

/// SAFE-4: files that leaked into the helper do not reach the command.
#[test]
fn inherited_files_are_closed() {
    let scene = Scene::new();
    let run = |policy: SandboxPolicy| {
        let policy = serde_json::to_string(&policy).expect("a policy");
        let mut command = Command::new("/bin/bash");
        command
            .args(["-c", "exec 9< \"$1\"; shift; exec \"$@\"", "bash"])
            .arg(scene.at("home/.ssh/key"))
            .arg(helper())
            .args(["run", &policy, "--", "/bin/sh", "-c", "cat <&9"]);
        output_text(&command.current_dir(scene.at("work")).output().expect("a command"))
    };
    assert!(!run(scene.policy()).contains("SECRET"));
    assert!(run(scene.policy().without_for_tests(Guard::Descriptors)).contains("SECRET"));
}

const CONNECT: &str = "
import socket, sys
kind, port = sys.argv[1], sys.argv[2]
try:
    if kind == 'tcp': socket.create_connection(('127.0.0.1', int(port)), 2)
    elif kind == 'udp': socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', int(port)))
    elif kind == 'route': socket.create_connection(('192.0.2.1', 9), 2)
    elif kind == 'own':
        server = socket.create_server(('127.0.0.1', 0))
        socket.create_connection(server.getsockname(), 2)
    elif kind == 'packet': socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
    elif kind == 'unix': socket.socket(socket.AF_UNIX).connect(port)
    elif kind == 'abstract': socket.socket(socket.AF_UNIX).connect('\\0' + port)
    elif kind == 'pair':
        a, b = socket.socketpair(); a.send(b'x'); b.recv(1)
    elif kind == 'datagrams': socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    print('REACHED')
except OSError as error:
    print('refused', error.errno)
";

/// SAFE-4: with the network off a command reaches only itself, and no program that listens on a path; with it
/// on there is the internet, and still no access to such programs.
#[test]
fn the_network_is_off_unless_allowed() {
    let scene = Scene::new();
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let live = tcp.local_addr().expect("an address").port().to_string();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    udp.set_nonblocking(true).expect("a mode");
    let datagrams = udp.local_addr().expect("an address").port().to_string();
    let local = scene.at("work/socket");
    let _local = UnixListener::bind(&local).expect("a socket");
    let local = local.display().to_string();
    let name = format!("windlass-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("a socket");
    let run = |policy: SandboxPolicy, kind: &str, port: &str| {
        let args = ["-c", CONNECT, kind, port];
        let output = start(
            &helper(),
            &policy,
            &[],
            "/usr/bin/python3",
            &args,
            &scene.at("work"),
        );
        match kind {
            "udp" => udp
                .recv(&mut [0])
                .map_or("nothing".to_owned(), |_| "REACHED".to_owned()),
            _ => output_text(&output),
        }
    };
    let on = || SandboxPolicy {
        network: Network::On,
        ..scene.policy()
    };
    let open = || SandboxPolicy {
        local_sockets: LocalSockets::All,
        ..scene.policy()
    };
    let no_namespace = || scene.policy().without_for_tests(Guard::OwnNetwork);
    let unfiltered = || {
        no_namespace()
            .without_for_tests(Guard::Filter)
            .without_for_tests(Guard::Paths)
    };
    let cases = [
        ("tcp", &live, "refused 111", "REACHED", "refused 111", "refused 1"),
        ("udp", &datagrams, "nothing", "REACHED", "nothing", "nothing"),
        ("route", &live, "refused 101", "", "refused 101", "refused 1"),
        ("own", &live, "REACHED", "REACHED", "REACHED", "refused 1"),
        (
            "packet",
            &live,
            "refused 1",
            "refused 1",
            "refused 1",
            "refused 1",
        ),
        ("unix", &local, "refused 1", "refused 1", "REACHED", "refused 1"),
        (
            "abstract",
            &name,
            "refused 1",
            "refused 1",
            "refused 111",
            "refused 1",
        ),
        ("pair", &live, "REACHED", "REACHED", "REACHED", "REACHED"),
        (
            "datagrams",
            &live,
            "refused 1",
            "refused 1",
            "REACHED",
            "refused 1",
        ),
    ];
    for (kind, port, off, with_network, with_local, without_namespace) in cases {
        assert_eq!(run(scene.policy(), kind, port), off, "{kind}, off");
        if !with_network.is_empty() {
            assert_eq!(run(on(), kind, port), with_network, "{kind}, on");
        }
        assert_eq!(run(open(), kind, port), with_local, "{kind}, local sockets");
        assert_eq!(
            run(no_namespace(), kind, port),
            without_namespace,
            "{kind}, no namespace"
        );
        if !["packet", "route"].contains(&kind) {
            let said = run(unfiltered(), kind, port);
            assert_eq!(said, "REACHED", "{kind}, although its guard is off");
        }
    }
}

/// SAFE-4: a child that starts the helper with a wider policy stays in the narrower sandbox.
#[test]
fn a_second_helper_widens_nothing() {
    let scene = Scene::new();
    let wide = SandboxPolicy {
        read: vec!["/".into()],
        write: vec!["/".into()],
        network: Network::On,
        ..SandboxPolicy::default()
    };
    let script = "cat ../home/.ssh/key; echo x > ../outside/new; echo end";
    let wide = serde_json::to_string(&wide).expect("a policy");
    let args = ["run", &wide, "--", "/bin/sh", "-c", script];
    let inner = helper().display().to_string();
    let output = start(&helper(), &scene.policy(), &[], &inner, &args, &scene.at("work"));
    let said = output_text(&output);
    assert!(!said.contains("SECRET"), "{said}");
    assert!(!scene.at("outside/new").exists());
}

/// SAFE-4: a denied path that cannot be protected, because it is a link, is reported.
#[test]
fn gaps_are_output_text() {
    let scene = Scene::new();
    let sandbox = Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    assert_eq!(sandbox.gaps(), []);
    fs::remove_file(scene.at("work/.env")).expect("removed");
    symlink(scene.at("home/notes"), scene.at("work/.env")).expect("a link");
    let sandbox = Sandbox::with_helper(scene.policy(), &helper()).expect("a sandbox");
    assert_eq!(sandbox.gaps(), [Gap::Open(scene.at("work/.env"))]);
    let args = ["-c", "cat .env ../home/notes"];
    let (said, _) = run_with(&sandbox, "/bin/sh", &args, &scene.at("work"), &BTreeMap::new());
    assert!(!said.contains("notes\n") && said.contains("denied"), "{said}");
}

/// SAFE-4: without namespaces existing paths are still protected, and unprotected ones are reported.
#[test]
fn without_namespaces_there_are_gaps() {
    let scene = Scene::new();
    let policy = scene.policy().without_for_tests(Guard::Namespaces);
    let sandbox = Sandbox::with_helper(policy, &helper()).expect("a sandbox");
    let open = ["work/.windlass/config.toml", "work/.mcp"].map(|name| Gap::Open(scene.at(name)));
    let frozen = ["work", "work/.git"].map(|name| Gap::Frozen(scene.at(name)));
    for gap in open.iter().chain(&frozen) {
        assert!(sandbox.gaps().contains(gap), "{gap:?} in {:?}", sandbox.gaps());
    }
    let run = |script: &str| {
        let args = ["-c", script];
        run_with(&sandbox, "/bin/sh", &args, &scene.at("work"), &BTreeMap::new()).0
    };
    fs::create_dir(scene.at("work/src")).expect("a folder");
    assert_eq!(run("echo x > src/new; cat src/new ../home/notes"), "x\nnotes");
    for script in [
        "cat .env",
        "cat ../home/.ssh/key",
        "ls ../home/.ssh",
        "ls .git/hooks",
        "echo x > .git/hooks/a",
        "echo x >> .git/config",
        "echo x > new",
    ] {
        assert!(
            run(script).contains("Permission denied"),
            "{script}: {}",
            run(script)
        );
    }
    assert_eq!(run("cat .git/config"), "[core]");
}
