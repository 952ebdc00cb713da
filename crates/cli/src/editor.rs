//! Editing a text in the user's editor.

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::process::ExitStatus;

use tokio::process::Command;

use windlass_config::environment;

/// Returns the editor that the user has configured.
pub(crate) fn chosen() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(environment::var)
}

/// Lets the user edit a text. The inner `Err` is the exit status of an editor that failed; the text must not
/// be used then.
pub(crate) async fn edit(editor: &str, text: &str) -> std::io::Result<Result<String, ExitStatus>> {
    let folder = environment::folders().map_err(|problem| std::io::Error::other(problem.message))?;
    let folder = folder.ephemeral();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let mut file = tempfile::Builder::new()
        .prefix("windlass-")
        .suffix(".md")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    // An editor may come with arguments, as in `code --wait`, which a shell knows how to split.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .status()
        .await?;
    if !status.success() {
        return Ok(Err(status));
    }
    std::fs::read_to_string(file.path()).map(Ok)
}
