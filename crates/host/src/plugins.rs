//! SKILL-3: installed plugins.
//!
//! A plugin is copied into the user's data folder and listed in `plugins.json` with a hash of every file. It has no
//! effect until the user enables it, and none while its files differ from those that were enabled.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windlass_api::CommandSource;
use windlass_config::folders::Folders;
use windlass_sandbox::{read_regular, sha256_hex};
use windlass_service::{Defined, DefinedCommand};
use windlass_skills::plugin::{Plugin, read_plugin};

use crate::command_files;
use crate::skill_copy::{TreeFile, read_tree};

/// Maximum size of the list of plugins, in bytes.
const LARGEST_LIST: u64 = 16 << 20;

/// A plugin in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPlugin {
    /// Name of the plugin.
    pub name: String,
    /// Folder or git URL that it came from.
    pub source: String,
    /// Commit of a git URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if it is to have an effect.
    pub enabled: bool,
    /// Hash of each file.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct PluginList {
    plugins: Vec<InstalledPlugin>,
}

/// A plugin in effect. Files of hooks and servers are read by their own subsystems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnabledPlugin {
    /// Name of the plugin.
    pub name: String,
    /// Folder of the plugin, for `${CLAUDE_PLUGIN_ROOT}` and `${PLUGIN_ROOT}`.
    pub root: PathBuf,
    /// Folder that the plugin may keep data in, for `${CLAUDE_PLUGIN_DATA}` and `${PLUGIN_DATA}`. Need not exist.
    pub data: PathBuf,
    /// File with hooks, in the format of Claude Code.
    pub hooks_file: Option<PathBuf>,
    /// File with `mcpServers`.
    pub mcp_file: Option<PathBuf>,
    /// Folders with a SKILL.md.
    pub skills: Vec<PathBuf>,
    /// Markdown files with commands.
    pub commands: Vec<PathBuf>,
    /// Markdown files with types of sub-agents.
    pub agents: Vec<PathBuf>,
}

/// The plugins in effect, and warnings about others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnabledPlugins {
    /// The plugins.
    pub plugins: Vec<EnabledPlugin>,
    /// Reasons why an enabled plugin is not in effect.
    pub warnings: Vec<String>,
}

/// Returns the plugins in effect: enabled, with the files that were enabled.
pub fn enabled(folders: &Folders) -> EnabledPlugins {
    let mut found = EnabledPlugins::default();
    let list = match read_list(folders) {
        Ok(list) => list,
        Err(why) => {
            found.warnings.push(why);
            return found;
        }
    };
    for plugin in list.into_iter().filter(|plugin| plugin.enabled) {
        match usable(folders, &plugin) {
            Ok(plugin) => found.plugins.push(plugin),
            Err(why) => found.warnings.push(why),
        }
    }
    found
}

fn usable(folders: &Folders, installed: &InstalledPlugin) -> Result<EnabledPlugin, String> {
    let name = &installed.name;
    let changed = changed_files(folders, installed)?;
    if let Some(first) = changed.first() {
        return Err(format!(
            "plugin {name}: not in effect, because its files changed ({first}); `windlass plugins show {name}` lists them, \
             `windlass plugins enable {name}` confirms them"
        ));
    }
    let plugin = read_plugin(&place(folders, name))?;
    Ok(EnabledPlugin {
        data: folders.state.join("plugin-data").join(name),
        name: plugin.name,
        root: plugin.root,
        hooks_file: plugin.hooks_file,
        mcp_file: plugin.mcp_file,
        skills: plugin.skills,
        commands: plugin.commands,
        agents: plugin.agents,
    })
}

