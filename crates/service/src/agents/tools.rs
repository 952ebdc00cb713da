//! SUB-2, SUB-7: the tools with which a model starts and directs sub-agents.

use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_api::SessionId;
use windlass_core::log::{AgentBudget, AgentQuery, AgentRow, AgentState};
use windlass_core::tool::{
    AnyTool, Category, Prepared, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, ToolTraits, erase,
};

use super::format::{agent_lines, report};
use super::start::{AgentRequest, NotStarted, resume, start, steer};
use super::watch::watch;
use super::{AgentCatalog, elsewhere};
use crate::format::cut;
use crate::{Inner, Service};

/// Tools whose results contain results of sub-agents.
pub(super) const DELIVERING: [&str; 3] = [Spawn::NAME, AgentWait::NAME, "skill"];

/// Longest time of a call that waits. Deadlines of sub-agents end it earlier.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Maximum number of types in the description of `agent`, and of characters of each.
const TYPES: usize = 30;
const TYPE: usize = 120;
/// Maximum number of agents named in an error.
const NAMED: usize = 20;
/// Default time of `agent_wait`, in seconds.
const WAIT: u64 = 600;

/// Creates the tools of one session.
pub(super) fn tools(
    inner: &Weak<Inner>,
    session: &SessionId,
    catalog: &AgentCatalog,
) -> Vec<Arc<dyn AnyTool>> {
    let children = || Children {
        inner: inner.clone(),
        session: session.clone(),
    };
    vec![
        described(erase(Spawn(children())), catalog),
        erase(AgentSend(children())),
        erase(AgentWait(children())),
        erase(AgentStop(children())),
        erase(AgentList(children())),
    ]
}

/// The sub-agents of a session.
struct Children {
    inner: Weak<Inner>,
    session: SessionId,
}

impl Children {
    fn service(&self) -> Result<Service, ToolError> {
        let inner = self.inner.upgrade();
        let inner = inner.ok_or_else(|| ToolError::Permanent("Windlass is being closed".to_owned()))?;
        Ok(Service::of(&inner))
    }

    async fn all(&self, service: &Service) -> Result<Vec<AgentRow>, ToolError> {
        self.listed(service, AgentQuery::Children).await
    }

    async fn listed(
        &self,
        service: &Service,
        query: fn(SessionId) -> AgentQuery,
    ) -> Result<Vec<AgentRow>, ToolError> {
        let rows = service.inner.store.agents(&query(self.session.clone())).await;
        rows.map_err(|error| ToolError::Permanent(error.to_string()))
    }

    async fn find(&self, service: &Service, named: &str) -> Result<AgentRow, ToolError> {
        let rows = self.all(service).await?;
        find(&rows, named).cloned().ok_or_else(|| unknown(&rows, named))
    }
}

/// Finds a sub-agent by number or name; the last one of that name.
pub(crate) fn find<'a>(rows: &'a [AgentRow], named: &str) -> Option<&'a AgentRow> {
    let named = named.trim();
    let number: Option<u32> = named.split_whitespace().next().and_then(|word| word.parse().ok());
    let by_number = |row: &&AgentRow| Some(row.family.number) == number;
    let by_name = |row: &&AgentRow| row.job.name == named || row.session.as_str() == named;
    rows.iter()
        .find(by_number)
        .or_else(|| rows.iter().rev().find(by_name))
}

fn unknown(rows: &[AgentRow], named: &str) -> ToolError {
    let more = rows.len().saturating_sub(NAMED);
    let known: Vec<String> = rows.iter().skip(more).map(AgentRow::title).collect();
    let known = match (known.is_empty(), more) {
        (true, _) => "this session has none".to_owned(),
        (false, 0) => format!("there are {}", known.join(", ")),
        (false, more) => format!("there are {more} older ones, {}", known.join(", ")),
    };
    ToolError::Invalid(format!(
        "`agent`: there is no agent `{named}` of this session; {known}"
    ))
}

/// Starts an agent with its own context; returns its answer. Calls in one reply run in parallel. Also: wake, deadline
/// (s), budget {tokens, cost_usd, turns}, isolation (worktree|none).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpawnInput {
    /// It sees nothing else.
    #[serde(alias = "prompt")]
    task: String,
    #[serde(rename = "type", alias = "subagent_type", default)]
    kind: Option<String>,
    #[serde(default, alias = "description")]
    name: Option<String>,
    /// Its answer comes later.
    #[serde(default, alias = "run_in_background")]
    background: Option<bool>,
    // These are in the description, which is shorter than their schema.
    #[serde(default)]
    #[schemars(skip)]
    wake: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    deadline: Option<u64>,
    #[serde(default)]
    #[schemars(skip)]
    budget: Option<BudgetInput>,
    #[serde(default)]
    #[schemars(skip)]
    isolation: Option<Isolation>,
}

/// Its share of what is left.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetInput {
    #[serde(default)]
    tokens: Option<u64>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    turns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Isolation {
    Worktree,
    None,
}

struct Spawn(Children);

impl Tool for Spawn {
    type Input = SpawnInput;
    const NAME: &'static str = "agent";

