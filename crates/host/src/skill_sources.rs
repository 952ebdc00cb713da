//! SKILL-1: the folders that a session's skills come from, and the skills in effect.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use windlass_config::environment;
use windlass_config::folders::{Folders, is_repository};
use windlass_config::trust::{self, TrustState};
use windlass_skills::{
    Skill, SkillCatalog, SkillFiles, SkillOrigin, SkillProblem, SkillRoot, is_valid_name, parse_skill,
};

use crate::plugins::{self, EnabledPlugins};

/// Folders of a project with skills, the most specific first.
const PROJECT: [&str; 3] = [".windlass/skills", ".agents/skills", ".claude/skills"];

/// Skills that are part of the program.
const BUILT_IN: [(&str, &str); 1] = [(
    "built-in/create-skill/SKILL.md",
    include_str!("skill_sources/create-skill.md"),
)];

/// Returns the skills that are part of the program, parsed once.
fn built_in() -> &'static [Skill] {
    static SKILLS: LazyLock<Vec<Skill>> = LazyLock::new(|| {
        let parse = |(file, text)| parse_skill(Path::new(file), text, SkillOrigin::BuiltIn, &mut Vec::new());
        BUILT_IN.into_iter().filter_map(parse).collect()
    });
    &SKILLS
}

/// Sources of the skills of a session.
pub struct SkillSources {
    folders: Folders,
    cwd: PathBuf,
    files: SkillFiles,
    plugins: EnabledPlugins,
}

impl SkillSources {
    /// The sources for a session in `cwd`. Reads nothing yet.
    pub fn new(folders: Folders, cwd: &Path) -> Self {
        Self {
            folders,
            cwd: cwd.to_owned(),
            files: SkillFiles::default(),
            plugins: EnabledPlugins::default(),
        }
    }

    /// Reads the skills. Files that have not changed are not read again.
    pub fn read(&mut self) -> SkillCatalog {
        self.plugins = plugins::enabled(&self.folders);
        let roots = self.roots();
        let (mut skills, mut problems) = self.files.scan(&roots);
        problems.extend(self.plugins.warnings.iter().map(|warning| SkillProblem {
            file: self.folders.plugins_file(),
            line: None,
            message: warning.clone(),
            is_fatal: true,
        }));
        let snapshot = match self.folders.project(&self.cwd) {
            Some(project) => match trust::look(&self.folders, &project) {
                TrustState::Trusted(snapshot) => Some((project, snapshot)),
                _ => None,
            },
            None => None,
        };
        for skill in &mut skills {
            skill.is_trusted = match skill.origin {
                SkillOrigin::Project => snapshot.as_ref().is_some_and(|(project, snapshot)| {
                    let bytes = snapshot.bytes(project, &skill.file);
                    bytes.is_some_and(|bytes| holds(bytes, skill))
                }),
                SkillOrigin::User | SkillOrigin::Plugin(_) | SkillOrigin::BuiltIn => true,
            };
        }
        skills.extend(built_in().iter().cloned());
        SkillCatalog::resolve(skills, problems)
    }

    /// Returns the plugins in effect, as of the last time the skills were read.
    pub fn plugins(&self) -> &EnabledPlugins {
        &self.plugins
    }

