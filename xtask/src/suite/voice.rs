//! Voice input with a synthesized voice and a real recognizer, both from packages in an environment of their own.

use anyhow::Result;

use super::sdk;
use crate::child;
use crate::repo::Root;

const REQUIREMENTS: &str = "tests/voice/requirements.txt";
const TEST: &str = "tests/voice/test_voice.py";

/// Builds the binary and speaks to it.
pub(super) fn test(root: &Root) -> Result<()> {
    let python = sdk::environment_of(root, "voice-venv", REQUIREMENTS)?;
    child::run(child::cargo(root).args(super::BUILD))?;
    child::run(
        child::command(root, python)
            .arg(root.join(TEST))
            .env("WINDLASS_BIN", root.target_dir()?.join("debug/windlass"))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}
