//! A user, a project and an environment for tests, all made up and independent of the machine.

use std::path::{Path, PathBuf};

use super::{Override, Settings, SettingsError, Sources, load};
use crate::folders::Folders;
use crate::trust::trust;

/// All sources of settings.
pub(super) struct Bed {
    root: tempfile::TempDir,
    variables: Vec<(String, String)>,
    overrides: Vec<Override>,
    named: Option<PathBuf>,
}

impl Bed {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("home/config")).unwrap();
        std::fs::create_dir_all(root.path().join("repo/.windlass")).unwrap();
        std::fs::create_dir_all(root.path().join("repo/.git")).unwrap();
        Self {
            root,
            variables: Vec::new(),
            overrides: Vec::new(),
            named: None,
        }
    }

    pub(super) fn user_file(&self) -> PathBuf {
        self.root.path().join("home/config/config.toml")
    }

    pub(super) fn project_file(&self) -> PathBuf {
        self.root.path().join("repo/.windlass/config.toml")
    }

    pub(super) fn user(self, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.user_file(), text).unwrap();
        self
    }

    /// Writes the project's file, in a folder that the user trusts.
    pub(super) fn project(self, text: impl AsRef<[u8]>) -> Self {
        self.untrusted_project(text).trusted()
    }

    /// Writes the project's file without trusting it; trust in earlier content does not cover it.
    pub(super) fn untrusted_project(self, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.project_file(), text).unwrap();
        self
    }

    /// Trusts the project's current content.
    pub(super) fn trusted(self) -> Self {
        let folders = self.folders();
        let project = folders.project(&self.root.path().join("repo")).unwrap();
        trust(&folders, &project).unwrap();
        self
    }

    pub(super) fn named(mut self, path: &Path) -> Self {
        self.named = Some(path.to_owned());
        self
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn flag(mut self, flag: &str, key: &str, value: &str) -> Self {
        let (key, value, flag) = (key.to_owned(), value.to_owned(), flag.to_owned());
        self.overrides.push(Override { key, value, flag });
        self
    }

    fn folders(&self) -> Folders {
        let home = self.root.path().join("home");
        let home_only = |name: &str| (name == "WINDLASS_HOME").then(|| home.display().to_string());
        Folders::resolve(&home_only).unwrap()
    }

    pub(super) fn load(&self) -> Result<Settings, SettingsError> {
        let env = |name: &str| {
            let found = self.variables.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone())
        };
        load(&Sources {
            folders: &self.folders(),
            cwd: &self.root.path().join("repo"),
            env: &env,
            env_names: self.variables.iter().map(|(name, _)| name.clone()).collect(),
            overrides: self.overrides.clone(),
            user_file: self.named.clone(),
            profile: None,
        })
    }

    pub(super) fn settings(&self) -> Settings {
        self.load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the problems, with shortened paths.
    pub(super) fn problems(&self) -> String {
        let error = self.load().expect_err("something is wrong");
        self.shorten(&error.to_string())
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.settings()
            .warnings
            .iter()
            .map(|warning| self.shorten(warning))
            .collect()
    }

    /// Returns `key = value  # origin` of one key.
    pub(super) fn line(&self, key: &str) -> String {
        let shown = self.shorten(&super::show(&self.settings(), true));
        let is_wanted = |line: &&str| line.trim_start_matches("# ").starts_with(&format!("{key} "));
        shown.lines().find(is_wanted).unwrap_or("not there").to_owned()
    }

    /// `config.toml` is the user's file, `project/config.toml` the project's.
    pub(super) fn shorten(&self, text: &str) -> String {
        let root = self.root.path().display().to_string();
        let text = text.replace(&format!("{root}/home/config/"), "");
        let text = text.replace(&format!("{root}/repo/.windlass/"), "project/");
        text.replace(&format!("{root}/"), "")
    }
}