/// Copies the files of a plugin below `folder`, where its confined servers can read them. Returns the folder of the copy,
/// which is made once for each state of the files.
pub(crate) fn copy_for_servers(plugin: &EnabledPlugin, folder: &Path) -> Result<PathBuf, String> {
    let files = tree(&plugin.root)?;
    let digest = sha256_hex(format!("{:?}", hashes(&files)).as_bytes());
    let target = folder.join(format!(
        "{}-{}",
        plugin.name,
        digest.get(..16).unwrap_or_default()
    ));
    if target.is_dir() {
        return Ok(target);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let draft = tempfile::tempdir_in(folder).map_err(failed)?;
    for file in &files {
        write_file(&draft.path().join("new").join(&file.path), file).map_err(failed)?;
    }
    match std::fs::rename(draft.path().join("new"), &target) {
        // Another session was faster.
        Err(_) if target.is_dir() => Ok(target),
        renamed => renamed.map(|()| target).map_err(failed),
    }
}

/// Returns the commands of plugins in effect.
pub(crate) fn commands(plugins: &EnabledPlugins) -> Vec<DefinedCommand> {
    let mut defined = Defined::default();
    for plugin in &plugins.plugins {
        for file in &plugin.commands {
            let name = Path::new(&plugin.name).join(file.file_name().unwrap_or_default());
            let bytes = command_files::read_small(file);
            command_files::add(&mut defined, &name, bytes, CommandSource::User, file);
        }
    }
    defined.commands
}

/// Returns the folder of an installed plugin.
pub fn place(folders: &Folders, name: &str) -> PathBuf {
    folders.plugins().join(name)
}

/// Returns the installed plugins.
///
/// # Errors
/// Fails with the file and the reason if the list cannot be read.
pub fn read_list(folders: &Folders) -> Result<Vec<InstalledPlugin>, String> {
    let file = folders.plugins_file();
    let shown = file.display();
    match read_regular(&file, LARGEST_LIST) {
        Ok(bytes) => {
            let list: PluginList = serde_json::from_slice(&bytes)
                .map_err(|error| format!("{shown}:{}: not a list of plugins: {error}", error.line()))?;
            Ok(list.plugins)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Returns an installed plugin.
///
/// # Errors
/// Fails with a message for the user if there is none of that name.
pub fn find(folders: &Folders, name: &str) -> Result<InstalledPlugin, String> {
    let list = read_list(folders)?;
    let names: Vec<&str> = list.iter().map(|plugin| plugin.name.as_str()).collect();
    let known = match names.is_empty() {
        true => "none is installed".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    let found = list.iter().find(|plugin| plugin.name == name).cloned();
    found.ok_or_else(|| format!("there is no plugin `{name}`; {known}"))
}

/// Installs or replaces a plugin with the files of a folder. A new one is not enabled, and one that is replaced is
/// disabled unless `enable` is set.
///
/// # Errors
/// Fails with a message for the user; nothing has changed then.
pub fn install(
    folders: &Folders,
    from: &Path,
    source: &str,
    commit: Option<String>,
    enable: bool,
) -> Result<InstalledPlugin, String> {
    let plugin = read_plugin(from)?;
    let files = tree(&plugin.root)?;
    let parent = folders.plugins();
    let failed = |error: std::io::Error| format!("{}: {error}", parent.display());
    std::fs::create_dir_all(&parent).map_err(failed)?;
    let draft = tempfile::tempdir_in(&parent).map_err(failed)?;
    for file in &files {
        write_file(&draft.path().join("new").join(&file.path), file).map_err(failed)?;
    }
    let installed = InstalledPlugin {
        name: plugin.name.clone(),
        source: source.to_owned(),
        commit,
        enabled: enable,
        files: hashes(&files),
    };
    let target = place(folders, &plugin.name);
    if target.exists() {
        std::fs::rename(&target, draft.path().join("old")).map_err(failed)?;
    }
    std::fs::rename(draft.path().join("new"), &target).map_err(failed)?;
    change(folders, |list| {
        list.retain(|known| known.name != installed.name);
        list.push(installed.clone());
    })?;
    Ok(installed)
}

fn write_file(path: &Path, file: &TreeFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, &file.bytes)?;
    let mode = if file.is_program { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Enables a plugin with its current files, or disables it.
///
/// # Errors
/// Fails with a message for the user.
pub fn set_enabled(folders: &Folders, name: &str, enabled: bool) -> Result<(), String> {
    find(folders, name)?;
    let files = match enabled {
        true => Some(hashes(&tree(&place(folders, name))?)),
        false => None,
    };
    change(folders, |list| {
        for plugin in list.iter_mut().filter(|plugin| plugin.name == name) {
            plugin.enabled = enabled;
            if let Some(files) = &files {
                plugin.files.clone_from(files);
            }
        }
    })
}

/// Removes a plugin and its files.
///
/// # Errors
/// Fails with a message for the user.
pub fn remove(folders: &Folders, name: &str) -> Result<(), String> {
    find(folders, name)?;
    change(folders, |list| list.retain(|plugin| plugin.name != name))?;
    let place = place(folders, name);
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))
}

/// Returns everything an installed plugin brings.
///
/// # Errors
/// Fails with the file and the reason if it is no plugin any more.
pub fn describe(folders: &Folders, name: &str) -> Result<Plugin, String> {
    read_plugin(&place(folders, name))
}

/// Returns the files of an installed plugin that are not as they were, one line each.
///
/// # Errors
/// Fails with the reason if its files cannot be read.
pub fn changed_files(folders: &Folders, installed: &InstalledPlugin) -> Result<Vec<String>, String> {
    let now = hashes(&tree(&place(folders, &installed.name))?);
    Ok(differences(&installed.files, &now))
}

/// Returns the differences between an installed plugin and a folder with its new files: one line for each file, and
/// the changed lines of texts.
///
/// # Errors
/// Fails with the reason if files cannot be read, or the folder has another plugin.
pub fn difference(folders: &Folders, installed: &InstalledPlugin, new: &Path) -> Result<Vec<String>, String> {
    let plugin = read_plugin(new)?;
    if plugin.name != installed.name {
        return Err(format!(
            "{}: this is the plugin `{}` now, not `{}`",
            installed.source, plugin.name, installed.name
        ));
    }
    let (old, new) = (tree(&place(folders, &installed.name))?, tree(&plugin.root)?);
    let mut lines = Vec::new();
    for line in differences(&hashes(&old), &hashes(&new)) {
        let path = line
            .split_once(' ')
            .map(|(_, path)| PathBuf::from(path))
            .unwrap_or_default();
        let text = |files: &[TreeFile]| {
            let file = files.iter().find(|file| file.path == path);
            file.map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
                .unwrap_or_default()
        };
        let (before, after) = (text(&old), text(&new));
        lines.push(line);
        lines.extend(changed_lines(&before, &after));
    }
    Ok(lines)
}

/// Returns the lines between the common start and the common end of two texts.
fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old
        .iter()
        .zip(&new)
        .take_while(|(one, other)| one == other)
        .count();
    let most = old.len().min(new.len()) - start;
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(one, other)| one == other)
        .count();
    let middle = |lines: &[&str], sign: char| -> Vec<String> {
        let lines = lines.get(start..lines.len() - end).unwrap_or_default();
        lines.iter().map(|line| format!("  {sign}{line}")).collect()
    };
    let mut lines = middle(&old, '-');
    lines.extend(middle(&new, '+'));
    lines
}

fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, hash) in new {
        match old.get(path) {
            None => lines.push(format!("added {path}")),
            Some(known) if known != hash => lines.push(format!("changed {path}")),
            Some(_) => {}
        }
    }
    lines.extend(
        old.keys()
            .filter(|path| !new.contains_key(*path))
            .map(|path| format!("removed {path}")),
    );
    lines
}

