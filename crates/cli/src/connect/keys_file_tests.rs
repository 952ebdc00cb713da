//! Keys in, a file out that nobody else can read; and what is said of files that are not so.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn file(folder: &Path) -> KeysFile {
    KeysFile {
        path: folder.join("config/keys.toml"),
    }
}

fn put(keys: &KeysFile, text: &str, mode: u32) {
    fs::create_dir_all(keys.path.parent().unwrap()).unwrap();
    fs::write(&keys.path, text).unwrap();
    fs::set_permissions(&keys.path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn names(keys: &KeysFile) -> Vec<String> {
    keys.read().unwrap().into_keys().collect()
}

/// PROV-11: a key is kept in a file that only this user can read, beside those that are there, and can be put back.
#[test]
fn keys_are_kept_for_one_user() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    assert_eq!(names(&keys), Vec::<String>::new());
    let nothing = keys.keep("anthropic", "sk-1").unwrap();
    assert_eq!(mode(&keys.path), 0o600);
    assert_eq!(mode(keys.path.parent().unwrap()), 0o700);
    keys.put_back(&nothing).unwrap();
    assert!(!keys.path.exists());

    put(
        &keys,
        "# mine\n[keys]\n\"my server\" = 'a' # work\nempty = \"\"\n",
        0o600,
    );
    let before = keys.keep("groq", "quoted \" and \\").unwrap();
    assert_eq!(names(&keys), ["groq", "my server"]);
    let text = fs::read_to_string(&keys.path).unwrap();
    assert!(
        text.starts_with("# mine\n[keys]\n\"my server\" = 'a' # work"),
        "{text}"
    );
    keys.put_back(&before).unwrap();
    assert_eq!(names(&keys), ["my server"]);
    let left: Vec<_> = fs::read_dir(keys.path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays");
}

/// PROV-11: a file that others can read is not used, and the way to mend it is told.
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
    assert!(!fs::read_to_string(&keys.path).unwrap().contains("sk-2"));
}

/// PROV-11, CFG-1: what is wrong in the file is told with its line and without what is in it.
#[test]
fn mistakes_are_told_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path());
    let cases = [
        ("[keys]\nanthropic = sk-secret\n", "line 2: this is not TOML"),
        ("[keys]\na = \"x\"\nb = 5\n", "line 3: the key of `b` is no text"),
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
