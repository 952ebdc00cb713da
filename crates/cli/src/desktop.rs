//! Services of the user's machine for the terminal UI: files to mention, images, an editor, and stored
//! choices.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::process::Command;
use windlass_core::log::Preferences;
use windlass_tui::{Desktop, Image};

use crate::{editor, file_walk};
use windlass_config::environment;
use windlass_config::private_file::PrivateFile;
use windlass_host::compat::media_type;

/// Maximum number of files offered for completion.
const MAX_FILES: usize = 50_000;
/// Maximum size of an image in a message, in bytes.
const MAX_IMAGE: u64 = 10 << 20;
/// Maximum number of inputs in the history.
const MAX_HISTORY: usize = 1_000;
/// Maximum number of bytes of history that are read; a longer file is cut to its end.
const MAX_HISTORY_BYTES: u64 = 4 << 20;
/// Maximum length of an input that is stored in the history.
const MAX_REMEMBERED: usize = 10_000;
/// Timeout of a program that reads the clipboard.
const CLIPBOARD_LIMIT: Duration = Duration::from_secs(5);

/// Programs that print the image in the clipboard, if they are installed.
const CLIPBOARDS: &[&[&str]] = &[
    &["wl-paste", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
    &["pngpaste", "-"],
];

/// Scope under which choices of the terminal UI are stored.
const SCOPE: &str = "tui";

/// The user's machine.
pub(crate) struct Machine {
    history: Arc<PrivateFile>,
    /// True if inputs are stored for later runs.
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

    /// Stops storing inputs, for a session that is not saved. Earlier inputs stay available.
    pub(crate) fn without_memory(self) -> Self {
        Self {
            remembers: false,
            ..self
        }
    }

    /// Returns earlier inputs, oldest first. A history that cannot be read does not prevent the start.
    pub(crate) fn history(&self) -> Vec<String> {
        let (kept, is_long) = self.history_end().unwrap_or_default();
        if is_long {
            // If this fails, the next start reads no more than this one did.
            let _ = self.shorten();
        }
        kept
    }

    /// Returns the latest inputs, and whether the file has grown longer than necessary.
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

    /// Returns the complete lines at the end of the history, and whether earlier lines exist.
    fn end_of_file(&self) -> std::io::Result<(Vec<u8>, bool)> {
        let mut file = std::fs::File::open(self.history.path())?;
        let size = file.metadata()?.len();
        let is_long = size > MAX_HISTORY_BYTES;
        let mut bytes = Vec::new();
        if is_long {
            // Start one byte earlier, so that a line which starts exactly here is recognized as complete.
            file.seek(SeekFrom::Start(size - MAX_HISTORY_BYTES - 1))?;
        }
        file.take(MAX_HISTORY_BYTES + 1).read_to_end(&mut bytes)?;
        if is_long {
            let cut = bytes.iter().position(|byte| *byte == b'\n');
            bytes.drain(..cut.map_or(bytes.len(), |cut| cut + 1));
        }
        Ok((bytes, is_long))
    }

    /// Cuts a long history to its end. Reads it again first, because another process may have added to it.
    fn shorten(&self) -> std::io::Result<()> {
        let held = self.history.hold()?;
        let (kept, _) = self.history_end()?;
        let lines = kept.iter().filter_map(|said| serde_json::to_string(said).ok());
        held.write(&lines.map(|line| line + "\n").collect::<String>())
    }

    /// Returns the last choice stored under a name.
    pub(crate) async fn chosen(&self, name: &str) -> Option<String> {
        self.preferences.preference(SCOPE, name).await.ok().flatten()
    }
}

#[async_trait]
impl Desktop for Machine {
    async fn files(&self, place: &str, outside: Option<&str>) -> Vec<String> {
        let root = PathBuf::from(place);
        if let Some(folder) = outside {
            let (folder, home) = (folder.to_owned(), environment::var("HOME"));
            let list = move || entries(&root, &folder, home.as_deref());
            return tokio::task::spawn_blocking(list).await.unwrap_or_default();
        }
        let walk = move || {
            let files = file_walk::shown(&root);
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
        let read = path.clone();
        let data = tokio::task::spawn_blocking(move || windlass_sandbox::read_regular(&read, MAX_IMAGE));
        let data = data.await.ok()?.ok()?;
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
            "There is no image in the clipboard, or no program to read it: install wl-clipboard or xclip, \
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
                "the editor `{editor}` failed ({status}); your text is unchanged. Set VISUAL or EDITOR to a different editor"
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
        // The write runs in the background, and a history that cannot be stored is no reason to stop.
        std::thread::spawn(move || history.hold()?.append(&format!("{line}\n")));
    }

    fn choose(&self, name: &str, value: &str) {
        let preferences = Arc::clone(&self.preferences);
        let (name, value) = (name.to_owned(), value.to_owned());
        tokio::spawn(async move { preferences.set_preference(SCOPE, &name, Some(&value)).await });
    }
}

/// Returns the entries of a folder, as paths that start as they were typed; folders end with a slash.
fn entries(place: &Path, typed: &str, home: Option<&str>) -> Vec<String> {
    let typed = if typed.ends_with('/') {
        typed.to_owned()
    } else {
        format!("{typed}/")
    };
    let folder = match (typed.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => place.join(&typed),
    };
    let Ok(found) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let name = |entry: std::fs::DirEntry| {
        let end = if entry.path().is_dir() { "/" } else { "" };
        format!("{typed}{}{end}", entry.file_name().to_string_lossy())
    };
    let mut names: Vec<String> = found.flatten().take(MAX_FILES).map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
#[path = "desktop_tests.rs"]
mod tests;
