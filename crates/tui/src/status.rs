//! Status line: model, mode, context usage, cost, queue.

use ratatui::text::{Line, Span};
use windlass_api::{Event, Overview, SessionEvent, Waiting, dollars_or_more};

use crate::text::{cut, cut_middle, one_line, width};
use crate::theme::{Theme, Tone};

/// Width of the gauge's bar, in columns.
const BAR: u64 = 6;
/// Highest rank of the pieces for which the model is shortened first.
const NEEDED: u8 = 4;
/// Maximum and minimum width of a shortened model.
const SHORT_MODEL: usize = 20;
const LEAST_MODEL: usize = 8;

/// A part of the line; of those that do not fit, the ones with the highest rank are left out.
type Piece = (u8, Vec<Span<'static>>);

/// Contents of the status line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// Folder and branch of the session.
    pub(crate) place: Place,
    /// Mode of the running turn, if another one was chosen since it started.
    turn_mode: Option<String>,
    /// Context window of the model in tokens; 0 if unknown.
    pub(crate) window: u64,
    /// Tokens in the last request.
    pub(crate) used: u64,
    pub(crate) cost: Cost,
    pub(crate) queued: usize,
    pub(crate) goal: Option<String>,
    pub(crate) subgoal: Option<String>,
    compactions: Compactions,
}

/// Cost of the session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) usd: f64,
    /// True if the price of a call is not known.
    pub(crate) is_unpriced: bool,
}

/// Folder and branch, as they are shown, and the reasoning effort.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) effort: String,
    /// EXT-1: files with instructions that the model reads.
    pub(crate) instructions: Vec<String>,
}

/// Compactions of the session.
#[derive(Debug, Clone, Copy, Default)]
struct Compactions {
    last: Option<Compaction>,
    /// Time of the last event, for measuring them.
    heard_ms: u64,
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
        self.cost = Cost {
            usd: overview.info.totals.cost_usd,
            is_unpriced: overview.info.totals.unpriced,
        };
        self.queued = overview.queue.len();
        self.place.branch = overview.surroundings.branch.as_deref().map(one_line);
        self.place.instructions = overview
            .surroundings
            .instructions
            .iter()
            .map(|name| one_line(name))
            .collect();
        self.place.effort = one_line(&overview.effort);
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
        let since = std::mem::replace(&mut self.compactions.heard_ms, now_ms);
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
                self.cost.usd += cost_usd.unwrap_or_default();
                self.cost.is_unpriced |= cost_usd.is_none();
                if cause == "turn" {
                    self.used = usage.total_input().saturating_add(usage.output);
                }
            }
            Event::Session(SessionEvent::Agent(event)) => {
                let cost = event.usage().and_then(|(_, cost)| cost);
                self.cost.usd += cost.unwrap_or_default();
            }
            Event::Session(SessionEvent::Compaction { before, after, .. }) => {
                self.used = *after;
                self.compactions.last = Some(Compaction {
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
        } = self.compactions.last?;
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

    /// Renders the line. If it does not fit, the model is shortened, and then the least important parts are left
    /// out.
    pub(crate) fn line(&self, columns: usize, theme: Theme, extra: Option<&str>) -> Line<'static> {
        let needed = |pieces: &[Piece]| pieces.iter().filter(|(rank, _)| *rank <= NEEDED).count();
        let whole = self.pieces(self.who(), theme, extra);
        let all = needed(&whole);
        let whole = fitting(whole, columns, theme);
        let pieces = if needed(&whole) == all {
            whole
        } else {
            let mut others = self.pieces(String::new(), theme, extra);
            others.retain(|(rank, _)| *rank <= NEEDED);
            let room = columns.saturating_sub(total(&others, theme));
            let short = cut_middle(
                self.model.rsplit('/').next().unwrap_or_default(),
                room.clamp(LEAST_MODEL, SHORT_MODEL),
            );
            fitting(self.pieces(short, theme, extra), columns, theme)
        };
        joined(pieces, columns, theme)
    }

    fn pieces(&self, who: String, theme: Theme, extra: Option<&str>) -> Vec<Piece> {
        let dim = theme.style(Tone::Dim);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut put = |rank: u8, spans: Vec<Span<'static>>| pieces.push((rank, spans));
        if let Some(extra) = extra {
            put(0, vec![Span::styled(extra.to_owned(), theme.style(Tone::Accent))]);
        }
        put(1, vec![Span::styled(who, dim)]);
        put(2, vec![self.mode_span(theme)]);
        if let Some(gauge) = self.context_gauge(theme) {
            put(3, vec![gauge]);
        }
        let cost = dollars_or_more(self.cost.usd, self.cost.is_unpriced);
        put(4, vec![Span::styled(cost, dim)]);
        if self.queued > 0 {
            put(
                3,
                vec![Span::styled(
                    format!("{} queued", self.queued),
                    theme.style(Tone::Accent),
                )],
            );
        }
        let Place { folder, branch, .. } = &self.place;
        if !folder.is_empty() {
            let name = match branch {
                Some(branch) => format!("{} ({})", cut_middle(folder, 30), cut_middle(branch, 24)),
                None => cut_middle(folder, 30),
            };
            put(5, vec![Span::styled(name, dim)]);
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
        pieces
    }

    pub(crate) fn who(&self) -> String {
        match (self.provider.as_str(), self.model.as_str()) {
            ("", "") => "no model: /connect".to_owned(),
            ("", model) => model.to_owned(),
            (provider, model) => match self.place.effort.as_str() {
                "" | "off" => format!("{provider}/{model}"),
                effort => format!("{provider}/{model} {effort}"),
            },
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

/// Leaves out pieces until the others fit.
fn fitting(mut pieces: Vec<Piece>, columns: usize, theme: Theme) -> Vec<Piece> {
    while pieces.len() > 1 && total(&pieces, theme) > columns {
        let last = pieces.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
        let Some((index, _)) = last else { break };
        pieces.remove(index);
    }
    pieces
}

/// Width of the pieces as a line.
fn total(pieces: &[Piece], theme: Theme) -> usize {
    let separators = width(theme.sign(" · ", " | ")) * pieces.len().saturating_sub(1);
    let spans = pieces.iter().flat_map(|(_, spans)| spans);
    2 + separators + spans.map(|span| width(&span.content)).sum::<usize>()
}

/// Joins pieces into a line.
fn joined(pieces: Vec<Piece>, columns: usize, theme: Theme) -> Line<'static> {
    let separator = theme.sign(" · ", " | ");
    let dim = theme.style(Tone::Dim);
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
#[path = "status_tests.rs"]
mod tests;
