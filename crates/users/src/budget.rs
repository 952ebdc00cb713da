//! Limits of a user per day.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, stream};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::hook::{Hook, TurnHook};
use windlass_core::log::{AuditRecord, LogError, SpentBy, Store, UserName};
use windlass_core::middleware::{IterationView, Verdict};
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderError, ProviderErrorKind, ProviderEvent, Request};
use windlass_core::tool::ToolSpec;

use crate::audit::Auditor;

/// Purpose of the calls that count as turns.
const TURN: &str = "turn";

/// Limits per day.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetLimits {
    /// Maximum cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Maximum number of tokens.
    pub tokens: Option<u64>,
    /// Maximum number of requests of turns.
    pub turns: Option<u64>,
}

impl BudgetLimits {
    /// Returns true if there is a limit.
    pub fn is_limited(&self) -> bool {
        self.cost_usd.is_some() || self.tokens.is_some() || self.turns.is_some()
    }
}

/// Error of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone; write a name such as `Europe/Berlin`")]
pub struct ZoneError(String);

/// Finds a time zone by its name.
///
/// # Errors
/// When there is none.
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    match name {
        "UTC" => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_| ZoneError(name.to_owned())),
    }
}

/// Amounts that a user has spent today, with the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetLeft {
    /// The limits.
    pub limits: BudgetLimits,
    /// Cost of today in US dollars.
    pub cost_usd: f64,
    /// Tokens of today.
    pub tokens: u64,
    /// Requests of turns of today.
    pub turns: u64,
    /// Start of the next day.
    pub until: Timestamp,
    /// The start of the next day, for people.
    pub until_text: String,
}

impl BudgetLeft {
    /// Returns the limits that are reached, for people; `None` if there is none.
    pub fn used_up(&self) -> Option<String> {
        let Self { limits, .. } = self;
        let mut reached = Vec::new();
        if let Some(most) = limits.cost_usd.filter(|most| self.cost_usd >= *most) {
            reached.push(format!("${:.4} of ${most:.2} spent", self.cost_usd));
        }
        if let Some(most) = limits.tokens.filter(|most| self.tokens >= *most) {
            reached.push(format!("{} of {most} tokens used", self.tokens));
        }
        if let Some(most) = limits.turns.filter(|most| self.turns >= *most) {
            reached.push(format!("{} of {most} requests made", self.turns));
        }
        (!reached.is_empty()).then(|| {
            format!(
                "The limit of today is reached: {}. It starts again at {}.",
                reached.join(", "),
                self.until_text
            )
        })
    }
}

/// The rest of the day, on one line.
impl fmt::Display for BudgetLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, .. } = self;
        let mut parts = Vec::new();
        if let Some(most) = limits.cost_usd {
            let left = (most - self.cost_usd).max(0.0);
            parts.push(format!("${left:.4} of ${most:.2}"));
        }
        if let Some(most) = limits.tokens {
            parts.push(format!("{} of {most} tokens", most.saturating_sub(self.tokens)));
        }
        if let Some(most) = limits.turns {
            parts.push(format!("{} of {most} requests", most.saturating_sub(self.turns)));
        }
        write!(f, "{} left until {}", parts.join(", "), self.until_text)
    }
}

/// The limits of a user, and the parts that count against them.
#[derive(Clone)]
pub struct DailyBudget {
    /// Counts what was spent.
    pub store: Arc<dyn Store>,
    /// Says which day it is.
    pub clock: Arc<dyn Clock>,
    /// The user.
    pub user: UserName,
    /// The limits.
    pub limits: BudgetLimits,
    /// Zone in which a day starts.
    pub zone: TimeZone,
    /// Records refusals.
    pub auditor: Option<Auditor>,
}

impl DailyBudget {
    /// Returns the start of today and of tomorrow.
    fn day(&self) -> Option<(Timestamp, Timestamp, String)> {
        let now = i64::try_from(self.clock.now().0).ok()?;
        let now = jiff::Timestamp::from_millisecond(now)
            .ok()?
            .to_zoned(self.zone.clone());
        let start = now.start_of_day().ok()?;
        let end = now.tomorrow().ok()?.start_of_day().ok()?;
        let stamp =
            |time: &jiff::Zoned| Some(Timestamp(u64::try_from(time.timestamp().as_millisecond()).ok()?));
        let text = end.strftime("%Y-%m-%d %H:%M %Z").to_string();
        Some((stamp(&start)?, stamp(&end)?, text))
    }

    /// Returns what is left of today.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn left(&self) -> Result<BudgetLeft, LogError> {
        let day = self.day();
        let (since, until, until_text) =
            day.ok_or_else(|| LogError::Failed("the clock has no valid time".to_owned()))?;
        let spent = self.store.spent_by(&self.user, since, SpentBy::Cause).await?;
        let tokens = spent
            .iter()
            .map(|spent| spent.usage.total_input() + spent.usage.output);
        Ok(BudgetLeft {
            limits: self.limits,
            // An empty sum of fractions is -0.
            cost_usd: spent.iter().map(|spent| spent.cost_usd).sum::<f64>() + 0.0,
            tokens: tokens.sum(),
            turns: spent
                .iter()
                .filter(|spent| spent.of == TURN)
                .map(|spent| spent.calls)
                .sum(),
            until,
            until_text,
        })
    }

    /// Returns the reason no further call may be made today, with the numbers. A store that cannot be read allows none.
    pub async fn refusal(&self) -> Option<String> {
        let refused = match self.left().await {
            Ok(left) => left.used_up()?,
            Err(error) => return Some(format!("The limit of today cannot be checked: {error}")),
        };
        if let Some(auditor) = &self.auditor {
            let record = AuditRecord {
                user: self.user.clone(),
                front_end: "session".to_owned(),
                action: "budget_refused".to_owned(),
                detail: [("reason".to_owned(), json!(refused))].into_iter().collect(),
                ..AuditRecord::default()
            };
            // The call is refused either way.
            let _ = auditor.record(record).await;
        }
        Some(refused)
    }
}

/// Ends a turn before a request beyond the limits.
pub struct BudgetHook(pub DailyBudget);

impl Hook for BudgetHook {
    fn name(&self) -> &str {
        "daily budget"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for BudgetHook {
    async fn before_iteration(&self, _: IterationView<'_>) -> Verdict {
        match self.0.refusal().await {
            Some(reason) => Verdict::over_budget(reason),
            None => Verdict::proceed(),
        }
    }
}

/// Refuses every request of a provider beyond the limits: those of titles, summaries and judgements as well.
pub struct BudgetGate {
    inner: Arc<dyn Provider>,
    budget: DailyBudget,
}

impl BudgetGate {
    /// Puts the limits in front of a provider.
    pub fn new(inner: Arc<dyn Provider>, budget: DailyBudget) -> Self {
        Self { inner, budget }
    }
}

impl Provider for BudgetGate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn model(&self) -> &Model {
        self.inner.model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let (inner, budget) = (Arc::clone(&self.inner), self.budget.clone());
        let checked = async move {
            match budget.refusal().await {
                None => inner.stream(request),
                Some(reason) => {
                    let error = ProviderError::new(ProviderErrorKind::Quota, reason);
                    stream::once(std::future::ready(ProviderEvent::Error(error))).boxed()
                }
            }
        };
        checked.flatten_stream().boxed()
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.inner.convert_tools(tools)
    }

    fn layout(&self, request: &Request) -> Option<Layout> {
        self.inner.layout(request)
    }
}
