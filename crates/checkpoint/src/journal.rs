//! What a session did to files, in order, one record a line. It only grows.

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
        /// From 1.
        number: u64,
        time: Timestamp,
        #[serde(default)]
        message: Option<MessageId>,
        prompt: String,
    },
    /// A call begins. What is there before is known.
    Begun {
        tool: String,
        /// What is at the only paths it can change; everything can change when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paths: Option<Vec<Seen>>,
    },
    /// A call ended, and changed this.
    Changed {
        tool: String,
        changes: Vec<Change>,
        /// Why not everything is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blind: Option<String>,
    },
    /// Files are being taken back, or forth again.
    Moving {
        /// The turns.
        turns: Vec<u64>,
        changes: Vec<Change>,
        /// Forth again.
        forth: bool,
    },
    /// They have been.
    Moved,
}

/// What is at a path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) path: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Node>,
}

/// The file of one session.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
}

impl Journal {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Adds a record, and returns when it survives the end of this process.
    pub(super) fn add(&self, record: &Record) -> io::Result<()> {
        let mut file = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.file)?;
        // Begun on a line of its own, whatever a stopped process left.
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

    /// Whether anything was ever done.
    pub(super) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Everything so far.
    pub(super) fn read(&self) -> io::Result<Told> {
        let bytes = match fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Told::default()),
            Err(error) => return Err(error),
        };
        let mut told = Told::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (number, line) in lines.iter().enumerate() {
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(record) => told.take(record),
                // A process was stopped while it wrote this; nothing followed from it.
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
        Ok(told)
    }
}

/// What a journal tells.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) turns: BTreeMap<u64, Turn>,
    /// A call that began and did not end.
    pub(super) open: Option<(String, Option<Vec<Seen>>)>,
    /// What is being moved.
    pub(super) moving: Option<Vec<Change>>,
    /// What was taken back and can be done again, the last one last.
    pub(super) back: Vec<(Vec<u64>, Vec<Change>)>,
}

/// One turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) checkpoint: Checkpoint,
    /// The changes of its calls, in order.
    pub(super) calls: Vec<Vec<Change>>,
    /// Why not everything is known.
    pub(super) blind: BTreeSet<String>,
}

impl Turn {
    /// Each path once: as it was before the turn, and after it.
    pub(super) fn changes(&self) -> Vec<Change> {
        merge(self.calls.iter().flatten()).0
    }
}

/// Puts changes together, each path once. The second value are paths that somebody else changed in between.
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

impl Told {
    fn take(&mut self, record: Record) {
        match record {
            Record::Turn {
                number,
                time,
                message,
                prompt,
            } => {
                // Something new is done: what was taken back is past.
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
                    self.back.push((turns, changes.clone()));
                }
                self.moving = Some(changes);
            }
            Record::Moved => self.moving = None,
        }
    }

    /// The number of the last turn; 0 when there is none.
    pub(super) fn last(&self) -> u64 {
        self.turns.keys().next_back().copied().unwrap_or_default()
    }
}
