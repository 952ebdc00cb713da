//! Commands of the terminal UI itself, the screens they open, and the actions of those screens.

use ratatui::text::{Line, Span};
use windlass_api::{Begin, CommandInfo, CommandSource, SessionId, command_line};
use windlass_core::text::count;

use super::{App, Effect};
use crate::overlay::{OverlayAction, Pager, Picker, Row, Secret, Step, Subject};
use crate::theme::{Palette, Tone};

/// Commands of the terminal UI: name, arguments, help.
#[rustfmt::skip]
const LOCAL: &[(&str, &str, &str)] = &[
    ("copy",       "[code]",   "Copy the last answer as Markdown, or its last code block"),
    ("full",       "",         "Toggle full screen"),
    ("keys",       "",         "List the key bindings"),
    ("resume",     "[S]",      "Choose a session to resume"),
    ("theme",      "[NAME]",   "Choose the colours: terminal, dark, light, none"),
    ("vim",        "[on|off]", "Turn vim keys on or off"),
];

/// Commands whose output opens in a pager.
const READ: &[&str] = &[
    "changes",
    "context",
    "cost",
    "diff",
    "export",
    "help",
    "permissions",
    "tools",
    "usage",
];
/// Reasoning efforts, and what they mean.
const EFFORTS: [(&str, &str); 4] = [
    ("off", "no reasoning: the fastest and cheapest answers"),
    ("low", "a little, for everyday work"),
    ("medium", "more, for work with several steps"),
    ("high", "the most, for hard problems: slow and expensive"),
];

/// Returns true for a command that only the terminal UI has.
pub fn is_local_command(name: &str) -> bool {
    LOCAL.iter().any(|(local, ..)| local.eq_ignore_ascii_case(name))
}

/// Commands of the terminal UI, for help and menus.
pub(super) fn local() -> impl Iterator<Item = CommandInfo> {
    LOCAL.iter().map(|(name, arguments, help)| CommandInfo {
        name: (*name).to_owned(),
        aliases: Vec::new(),
        arguments: (*arguments).to_owned(),
        help: (*help).to_owned(),
        source: CommandSource::BuiltIn,
    })
}

/// Formats these commands for `/help`.
pub(super) fn help() -> String {
    let line = |command: CommandInfo| {
        let name = format!("/{} {}", command.name, command.arguments);
        format!("\n  {:<24} {}", name.trim_end(), command.help)
    };
    let lines: String = local().map(line).collect();
    format!("\n\nIn this terminal{lines}")
}

/// True if the output of a command opens in a pager.
pub(super) fn is_read(line: &str) -> bool {
    let looks = |arguments: &str| {
        ["list", "show", "types"]
            .iter()
            .any(|word| arguments.starts_with(word))
    };
    command_line(line).is_some_and(|line| {
        let name = line.name.to_ascii_lowercase();
        // An export to a file says only where it is.
        let is_written = name == "export" && !line.arguments.is_empty();
        (READ.contains(&&*name) && !is_written) || (name == "agents" && looks(line.arguments))
    })
}

/// True if the output of a command is a diff.
pub(super) fn is_diff(line: &str) -> bool {
    command_line(line).is_some_and(|line| {
        ["diff", "changes"]
            .iter()
            .any(|name| line.name.eq_ignore_ascii_case(name))
    })
}

