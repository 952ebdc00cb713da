//! The user's hooks as an extension.

use std::collections::{BTreeMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::folders::{FOREIGN_HOOKS, Folders};
use windlass_config::settings::Settings;
use windlass_config::trust::{self, TrustState};
use windlass_core::hook::Hooks;
use windlass_hooks::{
    HookFile, HookHost, HookOrigin, HookRun, HookRuns, HookSet, SessionFacts, SessionHooks, report,
};
use windlass_providers::preset::key_variables;
use windlass_service::{ExtensionCommand, ExtensionReply, TurnStart};

use super::{Extension, ExtensionOffer};
use crate::factory::SessionSpec;

/// Maximum size of a hook file.
const MAX_FILE: u64 = 1 << 20;
/// Size at which the record of runs starts anew.
const MAX_RECORD: u64 = 256 << 10;

/// The places that hooks are read from.
#[derive(Debug, Clone)]
pub struct HookSources {
    folders: Folders,
    cwd: PathBuf,
}

impl HookSources {
    /// Hooks of the user, and of the project around a folder.
    pub fn new(folders: Folders, cwd: &Path) -> Self {
        Self {
            folders,
            cwd: cwd.to_owned(),
        }
    }

    /// Reads all hooks. Those of a project count if the user trusts them; otherwise the second value says why not.
    pub fn read(&self) -> (HookSet, Option<String>) {
        let mut files: Vec<HookFile> = self.user_files().iter().filter_map(|path| read(path)).collect();
        let mut notice = None;
        if let Some(project) = self.folders.project(&self.cwd) {
            let own = project.hooks_file();
            let paths = FOREIGN_HOOKS
                .iter()
                .map(|name| project.root.join(name))
                .chain([own]);
            let state = trust::look(&self.folders, &project);
            if let TrustState::Trusted(snapshot) = &state {
                for path in paths {
                    let Some(bytes) = snapshot.bytes(&project, &path) else {
                        continue;
                    };
                    let text = String::from_utf8_lossy(bytes);
                    files.push(HookFile::parse(&path, HookOrigin::Project, &text));
                }
            } else if paths.into_iter().any(|path| path.exists()) {
                notice = state.notice(&project);
            }
        }
        files.retain(|file| !file.handlers.is_empty() || !file.problems.is_empty());
        (HookSet::new(files).watching(&self.cwd), notice)
    }

    fn user_files(&self) -> Vec<PathBuf> {
        let folder = |variable: &str, name: &str| {
            let set = environment::var(variable)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            set.or_else(|| self.folders.home.as_ref().map(|home| home.join(name)))
        };
        let claude = folder("CLAUDE_CONFIG_DIR", ".claude").map(|folder| folder.join("settings.json"));
        let codex = folder("CODEX_HOME", ".codex").map(|folder| folder.join("hooks.json"));
        claude
            .into_iter()
            .chain(codex)
            .chain([self.folders.user_hooks()])
            .collect()
    }

    /// Returns the surroundings of hooks: the environment of the user without the keys of providers.
    pub fn host(&self, settings: &Settings) -> HookHost {
        let providers = settings.providers.values();
        let named = providers.filter_map(|provider| provider.key_env.as_deref());
        let known = key_variables().map(|name| -> &str { name });
        let keys: Vec<&str> = known.chain(named).collect();
        let is_secret =
            |name: &str| keys.contains(&name) || name.starts_with("OTEL_") || name.ends_with("_API_KEY");
        let mut env: BTreeMap<String, String> =
            environment::vars().filter(|(name, _)| !is_secret(name)).collect();
        let root = self
            .folders
            .project(&self.cwd)
            .map_or_else(|| self.cwd.clone(), |project| project.root);
        env.insert("CLAUDE_PROJECT_DIR".to_owned(), root.display().to_string());
        env.insert("AGENT".to_owned(), "windlass".to_owned());
        let mark = windlass_sandbox::warden_mark();
        env.extend(mark.map(|(name, value)| (name.to_owned(), value.to_owned())));
        HookHost {
            cwd: self.cwd.clone(),
            env,
            sandbox: environment::current_exe().ok(),
            clock: environment::clock(),
        }
    }

    /// Returns the runs that earlier sessions recorded.
    pub fn recorded(&self) -> HookRuns {
        let mut runs = HookRuns::default();
        let text = std::fs::read_to_string(self.folders.hook_runs()).unwrap_or_default();
        for run in text
            .lines()
            .filter_map(|line| serde_json::from_str::<HookRun>(line).ok())
        {
            runs.push(run);
        }
        runs
    }

    /// Creates hooks of a session.
    pub fn session(&self, settings: &Settings, facts: SessionFacts, set: HookSet) -> SessionHooks {
        let path = self.folders.hook_runs();
        SessionHooks::new(facts, self.host(settings), set, move |run| append(&path, run))
    }
}

/// Reads a file of the user; `None` if there is none.
fn read(path: &Path) -> Option<HookFile> {
    let found = path.metadata().ok()?;
    if !found.is_file() {
        let why = "not a regular file, and not read".to_owned();
        return Some(HookFile::unreadable(path, HookOrigin::User, why));
    }
    if found.len() > MAX_FILE {
        let why = format!("larger than {} KB, and not read", MAX_FILE >> 10);
        return Some(HookFile::unreadable(path, HookOrigin::User, why));
    }
    Some(match std::fs::read_to_string(path) {
        Ok(text) => HookFile::parse(path, HookOrigin::User, &text),
        Err(error) => HookFile::unreadable(path, HookOrigin::User, format!("cannot be read: {error}")),
    })
}

/// Adds a run to the record. The record is a convenience, so a failure changes nothing.
fn append(path: &Path, run: &HookRun) {
    let is_full = path.metadata().is_ok_and(|found| found.len() > MAX_RECORD);
    let _ = path.parent().map(std::fs::create_dir_all);
    let mut options = OpenOptions::new();
    options
        .create(true)
        .append(!is_full)
        .write(true)
        .truncate(is_full);
    if let (Ok(mut file), Ok(line)) = (options.open(path), serde_json::to_string(run)) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// The hooks of a session.
pub struct UserHooks {
    sources: HookSources,
    hooks: SessionHooks,
    /// Problems that the user has been told about.
    told: HashSet<String>,
    /// Reason why a project's hooks are not in effect.
    untrusted: Option<String>,
}

impl UserHooks {
    /// Reads the hooks.
    ///
    /// # Errors
    /// Fails if the folders of the user are unknown.
    pub fn new(settings: &Settings, spec: &SessionSpec) -> Result<Self, Problem> {
        let folders = environment::folders()?;
        let env_file = folders
            .state
            .join(format!("hook-env-{}", spec.session.as_str().replace('/', "_")));
        let sources = HookSources::new(folders, &spec.cwd);
        let (set, untrusted) = sources.read();
        let facts = SessionFacts {
            session: spec.session.to_string(),
            agent: spec
                .agent
                .as_ref()
                .map(|agent| (spec.session.to_string(), agent.kind.name.clone())),
            is_attended: spec.interactive,
            env_file,
        };
        Ok(Self {
            hooks: sources.session(settings, facts, set),
            sources,
            told: HashSet::new(),
            untrusted,
        })
    }
}

#[async_trait]
impl Extension for UserHooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    async fn refresh(&mut self, turn: &TurnStart, settings: &Settings) -> Vec<String> {
        let (set, untrusted) = self.sources.read();
        self.untrusted = untrusted;
        let problems = set.files().iter().flat_map(|file| {
            let name = file.path.display().to_string();
            file.problems
                .iter()
                .map(move |problem| format!("{name}: {problem}"))
        });
        let news = problems
            .filter(|problem| self.told.insert(problem.clone()))
            .collect();
        self.hooks.replace(set);
        let id = turn.message.as_ref().map(ToString::to_string);
        self.hooks.begin(id, settings.security.mode);
        news
    }

    fn offer(&self) -> ExtensionOffer {
        let mut hooks = Hooks::new();
        if !self.hooks.is_empty() {
            hooks.push(self.hooks.clone());
        }
        ExtensionOffer {
            hooks,
            env: self.hooks.environment(),
            ..ExtensionOffer::default()
        }
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        if !command.arguments.is_empty() {
            return Err("/hooks has no arguments; `windlass hooks test` tries hooks out".to_owned());
        }
        let (set, untrusted) = self.sources.read();
        let (_, runs) = self.hooks.shown();
        Ok(ExtensionReply::text(report(&set, &runs, untrusted.as_deref())))
    }

    async fn close(&mut self) {
        self.hooks.close().await;
    }
}
