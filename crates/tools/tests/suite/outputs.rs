//! Long outputs: stored whole, read in parts.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use windlass_core::clock::Timestamp;
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{Attachment, BlobLimits, Blobs, LogError};
use windlass_core::tool::{Outputs, ToolError};
use windlass_tools::{OutputStore, ToolsConfig, builtin};

use crate::desk::Desk;

fn desk(store: &Arc<OutputStore>) -> Desk {
    Desk::with(&ToolsConfig {
        outputs: Some(Arc::clone(store)),
        ..ToolsConfig::default()
    })
}

/// Creates a store in a folder that does not exist yet.
fn store() -> (TempDir, Arc<OutputStore>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = OutputStore::new(folder.path().join("state/outputs/s1"));
    (folder, Arc::new(store))
}

async fn keep(store: &OutputStore, tool: &str, content: &str) -> Option<String> {
    store.keep(&CallId::from("c1"), tool, content).await
}

fn mode(path: &Path) -> u32 {
    let data = fs::metadata(path).expect("a file");
    data.permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// CTX-11: an output is a private file under a short reference; the folder is made for the first one.
#[tokio::test]
async fn what_is_kept_is_private() {
    let (folder, store) = store();
    let place = folder.path().join("state/outputs/s1");
    assert!(!place.exists());
    let id = keep(&store, "My_Tool ../x", "hello\n").await.expect("kept");
    assert!(id.starts_with("my-tool----x-") && id.len() < 24, "{id}");
    assert_eq!(fs::read_to_string(place.join(&id)).expect("a file"), "hello\n");
    assert_eq!((mode(&place), mode(&place.join(&id))), (0o700, 0o600));
    let mut ids = std::collections::HashSet::new();
    for _ in 0..100 {
        ids.extend(keep(&store, "t", "x").await);
    }
    assert_eq!(ids.len(), 100);
    assert_eq!(names(&place).len(), 101, "nothing else is left there");
}

/// TOOL-3: a disk that cannot store anything never costs a result.
#[tokio::test]
async fn a_bad_disk_costs_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), "").expect("a file");
    let store = Arc::new(OutputStore::new(folder.path().join("file/outputs")));
    assert_eq!(keep(&store, "bash", "x").await, None);
    let output = desk(&store)
        .call("bash", json!({ "command": "seq 1 300000" }))
        .await
        .expect("an answer");
    assert_eq!(output.kept, None);
    assert!(output.content.contains(" bytes left out …]\n"));
    assert!(output.content.ends_with("\n300000"));
}

/// CTX-11: a store is bounded. The oldest of other sessions make room; what is this session's stays.
#[tokio::test]
async fn old_outputs_make_room() {
    let root = tempfile::tempdir().expect("a folder");
    let session = |name: &str| OutputStore::new(root.path().join(name)).sharing(root.path().to_owned());
    fs::write(root.path().join("stranger.txt"), "not ours").expect("a file");
    let old = session("old").bounded(4, 100);
    let mut first = Vec::new();
    for _ in 0..4 {
        first.push(keep(&old, "bash", "0123456789").await.expect("kept"));
    }
    assert_eq!(keep(&old, "bash", "x").await, None, "its own are never removed");
    let place = |id: &str| root.path().join("old").join(id);
    for (index, id) in first.iter().enumerate() {
        let file = fs::File::open(place(id)).expect("a file");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 - index as u64);
        file.set_modified(time).expect("a time");
    }

    let new = session("new").bounded(4, 100);
    let kept = keep(&new, "bash", "by count").await.expect("kept");
    let there: Vec<bool> = first.iter().map(|id| place(id).exists()).collect();
    assert_eq!(there, [true, true, true, false], "the oldest went");
    keep(&new, "bash", &"s".repeat(75)).await.expect("kept by size");
    let there: Vec<bool> = first.iter().map(|id| place(id).exists()).collect();
    assert_eq!(there, [true, false, false, false]);
    assert_eq!(
        keep(&new, "bash", &"s".repeat(95)).await,
        None,
        "more than there is room for"
    );
    assert!(root.path().join("new").join(kept).exists());
    assert!(root.path().join("stranger.txt").exists());
    assert!(!root.path().join("old").exists(), "an empty folder goes");
}

