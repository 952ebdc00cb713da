//! Contents in the database.

use std::io::Cursor;

use windlass_core::log::{Attachment, BlobLimits, LogError};

use super::bed::Bed;

const LIMITS: BlobLimits = BlobLimits {
    count: 100,
    bytes: 1 << 30,
};

async fn attach(
    bed: &Bed,
    session: &str,
    name: &str,
    content: &[u8],
    limits: BlobLimits,
) -> Result<Attachment, LogError> {
    let content = Cursor::new(content.to_vec());
    let session = session.into();
    bed.store.attach(&session, name, Box::new(content), limits).await
}

async fn names(bed: &Bed, session: &str) -> Vec<String> {
    let attached = bed.store.attachments(&session.into()).await.unwrap();
    attached.into_iter().map(|attachment| attachment.name).collect()
}

/// SES-1, DIST-2: contents are stored once by their digest, in pieces, and read whole or in parts; a changed one is not
/// returned as whole. They are gone with the last session they are attached to.
#[tokio::test]
async fn contents_are_stored_by_digest() {
    let bed = Bed::new();
    bed.session("one").await;
    let second = bed.session("two").await;
    let large: Vec<u8> = (0..700_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let one = attach(&bed, "one", "a", &large, LIMITS).await.unwrap();
    let two = attach(&bed, "two", "b", &large, LIMITS).await.unwrap();
    assert_eq!((&one.address, one.bytes), (&two.address, 700_000));
    assert_eq!(bed.sql("SELECT count(*) FROM windlass.blob"), "3");
    assert_eq!(
        bed.store.content(&one.address).await.unwrap().as_ref(),
        Some(&large)
    );
    for (offset, limit) in [
        (0, 10),
        (262_140, 10),
        (699_995, 10),
        (700_000, 10),
        (900_000, 1),
        (5, 600_000),
    ] {
        let part = bed
            .store
            .read_at(&one.address, offset as u64, limit)
            .await
            .unwrap()
            .unwrap();
        let end = large.len().min(offset + limit);
        assert_eq!(
            part,
            large.get(offset..end).unwrap_or_default(),
            "{offset} {limit}"
        );
    }
    let empty = attach(&bed, "one", "empty", b"", LIMITS).await.unwrap();
    assert_eq!(bed.store.content(&empty.address).await.unwrap(), Some(Vec::new()));
    assert_eq!(bed.store.content(&"0".repeat(64)).await.unwrap(), None);
    assert!(
        attach(&bed, "one", "a", b"again", LIMITS).await.is_err(),
        "the name is taken"
    );
    let unknown = attach(&bed, "nobody", "a", b"x", LIMITS).await;
    assert_eq!(unknown, Err(LogError::Unknown("nobody".into())));
    bed.store.release(&second.lease).await.unwrap();
    bed.store.delete(&"two".into()).await.unwrap();
    assert!(bed.store.content(&one.address).await.unwrap().is_some());
    bed.sql("UPDATE windlass.blob SET content = 'x' WHERE piece = 1");
    let damaged = bed.store.content(&one.address).await;
    assert!(matches!(damaged, Err(LogError::Damaged { .. })), "{damaged:?}");
}

/// SES-1, DIST-2: the oldest attachments of other sessions make room, never those of the same one.
#[tokio::test]
async fn limits_remove_the_oldest() {
    let bed = Bed::new();
    bed.session("old").await;
    bed.session("new").await;
    let few = BlobLimits { count: 3, bytes: 100 };
    for name in ["a", "b", "c"] {
        attach(&bed, "old", name, name.as_bytes(), few).await.unwrap();
    }
    let full = attach(&bed, "old", "d", b"d", few).await;
    assert!(matches!(full, Err(LogError::Full(_))), "{full:?}");
    attach(&bed, "new", "by-count", b"x", few).await.unwrap();
    assert_eq!(names(&bed, "old").await, ["c", "b"]);
    attach(&bed, "new", "by-size", &[b's'; 99], few).await.unwrap();
    assert_eq!(names(&bed, "old").await, [""; 0]);
    assert_eq!(bed.sql("SELECT count(DISTINCT address) FROM windlass.blob"), "2");
}
