//! SKILL-1, SKILL-2, EXT-2: skills as a part of a session.
//!
//! The names of the skills are in the system prompt, which does not change within a session: skills that appear later
//! are announced in a fragment before the next turn. A skill's text comes as the result of the `skill` tool, or as a
//! fragment beside the user's `/name`, and is injected again when a compaction removes it.

mod activation;
mod hook;
mod tool;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_api::{CommandSource, Part};
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_core::hook::Hooks;
use windlass_core::message::{Fragment, FragmentSource};
use windlass_core::permission::Rule;
use windlass_core::tool::{AnyTool, erase};
use windlass_service::format::cut;
use windlass_service::{DefinedCommand, ExtensionCommand, ExtensionReply, TurnStart};
use windlass_skills::{Skill, SkillCatalog, SkillOrigin, listing, listing_line};

use self::activation::Activation;
use self::hook::SkillHook;
use self::tool::SkillTool;
use super::{Extension, ExtensionHost, ExtensionOffer};
use crate::factory::SessionSpec;
use crate::skill_sources::SkillSources;

/// Number of characters of a description in lists for people.
const SHOWN: usize = 100;
/// Maximum length of an announced description.
const ANNOUNCED: usize = 300;

/// The skills of a session.
pub struct SkillsExtension {
    sources: SkillSources,
    state: Arc<SkillState>,
    /// The listing in the system prompt, as it was when the session was opened.
    system: Option<String>,
    tool: Arc<dyn AnyTool>,
    hook: Arc<SkillHook>,
    /// Problems that were reported.
    told: BTreeSet<String>,
}

/// State that the tool, the hook and the command share.
pub(crate) struct SkillState {
    pub(crate) host: ExtensionHost,
    pub(crate) session: String,
    pub(crate) cwd: PathBuf,
    inner: Mutex<Inner>,
}

/// The part of the state that changes.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) catalog: SkillCatalog,
    /// Names that the model knows, with their descriptions.
    pub(crate) announced: Vec<(String, String)>,
    /// News for the model, for the next turn.
    pub(crate) notes: Vec<String>,
    /// Texts in the conversation, the newest last.
    pub(crate) loaded: Vec<(String, String)>,
    /// Rules of active skills.
    pub(crate) rules: Vec<Rule>,
}

impl SkillState {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SkillsExtension {
    /// Reads the skills of the folder of a session.
    ///
    /// # Errors
    /// Fails if the folders of the user cannot be found.
    pub fn new(_: &Settings, spec: &SessionSpec, host: &ExtensionHost) -> Result<Self, Problem> {
        let mut sources = SkillSources::new(environment::folders()?, &spec.cwd);
        let catalog = sources.read();
        let system = listing(catalog.offered());
        let announced = catalog.offered().map(known).collect();
        let state = Arc::new(SkillState {
            host: host.clone(),
            session: spec.session.to_string(),
            cwd: spec.cwd.clone(),
            inner: Mutex::new(Inner {
                catalog,
                announced,
                ..Inner::default()
            }),
        });
        Ok(Self {
            sources,
            system,
            tool: erase(SkillTool(Arc::clone(&state))),
            hook: Arc::new(SkillHook(Arc::clone(&state))),
            told: BTreeSet::new(),
            state,
        })
    }

