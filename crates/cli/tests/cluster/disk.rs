//! A small disk for a database, which can be full. Only root can make one.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Size of the disk, in bytes.
const SIZE: u64 = 96 << 20;

/// The disk.
pub(super) struct Disk {
    folder: TempDir,
}

impl Disk {
    /// Mounts a disk.
    pub(super) fn mount() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        assert!(is_root, "a disk can be mounted by root only");
        let disk = Self {
            folder: tempfile::Builder::new()
                .prefix("wldisk")
                .tempdir_in("/tmp")
                .unwrap(),
        };
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={SIZE},mode=0777"),
                "windlass-test",
            ])
            .arg(disk.folder.path())
            .stdin(Stdio::null())
            .output();
        let mounted = mounted.unwrap();
        assert!(
            mounted.status.success(),
            "{}",
            String::from_utf8_lossy(&mounted.stderr)
        );
        fs::create_dir(disk.folder.path().join("space")).unwrap();
        disk
    }

    /// Returns the folder for the files of a database.
    pub(super) fn folder(&self) -> std::path::PathBuf {
        self.folder.path().join("space")
    }

    /// Fills the rest of the disk.
    pub(super) fn fill(&self) {
        let mut ballast = File::create(self.folder.path().join("ballast")).unwrap();
        while ballast.write_all(&[0; 4_096]).is_ok() {}
    }

    /// Makes space again.
    pub(super) fn free(&self) {
        fs::remove_file(self.folder.path().join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Processes of the database may not have ended yet.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}
