use super::*;
use windlass_core::permission::Mode;
use windlass_service::AgentTools;

fn check(file: &str, text: &str) -> (Option<AgentType>, Vec<String>) {
    let mut found = Found::default();
    found.add(Path::new(file), Ok(text.into()));
    (found.types.pop(), found.warnings)
}

/// SUB-1, SUB-7: a file has every key of a type; the rest of it is the prompt.
#[test]
fn files_are_read() {
    let (kind, warnings) = check(
        "agents/reviewer.md",
        "---\nname: careful\ndescription: Reviews a\n  change\ntools: [grep, Read]\ndisallowed_tools: bash\nmodel: sim/x\n\
         max_turns: 7\nmax_cost: 0.5\nisolation: worktree\nbackground: true\npermission_mode: plan\ncolor: red\n---\nReview it.\n",
    );
    let kind = kind.unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(
        (kind.name.as_str(), kind.description.as_str()),
        ("careful", "Reviews a change")
    );
    assert_eq!(kind.prompt, "Review it.");
    assert_eq!(
        kind.tools,
        AgentTools::Named(vec!["grep".into(), "read_file".into()])
    );
    assert_eq!(kind.disallowed_tools, ["bash"]);
    assert_eq!(
        (kind.model.name.as_deref(), kind.max_turns, kind.max_cost_usd),
        (Some("sim/x"), 7, Some(0.5))
    );
    assert!(kind.isolated && kind.background);
    assert_eq!(kind.mode, Some(Mode::Plan));
}

/// SUB-7: files of Claude Code, OpenCode and Codex are understood.
#[test]
fn files_of_other_agents_are_read() {
    let claude = "---\nname: tester\ndescription: Tests\ntools: Read, Bash\nmodel: sonnet\npermissionMode: acceptEdits\nmaxTurns: 3\n---\nTest it.";
    let (kind, warnings) = check(".claude/agents/tester.md", claude);
    let kind = kind.unwrap();
    assert_eq!((warnings, kind.model.name, kind.max_turns), (Vec::new(), None, 3));
    assert_eq!(
        kind.tools,
        AgentTools::Named(vec!["read_file".into(), "bash".into()])
    );
    assert_eq!(kind.mode, Some(Mode::Edits));
    let open = "---\ndescription: Docs\nmode: subagent\ntools:\n  write: false\n  bash: false\ntemperature: 0.1\n---\nWrite docs.";
    let (kind, warnings) = check(".opencode/agent/docs.md", open);
    let kind = kind.unwrap();
    assert_eq!((warnings, kind.name.as_str()), (Vec::new(), "docs"));
    assert_eq!(
        (kind.tools, kind.disallowed_tools),
        (AgentTools::All, vec!["write_file".into(), "bash".into()])
    );
    let primary = "---\nmode: primary\n---\nBuild.";
    assert_eq!(check(".opencode/agent/build.md", primary), (None, Vec::new()));
    let codex = "name = \"auditor\"\ndescription = \"Audits\"\ndeveloper_instructions = \"Audit it.\"\nsandbox_mode = \"read-only\"\n";
    let (kind, warnings) = check(".codex/agents/a.toml", codex);
    let kind = kind.unwrap();
    assert_eq!(
        (warnings, kind.name.as_str(), kind.prompt.as_str()),
        (Vec::new(), "auditor", "Audit it.")
    );
    assert_eq!((kind.mode, kind.tools), (Some(Mode::Plan), AgentTools::ReadOnly));
}

/// SUB-7: an unknown key is reported with file and line, and does no harm; a wrong value disables the file.
#[test]
fn mistakes_are_named() {
    let (kind, warnings) = check("a.md", "---\nname: a\ntolls: grep\nskills: x\n---\nDo it.");
    assert!(kind.is_some());
    assert_eq!(
        warnings,
        [
            "a.md:3: unknown key `tolls`; did you mean `tools`?",
            "a.md:4: `skills` has no effect on agents here"
        ]
    );
    for (text, why) in [
        (
            "---\nname: a b\n---\nx",
            "a.md:2: `name` is `a b`, expected a name",
        ),
        (
            "---\nmax_turns: 0\n---\nx",
            "a.md:2: `max_turns` is `0`, expected a number from 1",
        ),
        (
            "---\ntools: 3\n---\nx",
            "a.md:2: `tools` is `3`, expected a list of tools",
        ),
        ("---\nisolation: maybe\n---\nx", "expected one of worktree, none"),
        ("---\npermission_mode: yolo\n---\nx", "`yolo` is not a mode"),
        (
            "---\nname: a\n",
            "a.md:1: the line `---` that ends its head is missing",
        ),
        ("---\nname: [\n---\nx", "not valid YAML"),
        ("---\nname: a\n---\n\n", "there are no instructions"),
    ] {
        let (kind, warnings) = check("a.md", text);
        assert!(kind.is_none(), "{text}");
        assert!(
            warnings.iter().any(|warning| warning.contains(why)),
            "{text}: {warnings:?}"
        );
    }
}
