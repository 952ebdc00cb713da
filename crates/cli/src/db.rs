//! `windlass db`: maintains the session database.

use std::path::{Path, PathBuf};

use windlass_api::SessionInfo;
use windlass_core::log::LogError;
use windlass_core::text::count;
use windlass_store::maintenance::{Health, backup, check, vacuum};

use crate::exit::Exit;
use crate::session_choice::{chosen_store, database, foreign_problem, problem};
use crate::terminal::{plain, say, tell};
use windlass_args::DbCommand;
use windlass_config::{Problem, ProblemKind};

/// Runs a subcommand.
pub(crate) async fn command(command: &DbCommand) -> Result<Exit, Problem> {
    if let DbCommand::Copy { from, to } = command {
        return copy_sessions(from, to).await;
    }
    let path = match chosen_store() {
        Some(url) if windlass_store::is_shared(url).map_err(problem)? => return of_server(url, command),
        Some(url) => PathBuf::from(windlass_store::shown(url).map_err(problem)?),
        None => database()?,
    };
    if let DbCommand::Path = command {
        say!("{}", path.display());
        return Ok(Exit::Ok);
    }
    if !path.exists() {
        say!(
            "There is no database yet: the first session creates {}.",
            path.display()
        );
        return Ok(Exit::Ok);
    }
    match command {
        DbCommand::Check => {
            let health = check(&path).map_err(|error| unusable(&path, &error))?;
            Ok(report(&path, &health))
        }
        DbCommand::Backup { file } => copy(&path, file),
        DbCommand::Vacuum => tidy(&path),
        DbCommand::Path | DbCommand::Copy { .. } => Ok(Exit::Ok),
    }
}

/// Answers for a database on a server, which has tools of its own.
fn of_server(url: &str, command: &DbCommand) -> Result<Exit, Problem> {
    let shown = windlass_store::shown(url).map_err(problem)?;
    let tool = match command {
        DbCommand::Backup { .. } => "`pg_dump` makes a backup of it",
        DbCommand::Vacuum => "the server reclaims unused space automatically",
        DbCommand::Check => "`pg_amcheck` checks it",
        DbCommand::Path | DbCommand::Copy { .. } => {
            say!("{shown}");
            return Ok(Exit::Ok);
        }
    };
    Err(Problem::usage(format!(
        "the store is {shown}, and this command works on a SQLite file; {tool}"
    )))
}

/// DIST-8: copies all sessions.
async fn copy_sessions(from: &str, to: &str) -> Result<Exit, Problem> {
    let shown = |url: &str| windlass_store::shown(url).map_err(foreign_problem);
    let (source, target) = (shown(from)?, shown(to)?);
    if source == target {
        return Err(Problem::usage(format!("both stores are {source}")));
    }
    let is_file = !windlass_store::is_shared(from).map_err(foreign_problem)?;
    if is_file && !Path::new(&source).exists() {
        return Err(Problem::usage(format!("there is no database {source}")));
    }
    let told = |number: usize, count: usize, info: &SessionInfo| {
        let title = info.label.title.as_deref().unwrap_or("untitled");
        tell!("{number}/{count}  {}  {}", info.id, plain(title));
    };
    let report = windlass_store::copy(from, to, windlass_config::environment::clock(), told)
        .await
        .map_err(problem)?;
    say!(
        "copied {} from {source} to {target}",
        count(report.copied, "session")
    );
    if report.present > 0 {
        say!("{} there already", count(report.present, "session"));
    }
    Ok(Exit::Ok)
}

fn report(path: &Path, health: &Health) -> Exit {
    say!("{}", path.display());
    say!(
        "version {}, {}, {}, {}",
        health.version,
        count(health.sessions, "session"),
        count(health.entries, "entry"),
        size(path)
    );
    if health.problems.is_empty() {
        say!("no problems found");
        return Exit::Ok;
    }
    let problems = count(health.problems.len(), "problem");
    say!("{problems}; everything else is readable:");
    for problem in &health.problems {
        say!("  {}", plain(problem));
    }
    Exit::Failed
}

fn copy(path: &Path, target: &Path) -> Result<Exit, Problem> {
    if target.symlink_metadata().is_ok() {
        let text = format!("{}: already exists; nothing was written", target.display());
        return Err(Problem::new(ProblemKind::Failed, text));
    }
    backup(path, target).map_err(|error| unusable(path, &error))?;
    say!("copied to {} ({})", target.display(), size(target));
    Ok(Exit::Ok)
}

fn tidy(path: &Path) -> Result<Exit, Problem> {
    let before = size(path);
    vacuum(path).map_err(|error| unusable(path, &error))?;
    say!("{before} before, {} now", size(path));
    Ok(Exit::Ok)
}

#[allow(clippy::cast_precision_loss)]
fn size(path: &Path) -> String {
    let bytes = std::fs::metadata(path).map_or(0, |data| data.len());
    format!("{:.1} MB", bytes as f64 / 1_000_000.0)
}

/// Explains why the database cannot be used, and what the user can do.
fn unusable(path: &Path, error: &LogError) -> Problem {
    let advice = advice(path, error).unwrap_or_else(|| "Nothing was changed.".to_owned());
    Problem::new(
        ProblemKind::Store,
        format!("{}: {error}\n{advice}", path.display()),
    )
}

/// Returns the user's next step after an error of the database, if there is one.
pub(crate) fn advice(path: &Path, error: &LogError) -> Option<String> {
    let shown = path.display();
    Some(match error {
        LogError::Damaged { .. } if std::fs::metadata(path).is_ok_and(|data| data.len() == 0) => format!(
            "`windlass db backup` makes copies: if you have one, put it in place of {shown}. Without the file, the next \
             session creates a new database."
        ),
        LogError::Damaged { .. } => format!(
            "Nothing was changed. Copy {shown} and the files beside it first. `windlass db check` lists the damage. Most \
             sessions are probably still readable: use `windlass sessions export SESSION`, or `sqlite3 {shown} .recover` \
             into a new file. You can also restore a copy made with `windlass db backup`."
        ),
        LogError::Foreign(_) if path.is_file() => format!(
            "Nothing was changed. Use the Windlass version that wrote {shown}, or move the file away: the next session \
             creates a new one."
        ),
        LogError::Full(_) => "Free some space and try again; the stored data is intact.".to_owned(),
        LogError::ReadOnly(_) => format!("Check the owner and the permissions of {shown} and its folder."),
        LogError::Locked(_) => "Another process is using it; try again when it has finished.".to_owned(),
        _ => return None,
    })
}
