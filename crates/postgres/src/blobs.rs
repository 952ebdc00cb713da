//! Contents addressed by their digest, stored in pieces so that none is read or written as a whole.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Transaction};
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Attachment, BlobLimits, Blobs, LogError};

use super::PostgresStore;
use super::failure::{Fault, damaged};
use super::sql::{clean, number, only, row, rows, run, signed, time};

/// Size of a piece.
const PIECE: usize = 256 * 1024;

/// Key of the lock under which contents are attached and removed, so that none is removed while it is attached.
const LOCK: i64 = 0x574E_424C;

/// A content in a temporary file, which is removed with this value.
struct Staged {
    file: File,
    address: String,
    bytes: u64,
}

#[async_trait]
impl Blobs for PostgresStore {
    async fn attach(
        &self,
        session: &SessionId,
        name: &str,
        mut content: Box<dyn Read + Send>,
        limits: BlobLimits,
    ) -> Result<Attachment, LogError> {
        let staged = tokio::task::spawn_blocking(move || stage(&mut *content)).await;
        let staged = staged.map_err(|error| LogError::Failed(error.to_string()))??;
        let (id, name) = (session.clone(), name.to_owned());
        self.thread
            .run(async move |context| {
                let now = context.clock.now();
                context
                    .write(async |transaction, again| {
                        attach(transaction, (&id, &name), &staged, (limits, now, again)).await
                    })
                    .await
            })
            .await
    }

    async fn attachments(&self, session: &SessionId) -> Result<Vec<Attachment>, LogError> {
        let id = session.clone();
        self.read(async move |client| attachments(client, &id).await)
            .await
    }

    async fn read_at(&self, address: &str, offset: u64, limit: usize) -> Result<Option<Vec<u8>>, LogError> {
        let address = clean(address);
        self.read(async move |client| read_at(client, &address, offset, limit).await)
            .await
    }

    async fn content(&self, address: &str) -> Result<Option<Vec<u8>>, LogError> {
        let Some(content) = self.read_at(address, 0, usize::MAX).await? else {
            return Ok(None);
        };
        if blake3::hash(&content).to_hex().as_str() != address {
            let what = format!("the content {address}");
            return Err(damaged(what, "it does not match its digest"));
        }
        Ok(Some(content))
    }
}

/// Writes a content to a temporary file and computes its digest.
fn stage(content: &mut dyn Read) -> Result<Staged, LogError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::StorageFull => LogError::Full(error.to_string()),
        _ => LogError::Failed(error.to_string()),
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let (mut hasher, mut buffer, mut bytes) = (blake3::Hasher::new(), vec![0; 64 * 1024], 0);
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        hasher.update(piece);
        file.write_all(piece).map_err(failed)?;
        bytes += piece.len() as u64;
    }
    Ok(Staged {
        file,
        address: hasher.finalize().to_hex().to_string(),
        bytes,
    })
}

async fn attach(
    client: &Transaction<'_>,
    (session, name): (&SessionId, &str),
    staged: &Staged,
    (limits, now, again): (BlobLimits, Timestamp, bool),
) -> Result<Attachment, Fault> {
    let attachment = Attachment {
        name: name.to_owned(),
        address: staged.address.clone(),
        bytes: staged.bytes,
        time: now,
    };
    lock(client).await?;
    let known = row(
        client,
        "SELECT 1 FROM session WHERE id = $1",
        &[&session.as_str()],
    )
    .await?;
    if known.is_none() {
        return Err(LogError::Unknown(session.clone()).into());
    }
    let key = clean(name);
    let sql = "SELECT 1 FROM attachment WHERE session = $1 AND name = $2 AND address = $3 AND time = $4";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&session.as_str(), &key, &staged.address, &signed(now.0)];
    if again && row(client, sql, &values).await?.is_some() {
        return Ok(attachment);
    }
    let gone = make_room(client, session, staged.bytes, limits).await?;
    let sql = "INSERT INTO attachment (session, name, address, bytes, time) VALUES ($1, $2, $3, $4, $5)";
    run(
        client,
        sql,
        &[
            &session.as_str(),
            &key,
            &staged.address,
            &signed(staged.bytes),
            &signed(now.0),
        ],
    )
    .await?;
    keep(client, staged).await?;
    sweep(client, &gone).await?;
    Ok(attachment)
}

