//! A database of its own on the server of this test process.

use std::sync::Arc;

use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::log::{LogError, NewSession, Opened, Store};
use windlass_testkit::PostgresServer;

pub(crate) use super::events::{append, batch, said, the_end};

/// Opens a database with the system clock.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Store>, LogError> {
    windlass_store::open(url, Arc::new(SystemClock::default()))
}

/// Returns the server of this process.
pub(crate) fn server() -> &'static PostgresServer {
    PostgresServer::shared(|url| drop(open(url).unwrap()))
}

pub(crate) struct Bed {
    pub(crate) database: String,
    pub(crate) store: Arc<dyn Store>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let database = server().database();
        let store = open(&server().url(&database)).unwrap();
        Self { database, store }
    }

    /// Opens the same database, as another process would.
    pub(crate) fn again(&self) -> Arc<dyn Store> {
        open(&server().url(&self.database)).unwrap()
    }

    /// Runs SQL in the database.
    pub(crate) fn sql(&self, sql: &str) -> String {
        server().sql(&self.database, sql)
    }

    /// Runs SQL, with `{audit}` for the table of the audit log.
    pub(crate) fn raw(&self, sql: &str) -> Result<(), String> {
        // Caught there, so that a failure is a text here.
        let sql = sql.replace("{audit}", "windlass.audit").replace('\'', "''");
        let told = self.sql(&format!(
            "CREATE OR REPLACE FUNCTION pg_temp.try (sql text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN \
             EXECUTE sql; RETURN ''; EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $f$; SELECT pg_temp.try('{sql}')"
        ));
        match told.lines().last().unwrap_or_default().trim() {
            "" | "CREATE FUNCTION" => Ok(()),
            why => Err(why.to_owned()),
        }
    }

    /// Removes what keeps rows of the audit log from being changed.
    pub(crate) fn unprotect_audit(&self) {
        self.sql("DROP TRIGGER audit_is_fixed ON windlass.audit");
    }

    /// Makes an entry unreadable.
    pub(crate) fn damage(&self, seq: u64) {
        self.sql(&format!(
            "UPDATE windlass.entry SET payload = '{{' WHERE seq = {seq}"
        ));
    }

    /// Returns problems of the database: numbers of a session that have gaps.
    pub(crate) fn problems(&self) -> Vec<String> {
        let gaps = self.sql(
            "SELECT session FROM windlass.entry GROUP BY session HAVING count(*) <> max(seq) OR min(seq) <> 1 \
             UNION SELECT id FROM windlass.session WHERE last_seq <> \
             (SELECT count(*) FROM windlass.entry WHERE entry.session = session.id)",
        );
        gaps.lines().map(str::to_owned).collect()
    }

    pub(crate) async fn session(&self, id: &str) -> Opened {
        let new = NewSession {
            id: Some(id.into()),
            place: "/project".into(),
            time: Timestamp(1),
            ..NewSession::default()
        };
        self.store.create(new, &windlass_store::owner()).await.unwrap()
    }
}
