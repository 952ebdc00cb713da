//! Completion of command lines.

use windlass_core::log::SessionQuery;
use windlass_core::permission::Mode;

use super::{CommandContext, find};
use crate::format::short;

/// Maximum number of sessions offered.
const SESSIONS: usize = 20;

/// Possible values of a command's first argument.
pub(super) enum Complete {
    Nothing,
    Words(&'static [&'static str]),
    Commands,
    Providers,
    Models,
    Modes,
    /// A verb, and for some verbs a session after it.
    Session,
}

/// The verbs of `/session`.
const VERBS: &[&str] = &[
    "show", "list", "new", "resume", "name", "fork", "delete", "export", "search", "move",
];

impl CommandContext<'_> {
    /// Returns the lines that an incomplete line may become.
    pub(crate) async fn complete(&mut self, line: &str) -> Vec<String> {
        let Some(typed) = line.strip_prefix('/') else {
            return Vec::new();
        };
        let Some((name, arguments)) = typed.split_once(char::is_whitespace) else {
            return self.names(typed, "/");
        };
        let Some(command) = find(name) else {
            return Vec::new();
        };
        let (before, last) = match arguments.rsplit_once(char::is_whitespace) {
            Some((before, last)) => (before.trim(), last),
            None => ("", arguments),
        };
        let head = match before {
            "" => format!("/{name} "),
            before => format!("/{name} {before} "),
        };
        let words: Vec<String> = match (&command.complete, before) {
            (Complete::Words(words), "") => words.iter().map(|word| (*word).to_owned()).collect(),
            (Complete::Commands, "") => return self.names(last, &head),
            (Complete::Providers, "") => {
                let providers = self.env.models().list();
                providers.into_iter().map(|choice| choice.provider).collect()
            }
            (Complete::Models, "") => self.env.models().choices(),
            (Complete::Modes, "") => Mode::ALL.iter().map(|mode| mode.name().to_owned()).collect(),
            (Complete::Session, "") => VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
            (Complete::Session, "resume" | "delete" | "show") => self.sessions().await,
            _ => Vec::new(),
        };
        let fits = words
            .into_iter()
            .filter(|word| word.starts_with(last) && word != last);
        fits.map(|word| format!("{head}{word}")).collect()
    }

    fn names(&mut self, typed: &str, head: &str) -> Vec<String> {
        let all = self.catalog().into_iter();
        let names = all.flat_map(|info| std::iter::once(info.name).chain(info.aliases));
        let fits = names.filter(|name| name.starts_with(typed) && name != typed);
        fits.map(|name| format!("{head}{name}")).collect()
    }

    /// Returns the sessions of this folder, by name if they have one.
    async fn sessions(&self) -> Vec<String> {
        let query = SessionQuery {
            user: Some(self.info.user.clone()),
            place: Some(self.info.place.clone()),
            limit: SESSIONS,
            ..SessionQuery::default()
        };
        let found = self.store().list(&query).await.unwrap_or_default();
        let name = |info: &windlass_api::SessionInfo| info.label.name.clone().unwrap_or_else(|| short(info));
        found.iter().map(name).collect()
    }
}