/// Waits until nobody else attaches or removes contents, until the end of the transaction.
pub(super) async fn lock(client: &impl GenericClient) -> Result<(), Fault> {
    only(client, "SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .map(drop)
}

/// Stores the pieces of a content, unless they are there.
async fn keep(client: &Transaction<'_>, staged: &Staged) -> Result<(), Fault> {
    let sql = "SELECT 1 FROM blob WHERE address = $1 LIMIT 1";
    if row(client, sql, &[&staged.address]).await?.is_some() {
        return Ok(());
    }
    let failed = |error: std::io::Error| Fault::Log(LogError::Failed(error.to_string()));
    let mut file = &staged.file;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    for number in 0_i64.. {
        let mut piece = Vec::with_capacity(PIECE);
        let limit = u64::try_from(PIECE).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut piece).map_err(failed)?;
        // An empty content has one empty piece.
        if piece.is_empty() && number > 0 {
            break;
        }
        let sql = "INSERT INTO blob (address, piece, content) VALUES ($1, $2, $3)";
        run(client, sql, &[&staged.address, &number, &piece]).await?;
        if piece.len() < PIECE {
            break;
        }
    }
    Ok(())
}

/// Stores a content that is in memory, unless it is there.
pub(super) async fn keep_bytes(client: &Transaction<'_>, address: &str, content: &[u8]) -> Result<(), Fault> {
    lock(client).await?;
    let sql = "SELECT 1 FROM blob WHERE address = $1 LIMIT 1";
    if row(client, sql, &[&address]).await?.is_some() {
        return Ok(());
    }
    let empty: &[&[u8]] = &[&[]];
    let pieces: Vec<&[u8]> = content.chunks(PIECE).collect();
    let pieces = if pieces.is_empty() { empty } else { &pieces };
    for (number, piece) in (0_i64..).zip(pieces) {
        let sql = "INSERT INTO blob (address, piece, content) VALUES ($1, $2, $3)";
        run(client, sql, &[&address, &number, piece]).await?;
    }
    Ok(())
}

/// Detaches the oldest attachments of other sessions until one more of this size fits. Returns their addresses.
async fn make_room(
    client: &Transaction<'_>,
    session: &SessionId,
    bytes: u64,
    limits: BlobLimits,
) -> Result<Vec<String>, Fault> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM attachment";
    let all = only(client, sql, &[]).await?;
    let (mut count, mut total) = (number(&all, 0), number(&all, 1));
    let mut gone = Vec::new();
    while count >= limits.count || total.saturating_add(bytes) > limits.bytes {
        let sql = "DELETE FROM attachment WHERE number = (SELECT number FROM attachment WHERE session <> $1 \
                   ORDER BY time, number LIMIT 1) RETURNING address, bytes";
        let Some(oldest) = row(client, sql, &[&session.as_str()]).await? else {
            return Err(LogError::Full("the limit for stored contents is reached".to_owned()).into());
        };
        count -= 1;
        total = total.saturating_sub(number(&oldest, 1));
        gone.push(oldest.get(0));
    }
    Ok(gone)
}

/// Returns the attachments of a session, newest first.
pub(super) async fn attachments(
    client: &impl GenericClient,
    session: &SessionId,
) -> Result<Vec<Attachment>, Fault> {
    let sql = "SELECT name, address, bytes, time FROM attachment WHERE session = $1 ORDER BY time DESC, number DESC";
    let found = rows(client, sql, &[&session.as_str()]).await?;
    let attachment = |row: &tokio_postgres::Row| Attachment {
        name: row.get(0),
        address: row.get(1),
        bytes: number(row, 2),
        time: time(row, 3),
    };
    Ok(found.iter().map(attachment).collect())
}

/// Removes these contents, unless they are attached or kept.
pub(super) async fn sweep(client: &impl GenericClient, addresses: &[String]) -> Result<(), Fault> {
    if addresses.is_empty() {
        return Ok(());
    }
    lock(client).await?;
    let sql = "DELETE FROM blob WHERE address = ANY($1) AND NOT EXISTS \
               (SELECT 1 FROM attachment WHERE attachment.address = blob.address) AND NOT EXISTS \
               (SELECT 1 FROM kept WHERE kept.address = blob.address)";
    run(client, sql, &[&addresses]).await.map(drop)
}

async fn read_at(
    client: &impl GenericClient,
    address: &str,
    offset: u64,
    limit: usize,
) -> Result<Option<Vec<u8>>, Fault> {
    let known = row(
        client,
        "SELECT 1 FROM blob WHERE address = $1 LIMIT 1",
        &[&address],
    )
    .await?;
    if known.is_none() {
        return Ok(None);
    }
    let size = PIECE as u64;
    let (first, mut skip) = (
        offset / size,
        usize::try_from(offset % size).unwrap_or(usize::MAX),
    );
    let mut content = Vec::new();
    for piece in first.. {
        if content.len() >= limit {
            break;
        }
        let sql = "SELECT content FROM blob WHERE address = $1 AND piece = $2";
        let Some(found) = row(client, sql, &[&address, &signed(piece)]).await? else {
            break;
        };
        let piece: &[u8] = found.get(0);
        let rest = piece.get(skip..).unwrap_or_default();
        let left = limit - content.len();
        content.extend_from_slice(rest.get(..left).unwrap_or(rest));
        skip = 0;
    }
    Ok(Some(content))
}
