//! Caches of package managers. The usual ones are in the home folder, where commands may not write. A command that may
//! download gets others, in a private folder of its workspace: what it puts there reaches neither the tools that the
//! user runs outside nor the commands of other workspaces.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};

use crate::digest::sha256_hex;

/// Time after which the caches of a workspace are removed if no session has used them, in seconds.
const UNUSED: i64 = 30 * 24 * 60 * 60;

/// Length of the name of a workspace's folder.
const NAME: usize = 16;

/// The cache of a package manager.
struct Cache {
    /// Variable that names its folder.
    variable: &'static str,
    /// Name of the folder in place of the usual one.
    name: &'static str,
    /// The usual folder, below the home folder.
    usual: &'static str,
    used: Used,
}

/// The commands that use a private cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    /// Every command that may write.
    Always,
    /// Those with access to the network, and afterwards also those without: builds read what was downloaded.
    OnceFilled,
    /// Those with access to the network.
    Online,
}

const fn row(variable: &'static str, name: &'static str, usual: &'static str, used: Used) -> Cache {
    Cache {
        variable,
        name,
        usual,
        used,
    }
}

const CACHES: &[Cache] = &[
    row("npm_config_cache", "npm", ".npm", Used::Online),
    row("YARN_CACHE_FOLDER", "yarn", ".cache/yarn", Used::Online),
    row("YARN_GLOBAL_FOLDER", "yarn-global", ".yarn/berry", Used::Online),
    row("PNPM_HOME", "pnpm", ".local/share/pnpm", Used::Online),
    row(
        "COREPACK_HOME",
        "corepack",
        ".cache/node/corepack",
        Used::OnceFilled,
    ),
    row("BUN_INSTALL_CACHE_DIR", "bun", ".bun/install/cache", Used::Online),
    row("DENO_DIR", "deno", ".cache/deno", Used::OnceFilled),
    row("PIP_CACHE_DIR", "pip", ".cache/pip", Used::Online),
    row("UV_CACHE_DIR", "uv", ".cache/uv", Used::OnceFilled),
    row("POETRY_CACHE_DIR", "poetry", ".cache/pypoetry", Used::Online),
    row("PIPENV_CACHE_DIR", "pipenv", ".cache/pipenv", Used::Online),
    row(CARGO_HOME, "cargo", ".cargo", Used::OnceFilled),
    row("GOMODCACHE", "go-mod", "go/pkg/mod", Used::OnceFilled),
    row("GOCACHE", "go-build", ".cache/go-build", Used::Always),
    row("GRADLE_USER_HOME", "gradle", ".gradle", Used::OnceFilled),
    row("NUGET_PACKAGES", "nuget", ".nuget/packages", Used::OnceFilled),
    row("PUB_CACHE", "pub", ".pub-cache", Used::OnceFilled),
    row("COMPOSER_CACHE_DIR", "composer", ".cache/composer", Used::Online),
    row("BUNDLE_USER_CACHE", "bundle", ".bundle/cache", Used::Online),
];

/// Cargo also reads its settings there.
const CARGO_HOME: &str = "CARGO_HOME";
const CARGO_SETTINGS: &[&str] = &["config.toml", "config"];

/// The private caches of a workspace.
#[derive(Debug)]
pub(crate) struct PackageCaches {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: OwnedFd,
}

impl PackageCaches {
    /// Takes the folder of a workspace below `parent`, or creates it. Removes those that were not used for a long time.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn new(parent: &Path, workspace: &Path) -> io::Result<Self> {
        let mut name = sha256_hex(workspace.as_os_str().as_encoded_bytes());
        name.truncate(NAME);
        let path = parent.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let path = fs::canonicalize(path)?;
        let lock = open(&path)?;
        rustix::fs::flock(&lock, FlockOperation::LockShared)?;
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        rustix::fs::futimens(&lock, &times)?;
        let now = rustix::fs::fstat(&lock)?.st_mtime;
        let unused = unused(path.parent().unwrap_or(parent), now);
        if !unused.is_empty() {
            // They may contain very many files.
            std::thread::Builder::new().spawn(move || {
                for (folder, _held) in unused {
                    let _ = fs::remove_dir_all(folder);
                }
            })?;
        }
        Ok(Self { path, _lock: lock })
    }

    /// Returns the folder, with every link followed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the variables of a command that may write in these folders. A cache that the command may use where it is,
    /// or that its variables name already, stays there.
    pub(crate) fn add_to(&self, env: &mut BTreeMap<String, String>, write: &[PathBuf], is_online: bool) {
        let Some(home) = env.get("HOME").map(PathBuf::from) else {
            return;
        };
        let real_home = fs::canonicalize(&home).unwrap_or_else(|_| home.clone());
        let is_writable = |usual: &str| {
            let places = [home.join(usual), real_home.join(usual)];
            write
                .iter()
                .any(|root| places.iter().any(|place| place.starts_with(root)))
        };
        for cache in CACHES.iter().filter(|cache| !is_writable(cache.usual)) {
            let folder = self.path.join(cache.name);
            let is_used = match cache.used {
                Used::Always => true,
                Used::OnceFilled => is_online || is_filled(&folder),
                Used::Online => is_online,
            };
            if !is_used || env.contains_key(cache.variable) {
                continue;
            }
            if cache.variable == CARGO_HOME {
                link_settings(&home.join(cache.usual), &folder);
            }
            env.insert(cache.variable.to_owned(), folder.display().to_string());
        }
    }
}

