//! Status line: model, mode, context usage, cost, queue.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use windlass_api::{Event, Overview, SessionEvent, Waiting, dollars};

use crate::text::{cut, one_line, width};
use crate::theme::{Theme, Tone};

/// Width of the gauge's bar, in columns.
const BAR: u64 = 6;

/// Contents of the status line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// Mode of the running turn, if another one was chosen since it started.
    turn_mode: Option<String>,
    /// Context window of the model in tokens; 0 if unknown.
    pub(crate) window: u64,
    /// Tokens in the last request.
    pub(crate) used: u64,
    pub(crate) cost_usd: f64,
    pub(crate) queued: usize,
    pub(crate) goal: Option<String>,
    pub(crate) subgoal: Option<String>,
    compaction: Option<Compaction>,
    /// Time of the last event, for measuring compactions.
    last_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Compaction {
    before: u64,
    after: u64,
    took_ms: u64,
}

impl Status {
    /// Takes the state of a session.
    pub(crate) fn set(&mut self, overview: &Overview) {
        self.provider = one_line(&overview.provider);
        self.model = one_line(&overview.model);
        self.set_mode(one_line(&overview.mode), overview.is_busy);
        self.window = overview.window;
        self.used = overview.info.totals.context_tokens;
        self.cost_usd = overview.info.totals.cost_usd;
        self.queued = overview.queue.len();
        self.goal = overview.goal.as_deref().map(one_line);
        self.subgoal = overview.subgoal.as_deref().map(one_line);
    }

    /// Sets the mode. A running turn keeps its own.
    pub(crate) fn set_mode(&mut self, mode: String, is_busy: bool) {
        let before = std::mem::replace(&mut self.mode, mode);
        if is_busy && !before.is_empty() && before != self.mode {
            self.turn_mode.get_or_insert(before);
        }
    }

    /// Applies an event.
    pub(crate) fn hear(&mut self, event: &Event, now_ms: u64) {
        let since = std::mem::replace(&mut self.last_ms, now_ms);
        match event {
            Event::Start { provider, model } => {
                self.provider = one_line(provider);
                self.model = one_line(model);
            }
            Event::Usage {
                usage,
                cost_usd,
                cause,
            } => {
                self.cost_usd += cost_usd.unwrap_or_default();
                if cause == "turn" {
                    self.used = usage.total_input().saturating_add(usage.output);
                }
            }
            Event::Session(SessionEvent::Agent(event)) => {
                let cost = event.usage().and_then(|(_, cost)| cost);
                self.cost_usd += cost.unwrap_or_default();
            }
            Event::Session(SessionEvent::Compaction { before, after, .. }) => {
                self.used = *after;
                self.compaction = Some(Compaction {
                    before: *before,
                    after: *after,
                    took_ms: now_ms.saturating_sub(since),
                });
            }
            // GOAL-1: a goal that is only the first message says nothing new.
            Event::Session(SessionEvent::Goal { text, explicit }) => {
                self.goal = text.as_deref().filter(|_| *explicit).map(one_line);
            }
            Event::Session(SessionEvent::GoalCompleted { .. }) => self.goal = None,
            Event::Waiting(Waiting::Queue { messages, .. }) => self.queued = messages.len(),
            event if event.is_terminal() => self.turn_mode = None,
            _ => {}
        }
    }

