//! The environment of child processes.

use std::fs;
use std::os::unix::fs::symlink;

use windlass_sandbox::child_environment;

fn environment(parent: &[(&str, &str)], workspace: &str) -> Vec<(String, String)> {
    let parent = parent
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    child_environment(parent, workspace.as_ref(), "s1")
        .into_iter()
        .collect()
}

/// SAFE-1: child processes get an allowlist of variables, and variables that identify Windlass.
#[test]
fn only_named_variables_pass() {
    let parent = [
        ("PATH", "/usr/bin"),
        ("HOME", "/home/ann"),
        ("LANG", "C.UTF-8"),
        ("OPENAI_API_KEY", "secret"),
        ("LD_PRELOAD", "/tmp/x.so"),
        ("BASH_ENV", "/tmp/rc"),
        ("AGENT", "other"),
        ("PAGER", "less"),
        ("path", "/evil"),
    ];
    let version = concat!("windlass@", env!("CARGO_PKG_VERSION"));
    let expected = [
        ("AGENT", "windlass"),
        ("AI_AGENT", version),
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("GIT_EDITOR", "true"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("HOME", "/home/ann"),
        ("LANG", "C.UTF-8"),
        ("PAGER", "cat"),
        ("PATH", "/usr/bin"),
        ("WINDLASS_SESSION", "s1"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(environment(&parent, "/project"), expected);
}

/// SAFE-1: the search path contains no folder that the workspace controls.
#[test]
fn the_search_path_is_cleaned() {
    let cases = [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin::", "/usr/bin"),
        (".:bin:../x:/usr/bin", "/usr/bin"),
        ("/project/bin:/usr/bin:/project", "/usr/bin"),
        ("/projects/bin", "/projects/bin"),
        ("", "/usr/local/bin:/usr/bin:/bin"),
        (".", "/usr/local/bin:/usr/bin:/bin"),
    ];
    for (path, expected) in cases {
        let env = environment(&[("PATH", path)], "/project");
        let cleaned = env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_str());
        assert_eq!(cleaned, Some(expected), "{path}");
    }
}

/// SAFE-1: a folder in the workspace is recognized through a link.
#[test]
fn links_into_the_workspace_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let (workspace, link) = (folder.path().join("project"), folder.path().join("link"));
    fs::create_dir_all(workspace.join("bin")).expect("folders");
    symlink(workspace.join("bin"), &link).expect("a link");
    let path = format!("{}:/usr/bin", link.display());
    let env = environment(&[("PATH", &path)], &workspace.display().to_string());
    assert!(
        env.contains(&("PATH".to_owned(), "/usr/bin".to_owned())),
        "{env:?}"
    );
}
