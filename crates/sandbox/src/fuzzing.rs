//! Paths into a small tree of files and links.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::{OpenMode, Parents, PathDenied, Roots};

/// Words that bytes from 128 on stand for. Other bytes stand for themselves.
const WORDS: &[&[u8]] = &[
    b"/",
    b"..",
    b".",
    b"../",
    b"./",
    b"//",
    b"/../",
    b"open",
    b"open/",
    b"outside",
    b"outside/",
    b"file",
    b"inner",
    b"inner/",
    b"keys",
    b"keys/",
    b".env",
    b".env.local",
    b".env.example",
    b".ssh",
    b".ssh/",
    b"secret",
    b"absent",
    b"absent/",
    b"twin",
    b"out",
    b"out/",
    b"up",
    b"up/",
    b"dangling",
    b"leaves",
    b"loop",
    b"loop/",
    b"self",
    b"self/",
    b"harmless",
    b".env.link",
    b"\xff\xfe",
    b"inside/",
    b"deep/",
    b"second/",
    b"proc/self/root/",
    b"proc/self/cwd/",
    b"proc/self/fd/",
    b"../../../../../../",
    b"dev/fd/",
    b"tmp/",
    b"etc/",
];
const NAMES: [&str; 1] = [".env*"];

/// The tree: `open` and `second` are allowed, except for some paths in them.
struct Scene {
    folder: TempDir,
    root: PathBuf,
    roots: Roots,
    denied: Vec<PathBuf>,
}

static SCENE: LazyLock<io::Result<Scene>> = LazyLock::new(Scene::make);

impl Scene {
    fn make() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        for name in [
            "open/inner/deep",
            "open/.ssh",
            "open/.env.d",
            "outside/inside",
            "second",
        ] {
            fs::create_dir_all(root.join(name))?;
        }
        for name in [
            "open/file",
            "open/inner/file",
            "open/inner/deep/file",
            "open/.env",
            "open/.env.local",
            "open/.env.example",
            "open/.env.d/file",
            "open/.ssh/keys",
            "open/secret",
            "outside/file",
            "outside/inside/file",
            "second/file",
        ] {
            fs::write(root.join(name), name)?;
        }
        for (target, link) in [
            ("../outside", "open/out"),
            ("..", "open/up"),
            ("absent", "open/dangling"),
            ("../outside/new", "open/leaves"),
            ("loop", "open/loop"),
            (".", "open/self"),
            (".env", "open/harmless"),
            ("file", "open/.env.link"),
            (".ssh", "open/keys"),
            ("../../file", "open/inner/deep/up"),
            ("../open/inner", "second/inner"),
            ("../open/.ssh/keys", "second/keys"),
            ("../open", "outside/open"),
            ("/", "outside/top"),
            ("/proc/self/root", "second/self"),
        ] {
            symlink(target, root.join(link))?;
        }
        fs::hard_link(root.join("open/secret"), root.join("open/twin"))?;
        let denied = ["open/.ssh", "open/absent", "open/secret"]
            .map(|name| root.join(name))
            .to_vec();
        let both: Vec<PathBuf> = denied.iter().cloned().chain(NAMES.map(PathBuf::from)).collect();
        let roots = Roots::new(&[root.join("open"), root.join("second")], &both)?;
        Ok(Self {
            folder,
            root,
            roots,
            denied,
        })
    }

    fn path(&self, data: &[u8]) -> PathBuf {
        let mut bytes = self.folder.path().as_os_str().as_bytes().to_vec();
        bytes.push(b'/');
        for byte in data {
            let word = byte
                .checked_sub(128)
                .map(|index| WORDS.get(usize::from(index) % WORDS.len()));
            bytes.extend_from_slice(word.flatten().copied().unwrap_or(std::slice::from_ref(byte)));
        }
        std::ffi::OsString::from_vec(bytes).into()
    }

    /// Returns the part of a path below an allowed root.
    fn inside<'a>(&self, real: &'a Path) -> Option<&'a Path> {
        let below = |name: &str| real.strip_prefix(self.root.join(name)).ok();
        below("open").or_else(|| below("second"))
    }

    /// Returns true if a walk from an allowed root reaches the path: a walk does not enter denied folders.
    fn is_walked(&self, real: &Path) -> bool {
        let mut folders = real
            .ancestors()
            .skip(1)
            .take_while(|folder| self.inside(folder).is_some());
        self.inside(real).is_some() && folders.all(|folder| !self.roots.denies(folder))
    }

    fn assert_allowed(&self, asked: &Path, real: &Path) {
        let below = self.inside(real);
        assert!(below.is_some(), "{asked:?} leads out, to {real:?}");
        let denied = self.denied.iter().any(|denied| real.starts_with(denied));
        let named = below.unwrap_or(real).iter().any(is_secret);
        assert!(!denied && !named, "{asked:?} is denied, and leads to {real:?}");
    }

    fn assert_object_allowed(&self, asked: &Path, file: &File) {
        let real = fs::canonicalize(asked).unwrap_or_default();
        self.assert_allowed(asked, &real);
        let number = |data: io::Result<fs::Metadata>| data.ok().map(|data| (data.dev(), data.ino()));
        let opened = number(file.metadata());
        assert_eq!(
            number(fs::metadata(&real)),
            opened,
            "the file is the one that was asked for"
        );
        let is_it = |denied: &PathBuf| number(fs::metadata(denied)).is_some_and(|one| Some(one) == opened);
        assert!(
            !self.denied.iter().any(is_it),
            "{asked:?} is another name of something denied"
        );
    }
}