    /// Renders the context usage; `None` if the window is unknown.
    pub(crate) fn context_gauge(&self, theme: Theme) -> Option<Span<'static>> {
        if self.window == 0 {
            return None;
        }
        let hundredfold = self.used.saturating_mul(100);
        let percent = hundredfold / self.window;
        let tone = if hundredfold < self.window.saturating_mul(70) {
            Tone::Good
        } else if hundredfold <= self.window.saturating_mul(90) {
            Tone::Warn
        } else {
            Tone::Bad
        };
        let full = (percent * BAR).div_ceil(100).min(BAR);
        let (on, off) = (theme.sign("▰", "#"), theme.sign("▱", "-"));
        let count = |count: u64| usize::try_from(count).unwrap_or_default();
        let bar = on.repeat(count(full)) + &off.repeat(count(BAR - full));
        Some(Span::styled(format!("{bar} {percent}%"), theme.style(tone)))
    }

    /// Describes the last compaction; `None` before the first.
    pub(crate) fn compaction_badge(&self, theme: Theme) -> Option<String> {
        let Compaction {
            before,
            after,
            took_ms,
        } = self.compaction?;
        let arrow = theme.sign("→", "->");
        let thousands = |tokens: u64| (tokens + 500) / 1000;
        let saved = thousands(before).saturating_sub(thousands(after));
        #[allow(clippy::cast_precision_loss)]
        let elapsed = took_ms as f64 / 1000.0;
        Some(format!(
            "{}k{arrow}{}k (-{saved}k) {elapsed:.1}s",
            thousands(before),
            thousands(after)
        ))
    }

    /// Renders the line. If it does not fit, the least important parts are left out.
    pub(crate) fn line(&self, columns: usize, theme: Theme, extra: Option<&str>) -> Line<'static> {
        let dim = theme.style(Tone::Dim);
        let mut pieces: Vec<(u8, Vec<Span<'static>>)> = Vec::new();
        let mut put = |rank: u8, spans: Vec<Span<'static>>| pieces.push((rank, spans));
        if let Some(extra) = extra {
            put(0, vec![Span::styled(extra.to_owned(), theme.style(Tone::Accent))]);
        }
        put(1, vec![Span::styled(self.who(), dim)]);
        put(2, vec![self.mode_span(theme)]);
        if let Some(gauge) = self.context_gauge(theme) {
            put(3, vec![gauge]);
        }
        put(4, vec![Span::styled(dollars(self.cost_usd), dim)]);
        if self.queued > 0 {
            put(
                3,
                vec![Span::styled(
                    format!("{} queued", self.queued),
                    theme.style(Tone::Accent),
                )],
            );
        }
        if let Some(badge) = self.compaction_badge(theme) {
            put(5, vec![Span::styled(badge, dim)]);
        }
        if let Some(goal) = &self.goal {
            put(6, vec![Span::styled(format!("goal: {}", cut(goal, 40)), dim)]);
        }
        if let Some(subgoal) = &self.subgoal {
            put(7, vec![Span::styled(format!("now: {}", cut(subgoal, 40)), dim)]);
        }
        joined(pieces, columns, theme, dim)
    }

    fn who(&self) -> String {
        match (self.provider.as_str(), self.model.as_str()) {
            ("", "") => "no model: /connect".to_owned(),
            ("", model) => model.to_owned(),
            (provider, model) => format!("{provider}/{model}"),
        }
    }

    fn mode_span(&self, theme: Theme) -> Span<'static> {
        let tone = match self.mode.as_str() {
            "plan" => Tone::Accent,
            "full" => Tone::Bad,
            "auto" => Tone::Dim,
            _ => Tone::Warn,
        };
        let text = match &self.turn_mode {
            Some(now) if *now != self.mode => format!("{now} {} {}", theme.sign("→", "->"), self.mode),
            _ => self.mode.clone(),
        };
        Span::styled(text, theme.style(tone))
    }
}