/// Returns true if a package manager has put a folder there.
fn is_filled(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

/// Links the settings of the user's cargo into a private folder. Without them it would use other registries.
fn link_settings(usual: &Path, folder: &Path) {
    for name in CARGO_SETTINGS {
        let settings = usual.join(name);
        if !settings.is_file() {
            continue;
        }
        // Most errors say that it exists. Without the link, cargo works with its default settings.
        let _ = fs::create_dir(folder);
        // A command may have put a link to another folder there.
        if let Ok(folder) = open(folder) {
            let _ = rustix::fs::symlinkat(&settings, &folder, *name);
        }
    }
}

/// Returns the folders that no session has used for a long time, each with a lock that keeps it from being taken.
fn unused(parent: &Path, now: i64) -> Vec<(PathBuf, OwnedFd)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let unused = entries.filter_map(|entry| {
        let folder = open(&entry.path()).ok()?;
        let used = rustix::fs::fstat(&folder).ok()?.st_mtime;
        if now.saturating_sub(used) <= UNUSED {
            return None;
        }
        rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some((entry.path(), folder))
    });
    unused.collect()
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
        caches: PackageCaches,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["home/.cargo", "work"] {
                fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            let (parent, work) = (folder.path().join("packages"), folder.path().join("work"));
            let caches = PackageCaches::new(&parent, &work).unwrap();
            Self { folder, caches }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// The variables of a command, with this one given.
        fn env(&self, given: &[(&str, &str)], write: &str, is_online: bool) -> BTreeMap<String, String> {
            let home = self.at("home").display().to_string();
            let mut env = BTreeMap::from([("HOME".to_owned(), home)]);
            env.extend(
                given
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
            );
            self.caches.add_to(&mut env, &[self.at(write)], is_online);
            env
        }
    }

    /// SAFE-12: package managers that may download keep their caches in a private folder, unless they may write to the
    /// usual one or a variable names another.
    #[test]
    fn commands_that_download_get_caches() {
        let scene = Scene::new();
        let own = |name: &str| scene.caches.path().join(name).display().to_string();
        let online = scene.env(&[("PIP_CACHE_DIR", "./pip")], "work", true);
        assert_eq!(online["npm_config_cache"], own("npm"));
        assert_eq!(online["PIP_CACHE_DIR"], "./pip");
        let variables = |write: &str, is_online: bool| -> Vec<String> {
            let env = scene.env(&[], write, is_online);
            env.into_keys().filter(|name| name != "HOME").collect()
        };
        assert_eq!(variables("work", true).len(), CACHES.len());
        assert_eq!(variables("home", true), [""; 0]);
        assert!(!variables("home/.npm", true).contains(&"npm_config_cache".to_owned()));
        assert_eq!(variables("work", false), ["GOCACHE"]);
    }

    /// SAFE-12: builds without the network read what a command with it has downloaded, under the settings of the user.
    #[test]
    fn downloads_are_found_later() {
        let scene = Scene::new();
        fs::write(scene.at("home/.cargo/config.toml"), "[source]").unwrap();
        let private = PathBuf::from(&scene.env(&[], "work", true)[CARGO_HOME]);
        assert_eq!(
            fs::read_to_string(private.join("config.toml")).unwrap(),
            "[source]"
        );
        assert!(!scene.env(&[], "work", false).contains_key(CARGO_HOME));
        fs::create_dir(private.join("registry")).unwrap();
        assert!(scene.env(&[], "work", false).contains_key(CARGO_HOME));
    }

    /// SAFE-10: a link that a command put into the caches makes Windlass write nowhere else.
    #[test]
    fn links_in_the_caches_are_not_followed() {
        let scene = Scene::new();
        fs::write(scene.at("home/.cargo/config.toml"), "[source]").unwrap();
        symlink(scene.at("home"), scene.caches.path().join("cargo")).unwrap();
        scene.env(&[], "work", true);
        assert!(scene.at("home/config.toml").symlink_metadata().is_err());
    }

    /// SAFE-10: each workspace has caches of its own, and those that no session has used for a month are removed.
    #[test]
    fn unused_caches_are_removed() {
        let scene = Scene::new();
        let parent = scene.at("packages");
        let take = |name: &str| PackageCaches::new(&parent, &scene.at(name)).unwrap();
        let (old, held) = (take("old"), take("held"));
        assert!(old.path() != held.path() && held.path() != scene.caches.path());
        let path = old.path().to_owned();
        let long_ago = std::time::Duration::from_secs(1_000_000_000);
        for caches in [&old, &held] {
            fs::write(caches.path().join("file"), "x").unwrap();
            let folder = fs::File::open(caches.path()).unwrap();
            folder
                .set_modified(std::time::SystemTime::UNIX_EPOCH + long_ago)
                .unwrap();
        }
        drop(old);
        let now = 1_000_000_000 + UNUSED;
        let found = |now: i64| -> Vec<PathBuf> {
            let unused = unused(&parent.canonicalize().unwrap(), now);
            unused.into_iter().map(|(path, _)| path).collect()
        };
        assert!(found(now).is_empty());
        assert_eq!(found(now + 1), [path]);
    }
}
