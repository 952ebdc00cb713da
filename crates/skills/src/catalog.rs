//! The skills in effect, and the part of the system prompt that names them.

use std::collections::HashMap;

use crate::front::Skill;
use crate::scan::{SkillOrigin, SkillProblem};

/// Maximum length of the listing, in bytes: about one percent of a large context window.
const BUDGET: usize = 8_000;
/// Shortest description that is still of use, in characters.
const SHORTEST: usize = 40;

/// Start of the listing.
const LEAD: &str = "\n\nSkills are instructions for particular tasks. When a task fits one of these, call the skill tool \
with its name before you start, and follow what it returns.";

/// The skills in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillCatalog {
    /// The skills, the nearest first.
    pub skills: Vec<Skill>,
    /// Mistakes, and skills that another one hides.
    pub problems: Vec<SkillProblem>,
}

impl SkillCatalog {
    /// Decides between skills with the same name: those of a trusted project come first, then the user's, those of a
    /// project that is not trusted, of plugins, and the built-in ones. A plugin's skill is also called
    /// `plugin:skill`, which no other skill can hide.
    pub fn resolve(mut found: Vec<Skill>, mut problems: Vec<SkillProblem>) -> Self {
        let rank = |skill: &Skill| match skill.origin {
            SkillOrigin::Project if skill.is_trusted => 0,
            SkillOrigin::User => 1,
            SkillOrigin::Project => 2,
            SkillOrigin::Plugin(_) => 3,
            SkillOrigin::BuiltIn => 4,
        };
        for skill in &mut found {
            if let SkillOrigin::Plugin(plugin) = &skill.origin
                && !skill.name.contains(':')
            {
                skill.name = format!("{plugin}:{}", skill.name);
            }
        }
        found.sort_by_key(rank);
        let mut first: HashMap<String, std::path::PathBuf> = HashMap::new();
        let mut skills = Vec::new();
        for skill in found {
            match first.get(&skill.name) {
                Some(other) => problems.push(SkillProblem {
                    message: format!("`{}` is hidden by {}", skill.name, other.display()),
                    file: skill.file,
                    line: None,
                    is_fatal: skill.origin != SkillOrigin::BuiltIn,
                }),
                None => {
                    first.insert(skill.name.clone(), skill.file.clone());
                    skills.push(skill);
                }
            }
        }
        Self { skills, problems }
    }

    /// Returns a skill by its name; that of a plugin also without the plugin's name, if no other has it.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        let name = name.trim().trim_start_matches('/');
        let exact = self.skills.iter().find(|skill| skill.name == name);
        exact.or_else(|| {
            let mut short = self
                .skills
                .iter()
                .filter(|skill| skill.name.split_once(':').is_some_and(|(_, short)| short == name));
            short.next().filter(|_| short.next().is_none())
        })
    }

    /// Returns the skills that a model may use from the start.
    pub fn offered(&self) -> impl Iterator<Item = &Skill> {
        self.skills
            .iter()
            .filter(|skill| skill.options.by_model && skill.options.paths.is_empty())
    }
}

/// Returns one line of the listing.
pub fn listing_line(skill: &Skill, most: usize) -> String {
    let count = skill.description.chars().count();
    let text = match count > most {
        true => format!(
            "{}…",
            skill
                .description
                .chars()
                .take(most)
                .collect::<String>()
                .trim_end()
        ),
        false => skill.description.clone(),
    };
    format!("- {}: {text}", skill.name)
}

/// Returns the part of the system prompt that names the skills; `None` if there are none. Descriptions are shortened
/// until all fit, and then the last skills are left out, which is said.
pub fn listing<'a>(skills: impl Iterator<Item = &'a Skill>) -> Option<String> {
    let mut skills: Vec<&Skill> = skills.collect();
    if skills.is_empty() {
        return None;
    }
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    let mut most = usize::MAX;
    let mut lines: Vec<String>;
    loop {
        lines = skills.iter().map(|skill| listing_line(skill, most)).collect();
        let total: usize = lines.iter().map(|line| line.len() + 1).sum();
        if total <= BUDGET || most <= SHORTEST {
            break;
        }
        most = if most == usize::MAX {
            1_024
        } else {
            (most / 2).max(SHORTEST)
        };
    }
    let (mut used, mut kept) = (0, 0);
    for line in &lines {
        used += line.len() + 1;
        if used > BUDGET {
            break;
        }
        kept += 1;
    }
    let left = lines.len() - kept;
    lines.truncate(kept);
    if left > 0 {
        lines.push(format!("- and {left} more, which the user can name"));
    }
    Some(format!("{LEAD}\n<skills>\n{}\n</skills>", lines.join("\n")))
}
