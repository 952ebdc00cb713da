//! `windlass memory`.

use windlass_config::environment::{self, Given};
use windlass_config::{Problem, ProblemKind};
use windlass_host::memory::{MemoryDesk, SetupFrom, set_up, unit_line};

use crate::args::MemoryCommand;
use crate::engine::working_directory;
use crate::exit::Exit;
use crate::print_text;
use crate::session_choice;
use crate::sessions::print_json;
use crate::terminal::{plain, say, tell};
use windlass_sandbox::read_given_text;

/// Size of the largest file that is imported.
const MAX_IMPORT: u64 = 64 << 20;

/// Runs a subcommand.
pub(crate) async fn command(command: MemoryCommand) -> Result<Exit, Problem> {
    if let MemoryCommand::Setup { from, index } = command {
        let from = from.map_or(SetupFrom::Index(index), SetupFrom::File);
        let file = set_up(&from).await?;
        say!("installed {}", plain(&file.display().to_string()));
        say!("sessions of every folder use it from their next turn on");
        return Ok(Exit::Ok);
    }
    let folder = working_directory(None)?;
    let settings = environment::settings(&Given::default(), &folder)?;
    let desk = MemoryDesk::of_folder(session_choice::store()?, &settings, &folder);
    let done = run(&desk, command).await;
    for problem in desk.take_problems() {
        tell!("{}", plain(&problem));
    }
    done.map_err(|text| Problem::new(ProblemKind::Failed, text))?
}

async fn run(desk: &MemoryDesk, command: MemoryCommand) -> Result<Result<Exit, Problem>, String> {
    match command {
        MemoryCommand::List { all, limit, json } => {
            desk.catch_up().await?;
            let units = desk.list(all, limit).await?;
            let lines = units.iter().map(unit_line).collect();
            Ok(shown(json, &units, lines, "Nothing is remembered here."))
        }
        MemoryCommand::Search { words, limit, json } => {
            desk.catch_up().await?;
            let hits = desk.search(&words.join(" "), limit).await?;
            let units: Vec<_> = hits.into_iter().map(|hit| hit.unit).collect();
            let lines = units.iter().map(unit_line).collect();
            Ok(shown(json, &units, lines, desk.no_matches()))
        }
        MemoryCommand::Show { id, json } => {
            let unit = desk.unit(id).await?;
            let lines = vec![unit_line(&unit), unit.text.clone()];
            Ok(shown(json, &unit, lines, ""))
        }
        MemoryCommand::Export => Ok(print_text(desk.export().await?.trim_end())),
        MemoryCommand::Import { file } => {
            let text =
                read_given_text(&file, MAX_IMPORT).map_err(|error| format!("{}: {error}", file.display()))?;
            let (count, left_out) = desk
                .import(&text)
                .await
                .map_err(|error| format!("{}: {error}", file.display()))?;
            Ok(done(&match left_out {
                0 => format!("imported {count}"),
                known => format!("imported {count}; {known} were there already"),
            }))
        }
        MemoryCommand::Stats { json } => {
            let stats = desk.stats().await?;
            let mut lines: Vec<String> = stats
                .units
                .iter()
                .map(|(place, kind, count)| match place.as_str() {
                    "" => format!("{count} {kind}, all projects"),
                    place => format!("{count} {kind}, {}", plain(place)),
                })
                .collect();
            lines.extend(
                stats
                    .vectors
                    .iter()
                    .map(|(model, count)| format!("{count} vectors of {model}")),
            );
            lines.push(format!(
                "{} bytes of text, {} searches without a result",
                stats.text_bytes, stats.misses
            ));
            Ok(shown(json, &stats, lines, ""))
        }
        MemoryCommand::Misses { limit, json } => {
            let misses = desk.misses(limit).await?;
            let lines = misses
                .iter()
                .map(|miss| {
                    format!(
                        "{}  {}  {}  {}",
                        miss.ts,
                        miss.strategy,
                        miss.error,
                        miss.query.replace('\n', " ")
                    )
                })
                .collect();
            Ok(shown(json, &misses, lines, "No search failed."))
        }
        change => changed(desk, change).await.map(|text| done(&text)),
    }
}

/// Runs a subcommand that changes memory, and returns what was done.
async fn changed(desk: &MemoryDesk, command: MemoryCommand) -> Result<String, String> {
    match command {
        MemoryCommand::Save { text, user } => desk.save(&text, user).await.map(|id| format!("saved as {id}")),
        MemoryCommand::Edit { id, text } => desk.edit(id, &text).await.map(|id| format!("saved as {id}")),
        MemoryCommand::Pin { id, remove } => {
            desk.pin(id, !remove).await?;
            Ok(format!("{} {id}", if remove { "unpinned" } else { "pinned" }))
        }
        MemoryCommand::Confirm { id, user } => desk
            .confirm(id, user)
            .await
            .map(|id| format!("confirmed as {id}")),
        MemoryCommand::Forget { ids, all, .. } => {
            let ids = match all {
                true => desk.list(true, 0).await?.iter().map(|unit| unit.id).collect(),
                false => ids,
            };
            let count = desk.forget(&ids).await?;
            Ok(format!("forgot {count}, and every copy of their text"))
        }
        _ => Err("the subcommand changes nothing".to_owned()),
    }
}

fn done(text: &str) -> Result<Exit, Problem> {
    say!("{}", plain(text));
    Ok(Exit::Ok)
}

fn shown(
    json: bool,
    value: &impl serde::Serialize,
    lines: Vec<String>,
    nothing: &str,
) -> Result<Exit, Problem> {
    if json {
        return print_json(value);
    }
    if lines.is_empty() {
        say!("{nothing}");
    }
    for line in lines {
        say!("{}", plain(&line));
    }
    Ok(Exit::Ok)
}
