//! Keys are stored in a file that no other user can read; files that violate this are reported.

use std::os::unix::fs::PermissionsExt;

use super::*;
use windlass_testkit::at_once;

fn file(folder: &Path) -> KeysFile {
    KeysFile {
        file: PrivateFile::new(folder.join("config/keys.toml")),
    }
}

fn put(keys: &KeysFile, text: &str, mode: u32) {
    fs::create_dir_all(keys.path().parent().unwrap()).unwrap();
    fs::write(keys.path(), text).unwrap();
    fs::set_permissions(keys.path(), fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn names(keys: &KeysFile) -> Vec<String> {
    keys.read().unwrap().into_keys().collect()
}

/// PROV-11: a key is stored in a file that only this user can read, beside the existing ones, and can be
/// removed again.
#[test]
fn keys_are_kept_for_one_user() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    assert_eq!(names(&keys), Vec::<String>::new());
    let kept = keys.keep("anthropic", "sk-1").unwrap();
    assert_eq!(mode(keys.path()), 0o600);
    assert_eq!(mode(keys.path().parent().unwrap()), 0o700);
    keys.put_back(&kept).unwrap();
    assert_eq!(names(&keys), Vec::<String>::new());

    let mine = "# mine\n[keys]\n\"my server\" = 'a' # work\nempty = \"\"\n";
    put(&keys, mine, 0o600);
    let kept = keys.keep("groq", "quoted \" and \\").unwrap();
    assert_eq!(names(&keys), ["groq", "my server"]);
    let text = fs::read_to_string(keys.path()).unwrap();
    assert!(text.starts_with(mine), "{text}");
    keys.put_back(&kept).unwrap();
    assert_eq!(fs::read_to_string(keys.path()).unwrap(), mine);

    // A comment beside a key survives both a new key and the restored one.
    let kept = keys.keep("my server", "b").unwrap();
    let text = fs::read_to_string(keys.path()).unwrap();
    assert_eq!(text, mine.replace("'a' # work", "\"b\" # work"));
    keys.put_back(&kept).unwrap();
    let text = fs::read_to_string(keys.path()).unwrap();
    assert_eq!(text, mine.replace("'a'", "\"a\""));
}

/// PROV-11: restoring a key does not affect other keys: those that another process has stored meanwhile stay,
/// even for the same provider.
#[test]
fn only_the_own_key_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    keys.keep("groq", "old").unwrap();
    let kept = keys.keep("groq", "mine").unwrap();
    keys.keep("anthropic", "theirs").unwrap();
    keys.put_back(&kept).unwrap();
    let text = fs::read_to_string(keys.path()).unwrap();
    assert_eq!(text, "[keys]\ngroq = \"old\"\nanthropic = \"theirs\"\n");
    let kept = keys.keep("groq", "mine").unwrap();
    keys.keep("groq", "theirs").unwrap();
    keys.put_back(&kept).unwrap();
    let text = fs::read_to_string(keys.path()).unwrap();
    assert!(text.contains("groq = \"theirs\""), "{text}");
}

/// PROV-11: keys that are stored at the same time are all stored, and a symbolic link to the file stays a
/// link.
#[test]
fn keys_that_are_kept_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    fs::create_dir_all(keys.path().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../my keys", keys.path()).unwrap();
    at_once(8, |number| {
        let kept = keys.keep(&format!("server-{number}"), "sk").unwrap();
        if number % 2 == 1 {
            keys.put_back(&kept).unwrap();
        }
    });
    assert_eq!(names(&keys), ["server-0", "server-2", "server-4", "server-6"]);
    assert!(keys.path().is_symlink());
    assert_eq!(mode(&folder.path().join("my keys")), 0o600);
}

/// PROV-11: a file that other users can read is not used, and the message explains the fix.
#[test]
fn a_file_for_all_eyes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    for wide in [0o644, 0o640, 0o604, 0o620] {
        put(&keys, "[keys]\nanthropic = \"sk-1\"\n", wide);
        let told = keys.read().unwrap_err().to_string();
        assert!(
            told.contains("chmod 600 ") && told.contains("keys.toml"),
            "{told}"
        );
        assert!(keys.keep("groq", "sk-2").is_err());
    }
    assert!(!fs::read_to_string(keys.path()).unwrap().contains("sk-2"));
}

/// PROV-11, CFG-1: an error in the file is reported with its line and without its content.
#[test]
fn mistakes_are_reported_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    let cases = [
        ("[keys]\nanthropic = sk-secret\n", "line 2: this is not TOML"),
        (
            "[keys]\na = \"x\"\nb = 5\n",
            "line 3: the key of `b` is not a string",
        ),
        (
            "\nanthropic = \"sk-secret\"\n",
            "line 2: there is only the table `[keys]`",
        ),
        ("keys = \"sk-secret\"\n", "line 1: there is only the table"),
    ];
    for (text, expected) in cases {
        put(&keys, text, 0o600);
        let told = keys.read().unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("sk-secret"), "{told}");
        assert!(keys.keep("groq", "sk-2").is_err(), "{text}");
    }
}
