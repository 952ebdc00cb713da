//! The other names of a path: a folder that is mounted twice can be reached by two paths, and a rule for one
//! of them does not cover the other.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mounts that this process sees.
pub(super) struct Mounts(Vec<Mount>);

struct Mount {
    /// Number of the file system, as `major:minor`.
    device: String,
    /// Folder of the file system that is mounted.
    root: PathBuf,
    /// Mount point.
    point: PathBuf,
}

impl Mounts {
    pub(super) fn read() -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/self/mountinfo")?))
    }

    fn parse(table: &str) -> Self {
        let mount = |line: &str| {
            let mut fields = line.split(' ').skip(2);
            Some(Mount {
                device: fields.next()?.to_owned(),
                root: unescape(fields.next()?),
                point: unescape(fields.next()?),
            })
        };
        Self(table.lines().filter_map(mount).collect())
    }

    /// Returns the other paths of the same file or folder, and of folders below it.
    pub(super) fn other_names(&self, path: &Path) -> Vec<PathBuf> {
        let holds = |mount: &&Mount| path.starts_with(&mount.point);
        // Of two mounts on one point the later one is visible.
        let Some(home) = self
            .0
            .iter()
            .filter(holds)
            .max_by_key(|mount| mount.point.components().count())
        else {
            return Vec::new();
        };
        let Ok(below) = path.strip_prefix(&home.point) else {
            return Vec::new();
        };
        let inside = home.root.join(below);
        let same = self.0.iter().filter(|mount| mount.device == home.device);
        let name = |mount: &Mount| match inside.strip_prefix(&mount.root) {
            Ok(rest) => Some(mount.point.join(rest)),
            Err(_) if mount.root.starts_with(&inside) => Some(mount.point.clone()),
            Err(_) => None,
        };
        let names = same.filter_map(name).map(|name| name.components().collect());
        names.filter(|name: &PathBuf| name != path).collect()
    }
}

/// Decodes a path of the mount table, which writes blanks and similar characters as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped {
            Some(value) if byte == b'\\' => {
                bytes.push(value);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-4: a denied folder is denied under every name that a mount gives it.
    #[test]
    fn mounts_give_other_names() {
        let mounts = Mounts::parse(
            "1 0 8:1 / / rw - ext4 /dev/a rw\n\
             2 1 8:2 / /home rw - ext4 /dev/b rw\n\
             3 1 8:2 /ann /srv/my\\040files rw - ext4 /dev/b rw\n\
             4 1 8:2 /ann/.ssh/old /keys rw - ext4 /dev/b rw\n",
        );
        let cases: [(&str, &[&str]); 4] = [
            ("/home/ann/.ssh", &["/srv/my files/.ssh", "/keys"]),
            ("/srv/my files/x", &["/home/ann/x"]),
            ("/home/bob", &[]),
            ("/etc/shadow", &[]),
        ];
        for (path, names) in cases {
            let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            assert_eq!(mounts.other_names(Path::new(path)), names, "{path}");
        }
    }
}
