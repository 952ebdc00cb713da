//! SKILL-1: `windlass skills`: lists, checks and creates skills.

use std::path::{Path, PathBuf};

use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};
use windlass_host::extension::skills::skill_lines;
use windlass_host::skill_sources::{SkillSources, check, create};

use crate::engine::working_directory;
use crate::exit::Exit;
use crate::terminal::{plain, say};
use windlass_args::SkillsCommand;

/// Runs a subcommand.
pub(crate) fn command(command: SkillsCommand) -> Result<Exit, Problem> {
    match command {
        SkillsCommand::List => {
            let mut sources = SkillSources::new(environment::folders()?, &working_directory(None)?);
            skill_lines(&sources.read())
                .iter()
                .for_each(|line| say!("{}", plain(line)));
            Ok(Exit::Ok)
        }
        SkillsCommand::Check { path: Some(path) } => check_one(&path),
        SkillsCommand::Check { path: None } => check_all(),
        SkillsCommand::New { name, user } => new(&name, user),
    }
}

fn check_one(path: &Path) -> Result<Exit, Problem> {
    let (name, problems) = check(path).map_err(failed)?;
    problems
        .iter()
        .for_each(|problem| say!("{}", plain(&problem.to_string())));
    match name {
        Some(name) if problems.is_empty() => say!("{}: no mistakes", plain(&name)),
        Some(_) => {}
        None => return Ok(Exit::Failed),
    }
    Ok(Exit::Ok)
}

fn check_all() -> Result<Exit, Problem> {
    let mut sources = SkillSources::new(environment::folders()?, &working_directory(None)?);
    let catalog = sources.read();
    let problems = &catalog.problems;
    problems
        .iter()
        .for_each(|problem| say!("{}", plain(&problem.to_string())));
    let count = windlass_core::text::count(catalog.skills.len(), "skill");
    say!(
        "{count}, {}",
        windlass_core::text::count(problems.len(), "mistake")
    );
    match problems.iter().any(|problem| problem.is_fatal) {
        true => Ok(Exit::Failed),
        false => Ok(Exit::Ok),
    }
}

fn new(name: &str, user: bool) -> Result<Exit, Problem> {
    let parent: PathBuf = match user {
        true => environment::var("HOME")
            .map(PathBuf::from)
            .ok_or_else(|| failed("HOME is not set".to_owned()))?,
        false => working_directory(None)?,
    };
    let file = create(&parent.join(".agents/skills"), name).map_err(failed)?;
    say!("created {}", file.display());
    say!(
        "Describe in it what the skill does and when to use it; `windlass skills check {}` checks it.",
        file.display()
    );
    Ok(Exit::Ok)
}

fn failed(why: String) -> Problem {
    Problem::new(ProblemKind::Failed, why)
}
