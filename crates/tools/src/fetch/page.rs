//! Converts a response into an answer for the model.

use reqwest::StatusCode;
use serde_json::json;
use windlass_core::tool::ToolOutput;

use super::target::Target;
use super::{Format, charset, html};
use windlass_core::text;

/// Maximum number of characters returned; the loop may show the model fewer.
const MAX_CHARS: usize = 400_000;
/// Maximum number of characters returned for an error page.
const MAX_ERROR_CHARS: usize = 2000;
/// Number of bytes examined in a body without a type.
const LOOKED_AT: usize = 8192;

/// Result of a request.
pub(super) enum Found {
    Page(Page),
    /// A redirect to another host.
    Elsewhere {
        target: Target,
        next: Target,
        status: StatusCode,
    },
}

/// Response of a server.
#[derive(Debug)]
pub(super) struct Page {
    target: Target,
    status: StatusCode,
    content_type: Option<String>,
    /// Length announced by the server.
    length: Option<u64>,
    kind: Kind,
    body: Vec<u8>,
    /// True if the body was longer than the part that was read.
    cut: bool,
}

/// Kind of body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Binary,
    /// The server does not know the type.
    Unknown,
}

impl Page {
    pub(super) fn new(
        target: Target,
        status: StatusCode,
        content_type: Option<String>,
        length: Option<u64>,
    ) -> Self {
        Self {
            kind: Kind::of(&essence(content_type.as_deref()).to_ascii_lowercase()),
            target,
            status,
            content_type,
            length,
            body: Vec::new(),
            cut: false,
        }
    }

    /// Returns true if the rest of the body is useful.
    pub(super) fn wants_more(&self, most: usize) -> bool {
        self.kind != Kind::Binary && !self.cut && self.body.len() <= most
    }

    pub(super) fn take(&mut self, chunk: &[u8], most: usize) {
        let room = most.saturating_sub(self.body.len());
        self.cut = chunk.len() > room;
        self.body.extend(chunk.iter().take(room));
    }

    /// Returns the answer for the model. Slow for a large page.
    pub(super) fn answer(mut self, asked: &str, format: Format) -> ToolOutput {
        if self.kind == Kind::Unknown {
            self.kind = Kind::by_look(&self.body);
        }
        let failed = !self.status.is_success();
        let (shown, cut) = self.shown(format);
        let limit = if failed { MAX_ERROR_CHARS } else { MAX_CHARS };
        let (kept, left_out) = text::shorten(&shown, limit);
        let mut content = format!("{}\n\n{}", self.headline(), kept.trim_end());
        if left_out > 0 || cut {
            let kept = kept.chars().count();
            content.push_str(&format!("\n[cut: these are the first {kept} characters]"));
        } else if self.cut {
            let read = text::size(self.body.len() as u64);
            content.push_str(&format!("\n[cut: only the first {read} of the page was read]"));
        }
        let details = json!({
            "url": asked,
            "final_url": self.target.url().as_str(),
            "status": self.status.as_u16(),
            "content_type": self.content_type,
            "bytes": self.bytes(),
            "truncated": self.cut || cut || left_out > 0,
        });
        ToolOutput {
            failed,
            ..ToolOutput::text(content).with_details(details)
        }
    }

    fn headline(&self) -> String {
        let kind = match essence(self.content_type.as_deref()) {
            "" => "no content type",
            kind => text::shorten(kind, 100).0,
        };
        let size = self.bytes().map_or("size unknown".to_owned(), text::size);
        let more = if self.cut { "more than " } else { "" };
        format!(
            "{} ({}, {kind}, {more}{size})",
            self.target.url(),
            self.status.as_u16()
        )
    }

    /// Returns the size if it is known: the bytes read, or else the announced length.
    fn bytes(&self) -> Option<u64> {
        match (self.kind, self.body.len()) {
            (Kind::Binary, 0) => self.length,
            (_, read) => Some(read as u64),
        }
    }

