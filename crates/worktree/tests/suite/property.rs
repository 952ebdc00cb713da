//! SUB-6: random edits on both sides.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use windlass_worktree::{ConflictReason, OnConflict};

use crate::lab::{Lab, contents, write};

const FILES: [&str; 5] = ["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt", "e.txt"];
const LINES: usize = 6;

#[derive(Debug, Clone)]
enum Edit {
    /// Replaces a line with one that occurs nowhere else.
    Line(usize, usize),
    Append(usize),
    Delete(usize),
    /// Creates or overwrites a file.
    Write(usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let file = 0..FILES.len();
    let edit = prop_oneof![
        4 => (file.clone(), 0..LINES).prop_map(|(file, line)| Edit::Line(file, line)),
        1 => file.clone().prop_map(Edit::Append),
        1 => file.clone().prop_map(Edit::Delete),
        1 => file.prop_map(Edit::Write),
    ];
    proptest::collection::vec(edit, 0..5)
}

/// Makes the edits, and returns the lines that they added to files that still exist.
fn make(folder: &std::path::Path, side: &str, edits: &[Edit]) -> BTreeMap<PathBuf, Vec<String>> {
    let mut added: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for (number, edit) in edits.iter().enumerate() {
        let new = format!("{side} {number}");
        let (Edit::Line(file, _) | Edit::Append(file) | Edit::Delete(file) | Edit::Write(file)) = edit;
        let name = FILES[*file];
        let path = folder.join(name);
        let text = fs::read_to_string(&path).ok();
        let mut lines: Vec<String> = text
            .iter()
            .flat_map(|text| text.lines())
            .map(str::to_owned)
            .collect();
        match edit {
            Edit::Delete(_) => {
                let _ = fs::remove_file(&path);
                continue;
            }
            Edit::Line(_, line) => match lines.get_mut(*line) {
                Some(line) => *line = new,
                None => continue,
            },
            Edit::Append(_) if text.is_none() => continue,
            Edit::Append(_) => lines.push(new),
            Edit::Write(_) => lines = vec![new],
        }
        write(folder, name, &(lines.join("\n") + "\n"));
    }
    for name in FILES {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        let own = text
            .lines()
            .filter(|line| line.starts_with(side))
            .map(str::to_owned);
        added.insert(name.into(), own.collect());
    }
    added
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// A clean merge has the lines of both sides, a conflict loses no line of either, and creating the worktree
    /// does not change the repository.
    #[test]
    fn both_sides_survive(
        is_repository in any::<bool>(),
        before in edits(),
        ours in edits(),
        theirs in edits(),
        is_marked in any::<bool>(),
    ) {
        let lab = if is_repository { Lab::unborn() } else { Lab::plain() };
        for name in &FILES[..4] {
            let lines: String = (0..LINES).map(|line| format!("{name} {line}\n")).collect();
            lab.write(name, &lines);
        }
        if is_repository {
            lab.commit();
        }
        make(&lab.project, "before", &before);
        let status = is_repository.then(|| lab.repository_state());
        let worktree = lab.create();
        prop_assert_eq!(status, is_repository.then(|| lab.repository_state()));
        prop_assert_eq!(contents(worktree.folder()), contents(&lab.project));

        let our_lines = make(&lab.project, "ours", &ours);
        let their_lines = make(worktree.folder(), "theirs", &theirs);
        let our_files = contents(&lab.project);
        let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
        let on_conflict = if is_marked { OnConflict::Mark } else { OnConflict::Keep };
        let planned = plan.paths(on_conflict);
        let outcome = plan.apply(on_conflict, &lab.cancel).unwrap();
        prop_assert_eq!(&outcome.changed, &planned);
        prop_assert!(outcome.left.is_empty());

        for name in FILES {
            let path = PathBuf::from(name);
            let text = fs::read_to_string(lab.project.join(name)).unwrap_or_default();
            let has = |lines: &BTreeMap<PathBuf, Vec<String>>| {
                lines[&path].iter().all(|line| text.lines().any(|found| found == line))
            };
            let conflict = plan.conflicts.iter().find(|conflict| conflict.path == path);
            // A deletion on the other side is the only way for an edited line to disappear, and is a conflict.
            prop_assert!(has(&our_lines), "{name} {text}");
            match conflict {
                None => prop_assert!(has(&their_lines), "{name} {text}"),
                Some(conflict) if is_marked && conflict.reason == ConflictReason::Lines => {
                    prop_assert!(has(&their_lines), "{name} {text}");
                }
                Some(_) => {
                    let state = contents(&lab.project).get(&path).cloned();
                    prop_assert_eq!(state.as_ref(), our_files.get(&path));
                    // The worktree still has the other version.
                    let kept = fs::read_to_string(worktree.folder().join(name)).unwrap_or_default();
                    prop_assert!(their_lines[&path].iter().all(|line| kept.contains(line)));
                }
            }
        }
        worktree.remove(&lab.cancel).unwrap();
        lab.assert_clean();
    }
}
