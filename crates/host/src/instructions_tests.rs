//! Tests of the instructions.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Bed {
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["config", "repo/.git", "repo/sub/deep"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.path().join(path), text).unwrap();
    }

    fn instructions(&self) -> Instructions {
        let folder = self.folder.path().canonicalize().unwrap();
        let folders = Folders {
            config: folder.join("config"),
            data: folder.join("data"),
            state: folder.join("state"),
            cache: folder.join("cache"),
            home: None,
        };
        let denied = [folder.join("repo/secret"), ".env*".into()];
        Instructions::new(&folders, &folder.join("repo/sub/deep"), &denied).unwrap()
    }
}

/// EXT-1: the user's file, then one per folder from the root of the repository down to the working
/// folder, and none from outside.
#[test]
fn one_per_folder_from_the_root() {
    let bed = Bed::new();
    bed.write("AGENTS.md", "outside");
    bed.write("config/AGENTS.md", "mine");
    bed.write("repo/AGENTS.md", "root\n\n");
    bed.write("repo/CLAUDE.md", "not this");
    bed.write("repo/sub/CLAUDE.md", "sub");
    bed.write("repo/sub/deep/AGENTS.md", "not this");
    bed.write("repo/sub/deep/AGENTS.override.md", "deep");
    let mut instructions = bed.instructions();
    let (changed, notices) = instructions.refresh();
    assert_eq!(
        changed,
        [
            "your AGENTS.md",
            "../../AGENTS.md",
            "../CLAUDE.md",
            "AGENTS.override.md"
        ]
    );
    assert!(notices.is_empty());
    let text = instructions.text();
    let parts: Vec<&str> = text.split("<instructions from=").skip(1).collect();
    assert_eq!(
        parts,
        [
            "\"your AGENTS.md\">\nmine\n</instructions>\n\n",
            "\"../../AGENTS.md\">\nroot\n</instructions>\n\n",
            "\"../CLAUDE.md\">\nsub\n</instructions>\n\n",
            "\"AGENTS.override.md\">\ndeep\n</instructions>"
        ]
    );
}

/// CFG-2, EXT-1: a change is noticed and reported, an unchanged file is not, and an oversized file is
/// reported.
#[test]
fn changes_are_noticed() {
    let bed = Bed::new();
    let mut instructions = bed.instructions();
    let nothing = (Vec::new(), Vec::new());
    assert_eq!(instructions.refresh(), nothing);
    assert!(instructions.text().is_empty());
    bed.write("repo/AGENTS.md", "one");
    assert_eq!(instructions.refresh().0.len(), 1);
    let before = instructions.text();
    assert_eq!(instructions.refresh(), nothing);
    assert_eq!(instructions.text(), before);
    bed.write("repo/AGENTS.md", "another");
    assert_eq!(instructions.refresh().0, ["../../AGENTS.md"]);
    assert!(instructions.text().contains("another"));
    bed.write("repo/AGENTS.md", &"x".repeat(40_000));
    let (_, notices) = instructions.refresh();
    assert!(notices[0].contains("the rest is omitted"), "{notices:?}");
    assert!(instructions.text().len() < 34_000);
    fs::remove_file(bed.folder.path().join("repo/AGENTS.md")).unwrap();
    assert_eq!(instructions.refresh().0, ["../../AGENTS.md"]);
    assert!(instructions.text().is_empty());
}

/// SAFE-10, SAFE-3: instructions are not read through a link out of the repository, from a denied path, or from
/// anything but a regular file. A link inside the repository is followed.
#[test]
fn only_files_of_the_repository_are_read() {
    let bed = Bed::new();
    let at = |name: &str| bed.folder.path().join(name);
    bed.write("outside.txt", "private");
    bed.write("repo/secret", "denied");
    bed.write("repo/.env", "denied");
    bed.write("repo/shared.md", "shared");
    let links = [
        "/proc/self/environ",
        "../outside.txt",
        "secret",
        ".env",
        "/dev/zero",
    ];
    for target in links {
        symlink(target, at("repo/AGENTS.md")).unwrap();
        let mut instructions = bed.instructions();
        let (_, notices) = instructions.refresh();
        assert_eq!(instructions.text(), "", "{target}");
        assert!(notices.concat().contains("not read"), "{target}: {notices:?}");
        assert!(instructions.refresh().1.is_empty(), "reported once");
        fs::remove_file(at("repo/AGENTS.md")).unwrap();
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("repo/AGENTS.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let mut instructions = bed.instructions();
    instructions.refresh();
    assert_eq!(instructions.text(), "");
    fs::remove_file(at("repo/AGENTS.md")).unwrap();
    symlink("../shared.md", at("repo/sub/AGENTS.md")).unwrap();
    let mut instructions = bed.instructions();
    instructions.refresh();
    assert!(instructions.text().contains("shared"));
}
