//! Memory for people: list, search, change, forget, export and import.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::log::{
    LogError, MemoryChange, MemoryKind, MemoryMiss, MemoryQuery, MemorySource, MemoryStats, MemoryUnit,
    NewUnit,
};
use windlass_memory::unit::MAX_UNIT;
use windlass_memory::{Hit, Memory, Scopes, date, index_words, is_secret, is_user_scope, user_scope};

use super::SharedMemory;

/// Maximum time for the vector of a question.
const PATIENCE: Duration = Duration::from_secs(20);

/// Memory of a project and of the user.
pub struct MemoryDesk {
    memory: Memory,
    project: String,
    shared: Arc<SharedMemory>,
}

impl MemoryDesk {
    /// Creates the desk of a project.
    pub fn new(memory: Memory, project: &str) -> Self {
        Self {
            memory,
            project: project.to_owned(),
            shared: Arc::default(),
        }
    }

    /// Creates the desk of a folder for commands outside a session, with the embedder that the settings ask for.
    pub fn of_folder(
        store: std::sync::Arc<dyn windlass_core::log::Store>,
        settings: &windlass_config::settings::Settings,
        folder: &std::path::Path,
    ) -> Self {
        let shared = Arc::new(SharedMemory::default());
        let memory = shared.open(&settings.context.memory, store);
        Self {
            shared,
            ..Self::new(memory, &super::project(folder))
        }
    }

    /// Takes problems with the source of vectors, for the user.
    pub fn take_problems(&self) -> Vec<String> {
        self.shared.take_problems()
    }

    fn scopes(&self) -> Scopes {
        Scopes::of(&self.project)
    }

