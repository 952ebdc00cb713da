//! Titles of sessions, for people to recognise them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use windlass_api::{Event, Message, Part, SessionEvent, SessionId, SessionInfo};
use windlass_core::hook::{Hook, TurnAction, TurnHook};
use windlass_core::log::{Booking, Label};
use windlass_core::message::Role;
use windlass_core::provider::{Prefix, Request, ToolChoice};

use crate::Inner;
use crate::environment::Titles;
use crate::sink::Sink;

/// Maximum length of a title, in characters.
const LONGEST: usize = 50;
/// Maximum number of characters of the first message that a model sees.
const SHOWN: usize = 2_000;
/// Time a title request may still take when the program ends.
const GRACE: Duration = Duration::from_secs(5);
const SYSTEM: &str = "Give the conversation that begins with this message a title of at most 50 characters, in the \
language of the message. Answer with the title alone, in one line, without quotes.";

/// Names a session that has no title: immediately after its first message, and again later if a model writes
/// titles.
///
/// Returns the hook that does so when the turn starts; `None` if the session has a title.
pub(crate) fn hook(
    inner: &Arc<Inner>,
    info: &mut SessionInfo,
    message: &Message,
    titles: Option<Arc<dyn Titles>>,
    sink: &Arc<Sink>,
) -> Option<TitleHook> {
    if info.label.title.is_some() {
        return None;
    }
    let prompt = prompt(message);
    let title = one_line(&prompt);
    info.label.title = Some(title.clone());
    Some(TitleHook {
        inner: Arc::clone(inner),
        session: info.id.clone(),
        sink: Arc::clone(sink),
        titles,
        prompt,
        title,
    })
}

/// Gives a session its title in the background. Never delays the turn.
#[derive(Clone)]
pub(crate) struct TitleHook {
    inner: Arc<Inner>,
    session: SessionId,
    sink: Arc<Sink>,
    titles: Option<Arc<dyn Titles>>,
    prompt: String,
    title: String,
}

impl TitleHook {
    /// Starts the work in the background.
    pub(crate) fn start(&self) {
        self.inner.tasks.spawn(self.clone().make());
    }

    async fn make(self) {
        let Self {
            inner, session, sink, ..
        } = &self;
        let label = |title: String| Label {
            title: Some(title),
            ..Label::default()
        };
        let _ = inner.store.label(session, &label(self.title.clone())).await;
        let Some(titles) = &self.titles else { return };
        let asked = tokio::select! {
            asked = ask(inner, &**titles, session, &self.prompt) => asked,
            // The end of the program does not wait long for a title.
            () = closing(inner) => None,
        };
        let Some((made, booking)) = asked else { return };
        let _ = inner.store.book(session, booking).await;
        if let Some(title) = made {
            let _ = inner.store.label(session, &label(title.clone())).await;
            sink.mention(Event::Session(SessionEvent::Title { title }));
        }
    }
}

impl Hook for TitleHook {
    fn name(&self) -> &str {
        "title"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for TitleHook {
    async fn before_turn(&self, _: &[Arc<Message>]) -> TurnAction {
        self.start();
        TurnAction::default()
    }
}

/// Returns a while after the service started to close.
async fn closing(inner: &Inner) {
    inner.closing.cancelled().await;
    inner.clock.sleep(GRACE).await;
}

/// Returns the user's own text: the first part that is not environment context. Instructions on the answer's
/// format come after it.
pub(crate) fn prompt(message: &Message) -> String {
    let texts = message.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.unwrap_or_default().chars().take(SHOWN).collect()
}

/// Returns the first non-empty line, cut at a word.
fn one_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("untitled");
    let clean: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if clean.chars().count() <= LONGEST {
        return clean;
    }
    let cut: String = clean.chars().take(LONGEST - 1).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", whole.trim_end_matches([',', ';', ':', '.']))
}

/// Asks a model for a title and returns it with its cost. `None` if the model did not answer.
async fn ask(
    inner: &Inner,
    titles: &dyn Titles,
    session: &SessionId,
    prompt: &str,
) -> Option<(Option<String>, Booking)> {
    let provider = titles.provider().await?;
    let now = inner.clock.now();
    let question = Message::new(session, Role::User, vec![Part::text(prompt)], now);
    let request = Request {
        prefix: Arc::new(Prefix {
            system: SYSTEM.to_owned(),
            ..Prefix::default()
        }),
        messages: vec![Arc::new(question)],
        tool_choice: ToolChoice::None,
        max_output: Some(100),
        session: session.clone(),
        cancel: CancellationToken::new(),
    };
    let completion = provider.send(request).await.ok()?;
    let model = provider.model();
    let booking = Booking {
        time: inner.clock.now(),
        provider: provider.name().to_owned(),
        model: model.id.clone(),
        cause: format!("title-{session}"),
        usage: completion.usage,
        cost_usd: model.price.map(|price| price.cost(&completion.usage)),
    };
    let texts = completion.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    let title = Some(text).filter(|text| !text.trim().is_empty());
    Some((title.map(|text| one_line(&text)), booking))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-6: the title comes from the user's text, whatever a front end adds around it.
    #[test]
    fn the_title_is_the_users() {
        let parts = vec![
            Part::context(windlass_core::message::FragmentSource::Environment, "x"),
            Part::text("Fix the bug"),
            Part::text("Answer as JSON"),
        ];
        let message = Message::new(&"s".into(), Role::User, parts, windlass_core::clock::Timestamp(1));
        assert_eq!(prompt(&message), "Fix the bug");
    }

    /// SES-6: a title is one line of at most 50 characters.
    #[test]
    fn titles_are_short() {
        let long = "word ".repeat(30);
        for (text, title) in [
            ("Fix the bug", "Fix the bug"),
            ("\n\n  two\nlines", "two"),
            ("a\u{1b}[2Jb", "a [2Jb"),
            ("", "untitled"),
        ] {
            assert_eq!(one_line(text), title);
        }
        let cut = one_line(&long);
        assert!(cut.chars().count() <= LONGEST && cut.ends_with("word…"), "{cut}");
        assert!(one_line(&"ä".repeat(200)).chars().count() <= LONGEST);
    }
}
