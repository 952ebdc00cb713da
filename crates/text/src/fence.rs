//! Fenced blocks of Markdown.

use std::fmt::Write;

/// Longest content that is shown, in characters and in lines.
const MAX_CHARS: usize = 4_000;
const MAX_LINES: usize = 40;

/// Adds a fenced block that its content cannot close; long content is cut.
pub fn fence(text: &mut String, language: &str, content: &str) {
    let content = content.trim_end();
    let mut shown: String = content.chars().take(MAX_CHARS).collect();
    let lines = shown.lines().count();
    if lines > MAX_LINES {
        shown = shown.lines().take(MAX_LINES).collect::<Vec<_>>().join("\n");
    }
    let left = content.chars().count() - shown.chars().count();
    if left > 0 {
        let _ = write!(shown, "\n… {left} more characters");
    }
    let ticks = longest_run(&shown).max(2) + 1;
    let _ = write!(text, "\n{0}{language}\n{shown}\n{0}\n", "`".repeat(ticks));
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`').map(str::len);
    runs.max().unwrap_or_default()
}