/// `.env*`, but not the usual examples.
fn is_secret(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".env")
        && ![".env.example", ".env.sample", ".env.template"]
            .iter()
            .any(|example| name == *example)
}

/// Opens a path below a temporary folder for reading. A file that is opened is inside an allowed root and not
/// denied; a path that is reported as outside is outside.
pub fn paths(data: &[u8]) {
    let Ok(scene) = &*SCENE else { return };
    let path = scene.path(data);
    match scene.roots.open(&path, OpenMode::Read) {
        Ok(file) => scene.assert_object_allowed(&path, &file),
        Err(PathDenied::Outside(_)) => {
            let real = fs::canonicalize(&path).ok();
            let inside = real.as_deref().and_then(|real| scene.inside(real));
            assert_eq!(inside, None, "{path:?} is inside");
        }
        Err(PathDenied::Raced(_) | PathDenied::Moved { .. }) => panic!("no process changes {path:?}"),
        Err(PathDenied::Denied(_) | PathDenied::System { .. }) => {}
    }
    if let Ok(place) = scene.roots.locate(&path, Parents::Exist) {
        scene.assert_allowed(&path, place.path());
    }
    if let Ok(real) = fs::canonicalize(&path)
        && scene.is_walked(&real)
        && let Ok(file) = scene.roots.open_walked(&real)
    {
        scene.assert_object_allowed(&real, &file);
    }
}

/// Feeds the bytes to the launcher as a request and to its caller as reports. Whatever is accepted must be
/// encoded to the same bytes again.
#[cfg(all(target_os = "linux", not(windlass_portable)))]
pub fn launcher(data: &[u8]) {
    use crate::linux::request::{decode, encode};
    use crate::linux::wire::Report;
    use std::ffi::OsStr;
    use std::path::Path;

    if let Some(request) = decode(data) {
        let arguments: Vec<&OsStr> = request.arguments.iter().map(AsRef::as_ref).collect();
        let text =
            |variable: &std::ffi::OsString| variable.to_str().and_then(|text| text.split_once('=')).is_some();
        if request.env.iter().all(text) {
            let env = request
                .env
                .iter()
                .filter_map(|variable| variable.to_str()?.split_once('='));
            let (program, cwd) = (Path::new(&request.program), Path::new(&request.cwd));
            let again = encode(program, cwd, &arguments, env).and_then(|bytes| decode(&bytes));
            assert_eq!(again.as_ref(), Some(&request), "a request changes");
        }
    }
    for chunk in data.chunks_exact(5) {
        if let Ok(bytes) = chunk.try_into()
            && let Some(report) = Report::decode(bytes)
        {
            assert_eq!(Report::decode(report.encode()), Some(report), "a report changes");
        }
    }
}
