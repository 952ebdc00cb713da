//! Removes units and every copy of their text.

use deadpool_postgres::{GenericClient, Object, Transaction};
use windlass_core::id::SessionId;
use windlass_core::log::UserName;

use super::near;
use crate::entries;
use crate::failure::Fault;
use crate::sql::{row, rows, run, session, signed};

/// Stands where a forgotten text was.
const FORGOTTEN: &str = "[forgotten]";

/// Texts of fewer bytes are removed from memory only: the record contains them for other reasons as well.
const MIN_ERASED: usize = 12;

/// Tables that contained a forgotten text.
const SCRUBBED: &str = "entry, said, exchange, agent, session, memory_unit, memory_miss";

/// Units with their scopes.
const SCOPED: &str = "memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
    JOIN memory_scope ON memory_scope.id = memory_source.scope";

/// Removes units, and their texts from the record of all sessions of their user. Returns the number of units.
pub(super) async fn forget(client: &Transaction<'_>, ids: &[u64]) -> Result<u64, Fault> {
    let mut gone = 0;
    for id in ids {
        let sql =
            format!("SELECT memory_unit.text, memory_scope.place FROM {SCOPED} WHERE memory_unit.id = $1");
        let Some(found) = row(client, &sql, &[&signed(*id)]).await? else {
            continue;
        };
        let text: String = found.get(0);
        let (user, _) = UserName::split(found.get(1));
        remove(client, &[signed(*id)]).await?;
        if text.len() >= MIN_ERASED {
            // The same words may have been kept more than once.
            let sql = format!(
                "SELECT memory_unit.id, memory_scope.place FROM {SCOPED} WHERE strpos(memory_unit.text, $1) > 0"
            );
            let again: Vec<i64> = rows(client, &sql, &[&text])
                .await?
                .iter()
                .filter(|row| UserName::split(row.get(1)).0 == user)
                .map(|row| row.get(0))
                .collect();
            remove(client, &again).await?;
            erase(client, &text, &user).await?;
        }
        gone += 1;
    }
    Ok(gone)
}

/// Removes old versions of rows from the files.
pub(super) async fn scrub(client: &Object) -> Result<(), Fault> {
    let more = if near::is_there(client).await? {
        ", memory_near"
    } else {
        ""
    };
    let sql = format!("VACUUM {SCRUBBED}, memory_vector{more}");
    Ok(client.batch_execute(&sql).await?)
}

/// Removes what was said in a session that is deleted. Notes and lessons that came from it are the user's own, and
/// stay.
pub(crate) async fn of_session(client: &impl GenericClient, session: &SessionId) -> Result<(), Fault> {
    let sql = "SELECT memory_unit.id FROM memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
        WHERE memory_source.session = $1 AND memory_unit.kind = 'said'";
    let ids: Vec<i64> = rows(client, sql, &[&session.as_str()])
        .await?
        .iter()
        .map(|row| row.get(0))
        .collect();
    remove(client, &ids).await?;
    let sql = "DELETE FROM memory_miss WHERE session = $1";
    run(client, sql, &[&session.as_str()]).await.map(drop)
}

/// Removes units with their words and their vectors.
async fn remove(client: &impl GenericClient, ids: &[i64]) -> Result<(), Fault> {
    for sql in [
        "UPDATE memory_scope SET units = greatest(memory_scope.units - gone.units, 0), \
         length = greatest(memory_scope.length - gone.length, 0) FROM (SELECT memory_source.scope, count(*) AS units, \
         sum(memory_unit.length)::bigint AS length FROM memory_unit JOIN memory_source ON memory_source.id = memory_unit.source \
         WHERE memory_unit.id = ANY($1) GROUP BY 1) AS gone WHERE gone.scope = memory_scope.id",
        "WITH gone AS (DELETE FROM memory_posting WHERE unit = ANY($1) RETURNING word) \
         UPDATE memory_word SET units = memory_word.units - lost.units FROM (SELECT word, count(*) AS units FROM gone GROUP BY 1) \
         AS lost WHERE lost.word = memory_word.id",
        "DELETE FROM memory_vector WHERE unit = ANY($1)",
        "DELETE FROM memory_unit WHERE id = ANY($1)",
    ] {
        run(client, sql, &[&ids]).await?;
    }
    run(client, "DELETE FROM memory_word WHERE units <= 0", &[])
        .await
        .map(drop)
}

/// Condition of rows of a user's sessions; the parameter is the user.
fn own(parameter: &str) -> String {
    format!("session NOT IN (SELECT id FROM session WHERE user_name <> {parameter})")
}

/// Removes a text from the record of a user's sessions: messages, drafts, titles, the index, recorded traffic.
async fn erase(client: &Transaction<'_>, text: &str, user: &UserName) -> Result<(), Fault> {
    let user = user.as_str();
    // Messages are stored as JSON, and the arguments of a call as JSON in JSON.
    let once = escaped(text);
    let twice = escaped(&once);
    let mut forms = vec![text.to_owned()];
    for form in [once, twice] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    for form in &forms {
        for sql in [
            "UPDATE entry SET payload = replace(payload, $1, $2) WHERE strpos(payload, $1) > 0",
            "UPDATE draft SET payload = replace(payload, $1, $2) WHERE strpos(payload, $1) > 0",
            "UPDATE agent SET task = replace(task, $1, $2) WHERE strpos(task, $1) > 0",
            "UPDATE agent SET result = replace(result, $1, $2) WHERE strpos(result, $1) > 0",
        ] {
            let sql = format!("{sql} AND {}", own("$3"));
            run(client, &sql, &[form, &FORGOTTEN, &user]).await?;
        }
        unindex(client, form, user).await?;
        // A recorded request is compared by its digest, so it cannot be changed.
        let sql = format!(
            "DELETE FROM exchange WHERE (position($1::bytea IN request) > 0 OR position($1::bytea IN answer) > 0) AND {}",
            own("$2")
        );
        run(client, &sql, &[&form.as_bytes(), &user]).await?;
    }
    // A title is the start of the first message.
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sql = "UPDATE session SET title = $2 WHERE length(title) >= 8 AND strpos($1, rtrim(title, '….')) > 0 \
        AND user_name = $3";
    run(client, sql, &[&one_line, &FORGOTTEN, &user]).await?;
    let sql = format!(
        "DELETE FROM memory_miss WHERE (strpos(query, $1) > 0 OR strpos($1, query) > 0) AND {}",
        own("$2")
    );
    run(client, &sql, &[&text, &user]).await.map(drop)
}

/// Removes a text from the index.
async fn unindex(client: &Transaction<'_>, text: &str, user: &str) -> Result<(), Fault> {
    let sql = format!(
        "SELECT session, seq, text FROM said WHERE strpos(text, $1) > 0 AND {}",
        own("$2")
    );
    for found in rows(client, &sql, &[&text, &user]).await? {
        let changed = found.get::<_, &str>(2).replace(text, FORGOTTEN);
        entries::keep(client, &session(&found, 0), found.get(1), &changed).await?;
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}
