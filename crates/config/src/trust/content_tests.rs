//! Coverage of the hash, and content that cannot be covered.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Bed {
    folder: tempfile::TempDir,
    project: Project,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Project {
            root: folder.path().join("repo"),
        };
        fs::create_dir_all(project.folder()).unwrap();
        Self { folder, project }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.project.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn hash(&self) -> String {
        Snapshot::read(&self.project).unwrap().hash
    }

    fn refusal(&self) -> String {
        Snapshot::read(&self.project).unwrap_err()
    }

    fn names(&self) -> Vec<String> {
        let snapshot = Snapshot::read(&self.project).unwrap();
        let names = snapshot
            .files()
            .iter()
            .map(|file| file.path.display().to_string());
        names.collect()
    }
}

fn tool(command: &str) -> String {
    format!("tools:\n  - {{name: one, description: x, category: read, {command}}}\n")
}

/// SAFE-6: every file below the folder counts, by name and bytes, and nothing else does.
#[test]
fn the_hash_covers_names_and_bytes() {
    let bed = Bed::new();
    bed.put(".windlass/config.toml", "model = \"a\"\n");
    let mut seen = vec![bed.hash()];
    let mut is_new = |bed: &Bed, what: &str| {
        let hash = bed.hash();
        assert!(!seen.contains(&hash), "{what}");
        seen.push(hash);
    };
    bed.put(".windlass/config.toml", "model = \"b\"\n");
    is_new(&bed, "other bytes");
    bed.put(".windlass/deep/er/hooks", "x");
    is_new(&bed, "a file below");
    fs::rename(
        bed.project.folder().join("deep/er/hooks"),
        bed.project.folder().join("deep/er/hook"),
    )
    .unwrap();
    is_new(&bed, "another name");
    fs::remove_file(bed.project.folder().join("deep/er/hook")).unwrap();
    bed.put("src/main.rs", "x");
    assert_eq!(
        bed.hash(),
        seen[1],
        "as before, and the rest of the project does not count"
    );
    // Moving bytes from the end of one file to the start of the next changes the hash.
    bed.put(".windlass/a", "bc");
    let one = bed.hash();
    bed.put(".windlass/a", "b");
    bed.put(".windlass/c", "");
    assert_ne!(bed.hash(), one);
}

/// SAFE-6: files that tools name are covered, however they are named, and as soon as they exist.
#[test]
fn the_hash_covers_the_files_that_tools_name() {
    let root_of = |bed: &Bed| bed.project.root.canonicalize().unwrap().display().to_string();
    let cases = [
        "cmd: sh, args: [scripts/run.sh]",
        "cmd: sh, args: [./scripts/run.sh]",
        "cmd: sh, args: [scripts/../scripts/run.sh]",
        "cmd: bash, args: [--rcfile=scripts/run.sh]",
        "cmd: sh, args: [linked.sh]",
        "cmd: sh, optional_args: [{when: p, args: [scripts/run.sh]}], parameters: {p: {type: boolean, optional: true}}",
        "cmd: sh, env: {BASH_ENV: scripts/run.sh}",
        "cmd: ROOT/scripts/run.sh",
    ];
    for command in cases {
        let bed = Bed::new();
        bed.put(
            ".windlass/tools.yaml",
            &tool(&command.replace("ROOT", &root_of(&bed))),
        );
        let without = bed.hash();
        bed.put("scripts/run.sh", "echo 1\n");
        symlink("scripts/run.sh", bed.project.root.join("linked.sh")).unwrap();
        let first = bed.hash();
        bed.put("scripts/run.sh", "echo 2\n");
        let second = bed.hash();
        assert!(without != first && first != second, "{command}");
        bed.put("scripts/other.sh", "echo 3\n");
        assert_eq!(bed.hash(), second, "{command}");
    }
    let bed = Bed::new();
    bed.put(
        ".windlass/tools.yaml",
        &tool("cmd: sh, args: [scripts/run.sh, ../outside, /bin/sh, .]"),
    );
    bed.put("scripts/run.sh", "echo 1\n");
    fs::write(bed.folder.path().join("outside"), "").unwrap();
    assert_eq!(bed.names(), [".windlass/tools.yaml", "scripts/run.sh"]);
    bed.put(".windlass/tools.yaml", &tool("cmd: sh, arsg: [scripts/run.sh]"));
    assert_eq!(bed.names(), [".windlass/tools.yaml"]);
}

/// SAFE-6: links are not followed, and special files do not block.
#[test]
fn what_is_not_a_file_cannot_be_trusted() {
    let bed = Bed::new();
    bed.put("elsewhere/config.toml", "model = \"a\"\n");
    let link = bed.project.folder().join("config.toml");
    symlink("../elsewhere/config.toml", &link).unwrap();
    assert_eq!(
        bed.refusal(),
        ".windlass/config.toml is a link, and links are not followed"
    );
    fs::remove_file(&link).unwrap();
    symlink("../elsewhere", bed.project.folder().join("more")).unwrap();
    assert_eq!(
        bed.refusal(),
        ".windlass/more is a link, and links are not followed"
    );
    fs::remove_file(bed.project.folder().join("more")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.project.folder().join("socket")).unwrap();
    assert_eq!(bed.refusal(), ".windlass/socket is neither a file nor a folder");
    fs::remove_dir_all(bed.project.folder()).unwrap();
    symlink("elsewhere", bed.project.folder()).unwrap();
    assert!(
        bed.refusal().starts_with(".windlass is a link"),
        "{}",
        bed.refusal()
    );
    fs::remove_file(bed.project.folder()).unwrap();
    assert!(bed.refusal().contains("cannot be read"), "{}", bed.refusal());
    bed.put(".windlass", "a file");
    assert_eq!(bed.refusal(), ".windlass is not a folder");
}

/// SAFE-6: the amount of data read is limited.
#[test]
fn too_much_cannot_be_trusted() {
    let bed = Bed::new();
    let size = MAX_BYTES / 2;
    bed.put(".windlass/a", &"x".repeat(size));
    bed.put(".windlass/b", &"x".repeat(size + 1));
    assert!(
        bed.refusal().contains("exceed 10 MB in total"),
        "{}",
        bed.refusal()
    );
    let bed = Bed::new();
    for number in 0..=MAX_FILES {
        bed.put(&format!(".windlass/{number}"), "");
    }
    assert!(
        bed.refusal().contains("more than 1000 files"),
        "{}",
        bed.refusal()
    );
    fs::remove_file(bed.project.folder().join("0")).unwrap();
    assert_eq!(bed.names().len(), MAX_FILES);
    let bed = Bed::new();
    bed.put(&format!(".windlass/{}x", "deep/".repeat(MAX_DEPTH + 1)), "");
    assert!(
        bed.refusal().contains("is nested too deeply"),
        "{}",
        bed.refusal()
    );
}