    /// Returns the folders, the nearest first.
    fn roots(&self) -> Vec<SkillRoot> {
        let home = environment::var("HOME").map(PathBuf::from);
        let top = self
            .cwd
            .ancestors()
            .find(|folder| is_repository(folder))
            .unwrap_or(&self.cwd);
        let fence = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        let mut user = vec![self.folders.user_skills()];
        if let Some(home) = &home {
            user.push(home.join(".agents/skills"));
        }
        let xdg = environment::var("XDG_CONFIG_HOME").map(PathBuf::from);
        let xdg = xdg.filter(|folder| folder.is_absolute());
        let xdg = xdg.or_else(|| home.as_ref().map(|home| home.join(".config")));
        user.extend(xdg.map(|folder| folder.join("agents/skills")));
        user.extend(home.as_ref().map(|home| home.join(".claude/skills")));
        let mut roots = Vec::new();
        for folder in self.cwd.ancestors().take_while(|folder| folder.starts_with(top)) {
            for name in PROJECT {
                let folder = folder.join(name);
                // In the home folder these are the user's own.
                if !user.contains(&folder) {
                    roots.push(SkillRoot {
                        folder,
                        origin: SkillOrigin::Project,
                        fence: Some(fence.clone()),
                    });
                }
            }
        }
        roots.extend(user.into_iter().map(|folder| SkillRoot {
            folder,
            origin: SkillOrigin::User,
            fence: None,
        }));
        for plugin in &self.plugins.plugins {
            let mut parents: Vec<&Path> = plugin.skills.iter().filter_map(|skill| skill.parent()).collect();
            parents.dedup();
            roots.extend(parents.into_iter().map(|folder| SkillRoot {
                folder: folder.to_owned(),
                origin: SkillOrigin::Plugin(plugin.name.clone()),
                fence: Some(plugin.root.clone()),
            }));
        }
        roots
    }
}

/// Returns true if these bytes are the file that the skill was read from.
fn holds(bytes: &[u8], skill: &Skill) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let read = parse_skill(&skill.file, text, skill.origin.clone(), &mut Vec::new());
    read.is_some_and(|read| read.body == skill.body && read.options == skill.options)
}

/// Checks the folder of a skill, or its SKILL.md. Returns its name, unless it cannot be used, and the mistakes.
///
/// # Errors
/// Fails with the reason if the file cannot be read.
pub fn check(path: &Path) -> Result<(Option<String>, Vec<SkillProblem>), String> {
    let file = match path.is_dir() {
        true => path.join("SKILL.md"),
        false => path.to_owned(),
    };
    let file = file
        .canonicalize()
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let bytes = crate::command_files::read_limited(&file, 128 * 1024)
        .map_err(|why| format!("{}: {why}", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{}: it is not UTF-8 text", file.display()))?;
    let mut problems = Vec::new();
    let skill = parse_skill(&file, &text, SkillOrigin::User, &mut problems);
    Ok((skill.map(|skill| skill.name), problems))
}

/// Creates a skill to fill in, and returns its file.
///
/// # Errors
/// Fails with the reason if the name is not valid, or the skill exists.
pub fn create(parent: &Path, name: &str) -> Result<PathBuf, String> {
    if !is_valid_name(name) {
        return Err(format!(
            "`{name}` cannot be the name of a skill: it has 1 to 64 of a-z, 0-9 and single hyphens between them"
        ));
    }
    let folder = parent.join(name);
    let file = folder.join("SKILL.md");
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    if folder.exists() {
        return Err(format!("{}: already exists", folder.display()));
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let text = format!(
        "---\nname: {name}\ndescription: Say here what the skill does, and when to use it.\n---\n\n# {name}\n\n1. First step.\n"
    );
    std::fs::write(&file, text).map_err(failed)?;
    Ok(file)
}

/// Returns everything in a SKILL.md that needs trust: its commands and rules, one line each.
pub fn needs_trust(file: &Path, text: &str) -> Vec<String> {
    let Some(skill) = parse_skill(file, text, SkillOrigin::Project, &mut Vec::new()) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for rule in &skill.options.allowed_tools {
        lines.push(format!("{}: allows {rule} without asking", skill.name));
    }
    let variables = windlass_skills::SkillVariables {
        arguments: "",
        folder: &skill.folder,
        project: Path::new("."),
        session: "",
        plugin: None,
    };
    for piece in windlass_skills::Template::new(&skill, &variables).0 {
        if let windlass_skills::Piece::Command(command) = piece {
            lines.push(format!("{}: runs {command}", skill.name));
        }
    }
    lines
}
