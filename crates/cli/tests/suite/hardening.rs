//! Attacks on this program itself: on its process, on the files that it reads and writes, and on its temporary files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, Workspace, eventually};

use super::support::{with_replies, workspace};

const SECRET: &str = "hunter2-do-not-tell";

fn bash(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command }))
}

fn ran(replies: impl IntoIterator<Item = Reply>) -> (SimServer, Workspace) {
    let replies: Vec<Reply> = replies.into_iter().chain([Reply::text("done")]).collect();
    with_replies(Protocol::Anthropic, replies)
}

/// Returns everything that the model was told.
fn told(sim: &SimServer) -> String {
    sim.requests()
        .iter()
        .map(|request| format!("{request:?}"))
        .collect()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A command as an ordinary user, also if the tests run as root.
fn as_ordinary_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
        .arg(program);
    command
}

/// SAFE-10: another process of the same user reads neither the environment nor the memory of a running Windlass, and
/// a crash leaves no core file.
#[test]
fn the_process_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let binary = folder.path().join("windlass");
    fs::copy(env!("CARGO_BIN_EXE_windlass"), &binary).unwrap();
    let start = |program: &Path, arguments: &[&str]| {
        as_ordinary_user(program)
            .args(arguments)
            .env("HOME", folder.path())
            .env("MY_API_KEY", SECRET)
            .stdout(Stdio::null())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let read = |id: u32, name: &str| {
        let file = format!("/proc/{id}/{name}");
        let output = as_ordinary_user(Path::new("/bin/cat"))
            .arg(file)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // The control: an ordinary process can be read.
    let mut other = start(Path::new("/bin/cat"), &[]);
    assert!(eventually(PATIENCE, || read(other.id(), "environ").contains(SECRET)));
    let mut ours = start(&binary, &["sim", "serve"]);
    let has_limit = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", ours.id())).unwrap_or_default();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"))
            .unwrap_or_default();
        core.split_whitespace().skip(4).take(2).eq(["0", "0"])
    };
    let limited = eventually(PATIENCE, has_limit);
    let environ = read(ours.id(), "environ");
    let maps = read(ours.id(), "maps");
    for child in [&mut other, &mut ours] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(limited, "the hard limit of core files is 0");
    assert_eq!((environ.as_str(), maps.as_str()), ("", ""));
}

/// SAFE-10, SAFE-3: instructions in a project are not read through links, whatever they lead to.
#[test]
fn instructions_are_not_read_through_links() {
    for target in [
        "/proc/self/environ",
        "USER/.netrc",
        "USER/.ssh/id",
        "HOME/config/keys.toml",
        "../user/notes.txt",
    ] {
        for name in ["AGENTS.md", "CLAUDE.md", "AGENTS.override.md"] {
            let (sim, workspace) = ran([]);
            let user = workspace.user_home();
            for file in [".netrc", ".ssh/id", "notes.txt"] {
                put(&user.join(file), SECRET);
            }
            put(
                &workspace.home().join("config/keys.toml"),
                &format!("[keys]\nx = \"{SECRET}\"\n"),
            );
            let keys = workspace.home().join("config/keys.toml");
            fs::set_permissions(keys, fs::Permissions::from_mode(0o600)).unwrap();
            let target = target
                .replace("USER", &user.display().to_string())
                .replace("HOME", &workspace.home().display().to_string());
            symlink(&target, workspace.path().join(name)).unwrap();
            let output = workspace.run(&["exec", "hi"]).env("MY_API_KEY", SECRET).output();
            output.assert_code(0);
            assert!(!told(&sim).contains(SECRET), "{target} as {name}: {output}");
            assert!(
                output.stderr.contains(&format!("{name}: not read")),
                "{target}: {output}"
            );
        }
    }
    let (sim, workspace) = ran([]);
    workspace.write("docs/agents.md", "Prefer tabs.");
    symlink("docs/agents.md", workspace.path().join("AGENTS.md")).unwrap();
    workspace.run(&["exec", "hi"]).output().assert_code(0);
    assert!(
        told(&sim).contains("Prefer tabs."),
        "a link inside the project is followed"
    );
}

/// SAFE-10: a pipe or a device in the place of instructions neither blocks nor floods the start.
#[test]
fn instructions_that_are_no_files_are_skipped() {
    let (_sim, workspace) = ran([]);
    let made = Command::new("mkfifo")
        .arg(workspace.path().join("AGENTS.md"))
        .status()
        .unwrap();
    assert!(made.success());
    workspace.run(&["exec", "hi"]).output().assert_code(0);
}

