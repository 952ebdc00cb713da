//! Port to the user's machine, for a front end that otherwise sees only the backend.

use async_trait::async_trait;

/// Files, clipboard, editor and persistent choices on the user's machine.
#[async_trait]
pub trait Desktop: Send + Sync {
    /// Lists the files below a folder as relative paths, without ignored files; or, with `outside`, the entries of
    /// the folder that this path names (`/…`, `../…` or `~/…`), as paths that start with it, folders with a slash
    /// at the end. The list is limited in length.
    async fn files(&self, place: &str, outside: Option<&str>) -> Vec<String>;

    /// Reads the image at a path; `None` if there is none.
    async fn image(&self, path: &str) -> Option<Image>;

    /// Reads the image from the clipboard.
    ///
    /// # Errors
    /// Returns a message for the user if there is none.
    async fn clipboard_image(&self) -> Result<Image, String>;

    /// Opens a text in the user's editor and returns the result. The editor owns the terminal meanwhile.
    ///
    /// # Errors
    /// Returns a message for the user if that failed.
    async fn edit(&self, text: &str) -> Result<String, String>;

    /// Adds a sent text to the history of later sessions. Must not wait for the disk.
    fn remember(&self, said: &str);

    /// Stores a choice, such as the theme, for later starts. Must not wait for the disk.
    fn choose(&self, name: &str, value: &str);
}

/// An image attached to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// File name.
    pub name: String,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// File contents.
    pub data: std::sync::Arc<[u8]>,
}
