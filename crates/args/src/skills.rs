//! Arguments of `windlass skills` and `windlass plugins`.

use std::path::PathBuf;

use clap::Subcommand;

pub(super) const SKILLS_HELP: &str = "\
Skills are folders with a SKILL.md file, in .windlass/skills, .agents/skills or .claude/skills of
the project and of your home folder. A model loads one with the skill tool; you start one with
/NAME in a session.

Examples:
  windlass skills list
  windlass skills new release-notes
  windlass skills check .agents/skills/release-notes";

pub(super) const PLUGINS_HELP: &str = "\
A plugin brings skills, commands, agent types, hooks and MCP servers. It is copied when it is
added, and has no effect until you enable it.

Examples:
  windlass plugins add ./my-plugin
  windlass plugins add https://example.com/tools.git --commit 3f2a9c1
  windlass plugins show tools
  windlass plugins enable tools --yes
  windlass plugins update tools";

#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills of this folder, where each comes from, and the mistakes in them
    List,
    /// Check skills: one folder or SKILL.md file, or all of this folder; the exit code is 1 if one cannot be used
    Check {
        /// Folder of a skill, or its SKILL.md
        path: Option<PathBuf>,
    },
    /// Create a skill with a SKILL.md to fill in, in .agents/skills of this folder
    New {
        /// Name: small letters, digits and hyphens
        name: String,
        /// Create it in your home folder, for every project
        #[arg(long)]
        user: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum PluginsCommand {
    /// Copy a plugin from a folder or a git URL, and list everything it brings; it is not enabled yet
    Add {
        /// Folder of the plugin, or git URL
        source: String,
        /// Commit of the git URL; the newest one if it is not given
        #[arg(long)]
        commit: Option<String>,
    },
    /// List the installed plugins
    List,
    /// List everything a plugin brings, and files that changed since it was enabled
    Show {
        /// Name of the plugin
        name: String,
    },
    /// List everything a plugin brings, and enable it with --yes
    Enable {
        /// Name of the plugin
        name: String,
        /// Enable it
        #[arg(long)]
        yes: bool,
    },
    /// Disable a plugin; its files stay
    Disable {
        /// Name of the plugin
        name: String,
    },
    /// Show the changes at the source of a plugin as a diff, and take them over with --yes
    Update {
        /// Name of the plugin
        name: String,
        /// Commit of the git URL; the newest one if it is not given
        #[arg(long)]
        commit: Option<String>,
        /// Take the changes over; an enabled plugin stays enabled
        #[arg(long)]
        yes: bool,
    },
    /// Remove a plugin and its files
    Remove {
        /// Name of the plugin
        name: String,
    },
}
