//! A text in the person's own editor.

use std::process::ExitStatus;

use tokio::process::Command;

use windlass_config::environment;

/// The editor that the person has chosen.
pub(crate) fn chosen() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(environment::var)
}

/// Has somebody change a text in an editor. `Err` within is an editor that ended as failed: nothing is to be done then.
pub(crate) async fn edit(editor: &str, text: &str) -> std::io::Result<Result<String, ExitStatus>> {
    let file = tempfile::Builder::new()
        .prefix("windlass-")
        .suffix(".md")
        .tempfile()?;
    std::fs::write(file.path(), text)?;
    // An editor may come with arguments, as in `code --wait`; a shell knows how to read that.
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
