//! Contents by digest, in append-only files. Each process writes its own file and reads all of them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::node::Digest;

const MAGIC: &[u8; 8] = b"WLPACK1\n";
/// Digest, original length, stored length.
const HEAD: usize = 32 + 8 + 8;

/// Stores contents.
#[derive(Debug)]
pub(super) struct Packs {
    folder: PathBuf,
    /// File of this process; created when there is something to store.
    own: Mutex<Option<File>>,
}

impl Packs {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            own: Mutex::default(),
        }
    }

    /// Stores a content.
    pub(super) fn keep(&self, digest: Digest, content: &[u8]) -> io::Result<()> {
        let packed = lz4_flex::compress(content);
        let kept: &[u8] = if packed.len() < content.len() {
            &packed
        } else {
            content
        };
        let mut record = Vec::with_capacity(HEAD + kept.len());
        record.extend_from_slice(&digest.0);
        record.extend_from_slice(&(content.len() as u64).to_le_bytes());
        record.extend_from_slice(&(kept.len() as u64).to_le_bytes());
        record.extend_from_slice(kept);
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match own.take() {
            Some(file) => file,
            None => self.begin()?,
        };
        // A file that ends in an incomplete record is not appended to again.
        file.write_all(&record)?;
        *own = Some(file);
        Ok(())
    }

    fn begin(&self) -> io::Result<File> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let name = format!("{}.pack", uuid::Uuid::now_v7());
        let mut file = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.folder.join(name))?;
        file.write_all(MAGIC)?;
        Ok(file)
    }

    /// Opens everything stored so far for reading.
    pub(super) fn contents(&self) -> io::Result<Contents> {
        let mut contents = Contents::default();
        let files = match fs::read_dir(&self.folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(contents),
            Err(error) => return Err(error),
        };
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "pack") {
                contents.add(&path)?;
            }
        }
        Ok(contents)
    }
}

/// Reads contents back.
#[derive(Debug, Default)]
pub(super) struct Contents {
    files: Vec<File>,
    places: HashMap<Digest, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    offset: u64,
    kept: u64,
    whole: u64,
}

impl Contents {
    fn add(&mut self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let end = file.metadata()?.len();
        let mut magic = [0; MAGIC.len()];
        if end < MAGIC.len() as u64 || file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC {
            return Ok(());
        }
        let mut offset = MAGIC.len() as u64;
        let mut head = [0; HEAD];
        while offset + HEAD as u64 <= end {
            file.read_exact_at(&mut head, offset)?;
            let Some((digest, whole, kept)) = header(&head) else {
                break;
            };
            offset += HEAD as u64;
            let Some(next) = offset.checked_add(kept).filter(|next| *next <= end) else {
                // A process was interrupted while writing.
                break;
            };
            let place = Place {
                file: self.files.len(),
                offset,
                kept,
                whole,
            };
            self.places.insert(digest, place);
            offset = next;
        }
        self.files.push(file);
        Ok(())
    }

    /// Returns true if a content is stored.
    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.places.contains_key(digest)
    }

    /// Returns a content if it is stored and undamaged.
    pub(super) fn get(&self, digest: &Digest) -> Option<Vec<u8>> {
        let place = self.places.get(digest)?;
        let file = self.files.get(place.file)?;
        let mut kept = vec![0; usize::try_from(place.kept).ok()?];
        file.read_exact_at(&mut kept, place.offset).ok()?;
        let content = if place.kept == place.whole {
            kept
        } else {
            lz4_flex::decompress(&kept, usize::try_from(place.whole).ok()?).ok()?
        };
        (Digest::of(&content) == *digest).then_some(content)
    }
}

fn header(head: &[u8; HEAD]) -> Option<(Digest, u64, u64)> {
    let (digest, sizes) = head.split_at_checked(32)?;
    let (whole, kept) = sizes.split_at_checked(8)?;
    Some((
        Digest(digest.try_into().ok()?),
        u64::from_le_bytes(whole.try_into().ok()?),
        u64::from_le_bytes(kept.try_into().ok()?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-11: contents are read back unchanged; truncated or damaged ones count as missing, and do not hide
    /// the ones before them.
    #[test]
    fn contents_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let packs = Packs::new(folder.path().join("packs"));
        let long = "abc ".repeat(10_000).into_bytes();
        let contents = [&b""[..], b"x", &long, b"last"];
        for content in contents {
            packs.keep(Digest::of(content), content).unwrap();
        }
        let read = packs.contents().unwrap();
        for content in contents {
            assert_eq!(read.get(&Digest::of(content)).as_deref(), Some(content));
        }
        assert_eq!(read.get(&Digest::of(b"never")), None);
        let file = fs::read_dir(folder.path().join("packs"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let whole = fs::read(&file).unwrap();
        assert!(whole.len() < 2_000, "{}", whole.len());
        fs::write(&file, &whole[..whole.len() - 2]).unwrap();
        let read = packs.contents().unwrap();
        assert_eq!(read.get(&Digest::of(b"last")), None);
        assert_eq!(read.get(&Digest::of(&long)).as_deref(), Some(&long[..]));
    }
}
