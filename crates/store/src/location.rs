//! Parses store URLs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use windlass_core::log::LogError;

/// Place of a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// File of a SQLite database.
    Sqlite(PathBuf),
    /// Temporary SQLite database.
    Ephemeral(Option<PathBuf>),
    /// Postgres database, by its whole URL.
    Postgres(String),
}

impl Location {
    /// Parses a URL or a path. Paths need not be UTF-8.
    pub(crate) fn parse(url: &OsStr) -> Result<Self, LogError> {
        let bytes = url.as_bytes();
        let (scheme, rest) = match bytes.iter().position(|byte| *byte == b':') {
            Some(end) if is_scheme(&bytes[..end]) => (Some(&bytes[..end]), &bytes[end + 1..]),
            _ => (None, bytes),
        };
        match scheme {
            Some(b"ephemeral") if rest.is_empty() => Ok(Self::Ephemeral(None)),
            Some(b"ephemeral") => {
                let parent = PathBuf::from(OsStr::from_bytes(rest));
                match parent.is_absolute() {
                    true => Ok(Self::Ephemeral(Some(parent))),
                    false => Err(LogError::Foreign(
                        "the store URL `ephemeral:` takes the absolute path of a folder, or nothing"
                            .to_owned(),
                    )),
                }
            }
            Some(b"sqlite") => file(rest.strip_prefix(b"//").unwrap_or(rest)),
            None => file(rest),
            Some(b"postgres" | b"postgresql") => match url.to_str() {
                Some(url) => Ok(Self::Postgres(url.to_owned())),
                None => Err(LogError::Foreign("the store URL is not UTF-8".to_owned())),
            },
            // The rest of the URL may hold a password, so only the scheme is named.
            Some(other) => Err(LogError::Foreign(format!(
                "the store URL has the scheme `{}:`, which is not supported; use `sqlite:<path>`, a path, \
                 `postgres://…`, or `ephemeral:`",
                String::from_utf8_lossy(other)
            ))),
        }
    }
}

fn file(path: &[u8]) -> Result<Location, LogError> {
    if path.is_empty() {
        return Err(LogError::Foreign("the store URL has no path".to_owned()));
    }
    Ok(Location::Sqlite(PathBuf::from(OsStr::from_bytes(path))))
}

/// Returns true for the scheme of a URL (RFC 3986, in lower case).
fn is_scheme(text: &[u8]) -> bool {
    let fits =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
    text.first().is_some_and(u8::is_ascii_lowercase) && text.iter().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-5: a URL or a path names the store; an unknown scheme is an error that names it and hides the
    /// rest.
    #[test]
    fn urls_and_paths() {
        let sqlite = |path: &str| Ok(Location::Sqlite(path.into()));
        let cases = [
            ("/a/b.db", sqlite("/a/b.db")),
            ("b.db", sqlite("b.db")),
            ("/a:b/c.db", sqlite("/a:b/c.db")),
            ("sqlite:/a/b.db", sqlite("/a/b.db")),
            ("sqlite:///a/b.db", sqlite("/a/b.db")),
            ("sqlite:odd:name.db", sqlite("odd:name.db")),
            ("ephemeral:", Ok(Location::Ephemeral(None))),
            ("ephemeral:/x", Ok(Location::Ephemeral(Some("/x".into())))),
            (
                "postgres://me@host/db",
                Ok(Location::Postgres("postgres://me@host/db".into())),
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(Location::parse(url.as_ref()), expected, "{url}");
        }
        let error = |url: &str| Location::parse(url.as_ref()).unwrap_err().to_string();
        assert_eq!(
            error("mysql://me:secret@host/db"),
            "the store URL has the scheme `mysql:`, which is not supported; use `sqlite:<path>`, a path, \
             `postgres://…`, or `ephemeral:`"
        );
        assert_eq!(error("sqlite:"), "the store URL has no path");
        assert_eq!(error(""), "the store URL has no path");
        assert_eq!(
            error("ephemeral:x"),
            "the store URL `ephemeral:` takes the absolute path of a folder, or nothing"
        );
    }

    /// SES-5: a path that is not UTF-8 stays as it is.
    #[test]
    fn paths_need_not_be_text() {
        let path = OsStr::from_bytes(b"/a/\xff.db");
        assert_eq!(Location::parse(path), Ok(Location::Sqlite(path.into())));
    }
}
