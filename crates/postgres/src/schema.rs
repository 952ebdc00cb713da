//! The tables, and migrations from older versions. `docs/store.md` describes each table.

use deadpool_postgres::Object;
use windlass_core::log::LogError;

use super::failure::Fault;

/// Key of the advisory lock under which the tables are migrated: "WNDL".
pub(super) const LOCK: i64 = 0x574E_444C;

/// Oldest supported version of the server.
const MIN_SERVER: i64 = 130_000;

/// Users: owners of sessions, and of what was spent. An empty name is the local user.
const USERS: &str = "
ALTER TABLE session ADD COLUMN user_name text COLLATE \"C\" NOT NULL DEFAULT '';
CREATE INDEX session_users ON session (user_name, updated_at) WHERE user_name <> '';
ALTER TABLE booking ADD COLUMN user_name text COLLATE \"C\" NOT NULL DEFAULT '';
CREATE INDEX booking_users ON booking (user_name, time) WHERE user_name <> '';
CREATE FUNCTION booking_user () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.user_name := coalesce((SELECT session.user_name FROM windlass.session WHERE session.id = NEW.session), NEW.user_name);
  RETURN NEW;
END $$;
CREATE TRIGGER booking_user BEFORE INSERT ON booking FOR EACH ROW EXECUTE FUNCTION booking_user();
";

/// The audit log. Rows are only added; old ones may go once the head says so.
const AUDIT: &str = "
CREATE TABLE audit (
  number    bigint PRIMARY KEY,
  previous  text NOT NULL,
  content   text NOT NULL,
  hash      text NOT NULL,
  time      bigint NOT NULL,
  user_name text COLLATE \"C\" NOT NULL,
  session   text COLLATE \"C\",
  action    text NOT NULL
);
CREATE INDEX audit_time ON audit (time);
CREATE INDEX audit_user ON audit (user_name, number);
CREATE INDEX audit_session ON audit (session, number) WHERE session IS NOT NULL;
CREATE TABLE audit_head (
  id          int PRIMARY KEY CHECK (id = 1),
  number      bigint NOT NULL,
  hash        text NOT NULL,
  pruned      bigint NOT NULL,
  pruned_hash text NOT NULL
);
INSERT INTO audit_head VALUES (1, 0, '', 0, '');
CREATE FUNCTION audit_is_fixed () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'DELETE' AND OLD.number <= (SELECT pruned FROM windlass.audit_head) THEN RETURN OLD; END IF;
  RAISE EXCEPTION 'the audit log cannot be changed';
END $$;
CREATE TRIGGER audit_is_fixed BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_fixed();
";