fn tree(root: &Path) -> Result<Vec<TreeFile>, String> {
    let mut files = Vec::new();
    read_tree(root, root, 0, &mut files)?;
    Ok(files)
}

fn hashes(files: &[TreeFile]) -> BTreeMap<String, String> {
    let hash = |file: &TreeFile| {
        let kind = if file.is_program { "+x " } else { "" };
        (
            file.path.display().to_string(),
            format!("{kind}{}", sha256_hex(&file.bytes)),
        )
    };
    files.iter().map(hash).collect()
}

fn change(folders: &Folders, change: impl FnOnce(&mut Vec<InstalledPlugin>)) -> Result<(), String> {
    let mut plugins = read_list(folders)?;
    change(&mut plugins);
    plugins.sort_by(|one, other| one.name.cmp(&other.name));
    let file = folders.plugins_file();
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    std::fs::create_dir_all(&folders.data).map_err(failed)?;
    let mut draft = tempfile::NamedTempFile::new_in(&folders.data).map_err(failed)?;
    let text = serde_json::to_vec_pretty(&PluginList { plugins }).map_err(std::io::Error::other);
    draft.write_all(&text.map_err(failed)?).map_err(failed)?;
    draft.persist(&file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns the name of the plugin in a folder.
///
/// # Errors
/// Fails with the file and the reason if it is no plugin.
pub fn name_of(folder: &Path) -> Result<String, String> {
    Ok(read_plugin(folder)?.name)
}
