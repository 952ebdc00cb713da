//! Reads more about a session: context, cost, waits, agents, plan, and all open questions.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Extension, Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{AgentRow, ContextReport, Event, Find, GoalEvent, Plan, SessionEvent, SessionId, Wait};
use windlass_core::log::{AgentQuery, Spent, SpentBy};

use super::body::Query;
use crate::app::Shared;
use crate::checks::Who;
use crate::problem::Problem;
use crate::questions::OpenQuestion;

/// Trees of sub-agents in the fleet.
const TREES: usize = 50;
/// Sessions whose questions are looked for.
const ASKING: usize = 200;

/// The context of the next request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Context {
    /// Tokens of the last request.
    tokens: u64,
    /// Context window of the model in tokens; 0 if unknown.
    window: u64,
    /// The spans of the next request, as `/context show` prints them.
    report: String,
    /// The next request, span by span.
    next: ContextReport,
}

pub(crate) async fn context(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<Context>, Problem> {
    let next = app.ports.backend.context(&id).await?;
    let reply = super::messages::run(&app, &id, "/context show").await?;
    Ok(Json(Context {
        tokens: next.used_tokens,
        window: next.window,
        report: reply.text,
        next,
    }))
}

/// Grouping of costs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CostQuery {
    by: Option<String>,
}

/// The costs of a session and its sub-agents.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Cost {
    /// In groups.
    spent: Vec<Spent>,
    /// US dollars in all, as far as prices are known.
    total_usd: f64,
}

pub(crate) async fn cost(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Query(query): Query<CostQuery>,
) -> Result<Json<Cost>, Problem> {
    app.info(&id).await?;
    let by = match query.by.as_deref() {
        None | Some("model") => SpentBy::Model,
        Some("session") => SpentBy::Session,
        Some("cause") => SpentBy::Cause,
        Some("day") => SpentBy::Day,
        Some(other) => {
            return Err(Problem::field(
                "by",
                format!("`{other}`: session, model, cause or day"),
            ));
        }
    };
    let spent = app.ports.store.spent(Some(&id), by).await?;
    let total_usd = spent.iter().map(|spent| spent.cost_usd).sum();
    Ok(Json(Cost { spent, total_usd }))
}

/// Waits of a turn.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Why {
    /// Outermost first: each waits for the next. Empty if no turn runs.
    waits: Vec<Wait>,
}

pub(crate) async fn why(State(app): State<Shared>, Path(id): Path<SessionId>) -> Result<Json<Why>, Problem> {
    app.info(&id).await?;
    let waits = app.ports.backend.why(&id).await;
    Ok(Json(Why { waits }))
}

/// Sub-agents.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Agents {
    /// By number, tree by tree. `/agents` of the commands stops, merges and discards them.
    agents: Vec<AgentRow>,
}

pub(crate) async fn agents(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<Agents>, Problem> {
    app.info(&id).await?;
    let agents = app.ports.backend.agents(&id).await?;
    Ok(Json(Agents { agents }))
}

pub(crate) async fn fleet(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<Json<Agents>, Problem> {
    let mut agents = app.ports.store.agents(&AgentQuery::Recent(TREES)).await?;
    let mut own: HashMap<SessionId, bool> = HashMap::new();
    for agent in &agents {
        let root = &agent.family.root;
        if !own.contains_key(root) {
            let info = app.ports.store.get(root).await?;
            own.insert(root.clone(), info.is_some_and(|info| info.user == who.user));
        }
    }
    agents.retain(|agent| own.get(&agent.family.root).is_some_and(|is_own| *is_own));
    Ok(Json(Agents { agents }))
}

/// The plan of a session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PlanAnswer {
    /// The plan, if there is one.
    plan: Option<Plan>,
}

pub(crate) async fn plan(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<PlanAnswer>, Problem> {
    app.info(&id).await?;
    let entries = windlass_core::log::record(&*app.ports.store, &id).await?;
    let last = entries.into_iter().rev().find_map(|entry| match entry.event {
        Event::Session(SessionEvent::Work(GoalEvent::Plan(plan))) => Some(plan),
        _ => None,
    });
    let plan = last.filter(|plan| !plan.steps.is_empty());
    Ok(Json(PlanAnswer { plan }))
}

/// Questions of all sessions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Questions {
    /// Oldest first within each session.
    questions: Vec<Asked>,
}

/// A question and its session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Asked {
    /// The session.
    session: SessionId,
    /// Its title or name.
    title: Option<String>,
    #[serde(flatten)]
    question: OpenQuestion,
}

pub(crate) async fn questions(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<Json<Questions>, Problem> {
    let find = Find {
        user: Some(who.user),
        limit: ASKING,
        ..Find::default()
    };
    let mut questions = Vec::new();
    for info in app.ports.backend.sessions(&find).await? {
        let title = info.label.title.clone().or_else(|| info.label.name.clone());
        for question in app.coarse.questions(&info).await {
            let (session, title) = (info.id.clone(), title.clone());
            questions.push(Asked {
                session,
                title,
                question,
            });
        }
    }
    Ok(Json(Questions { questions }))
}
