//! The demo: a small project with a bug, and a script that finds and fixes it.

use serde_json::json;

use crate::script::{OnEnd, Reply, Script, When};

/// The demo project, as paths and contents.
///
/// `sh test.sh` fails because `average` in `src/stats.sh` divides by `(count - 1)`. [`demo_script`] replaces
/// the line `echo $((total / (count - 1)))` with `echo $((total / count))`, after which `sh test.sh` prints a
/// line that starts with `PASS`. Both files need only a POSIX shell.
pub const DEMO_FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../demo/README.md")),
    ("src/stats.sh", include_str!("../demo/src/stats.sh")),
    ("test.sh", include_str!("../demo/test.sh")),
];

/// The line with the bug.
const WRONG: &str = "echo $((total / (count - 1)))";
/// The fixed line.
const RIGHT: &str = "echo $((total / count))";

/// A scripted session on the demo project.
///
/// Every step depends on the actual tool results: if a result is not the expected one, the script reports it
/// and stops instead of continuing regardless.
#[must_use]
pub fn demo_script() -> Script {
    let after = |tool: &str, text: &str| When::new().last_tool(tool).last_result_contains(text);
    Script::new()
        .model("sim-1")
        .on_end(OnEnd::Rules)
        .reply(
            step("list_directory", json!({"path": "."}))
                .say("[simulated model] I will look around first.")
                .when(When::new().has_tool("list_directory")),
        )
        .reply(
            step("bash", json!({"command": "sh test.sh"}))
                .say("There is a test. I will run it.")
                .when(after("list_directory", "test.sh")),
        )
        .reply(
            step("read_file", json!({"path": "src/stats.sh"}))
                .say("`average` gives wrong numbers. I will read it.")
                .when(after("bash", "FAIL: average")),
        )
        .reply(
            step(
                "edit_file",
                json!({"path": "src/stats.sh", "old_string": WRONG, "new_string": RIGHT}),
            )
            .thinking("The mean divides by the count, not by the count minus one.")
            .say("`average` divides by `count - 1`. I will fix that line.")
            .when(after("read_file", "count - 1")),
        )
        .reply(
            step("bash", json!({"command": "sh test.sh"}))
                .say("Now the test again.")
                .when(When::new().last_tool("edit_file")),
        )
        .reply(
            Reply::text(
                "[simulated model] Fixed: `average` in `src/stats.sh` divided by `count - 1` instead of `count`. \
                 All checks pass now:\n\n{{last_result}}",
            )
            .when(after("bash", "PASS")),
        )
        .reply(
            Reply::text(
                "[simulated model] This did not go as planned. The last result was:\n\n{{last_result}}",
            )
            .forever(),
        )
}

fn step(tool: &str, args: serde_json::Value) -> Reply {
    Reply::call(tool, args).delta_chars(12)
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
