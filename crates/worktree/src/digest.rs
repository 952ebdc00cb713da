//! Digests of contents, as git computes the names of its objects.

use std::fmt;
use std::io::{self, Read};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Algorithm of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    /// Returns the algorithm that git calls this.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            _ => None,
        }
    }

    fn ring(self) -> &'static ring::digest::Algorithm {
        match self {
            Self::Sha1 => &SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &SHA256,
        }
    }

    /// Returns the digest of a content.
    pub(crate) fn of(self, content: &[u8]) -> Digest {
        let mut context = self.begin(content.len() as u64);
        context.update(content);
        Digest::new(context.finish().as_ref())
    }

    /// Returns the digest of what a reader returns, which must be `size` bytes.
    pub(crate) fn of_reader(self, size: u64, mut reader: impl Read) -> io::Result<Digest> {
        let mut context = self.begin(size);
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Digest::new(context.finish().as_ref())),
                count => context.update(buffer.get(..count).unwrap_or_default()),
            }
        }
    }

    fn begin(self, size: u64) -> Context {
        let mut context = Context::new(self.ring());
        context.update(format!("blob {size}\0").as_bytes());
        context
    }

    /// Returns the digest of bytes that are not an object.
    pub(crate) fn plain(self, bytes: &[u8]) -> Digest {
        Digest::new(digest(self.ring(), bytes).as_ref())
    }
}

/// Digest of a content: 20 or 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest {
    bytes: [u8; 32],
    length: u8,
}

impl Digest {
    fn new(found: &[u8]) -> Self {
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(found) {
            *to = *from;
        }
        Self {
            bytes,
            length: u8::try_from(found.len().min(32)).unwrap_or(32),
        }
    }

    /// Reads hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if !matches!(text.len(), 40 | 64) {
            return None;
        }
        let nibble = |sign: u8| {
            char::from(sign)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        let bytes: Option<Vec<u8>> = text
            .chunks_exact(2)
            .map(|pair| match pair {
                [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
                _ => None,
            })
            .collect();
        bytes.map(|bytes| Self::new(&bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_git() {
        let cases = [
            (
                Algorithm::Sha1,
                &b""[..],
                "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
            ),
            (
                Algorithm::Sha1,
                b"hello\n",
                "ce013625030ba8dba906f756967f9e9ca394464a",
            ),
            (
                Algorithm::Sha256,
                b"hello\n",
                "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4",
            ),
        ];
        for (algorithm, content, expected) in cases {
            let digest = algorithm.of(content);
            assert_eq!(digest.to_string(), expected);
            assert_eq!(
                algorithm.of_reader(content.len() as u64, content).unwrap(),
                digest
            );
            assert_eq!(Digest::parse(expected.as_bytes()), Some(digest));
        }
        assert_eq!(Digest::parse(b"xyz"), None);
        assert_eq!(Digest::parse(&[b'g'; 40]), None);
    }
}
