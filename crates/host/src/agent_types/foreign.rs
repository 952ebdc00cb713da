//! Names that other agents use for tools and models.

/// Tools of Claude Code and OpenCode, in lower case, and ours.
const TOOLS: &[(&str, &str)] = &[
    ("read", "read_file"),
    ("write", "write_file"),
    ("edit", "edit_file"),
    ("multiedit", "edit_file"),
    ("patch", "apply_patch"),
    ("ls", "list_directory"),
    ("list", "list_directory"),
    ("webfetch", "fetch"),
    ("websearch", "web_search"),
    ("todowrite", "todo"),
    ("task", "agent"),
    ("shell", "bash"),
];

/// Words for the reasoning effort, and ours. Other agents have further grades.
pub(crate) const EFFORTS: [(&str, &str); 8] = [
    ("off", "off"),
    ("low", "low"),
    ("medium", "medium"),
    ("high", "high"),
    ("none", "off"),
    ("minimal", "low"),
    ("xhigh", "high"),
    ("max", "high"),
];

/// Returns our name of a tool. A name that only differs in case is ours.
pub(crate) fn tool(name: &str) -> String {
    let plain = name.trim().to_lowercase();
    let known = TOOLS.iter().find(|(other, _)| *other == plain);
    known.map_or(plain.clone(), |(_, own)| (*own).to_owned())
}

/// Returns a model, unless the name is one that only Claude Code understands: those mean the parent's model.
pub(crate) fn model(name: &str) -> Option<String> {
    let is_alias = ["inherit", "sonnet", "opus", "haiku", "default"].contains(&name);
    (!is_alias && !name.is_empty()).then(|| name.to_owned())
}
