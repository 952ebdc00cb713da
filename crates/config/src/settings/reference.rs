//! The table of keys as text: the reference, and the output of `windlass config explain`.

use super::keys::{self, Key, Place, SECTIONS, Section};
use super::suggest::{self, Found};

/// CFG-3: explains a key or section. The error names the nearest key.
pub fn explain(name: &str) -> Result<String, String> {
    let name = name.trim();
    if let Some(key) = keys::all().find(|key| key.name == name || key.env_name().as_deref() == Some(name)) {
        return Ok(explain_key(key));
    }
    if let Some(section) = SECTIONS
        .iter()
        .find(|section| section.name == name && !name.is_empty())
    {
        return Ok(explain_section(section));
    }
    let path: Vec<String> = match toml_edit::Key::parse(name) {
        Ok(parts) => parts.iter().map(|part| part.get().to_owned()).collect(),
        Err(_) => vec![name.to_owned()],
    };
    match keys::find(&path) {
        Place::Key(key) => Ok(explain_key(key)),
        Place::Section => Ok(format!("{name}: its keys are {}\n", suggest::children(&path))),
        Place::Unknown => Err(format!("{name}: {}", suggest::unknown(&path, Found::Value))),
    }
}

/// CFG-1: generates `docs/config.md`.
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for section in SECTIONS {
        let title = if section.name.is_empty() {
            "Top level"
        } else {
            section.name
        };
        page.push_str(&format!("\n## {title}\n\n{}\n", section.help));
        for key in section.keys {
            page.push_str(&format!(
                "\n### `{}`\n\n{} {}\n\n{}\n",
                key.name,
                key.help,
                key.effect,
                facts(key)
            ));
        }
    }
    page.push_str(&format!(
        "\n## Example\n\nEvery key once:\n\n```toml\n{}```\n",
        example()
    ));
    page
}

/// Returns a file that sets every key.
pub(super) fn example() -> String {
    let mut text = String::new();
    let mut table = String::new();
    for key in keys::all() {
        let name = example_name(key);
        let (header, leaf) = name.rsplit_once('.').unwrap_or(("", name.as_str()));
        if header != table {
            text.push_str(&format!("\n[{header}]\n"));
            header.clone_into(&mut table);
        }
        text.push_str(&format!("{leaf} = {}\n", key.example));
    }
    text
}

const INTRODUCTION: &str = "\
# Settings

Settings come from five layers; later layers override earlier ones:

1. defaults
2. your file: `config.toml` in `$WINDLASS_HOME/config`, otherwise in `$XDG_CONFIG_HOME/windlass`, otherwise in
   `~/.config/windlass`
3. the project's file: `.windlass/config.toml` in the current folder or the nearest parent that has one, never from
   outside the repository, and only in a folder that you [trust](trust.md)
4. environment variables: `WINDLASS_` followed by the key in capitals, with `_` for `.`; an empty variable counts as
   unset
5. flags: `-c key=value`, and dedicated flags for common keys

`windlass config show --origin` prints the settings in effect and where each one comes from, and
`windlass config explain <key>` explains a key. If a file contains a mistake, Windlass does not start and reports the
file, line, column and the nearest valid key.

A project's file is written by the authors of the repository. It has no effect until you trust the folder with
`windlass trust`, and loses its effect when it changes. Even then, it may set only the keys marked below; other keys are
ignored with a warning, so that a repository cannot send your API keys to its own server, run a command or widen
permissions.

API keys never belong in a settings file. Each provider reads its usual environment variable, such as
`ANTHROPIC_API_KEY`; `key_env` names a different variable, and `key_command` a command that prints the key.

Editors that support JSON Schema can check the file with [config.schema.json](config.schema.json).

This page is generated from the table of keys.
";

fn explain_key(key: &Key) -> String {
    format!("{}\n\n{}\n{}\n\n{}\n", key.name, key.help, key.effect, facts(key))
}

fn explain_section(section: &Section) -> String {
    let mut text = format!("{}\n\n{}\n\n", section.name, section.help);
    for key in section.keys {
        text.push_str(&format!("- {}: {}\n", key.name, key.help));
    }
    text
}

/// Lists type, default, variable, example, and whether a project may set the key.
fn facts(key: &Key) -> String {
    let default = key
        .kind
        .default()
        .map_or_else(|| "unset".to_owned(), |value| format!("`{value}`"));
    let mut facts = vec![
        format!("- type: {}", key.kind.described()),
        format!("- default: {default}"),
    ];
    if let Some(name) = key.env_name() {
        facts.push(format!("- environment: `{name}`"));
    }
    facts.push(format!("- example: `{} = {}`", example_name(key), key.example));
    let project = if key.project_ok {
        "may set it"
    } else {
        "may not set it"
    };
    facts.push(format!("- a project {project}"));
    facts.join("\n")
}

/// Returns the key with example names in place of its patterns.
fn example_name(key: &Key) -> String {
    let part = |part: &'static str| match part {
        "<name>" => "my-server",
        "<id>" => "\"qwen3.5-coder\"",
        "<header>" => "X-Team",
        "<variable>" => "GITHUB_TOKEN",
        "<field>" => "Authorization",
        "<action>" => "transcript",
        part => part,
    };
    key.parts().map(part).collect::<Vec<_>>().join(".")
}
