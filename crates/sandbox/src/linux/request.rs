//! A program to start, as it is passed to the launcher: NUL-terminated fields, because no path, argument or
//! variable can contain a NUL.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A program to start. Its standard streams are passed separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) program: OsString,
    pub(crate) cwd: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// Variables as `NAME=value`.
    pub(crate) env: Vec<OsString>,
}

/// Encodes a program to start. Fails if a part contains a NUL, which the kernel would not accept either.
pub(crate) fn encode<'a>(
    program: &Path,
    cwd: &Path,
    arguments: &[&OsStr],
    env: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    let mut push = |parts: &[&[u8]]| {
        let clean = parts.iter().all(|part| !part.contains(&0));
        for part in parts {
            bytes.extend_from_slice(part);
        }
        bytes.push(0);
        clean
    };
    let mut clean = push(&[program.as_os_str().as_bytes()]);
    clean &= push(&[cwd.as_os_str().as_bytes()]);
    clean &= push(&[arguments.len().to_string().as_bytes()]);
    for argument in arguments {
        clean &= push(&[argument.as_bytes()]);
    }
    for (name, value) in env {
        clean &= push(&[name.as_bytes(), b"=", value.as_bytes()]);
    }
    clean.then_some(bytes)
}

/// Decodes what [`encode`] wrote. Returns `None` for anything else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Request> {
    let fields = bytes.strip_suffix(&[0])?;
    let mut fields = fields
        .split(|byte| *byte == 0)
        .map(|field| OsString::from_vec(field.to_vec()));
    let program = fields.next().filter(|program| !program.is_empty())?;
    let cwd = fields.next()?;
    let count: usize = fields.next()?.to_str()?.parse().ok()?;
    if count > bytes.len() {
        return None;
    }
    let arguments: Vec<OsString> = fields.by_ref().take(count).collect();
    let env: Vec<OsString> = fields.collect();
    let named = |variable: &OsString| variable.as_bytes().contains(&b'=');
    (arguments.len() == count && env.iter().all(named)).then_some(Request {
        program,
        cwd,
        arguments,
        env,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back() {
        let env = [("A", "1=2"), ("B", "")];
        let arguments = [OsStr::new(""), OsStr::new("a b"), OsStr::from_bytes(b"\xff\n")];
        let bytes =
            encode(Path::new("/bin/x"), Path::new("/w"), &arguments, env.into_iter()).expect("no NUL");
        let request = decode(&bytes).expect("a request");
        assert_eq!(request.arguments, arguments);
        assert_eq!(request.env, ["A=1=2", "B="]);
        assert_eq!(request.program, "/bin/x");
        assert_eq!(request.cwd, "/w");
    }

    proptest::proptest! {
        /// SAFE-10: no message makes the launcher panic, or means something else than it says.
        #[test]
        fn any_message_is_safe(pieces in proptest::collection::vec("[a=/0-9]{0,6}|\\PC{0,3}", 0..12)) {
            crate::fuzzing::launcher(pieces.join("\0").as_bytes());
            crate::fuzzing::launcher((pieces.join("\0") + "\0").as_bytes());
        }
    }

    #[test]
    fn nothing_else_is_a_request() {
        for bytes in [
            &b""[..],
            b"\0",
            b"/bin/x\0",
            b"/bin/x\0/w\0",
            b"/bin/x\0/w\0-1\0",
            b"/bin/x\0/w\x002\0a\0",
            b"/bin/x\0/w\x000\0novalue\0",
            b"/bin/x\0/w\x0099999999999999999999\0",
            b"/bin/x\0/w\x000",
            b"\0/w\x000\0",
        ] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
        let nul = [OsStr::new("a\0b")];
        assert!(encode(Path::new("/x"), Path::new("/"), &nul, std::iter::empty()).is_none());
    }
}
