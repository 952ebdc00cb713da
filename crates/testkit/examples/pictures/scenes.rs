//! Two tasks in a small Rust project whose test fails.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use windlass_sim::{Fault, Reply, Script, When};
use windlass_testkit::{Screen, SimServer, Workspace, eventually};

use crate::svg;

/// Wide enough for the longest line of keys, and no wider: documents show a wide picture small.
const COLUMNS: u16 = 104;
/// More than any scene needs; empty rows are not drawn.
const ROWS: u16 = 60;

const MANIFEST: &str = "\
[package]
name = \"durations\"
version = \"0.1.0\"
edition = \"2024\"
";

const LIBRARY: &str = "\
//! Durations as people write them.

/// The minutes in a text such as `2h 30m`.
pub fn minutes(text: &str) -> Option<u32> {
    let mut total = 0;
    for word in text.split_whitespace() {
        let (number, unit) = word.split_at_checked(word.len() - 1)?;
        let number: u32 = number.parse().ok()?;
        total = match unit {
            \"h\" => number * 60,
            \"m\" => number,
            _ => return None,
        };
    }
    Some(total)
}
";

const WRONG: &str = "total = match unit {";
const RIGHT: &str = "total += match unit {";

const TESTS: &str = "\
use durations::minutes;

#[test]
fn one_part() {
    assert_eq!(minutes(\"45m\"), Some(45));
}

#[test]
fn two_parts() {
    assert_eq!(minutes(\"2h 30m\"), Some(150));
}

#[test]
fn nonsense() {
    assert_eq!(minutes(\"2 weeks\"), None);
}
";

const ANSWER: &str = "\
`minutes` kept only the **last** part of a text: every round of the loop overwrote `total`.

| text | before | now |
|:--|--:|--:|
| `45m` | 45 | 45 |
| `2h 30m` | 30 | 150 |
| `1h 1h 5m` | 5 | 125 |

The line that does it, and all three tests pass:

```rust
total += match unit {
    \"h\" => number * 60,
    \"m\" => number,
    _ => return None,
};
```";

/// A turn from the prompt to the answer.
pub(crate) fn conversation(binary: &Path) -> String {
    let script = Script::new()
        .reply(
            read("tests/minutes.rs")
                .say("I will read the test first, then what it tests.")
                .tokens(4_120, 60)
                .cached_tokens(0, 0),
        )
        .reply(
            read("src/lib.rs")
                .when(after("read_file"))
                .tokens(420, 45)
                .cached_tokens(4_120, 0),
        )
        .reply(
            edit(WRONG, RIGHT)
                .thinking("The loop assigns where it should add.")
                .say("The loop overwrites `total` with every part.")
                .when(after("read_file"))
                .tokens(510, 140)
                .cached_tokens(4_540, 0),
        )
        .reply(
            Reply::call("bash", json!({"command": "cargo test --quiet --test minutes"}))
                .when(after("edit_file"))
                .tokens(640, 60)
                .cached_tokens(5_050, 0),
        )
        .reply(
            Reply::text(ANSWER)
                .when(When::new().last_tool("bash").last_result_contains("3 passed"))
                .tokens(360, 210)
                .cached_tokens(5_690, 0),
        );
    let stage = Stage::new(binary, script, LIBRARY, "");
    let mut screen = stage.screen();
    screen.type_keys("two_parts in @tests/minutes.rs fails. Find out why and fix it.");
    screen.press("enter");
    screen.wait_until("the turn has ended", |text| {
        text.contains("all three tests pass") && !text.contains("esc stops")
    });
    settle(&screen);
    svg::picture(
        &screen.screen(),
        "A conversation with windlass: files are read, a line is changed, the tests pass",
    )
}

/// An approval request before a change, and a message queued meanwhile.
pub(crate) fn approval(binary: &Path) -> String {
    let script = Script::new()
        .reply(
            read("src/lib.rs")
                .say("I will look at the units it knows.")
                .tokens(4_120, 40)
                .cached_tokens(0, 0),
        )
        .reply(
            edit(
                "            \"h\" => number * 60,\n",
                "            \"d\" => number * 60 * 24,\n            \"h\" => number * 60,\n",
            )
            .say("Days go beside hours and minutes.")
            .when(after("read_file"))
            .tokens(420, 120)
            .cached_tokens(4_120, 0)
            // Long enough to type the queued message.
            .fault(Fault::new().delay_ms(1_500)),
        );
    let fixed = LIBRARY.replace(WRONG, RIGHT);
    let stage = Stage::new(
        binary,
        script,
        &fixed,
        "\n[security]\nauto_approve_writes = false\n",
    );
    let mut screen = stage.screen();
    screen.type_keys("Let minutes understand days, too: 1d is 24 hours.");
    screen.press("enter");
    screen.wait_for("src/lib.rs");
    screen.type_keys("Then add a test for it, and run all of them.");
    screen.press("tab");
    screen.wait_for("1 queued");
    screen.wait_for("y  Yes, once");
    svg::picture(
        &screen.screen(),
        "windlass asks before it changes a file, and a message waits for the turn to end",
    )
}

/// The project, the scripted model and the binary.
struct Stage {
    workspace: Workspace,
    _model: SimServer,
}

impl Stage {
    fn new(binary: &Path, script: Script, library: &str, more: &str) -> Self {
        let model = SimServer::script(script);
        let workspace = Workspace::new(binary);
        workspace.write("Cargo.toml", MANIFEST);
        workspace.write("AGENTS.md", "Run `cargo test --quiet` after every change.\n");
        workspace.write(".git/HEAD", "ref: refs/heads/main\n");
        workspace.write("src/lib.rs", library);
        workspace.write("tests/minutes.rs", TESTS);
        workspace.config(&format!(
            "provider = \"sim\"\n\n[providers.sim]\nbase_url = \"{}\"\nmodel = \"sim-1\"\n\n\
             [models.sim-1]\ncontext_window = 32000\nprice = {{ input = 1.0, output = 5.0, cache_read = 0.1 }}\n\n\
             [tui]\ntheme = \"dark\"\n{more}",
            model.url()
        ));
        Self {
            workspace,
            _model: model,
        }
    }

    fn screen(&self) -> Screen {
        // The folder is temporary, and its name must not differ between two pictures.
        let folder = self.workspace.path();
        let home = folder
            .parent()
            .map(|home| home.display().to_string())
            .unwrap_or_default();
        let run = self
            .workspace
            .run(&[])
            .env("PATH", &search_path())
            .env("HOME", &home);
        let mut screen = run.on_screen(COLUMNS, ROWS);
        screen.wait_for("sim/sim-1");
        screen
    }
}

/// Waits until nothing has changed for a while.
fn settle(screen: &Screen) {
    let (mut last, mut looks) = (String::new(), 0);
    eventually(Duration::from_secs(20), || {
        let contents = screen.contents();
        looks = if contents == last { looks + 1 } else { 0 };
        last = contents;
        looks >= 60
    });
}

/// Returns a search path on which the cargo that runs us comes first: the one usually found first depends on
/// the user's home.
fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let cargo = std::env::var("CARGO").unwrap_or_default();
    match Path::new(&cargo).parent() {
        Some(folder) if folder.is_absolute() => format!("{}:{path}", folder.display()),
        _ => path,
    }
}

fn read(path: &str) -> Reply {
    Reply::call("read_file", json!({"path": path}))
}

fn edit(old: &str, new: &str) -> Reply {
    let arguments = json!({"path": "src/lib.rs", "old_string": old, "new_string": new});
    Reply::call("edit_file", arguments)
}

fn after(tool: &str) -> When {
    When::new().last_tool(tool)
}
