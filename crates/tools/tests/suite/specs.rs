//! Size of the tool specifications, which every request carries.

use std::sync::Arc;

use windlass_tools::{OutputStore, ToolsConfig, builtin};

/// TOOL-1: the order is fixed, every tool has a description, and all specifications together stay small.
#[test]
fn specs_are_ordered_and_small() {
    let config = ToolsConfig {
        offer_done: true,
        offer_ask_user: true,
        outputs: Some(Arc::new(OutputStore::new("nowhere".into()))),
        ..ToolsConfig::default()
    };
    let specs = builtin(&config).specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let expected = [
        "bash",
        "bash_job",
        "tool_output",
        "read_file",
        "write_file",
        "edit_file",
        "apply_patch",
        "list_directory",
        "glob",
        "grep",
        "todo",
        "set_working_directory",
        "ask_user",
        "done",
    ];
    assert_eq!(names, expected);
    assert!(builtin(&ToolsConfig::default()).get("done").is_none());
    for spec in &specs {
        assert!(spec.description.len() > 20, "{}", spec.name);
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        assert_eq!(spec.schema["additionalProperties"], false, "{}", spec.name);
    }
    let told = |name: &str| {
        specs
            .iter()
            .find(|spec| spec.name == name)
            .map(|spec| &*spec.description)
    };
    assert!(told("edit_file").is_some_and(|text| text.contains("exactly once")));
    assert!(told("apply_patch").is_some_and(|text| text.contains("*** Begin Patch")));
    let bytes = serde_json::to_string(&specs).expect("JSON").len();
    println!("{bytes} bytes of tool specs");
    assert!(bytes < 8000, "{bytes}");
}
