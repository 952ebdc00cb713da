//! What the machine in front of the person has to offer. A front end that only sees the backend asks for it here.

use async_trait::async_trait;

/// Files, clipboard, editor and memory of the person's machine.
#[async_trait]
pub trait Desktop: Send + Sync {
    /// The files of a folder that are worth mentioning, as paths from there. Ignored ones are left out; a long list ends
    /// somewhere.
    async fn files(&self, place: &str) -> Vec<String>;

    /// The image at a path; `None` when there is none.
    async fn image(&self, path: &str) -> Option<Image>;

    /// The image in the clipboard.
    ///
    /// # Errors
    /// Says, for people, why there is none.
    async fn clipboard_image(&self) -> Result<Image, String>;

    /// Has the person change a text in their own editor. The terminal is the editor's meanwhile.
    ///
    /// # Errors
    /// Says, for people, why that did not work.
    async fn edit(&self, text: &str) -> Result<String, String>;

    /// Keeps what was sent, for the history of later sessions. Must not wait for the disk.
    fn remember(&self, said: &str);

    /// Keeps a choice, such as the theme, for later starts. Must not wait for the disk.
    fn choose(&self, name: &str, value: &str);
}

/// A picture to go with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What it is called.
    pub name: String,
    /// As in `image/png`.
    pub media_type: String,
    /// The file.
    pub data: std::sync::Arc<[u8]>,
}
