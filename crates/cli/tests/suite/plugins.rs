//! Plugins through the binary.

use std::fs;
use std::path::Path;
use std::process::Command;

use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{with_replies, workspace};

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Writes a plugin in the layout of Claude Code.
fn claude(workspace: &Workspace) {
    workspace.write(
        "p/.claude-plugin/plugin.json",
        "{\"name\": \"kit\", \"version\": \"1.2\"}",
    );
    workspace.write(
        "p/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF.\n---\nThe first text.\n",
    );
    workspace.write("p/commands/ship.md", "Ship $1 now.\n");
    workspace.write(
        "p/agents/critic.md",
        "---\nname: critic\ndescription: Criticizes.\n---\nFind faults.\n",
    );
    workspace.write(
        "p/hooks/hooks.json",
        "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"check.sh\"}]}]}}",
    );
    workspace.write(
        "p/.mcp.json",
        "{\"mcpServers\": {\"db\": {\"command\": \"db-server\", \"args\": [\"--x\"]}}}",
    );
}

/// SKILL-3: everything a plugin brings is listed before it is enabled, and it has no effect until then.
#[test]
fn plugins_are_listed_before_they_are_enabled() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("a"), Reply::text("b")]);
    claude(&workspace);
    let added = run(&workspace, &["plugins", "add", "p"]);
    added.assert_code(0);
    for part in [
        "kit 1.2 (Claude Code), disabled",
        "skill    /kit:pdf",
        "command  /kit:ship",
        "agent    critic",
        "PreToolUse: command check.sh",
        "db: db-server --x",
        "6 files",
    ] {
        assert!(added.stdout.contains(part), "{part} is missing\n{added}");
    }
    run(&workspace, &["exec", "/kit:ship it"]).assert_code(2);
    run(&workspace, &["plugins", "enable", "kit"])
        .assert_code(1)
        .assert_says("not enabled yet");
    run(&workspace, &["plugins", "enable", "kit", "--yes"]).assert_code(0);
    run(&workspace, &["exec", "/kit:ship it"]).assert_code(0);
    let request = sim.requests()[0].seen.clone();
    assert!(
        request.system.contains("- kit:pdf: Reads PDF."),
        "{}",
        request.system
    );
    assert!(
        request.last_user_text().unwrap().ends_with("Ship it now.\n")
            || request.last_user_text().unwrap().contains("Ship it now.")
    );
    let agents = String::from_utf8_lossy(&sim.requests()[0].raw).into_owned();
    assert!(agents.contains("critic"), "the type of agent is missing");
    run(&workspace, &["exec", "/kit:pdf"]).assert_code(0);
    let raw = String::from_utf8_lossy(&sim.requests()[1].raw).into_owned();
    assert!(raw.contains("The first text."), "{raw}");
    run(&workspace, &["plugins", "disable", "kit"]).assert_code(0);
    run(&workspace, &["exec", "/kit:pdf"]).assert_code(2);
    run(&workspace, &["plugins", "remove", "kit"]).assert_code(0);
    let list = run(&workspace, &["plugins", "list"]);
    assert!(list.stdout.contains("No plugins are installed"), "{list}");
}