    /// Rereads the files, and notes the differences for the model. Returns notices for the user.
    fn reread(&mut self) -> Vec<String> {
        let catalog = self.sources.read();
        let mut notices = Vec::new();
        for problem in catalog.problems.iter().filter(|problem| problem.is_fatal) {
            let text = problem.to_string();
            if self.told.insert(text.clone()) {
                notices.push(text);
            }
        }
        let mut inner = self.state.lock();
        if inner.catalog == catalog {
            return notices;
        }
        let now: Vec<(String, String)> = catalog.offered().map(known).collect();
        for (name, description) in &now {
            let before = inner.announced.iter().find(|(known, _)| known == name);
            if before.is_some_and(|(_, known)| known == description) {
                continue;
            }
            let is_new = before.is_none();
            if let Some(skill) = catalog.find(name) {
                let word = if is_new { "new" } else { "changed" };
                inner
                    .notes
                    .push(format!("{word} skill\n{}", listing_line(skill, ANNOUNCED)));
                notices.push(format!("{word} skill: {name} ({})", skill.file.display()));
            }
        }
        let gone: Vec<String> = inner
            .announced
            .iter()
            .filter(|(name, _)| catalog.find(name).is_none())
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            inner.notes.push(format!("removed skill\n- {name}"));
            notices.push(format!("removed skill: {name}"));
        }
        // Skills that are offered with certain files stay known.
        let kept = inner
            .announced
            .iter()
            .filter(|(name, _)| catalog.find(name).is_some() && !now.iter().any(|(other, _)| other == name));
        let kept: Vec<_> = kept.cloned().collect();
        inner.announced = now.into_iter().chain(kept).collect();
        inner.catalog = catalog;
        notices
    }

    /// Lists the skills for a person.
    fn list(&self) -> String {
        let inner = self.state.lock();
        skill_lines(&inner.catalog).join("\n")
    }

    /// Shows one skill.
    fn show(&self, name: &str) -> Result<String, String> {
        let inner = self.state.lock();
        let skill = inner
            .catalog
            .find(name)
            .ok_or_else(|| unknown(&inner.catalog, name))?;
        Ok(skill_text(skill))
    }

    /// Returns the input of a turn that starts with a skill.
    async fn start(&self, name: &str, arguments: &str, is_busy: bool) -> Result<ExtensionReply, String> {
        let skill = {
            let inner = self.state.lock();
            let skill = inner.catalog.find(name).cloned();
            skill.ok_or_else(|| unknown(&inner.catalog, name))?
        };
        if !skill.options.by_user {
            return Err(format!(
                "`{}` has `user-invocable: false`: only the model uses it",
                skill.name
            ));
        }
        let activation = Activation::new(&self.state, &skill, arguments);
        if is_busy && activation.has_commands() {
            return Err(format!("/{} runs commands; wait for the turn to end", skill.name));
        }
        let cancel = tokio_util::sync::CancellationToken::new();
        let mut text = activation.text(&cancel).await;
        if skill.options.fork && skill.is_trusted {
            let kind = skill
                .options
                .agent
                .as_deref()
                .map(|kind| format!(" of type `{kind}`"));
            text = format!(
                "Start a sub-agent{} with the agent tool. Its task is this text, word for word:\n\n{text}",
                kind.unwrap_or_default()
            );
        }
        activation.activate(&text);
        let fragment = Fragment::new(FragmentSource::Skill, text).labeled(&skill.name);
        let typed = format!("/{} {arguments}", skill.name);
        Ok(ExtensionReply {
            text: String::new(),
            submit: Some(vec![
                Part::Context(fragment),
                Part::text(typed.trim_end().to_owned()),
            ]),
        })
    }

    /// Returns the skills as slash commands.
    fn commands(&self) -> Vec<DefinedCommand> {
        let inner = self.state.lock();
        let usable = inner.catalog.skills.iter().filter(|skill| skill.options.by_user);
        let mut commands: Vec<DefinedCommand> = usable
            .map(|skill| DefinedCommand {
                name: skill.name.clone(),
                description: cut(&skill.description, SHOWN),
                hint: skill.options.hint.clone(),
                body: String::new(),
                source: match skill.origin {
                    SkillOrigin::Project => CommandSource::Project,
                    _ => CommandSource::User,
                },
                file: skill.file.display().to_string(),
                runs_in: Some("skills"),
            })
            .collect();
        commands.extend(crate::plugins::commands(self.sources.plugins()));
        commands
    }
}

fn known(skill: &Skill) -> (String, String) {
    (skill.name.clone(), skill.description.clone())
}

