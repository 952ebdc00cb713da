//! WEB-6: subscriptions to web push.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use crate::app::Shared;
use crate::checks::Who;
use crate::problem::Problem;
use crate::push::{PushError, PushSubscription, user_of};

/// The server's key, which a browser subscribes with.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PushKey {
    /// Public key on the curve P-256, in base64url.
    key: String,
}

pub(crate) async fn key(State(app): State<Shared>) -> Result<Json<PushKey>, Problem> {
    let key = app.push.public_key().map_err(problem)?;
    Ok(Json(PushKey { key }))
}

pub(crate) async fn subscribe(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Body(subscription): Body<PushSubscription>,
) -> Result<StatusCode, Problem> {
    app.push.subscribe(subscription, &who).map_err(problem)?;
    app.coarse.wake();
    Ok(StatusCode::NO_CONTENT)
}

/// A subscription to end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unsubscribe {
    /// Its address at the push service.
    endpoint: String,
}

pub(crate) async fn unsubscribe(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Body(body): Body<Unsubscribe>,
) -> Result<StatusCode, Problem> {
    let user = user_of(&who.user);
    match app
        .push
        .unsubscribe(&body.endpoint, Some(&user))
        .map_err(problem)?
    {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("there is no such subscription")),
    }
}

fn problem(error: PushError) -> Problem {
    match error {
        PushError::Field { field, text } => Problem::field(field, text),
        other => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "push", other.to_string()),
    }
}