/// Joins pieces into a line; those with the highest rank are dropped first.
fn joined(
    mut pieces: Vec<(u8, Vec<Span<'static>>)>,
    columns: usize,
    theme: Theme,
    dim: Style,
) -> Line<'static> {
    let separator = theme.sign(" · ", " | ");
    let wide = |spans: &[Span<'static>]| spans.iter().map(|span| width(&span.content)).sum::<usize>();
    let total = |pieces: &[(u8, Vec<Span<'static>>)]| {
        let all: usize = pieces.iter().map(|(_, spans)| wide(spans)).sum();
        2 + all + width(separator) * pieces.len().saturating_sub(1)
    };
    while pieces.len() > 1 && total(&pieces) > columns {
        let last = pieces.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
        let Some((index, _)) = last else { break };
        pieces.remove(index);
    }
    let mut spans = vec![Span::raw("  ")];
    for (index, (_, piece)) in pieces.into_iter().enumerate() {
        if index > 0 {
            spans.push(Span::styled(separator, dim));
        }
        spans.extend(piece);
    }
    let line = Line::from(spans);
    crate::text::wrap(&line, columns.max(1), "").swap_remove(0)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;

    fn gauge(used: u64, window: u64) -> Option<(String, Option<Color>)> {
        let status = Status {
            used,
            window,
            ..Status::default()
        };
        let span = status.context_gauge(Theme::default())?;
        Some((span.content.to_string(), span.style.fg))
    }

    /// UI-2: the gauge is green below 70 %, yellow to 90 %, red above, and hidden if the window is unknown.
    #[test]
    fn the_gauge_tells_how_full_the_context_is() {
        let cases = [
            (0, "▱▱▱▱▱▱ 0%", Color::Green),
            (69_999, "▰▰▰▰▰▱ 69%", Color::Green),
            (70_000, "▰▰▰▰▰▱ 70%", Color::Yellow),
            (90_000, "▰▰▰▰▰▰ 90%", Color::Yellow),
            (90_001, "▰▰▰▰▰▰ 90%", Color::Red),
            (150_000, "▰▰▰▰▰▰ 150%", Color::Red),
        ];
        for (used, text, color) in cases {
            assert_eq!(gauge(used, 100_000), Some((text.to_owned(), Some(color))));
        }
        assert_eq!(gauge(5, 0), None);
    }

    /// UI-2: the badge is hidden until the first compaction, and then shows the savings and the duration.
    #[test]
    fn the_badge_tells_what_a_compaction_saved() {
        let mut status = Status::default();
        assert_eq!(status.compaction_badge(Theme::default()), None);
        status.hear(&Event::Status { text: String::new() }, 1_000);
        let compaction = SessionEvent::Compaction {
            before: 48_200,
            after: 11_900,
            history: Vec::new(),
            fidelity: None,
        };
        status.hear(&Event::Session(compaction), 2_300);
        assert_eq!(
            status.compaction_badge(Theme::default()).as_deref(),
            Some("48k→12k (-36k) 1.3s")
        );
    }

    /// GOAL-1, UI-2: a goal that a command set appears with its event, and disappears when it is reached or cleared.
    #[test]
    fn the_goal_is_heard() {
        let mut status = Status::default();
        let goal = |text: Option<&str>| SessionEvent::Goal {
            text: text.map(str::to_owned),
            explicit: true,
        };
        let message = SessionEvent::Goal {
            text: Some("first message".to_owned()),
            explicit: false,
        };
        let reached = || SessionEvent::GoalCompleted {
            text: "a\nb".to_owned(),
            how: windlass_api::GoalCompletion::Phrase,
        };
        for (event, expected) in [
            (goal(Some("a\nb")), Some("a b")),
            (reached(), None),
            (goal(Some("c")), Some("c")),
            (goal(None), None),
            (message, None),
        ] {
            status.hear(&Event::Session(event), 0);
            assert_eq!(status.goal.as_deref(), expected);
        }
    }

    /// UI-2: a narrow terminal drops the least important parts first; nothing is wider than the terminal.
    #[test]
    fn the_line_fits() {
        let status = Status {
            provider: "anthropic".to_owned(),
            model: "claude".to_owned(),
            mode: "plan".to_owned(),
            window: 100,
            used: 50,
            cost_usd: 0.5,
            queued: 2,
            goal: Some("ship it".to_owned()),
            ..Status::default()
        };
        let text = |columns| status.line(columns, Theme::default(), None).to_string();
        assert_eq!(
            text(100),
            "  anthropic/claude · plan · ▰▰▰▱▱▱ 50% · $0.5000 · 2 queued · goal: ship it"
        );
        assert_eq!(text(50), "  anthropic/claude · plan · ▰▰▰▱▱▱ 50% · 2 queued");
        for columns in 1..100 {
            assert!(width(&text(columns)) <= columns, "{columns}");
        }
    }
}
