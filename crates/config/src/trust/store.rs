//! The list of trusted folders: a small file of the user.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::private_file::PrivateFile;

/// The parsed file. A broken file is an error, and is never replaced.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    folders: BTreeMap<String, Trusted>,
    /// Hashes of declined content, which the user does not want to be asked about again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    declined: BTreeMap<String, String>,
}

/// Trusted content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    /// Hash of the content.
    pub hash: String,
    /// Time of the decision, as `2026-01-31T12:00:00Z`.
    pub when: String,
}

impl TrustStore {
    /// Reads the file; if it does not exist, nothing is trusted.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = PrivateFile::new(path.to_owned()).read();
        let text = text.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let Some(text) = text else {
            return Ok(Self::default());
        };
        serde_json::from_str(&text).map_err(|error| {
            let advice = "fix it, or remove it and trust your folders again";
            format!(
                "{} is not a list of trusted folders ({error}); {advice}",
                path.display()
            )
        })
    }

    /// Changes the current content of the file under a lock.
    pub fn change<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, String> {
        let failed = |error: io::Error| format!("{} cannot be written: {error}", path.display());
        let held = PrivateFile::new(path.to_owned()).hold().map_err(failed)?;
        let mut store = Self::read(path)?;
        let changed = change(&mut store);
        let text = serde_json::to_string_pretty(&store).map_err(|error| failed(error.into()))?;
        held.write(&(text + "\n")).map_err(failed)?;
        Ok(changed)
    }

    /// Returns the trusted content of this folder.
    pub fn find(&self, root: &Path) -> Option<&Trusted> {
        self.folders.get(&key(root)?)
    }

    /// Returns all trusted folders, by path.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Trusted)> {
        let folders = self.folders.iter();
        folders.map(|(path, trusted)| (path.as_str(), trusted))
    }

    /// Trusts this content of a folder.
    pub fn insert(&mut self, root: &Path, hash: String) -> Result<(), String> {
        let key = key(root).ok_or_else(|| format!("{}: its path is not UTF-8", root.display()))?;
        let when = date(crate::environment::clock().now().0 / 1_000);
        self.declined.remove(&key);
        self.folders.insert(key, Trusted { hash, when });
        Ok(())
    }

    /// Returns true if the user declined this content of a folder.
    pub fn is_declined(&self, root: &Path, hash: &str) -> bool {
        let declined = key(root).and_then(|key| self.declined.get(&key));
        declined.is_some_and(|declined| declined == hash)
    }

    /// Records that the user declined this content of a folder. For a path that cannot be stored, the user is
    /// asked again.
    pub fn decline(&mut self, root: &Path, hash: String) {
        if let Some(key) = key(root) {
            self.declined.insert(key, hash);
        }
    }

    /// Stops trusting a folder.
    pub fn remove(&mut self, root: &Path) {
        if let Some(key) = key(root) {
            self.folders.remove(&key);
        }
    }
}

/// Key of a folder in the file: its path with links resolved, or as given if the folder no longer exists.
fn key(root: &Path) -> Option<String> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.into_os_string().into_string().ok()
}

/// Formats seconds since the epoch as a UTC date and time.
fn date(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or_default();
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use windlass_testkit::at_once;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// SAFE-6: the file is private to the user and is read back as written.
    #[test]
    fn what_is_trusted_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data/trust.json");
        let read = || TrustStore::read(&path).unwrap();
        assert!(read().find(root.path()).is_none());
        TrustStore::change(&path, |store| store.insert(root.path(), "abc".to_owned()))
            .unwrap()
            .unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(read().find(root.path()).unwrap().hash, "abc");
        TrustStore::change(&path, |store| store.decline(root.path(), "def".to_owned())).unwrap();
        assert!(read().is_declined(root.path(), "def") && !read().is_declined(root.path(), "abc"));
        TrustStore::change(&path, |store| store.insert(root.path(), "def".to_owned()))
            .unwrap()
            .unwrap();
        assert!(!read().is_declined(root.path(), "def"), "a yes takes a no back");
        TrustStore::change(&path, |store| store.remove(root.path())).unwrap();
        assert_eq!(read().all().count(), 0);
    }

    /// SAFE-6: no concurrent change of the list is lost.
    #[test]
    fn no_answer_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trust.json");
        at_once(8, |number| {
            let folder = root.path().join(number.to_string());
            TrustStore::change(&path, |store| store.insert(&folder, "abc".to_owned()))
                .unwrap()
                .unwrap();
            if number % 2 == 1 {
                TrustStore::change(&path, |store| store.remove(&folder)).unwrap();
            }
        });
        let store = TrustStore::read(&path).unwrap();
        let trusted = (0..8).filter(|number| store.find(&root.path().join(number.to_string())).is_some());
        assert_eq!(trusted.collect::<Vec<_>>(), [0, 2, 4, 6]);
    }

    /// SAFE-6: an error names a broken file, and nothing is trusted.
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
            let why = TrustStore::read(&path).unwrap_err();
            assert!(why.contains("trust.json is not a list"), "{text:?} gave {why}");
        }
        assert!(
            TrustStore::read(root.path())
                .unwrap_err()
                .contains("cannot be read")
        );
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