fn unknown(catalog: &SkillCatalog, name: &str) -> String {
    let names: Vec<&str> = catalog.skills.iter().map(|skill| skill.name.as_str()).collect();
    match names.is_empty() {
        true => format!("there is no skill `{name}`, and no other either"),
        false => format!("there is no skill `{name}`; there are {}", names.join(", ")),
    }
}

/// Lists skills and their problems for a person, one line each.
pub fn skill_lines(catalog: &SkillCatalog) -> Vec<String> {
    let mut lines: Vec<String> = catalog
        .skills
        .iter()
        .map(|skill| {
            let mut marks = vec![skill.origin.to_string()];
            if !skill.is_trusted && skill.origin == SkillOrigin::Project {
                marks.push("not trusted".to_owned());
            }
            if !skill.options.by_model {
                marks.push("only by you".to_owned());
            }
            if !skill.options.by_user {
                marks.push("only by the model".to_owned());
            }
            if skill.options.fork {
                marks.push("in a sub-agent".to_owned());
            }
            let description = cut(&skill.description, SHOWN);
            format!(
                "{:<24} {description}  [{}]  {}",
                skill.name,
                marks.join(", "),
                skill.file.display()
            )
        })
        .collect();
    if !catalog.problems.is_empty() {
        lines.push(String::new());
        lines.extend(
            catalog
                .problems
                .iter()
                .map(|problem| format!("problem: {problem}")),
        );
    }
    lines
}

/// Describes a skill for a person.
fn skill_text(skill: &Skill) -> String {
    let options = &skill.options;
    let mut rows = vec![
        ("name", skill.name.clone()),
        ("description", skill.description.clone()),
        ("from", format!("{}, {}", skill.origin, skill.file.display())),
    ];
    if skill.origin == SkillOrigin::Project {
        let text = match skill.is_trusted {
            true => "yes",
            false => {
                "no: its commands do not run, and allowed-tools, model and context have no effect; see `windlass trust`"
            }
        };
        rows.push(("trusted", text.to_owned()));
    }
    for (name, values) in [
        ("allowed", &options.allowed_tools),
        ("arguments", &options.arguments),
        ("paths", &options.paths),
    ] {
        if !values.is_empty() {
            rows.push((name, values.join(" ")));
        }
    }
    rows.extend(options.model.clone().map(|model| ("model", model)));
    let lines = rows.iter().map(|(name, text)| format!("{name:<12} {text}"));
    format!("{}\n\n{}", lines.collect::<Vec<_>>().join("\n"), skill.body)
}

#[async_trait]
impl Extension for SkillsExtension {
    fn name(&self) -> &'static str {
        "skills"
    }

    async fn refresh(&mut self, _: &TurnStart, _: &Settings) -> Vec<String> {
        self.reread()
    }

    fn offer(&self) -> ExtensionOffer {
        // Without skills there is no tool, so that the prompt of most sessions stays as it is.
        let has_skills = self.system.is_some() || !self.state.lock().announced.is_empty();
        let mut hooks = Hooks::new();
        hooks.push_shared(Arc::clone(&self.hook) as _);
        ExtensionOffer {
            tools: has_skills.then(|| Arc::clone(&self.tool)).into_iter().collect(),
            hooks,
            system: self.system.clone(),
            commands: self.commands(),
            ..ExtensionOffer::default()
        }
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        let arguments = command.arguments;
        if let Some(line) = arguments.strip_prefix('/') {
            let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            return self.start(name, rest.trim(), command.is_busy).await;
        }
        // The news of a reload belongs to the next turn, which reads the files again.
        match arguments {
            "" | "list" => Ok(ExtensionReply::text(self.list())),
            name => self
                .show(name.strip_prefix("show ").unwrap_or(name))
                .map(ExtensionReply::text),
        }
    }
}

/// Returns the path relative to a folder, if it is inside.
fn inside(path: &Path, folder: &Path) -> Option<String> {
    Some(path.strip_prefix(folder).ok()?.to_string_lossy().into_owned())
}