    /// Starting an agent changes nothing: its own calls are judged one by one.
    fn category(&self, _: &SpawnInput) -> Category {
        Category::Read
    }

    fn traits(&self) -> ToolTraits {
        waiting()
    }

    async fn run(&self, input: SpawnInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let service = self.0.service()?;
        let budget = input.budget.as_ref();
        let request = AgentRequest {
            kind: input.kind,
            task: input.task,
            name: input.name,
            background: input.background,
            wake: input.wake.unwrap_or_default(),
            asks: AgentBudget {
                tokens: budget.and_then(|budget| budget.tokens),
                cost_usd: budget.and_then(|budget| budget.cost_usd),
                turns: budget.and_then(|budget| budget.turns),
                seconds: input.deadline,
            },
            isolated: input.isolation.map(|isolation| isolation == Isolation::Worktree),
        };
        let call = (cx.call_id.clone(), &cx.cancel);
        let started = match start(&service, &self.0.session, call, request).await {
            Ok(started) => started,
            Err(NotStarted::Refused(why)) => return Err(ToolError::Permanent(why)),
            Err(NotStarted::Ended(row)) => return Ok(results(&[*row], "")),
        };
        let (row, left) = (started.watched.row.clone(), started.left);
        if row.job.background {
            let (followed, watched) = (service.clone(), started.watched);
            service.inner.tasks.spawn(async move {
                watch(&followed, watched, None).await;
            });
            let text = format!(
                "Started agent {} in the background. Its result will be delivered automatically; agent_wait waits for it. [{left}]",
                row.title()
            );
            let details = json!({ "agent": row.session, "number": row.family.number, "name": row.job.name });
            return Ok(ToolOutput::text(text).with_details(details));
        }
        let row = watch(&service, started.watched, Some(cx.cancel.clone())).await;
        let changes = super::format::changes(&service, &row).await;
        Ok(results(&[row], &format!("{changes}[{left}]")))
    }
}

/// Returns the results of sub-agents. The details mark them as delivered.
fn results(rows: &[AgentRow], tail: &str) -> ToolOutput {
    let (ended, active): (Vec<&AgentRow>, Vec<&AgentRow>) =
        rows.iter().partition(|row| !row.status.state.is_active());
    let mut text = String::new();
    for row in &ended {
        let report = match row.status.delivered {
            true => format!("[agent {}: its result was delivered before]", row.title()),
            false => report(row),
        };
        let _ = writeln!(text, "{report}");
    }
    for row in active {
        let _ = writeln!(text, "[agent {}: still {}]", row.title(), row.status.state);
    }
    text.push_str(tail);
    let new = ended.iter().filter(|row| !row.status.delivered);
    let delivered: Vec<&str> = new.clone().map(|row| row.session.as_str()).collect();
    let details = json!({
        "delivered": delivered,
        "agents": ended.iter().map(|row| json!({
            "number": row.family.number, "name": row.job.name, "state": row.status.state.name(),
        })).collect::<Vec<_>>(),
    });
    let mut output = ToolOutput::text(text.trim_end()).with_details(details);
    output.failed = new.clone().any(|row| row.status.state != AgentState::Done);
    output
}

fn waiting() -> ToolTraits {
    ToolTraits {
        timeout: Some(LONGEST),
        ..ToolTraits::default()
    }
}

/// Steers an agent, or continues one that has ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendInput {
    agent: String,
    message: String,
    #[serde(default)]
    #[schemars(skip)]
    wake: Option<bool>,
}

struct AgentSend(Children);

impl Tool for AgentSend {
    type Input = SendInput;
    const NAME: &'static str = "agent_send";

    fn category(&self, _: &SendInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: SendInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let service = self.0.service()?;
        if input.message.trim().is_empty() {
            return Err(ToolError::Invalid("`message`: the message is empty".to_owned()));
        }
        let row = self.0.find(&service, &input.agent).await?;
        let sent = steer(&service, &row, &input.message).await;
        if sent.map_err(ToolError::Permanent)? {
            let text = format!("Sent. Agent {} reads it between two steps.", row.title());
            return Ok(ToolOutput::text(text));
        }
        // It may have ended since.
        let row = self.0.find(&service, &row.family.number.to_string()).await?;
        if row.status.state.is_active() {
            let place = match service.known(&row.session) {
                Some(_) => "is about to start; try again",
                None => "runs in another process and cannot be reached",
            };
            return Err(ToolError::Permanent(format!("agent {} {place}", row.title())));
        }
        let resumed = resume(&service, &row, &input.message, input.wake.unwrap_or_default()).await;
        resumed.map_err(ToolError::Permanent)?;
        let text = format!(
            "Agent {} had ended ({}) and continues in the background.",
            row.title(),
            row.status.state
        );
        Ok(ToolOutput::text(text))
    }
}

/// Waits for agents, by default all; returns their results.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitInput {
    #[serde(default)]
    agents: Option<Vec<String>>,
    #[serde(default)]
    #[schemars(skip)]
    any: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    seconds: Option<u64>,
}

struct AgentWait(Children);