/// SAFE-10: nothing of ours is in the shared temporary folder: an ephemeral session works without one.
#[test]
fn an_ephemeral_session_needs_no_shared_folder() {
    let (_sim, workspace) = ran([bash("true")]);
    let run = workspace
        .run(&["exec", "--ephemeral", "hi"])
        .env("TMPDIR", "/nowhere/at/all");
    run.output().assert_code(0);
    let left = fs::read_dir(workspace.home().join("state/ephemeral"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

/// SAFE-10, SAFE-3: our own files are denied where they really are: linked settings and tools, and a settings file
/// given by name.
#[test]
fn linked_own_files_are_denied() {
    let calls = [
        bash("cat dotfiles/config.toml dotfiles/tools.yaml given.toml"),
        bash(
            "sh -c 'echo \"x = 1\" >> dotfiles/config.toml; echo x >> dotfiles/tools.yaml; echo x >> given.toml'",
        ),
        Reply::call("read_file", json!({ "path": "dotfiles/config.toml" })),
        Reply::call("write_file", json!({ "path": "given.toml", "content": "x" })),
    ];
    let (sim, workspace) = ran(calls);
    let config = workspace.config_file();
    let text = format!("# {SECRET}\n{}", fs::read_to_string(&config).unwrap());
    let linked = workspace.write("dotfiles/config.toml", &text);
    fs::remove_file(&config).unwrap();
    symlink(linked, &config).unwrap();
    let tools = format!("# {SECRET}\ntools: []\n");
    let linked = workspace.write("dotfiles/tools.yaml", &tools);
    symlink(linked, workspace.home().join("config/tools.yaml")).unwrap();
    workspace.write("given.toml", &text);
    let output = workspace.run(&["exec", "--config", "given.toml", "go"]).output();
    assert!(!told(&sim).contains(SECRET), "{output}");
    assert_eq!(workspace.read("dotfiles/config.toml"), text, "{output}");
    assert_eq!(workspace.read("dotfiles/tools.yaml"), tools, "{output}");
    assert_eq!(workspace.read("given.toml"), text, "{output}");
}

/// Files with secrets in a home folder.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".azure/tokens.json",
    ".config/gcloud/credentials.db",
    ".config/gh/hosts.yml",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".mozilla/firefox/x/cookies.sqlite",
    ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Cookies",
];

/// SAFE-3: credentials, histories and browser profiles are denied by default, to commands and to file tools.
#[test]
fn credentials_are_denied_by_default() {
    let all: Vec<String> = SECRETS.iter().map(|name| format!("~/{name}")).collect();
    let command = format!(
        "cat {}; cat ~/.config/gh/../gh/hosts.yml; echo plain: $(cat ~/plain.txt)",
        all.join(" ")
    );
    for is_open in [false, true] {
        let mut calls = vec![bash(&command)];
        calls.extend(
            SECRETS
                .iter()
                .map(|name| Reply::call("read_file", json!({ "path": format!("~/{name}") }))),
        );
        let (sim, workspace) = ran(calls);
        for name in SECRETS {
            put(&workspace.user_home().join(name), SECRET);
        }
        put(&workspace.user_home().join("plain.txt"), "can be read");
        let open: &[&str] = if is_open {
            &["-c", "security.denied_paths=[]"]
        } else {
            &[]
        };
        let output = workspace.run(&["exec", "go"]).args(open).output();
        assert!(told(&sim).contains("plain: can be read"), "{output}");
        assert_eq!(told(&sim).contains(SECRET), is_open, "{output}");
    }
}

/// SAFE-3: files with a denied name are hidden from `windlass sandbox` and from commands: in folders of that name, in
/// third-party folders, however deep, and among more than 20,000 others. A link to one is no way around.
#[test]
fn denied_names_are_hidden_everywhere() {
    let (sim, workspace) = ran([bash(
        "cat .env */.env */*/.env deep/*/*/*/*/*/*/*/.env service/.env.d/key link",
    )]);
    let hidden = [
        ".env",
        "app/.env",
        "node_modules/x/.env",
        "target/debug/.env",
        "deep/1/2/3/4/5/6/7/.env",
        "service/.env.d/key",
    ];
    for name in hidden {
        workspace.write(name, SECRET);
    }
    symlink("app/.env", workspace.path().join("link")).unwrap();
    workspace.write(".env.example", "an example");
    fs::create_dir(workspace.path().join("0")).unwrap();
    for number in 0..20_500 {
        fs::File::create(workspace.path().join(format!("0/{number}"))).unwrap();
    }
    let output = workspace.run(&["exec", "go"]).output();
    assert!(!told(&sim).contains(SECRET), "{output}");
    for name in hidden {
        let output = workspace.run(&["sandbox", "--", "cat", name]).output();
        assert!(!output.stdout.contains(SECRET), "{name}: {output}");
    }
    let output = workspace.run(&["sandbox", "--", "cat", ".env.example"]).output();
    assert!(output.stdout.contains("an example"), "{output}");
}

/// SAFE-10: temporary files are private to the session: commands and file tools share them as `/tmp`, nobody else sees
/// them, and they are gone afterwards.
#[test]
fn temporary_files_are_private() {
    let name = format!("windlass-{}", std::process::id());
    let shared = Path::new("/tmp").join(&name);
    let calls = [
        bash(&format!(
            "echo from-a-command > /tmp/{name}; ls -A /tmp | head; echo TMPDIR=$TMPDIR; mktemp"
        )),
        Reply::call("read_file", json!({ "path": format!("/tmp/{name}") })),
        Reply::call(
            "write_file",
            json!({ "path": format!("/tmp/{name}-2"), "content": "from-a-tool" }),
        ),
        bash(&format!("cat /var/tmp/{name}-2 \"$TMPDIR/{name}-2\"")),
    ];
    let (_sim, workspace) = ran(calls);
    let other = tempfile::Builder::new()
        .prefix("other-")
        .tempfile_in("/tmp")
        .unwrap();
    let output = workspace.run(&["exec", "-o", "stream-json", "go"]).output();
    let results: Vec<String> = output
        .events_of("tool_result")
        .iter()
        .map(|result| result["content"].to_string())
        .collect();
    assert!(results[0].contains("TMPDIR=/tmp\\n/tmp/"), "{output}");
    assert!(!results[0].contains("other-"), "{output}");
    assert!(results[1].contains("from-a-command"), "{output}");
    assert!(results[3].contains("from-a-toolfrom-a-tool"), "{output}");
    assert!(output.events_of("permission_request").is_empty(), "{output}");
    assert!(!shared.exists() && other.path().exists(), "{output}");
    // The empty folder is kept for the next session.
    let folders = fs::read_dir(workspace.home().join("cache/tmp")).unwrap();
    for folder in folders {
        assert_eq!(
            fs::read_dir(folder.unwrap().path()).unwrap().count(),
            0,
            "{output}"
        );
    }
}

/// TOOL-2: the temporary files of a process that was killed while it wrote are removed later; those that may still be
/// written, and files of others, are kept.
#[test]
fn abandoned_temporary_files_are_removed() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [bash("true"), Reply::text("done")]);
    let id = "0123456789abcdef0123456789abcdef";
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let make = |name: &str| {
        fs::create_dir_all(workspace.path().join("a/b")).unwrap();
        let path = workspace.write(name, "half");
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(old)
            .unwrap();
    };
    let abandoned = [format!(".windlass-{id}"), format!("a/b/.windlass-{id}")];
    let kept = [
        format!(".windlass-{id}0"),
        format!("windlass-{id}"),
        ".windlass-notes".to_owned(),
        format!("a/.windlass-{}", id.replace('0', "x")),
    ];
    for name in abandoned.iter().chain(&kept) {
        make(name);
    }
    let current = "a/.windlass-ffffffffffffffffffffffffffffffff";
    workspace.write(current, "half");
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let left = |name: &String| workspace.has(name);
    assert!(!abandoned.iter().any(left) && kept.iter().all(left) && workspace.has(current));
}

