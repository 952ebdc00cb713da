//! Journal of a session's changes to files, in order, one record per line. It is append-only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windlass_core::checkpoint::Checkpoint;
use windlass_core::clock::Timestamp;
use windlass_core::id::MessageId;

use super::node::{Bytes, Change, Node};

/// One record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// A turn is about to change something.
    Turn {
        /// Starts at 1.
        number: u64,
        time: Timestamp,
        #[serde(default)]
        message: Option<MessageId>,
        prompt: String,
    },
    /// A call starts; the state before it is known.
    Begun {
        tool: String,
        /// State of the only paths that the call can change; if absent, it can change any path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paths: Option<Vec<Seen>>,
    },
    /// A call ended with these changes.
    Changed {
        tool: String,
        changes: Vec<Change>,
        /// Reason the changes are incomplete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blind: Option<String>,
    },
    /// Files are being rewound or redone.
    Moving {
        /// The turns involved.
        turns: Vec<u64>,
        changes: Vec<Change>,
        /// True for a redo.
        forth: bool,
    },
    /// The rewind or redo is complete.
    Moved,
}

/// State of a path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) path: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Node>,
}

/// Journal file of one session.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
}

impl Journal {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Appends a record, and returns once it would survive the end of this process.
    pub(super) fn add(&self, record: &Record) -> io::Result<()> {
        let mut file = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.file)?;
        // Starts on a new line, whatever an interrupted process left.
        let mut line = if self.is_torn()? {
            b"\n".to_vec()
        } else {
            Vec::new()
        };
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        file.write_all(&line)
    }

    fn is_torn(&self) -> io::Result<bool> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = File::open(&self.file)?;
        if file.metadata()?.len() == 0 {
            return Ok(false);
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }

    /// Returns the bytes from a place on; none if nothing was recorded.
    pub(super) fn bytes(&self, from: u64) -> io::Result<Vec<u8>> {
        use std::io::{Read, Seek, SeekFrom};
        let mut bytes = Vec::new();
        match File::open(&self.file) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(from))?;
                file.read_to_end(&mut bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(bytes)
    }

    /// Returns true if anything was ever recorded.
    pub(super) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Reads all records.
    pub(super) fn read(&self) -> io::Result<History> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
            Err(error) => return Err(error),
        };
        let mut history = History::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (number, line) in lines.iter().enumerate() {
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(record) => history.take(record),
                // A process was interrupted while writing this record; nothing depends on it.
                Err(error) if error.is_eof() => {}
                Err(error) => {
                    let text = format!(
                        "{} is damaged at line {}: {error}",
                        self.file.display(),
                        number + 1
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
        Ok(history)
    }
}

/// Content of a journal.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) turns: BTreeMap<u64, Turn>,
    /// A call that started and did not end.
    pub(super) open: Option<(String, Option<Vec<Seen>>)>,
    /// Changes of a rewind or redo that is not complete.
    pub(super) moving: Option<Vec<Change>>,
    /// Rewound changes that can be redone, the most recent last.
    pub(super) back: Vec<(Vec<u64>, Vec<Change>)>,
}

/// One turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) checkpoint: Checkpoint,
    /// Changes of its calls, in order.
    pub(super) calls: Vec<Vec<Change>>,
    /// Reasons the changes are incomplete.
    pub(super) blind: BTreeSet<String>,
}

impl Turn {
    /// Returns each changed path once, with its state before and after the turn.
    pub(super) fn changes(&self) -> Vec<Change> {
        merge(self.calls.iter().flatten()).0
    }
}

/// Merges changes so that each path occurs once. The second value lists the paths that something else changed
/// in between.
pub(super) fn merge<'a>(changes: impl IntoIterator<Item = &'a Change>) -> (Vec<Change>, Vec<Bytes>) {
    let mut all: BTreeMap<&Bytes, Change> = BTreeMap::new();
    let mut foreign = BTreeSet::new();
    for change in changes {
        match all.get_mut(&change.path) {
            Some(known) => {
                if known.after != change.before {
                    foreign.insert(change.path.clone());
                }
                known.after.clone_from(&change.after);
            }
            None => {
                all.insert(&change.path, change.clone());
            }
        }
    }
    let changes = all.into_values().filter(|change| change.before != change.after);
    (changes.collect(), foreign.into_iter().collect())
}

impl History {
    fn take(&mut self, record: Record) {
        match record {
            Record::Turn {
                number,
                time,
                message,
                prompt,
            } => {
                // A new change discards everything that could be redone.
                self.back.clear();
                let checkpoint = Checkpoint {
                    number,
                    time,
                    message,
                    prompt,
                    tools: Vec::new(),
                    files: 0,
                    undone: false,
                };
                let turn = Turn {
                    checkpoint,
                    calls: Vec::new(),
                    blind: BTreeSet::new(),
                };
                self.turns.insert(number, turn);
            }
            Record::Begun { tool, paths } => self.open = Some((tool, paths)),
            Record::Changed { tool, changes, blind } => {
                self.open = None;
                let Some(turn) = self.turns.values_mut().next_back() else {
                    return;
                };
                turn.blind.extend(blind);
                if !turn.checkpoint.tools.contains(&tool) {
                    turn.checkpoint.tools.push(tool);
                }
                turn.calls.push(changes);
            }
            Record::Moving {
                turns,
                changes,
                forth,
            } => {
                for number in &turns {
                    if let Some(turn) = self.turns.get_mut(number) {
                        turn.checkpoint.undone = !forth;
                    }
                }
                if forth {
                    self.back.pop();
                } else {
                    let is_change = |change: &&Change| change.before != change.after;
                    self.back
                        .push((turns, changes.iter().filter(is_change).cloned().collect()));
                }
                self.moving = Some(changes);
            }
            Record::Moved => self.moving = None,
        }
    }

    /// Returns each path that the turns changed together, once, without what was undone.
    pub(super) fn changes(&self) -> Vec<Change> {
        let turns = self.turns.values().filter(|turn| !turn.checkpoint.undone);
        merge(turns.flat_map(|turn| turn.calls.iter().flatten())).0
    }

    /// Returns the number of the last turn; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.turns.keys().next_back().copied().unwrap_or_default()
    }
}
