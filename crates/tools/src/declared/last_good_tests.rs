//! Files that appear, change, become invalid and disappear.

use std::fs;

use super::*;

const GOOD: &str = "tools:\n  - {name: one, description: x, category: read, cmd: x}\n";

fn tool(name: &str) -> String {
    GOOD.replace("one", name)
}

fn names(refresh: Refresh) -> Vec<String> {
    match refresh {
        Refresh::Loaded { names } => names,
        other => panic!("not loaded: {other:?}"),
    }
}

/// TOOL-5 (S6.7): changes take effect, and a broken file keeps its last good tools until it is valid again.
#[test]
fn a_broken_file_keeps_the_last_good_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tools.yaml");
    let mut files = LastGood::new(Paths {
        user: Some(path.clone()),
        project: None,
    });
    let put = |text: &str| fs::write(&path, text).expect("a file");
    assert_eq!(files.refresh(), Refresh::Unchanged, "no file");
    put(GOOD);
    assert_eq!(names(files.refresh()), ["one"]);
    assert_eq!(files.refresh(), Refresh::Unchanged);
    assert_eq!(files.refresh(), Refresh::Unchanged);
    put(GOOD);
    assert_eq!(files.refresh(), Refresh::Unchanged, "the same text");
    put(&tool("two"));
    assert_eq!(names(files.refresh()), ["two"]);
    put(&tool("two").replace("category", "categry"));
    let Refresh::Broken { error, kept } = files.refresh() else {
        panic!("broken");
    };
    let shown = path.display();
    let expected = [
        format!("{shown}:2: unknown key `two.categry`; did you mean `category`?"),
        format!("{shown}:2: `two.category` is missing; it must be one of read, write, admin"),
    ];
    assert_eq!(error.to_string(), expected.join("\n"));
    assert_eq!(kept, ["two"]);
    assert_eq!(files.refresh(), Refresh::Unchanged, "told once");
    assert_eq!(files.error(), Some(&error));
    assert_eq!(files.current().names(), ["two"]);
    put(&tool("three"));
    assert_eq!(names(files.refresh()), ["three"]);
    assert_eq!(files.error(), None);
    fs::remove_file(&path).expect("removed");
    assert_eq!(names(files.refresh()), [""; 0]);
    assert_eq!(files.refresh(), Refresh::Unchanged);
}

/// TOOL-5 (S6.7): a text of the same length, written immediately after, is noticed.
#[test]
fn quick_changes_of_the_same_size_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tools.yaml");
    let mut files = LastGood::new(Paths {
        user: Some(path.clone()),
        project: None,
    });
    for round in 0..200 {
        let name = format!("n{round:03}");
        fs::write(&path, tool(&name)).expect("a file");
        assert_eq!(names(files.refresh()), [name]);
    }
}

/// TOOL-5: a project cannot take the user's names, and one broken file does not affect the other.
#[test]
fn the_user_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let (user, project) = (
        folder.path().join("user.yaml"),
        folder.path().join("project.yaml"),
    );
    let paths = Paths {
        user: Some(user.clone()),
        project: Some(project.clone()),
    };
    let mut files = LastGood::new(paths.clone());
    fs::write(&user, tool("mine")).expect("a file");
    fs::write(&project, tool("theirs")).expect("a file");
    assert_eq!(names(files.refresh()), ["mine", "theirs"]);
    assert_eq!(files.current().only(Source::User).names(), ["mine"]);
    fs::write(&project, tool("mine")).expect("a file");
    let error = Declarations::read(&paths).expect_err("a taken name");
    let expected = format!(
        "{}:2: `mine.name` is the name of one of the user's own tools; choose another",
        project.display()
    );
    assert_eq!(error.to_string(), expected);
    let Refresh::Broken { error: told, kept } = files.refresh() else {
        panic!("broken");
    };
    assert_eq!((told, kept), (error, vec!["mine".to_owned()]));
    assert_eq!(files.current().only(Source::Project).names(), [""; 0]);
    fs::write(&user, "tools: [").expect("a file");
    fs::write(&project, tool("theirs")).expect("a file");
    let Refresh::Broken { kept, .. } = files.refresh() else {
        panic!("broken");
    };
    assert_eq!(kept, ["mine", "theirs"]);
}

/// TOOL-5: anything that is not a text file is reported, and reading it never blocks.
#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tools.yaml");
    let paths = Paths {
        user: Some(path.clone()),
        project: None,
    };
    let error = |expected: &str| {
        let error = Declarations::read(&paths).expect_err(expected);
        assert_eq!(
            error.to_string(),
            format!("{}: cannot be read: {expected}", path.display())
        );
    };
    fs::create_dir(&path).expect("a folder");
    error("it is not a file");
    fs::remove_dir(&path).expect("removed");
    fs::write(&path, b"tools: \xff").expect("a file");
    error("it is not UTF-8 text");
    fs::write(&path, " ".repeat(1024 * 1024 + 1)).expect("a file");
    error("it is larger than 1 MiB");
    fs::remove_file(&path).expect("removed");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    error("it is not a file");
}

/// TOOL-5, SAFE-6: a project's text that was passed in is used as given; a new one replaces the old one
/// entirely, even when it is invalid, and the user's tools are not affected.
#[test]
fn a_projects_text_is_taken_as_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = folder.path().join("user.yaml");
    fs::write(&user, GOOD).expect("a file");
    let mut files = LastGood::new(Paths {
        user: Some(user),
        project: None,
    });
    let project = |text: &str| Some((PathBuf::from("nowhere/tools.yaml"), text.to_owned()));
    files.set_project(project(&tool("two")));
    assert_eq!(names(files.refresh()), ["one", "two"]);
    files.set_project(project(&tool("two")));
    assert_eq!(files.refresh(), Refresh::Unchanged);
    files.set_project(project(GOOD));
    let Refresh::Broken { error, kept } = files.refresh() else {
        panic!("a name is taken");
    };
    assert!(
        error.to_string().starts_with("nowhere/tools.yaml:2: `one.name`"),
        "{error}"
    );
    assert_eq!(kept, ["one"]);
    files.set_project(project(&tool("two")));
    assert_eq!(names(files.refresh()), ["one", "two"]);
    files.set_project(project("tools: 5\n"));
    assert!(matches!(files.refresh(), Refresh::Broken { kept, .. } if kept == ["one"]));
    files.set_project(None);
    assert_eq!(names(files.refresh()), ["one"]);
    assert_eq!(files.refresh(), Refresh::Unchanged);
}
