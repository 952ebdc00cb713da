//! The folder of a plugin: Agent Plugins 1.0 (`plugin.json`) and the layout of Claude Code
//! (`.claude-plugin/plugin.json`).

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Keys of an Agent Plugins manifest.
const KEYS: [&str; 10] = [
    "$schema",
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "extensions",
];
/// Maximum size of a manifest, in bytes.
const LARGEST: u64 = 256 * 1024;
/// Maximum number of files of one kind.
const MOST: usize = 500;

/// The layout of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginLayout {
    /// Agent Plugins 1.0.
    AgentPlugins,
    /// Claude Code.
    Claude,
}

impl PluginLayout {
    /// Returns the name of the layout.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgentPlugins => "Agent Plugins 1.0",
            Self::Claude => "Claude Code",
        }
    }
}

/// A plugin and everything it brings. Paths are absolute, and inside the plugin with every link followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Name of the plugin.
    pub name: String,
    /// Version, as its author wrote it.
    pub version: Option<String>,
    /// Purpose of the plugin.
    pub description: String,
    /// Layout of its folder.
    pub layout: PluginLayout,
    /// Folder of the plugin.
    pub root: PathBuf,
    /// Folders with a SKILL.md.
    pub skills: Vec<PathBuf>,
    /// Markdown files with commands.
    pub commands: Vec<PathBuf>,
    /// Markdown files with types of sub-agents.
    pub agents: Vec<PathBuf>,
    /// File with hooks.
    pub hooks_file: Option<PathBuf>,
    /// File with MCP servers.
    pub mcp_file: Option<PathBuf>,
    /// Notes for the user about parts that are not used.
    pub problems: Vec<String>,
}

/// Returns true if a name follows the specification of Agent Plugins.
pub fn is_plugin_name(name: &str) -> bool {
    let fits =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '.' | '-');
    let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    (1..=64).contains(&name.len())
        && name.chars().all(fits)
        && ends(name.chars().next())
        && ends(name.chars().next_back())
        && !name.contains("--")
        && !name.contains("..")
}

/// Reads the folder of a plugin.
///
/// # Errors
/// Fails with the file and the reason if it is no plugin, or its manifest is not valid.
pub fn read_plugin(root: &Path) -> Result<Plugin, String> {
    let root = root
        .canonicalize()
        .map_err(|error| format!("{}: {error}", root.display()))?;
    let own = root.join("plugin.json");
    let claude = root.join(".claude-plugin/plugin.json");
    let (file, layout) = match (own.is_file(), claude.is_file()) {
        (true, _) => (own, PluginLayout::AgentPlugins),
        (false, true) => (claude, PluginLayout::Claude),
        (false, false) => {
            return Err(format!(
                "{}: no plugin: there is neither plugin.json nor .claude-plugin/plugin.json",
                root.display()
            ));
        }
    };
    let manifest = manifest(&file)?;
    let wrong = |key: &str, expected: &str| format!("{}: `{key}` must be {expected}", file.display());
    let text = |key: &str| match manifest.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(key, "a text")),
    };
    let name = text("name")?.ok_or_else(|| wrong("name", "given"))?;
    if !is_plugin_name(&name) {
        let rule =
            "1 to 64 of a-z, 0-9, `.` and `-`, with a letter or digit at both ends and no `--` or `..`";
        return Err(wrong("name", rule));
    }
    let mut plugin = Plugin {
        version: text("version")?,
        description: text("description")?.unwrap_or_default(),
        name,
        layout,
        root,
        skills: Vec::new(),
        commands: Vec::new(),
        agents: Vec::new(),
        hooks_file: None,
        mcp_file: None,
        problems: Vec::new(),
    };
    match layout {
        PluginLayout::AgentPlugins => plugin.agent_plugins(&manifest, &file),
        PluginLayout::Claude => plugin.claude(&manifest, &file),
    }
    Ok(plugin)
}

fn manifest(file: &Path) -> Result<Map<String, Value>, String> {
    let shown = file.display();
    let data = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
    if !data.is_file() {
        return Err(format!("{shown}: not a regular file"));
    }
    if data.len() > LARGEST {
        return Err(format!("{shown}: larger than {} KB", LARGEST / 1024));
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| format!("{shown}:{}: not valid JSON: {error}", error.line()))?;
    match value {
        Value::Object(manifest) => Ok(manifest),
        _ => Err(format!("{shown}: must be a JSON object")),
    }
}