impl App {
    /// Runs a command line.
    pub(super) fn run_command(&mut self, line: &str) {
        let Some(parsed) = command_line(line) else { return };
        match (&*parsed.name.to_ascii_lowercase(), parsed.arguments) {
            ("copy", arguments) => self.copy(arguments),
            ("full", "") => self.set_full(!self.view.is_full),
            ("keys", "") => self.show_keys(),
            ("resume" | "session" | "sessions", "") => {
                self.overlay = Some(Box::new(Picker::loading(Subject::Sessions)));
                self.seek("");
            }
            ("resume", session) => self
                .jobs
                .command(&self.session.info.id, &format!("/session resume {session}")),
            ("checkpoint" | "checkpoints", "") => {
                self.overlay = Some(Box::new(Picker::loading(Subject::Checkpoints)));
                self.jobs.checkpoints(&self.session.info.id);
            }
            ("agents", "") => {
                self.overlay = Some(Box::new(Picker::loading(Subject::Agents)));
                self.caches.shows_agents = true;
                self.jobs.agents(&self.session.info.id);
            }
            ("rewind", "") => self.show_messages(),
            ("model" | "models", "") => {
                self.overlay = Some(Box::new(Picker::loading(Subject::Models)));
                self.jobs
                    .choices(&self.session.info.id, Subject::Models, "/model ");
            }
            ("effort", "") => self.show_efforts(),
            ("theme", name) => self.theme(name),
            ("vim", word) => self.vim(word),
            ("connect", name) => self.connect(name),
            _ => self.jobs.command(&self.session.info.id, line),
        }
    }

