//! The tables, and migrations from older versions. `docs/store.md` describes each table.

use rusqlite::Connection;
use windlass_core::log::LogError;

use super::failure::told;

/// Application id of our databases: "WNDL".
const APPLICATION: i32 = 0x574E_444C;

/// One step from a version to the next.
enum Step {
    /// Statements.
    Sql(&'static str),
    /// A change of the stored data that statements cannot express.
    Data(fn(&Connection) -> Result<(), LogError>),
}

/// Steps from each version to the next; never edited once released.
const MIGRATIONS: &[Step] = &[
    Step::Sql(
        "
CREATE TABLE session (
  id                TEXT PRIMARY KEY,
  parent            TEXT,
  title             TEXT,
  name              TEXT,
  key               TEXT UNIQUE,
  place             TEXT NOT NULL,
  standing          TEXT NOT NULL DEFAULT 'new',
  provider          TEXT,
  model             TEXT,
  messages          INTEGER NOT NULL DEFAULT 0,
  prompt_tokens     INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  context_tokens    INTEGER NOT NULL DEFAULT 0,
  cost_usd          REAL NOT NULL DEFAULT 0,
  summary           TEXT,
  base_seq          INTEGER NOT NULL DEFAULT 1,
  last_seq          INTEGER NOT NULL DEFAULT 0,
  searched_seq      INTEGER NOT NULL DEFAULT 0,
  created_at        INTEGER NOT NULL,
  updated_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX session_place ON session (place, updated_at);
CREATE INDEX session_updated ON session (updated_at);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

CREATE TABLE lease (
  session TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  owner   TEXT,
  fence   INTEGER NOT NULL,
  until   INTEGER NOT NULL
) STRICT;

CREATE TABLE entry (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  message TEXT,
  payload TEXT NOT NULL,
  time    INTEGER NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT;
CREATE INDEX entry_message ON entry (session, message) WHERE message IS NOT NULL;

CREATE TABLE draft (
  session TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  payload TEXT NOT NULL,
  time    INTEGER NOT NULL
) STRICT;

CREATE TABLE booking (
  id          INTEGER PRIMARY KEY,
  session     TEXT NOT NULL,
  time        INTEGER NOT NULL,
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  cause       TEXT NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost_usd    REAL
) STRICT;
CREATE INDEX booking_session ON booking (session);

CREATE TABLE preference (
  scope TEXT NOT NULL,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) STRICT;

CREATE TABLE beat (id INTEGER PRIMARY KEY CHECK (id = 1), count INTEGER NOT NULL) STRICT;
INSERT INTO beat VALUES (1, 0);

CREATE VIRTUAL TABLE said USING fts5 (
  text, session UNINDEXED, seq UNINDEXED, tokenize = 'unicode61 remove_diacritics 2'
);
",
    ),
    Step::Sql(
        "
CREATE TABLE frame (digest TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;

CREATE TABLE exchange (
  session  TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  number   INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  provider TEXT NOT NULL,
  model    TEXT NOT NULL,
  frame    TEXT,
  last     TEXT,
  shared   INTEGER NOT NULL,
  request  BLOB NOT NULL,
  digest   TEXT NOT NULL,
  status   INTEGER,
  form     TEXT NOT NULL,
  answer   BLOB NOT NULL,
  cut      TEXT,
  PRIMARY KEY (session, number)
) STRICT;

ALTER TABLE session ADD COLUMN exchanges INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN exchange_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN exchanges_full INTEGER NOT NULL DEFAULT 0;
",
    ),
    Step::Sql(
        "
CREATE INDEX entry_rewind ON entry (session, seq) WHERE kind = 'rewind';
",
    ),
    Step::Sql(
        "
CREATE INDEX entry_goal ON entry (session, seq) WHERE kind IN ('goal', 'goal_completed');
",
    ),
    Step::Data(super::fragments::convert),
    Step::Sql(
        "
CREATE TABLE attachment (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  address TEXT NOT NULL,
  bytes   INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT;
CREATE INDEX attachment_address ON attachment (address);
CREATE INDEX attachment_time ON attachment (time);
",
    ),
    // Costs of children are added when a session is read.
    Step::Sql(
        "
CREATE TABLE agent (
  session        TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  root           TEXT NOT NULL,
  parent         TEXT NOT NULL,
  call           TEXT,
  number         INTEGER NOT NULL,
  depth          INTEGER NOT NULL,
  name           TEXT NOT NULL,
  type           TEXT NOT NULL,
  task           TEXT NOT NULL,
  background     INTEGER NOT NULL,
  wake           INTEGER NOT NULL,
  place          TEXT NOT NULL,
  worktree       TEXT,
  state          TEXT NOT NULL,
  reason         TEXT,
  waiting_on     TEXT,
  result         TEXT,
  delivered      INTEGER NOT NULL DEFAULT 0,
  budget_tokens  INTEGER,
  budget_cost    REAL,
  budget_turns   INTEGER,
  budget_seconds INTEGER,
  tokens         INTEGER NOT NULL DEFAULT 0,
  cost_usd       REAL NOT NULL DEFAULT 0,
  turns          INTEGER NOT NULL DEFAULT 0,
  run_ms         INTEGER NOT NULL DEFAULT 0,
  created_at     INTEGER NOT NULL,
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  seen_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX agent_root ON agent (root, number);
CREATE INDEX agent_parent ON agent (parent, state, delivered);
CREATE INDEX agent_active ON agent (root) WHERE state IN ('queued', 'running', 'waiting');

UPDATE session SET
  prompt_tokens = (SELECT coalesce(sum(input + cache_read + cache_write), 0) FROM booking WHERE booking.session = session.id),
  completion_tokens = (SELECT coalesce(sum(output), 0) FROM booking WHERE booking.session = session.id),
  cost_usd = (SELECT coalesce(sum(cost_usd), 0) FROM booking WHERE booking.session = session.id)
WHERE id IN (SELECT parent FROM session WHERE parent IS NOT NULL);
",
    ),
    Step::Sql(
        "
CREATE TABLE cron_job (
  job        TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  since      INTEGER NOT NULL,
  failures   INTEGER NOT NULL DEFAULT 0,
  retry_at   INTEGER,
  disabled   TEXT
) STRICT;

CREATE TABLE cron_slot (
  job        TEXT NOT NULL,
  slot       INTEGER NOT NULL,
  cause      TEXT NOT NULL,
  state      TEXT NOT NULL,
  session    TEXT,
  owner      TEXT,
  until      INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  cost_usd   REAL NOT NULL DEFAULT 0,
  detail     TEXT NOT NULL DEFAULT '',
  output     TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (job, slot)
) STRICT;
CREATE INDEX cron_slot_running ON cron_slot (job) WHERE state = 'running';
CREATE INDEX cron_slot_time ON cron_slot (slot);

CREATE TABLE cron_delivery (
  id       INTEGER PRIMARY KEY,
  job      TEXT NOT NULL,
  slot     INTEGER NOT NULL,
  target   TEXT NOT NULL,
  body     TEXT NOT NULL,
  state    TEXT NOT NULL DEFAULT 'waiting',
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at  INTEGER NOT NULL,
  owner    TEXT,
  detail   TEXT NOT NULL DEFAULT '',
  FOREIGN KEY (job, slot) REFERENCES cron_slot (job, slot) ON DELETE CASCADE
) STRICT;
CREATE INDEX cron_delivery_slot ON cron_delivery (job, slot);
CREATE INDEX cron_delivery_next ON cron_delivery (next_at) WHERE state = 'waiting';
",
    ),
    Step::Sql(
        "
CREATE TABLE goal (
  session      TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  text         TEXT NOT NULL,
  state        TEXT NOT NULL,
  reason       TEXT,
  message      TEXT NOT NULL DEFAULT '',
  turns        INTEGER NOT NULL DEFAULT 0,
  max_turns    INTEGER NOT NULL,
  verification TEXT,
  started_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX goal_active ON goal (session) WHERE state = 'active';
CREATE TABLE goal_span (
  session TEXT NOT NULL,
  since   INTEGER NOT NULL,
  until   INTEGER,
  PRIMARY KEY (session, since)
) STRICT, WITHOUT ROWID;
DROP INDEX entry_goal;
CREATE INDEX entry_goal ON entry (session, seq) WHERE kind IN ('goal', 'goal_completed', 'goal_run', 'goal_turn', \
'goal_check', 'goal_verdict', 'goal_state', 'plan');
CREATE INDEX booking_time ON booking (time);
",
    ),
    // Sums over all sessions below a session, so that reading them costs the same however many there are.
    Step::Sql(
        "
CREATE TABLE descendants (
  session           TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  prompt_tokens     INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  cost_usd          REAL NOT NULL DEFAULT 0,
  turns             INTEGER NOT NULL DEFAULT 0,
  run_ms            INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO descendants
WITH RECURSIVE pair (top, id) AS (
  SELECT parent, id FROM session WHERE parent IS NOT NULL
  UNION SELECT pair.top, session.id FROM pair JOIN session ON session.parent = pair.id
)
SELECT pair.top, sum(session.prompt_tokens), sum(session.completion_tokens), sum(session.cost_usd),
  sum(coalesce(agent.turns, 0)), sum(coalesce(agent.run_ms, 0))
FROM pair JOIN session ON session.id = pair.id LEFT JOIN agent ON agent.session = pair.id
WHERE pair.top IN (SELECT id FROM session) GROUP BY pair.top;
CREATE INDEX agent_undelivered ON agent (parent) WHERE delivered = 0;
ALTER TABLE agent ADD COLUMN claims TEXT;
",
    ),
    // Memory across sessions. The index of sessions is made again, with stems of words.
    Step::Sql(
        "
CREATE TABLE memory_scope (
  id     INTEGER PRIMARY KEY,
  place  TEXT NOT NULL UNIQUE,
  units  INTEGER NOT NULL DEFAULT 0,
  length INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE memory_source (
  id      INTEGER PRIMARY KEY,
  scope   INTEGER NOT NULL REFERENCES memory_scope (id),
  session TEXT NOT NULL,
  next    INTEGER NOT NULL DEFAULT 0,
  read_to INTEGER NOT NULL DEFAULT 0,
  UNIQUE (scope, session)
) STRICT;
CREATE TABLE memory_unit (
  id        INTEGER PRIMARY KEY,
  source    INTEGER NOT NULL REFERENCES memory_source (id),
  kind      TEXT NOT NULL,
  speaker   TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  text      TEXT NOT NULL,
  length    INTEGER NOT NULL,
  time      INTEGER NOT NULL,
  pinned    INTEGER NOT NULL,
  confirmed INTEGER NOT NULL,
  words     BLOB NOT NULL
) STRICT;
CREATE INDEX memory_unit_kept ON memory_unit (kind) WHERE kind <> 'said';
CREATE INDEX memory_unit_source ON memory_unit (source);
CREATE TABLE memory_word (
  id    INTEGER PRIMARY KEY,
  scope INTEGER NOT NULL,
  word  TEXT NOT NULL,
  units INTEGER NOT NULL,
  UNIQUE (scope, word)
) STRICT;
CREATE TABLE memory_posting (
  word   INTEGER NOT NULL,
  unit   INTEGER NOT NULL,
  count  INTEGER NOT NULL,
  length INTEGER NOT NULL,
  PRIMARY KEY (word, unit)
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_vector (
  unit   INTEGER PRIMARY KEY,
  model  TEXT NOT NULL,
  sketch BLOB NOT NULL,
  vector BLOB NOT NULL
) STRICT;
CREATE TABLE memory_miss (
  id       INTEGER PRIMARY KEY,
  query    TEXT NOT NULL,
  strategy TEXT NOT NULL,
  error    TEXT NOT NULL,
  session  TEXT NOT NULL,
  time     INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE said_stems USING fts5 (
  text, session UNINDEXED, seq UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO said_stems (text, session, seq) SELECT text, session, seq FROM said;
DROP TABLE said;
ALTER TABLE said_stems RENAME TO said;
",
    ),
    // Users: owners of sessions, and of what was spent. An empty name is the local user.
    Step::Sql(
        "
ALTER TABLE session ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
CREATE INDEX session_user ON session (user_name, updated_at) WHERE user_name <> '';
ALTER TABLE booking ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
CREATE INDEX booking_user ON booking (user_name, time) WHERE user_name <> '';
",
    ),
    // The audit log. Rows are only added; old ones may go once the head says so.
    Step::Sql(
        "
CREATE TABLE audit (
  number    INTEGER PRIMARY KEY,
  previous  TEXT NOT NULL,
  content   TEXT NOT NULL,
  hash      TEXT NOT NULL,
  time      INTEGER NOT NULL,
  user_name TEXT NOT NULL,
  session   TEXT,
  action    TEXT NOT NULL
) STRICT;
CREATE INDEX audit_time ON audit (time);
CREATE INDEX audit_user ON audit (user_name, number);
CREATE INDEX audit_session ON audit (session, number) WHERE session IS NOT NULL;
CREATE TABLE audit_head (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  number      INTEGER NOT NULL,
  hash        TEXT NOT NULL,
  pruned      INTEGER NOT NULL,
  pruned_hash TEXT NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '', 0, '');
CREATE TRIGGER audit_is_fixed BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the audit log cannot be changed');
END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.number > (SELECT pruned FROM audit_head) BEGIN
  SELECT RAISE(ABORT, 'the audit log cannot be changed');
END;
",
    ),
];

/// Creates all tables in a new database.
pub(super) fn create(connection: &Connection) -> Result<(), LogError> {
    in_transaction(connection, || apply(connection, 0))
}

/// Migrates a database to the newest version. One that is foreign or newer is left alone.
pub(super) fn migrate(connection: &Connection) -> Result<(), LogError> {
    let (version, newest) = (version(connection)?, MIGRATIONS.len());
    if version > newest {
        return Err(LogError::Foreign(format!(
            "the database has version {version}, but this program supports only versions up to {newest}; use a newer Windlass"
        )));
    }
    if version == newest {
        return Ok(());
    }
    // Another process may have migrated it while we waited.
    in_transaction(connection, || apply(connection, self::version(connection)?))
}

fn in_transaction(
    connection: &Connection,
    work: impl FnOnce() -> Result<(), LogError>,
) -> Result<(), LogError> {
    connection.execute_batch("BEGIN IMMEDIATE").map_err(told)?;
    match work() {
        Ok(()) => connection.execute_batch("COMMIT").map_err(told),
        Err(error) => {
            let _ = connection.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}

/// Takes the steps from a version to the newest.
fn apply(connection: &Connection, version: usize) -> Result<(), LogError> {
    for step in MIGRATIONS.iter().skip(version) {
        match step {
            Step::Sql(statements) => connection.execute_batch(statements).map_err(told)?,
            Step::Data(change) => change(connection)?,
        }
    }
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or_default();
    connection
        .pragma_update(None, "user_version", newest)
        .map_err(told)?;
    connection
        .pragma_update(None, "application_id", APPLICATION)
        .map_err(told)
}

/// Returns the version of a database.
pub(super) fn version(connection: &Connection) -> Result<usize, LogError> {
    let number = |name: &str| -> Result<i64, LogError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(told)
    };
    let (version, application) = (number("user_version")?, number("application_id")?);
    if application != i64::from(APPLICATION) {
        return Err(LogError::Foreign(
            "the file is a database of another program; it was not changed".to_owned(),
        ));
    }
    usize::try_from(version).map_err(|_| LogError::Foreign("the database has no version".to_owned()))
}

/// Returns the newest version this program supports.
pub(super) fn newest() -> usize {
    MIGRATIONS.len()
}