impl Plugin {
    fn agent_plugins(&mut self, manifest: &Map<String, Value>, file: &Path) {
        for key in manifest.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.problems
                .push(format!("{}: unknown key `{key}`; ignored", file.display()));
        }
        self.skills = self.skill_folders("skills");
        self.mcp_file = self.inside(Path::new("mcp.json")).filter(|file| file.is_file());
    }

    fn claude(&mut self, manifest: &Map<String, Value>, file: &Path) {
        self.skills = self.skill_folders("skills");
        for named in self.named(manifest, "skills", file) {
            let more = match self.root.join(&named).join("SKILL.md").is_file() {
                true => self.inside(Path::new(&named)).into_iter().collect(),
                false => self.skill_folders(&named),
            };
            self.skills.extend(more);
        }
        self.skills.dedup();
        for (key, folder) in [("commands", "commands"), ("agents", "agents")] {
            let mut files = self.markdown(folder);
            for named in self.named(manifest, key, file) {
                match self.inside(Path::new(&named)) {
                    Some(path) if path.is_file() => files.push(path),
                    Some(_) => files.extend(self.markdown(&named)),
                    None => {}
                }
            }
            files.sort();
            files.dedup();
            match key {
                "commands" => self.commands = files,
                _ => self.agents = files,
            }
        }
        let hooks = self.named(manifest, "hooks", file).into_iter().next();
        let hooks = hooks.unwrap_or_else(|| "hooks/hooks.json".to_owned());
        self.hooks_file = self.inside(Path::new(&hooks)).filter(|file| file.is_file());
        let servers = self.named(manifest, "mcpServers", file).into_iter().next();
        let servers = servers.unwrap_or_else(|| ".mcp.json".to_owned());
        self.mcp_file = self.inside(Path::new(&servers)).filter(|file| file.is_file());
    }

    /// Returns the paths that a key of the manifest names.
    fn named(&mut self, manifest: &Map<String, Value>, key: &str, file: &Path) -> Vec<String> {
        match manifest.get(key) {
            None => Vec::new(),
            Some(Value::String(path)) => vec![path.clone()],
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            Some(_) => {
                let text = format!(
                    "{}: `{key}` must be a path; what it contains is not used",
                    file.display()
                );
                self.problems.push(text);
                Vec::new()
            }
        }
    }

    /// Returns a path of the plugin with every link followed; `None` if it does not exist, or leaves the plugin.
    fn inside(&mut self, path: &Path) -> Option<PathBuf> {
        let real = self.root.join(path).canonicalize().ok()?;
        if !real.starts_with(&self.root) {
            self.problems.push(format!(
                "{}: leads out of the plugin, and is not used",
                path.display()
            ));
            return None;
        }
        Some(real)
    }

    /// Returns the folders with a SKILL.md directly below a folder.
    fn skill_folders(&mut self, folder: &str) -> Vec<PathBuf> {
        let mut found = self.entries(folder);
        found.retain(|path| path.join("SKILL.md").is_file());
        found
    }

    fn markdown(&mut self, folder: &str) -> Vec<PathBuf> {
        let mut found = self.entries(folder);
        found.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "md"));
        found
    }

    fn entries(&mut self, folder: &str) -> Vec<PathBuf> {
        let Some(folder) = self.inside(Path::new(folder)) else {
            return Vec::new();
        };
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.take(MOST).map(|entry| entry.path()).collect();
        paths.sort();
        paths.into_iter().filter_map(|path| self.inside(&path)).collect()
    }

    /// Lists everything the plugin brings, one line each, with paths relative to it.
    pub fn inventory(&self) -> Vec<String> {
        let inside = |path: &Path| {
            path.strip_prefix(&self.root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        let stem = |path: &Path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let mut lines = Vec::new();
        for folder in &self.skills {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            lines.push(format!("skill    /{}:{name}  {}", self.name, inside(folder)));
        }
        for file in &self.commands {
            lines.push(format!(
                "command  /{}:{}  {}",
                self.name,
                stem(file),
                inside(file)
            ));
        }
        for file in &self.agents {
            lines.push(format!("agent    {}  {}", stem(file), inside(file)));
        }
        if let Some(file) = &self.hooks_file {
            lines.push(format!("hooks    {}", inside(file)));
            lines.extend(hook_lines(file));
        }
        if let Some(file) = &self.mcp_file {
            lines.push(format!("servers  {}", inside(file)));
            lines.extend(server_lines(file));
        }
        lines
    }
}

/// Lists the commands of a file with hooks.
fn hook_lines(file: &Path) -> Vec<String> {
    let manifest = match manifest(file) {
        Ok(manifest) => manifest,
        Err(why) => return vec![format!("         {why}")],
    };
    let events = manifest
        .get("hooks")
        .and_then(Value::as_object)
        .unwrap_or(&manifest);
    let mut lines = Vec::new();
    for (event, groups) in events {
        let groups = groups.as_array().into_iter().flatten();
        let handlers = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        for handler in handlers.take(MOST) {
            let kind = handler["type"].as_str().unwrap_or("command");
            let what = ["command", "url", "tool", "prompt"]
                .iter()
                .find_map(|key| handler[*key].as_str());
            lines.push(format!("         {event}: {kind} {}", what.unwrap_or_default()));
        }
    }
    lines
}

/// Lists the servers of a file with MCP servers.
fn server_lines(file: &Path) -> Vec<String> {
    let manifest = match manifest(file) {
        Ok(manifest) => manifest,
        Err(why) => return vec![format!("         {why}")],
    };
    let servers = manifest
        .get("mcpServers")
        .and_then(Value::as_object)
        .unwrap_or(&manifest);
    let line = |(name, server): (&String, &Value)| {
        let arguments = server["args"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let words: Vec<&str> = server["command"]
            .as_str()
            .or(server["url"].as_str())
            .into_iter()
            .chain(arguments)
            .collect();
        format!("         {name}: {}", words.join(" "))
    };
    servers
        .iter()
        .filter(|(name, _)| *name != "$schema")
        .map(line)
        .take(MOST)
        .collect()
}