    /// Returns the text of the page; the flag is true if a part was left out.
    fn shown(&self, format: Format) -> (String, bool) {
        if self.kind == Kind::Binary {
            let kind = essence(self.content_type.as_deref());
            let kind = if kind.is_empty() { "binary data" } else { kind };
            return (format!("[{kind} is not text and is not shown]"), false);
        }
        let text = charset::decode(&self.body, self.content_type.as_deref(), self.cut);
        if text.trim().is_empty() {
            return ("[the page is empty]".to_owned(), false);
        }
        if text.contains('\0') {
            return (
                "[binary data is not shown, although the server calls it text]".to_owned(),
                false,
            );
        }
        let reading = match (self.kind, format) {
            (Kind::Html, Format::Markdown) => html::markdown(&text, self.target.url()),
            (Kind::Html, Format::Text) => html::plain(&text),
            _ => return (text, false),
        };
        if reading.text.trim().is_empty() {
            let notice = "[the page has no text; scripts may build it, or `format` html shows its source]";
            return (notice.to_owned(), false);
        }
        (reading.text, reading.cut)
    }
}

impl Kind {
    fn of(essence: &str) -> Self {
        let (family, name) = essence.split_once('/').unwrap_or_default();
        match (family, name) {
            ("text", "html") | ("application", "xhtml+xml") => Self::Html,
            ("text", _) | ("message", _) => Self::Text,
            ("application", name) if TEXTS.contains(&name.trim_start_matches("x-")) => Self::Text,
            (_, name) if name.ends_with("+json") || name.ends_with("+xml") || name.ends_with("+yaml") => {
                Self::Text
            }
            ("", _) | ("application" | "binary", "octet-stream") | ("application", "unknown") => {
                Self::Unknown
            }
            _ => Self::Binary,
        }
    }

    fn by_look(body: &[u8]) -> Self {
        let start = body.get(..LOOKED_AT).unwrap_or(body);
        let readable = match std::str::from_utf8(start) {
            Ok(_) => true,
            // The examined part may end inside a character.
            Err(error) => error.error_len().is_none(),
        };
        if !readable || start.contains(&0) {
            return Self::Binary;
        }
        let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
        if start.starts_with("<!doctype html") || start.starts_with("<html") {
            Self::Html
        } else {
            Self::Text
        }
    }
}

/// Text types that are not `text/…`; each also with an `x-` prefix.
const TEXTS: &[&str] = &[
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "json5",
    "jsonlines",
    "ndjson",
    "sh",
    "sql",
    "tex",
    "toml",
    "typescript",
    "www-form-urlencoded",
    "xml",
    "yaml",
];

/// Returns the type without its parameters.
fn essence(content_type: Option<&str>) -> &str {
    let content_type = content_type.unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Tells the model to request the other host itself, because that host is subject to its own rules.
pub(super) fn elsewhere(asked: &str, target: &Target, next: &Target, status: StatusCode) -> ToolOutput {
    let status = status.as_u16();
    let content = format!(
        "{} ({status}, redirect)\n\nIt redirects to another host: {}\nCall fetch with this URL if you want it.",
        target.url(),
        next.url()
    );
    ToolOutput::text(content).with_details(json!({
        "url": asked,
        "final_url": target.url().as_str(),
        "redirect": next.url().as_str(),
        "status": status,
        "content_type": null,
        "bytes": null,
        "truncated": false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TOOL-2: text is shown, whatever its type is called, and everything else is not.
    #[test]
    fn types_are_sorted() {
        let cases = [
            (Kind::Html, "text/html application/xhtml+xml"),
            (
                Kind::Text,
                "text/plain text/css text/x-rust application/json application/xml application/x-sh",
            ),
            (
                Kind::Text,
                "application/ld+json image/svg+xml application/rss+xml application/x-javascript",
            ),
            (
                Kind::Binary,
                "image/png application/pdf application/zip video/mp4 font/woff2 nonsense/else",
            ),
            (
                Kind::Unknown,
                "application/octet-stream binary/octet-stream nonsense",
            ),
        ];
        for (kind, essences) in cases {
            for essence in essences.split(' ') {
                assert_eq!(Kind::of(essence), kind, "{essence}");
            }
        }
        assert_eq!(essence(Some(" text/html ; charset=utf-8")), "text/html");
        assert_eq!(Kind::by_look(b" <!DOCTYPE html><p>"), Kind::Html);
        assert_eq!(Kind::by_look(b"fn main() {}"), Kind::Text);
        assert_eq!(Kind::by_look(b"\x89PNG\r\n"), Kind::Binary);
        assert_eq!(Kind::by_look(b"a\0b"), Kind::Binary);
    }
}
