//! Which folders are trusted: a small file of the user's own.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_core::clock::{Clock, SystemClock};

/// The file as it was read. A broken one is an error, and is never replaced.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    folders: BTreeMap<String, Trusted>,
    /// The hash of what the user said no to, and does not want to be asked about again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    declined: BTreeMap<String, String>,
}

/// What was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trusted {
    /// The hash of the content.
    pub(super) hash: String,
    /// When, as `2026-01-31T12:00:00Z`.
    pub(super) when: String,
}

impl Store {
    /// Reads the file; one that is not there trusts nothing.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let content = match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| {
                let mend = "mend it, or remove it and trust your folders again";
                format!(
                    "{} is not a list of trusted folders ({error}); {mend}",
                    path.display()
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content::default(),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        Ok(Self {
            path: path.to_owned(),
            content,
        })
    }

    /// What is trusted of this folder.
    pub(super) fn find(&self, root: &Path) -> Option<&Trusted> {
        self.content.folders.get(&key(root)?)
    }

    /// All of them, by path.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Trusted)> {
        let folders = self.content.folders.iter();
        folders.map(|(path, trusted)| (path.as_str(), trusted))
    }

    /// Trusts this content of a folder from now on.
    pub(super) fn insert(&mut self, root: &Path, hash: String) -> Result<(), String> {
        let key = key(root).ok_or_else(|| format!("{}: its path is not UTF-8", root.display()))?;
        let when = date(SystemClock::default().now().0 / 1_000);
        self.content.declined.remove(&key);
        self.content.folders.insert(key, Trusted { hash, when });
        Ok(())
    }

    /// Whether the user said no to this content of a folder.
    pub(super) fn is_declined(&self, root: &Path, hash: &str) -> bool {
        let declined = key(root).and_then(|key| self.content.declined.get(&key));
        declined.is_some_and(|declined| declined == hash)
    }

    /// Remembers a no to this content of a folder. One whose path cannot be written down is asked about again.
    pub(super) fn decline(&mut self, root: &Path, hash: String) {
        if let Some(key) = key(root) {
            self.content.declined.insert(key, hash);
        }
    }

    /// Trusts a folder no longer. Whether it was trusted.
    pub(super) fn remove(&mut self, root: &Path) -> bool {
        key(root).is_some_and(|key| self.content.folders.remove(&key).is_some())
    }

    /// Replaces the file, whole or not at all.
    pub(super) fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Temporary files are made for their owner alone, and keep that mode under the new name.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, &self.content)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        File::open(folder)?.sync_all()
    }
}

/// A folder's name in the file: its path with links followed, or as it is when it has gone.
fn key(root: &Path) -> Option<String> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.into_os_string().into_string().ok()
}

/// Seconds since the epoch as a date and time of UTC.
fn date(seconds: u64) -> String {
    // Counted in eras of 400 years that start in March, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// SAFE-6: the file belongs to the user alone and comes back as it was written.
    #[test]
    fn what_is_trusted_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data/trust.json");
        let mut store = Store::read(&path).unwrap();
        assert!(store.find(root.path()).is_none());
        store.insert(root.path(), "abc".to_owned()).unwrap();
        store.write().unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let mut store = Store::read(&path).unwrap();
        assert_eq!(store.find(root.path()).unwrap().hash, "abc");
        store.decline(root.path(), "def".to_owned());
        assert!(store.is_declined(root.path(), "def") && !store.is_declined(root.path(), "abc"));
        store.write().unwrap();
        let mut store = Store::read(&path).unwrap();
        assert!(store.is_declined(root.path(), "def"));
        store.insert(root.path(), "def".to_owned()).unwrap();
        assert!(!store.is_declined(root.path(), "def"), "a yes takes a no back");
        assert!(store.remove(root.path()) && !store.remove(root.path()));
        store.write().unwrap();
        assert_eq!(Store::read(&path).unwrap().all().count(), 0);
    }

    /// SAFE-6: a broken file is named, and trusts nothing.
    #[test]
    fn a_broken_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trust.json");
        for text in [
            "",
            "[]",
            "{\"folders\": {\"/a\": {}}}",
            "{\"folders\": {}, \"more\": 1}",
            "\u{0}",
        ] {
            std::fs::write(&path, text).unwrap();
            let why = Store::read(&path).unwrap_err();
            assert!(why.contains("trust.json is not a list"), "{text:?} gave {why}");
        }
        assert!(Store::read(root.path()).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_772_323_200, "2026-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