impl AgentWait {
    /// Returns the agents to wait for: those named, or all whose result is not delivered.
    async fn wanted(&self, service: &Service, input: &WaitInput) -> Result<Vec<AgentRow>, ToolError> {
        let named = input.agents.as_deref().unwrap_or_default();
        if named.is_empty() {
            return self.0.listed(service, AgentQuery::Pending).await;
        }
        let rows = self.0.all(service).await?;
        named
            .iter()
            .map(|named| find(&rows, named).cloned().ok_or_else(|| unknown(&rows, named)))
            .collect()
    }
}

impl Tool for AgentWait {
    type Input = WaitInput;
    const NAME: &'static str = "agent_wait";

    fn category(&self, _: &WaitInput) -> Category {
        Category::Read
    }

    /// Two calls that wait for the same agent must not both return its result.
    fn traits(&self) -> ToolTraits {
        ToolTraits {
            exclusive: true,
            ..waiting()
        }
    }

    async fn run(&self, input: WaitInput, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let service = self.0.service()?;
        let clock = Arc::clone(&service.inner.clock);
        let mut over = clock.sleep(Duration::from_secs(input.seconds.unwrap_or(WAIT)));
        let family = service.family(&self.0.session);
        let ends = family.map(|family| family.ends());
        let mut rows = self.wanted(&service, &input).await?;
        if rows.is_empty() {
            return Ok(ToolOutput::text("There is no agent to wait for."));
        }
        loop {
            let ended = rows.iter().filter(|row| !row.status.state.is_active()).count();
            if ended == rows.len() || (input.any == Some(true) && ended > 0) {
                return Ok(results(&rows, ""));
            }
            // Registered before the rows are read, so that no end is missed.
            let next = async {
                match &ends {
                    Some(ends) => ends.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(next);
            let is_ready = futures_util::poll!(&mut next).is_ready();
            rows = self.refreshed(&service, &rows).await?;
            if is_ready || rows.iter().filter(|row| !row.status.state.is_active()).count() > ended {
                continue;
            }
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::Canceled(String::new())),
                () = &mut next => {}
                () = &mut over => return Ok(results(&rows, "[the time to wait is over]")),
            }
            rows = self.refreshed(&service, &rows).await?;
        }
    }
}

impl AgentWait {
    async fn refreshed(&self, service: &Service, rows: &[AgentRow]) -> Result<Vec<AgentRow>, ToolError> {
        let mut now = Vec::with_capacity(rows.len());
        for row in rows {
            let found = service.inner.store.agent(&row.session).await;
            let found = found.map_err(|error| ToolError::Permanent(error.to_string()))?;
            now.extend(found);
        }
        Ok(now)
    }
}

/// Stops an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopInput {
    agent: String,
}

struct AgentStop(Children);

impl Tool for AgentStop {
    type Input = StopInput;
    const NAME: &'static str = "agent_stop";

    fn category(&self, _: &StopInput) -> Category {
        Category::Read
    }

    async fn run(&self, input: StopInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let service = self.0.service()?;
        let row = self.0.find(&service, &input.agent).await?;
        let text = match stop(&service, &row).await {
            true => format!("Agent {} is being stopped.", row.title()),
            false => format!("Agent {} does not run: {}.", row.title(), row.status.state),
        };
        Ok(ToolOutput::text(text))
    }
}

/// Stops a sub-agent and everything below it. Returns true if it ran, here or on another server of the cluster.
pub(crate) async fn stop(service: &Service, row: &AgentRow) -> bool {
    let live = service.known(&row.session);
    match live {
        Some(live) => live.handle.stop(),
        None => elsewhere::stop(&service.inner, row).await,
    }
}

/// Lists your agents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {}

struct AgentList(Children);

impl Tool for AgentList {
    type Input = ListInput;
    const NAME: &'static str = "agent_list";

    fn category(&self, _: &ListInput) -> Category {
        Category::Read
    }

    async fn run(&self, _: ListInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let service = self.0.service()?;
        let rows = self.0.all(&service).await?;
        if rows.is_empty() {
            return Ok(ToolOutput::text("This session has no agents."));
        }
        Ok(ToolOutput::text(agent_lines(&rows, service.inner.clock.now())))
    }
}

/// The tool `agent` with the types in its description.
struct Described {
    tool: Arc<dyn AnyTool>,
    spec: ToolSpec,
}

fn described(tool: Arc<dyn AnyTool>, catalog: &AgentCatalog) -> Arc<dyn AnyTool> {
    let mut spec = tool.spec().clone();
    let mut text = spec.description.trim_end().to_owned();
    let kinds = catalog.types.iter().filter(|kind| !kind.description.is_empty());
    let kinds: Vec<String> = kinds
        .take(TYPES)
        .map(|kind| format!("{}: {}", kind.name, cut(&kind.description, TYPE)))
        .collect();
    let _ = write!(
        text,
        " Types: {}; default {}.",
        kinds.join("; "),
        catalog.default_type
    );
    spec.description = text;
    Arc::new(Described { tool, spec })
}

impl AnyTool for Described {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        self.tool.traits()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        Arc::clone(&self.tool).prepare(arguments)
    }
}
