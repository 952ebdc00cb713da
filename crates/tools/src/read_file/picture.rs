//! Recognises images by their first bytes.

/// Maximum side length that every provider accepts. A larger image would be refused, and with it every
/// request of the session.
const MAX_SIDE: u32 = 8000;
/// Maximum size for the same reason: 5 MiB when encoded in base64.
pub(super) const MAX_BYTES: u64 = 3_932_160;

/// An image that can be sent unchanged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) mime: &'static str,
    /// Description such as `a PNG image`.
    pub(super) kind: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Picture {
    /// Recognises an image. Returns `None` if the bytes are not an image, or its header is broken.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (mime, kind, size) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            ("image/png", "a PNG image", png(bytes))
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            ("image/jpeg", "a JPEG image", jpeg(bytes))
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            ("image/gif", "a GIF image", gif(bytes))
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            ("image/webp", "a WebP image", webp(bytes))
        } else {
            return None;
        };
        let (width, height) = size.filter(|(width, height)| *width > 0 && *height > 0)?;
        Some(Self {
            mime,
            kind,
            width,
            height,
        })
    }

    /// Returns true if providers accept the image.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        bytes <= MAX_BYTES && self.width <= MAX_SIDE && self.height <= MAX_SIDE
    }
}

/// Returns true if a file may be an image, judging by its first bytes.
pub(super) fn may_be(beginning: &[u8]) -> bool {
    let magics: [&[u8]; 4] = [b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"];
    magics.iter().any(|magic| beginning.starts_with(magic))
}

fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?))
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8 " if bytes.get(23..26)? == b"\x9d\x01\x2a" => {
            Some((little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff))
        }
        b"VP8L" if bytes.get(20)? == &0x2f => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

/// Walks the segments up to the one with the image size.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        (*bytes.get(at)? == 0xff).then_some(())?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            // A fill byte.
            0xff => at += 1,
            // These have no content.
            0x01 | 0xd0..=0xd8 => at += 2,
            // These start a frame.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            // The data starts, or the image ends, without a size.
            0xd9 | 0xda => return None,
            _ => {
                let length = usize::try_from(big(bytes, at + 2, 2)?).ok()?;
                at += 2 + length;
            }
        }
    }
}

/// Encodes base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize);
            let shown = letter.filter(|_| place <= chunk.len());
            text.push(shown.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
        Picture::of(bytes).map(|picture| (picture.mime, picture.width, picture.height))
    }

    /// TOOL-2: an image and its size are recognised by its bytes; a broken one is not an image.
    #[test]
    fn pictures_are_known_by_their_bytes() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";
        let gif = b"GIF89a\x0a\0\x14\0\x80\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x11\x08\0\x10\0\x20\x03";
        type Case = (&'static [u8], Option<(&'static str, u32, u32)>);
        let cases: &[Case] = &[
            (png, Some(("image/png", 640, 480))),
            (gif, Some(("image/gif", 10, 20))),
            (jpeg, Some(("image/jpeg", 32, 16))),
            (
                b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x63\0\0\x31\0\0",
                Some(("image/webp", 100, 50)),
            ),
            (
                b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\0\x30\0",
                Some(("image/webp", 64, 48)),
            ),
            (
                b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x03\x40\0\0",
                Some(("image/webp", 4, 2)),
            ),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None),
            (b"\xff\xd8\xff\xda\0\0", None),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"GIF89a\0\0\0\0", None),
            (b"plain", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), *expected, "{bytes:?}");
            assert!(expected.is_none() || may_be(bytes));
        }
        let large = Picture::of(png).expect("a picture");
        assert!(large.fits(MAX_BYTES) && !large.fits(MAX_BYTES + 1));
        let wide = Picture { width: 9000, ..large };
        assert!(!wide.fits(1));
    }

    #[test]
    fn base64_is_as_everybody_writes_it() {
        let cases: &[(&[u8], &str)] = &[
            (b"", ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\xfd\xfc", "//79/A=="),
        ];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes), *text);
        }
        let most = usize::try_from(MAX_BYTES).expect("a size");
        assert_eq!(base64(&vec![0; most]).len(), 5 << 20);
    }

    proptest! {
        /// No input that starts like an image causes a panic.
        #[test]
        fn anything_may_be_looked_at(magic in 0_usize..5, rest in prop::collection::vec(any::<u8>(), 0..60)) {
            let magics: [&[u8]; 5] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X", b"RIFF\0\0\0\0WEBPVP8L"];
            let bytes = [magics[magic], &rest].concat();
            let _ = Picture::of(&bytes);
        }
    }
}
