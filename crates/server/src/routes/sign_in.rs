//! Health, sign-in, and the credentials.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::body::Body;
use crate::app::Shared;
use crate::checks::{Peer, Who};
use crate::credentials::{Credential, Scope};
use crate::problem::Problem;

/// Answer of the health check.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Version of the server.
    version: String,
}

pub(crate) async fn health(State(app): State<Shared>) -> Json<Health> {
    Json(Health {
        version: app.config.version.to_owned(),
    })
}

/// Counts for Prometheus.
pub(crate) async fn metrics(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<String, Problem> {
    if !who.user.is_local() && !who.allows(Scope::Admin) {
        let text = "the counts cover all users, so they need the scope `admin`";
        return Err(Problem::refused(StatusCode::FORBIDDEN, "scope", text));
    }
    let mut text = app.metrics.text(app.hubs.count(), app.hubs.count_busy());
    text.push_str(&(app.ports.metrics)());
    Ok(text)
}

/// A sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// Secret of a login link: the part after `#t=`.
    token: String,
    /// Name of the browser in the list of browsers; its user agent if absent.
    #[serde(default)]
    name: Option<String>,
}

/// Answer to a sign-in. The cookie comes with it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignedIn {
    /// The browser's entry in the list of credentials.
    credential: Credential,
}

pub(crate) async fn login(
    State(app): State<Shared>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Body(login): Body<Login>,
) -> Result<Response, Problem> {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok());
    let name = login.name.or_else(|| agent.map(str::to_owned));
    let name: String = name
        .unwrap_or_else(|| "browser".to_owned())
        .chars()
        .take(120)
        .collect();
    let Some((credential, secret)) = app.credentials.sign_in(&login.token, name).await? else {
        let status = match app.failures.add(Some(peer.ip()), app.ports.clock.elapsed()) {
            true => StatusCode::TOO_MANY_REQUESTS,
            false => StatusCode::UNAUTHORIZED,
        };
        let text = "this login link is unknown, was used already, or is older than ten minutes";
        return Err(Problem::refused(status, "credential", text).fixed_by("windlass token link"));
    };
    app.audit(&credential, None, "login", json!({ "id": credential.id }))
        .await?;
    let secure = if app.access.is_https { "; Secure" } else { "" };
    let cookie = format!(
        "{}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=7776000{secure}",
        app.access.cookie()
    );
    let mut response = Json(SignedIn { credential }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

pub(crate) async fn logout(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<Response, Problem> {
    app.audit(&who, None, "logout", json!({ "id": who.id })).await?;
    app.credentials.revoke(&who.id).await?;
    let cookie = format!(
        "{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
        app.access.cookie()
    );
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The credentials that work.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CredentialList {
    /// Oldest first.
    credentials: Vec<Credential>,
    /// Id of the one that this request used.
    own: String,
}

pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
) -> Result<Json<CredentialList>, Problem> {
    Ok(Json(CredentialList {
        credentials: app.credentials.list().await?,
        own: who.id,
    }))
}

pub(crate) async fn revoke(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let revoked = app.credentials.revoke(&id).await?;
    if revoked.is_empty() {
        return Err(Problem::not_found(format!("there is no credential `{id}`")));
    }
    for gone in revoked {
        let detail = json!({ "id": gone.id, "name": gone.name, "of": gone.user.to_string() });
        app.audit(&who, None, "credential_revoked", detail).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
