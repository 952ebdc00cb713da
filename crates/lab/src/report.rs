//! Results of all strategies, side by side.

use std::fmt::Write;

use serde::Serialize;
use windlass_api::Usage;
use windlass_core::compact::Strategy;
use windlass_core::model::Price;
use windlass_core::text::grouped;

use super::{Experiment, Facts, Session, Side, StrategyOutcome, simulate};

/// Results of sessions run through every strategy.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Names of the sessions.
    pub sessions: Vec<String>,
    /// Number of tool calls in the sessions.
    pub calls: u64,
    /// Model whose prices apply.
    pub model: String,
    /// Size of the window in tokens.
    pub window: u64,
    /// One row per strategy.
    pub strategies: Vec<ReportRow>,
    /// Outcome of each strategy for the first session, for a plot.
    #[serde(skip)]
    pub first: Vec<StrategyOutcome>,
}

/// Result of one strategy over all sessions.
#[derive(Debug, Clone, Serialize)]
pub struct ReportRow {
    /// The strategy.
    pub strategy: &'static str,
    /// Tokens of all requests, including those of the strategy itself.
    pub input_tokens: u64,
    /// Share of tokens saved compared with no strategy, from 0 to 1.
    pub saved: f64,
    /// Cost in US dollars; `None` for a model without prices.
    pub cost_usd: Option<f64>,
    /// Share of bytes that were also at the start of the previous request, from 0 to 1.
    pub cache_reuse: f64,
    /// Availability of facts.
    pub facts: Facts,
    /// Number of model calls, including those of the strategy itself.
    pub requests: u64,
    /// Model calls of the strategy itself.
    pub side: Side,
    /// Number of compactions.
    pub compactions: u64,
    /// Number of requests larger than the window, which a provider would refuse.
    pub too_large: u64,
}

impl Report {
    /// Runs sessions through every strategy.
    pub async fn new(sessions: &[Session], setup: &Experiment) -> Self {
        let mut strategies: Vec<ReportRow> = Vec::new();
        let mut first = Vec::new();
        for strategy in Strategy::ALL {
            let mut outcomes = Vec::new();
            for session in sessions {
                outcomes.push(simulate(session, strategy, setup).await);
            }
            let mut row = ReportRow::new(strategy, &outcomes, setup);
            let none = strategies
                .first()
                .map_or(row.input_tokens, |none| none.input_tokens);
            row.saved = 1.0 - ratio(row.input_tokens, none);
            strategies.push(row);
            first.extend(outcomes.into_iter().next());
        }
        let calls = sessions.iter().flat_map(|session| &session.messages);
        Self {
            sessions: sessions.iter().map(|session| session.name.clone()).collect(),
            calls: calls.map(|message| message.calls().count() as u64).sum(),
            model: setup.model.id.clone(),
            window: setup.model.context_window,
            strategies,
            first,
        }
    }

    /// Formats the report as a table for people.
    pub fn table(&self) -> String {
        let sessions = match self.sessions.as_slice() {
            [one] => one.clone(),
            many => format!("{} sessions", many.len()),
        };
        let mut text = format!(
            "{sessions}, {} tool calls; a window of {} tokens; prices of {}\n\n",
            grouped(self.calls),
            grouped(self.window),
            self.model
        );
        text.push_str(
            "strategy     input tokens   saved      cost   reuse      said  in sight     found  readable  requests  compactions\n",
        );
        for row in &self.strategies {
            let cost = row
                .cost_usd
                .map_or_else(|| "?".to_owned(), |cost| format!("${cost:.2}"));
            let facts = &row.facts;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{:<12} {:>12} {:>7} {cost:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}",
                row.strategy,
                grouped(row.input_tokens),
                percent(row.saved),
                percent(row.cache_reuse),
                known(facts.said_in_sight, facts.said),
                known(facts.shown_in_sight, facts.shown),
                known(facts.shown_in_sight + facts.found, facts.shown),
                known(facts.readable, facts.shown),
                grouped(row.requests),
                row.compactions,
            );
        }
        text.push_str(&self.notes());
        text
    }

    /// Returns notes that explain the numbers.
    fn notes(&self) -> String {
        let mut text = String::new();
        if let Some(Facts { said, shown, .. }) = self.strategies.first().map(|row| row.facts) {
            let _ = write!(
                text,
                "\nfacts: {} from the user or the open todo item, {} from outputs.",
                grouped(said),
                grouped(shown)
            );
        }
        for row in self.strategies.iter().filter(|row| row.too_large > 0) {
            let _ = write!(
                text,
                "\n{}: {} of {} requests are larger than the window; a provider would refuse them.",
                row.strategy,
                grouped(row.too_large),
                grouped(row.requests)
            );
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

impl ReportRow {
    fn new(strategy: Strategy, outcomes: &[StrategyOutcome], setup: &Experiment) -> Self {
        let window = setup.model.context_window;
        let (mut usage, mut facts, mut side) = (Usage::default(), Facts::default(), Side::default());
        let (mut bytes, mut reused, mut compactions, mut own, mut too_large) = (0, 0, 0, 0, 0);
        for outcome in outcomes {
            usage.add(&outcome.usage);
            facts.add(&outcome.facts);
            side.requests += outcome.side.requests;
            side.input += outcome.side.input;
            side.output += outcome.side.output;
            bytes += outcome.bytes;
            reused += outcome.reused;
            compactions += outcome.compactions;
            own += outcome.requests.len() as u64;
            too_large += outcome
                .requests
                .iter()
                .filter(|sent| sent.tokens > window)
                .count() as u64;
        }
        Self {
            strategy: strategy.name(),
            input_tokens: usage.total_input(),
            saved: 0.0,
            cost_usd: setup.model.price.map(|price| cost(&price, &usage)),
            cache_reuse: ratio(reused, bytes),
            facts,
            requests: own + side.requests,
            side,
            compactions,
            too_large,
        }
    }
}

/// Computes the cost. Providers that do not charge for cache writes have no price for them; the input price
/// applies.
pub(super) fn cost(price: &Price, usage: &Usage) -> f64 {
    let filling = if price.cache_write > 0.0 {
        price.cache_write
    } else {
        price.input
    };
    let price = Price {
        cache_write: filling,
        ..*price
    };
    price.cost(usage)
}

#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Formats a share of facts, or `-` if there are none.
fn known(count: u64, needed: u64) -> String {
    match needed {
        0 => "-".to_owned(),
        needed => percent(ratio(count, needed)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