/// SAFE-10: the home folder and everything above it is a workspace only on purpose.
#[test]
fn a_wide_folder_needs_a_decision() {
    for folder in ["user", "."] {
        let (sim, workspace) = ran([]);
        let cwd = workspace.user_home().parent().unwrap().join(folder);
        let run = |arguments: &[&str]| workspace.run(arguments).cwd(&cwd).output();
        let output = run(&["exec", "hi"]);
        output.assert_code(2);
        assert!(output.stderr.contains("--allow-home"), "{output}");
        assert_eq!(sim.count(), 0, "{output}");
        run(&["exec", "--allow-home", "hi"]).assert_code(0);
    }
    let (_sim, workspace) = ran([]);
    let asked = workspace
        .run_on_terminal("--plain")
        .cwd(workspace.user_home())
        .stdin("n\n")
        .output();
    assert!(
        asked.stdout.contains("your home folder") && asked.stdout.contains("not started"),
        "{asked}"
    );
}

/// SAFE-7: settings and data that other users can change are reported.
#[test]
fn exposed_files_are_reported() {
    let (_sim, workspace) = ran([]);
    let quiet = workspace.run(&["exec", "hi"]).output();
    assert!(!quiet.stderr.contains("other users"), "{quiet}");
    fs::set_permissions(workspace.config_file(), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(workspace.home(), fs::Permissions::from_mode(0o777)).unwrap();
    for arguments in [&["exec", "hi"][..], &["doctor", "--offline"]] {
        let output = workspace.run(arguments).output();
        let text = format!("{}{}", output.stdout, output.stderr);
        for name in ["config.toml", "home"] {
            let wanted = format!("{name}: other users can change it");
            assert!(text.contains(&wanted), "{wanted}: {output}");
        }
    }
}

/// SAFE-7: every file of ours is private, whatever the umask.
#[test]
fn own_files_are_private() {
    let (_sim, workspace) = ran([
        Reply::call("write_file", json!({ "path": "a.txt", "content": "x" })),
        bash("echo x > b.txt"),
    ]);
    let status = Command::new("/bin/sh")
        .args([
            "-c",
            "umask 000; exec \"$0\" exec go",
            env!("CARGO_BIN_EXE_windlass"),
        ])
        .current_dir(workspace.path())
        .env("HOME", workspace.user_home())
        .env("WINDLASS_HOME", workspace.home())
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let found = Command::new("find")
        .arg(workspace.home())
        .args([
            "-mindepth",
            "2",
            "-perm",
            "/077",
            "-not",
            "-path",
            "*/config/*",
            "-not",
            "-type",
            "l",
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let mode = |name: &str| {
        fs::metadata(workspace.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("a.txt"), mode("b.txt")),
        (0o666, 0o666),
        "the user's files follow the umask"
    );
}

/// SAFE-7: `tools run` does not pass control sequences to a terminal.
#[test]
fn tools_run_prints_no_control_sequences() {
    let workspace = workspace();
    let line = r#"tools run bash '{"command":"printf \"a\\033]0;title\\007b\""}'"#;
    let output = workspace.run_on_terminal(line).output();
    assert!(
        output.stdout.contains("ab") && !output.stdout.contains("title"),
        "{output}"
    );
    let arguments = json!({ "command": "printf 'a\\033[1mb'" }).to_string();
    let piped = workspace.run(&["tools", "run", "bash", &arguments]).output();
    assert!(piped.stdout.contains("a\u{1b}[1mb"), "{piped}");
}

/// SAFE-10: `doctor --security` lists what is denied and protected, what holds on this machine, and what does not.
#[test]
fn the_doctor_reports_security() {
    let workspace = workspace();
    workspace.write("sub/.env", SECRET);
    let output = workspace.run(&["doctor", "--security"]).output();
    output.assert_code(0);
    let shown = [
        "landlock",
        "seccomp",
        "/tmp            own",
        "/dev            own",
        "/proc           own",
        "processes       own",
        "network         own",
        ".git/hooks",
        "~/.bashrc",
        ".aws",
        "sub/.env (its name is denied)",
        "Not covered",
        "protected files",
    ];
    for text in shown {
        assert!(output.stdout.contains(text), "{text}: {output}");
    }
    let left: Vec<Value> = fs::read_dir(workspace.path())
        .unwrap()
        .flatten()
        .map(|entry| json!(entry.file_name().to_string_lossy()))
        .collect();
    assert_eq!(left, ["sub"]);
}

/// TOOL-2: a pipe, a device or a huge file in place of an ignore file neither stops a search nor fills the memory: the search
/// works without it in the folder, and leaves out a folder below with one.
#[test]
fn odd_ignore_files_stop_no_search() {
    let workspace = workspace();
    workspace.write("a.txt", "needle\n");
    workspace.write("odd/b.txt", "needle\n");
    let place = workspace.path().join("odd/.gitignore");
    let pipe = std::process::Command::new("mkfifo").arg(&place).status();
    assert!(pipe.unwrap().success());
    let call = json!({ "pattern": "needle" }).to_string();
    let searches: [&[&str]; 3] = [
        &["tools", "run", "grep", &call],
        &["tools", "run", "glob", r#"{"pattern":"*.txt"}"#],
        &["code", "search", "needle"],
    ];
    for search in searches {
        let found = workspace.run(search).output();
        found.assert_code(0);
        assert!(
            found.stdout.contains("a.txt") && !found.stdout.contains("b.txt"),
            "{found}"
        );
    }
    std::os::unix::fs::symlink("/dev/zero", workspace.path().join(".gitignore")).unwrap();
    for search in searches {
        let found = workspace.run(search).output();
        assert!(found.assert_code(0).stdout.contains("a.txt"), "{found}");
    }
}
