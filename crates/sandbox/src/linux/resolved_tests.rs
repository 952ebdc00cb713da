use std::os::unix::fs::symlink;

use super::super::placeholders::Placeholders;
use super::*;

fn resolved(policy: SandboxPolicy) -> ResolvedPolicy {
    policy.resolve(true).expect("a policy")
}

/// SAFE-4: denied paths are protected under every spelling: through links, and at the target of a link of
/// that name.
#[test]
fn denied_paths_are_real_ones() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["work", "temp", "keys", "home"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    symlink(root.join("home"), root.join("link")).unwrap();
    symlink(root.join("keys"), root.join("home/.ssh")).unwrap();
    let denied = [root.join("link/.ssh"), root.join("link/.gnupg/absent")];
    let policy = SandboxPolicy::for_workspace(&root.join("work"), &root.join("temp"), &denied);
    let expected = ["home/.gnupg/absent", "home/.ssh", "keys"].map(|name| root.join(name));
    assert_eq!(resolved(policy).denied, expected);
}

#[test]
fn bad_policies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let check = |write: &Path, denied: &Path| {
        let policy = SandboxPolicy::for_workspace(write, &root, &[denied.to_owned()]);
        policy.resolve(true).map(drop).map_err(|error| error.to_string())
    };
    let message = |path: &Path, problem: &str| {
        Err(format!(
            "the path {} of the sandbox policy {problem}",
            path.display()
        ))
    };
    let env = root.join(".env");
    assert_eq!(check(&root, &env), Ok(()));
    assert_eq!(
        check(&root, Path::new(".env")),
        message(Path::new(".env"), "is not absolute")
    );
    assert_eq!(check(&root, &root), message(&root, "is both denied and writable"));
    let absent = root.join("absent");
    assert_eq!(
        check(&absent, &env),
        message(&absent, "is not a folder that exists")
    );
    let lost = root.join("absent/../x");
    assert_eq!(
        check(&root, &lost),
        message(
            &root.join("absent/.."),
            "leads through a folder that does not exist"
        )
    );
}

#[test]
fn a_policy_survives_the_way_to_the_helper() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let before = resolved(SandboxPolicy::for_workspace(
        &root,
        &root,
        &[root.join("a \"b\" \n")],
    ));
    let after = ResolvedPolicy::decode(&before.encode()).unwrap();
    assert_eq!(after.encode(), before.encode());
    for text in ["", "{}", "[]", "{\"read\":[]}"] {
        assert!(
            matches!(ResolvedPolicy::decode(text), Err(SandboxError::Arguments)),
            "{text}"
        );
    }
}

/// SAFE-10: a placeholder that is already there is held again, whether its program was killed or still runs, and
/// nothing of the user is taken for one.
#[test]
fn placeholders_of_others_are_held_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("temp")).unwrap();
    fs::create_dir(root.join("work")).unwrap();
    let names = [".vscode", ".windlass/config.toml", ".claude"];
    let policy = || {
        let mut policy = SandboxPolicy::for_workspace(&root.join("work"), &root.join("temp"), &[]);
        policy.read_only = names.map(|name| root.join("work").join(name)).to_vec();
        resolved(policy)
    };
    let wanted = || -> Vec<PathBuf> { policy().placeholders().map(|(path, _)| path).collect() };
    // The user's own, though it is empty.
    fs::create_dir(root.join("work/.claude")).unwrap();
    let expected = [".vscode", ".windlass"].map(|name| root.join("work").join(name));
    assert_eq!(wanted(), expected);
    let other = Placeholders::default();
    for path in &expected {
        other.hold(path, Placeholder::Folder).unwrap();
    }
    assert_eq!(wanted(), expected);
}