    /// Keeps what was said in the sessions of the project and was not kept yet, and makes missing vectors.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn catch_up(&self) -> Result<(), String> {
        let access = windlass_memory::MemoryAccess {
            memory: self.memory.clone(),
            project: self.project.clone(),
            session: windlass_core::id::SessionId::from("memory"),
        };
        super::background(&access).await;
        Ok(())
    }

    /// Returns units of the project and the user, the newest first: notes, lessons and preferences, or all.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn list(&self, all: bool, limit: usize) -> Result<Vec<MemoryUnit>, String> {
        let kinds = match all {
            true => Vec::new(),
            false => vec![MemoryKind::Note, MemoryKind::Lesson, MemoryKind::Preference],
        };
        let query = MemoryQuery {
            scopes: self.scopes().names().to_vec(),
            kinds,
            limit,
            ..MemoryQuery::default()
        };
        self.memory.store().list_units(&query).await.map_err(told)
    }

    /// Searches the project and the user.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn search(&self, words: &str, limit: usize) -> Result<Vec<Hit>, String> {
        let found = self.memory.search(words, &self.scopes(), (limit, PATIENCE)).await;
        found.map(|found| found.hits).map_err(told)
    }

    /// Returns the text for a search without results.
    pub fn no_matches(&self) -> &'static str {
        match self.memory.lacks_model() {
            true => {
                "No matches. Search goes by words; `windlass memory setup` installs a model that also finds texts by their meaning."
            }
            false => "No matches.",
        }
    }

    /// Returns a unit of the project or the user.
    ///
    /// # Errors
    /// Fails if there is none, or the store cannot be read.
    pub async fn unit(&self, id: u64) -> Result<MemoryUnit, String> {
        let found = self.memory.store().units(&[id]).await.map_err(told)?;
        let mut found = found
            .into_iter()
            .filter(|unit| self.scopes().names().contains(&unit.scope));
        found.next().ok_or_else(|| {
            format!("there is no memory {id} in this project; `list` and `search` show the numbers")
        })
    }

    /// Saves a note for the project, or for the user.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn save(&self, text: &str, for_user: bool) -> Result<u64, String> {
        let scope = match for_user {
            true => user_scope(&self.project),
            false => self.project.clone(),
        };
        let saved = self.memory.save(text, &scope, MemoryKind::Note).await;
        saved.map_err(|error| error.to_string())
    }

    /// Pins or unpins a unit.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn pin(&self, id: u64, pinned: bool) -> Result<(), String> {
        self.unit(id).await?;
        let change = MemoryChange {
            pinned: Some(pinned),
            ..MemoryChange::default()
        };
        self.memory
            .store()
            .change_unit(id, change)
            .await
            .map(drop)
            .map_err(told)
    }

    /// Confirms a lesson or preference, for this project or for all. Returns its number, which changes if it moves.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn confirm(&self, id: u64, for_user: bool) -> Result<u64, String> {
        let unit = self.unit(id).await?;
        let change = MemoryChange {
            confirmed: Some(true),
            ..MemoryChange::default()
        };
        self.memory.store().change_unit(id, change).await.map_err(told)?;
        if !for_user || is_user_scope(&unit.scope) {
            return Ok(id);
        }
        // A memory of its own: what was said stays in its session.
        let saved = self
            .memory
            .save(&unit.text, &user_scope(&self.project), unit.kind)
            .await;
        saved.map_err(|error| error.to_string())
    }

    /// Replaces the text of a unit. Every copy of the old text is removed. Returns the new number.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn edit(&self, id: u64, text: &str) -> Result<u64, String> {
        let unit = self.unit(id).await?;
        let kind = if unit.kind == MemoryKind::Said {
            MemoryKind::Note
        } else {
            unit.kind
        };
        let new = self
            .memory
            .save(text, &unit.scope, kind)
            .await
            .map_err(|error| error.to_string())?;
        if unit.pinned {
            self.pin(new, true).await?;
        }
        self.forget(&[id]).await?;
        Ok(new)
    }

    /// Removes units and every copy of their texts. Returns the number removed.
    ///
    /// # Errors
    /// Fails with the reason; a number that does not exist removes nothing.
    pub async fn forget(&self, ids: &[u64]) -> Result<u64, String> {
        for id in ids {
            self.unit(*id).await?;
        }
        self.memory.store().forget_units(ids).await.map_err(told)
    }

    /// Returns every unit of the project and the user, one JSON object per line.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn export(&self) -> Result<String, String> {
        let mut units = self.list(true, 0).await?;
        units.reverse();
        let lines = units.iter().map(serde_json::to_string);
        let lines: Vec<String> = lines
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }

    /// Keeps the units of an export: those of a project in this one, those of the user for the user. What is there
    /// already is left out. Returns the numbers of units that were kept and left out.
    ///
    /// # Errors
    /// Fails with the line that cannot be used; nothing is kept then.
    pub async fn import(&self, text: &str) -> Result<(usize, usize), String> {
        let known = self.list(true, 0).await?;
        let mut known: HashSet<(bool, MemoryKind, String)> = known
            .into_iter()
            .map(|unit| (is_user_scope(&unit.scope), unit.kind, unit.text))
            .collect();
        let mut left_out = 0;
        let (mut project, mut user) = (Vec::new(), Vec::new());
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let wrong = |why: String| format!("line {}: {why}; nothing was imported", number + 1);
            let unit: MemoryUnit = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if unit.text.len() > MAX_UNIT {
                return Err(wrong(format!("`text` has more than {MAX_UNIT} bytes")));
            }
            if is_secret(&unit.text) {
                return Err(wrong("`text` seems to contain a password or a key".to_owned()));
            }
            let words = index_words(&unit.text);
            if words.is_empty() {
                return Err(wrong("`text` has no words".to_owned()));
            }
            let is_new = known.insert((is_user_scope(&unit.scope), unit.kind, unit.text.clone()));
            if !is_new {
                left_out += 1;
                continue;
            }
            let new = NewUnit {
                kind: unit.kind,
                speaker: unit.speaker,
                seq: 0,
                words,
                text: unit.text,
                time: unit.time,
                pinned: unit.pinned,
                confirmed: unit.confirmed,
            };
            match is_user_scope(&unit.scope) {
                true => user.push(new),
                false => project.push(new),
            }
        }
        let count = project.len() + user.len();
        for (scope, units) in [(self.project.clone(), project), (user_scope(&self.project), user)] {
            let source = MemorySource { scope, session: None };
            if !units.is_empty() {
                self.memory
                    .store()
                    .keep_units(&source, units, 0)
                    .await
                    .map_err(told)?;
            }
        }
        Ok((count, left_out))
    }

    /// Counts what is kept, in all projects.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn stats(&self) -> Result<MemoryStats, String> {
        self.memory.store().memory_stats().await.map_err(told)
    }

    /// Returns searches that found nothing, the newest first.
    ///
    /// # Errors
    /// Fails with the reason.
    pub async fn misses(&self, limit: usize) -> Result<Vec<MemoryMiss>, String> {
        self.memory.store().misses(limit).await.map_err(told)
    }
}

fn told(error: LogError) -> String {
    error.to_string()
}

/// Describes a unit on one line.
pub fn unit_line(unit: &MemoryUnit) -> String {
    let mut marks = vec![unit.kind.name().to_owned(), date(unit.time)];
    if let Some(session) = &unit.session {
        marks.push(format!(
            "session {}",
            session.as_str().get(..8).unwrap_or(session.as_str())
        ));
    }
    if is_user_scope(&unit.scope) {
        marks.push("all projects".to_owned());
    }
    if unit.pinned {
        marks.push("pinned".to_owned());
    }
    if !unit.confirmed && unit.kind != MemoryKind::Said {
        marks.push("unconfirmed".to_owned());
    }
    let text = unit.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = match text.chars().count() > 160 {
        true => text.chars().take(159).chain(['…']).collect(),
        false => text,
    };
    format!("{}  [{}] {text}", unit.id, marks.join(", "))
}
