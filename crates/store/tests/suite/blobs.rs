//! Contents beside the database.

use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use windlass_core::log::{Attachment, BlobLimits, LogError};
use windlass_store::maintenance::vacuum;

use super::bed::Bed;

const LIMITS: BlobLimits = BlobLimits {
    count: 100,
    bytes: 1_000_000,
};

async fn attach(
    bed: &Bed,
    session: &str,
    name: &str,
    content: &str,
    limits: BlobLimits,
) -> Result<Attachment, LogError> {
    let content = Cursor::new(content.as_bytes().to_vec());
    let session = session.into();
    bed.store.attach(&session, name, Box::new(content), limits).await
}

async fn names(bed: &Bed, session: &str) -> Vec<String> {
    let attached = bed.store.attachments(&session.into()).await.unwrap();
    attached.into_iter().map(|attachment| attachment.name).collect()
}

/// Returns every file below the folder of contents.
fn files(bed: &Bed) -> Vec<PathBuf> {
    let folder = bed.file().with_file_name("blobs");
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = Vec::new();
    for entry in entries(folder) {
        match entry.path() {
            folder if folder.is_dir() => files.extend(entries(folder).map(|file| file.path())),
            file => files.push(file),
        }
    }
    files
}

/// SES-1: contents are stored once by their digest, are private, and are read whole or in parts; a changed one is
/// not returned as whole.
#[tokio::test]
async fn contents_are_stored_by_digest() {
    let bed = Bed::new();
    bed.session("one").await;
    bed.session("two").await;
    let one = attach(&bed, "one", "a", "some content", LIMITS).await.unwrap();
    let two = attach(&bed, "two", "b", "some content", LIMITS).await.unwrap();
    assert_eq!((&one.address, one.bytes), (&two.address, 12));
    let [file] = &files(&bed)[..] else {
        panic!("one file");
    };
    assert_eq!(
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let part = |offset, limit| bed.store.read_at(&one.address, offset, limit);
    assert_eq!(part(5, 3).await.unwrap().as_deref(), Some(&b"con"[..]));
    assert_eq!(part(5, 100).await.unwrap().as_deref(), Some(&b"content"[..]));
    assert_eq!(part(50, 1).await.unwrap().as_deref(), Some(&b""[..]));
    let whole = bed.store.content(&one.address).await.unwrap();
    assert_eq!(whole.as_deref(), Some(&b"some content"[..]));
    for other in ["", "../../etc/passwd", &"0".repeat(64)] {
        assert_eq!(bed.store.content(other).await.unwrap(), None, "{other}");
        assert_eq!(bed.store.read_at(other, 0, 1).await.unwrap(), None, "{other}");
    }
    std::fs::write(file, "changed").unwrap();
    let changed = bed.store.content(&one.address).await;
    assert!(matches!(changed, Err(LogError::Damaged { .. })), "{changed:?}");
}

/// SES-1: attachments are listed newest first and stay after the store is reopened; a name is used once per session,
/// and a session must exist. What fails leaves no file.
#[tokio::test]
async fn attachments_have_names() {
    let bed = Bed::new();
    bed.session("one").await;
    for name in ["a", "b", "c"] {
        attach(&bed, "one", name, name, LIMITS).await.unwrap();
    }
    assert_eq!(names(&bed, "one").await, ["c", "b", "a"]);
    assert_eq!(bed.again().attachments(&"one".into()).await.unwrap().len(), 3);
    assert!(attach(&bed, "one", "a", "other", LIMITS).await.is_err());
    let unknown = attach(&bed, "nothing", "a", "other", LIMITS).await;
    assert!(matches!(unknown, Err(LogError::Unknown(_))), "{unknown:?}");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("broken"))
        }
    }
    let broken = bed
        .store
        .attach(&"one".into(), "d", Box::new(Broken), LIMITS)
        .await;
    assert!(broken.is_err());
    assert_eq!(files(&bed).len(), 3);
}

/// SES-1: the contents of a session are deleted with it, unless another session has them.
#[tokio::test]
async fn contents_go_with_their_session() {
    let bed = Bed::new();
    let one = bed.session("one").await;
    bed.session("two").await;
    attach(&bed, "one", "own", "own", LIMITS).await.unwrap();
    attach(&bed, "one", "shared", "shared", LIMITS).await.unwrap();
    let shared = attach(&bed, "two", "shared", "shared", LIMITS).await.unwrap();
    bed.store.release(&one.lease).await.unwrap();
    bed.store.delete(&"one".into()).await.unwrap();
    assert_eq!(files(&bed).len(), 1);
    assert!(bed.store.content(&shared.address).await.unwrap().is_some());
}

/// CTX-11: the oldest attachments of other sessions make room; those of the session itself stay.
#[tokio::test]
async fn old_attachments_make_room() {
    let bed = Bed::new();
    bed.session("old").await;
    bed.session("new").await;
    let few = BlobLimits { count: 3, bytes: 100 };
    for name in ["a", "b", "c"] {
        attach(&bed, "old", name, name, few).await.unwrap();
    }
    let full = attach(&bed, "old", "d", "d", few).await;
    assert!(matches!(full, Err(LogError::Full(_))), "{full:?}");
    attach(&bed, "new", "by-count", "x", few).await.unwrap();
    assert_eq!(names(&bed, "old").await, ["c", "b"]);
    attach(&bed, "new", "by-size", &"s".repeat(99), few)
        .await
        .unwrap();
    assert_eq!(names(&bed, "old").await, [""; 0]);
    let full = attach(&bed, "new", "more", "m", few).await;
    assert!(matches!(full, Err(LogError::Full(_))), "{full:?}");
    assert_eq!(files(&bed).len(), 2);
}

/// SES-1: a vacuum removes files that are attached nowhere, and no others.
#[tokio::test]
async fn a_vacuum_removes_orphans() {
    let bed = Bed::new();
    bed.session("one").await;
    let kept = attach(&bed, "one", "a", "kept", LIMITS).await.unwrap();
    let folder = bed.file().with_file_name("blobs");
    std::fs::create_dir_all(folder.join("00")).unwrap();
    std::fs::write(folder.join("00").join("0".repeat(62)), "orphan").unwrap();
    std::fs::write(folder.join(".new-1"), "unfinished").unwrap();
    vacuum(&bed.file()).unwrap();
    assert_eq!(files(&bed).len(), 1);
    assert!(bed.store.content(&kept.address).await.unwrap().is_some());
}
