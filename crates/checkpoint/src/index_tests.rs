//! Tests that the index file gives back what was written, whatever happened to it since.

use super::*;
use crate::node::{Digest, Skip};
use crate::tree::skipped;

fn entry(name: &[u8], content: &[u8]) -> Entry {
    Entry {
        name: Box::from(name),
        stat: Stat {
            inode: 7,
            size: 3,
            mtime: -5,
            ctime: 9,
            mode: 0o100_644,
        },
        node: Node::File {
            mode: 0o644,
            digest: Digest::of(content),
            size: content.len() as u64,
        },
    }
}

fn sample() -> Folder {
    let mut entries = vec![
        entry(b"a\xff", b"x"),
        entry(b"l", b""),
        entry(b"s", b""),
        entry(b"z", b""),
    ];
    entries[1].node = Node::Link {
        target: Bytes(b"to".to_vec()),
    };
    entries[2].node = Node::Folder { mode: 0o644 };
    entries[3].node = skipped(Skip::Ignored, &entries[3].stat);
    Folder {
        entries,
        ignored: false,
    }
}

fn path(text: &str) -> Arc<[u8]> {
    Arc::from(text.as_bytes())
}

fn written(file: &Path) -> Index {
    let mut index = Index::open(file);
    let mut draft = index.draft(Previous::Disposable).unwrap();
    draft.folder(path(""), &sample());
    let inner = Folder {
        entries: vec![entry(b"only", b"four")],
        ignored: true,
    };
    draft.folder(path("s"), &inner);
    index.commit(draft, Extent::Whole).unwrap();
    index
}

fn all(index: &Index) -> Vec<(Vec<u8>, Folder)> {
    let mut all = Vec::new();
    index
        .below(b"", |path, folder| all.push((path.to_vec(), folder)))
        .unwrap();
    all
}

/// SES-11: the index survives a round trip, and of a damaged one only what comes before the damage counts.
#[test]
fn survives_or_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    let index = written(&file);
    assert_eq!(index.folder(b"").unwrap().unwrap(), sample());
    assert_eq!((index.entries(), index.kept()), (5, (5, 4)));
    let read = Index::open(&file);
    assert!(read.is_whole());
    assert_eq!(all(&read), all(&index));
    let whole = fs::read(&file).unwrap();
    for cut in [0, 7, 40, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        assert!(!Index::open(&file).is_whole(), "{cut}");
    }
    for place in [3, 8, 30, 60, whole.len() - 3] {
        let mut bent = whole.clone();
        bent[place] ^= 1;
        fs::write(&file, &bent).unwrap();
        assert!(!Index::open(&file).is_whole(), "{place}");
    }
    // A damaged file is replaced with the next change.
    written(&file);
    assert_eq!(all(&Index::open(&file)), all(&index));
    assert_eq!(Index::open(&folder.path().join("none")).entries(), 0);
}

/// SES-11: single entries are found and changed without the others, in memory and on the disk; what is written
/// follows what changed.
#[test]
fn single_names_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    let mut index = written(&file);
    let many = Folder {
        entries: (0..5_000)
            .map(|number| entry(format!("{number:05}").as_bytes(), b"12"))
            .collect(),
        ignored: false,
    };
    let mut draft = index.draft(Previous::Needed).unwrap();
    draft.folder(path("s"), &many);
    index.commit(draft, Extent::Part).unwrap();
    assert_eq!((index.entries(), index.kept()), (5_004, (10_001, 0)));
    let before = fs::metadata(&file).unwrap().len();
    let mut expected: BTreeMap<Vec<u8>, Entry> = many
        .entries
        .into_iter()
        .map(|entry| (entry.name.to_vec(), entry))
        .collect();
    for number in 0..100 {
        let gone = format!("{:05}", number * 7).into_bytes();
        let new = entry(format!("{:05}x", number * 3).as_bytes(), b"123");
        expected.remove(&gone);
        expected.insert(new.name.to_vec(), new.clone());
        let mut draft = index.draft(Previous::Needed).unwrap();
        let names = vec![(Box::from(gone), None), (new.name.clone(), Some(new))];
        draft.names(path("s"), names);
        index.commit(draft, Extent::Part).unwrap();
    }
    let grown = fs::metadata(&file).unwrap().len() - before;
    assert!(grown < 30_000, "{grown}");
    for index in [&index, &Index::open(&file)] {
        let folder = index.folder(b"s").unwrap().unwrap();
        assert_eq!(folder.entries, expected.values().cloned().collect::<Vec<_>>());
        assert_eq!((index.entries(), index.kept().0), (5_004, 1 + 4_900 * 2 + 300));
        for name in [&b"00001"[..], b"00007", b"00003x", b"04999", b"", b"9"] {
            let found = index.entry(b"s", name).unwrap();
            assert_eq!(found.as_ref(), expected.get(name), "{name:?}");
        }
    }
    // Once most of the file is replaced, it is written anew, and works as before.
    index.length = u64::MAX / 4;
    index.tidy().unwrap();
    assert_eq!(all(&Index::open(&file)), all(&index));
    assert!(index.length < before + grown);
}

/// SES-11: a folder of which most names changed is written as a whole, so that memory does not grow.
#[test]
fn changed_names_are_folded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    let mut index = written(&file);
    for number in 0..100 {
        let mut draft = index.draft(Previous::Needed).unwrap();
        let new = entry(format!("{number:03}").as_bytes(), b"1");
        draft.names(path("s"), vec![(new.name.clone(), Some(new))]);
        index.commit(draft, Extent::Part).unwrap();
    }
    let known = &index.folders[&b"s"[..]];
    assert!(known.since.as_ref().is_none_or(|since| since.len() < 50));
    assert_eq!(index.folder(b"s").unwrap().unwrap().entries.len(), 101);
    assert_eq!(all(&Index::open(&file)), all(&index));
}

/// SES-11: if another process writes the file anew, what this one knows is in the new file as well.
#[test]
fn a_replaced_file_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index");
    let mut index = written(&file);
    let mut other = Index::open(&file);
    other.length = u64::MAX / 4;
    other.tidy().unwrap();
    let mut draft = index.draft(Previous::Needed).unwrap();
    draft.names(path(""), vec![(Box::from(&b"s"[..]), None)]);
    draft.gone(path("s"));
    index.commit(draft, Extent::Part).unwrap();
    assert!(!index.is_replaced());
    assert_eq!(all(&Index::open(&file)), all(&index));
    assert_eq!(index.entries(), 3);
    // The other process goes on in its own view.
    assert_eq!(other.entries(), 5);
    assert!(other.entry(b"s", b"only").unwrap().is_some());
}
