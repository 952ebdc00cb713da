//! The inbox of sessions.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;
use windlass_core::id::SessionId;
use windlass_core::log::{LogError, Notice, Post, PostKind, SessionInbox};

use super::listen;
use crate::PostgresStore;
use crate::failure::Fault;
use crate::sql::{NOW, clean, row, rows, session, time};

/// Messages that a server takes at once.
const MOST: i64 = 1_000;

#[async_trait]
impl SessionInbox for PostgresStore {
    async fn post(&self, post: &Post) -> Result<(), LogError> {
        let post = post.clone();
        self.write(async move |transaction, _| {
            let sql = format!(
                "WITH put AS (INSERT INTO inbox (id, session, kind, payload, sender, made) SELECT $1, id, $3, $4, $5, {NOW} \
                   FROM session WHERE id = $2 ON CONFLICT (id) DO NOTHING RETURNING 1) \
                 SELECT (SELECT count(*) FROM put), CASE WHEN server.until > {NOW} \
                   THEN pg_notify('wl_' || md5(server.id), 'inbox ' || $2) ELSE pg_notify('wl_all', 'work') END::text \
                 FROM session LEFT JOIN server ON server.id = session.owner WHERE session.id = $2"
            );
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] = [
                &clean(&post.id),
                &post.session.as_str(),
                &post.kind.name(),
                &clean(&post.payload),
                &post.from,
            ];
            match row(transaction, &sql, &values).await? {
                Some(_) => Ok(()),
                None => Err(Fault::Log(LogError::Unknown(post.session.clone()))),
            }
        })
        .await
    }

    async fn waiting(&self, owner: &str) -> Result<Vec<Post>, LogError> {
        let owner = owner.to_owned();
        self.read(async move |client| {
            let sql = "SELECT i.id, i.session, i.kind, i.payload, i.sender, i.made FROM inbox i \
                JOIN session s ON s.id = i.session WHERE i.taken IS NULL AND s.owner = $1 ORDER BY i.made, i.id LIMIT $2";
            let found = rows(client, sql, &[&owner, &MOST]).await?;
            let post = |row: &tokio_postgres::Row| {
                // A kind that only a newer server knows waits for one.
                Some(Post {
                    id: row.get(0),
                    session: session(row, 1),
                    kind: PostKind::parse(row.get(2))?,
                    payload: row.get(3),
                    from: row.get(4),
                    made: time(row, 5),
                })
            };
            Ok(found.iter().filter_map(post).collect())
        })
        .await
    }

    async fn answer(&self, post: &Post, answer: &str) -> Result<(), LogError> {
        let (id, answer) = (post.id.clone(), clean(answer));
        self.write(async move |transaction, _| {
            let sql = format!(
                "WITH took AS (UPDATE inbox SET taken = {NOW}, answer = $2 WHERE id = $1 AND taken IS NULL RETURNING id, sender) \
                 SELECT pg_notify('wl_' || md5(took.sender), 'answered ' || took.id)::text FROM took"
            );
            rows(transaction, &sql, &[&id, &answer]).await?;
            Ok(())
        })
        .await
    }

    async fn answered(&self, id: &str) -> Result<Option<String>, LogError> {
        let id = id.to_owned();
        self.read(async move |client| {
            let sql = "SELECT answer FROM inbox WHERE id = $1 AND taken IS NOT NULL";
            let found = row(client, sql, &[&id]).await?;
            Ok(found.map(|found| found.get::<_, Option<String>>(0).unwrap_or_default()))
        })
        .await
    }

    fn notices(&self, server: &str) -> BoxStream<'static, Notice> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (thread, server) = (std::sync::Arc::clone(&self.thread), server.to_owned());
        tokio::spawn(async move {
            let begun = thread.run(async move |context| {
                tokio::task::spawn_local(listen::listen(context, server, sender));
                Ok(())
            });
            // A closed store has no notices.
            let _ = begun.await;
        });
        stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|notice| (notice, receiver))
        })
        .boxed()
    }
}

/// Reads the text of a notification.
pub(super) fn notice(text: &str) -> Option<Notice> {
    match text.split_once(' ') {
        Some(("inbox", id)) => Some(Notice::Inbox(SessionId::from(id.to_owned()))),
        Some(("moved", id)) => Some(Notice::Moved(SessionId::from(id.to_owned()))),
        Some(("answered", id)) => Some(Notice::Answered(id.to_owned())),
        None if text == "work" => Some(Notice::Work),
        None if text == "preference" => Some(Notice::Preference),
        _ => None,
    }
}