/// Steps from each version to the next; never edited once released.
const MIGRATIONS: &[&str] = &["
CREATE TABLE session (
  id                     text COLLATE \"C\" PRIMARY KEY,
  parent                 text COLLATE \"C\",
  title                  text,
  name                   text,
  key                    text UNIQUE,
  place                  text NOT NULL,
  standing               text NOT NULL DEFAULT 'new',
  provider               text,
  model                  text,
  messages               bigint NOT NULL DEFAULT 0,
  prompt_tokens          bigint NOT NULL DEFAULT 0,
  completion_tokens      bigint NOT NULL DEFAULT 0,
  context_tokens         bigint NOT NULL DEFAULT 0,
  cost_usd               double precision NOT NULL DEFAULT 0,
  summary                text,
  base_seq               bigint NOT NULL DEFAULT 1,
  last_seq               bigint NOT NULL DEFAULT 0,
  searched_seq           bigint NOT NULL DEFAULT 0,
  created_at             bigint NOT NULL,
  updated_at             bigint NOT NULL,
  exchanges              bigint NOT NULL DEFAULT 0,
  exchange_bytes         bigint NOT NULL DEFAULT 0,
  exchanges_full         boolean NOT NULL DEFAULT false,
  gone_prompt_tokens     bigint NOT NULL DEFAULT 0,
  gone_completion_tokens bigint NOT NULL DEFAULT 0,
  gone_cost_usd          double precision NOT NULL DEFAULT 0,
  gone_turns             bigint NOT NULL DEFAULT 0,
  gone_run_ms            bigint NOT NULL DEFAULT 0,
  owner                  text,
  fence                  bigint NOT NULL DEFAULT 0,
  until                  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX session_place ON session (place, updated_at);
CREATE INDEX session_updated ON session (updated_at);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

CREATE TABLE entry (
  session text COLLATE \"C\" NOT NULL,
  seq     bigint NOT NULL,
  fence   bigint NOT NULL,
  kind    text NOT NULL,
  message text,
  payload text NOT NULL,
  time    bigint NOT NULL,
  PRIMARY KEY (session, seq)
) PARTITION BY HASH (session);
DO $$ BEGIN
  FOR number IN 0..15 LOOP
    EXECUTE format('CREATE TABLE entry_%s PARTITION OF entry FOR VALUES WITH (MODULUS 16, REMAINDER %s)', number, number);
  END LOOP;
END $$;
CREATE INDEX entry_message ON entry (session, message) WHERE message IS NOT NULL;
CREATE INDEX entry_rewind ON entry (session, seq) WHERE kind = 'rewind';
CREATE INDEX entry_goal ON entry (session, seq) WHERE kind IN ('goal', 'goal_completed', 'goal_run', 'goal_turn',
  'goal_check', 'goal_verdict', 'goal_state', 'plan');

CREATE UNLOGGED TABLE draft (
  session text COLLATE \"C\" PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  fence   bigint NOT NULL,
  payload text NOT NULL,
  time    bigint NOT NULL
);

CREATE TABLE booking (
  number      bigint GENERATED ALWAYS AS IDENTITY,
  id          text PRIMARY KEY,
  session     text COLLATE \"C\" NOT NULL,
  time        bigint NOT NULL,
  provider    text NOT NULL,
  model       text NOT NULL,
  cause       text NOT NULL,
  input       bigint NOT NULL,
  output      bigint NOT NULL,
  cache_read  bigint NOT NULL,
  cache_write bigint NOT NULL,
  cost_usd    double precision
);
CREATE INDEX booking_session ON booking (session);
CREATE INDEX booking_time ON booking (time);

CREATE TABLE preference (
  scope text NOT NULL,
  name  text COLLATE \"C\" NOT NULL,
  value text NOT NULL,
  PRIMARY KEY (scope, name)
);

CREATE TABLE said (
  session text COLLATE \"C\" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  seq     bigint NOT NULL,
  text    text NOT NULL,
  words   tsvector NOT NULL,
  length  bigint NOT NULL,
  PRIMARY KEY (session, seq)
);
CREATE INDEX said_words ON said USING gin (words);

CREATE TABLE frame (digest text PRIMARY KEY, text text NOT NULL);

CREATE TABLE exchange (
  session  text COLLATE \"C\" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  number   bigint NOT NULL,
  time     bigint NOT NULL,
  provider text NOT NULL,
  model    text NOT NULL,
  frame    text,
  last     text,
  shared   bigint NOT NULL,
  request  bytea NOT NULL,
  digest   text NOT NULL,
  status   bigint,
  form     text NOT NULL,
  answer   bytea NOT NULL,
  cut      text,
  PRIMARY KEY (session, number)
);
CREATE INDEX exchange_frame ON exchange (frame);

CREATE TABLE blob (
  address text COLLATE \"C\" NOT NULL,
  piece   bigint NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (address, piece)
);
ALTER TABLE blob ALTER content SET STORAGE EXTERNAL;

CREATE TABLE attachment (
  number  bigint GENERATED ALWAYS AS IDENTITY,
  session text COLLATE \"C\" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  name    text NOT NULL,
  address text COLLATE \"C\" NOT NULL,
  bytes   bigint NOT NULL,
  time    bigint NOT NULL,
  PRIMARY KEY (session, name)
);
CREATE INDEX attachment_address ON attachment (address);
CREATE INDEX attachment_time ON attachment (time);

CREATE TABLE agent (
  session        text COLLATE \"C\" PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  root           text COLLATE \"C\" NOT NULL,
  parent         text COLLATE \"C\" NOT NULL,
  call           text,
  number         bigint NOT NULL,
  depth          bigint NOT NULL,
  name           text NOT NULL,
  type           text NOT NULL,
  task           text NOT NULL,
  background     boolean NOT NULL,
  wake           boolean NOT NULL,
  place          text NOT NULL,
  worktree       text,
  state          text NOT NULL,
  reason         text,
  waiting_on     text,
  result         text,
  delivered      boolean NOT NULL DEFAULT false,
  budget_tokens  bigint,
  budget_cost    double precision,
  budget_turns   bigint,
  budget_seconds bigint,
  tokens         bigint NOT NULL DEFAULT 0,
  cost_usd       double precision NOT NULL DEFAULT 0,
  turns          bigint NOT NULL DEFAULT 0,
  run_ms         bigint NOT NULL DEFAULT 0,
  created_at     bigint NOT NULL,
  started_at     bigint NOT NULL,
  ended_at       bigint,
  seen_at        bigint NOT NULL,
  claims         text
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX agent_root ON agent (root, number);
CREATE INDEX agent_parent ON agent (parent, state, delivered);
CREATE INDEX agent_active ON agent (root) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX agent_undelivered ON agent (parent) WHERE NOT delivered;

-- Sums over all sessions below a session. Nothing is written to the rows above a session: other servers own them.
CREATE FUNCTION descendants (top text, OUT prompt_tokens bigint, OUT completion_tokens bigint,
  OUT cost_usd double precision, OUT turns bigint, OUT run_ms bigint) LANGUAGE sql STABLE AS $$
  WITH RECURSIVE below (id) AS (
    SELECT session.id FROM session WHERE session.parent = top
    UNION SELECT session.id FROM session JOIN below ON session.parent = below.id
  ), sums AS (
    SELECT session.prompt_tokens + session.gone_prompt_tokens AS p, session.completion_tokens + session.gone_completion_tokens AS c,
      session.cost_usd + session.gone_cost_usd AS u, coalesce(agent.turns, 0) + session.gone_turns AS t,
      coalesce(agent.run_ms, 0) + session.gone_run_ms AS r
    FROM below JOIN session ON session.id = below.id LEFT JOIN agent ON agent.session = session.id
    UNION ALL SELECT gone_prompt_tokens, gone_completion_tokens, gone_cost_usd, gone_turns, gone_run_ms
    FROM session WHERE session.id = top
  )
  SELECT coalesce(sum(p), 0)::bigint, coalesce(sum(c), 0)::bigint, coalesce(sum(u), 0), coalesce(sum(t), 0)::bigint,
    coalesce(sum(r), 0)::bigint FROM sums
$$;

CREATE TABLE cron_job (
  job        text COLLATE \"C\" PRIMARY KEY,
  definition text NOT NULL,
  since      bigint NOT NULL,
  failures   bigint NOT NULL DEFAULT 0,
  retry_at   bigint,
  disabled   text
);

CREATE TABLE cron_slot (
  job        text COLLATE \"C\" NOT NULL,
  slot       bigint NOT NULL,
  cause      text NOT NULL,
  state      text NOT NULL,
  session    text,
  owner      text,
  until      bigint NOT NULL,
  attempts   bigint NOT NULL,
  started_at bigint NOT NULL,
  ended_at   bigint,
  cost_usd   double precision NOT NULL DEFAULT 0,
  detail     text NOT NULL DEFAULT '',
  output     text NOT NULL DEFAULT '',
  PRIMARY KEY (job, slot)
);
CREATE INDEX cron_slot_running ON cron_slot (job) WHERE state = 'running';
CREATE INDEX cron_slot_time ON cron_slot (slot);

CREATE TABLE cron_delivery (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job      text COLLATE \"C\" NOT NULL,
  slot     bigint NOT NULL,
  target   text NOT NULL,
  body     text NOT NULL,
  state    text NOT NULL DEFAULT 'waiting',
  attempts bigint NOT NULL DEFAULT 0,
  next_at  bigint NOT NULL,
  owner    text,
  detail   text NOT NULL DEFAULT '',
  FOREIGN KEY (job, slot) REFERENCES cron_slot (job, slot) ON DELETE CASCADE
);
CREATE INDEX cron_delivery_slot ON cron_delivery (job, slot);
CREATE INDEX cron_delivery_next ON cron_delivery (next_at) WHERE state = 'waiting';

CREATE TABLE goal (
  session      text COLLATE \"C\" PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  text         text NOT NULL,
  state        text NOT NULL,
  reason       text,
  message      text NOT NULL DEFAULT '',
  turns        bigint NOT NULL DEFAULT 0,
  max_turns    bigint NOT NULL,
  verification text,
  started_at   bigint NOT NULL,
  updated_at   bigint NOT NULL
);
CREATE INDEX goal_active ON goal (session) WHERE state = 'active';
CREATE TABLE goal_span (
  session text COLLATE \"C\" NOT NULL,
  since   bigint NOT NULL,
  until   bigint,
  PRIMARY KEY (session, since)
);

CREATE TABLE memory_scope (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  place  text COLLATE \"C\" NOT NULL UNIQUE,
  units  bigint NOT NULL DEFAULT 0,
  length bigint NOT NULL DEFAULT 0
);
CREATE TABLE memory_source (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope   bigint NOT NULL REFERENCES memory_scope (id),
  session text COLLATE \"C\" NOT NULL,
  next    bigint NOT NULL DEFAULT 0,
  read_to bigint NOT NULL DEFAULT 0,
  UNIQUE (scope, session)
);
CREATE INDEX memory_source_session ON memory_source (session);
CREATE TABLE memory_unit (
  id        bigint PRIMARY KEY,
  source    bigint NOT NULL REFERENCES memory_source (id),
  kind      text COLLATE \"C\" NOT NULL,
  speaker   text NOT NULL,
  seq       bigint NOT NULL,
  text      text NOT NULL,
  length    bigint NOT NULL,
  time      bigint NOT NULL,
  pinned    boolean NOT NULL,
  confirmed boolean NOT NULL
);
CREATE INDEX memory_unit_kept ON memory_unit (kind) WHERE kind <> 'said';
CREATE INDEX memory_unit_source ON memory_unit (source);
CREATE TABLE memory_word (
  id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope bigint NOT NULL,
  word  text COLLATE \"C\" NOT NULL,
  units bigint NOT NULL,
  UNIQUE (scope, word)
);
CREATE TABLE memory_posting (
  word   bigint NOT NULL,
  unit   bigint NOT NULL,
  count  bigint NOT NULL,
  length bigint NOT NULL,
  PRIMARY KEY (word, unit)
);
CREATE INDEX memory_posting_unit ON memory_posting (unit);
CREATE TABLE memory_vector (
  unit   bigint PRIMARY KEY,
  model  text NOT NULL,
  sketch bytea NOT NULL,
  vector bytea NOT NULL
);
CREATE TABLE memory_miss (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  query    text NOT NULL,
  strategy text NOT NULL,
  error    text NOT NULL,
  session  text NOT NULL,
  time     bigint NOT NULL
);
", USERS, AUDIT, CLUSTER];

/// Version 4: several servers share the sessions. `home` is the place of a session's folder; `left_by` and `left_at` tell
/// who dropped its turn. Times are on the clock of the database.
const CLUSTER: &str = "
ALTER TABLE session ADD home text;
ALTER TABLE session ADD wants_turn boolean NOT NULL DEFAULT false;
ALTER TABLE session ADD queued boolean NOT NULL DEFAULT false;
ALTER TABLE session ADD moved_at bigint NOT NULL DEFAULT 0;
ALTER TABLE session ADD left_by text;
ALTER TABLE session ADD left_at bigint;
CREATE INDEX session_work ON session (updated_at) WHERE wants_turn OR queued;
CREATE INDEX session_owner ON session (owner) WHERE owner IS NOT NULL;
CREATE INDEX session_moved ON session (moved_at) WHERE moved_at > 0;

CREATE TABLE server (
  id         text COLLATE \"C\" PRIMARY KEY,
  address    text NOT NULL,
  version    text NOT NULL,
  places     text[] NOT NULL,
  slots      bigint NOT NULL,
  listen_pid bigint,
  started    bigint NOT NULL,
  until      bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE inbox (
  id      text COLLATE \"C\" PRIMARY KEY,
  session text COLLATE \"C\" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  kind    text NOT NULL,
  payload text NOT NULL,
  sender  text NOT NULL,
  made    bigint NOT NULL,
  taken   bigint,
  answer  text
);
CREATE INDEX inbox_open ON inbox (session) WHERE taken IS NULL;
CREATE INDEX inbox_made ON inbox (made);
";

/// Checks the server, creates the tables, and migrates older versions. A newer version is left alone.
pub(super) async fn prepare(client: &mut Object) -> Result<(), Fault> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::bigint, current_setting('server_version')",
            &[],
        )
        .await?;
    if row.get::<_, i64>(0) < MIN_SERVER {
        return Err(LogError::Foreign(format!(
            "the server runs Postgres {}, and Windlass needs version 13 or newer; upgrade the server",
            row.get::<_, String>(1)
        ))
        .into());
    }
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or_default();
    let version = version(client).await?;
    if version == Some(newest) {
        return Ok(());
    }
    refuse_newer(version, newest)?;
    let transaction = client.transaction().await?;
    // Other processes that open the same database wait here, and find the tables made.
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS windlass; \
             CREATE TABLE IF NOT EXISTS windlass.version (number bigint NOT NULL)",
        )
        .await?;
    let row = transaction
        .query_opt("SELECT max(number) FROM windlass.version", &[])
        .await?;
    let version: Option<i64> = row.and_then(|row| row.get(0));
    refuse_newer(version, newest)?;
    let done = usize::try_from(version.unwrap_or_default()).unwrap_or_default();
    for step in MIGRATIONS.iter().skip(done) {
        transaction.batch_execute(step).await?;
    }
    transaction.execute("DELETE FROM windlass.version", &[]).await?;
    transaction
        .execute("INSERT INTO windlass.version VALUES ($1)", &[&newest])
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// Returns the version of the tables; `None` if there are none.
async fn version(client: &Object) -> Result<Option<i64>, Fault> {
    let known = client
        .query_one("SELECT to_regclass('windlass.version') IS NOT NULL", &[])
        .await?;
    if !known.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client
        .query_one("SELECT max(number) FROM windlass.version", &[])
        .await?;
    Ok(row.get(0))
}

fn refuse_newer(version: Option<i64>, newest: i64) -> Result<(), LogError> {
    match version {
        Some(version) if version > newest => Err(LogError::Foreign(format!(
            "the database has version {version}, but this program supports only versions up to {newest}; use a newer Windlass"
        ))),
        _ => Ok(()),
    }
}
