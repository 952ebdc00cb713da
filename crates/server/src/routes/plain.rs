//! A session as one plain page without scripts: to read, to print, and for screen readers.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use windlass_api::{Entry, Event, Part, Role, SessionId};
use windlass_core::log::counting;

use crate::app::Shared;
use crate::problem::Problem;

/// Longest output of a call on the page, in characters.
const OUTPUT: usize = 20_000;

/// No script, no style, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn plain(State(app): State<Shared>, Path(id): Path<SessionId>) -> Result<Response, Problem> {
    let info = app.info(&id).await?;
    let entries = windlass_core::log::record(&*app.ports.store, &id).await?;
    let label = &info.label;
    let title = label.title.as_deref().or(label.name.as_deref()).unwrap_or("Session");
    let title = escaped(title);
    let place = escaped(&info.place);
    let body = transcript(&entries);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<main>\n<h1><bdi>{title}</bdi></h1>\n<p>Folder: <bdi>{place}</bdi></p>\n{body}</main>\n</html>\n"
    );
    let mut response = Html(page).into_response();
    let policy = HeaderValue::from_static(POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// Returns the conversation as HTML. Everything is text.
fn transcript(entries: &[Entry]) -> String {
    let mut page = String::new();
    for entry in counting(entries) {
        match &entry.event {
            Event::Message { message } if message.role == Role::User => {
                section(&mut page, "You", &message.user_text());
            }
            Event::Message { message } if message.role == Role::Assistant => {
                let texts = message.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.text.as_str()),
                    _ => None,
                });
                section(&mut page, "Windlass", &texts.collect::<Vec<_>>().join("\n\n"));
            }
            Event::StepStart { title, .. } => page.push_str(&format!("<h3><bdi>{}</bdi></h3>\n", escaped(title))),
            Event::ToolResult { content, is_error, .. } => {
                let text: String = content.chars().take(OUTPUT).collect();
                let cut = if text.len() < content.len() { "\n[… cut …]" } else { "" };
                let state = if *is_error { "<p>Failed:</p>\n" } else { "" };
                page.push_str(&format!("{state}<pre>{}{cut}</pre>\n", escaped(&text)));
            }
            Event::Canceled { message } | Event::Failed { message, .. } | Event::Error { message } => {
                page.push_str(&format!("<p><strong>{}</strong></p>\n", escaped(message)));
            }
            _ => {}
        }
    }
    page
}

fn section(page: &mut String, who: &str, text: &str) {
    if !text.trim().is_empty() {
        page.push_str(&format!("<h2>{who}</h2>\n<pre>{}</pre>\n", escaped(text)));
    }
}

/// Escapes a text for HTML, and makes control characters and changes of direction visible.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(sign),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            sign if sign.is_control() => safe.push('\u{fffd}'),
            sign => safe.push(sign),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SAFE-7: text of a model or a tool never becomes markup.
    #[test]
    fn text_stays_text() {
        let text = "<script>alert('x')</script> \u{1b}[31m\u{202e}&\"";
        assert_eq!(
            escaped(text),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; \u{fffd}[31m\u{fffd}&amp;&quot;"
        );
    }
}