/// TOOL-3: an output longer than memory holds is stored completely, and the text says where.
#[tokio::test]
async fn a_long_command_output_is_kept_whole() {
    let (_folder, store) = store();
    let desk = desk(&store);
    let output = desk
        .call("bash", json!({ "command": "seq 1 300000; echo é" }))
        .await
        .expect("an answer");
    let kept = output.kept.expect("kept");
    assert!(kept.whole && kept.id.starts_with("bash-"), "{kept:?}");
    let whole: String = (1..=300_000)
        .map(|number| format!("{number}\n"))
        .chain(["é\n".to_owned()])
        .collect();
    assert_eq!(kept.characters, whole.chars().count());
    let note = format!(
        " bytes left out; read them with tool_output, id \"{}\" …]\n",
        kept.id
    );
    assert!(output.content.contains(&note));

    let text = |arguments| desk.text("tool_output", arguments);
    let page = text(json!({ "id": kept.id, "offset": 150_000, "limit": 2 })).await;
    assert_eq!(
        page,
        "150000\t150000\n150001\t150001\n[lines 150000-150001 of 300001; continue with offset=150002]"
    );
    let end = text(json!({ "id": kept.id, "offset": 300_001 })).await;
    assert_eq!(end, "300001\té\n[lines 300001-300001 of 300001; this is the end]");
    let found = text(json!({ "id": kept.id, "pattern": "^299(9.|8[89])$", "limit": 3 })).await;
    assert_eq!(
        found,
        "29988: 29988\n29989: 29989\n29990: 29990\n[3 matches so far; continue with offset=29991, or narrow the pattern]"
    );
    let around = text(json!({ "id": kept.id, "pattern": "^7777$", "context": 1 })).await;
    assert_eq!(around, "7776- 7776\n7777: 7777\n7778- 7778\n[1 match]");
}

/// TOOL-3: short outputs leave nothing behind.
#[tokio::test]
async fn a_short_output_is_not_kept() {
    let (folder, store) = store();
    let desk = desk(&store);
    for command in ["echo hello", "head -c 199999 /dev/zero | tr '\\0' x", "exit 3"] {
        let output = desk
            .call("bash", json!({ "command": command }))
            .await
            .expect(command);
        assert_eq!(output.kept, None, "{command}");
    }
    let place = folder.path().join("state/outputs/s1");
    crate::desk::until("nothing is left", || names(&place).is_empty()).await;
}

/// TOOL-3: an answer is never longer than 30,000 characters, however long its lines are, and names the next
/// page.
#[tokio::test]
async fn pages_are_bounded() {
    let (_folder, store) = store();
    let desk = desk(&store);
    let line = format!("{}\n", "ü".repeat(900));
    let id = keep(&store, "mcp", &line.repeat(100)).await.expect("kept");
    let mut next = 1;
    let mut lines = 0;
    loop {
        let page = desk
            .text("tool_output", json!({ "id": id, "offset": next }))
            .await;
        let count = page.chars().count();
        assert!(count < 31_000, "{count}");
        lines += page.lines().count() - 1;
        match page.rsplit_once("continue with offset=") {
            Some((_, offset)) => next = offset.trim_end_matches(']').parse().expect("a line"),
            None => break,
        }
    }
    assert_eq!(lines, 100);

    let id = keep(&store, "mcp", &"x".repeat(1_000_000)).await.expect("kept");
    let page = desk.text("tool_output", json!({ "id": id })).await;
    assert!(
        page.contains(" [line cut; it has 1000000 bytes]\n"),
        "{}",
        page.len()
    );
    assert!(page.len() < 3000);
}

