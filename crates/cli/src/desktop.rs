//! What the person's machine offers the terminal UI: files to mention, images, an editor, and a memory.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::process::Command;
use windlass_core::log::Preferences;
use windlass_tui::{Desktop, Image};

use crate::editor;
use windlass_config::environment;
use windlass_config::private_file::PrivateFile;

/// How many files are offered at most.
const MAX_FILES: usize = 50_000;
/// The largest image that goes with a message.
const MAX_IMAGE: u64 = 10 << 20;
/// How many inputs are remembered.
const MAX_HISTORY: usize = 1_000;
/// The largest history that is read; a longer one is begun anew with its end.
const MAX_HISTORY_BYTES: u64 = 4 << 20;
/// The longest input that is remembered.
const MAX_REMEMBERED: usize = 10_000;
/// How long a program that reads the clipboard may take.
const CLIPBOARD_LIMIT: Duration = Duration::from_secs(5);

/// Programs that print the image of the clipboard, where they are there.
const CLIPBOARDS: &[&[&str]] = &[
    &["wl-paste", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
    &["pngpaste", "-"],
];

/// The name that choices of the terminal UI are kept under.
const SCOPE: &str = "tui";

/// This machine.
pub(crate) struct Machine {
    history: Arc<PrivateFile>,
    /// Whether what is sent is kept for later starts.
    remembers: bool,
    preferences: Arc<dyn Preferences>,
}

impl Machine {
    pub(crate) fn new(data: &Path, preferences: Arc<dyn Preferences>) -> Self {
        Self {
            history: Arc::new(PrivateFile::new(data.join("history.jsonl"))),
            remembers: true,
            preferences,
        }
    }

    /// Keeps nothing of what is sent, for a session of which nothing is kept. What was sent before is still there.
    pub(crate) fn without_memory(self) -> Self {
        Self {
            remembers: false,
            ..self
        }
    }

    /// What was sent before, the oldest first. What cannot be read is no reason not to start.
    pub(crate) fn history(&self) -> Vec<String> {
        let (kept, is_long) = self.history_end().unwrap_or_default();
        if is_long {
            // One that stays long is read in the same time.
            let _ = self.shorten();
        }
        kept
    }

    /// What was sent last, and whether the file has become longer than it needs to be.
    fn history_end(&self) -> std::io::Result<(Vec<String>, bool)> {
        let (bytes, is_long) = self.end_of_file()?;
        let all: Vec<String> = bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let skip = all.len().saturating_sub(MAX_HISTORY);
        Ok((
            all.into_iter().skip(skip).collect(),
            is_long || skip > MAX_HISTORY,
        ))
    }

    /// The whole lines at the end of the history, and whether others are before them.
    fn end_of_file(&self) -> std::io::Result<(Vec<u8>, bool)> {
        let mut file = std::fs::File::open(self.history.path())?;
        let size = file.metadata()?.len();
        let is_long = size > MAX_HISTORY_BYTES;
        let mut bytes = Vec::new();
        if is_long {
            // From the byte before, so that a line which begins there is seen to be whole.
            file.seek(SeekFrom::Start(size - MAX_HISTORY_BYTES - 1))?;
        }
        file.take(MAX_HISTORY_BYTES + 1).read_to_end(&mut bytes)?;
        if is_long {
            let cut = bytes.iter().position(|byte| *byte == b'\n');
            bytes.drain(..cut.map_or(bytes.len(), |cut| cut + 1));
        }
        Ok((bytes, is_long))
    }

    /// Keeps the end of a history that has become long. Another process may have added to it since it was read.
    fn shorten(&self) -> std::io::Result<()> {
        let held = self.history.hold()?;
        let (kept, _) = self.history_end()?;
        let lines = kept.iter().filter_map(|said| serde_json::to_string(said).ok());
        held.write(&lines.map(|line| line + "\n").collect::<String>())
    }

    /// What was chosen last.
    pub(crate) async fn chosen(&self, name: &str) -> Option<String> {
        self.preferences.preference(SCOPE, name).await.ok().flatten()
    }
}

#[async_trait]
impl Desktop for Machine {
    async fn files(&self, place: &str) -> Vec<String> {
        let root = PathBuf::from(place);
        let walk = move || {
            let files = ignore::WalkBuilder::new(&root).hidden(true).build();
            let mut names: Vec<String> = files
                .filter_map(Result::ok)
                .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
                .take(MAX_FILES)
                .filter_map(|entry| Some(entry.path().strip_prefix(&root).ok()?.display().to_string()))
                .collect();
            names.sort();
            names
        };
        tokio::task::spawn_blocking(walk).await.unwrap_or_default()
    }

    async fn image(&self, path: &str) -> Option<Image> {
        let path = match (path.strip_prefix("~/"), environment::var("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => PathBuf::from(path),
        };
        let metadata = tokio::fs::metadata(&path).await.ok()?;
        if !metadata.is_file() || metadata.len() > MAX_IMAGE {
            return None;
        }
        let data = tokio::fs::read(&path).await.ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(Image {
            media_type: media_type(&data)?.to_owned(),
            name,
            data: data.into(),
        })
    }

    async fn clipboard_image(&self) -> Result<Image, String> {
        for words in CLIPBOARDS {
            let Some((program, arguments)) = words.split_first() else {
                continue;
            };
            let mut command = Command::new(program);
            command
                .args(arguments)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true);
            let output = match tokio::time::timeout(CLIPBOARD_LIMIT, command.output()).await {
                Ok(Ok(output)) if output.status.success() => output,
                _ => continue,
            };
            let data = output.stdout;
            if let Some(media_type) = media_type(&data)
                && data.len() as u64 <= MAX_IMAGE
            {
                return Ok(Image {
                    name: "clipboard".to_owned(),
                    media_type: media_type.to_owned(),
                    data: data.into(),
                });
            }
        }
        Err(
            "There is no image in the clipboard, or no program to read it with: install wl-clipboard or xclip, \
             or drop an image file on the terminal."
                .to_owned(),
        )
    }

    async fn edit(&self, text: &str) -> Result<String, String> {
        let editor = editor::chosen().unwrap_or_else(|| "vi".to_owned());
        let edited = editor::edit(&editor, text).await;
        let edited = edited.map_err(|error| format!("{editor}: {error}"))?;
        edited.map_err(|status| {
            format!(
                "the editor `{editor}` failed ({status}): what was written stays as it was; set VISUAL or EDITOR to another one"
            )
        })
    }

    fn remember(&self, said: &str) {
        if !self.remembers || said.len() > MAX_REMEMBERED {
            return;
        }
        let Ok(line) = serde_json::to_string(said) else {
            return;
        };
        let history = Arc::clone(&self.history);
        // Nobody waits for it, and a history that cannot be kept is no reason to stop.
        std::thread::spawn(move || history.hold()?.append(&format!("{line}\n")));
    }

    fn choose(&self, name: &str, value: &str) {
        let preferences = Arc::clone(&self.preferences);
        let (name, value) = (name.to_owned(), value.to_owned());
        tokio::spawn(async move { preferences.set_preference(SCOPE, &name, Some(&value)).await });
    }
}

/// What kind of image this is, by its first bytes.
fn media_type(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::clock::SystemClock;
    use windlass_testkit::at_once;

    fn machine(folder: &Path) -> Machine {
        let store = windlass_store::open(folder.join("test.db"), Arc::new(SystemClock::default())).unwrap();
        Machine::new(folder, store)
    }

    /// UI-2: what was sent is remembered for later sessions, for this user alone.
    #[tokio::test]
    async fn what_was_sent_is_remembered() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        assert_eq!(machine.history(), Vec::<String>::new());
        machine.remember("first\nsecond line");
        let found = || machine.history() == ["first\nsecond line"];
        assert!(windlass_testkit::eventually(windlass_testkit::PATIENCE, found));
        let mode = std::fs::metadata(folder.path().join("history.jsonl"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        machine.remember(&"x".repeat(MAX_REMEMBERED + 1));
        machine.choose("theme", "dark");
        for _ in 0..1_000 {
            if machine.chosen("theme").await.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(machine.chosen("theme").await.as_deref(), Some("dark"));
    }

    /// UI-2: of a history that has become long, however long, the end is remembered, in whole lines, and the file is short
    /// again.
    #[tokio::test]
    async fn a_long_history_keeps_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let path = folder.path().join("history.jsonl");
        let long = "x".repeat(5_000);
        for count in [900_u32, 4_000] {
            let lines = (0..count).map(|number| format!("\"{number} {long}\"\n"));
            std::fs::write(&path, lines.collect::<String>()).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() > MAX_HISTORY_BYTES);
            let history = machine.history();
            assert_eq!(history.last(), Some(&format!("{} {long}", count - 1)));
            assert!((800..=MAX_HISTORY).contains(&history.len()), "{}", history.len());
            assert!(std::fs::metadata(&path).unwrap().len() <= MAX_HISTORY_BYTES);
            assert_eq!(machine.history(), history);
        }
    }

    /// UI-2: what is sent while another start makes the history short again is remembered.
    #[tokio::test]
    async fn nothing_sent_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let line = format!("\"{}\"\n", "x".repeat(5_000));
        std::fs::write(folder.path().join("history.jsonl"), line.repeat(900)).unwrap();
        at_once(8, |number| {
            if number % 2 == 0 {
                machine.remember(&number.to_string());
            } else {
                machine.shorten().unwrap();
            }
        });
        let kept = || {
            let history = machine.history();
            ["0", "2", "4", "6"]
                .iter()
                .all(|said| history.iter().any(|line| line == said))
        };
        assert!(windlass_testkit::eventually(windlass_testkit::PATIENCE, kept));
    }

    /// UI-2: only what is an image counts as one, whatever it is called.
    #[tokio::test]
    async fn images_are_known_by_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("real.png"), [0x89, b'P', b'N', b'G', 1, 2]).unwrap();
        std::fs::write(path("fake.png"), "text").unwrap();
        let image = machine.image(&path("real.png")).await.unwrap();
        assert_eq!(
            (image.name.as_str(), image.media_type.as_str()),
            ("real.png", "image/png")
        );
        assert_eq!(machine.image(&path("fake.png")).await, None);
        assert_eq!(machine.image(&path("none.png")).await, None);
    }

    /// UI-2: the files of a folder are offered, those that version control ignores are not.
    #[tokio::test]
    async fn ignored_files_are_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        let machine = machine(folder.path());
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        for name in ["src/main.rs", "notes.txt", "big.log", ".gitignore"] {
            std::fs::write(root.join(name), "*.log\n").unwrap();
        }
        let files = machine.files(&root.display().to_string()).await;
        assert_eq!(files, ["notes.txt", "src/main.rs"]);
    }
}
