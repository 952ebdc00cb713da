//! SAFE-2: commands on the list of blocked commands, and whether a person may allow them.

use windlass_core::permission;
use windlass_core::tool::{Category, Judgement};
use windlass_sandbox::{Location, Workspace};
use windlass_shell::{Analysis, ListedCommand, Target};

/// Adds the decision about listed commands to a judgement: refused if they aim outside the workspace, and
/// otherwise left to a person.
pub(super) fn judge(workspace: &Workspace, analysis: &Analysis, judgement: &mut Judgement) {
    judgement.category = Category::Admin;
    let Some(refusal) = judgement.refusal.take() else {
        return;
    };
    let mut is_undoable = true;
    for blocked in &analysis.blocked {
        match aim(workspace, analysis, blocked) {
            Aim::Outside(path) => {
                judgement.refusal = Some(format!("{refusal} It aims outside the workspace: `{path}`."));
                return;
            }
            Aim::Elsewhere => is_undoable = false,
            Aim::Workspace => is_undoable &= blocked.entry == "rm",
        }
        let reason = format!("`{}` is on your list security.blocked_commands", blocked.entry);
        if !judgement.reasons.contains(&reason) {
            judgement.reasons.push(reason);
        }
    }
    judgement.blocked = Some(permission::Blocked { refusal, is_undoable });
}

/// Location of the files that a listed command acts on.
enum Aim {
    /// All of them are in the workspace.
    Workspace,
    /// In another writable folder, or only known at run time.
    Elsewhere,
    /// One is outside.
    Outside(String),
}

fn aim(workspace: &Workspace, analysis: &Analysis, blocked: &ListedCommand) -> Aim {
    let mut aim = Aim::Workspace;
    let mut folders = vec!["."];
    for folder in &analysis.folders {
        match folder {
            Some(folder) => folders.push(folder),
            None => aim = Aim::Elsewhere,
        }
    }
    let mut paths = Vec::new();
    for target in &blocked.targets {
        match target {
            Target::Path(path) => paths.push(path.clone()),
            Target::Unknown => {
                aim = Aim::Elsewhere;
                paths.extend(analysis.mentioned_paths());
            }
        }
    }
    for path in paths {
        for folder in &folders {
            match workspace.location(folder, &path) {
                Location::Workspace => {}
                Location::Writable => aim = Aim::Elsewhere,
                Location::Outside => return Aim::Outside(path),
            }
        }
    }
    aim
}