/// TOOL-3: an unknown reference is refused, and the answer lists the known ones.
#[tokio::test]
async fn an_unknown_reference_names_the_known() {
    let (folder, store) = store();
    let desk = desk(&store);
    fs::write(folder.path().join("secret"), "secret").expect("a file");
    match desk.error("tool_output", json!({ "id": "bash-1" })).await {
        ToolError::Permanent(text) => {
            assert!(
                text.contains("`bash-1`") && text.contains("None was kept"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.extend(keep(&store, "run_tests", "0123456789").await);
    }
    let place = folder.path().join("state/outputs/s1");
    std::os::unix::fs::symlink(folder.path().join("secret"), place.join("link-1")).expect("a link");
    for id in [
        "",
        "../../../secret",
        "/etc/hostname",
        "Bash-1",
        "link-1",
        ".",
        "..",
        "a/b",
    ] {
        match desk.error("tool_output", json!({ "id": id })).await {
            ToolError::Permanent(text) => {
                assert!(!text.contains("secret\n"), "{id}: {text}");
                if id != "link-1" {
                    let named = ids.iter().filter(|known| text.contains(known.as_str())).count();
                    assert_eq!(named, 10, "{text}");
                    assert!(
                        text.contains(" (run-tests, 10 B)\n") && text.ends_with("and 2 older"),
                        "{text}"
                    );
                }
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    for (arguments, word) in [
        (json!({ "id": ids[0], "pattern": "(" }), "regular expression"),
        (json!({ "id": ids[0], "limit": 0 }), "limit"),
        (json!({ "id": ids[0], "offset": 7 }), "only 1 line"),
        (json!({}), "id"),
    ] {
        match desk.error("tool_output", arguments).await {
            ToolError::Invalid(text) => assert!(text.contains(word), "{word} in {text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// TOOL-3: the reader is offered exactly when there is a store to read.
#[test]
fn the_reader_comes_with_the_store() {
    let (_folder, store) = store();
    let with = ToolsConfig {
        outputs: Some(store),
        ..ToolsConfig::default()
    };
    assert!(builtin(&with).get("tool_output").is_some());
    assert!(builtin(&ToolsConfig::default()).get("tool_output").is_none());
}

/// Blobs in memory; refuses everything if it is told to.
#[derive(Default)]
struct MemoryBlobs {
    refuses: bool,
    attached: Mutex<Vec<(SessionId, Attachment, Vec<u8>)>>,
}

impl MemoryBlobs {
    fn names(&self) -> Vec<String> {
        let attached = self.attached.lock().expect("attached");
        attached
            .iter()
            .map(|(_, attachment, _)| attachment.name.clone())
            .collect()
    }
}

#[async_trait::async_trait]
impl Blobs for MemoryBlobs {
    async fn attach(
        &self,
        session: &SessionId,
        name: &str,
        mut content: Box<dyn Read + Send>,
        limits: BlobLimits,
    ) -> Result<Attachment, LogError> {
        assert_eq!((limits.count, limits.bytes), (500, 1_000_000_000));
        if self.refuses {
            return Err(LogError::Failed("refused".to_owned()));
        }
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).expect("a content");
        let mut attached = self.attached.lock().expect("attached");
        let attachment = Attachment {
            name: name.to_owned(),
            address: attached.len().to_string(),
            bytes: bytes.len() as u64,
            time: Timestamp(attached.len() as u64),
        };
        attached.push((session.clone(), attachment.clone(), bytes));
        Ok(attachment)
    }

    async fn attachments(&self, session: &SessionId) -> Result<Vec<Attachment>, LogError> {
        let attached = self.attached.lock().expect("attached");
        let own = attached.iter().filter(|(of, ..)| of == session);
        Ok(own.map(|(_, attachment, _)| attachment.clone()).rev().collect())
    }

    async fn read_at(&self, address: &str, offset: u64, limit: usize) -> Result<Option<Vec<u8>>, LogError> {
        let content = self.content(address).await?;
        let offset = usize::try_from(offset).expect("an offset");
        Ok(content.map(|content| content.into_iter().skip(offset).take(limit).collect()))
    }

    async fn content(&self, address: &str) -> Result<Option<Vec<u8>>, LogError> {
        let attached = self.attached.lock().expect("attached");
        let found = attached
            .iter()
            .find(|(_, attachment, _)| attachment.address == address);
        Ok(found.map(|(.., content)| content.clone()))
    }
}

/// CTX-11: a settled output is a blob of its session, and no file is left; `tool_output` reads it by range and by
/// pattern, also through another store of the same session, and not through one of another session.
#[tokio::test]
async fn settled_outputs_are_blobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = Arc::new(MemoryBlobs::default());
    let session = |name: &str| {
        let store = OutputStore::new(folder.path().join(name));
        Arc::new(store.in_blobs(Arc::clone(&blobs) as _, name.into()))
    };
    let store = session("s1");
    let first = desk(&store);
    let output = first
        .call("bash", json!({ "command": "seq 1 300000" }))
        .await
        .expect("an answer");
    let id = output.kept.expect("kept").id;
    let other = keep(&store, "grep", "one\ntwo\n").await.expect("kept");
    assert_eq!(blobs.names(), [id.clone(), other.clone()]);
    assert_eq!(names(&folder.path().join("s1")), [""; 0], "no file is left");
    for desk in [first, desk(&session("s1"))] {
        let page = desk
            .text("tool_output", json!({ "id": id, "offset": 299_999 }))
            .await;
        assert_eq!(
            page,
            "299999\t299999\n300000\t300000\n[lines 299999-300000 of 300000; this is the end]"
        );
        let found = desk
            .text("tool_output", json!({ "id": other, "pattern": "w" }))
            .await;
        assert_eq!(found, "2: two\n[1 match]");
    }
    match desk(&session("s1"))
        .error("tool_output", json!({ "id": "bash-1" }))
        .await
    {
        ToolError::Permanent(text) => assert!(
            text.ends_with(&format!("\n{other} (grep, 8 B)\n{id} (bash, 1.9 MB)")),
            "{text}"
        ),
        error => panic!("{error:?}"),
    }
    match desk(&session("s2"))
        .error("tool_output", json!({ "id": id }))
        .await
    {
        ToolError::Permanent(text) => assert!(text.contains("None was kept"), "{text}"),
        error => panic!("{error:?}"),
    }
}

/// TOOL-3: an output that the blob store refuses stays a file and can be read.
#[tokio::test]
async fn refused_outputs_stay_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = Arc::new(MemoryBlobs {
        refuses: true,
        ..MemoryBlobs::default()
    });
    let place = folder.path().join("s1");
    let store = Arc::new(OutputStore::new(place.clone()).in_blobs(blobs, "s1".into()));
    let desk = desk(&store);
    let output = desk
        .call("bash", json!({ "command": "seq 1 300000" }))
        .await
        .expect("an answer");
    let id = output.kept.expect("kept").id;
    let other = keep(&store, "grep", "one\n").await.expect("kept");
    assert_eq!(names(&place).len(), 2);
    for (id, text) in [(id, "     1\t1\n"), (other, "     1\tone\n")] {
        let page = desk.text("tool_output", json!({ "id": id, "limit": 1 })).await;
        assert!(page.starts_with(text), "{page}");
    }
}

/// TOOL-9, CTX-11: the output of a background command is read while it runs, and is a blob once it has ended.
#[tokio::test]
async fn a_job_leaves_a_blob() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = Arc::new(MemoryBlobs::default());
    let place = folder.path().join("s1");
    let store = Arc::new(OutputStore::new(place.clone()).in_blobs(Arc::clone(&blobs) as _, "s1".into()));
    let desk = desk(&store);
    let command = "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo ended";
    let started = desk
        .call("bash", json!({ "command": command, "background": true }))
        .await
        .expect("a job");
    assert!(started.content.contains("job-1"), "{}", started.content);
    crate::desk::until("a file", || names(&place).len() == 1).await;
    let id = names(&place).remove(0);
    let text = |id: String| desk.text("tool_output", json!({ "id": id }));
    assert_eq!(
        text(id.clone()).await,
        "     1\tbegun\n[lines 1-1 of 1; this is the end]"
    );
    desk.put("go", "");
    crate::desk::until("a blob", || {
        blobs.names() == [id.clone()] && names(&place).is_empty()
    })
    .await;
    assert_eq!(
        text(id).await,
        "     1\tbegun\n     2\tended\n[lines 1-2 of 2; this is the end]"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// TOOL-3: whatever a command writes and however much memory holds, the file is exactly its output.
    #[test]
    fn the_file_is_the_output(words in prop::collection::vec("[a-zäö€🦀\n]{0,60}", 1..40), memory in 10_usize..400) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (folder, store) = store();
        let desk = Desk::with(&ToolsConfig {
            outputs: Some(store),
            max_command_output: memory,
            ..ToolsConfig::default()
        });
        let whole = words.concat();
        desk.put("whole", &whole);
        let output = runtime.block_on(desk.call("bash", json!({ "command": "cat whole" }))).expect("an answer");
        let truncated = output.details.expect("details")["truncated"] == true;
        prop_assert_eq!(output.kept.is_some(), truncated);
        if let Some(kept) = output.kept {
            let file = folder.path().join("state/outputs/s1").join(kept.id);
            prop_assert_eq!(fs::read_to_string(file).expect("a file"), whole);
        }
    }
}