/// SKILL-3: changed files take a plugin out of effect until they are confirmed, and updates are shown as a diff first.
#[test]
fn changes_of_plugins_are_confirmed() {
    let workspace = workspace();
    claude(&workspace);
    run(&workspace, &["plugins", "add", "p"]).assert_code(0);
    run(&workspace, &["plugins", "enable", "kit", "--yes"]).assert_code(0);
    let is_listed = || run(&workspace, &["skills", "list"]).stdout.contains("kit:pdf ");
    assert!(is_listed());
    let own = workspace.home().join("data/plugins/kit/skills/pdf/SKILL.md");
    let before = fs::read_to_string(&own).unwrap();
    fs::write(&own, format!("{before}Also steal.\n")).unwrap();
    assert!(!is_listed());
    let list = run(&workspace, &["plugins", "list"]);
    assert!(list.stdout.contains("changed: not used"), "{list}");
    let show = run(&workspace, &["plugins", "show", "kit"]);
    assert!(show.stdout.contains("changed skills/pdf/SKILL.md"), "{show}");
    run(&workspace, &["plugins", "enable", "kit", "--yes"]).assert_code(0);
    assert!(is_listed());

    workspace.write(
        "p/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF.\n---\nThe second text.\n",
    );
    workspace.write("p/commands/new.md", "New.\n");
    let update = run(&workspace, &["plugins", "update", "kit"]);
    update.assert_code(1).assert_says("not updated yet");
    for part in [
        "added commands/new.md",
        "  +New.",
        "changed skills/pdf/SKILL.md",
        "  -The first text.",
        "  +The second text.",
    ] {
        assert!(update.stdout.contains(part), "{part} is missing\n{update}");
    }
    assert!(fs::read_to_string(&own).unwrap().contains("first"));
    run(&workspace, &["plugins", "update", "kit", "--yes"]).assert_code(0);
    assert!(fs::read_to_string(&own).unwrap().contains("second") && is_listed());
    let again = run(&workspace, &["plugins", "update", "kit"]);
    assert!(again.assert_code(0).stdout.contains("up to date"), "{again}");
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// SKILL-3: a plugin from a git URL is pinned to a commit; Agent Plugins 1.0 are read as well.
#[test]
fn plugins_from_git_are_pinned() {
    let workspace = workspace();
    workspace.write(
        "g/plugin.json",
        "{\"name\": \"tools\", \"version\": \"1.0.0\", \"odd\": 1}",
    );
    workspace.write(
        "g/skills/fmt/SKILL.md",
        "---\nname: fmt\ndescription: Formats.\n---\none\n",
    );
    workspace.write("g/mcp.json", "{\"mcpServers\": {}}");
    let folder = workspace.path().join("g");
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "--quiet", "-m", "one"]);
    let first = git(&folder, &["rev-parse", "HEAD"]);
    workspace.write(
        "g/skills/fmt/SKILL.md",
        "---\nname: fmt\ndescription: Formats.\n---\ntwo\n",
    );
    git(&folder, &["commit", "--quiet", "-am", "two"]);
    let url = format!("file://{}", folder.display());
    let added = run(&workspace, &["plugins", "add", &url, "--commit", &first]);
    added.assert_code(0);
    assert!(
        added.stdout.contains("Agent Plugins 1.0") && added.stdout.contains(&first),
        "{added}"
    );
    assert!(added.stdout.contains("unknown key `odd`"), "{added}");
    let own = workspace.home().join("data/plugins/tools/skills/fmt/SKILL.md");
    assert!(fs::read_to_string(&own).unwrap().contains("one"));
    assert!(!workspace.home().join("data/plugins/tools/.git").exists());
    let update = run(&workspace, &["plugins", "update", "tools"]);
    assert!(update.assert_code(1).stdout.contains("  +two"), "{update}");
    run(&workspace, &["plugins", "update", "tools", "--yes"]).assert_code(0);
    assert!(fs::read_to_string(&own).unwrap().contains("two"));
}

/// SKILL-3: invalid plugins are refused with file and reason.
#[test]
fn bad_plugins_are_refused() {
    let workspace = workspace();
    for (manifest, why) in [
        ("{", "plugin.json:1: not valid JSON"),
        ("{}", "`name` must be given"),
        ("{\"name\": \"../x\"}", "`name` must be 1 to 64"),
        ("{\"name\": 7}", "`name` must be a text"),
        ("[]", "must be a JSON object"),
    ] {
        workspace.write("b/plugin.json", manifest);
        run(&workspace, &["plugins", "add", "b"])
            .assert_code(1)
            .assert_says(why);
    }
    run(&workspace, &["plugins", "add", "none"])
        .assert_code(1)
        .assert_says("none");
    run(&workspace, &["plugins", "enable", "nothing"])
        .assert_code(1)
        .assert_says("none is installed");
    workspace.write("b/plugin.json", "{\"name\": \"b\"}");
    run(&workspace, &["plugins", "add", "file:///nowhere/at/all.git"])
        .assert_code(1)
        .assert_says("git clone");
    run(&workspace, &["plugins", "add", "b", "--commit", "1234567"])
        .assert_code(1)
        .assert_says("is for git URLs");
}

/// SKILL-3, MCP-1: a server that a plugin brings is connected once the plugin is enabled, from the plugin's folder
/// and with a folder for its data.
#[test]
fn servers_of_a_plugin_are_connected() {
    let replies = [
        Reply::call("mcp__kit-db__write", serde_json::json!({ "text": "x" })),
        Reply::text("done"),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    claude(&workspace);
    workspace.write("p/server.py", include_str!("mcp_server.py"));
    workspace.write(
        "p/.mcp.json",
        "{\"mcpServers\": {\"kit-db\": {\"command\": \"python3\", \"args\": [\"${CLAUDE_PLUGIN_ROOT}/server.py\"], \
         \"cwd\": \"${CLAUDE_PLUGIN_DATA}\"}}}",
    );
    let own = "[security]\nallow = [\"mcp__*\"]\n[mcp]\nstartup_wait_secs = 60\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, own);
    run(&workspace, &["plugins", "add", "p"]).assert_code(0);
    let listed = run(&workspace, &["mcp", "list"]);
    assert!(!listed.assert_code(0).stdout.contains("kit-db"), "{listed}");
    run(&workspace, &["plugins", "enable", "kit", "--yes"]).assert_code(0);
    let listed = run(&workspace, &["mcp", "list"]);
    assert!(
        listed.assert_code(0).stdout.contains("kit-db  [plugin]"),
        "{listed}"
    );
    let output = workspace
        .run(&["exec", "go"])
        .limit(windlass_testkit::PATIENCE)
        .output();
    output.assert_code(0);
    assert_eq!(super::support::results(&sim), ["echo: x"], "{output}");
    assert!(!workspace.has("effect"), "{output}");
}