    fn copy(&mut self, what: &str) {
        let answer = self.transcript.last_answer();
        let text = match what {
            "" => Some(answer.to_owned()),
            "code" => last_code(answer),
            _ => {
                self.tell(Tone::Warn, "usage: /copy or /copy code");
                return;
            }
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                let copied = count(text.chars().count(), "character");
                self.effect(Effect::Copy(text));
                self.tell(Tone::Dim, &format!("{copied} copied."));
            }
            None => self.tell(Tone::Warn, "There is nothing to copy yet."),
        }
    }

    fn theme(&mut self, name: &str) {
        if name.is_empty() {
            let row = |palette: Palette| Row {
                key: palette.name().to_owned(),
                text: palette.name().to_owned(),
                detail: match palette {
                    Palette::Terminal => "follows the terminal's own colours".to_owned(),
                    Palette::Dark => "for a dark background".to_owned(),
                    Palette::Light => "for a light background".to_owned(),
                    Palette::None => "no colour".to_owned(),
                },
                ..Row::default()
            };
            let rows = Palette::ALL.into_iter().map(row).collect();
            let picker = Picker::new(Subject::Themes, rows)
                .at(self.view.theme.palette.name())
                .in_colours(!self.view.surface.no_color);
            self.overlay = Some(Box::new(picker));
            return;
        }
        match Palette::named(name) {
            Some(palette) => {
                if self.view.surface.no_color && palette != Palette::None {
                    self.tell(
                        Tone::Warn,
                        "NO_COLOR is set, so there are no colours; the choice applies without it.",
                    );
                    self.jobs.ports.desktop.choose("theme", palette.name());
                    return;
                }
                self.view.theme.palette = palette;
                self.jobs.ports.desktop.choose("theme", palette.name());
                self.transcript.forget_lines();
                self.effect(Effect::Redraw);
            }
            None => self.tell(
                Tone::Warn,
                &format!("unknown theme {name}; choose terminal, dark, light or none"),
            ),
        }
    }

    fn vim(&mut self, word: &str) {
        let on = match word {
            "on" => true,
            "off" => false,
            "" => self.composer.vim_mode().is_none(),
            _ => return self.tell(Tone::Warn, "usage: /vim, /vim on or /vim off"),
        };
        self.composer.set_vim(on);
        self.jobs
            .ports
            .desktop
            .choose("vim", if on { "on" } else { "off" });
        self.tell(
            Tone::Dim,
            if on {
                "vim keys are on."
            } else {
                "vim keys are off."
            },
        );
    }

    /// Sets up a model: lists the providers, or asks for a provider's key.
    fn connect(&mut self, words: &str) {
        let name = words.split_whitespace().next().unwrap_or_default();
        let offers = self.jobs.ports.connections.offers(&self.session.info.id);
        if name.is_empty() {
            let row = |offer: &windlass_api::Offer| {
                let state = match (offer.is_ready, offer.needs_key) {
                    (true, _) => "ready",
                    (false, true) => "needs a key",
                    (false, false) => "your own server",
                };
                let model = match offer.model.as_str() {
                    "" => String::new(),
                    model => format!(" · {model}"),
                };
                Row {
                    key: offer.name.clone(),
                    text: offer.name.clone(),
                    detail: format!("{state}{model}"),
                    ..Row::default()
                }
            };
            let rows = offers.iter().map(row).collect();
            self.overlay = Some(Box::new(Picker::new(Subject::Providers, rows)));
            return;
        }
        match offers.iter().find(|offer| offer.name == name) {
            Some(offer) if offer.needs_key && !offer.is_ready => {
                self.overlay = Some(Box::new(Secret::new(&offer.name, &offer.hint)));
            }
            Some(offer) if offer.is_ready => {
                self.jobs
                    .command(&self.session.info.id, &format!("/provider {}", offer.name));
            }
            Some(offer) => {
                self.jobs
                    .connect(&self.session.info.id, offer.name.clone(), String::new());
            }
            None => self.tell(
                Tone::Warn,
                &format!("unknown provider {name}; /connect lists them all"),
            ),
        }
    }

    pub(super) fn show_keys(&mut self) {
        let theme = self.view.theme;
        let line = |(key, help): (String, String)| {
            Line::from(vec![
                Span::styled(format!("{key:<32}"), theme.style(Tone::Accent)),
                Span::raw(help),
            ])
        };
        let mut lines: Vec<_> = self.input.keys.list().into_iter().map(line).collect();
        lines.push(Line::default());
        lines.push(Line::styled(
            "Change them with `tui.keys.<name> = \"ctrl+x\"` in the settings.",
            theme.style(Tone::Dim),
        ));
        self.overlay = Some(Box::new(Pager::new("Keys", lines)));
    }

    fn show_efforts(&mut self) {
        let row = |(name, meaning): (&str, &str)| Row {
            key: name.to_owned(),
            text: name.to_owned(),
            detail: meaning.to_owned(),
            ..Row::default()
        };
        let rows = EFFORTS.into_iter().map(row).collect();
        let picker = Picker::new(Subject::Efforts, rows).at(&self.session.status.place.effort);
        self.overlay = Some(Box::new(picker));
    }

    /// Lists the completions of a command: the models, the active one first.
    pub(super) fn choices(&mut self, subject: Subject, lines: &[String]) {
        let status = &self.session.status;
        let active = format!("{}/{}", status.provider, status.model);
        let row = |line: &String| {
            let name = line.trim_start_matches("/model ").to_owned();
            Row {
                detail: if name == active {
                    "in use".to_owned()
                } else {
                    String::new()
                },
                text: crate::text::one_line(&name),
                key: name,
                ..Row::default()
            }
        };
        let mut rows: Vec<Row> = lines.iter().map(row).collect();
        rows.sort_by_key(|row| row.key != active);
        if let Some(overlay) = &mut self.overlay {
            overlay.rows(subject, rows);
        }
    }

    pub(super) fn show_messages(&mut self) {
        self.overlay = Some(Box::new(Picker::loading(Subject::Messages)));
        self.jobs.messages(&self.session.info.id);
    }

    /// Applies the outcome of a key press in an overlay.
    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Stay => {}
            Step::Close => {
                self.overlay = None;
                self.caches.shows_agents = false;
            }
            Step::Do(action) => {
                self.overlay = None;
                self.caches.shows_agents = false;
                self.perform(action);
            }
            Step::Want(action) => self.perform(action),
        }
    }

    /// Starts a session search.
    fn seek(&mut self, words: &str) {
        words.clone_into(&mut self.caches.sought);
        self.jobs.sessions(words);
    }

    fn perform(&mut self, action: OverlayAction) {
        let session = self.session.info.id.clone();
        match action {
            OverlayAction::Find(_, words) => self.seek(&words),
            OverlayAction::Preview(subject, key) => self.look_at(subject, &key),
            OverlayAction::Connect { provider, key } => {
                self.tell(Tone::Dim, &format!("Testing the key for {provider}…"));
                self.jobs.connect(&session, provider, key.0);
            }
            // After switching, the running turn and its permission requests would be invisible.
            OverlayAction::Choose(Subject::Sessions, _)
            | OverlayAction::ChooseOther(Subject::Sessions, _)
                if self.session.is_busy =>
            {
                let key = self.input.keys.key(crate::keys::KeyAction::Stop);
                let text = format!("a turn is running: stop it with {key}, then choose again");
                self.tell(Tone::Warn, &text);
            }
            OverlayAction::Choose(Subject::Agents, key) if self.session.is_busy => {
                // The turn continues while the user looks: agents are read, not entered.
                self.jobs.command(&session, &format!("/agents show {key}"));
            }
            OverlayAction::ChooseOther(Subject::Agents, key) => {
                self.jobs.command(&session, &format!("/agents stop {key}"));
            }
            OverlayAction::Steer(key) => {
                let number = self.caches.agents.iter().find(|(id, _)| *id == key);
                let number = number.map_or(key.clone(), |(_, number)| number.to_string());
                self.composer
                    .write_again(&format!("/agents send {number} "), Vec::new());
            }
            OverlayAction::Choose(Subject::Sessions | Subject::Agents, key) => {
                self.jobs.begin(&session, Begin::Resume(SessionId::from(key)));
            }
            OverlayAction::ChooseOther(Subject::Sessions, key) => {
                let begin = Begin::Fork {
                    of: SessionId::from(key),
                    after: None,
                    id: None,
                    place: None,
                };
                self.jobs.begin(&session, begin);
            }
            OverlayAction::Choose(Subject::Checkpoints, key) => {
                self.jobs.command(&session, &format!("/checkpoint rewind {key}"));
            }
            OverlayAction::ChooseOther(Subject::Checkpoints, key) => {
                self.jobs
                    .command(&session, &format!("/checkpoint rewind {key} --conversation"));
            }
            OverlayAction::Choose(Subject::Messages, key) => {
                self.jobs.command(&session, &format!("/rewind {key}"));
            }
            OverlayAction::ChooseOther(Subject::Messages, key) => {
                self.jobs
                    .command(&session, &format!("/rewind {key} --keep-files"));
            }
            OverlayAction::Choose(Subject::Models, key)
            | OverlayAction::ChooseOther(Subject::Models, key) => {
                self.jobs.command(&session, &format!("/model {key}"));
            }
            OverlayAction::Choose(Subject::Efforts, key)
            | OverlayAction::ChooseOther(Subject::Efforts, key) => {
                self.jobs.command(&session, &format!("/effort {key}"));
            }
            OverlayAction::Choose(Subject::Themes, key)
            | OverlayAction::ChooseOther(Subject::Themes, key) => self.theme(&key),
            OverlayAction::Choose(Subject::Providers, key)
            | OverlayAction::ChooseOther(Subject::Providers, key) => {
                self.connect(&key);
            }
        }
    }

    /// Requests the preview of a row.
    pub(super) fn look_at(&mut self, subject: Subject, key: &str) {
        match subject {
            Subject::Sessions | Subject::Agents => {
                self.jobs.session_preview(SessionId::from(key.to_owned()));
            }
            Subject::Checkpoints => {
                if let Ok(number) = key.parse() {
                    self.jobs.changes(&self.session.info.id, number);
                }
            }
            Subject::Messages | Subject::Themes | Subject::Providers | Subject::Models | Subject::Efforts => {
            }
        }
    }
}

/// Returns the last fenced code block of a text.
fn last_code(text: &str) -> Option<String> {
    let mut last = None;
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut open, is_fence) {
            (None, true) => open = Some(Vec::new()),
            (Some(_), true) => last = open.take(),
            (Some(lines), false) => lines.push(line),
            (None, false) => {}
        }
    }
    last.or(open).map(|lines| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: the last code block can be copied without its fences.
    #[test]
    fn code_is_copied_without_fences() {
        let text = "one\n```rust\nfn a() {}\n```\ntwo\n```\nlast\n  line\n```\nend";
        assert_eq!(last_code(text).as_deref(), Some("last\n  line"));
        assert_eq!(last_code("```\nnever closed").as_deref(), Some("never closed"));
        assert_eq!(last_code("nothing"), None);
    }
}
