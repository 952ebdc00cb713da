//! Undo of file changes, even if the program is killed in the middle.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Signal, Workspace, eventually};

use super::support::{Dice, variable, with_replies};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Returns everything below a folder: kinds, modes, contents.
fn state(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    collect(folder, &mut all);
    all
}

fn collect(folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = fs::symlink_metadata(&path).unwrap();
        let mode = data.permissions().mode() & 0o7777;
        let text = if data.is_symlink() {
            format!("link {}", fs::read_link(&path).unwrap().display())
        } else if data.is_dir() {
            collect(&path, all);
            format!("folder {mode:o}")
        } else {
            format!(
                "file {mode:o} {}",
                String::from_utf8_lossy(&fs::read(&path).unwrap())
            )
        };
        all.insert(path, text);
    }
}

const DEEDS: &str = "rm gone.txt; mv old.txt new.txt; echo more >> kept.txt; chmod 755 kept.txt; ln -s kept.txt link; \
                     mkdir -p a/b; echo x > a/b/c; rm -r folder; echo file > folder";

/// Settings that allow commands which remove files; these are blocked by default.
const OPEN: &str = "security.blocked_commands=[]";

/// SES-11: changes of file tools and commands are undone and redone exactly, turn by turn; the changes of a
/// turn can be shown; the conversation is rewound as well on request.
#[test]
fn turns_are_undone_and_done_again() {
    let replies = [
        Reply::call("write_file", json!({"path": "kept.txt", "content": "one\n"})).and_call(
            "write_file",
            json!({"path": "deep/er/file.txt", "content": "deep\n"}),
        ),
        Reply::text("wrote"),
        Reply::call("bash", json!({"command": DEEDS})),
        Reply::text("did"),
        Reply::text("went on").forever(),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let root = workspace.path();
    workspace.write("gone.txt", "gone\n");
    workspace.write("old.txt", "old\n");
    workspace.write("folder/inner.txt", "inner\n");
    let first = state(&root);
    run(&workspace, &["exec", "first"]).assert_code(0);
    let second = state(&root);
    run(
        &workspace,
        &["exec", "--continue", "--mode", "full", "-c", OPEN, "second"],
    )
    .assert_code(0);
    let third = state(&root);
    assert!(third.contains_key(&root.join("a/b/c")) && !third.contains_key(&root.join("gone.txt")));

    let listed = run(&workspace, &["checkpoint", "list"]);
    let lines: Vec<&str> = listed.assert_code(0).stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(
        lines[0].contains("bash") && lines[0].contains("\"second\""),
        "{listed}"
    );
    let shown = run(&workspace, &["checkpoint", "show", "2"]);
    for text in [
        "gone.txt: deleted",
        "kept.txt: modified",
        "+more",
        "folder: replaced",
    ] {
        assert!(shown.stdout.contains(text), "{text}: {shown}");
    }

    run(&workspace, &["undo"]).assert_code(0);
    assert_eq!(state(&root), second);
    run(&workspace, &["undo", "--conversation"]).assert_code(0);
    assert_eq!(state(&root), first);
    run(&workspace, &["undo"]).assert_code(1);
    run(&workspace, &["redo"]).assert_code(0);
    assert_eq!(state(&root), second);
    run(&workspace, &["redo"]).assert_code(0);
    assert_eq!(state(&root), third);
    run(&workspace, &["redo"])
        .assert_code(1)
        .assert_says("there is nothing to redo");
    run(&workspace, &["checkpoint", "rewind", "1", "--conversation"]).assert_code(0);
    assert_eq!(state(&root), first);
    run(&workspace, &["exec", "--continue", "third"]).assert_code(0);
    let outlines = sim.outlines();
    let last = outlines.last().unwrap();
    assert!(
        last.contains("third") && !last.contains("second") && !last.contains("wrote"),
        "{last}"
    );
    sim.assert_valid();
    run(&workspace, &["checkpoint", "rewind", "9"])
        .assert_code(1)
        .assert_says("there is no checkpoint 9");
}

/// SES-11: in a folder with so many files that it is watched, the changes of every command are undone and redone
/// exactly, whoever else changed files between the turns; what is stored for a command follows what it changed.
#[test]
fn commands_in_a_large_folder_are_undone() {
    let replies = [
        Reply::call("bash", json!({"command": "echo 1 > d1/f1"})),
        Reply::call("bash", json!({"command": DEEDS})),
        Reply::call(
            "bash",
            json!({"command": "mv d3 moved; echo 2 > moved/f1; mkdir -p d4/n/m; echo 3 > d4/n/m/o"}),
        ),
        Reply::text("did"),
        Reply::call("bash", json!({"command": "echo 4 > d5/f5; rm -r d6; mv d7 d6"})),
        Reply::call(
            "bash",
            json!({"command": "echo 5 > d5/f5; ln d5/f5 d5/second; echo 6 >> d5/second"}),
        ),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let root = workspace.path();
    for name in ["gone.txt", "old.txt", "kept.txt", "folder/inner.txt"] {
        workspace.write(name, name);
    }
    for number in 0..6_000 {
        workspace.write(&format!("d{}/f{number}", number % 10), "small");
    }
    let first = state(&root);
    let exec = |more: &[&str]| {
        let args = [&["exec", "--mode", "full", "-c", OPEN], more].concat();
        run(&workspace, &args).assert_code(0);
    };
    exec(&["first"]);
    workspace.write("d1/mine", "mine");
    let second = state(&root);
    exec(&["--continue", "second"]);
    let third = state(&root);
    assert!(third.contains_key(&root.join("d5/second")) && !third.contains_key(&root.join("d7")));
    run(&workspace, &["undo"]).assert_code(0);
    assert_eq!(state(&root), second);
    run(&workspace, &["redo"]).assert_code(0);
    assert_eq!(state(&root), third);
    run(&workspace, &["checkpoint", "rewind", "1"]).assert_code(0);
    fs::remove_file(root.join("d1/mine")).unwrap();
    assert_eq!(state(&root), first);
}

/// SES-11: an ordinary user goes back in one step across a turn that closed a folder to a turn that changed files in
/// it; the folder has the mode it had then, and a redo closes it again.
#[test]
fn closed_folders_are_crossed() {
    for mode in ["600", "000"] {
        let replies = [
            Reply::call(
                "bash",
                json!({"command": "echo two > shut/inner/file.txt; echo new > shut/new.txt"}),
            ),
            Reply::text("wrote"),
            Reply::call("bash", json!({"command": format!("chmod {mode} shut/inner")})),
            Reply::call("bash", json!({"command": format!("chmod {mode} shut")})),
            Reply::text("closed"),
        ];
        let (_sim, mut workspace) = with_replies(Protocol::Anthropic, replies);
        let root = workspace.path();
        workspace.write("shut/inner/file.txt", "one\n");
        fs::set_permissions(root.join("shut/inner"), fs::Permissions::from_mode(0o751)).unwrap();
        workspace.give_to_ordinary_user();
        let first = state(&root);
        run(&workspace, &["exec", "first"]).assert_code(0);
        run(
            &workspace,
            &["exec", "--continue", "--mode", "full", "-c", OPEN, "second"],
        )
        .assert_code(0);
        let closed = || fs::metadata(root.join("shut")).unwrap().permissions().mode() & 0o777;
        let expected = u32::from_str_radix(mode, 8).unwrap();
        assert_eq!(closed(), expected);
        let rewound = run(&workspace, &["checkpoint", "rewind", "1"]);
        rewound.assert_code(0);
        assert_eq!(state(&root), first, "{rewound}");
        run(&workspace, &["redo"]).assert_code(0);
        assert_eq!(closed(), expected);
        run(&workspace, &["checkpoint", "rewind", "1"]).assert_code(0);
        assert_eq!(state(&root), first);
    }
}

/// SES-11: a file that was changed outside the session is not overwritten, unless forced; then it can be
/// restored.
#[test]
fn changes_by_others_are_not_lost() {
    let replies = [
        Reply::call(
            "bash",
            json!({"command": "echo agent > a.txt; echo agent > b.txt"}),
        ),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    workspace.write("a.txt", "before\n");
    run(&workspace, &["exec", "go"]).assert_code(0);
    workspace.write("a.txt", "mine\n");
    let refused = run(&workspace, &["undo"]);
    refused.assert_code(1).assert_says("a.txt").assert_says("--force");
    assert_eq!(workspace.read("a.txt"), "mine\n");
    assert!(workspace.has("b.txt"), "nothing was done");
    run(&workspace, &["undo", "--force"]).assert_code(0);
    assert_eq!(workspace.read("a.txt"), "before\n");
    assert!(!workspace.has("b.txt"));
    run(&workspace, &["redo"]).assert_code(0);
    assert_eq!(workspace.read("a.txt"), "mine\n");
}

/// SES-11: changes that are not covered are reported, and nothing is stored when checkpoints are off.
#[test]
fn limits_are_reported() {
    let big = "head -c 2000000 /dev/zero | tr '\\\\0' x > big.txt; echo small > small.txt";
    let replies = [
        Reply::call("bash", json!({"command": big})),
        Reply::text("done"),
        Reply::call("bash", json!({"command": "echo x > off.txt"})),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Responses, replies);
    run(&workspace, &["exec", "-c", "checkpoints.max_file_mb=1", "go"]).assert_code(0);
    let undone = run(&workspace, &["undo"]);
    undone.assert_code(0);
    assert!(
        undone
            .stdout
            .contains("big.txt: larger than the limit for one file"),
        "{undone}"
    );
    assert!(workspace.has("big.txt") && !workspace.has("small.txt"));
    run(&workspace, &["exec", "-c", "checkpoints.enabled=false", "off"]).assert_code(0);
    let none = run(&workspace, &["undo"]);
    none.assert_code(1).assert_says("Nothing to undo");
    assert!(workspace.has("off.txt"));
}

/// SES-11: what a turn wrote outside the folder is named, and a turn that changed nothing in the folder is not what is
/// undone.
#[test]
fn writes_outside_are_named() {
    let outside = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
    let path = |name: &str| outside.path().join(name).display().to_string();
    let (by_tool, by_command) = (path("tool.txt"), format!("echo x > {}", path("command.txt")));
    let replies = [
        Reply::call("write_file", json!({"path": by_tool, "content": "x"})),
        Reply::call("bash", json!({"command": by_command})),
        Reply::text("outside"),
        Reply::call("write_file", json!({"path": "a.txt", "content": "x"})),
        Reply::text("inside"),
        Reply::call("bash", json!({"command": "mkdir -p /tmp && true"})),
        Reply::text("nothing"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let exec = |more: &[&str]| run(&workspace, &[&["exec", "--mode", "full"], more].concat());
    exec(&["outside"]).assert_code(0);
    let named = |output: &Output| {
        output
            .assert_code(1)
            .assert_says("Nothing to undo")
            .assert_says(&format!("Not covered: outside of the folder: {by_tool}"))
            .assert_says(&format!("outside of the folder, if `{by_command}` changed any"));
    };
    for _ in 0..2 {
        named(&run(&workspace, &["undo"]));
    }
    exec(&["--continue", "inside"]).assert_code(0);
    exec(&["--continue", "nothing"]).assert_code(0);
    let undone = run(&workspace, &["undo"]);
    undone.assert_code(0);
    assert!(undone.stdout.contains("a.txt: removed"), "{undone}");
    assert!(
        undone.stdout.contains("To redo: /redo, or `windlass redo`."),
        "{undone}"
    );
    assert!(!workspace.has("a.txt"));
    named(&run(&workspace, &["undo"]));
}

/// SES-11: a process killed in the middle of an undo leaves nothing half done once the session is used again.
#[test]
fn a_killed_undo_is_finished() {
    let replies = [
        Reply::call(
            "bash",
            json!({"command": "for n in $(seq 400); do echo $n > new$n.txt; rm -f old$n.txt; done"}),
        ),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    for number in 1..=400 {
        workspace.write(&format!("old{number}.txt"), &format!("old {number}\n"));
    }
    let before = state(&workspace.path());
    run(&workspace, &["exec", "--mode", "full", "-c", OPEN, "go"]).assert_code(0);
    let after = state(&workspace.path());
    assert_eq!(after.len(), 400);
    let mut dice = Dice::new(11);
    let mut halves = 0;
    let kills = variable("WINDLASS_UNDO_KILLS", 14);
    for _ in 0..kills {
        let undo = workspace.run(&["undo"]).start();
        eventually(Duration::from_millis(4 + dice.roll(60)), || false);
        undo.signal(Signal::KILL);
        drop(undo.output());
        let now = state(&workspace.path());
        halves += u64::from(now != before && now != after);
        // Listing the checkpoints completes the interrupted undo.
        let listed = run(&workspace, &["checkpoint", "list"]);
        let is_undone = listed.assert_code(0).stdout.contains("undone");
        let now = state(&workspace.path());
        assert_eq!(now == before, is_undone, "{listed}");
        assert!(now == before || now == after, "{listed}");
        if is_undone {
            run(&workspace, &["redo"]).assert_code(0);
            assert_eq!(state(&workspace.path()), after);
        }
    }
    assert!(halves < kills, "every undo was cut in two");
}

/// SES-11: if a checkpoint cannot be stored, the call works all the same, and the user is warned.
#[test]
fn what_cannot_be_kept_is_reported() {
    let replies = [
        Reply::call("bash", json!({"command": "echo x > a.txt"})),
        Reply::text("done"),
    ];
    let (_sim, workspace) = with_replies(Protocol::Chat, replies);
    let data = workspace.home().join("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("checkpoints"), "in the way").unwrap();
    let output = run(&workspace, &["exec", "go"]);
    output
        .assert_code(0)
        .assert_says("what `bash` changed cannot be undone");
    assert_eq!(workspace.read("a.txt"), "x\n");
}

/// SES-11, CMD-1: rewinding to before a message restores the conversation and, unless excluded, the files.
#[test]
fn a_message_is_gone_back_to() {
    let write = |content: &str| Reply::call("write_file", json!({"path": "a.txt", "content": content}));
    let replies = [
        write("one\n"),
        Reply::text("wrote one"),
        Reply::text("only talked"),
        write("two\n"),
        Reply::text("wrote two"),
        Reply::text("went on").forever(),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    let file = || fs::read_to_string(workspace.path().join("a.txt")).ok();
    run(&workspace, &["exec", "first"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "third"]).assert_code(0);
    assert_eq!(file().as_deref(), Some("two\n"));

    let listed = run(&workspace, &["exec", "--continue", "/rewind"]);
    let number = |words: &str| {
        let line = listed.stdout.lines().find(|line| line.ends_with(words));
        line.unwrap().split_whitespace().next().unwrap().to_owned()
    };
    let (first, second) = (number("first"), number("second"));
    let rewind = |words: &str| run(&workspace, &["exec", "--continue", &format!("/rewind {words}")]);
    rewind("2")
        .assert_code(1)
        .assert_says("is not one of your messages");
    rewind(&format!("{second} --keep-files")).assert_code(0);
    assert_eq!(file().as_deref(), Some("two\n"));
    // The message is no longer part of the conversation; its files are restored all the same.
    rewind(&second)
        .assert_code(1)
        .assert_says("is not one of your messages in this conversation");
    run(&workspace, &["undo"]).assert_code(0);
    assert_eq!(file().as_deref(), Some("one\n"));
    run(&workspace, &["exec", "--continue", "again"]).assert_code(0);
    let last = sim.outlines().pop().unwrap();
    assert!(
        last.contains("wrote one") && last.contains("again") && !last.contains("second"),
        "{last}"
    );
    rewind(&first).assert_code(0);
    assert_eq!(file(), None);
    sim.assert_valid();
}
