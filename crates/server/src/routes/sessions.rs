//! Lists, creates, renames and deletes sessions.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{Begin, Find, Label, SessionId, SessionInfo, SessionKey, UserName};

use super::body::{Body, Query};
use crate::app::Shared;
use crate::checks::Who;
use crate::coarse::SessionRow;
use crate::credentials::{Credential, Scope};
use crate::problem::Problem;

/// Sessions of a page of the list if the request names no number.
const PAGE: usize = 50;
/// Furthest start of a page.
const FURTHEST: usize = 0xffff_ffff;
/// Largest page.
const LARGEST: usize = 500;

/// A search.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Words of a title, a name, an id or a message.
    #[serde(default)]
    q: String,
    /// Only sessions of this folder.
    place: Option<String>,
    /// With the scope `admin`: another user, or `*` for all.
    user: Option<String>,
    limit: Option<usize>,
    /// Number of sessions to skip, from `next` of the previous page.
    cursor: Option<usize>,
}

/// A page of the list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionList {
    /// Best matches first; without words, the last changed first.
    sessions: Vec<SessionRow>,
    /// `cursor` of the next page, if there is one.
    next: Option<usize>,
}

pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Query(query): Query<ListQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LARGEST).contains(&limit) {
        return Err(Problem::field("limit", format!("a number from 1 to {LARGEST}")));
    }
    let skip = query.cursor.unwrap_or_default();
    if skip > FURTHEST {
        return Err(Problem::field("cursor", "not `next` of a previous page"));
    }
    let find = Find {
        words: query.q,
        place: query.place,
        user: whose(&app, &who, query.user.as_deref()).await?,
        limit: skip + limit + 1,
    };
    let mut found = app.ports.backend.sessions(&find).await?;
    let next = (found.len() > skip + limit).then_some(skip + limit);
    found.truncate(skip + limit);
    let mut sessions = Vec::with_capacity(limit);
    for info in found.into_iter().skip(skip) {
        sessions.push(app.coarse.row(info).await);
    }
    Ok(Json(SessionList { sessions, next }))
}

/// Returns the user whose sessions are listed; `None` for all users.
async fn whose(app: &Shared, who: &Credential, asked: Option<&str>) -> Result<Option<UserName>, Problem> {
    let Some(asked) = asked else {
        return Ok(Some(who.user.clone()));
    };
    let user = match asked {
        "*" => None,
        name => Some(
            name.parse::<UserName>()
                .map_err(|error| Problem::field("user", error.to_string()))?,
        ),
    };
    if user.as_ref() == Some(&who.user) {
        return Ok(user);
    }
    if !who.allows(Scope::Admin) {
        let text = "sessions of other users need the scope `admin`";
        return Err(Problem::refused(StatusCode::FORBIDDEN, "scope", text));
    }
    app.oversee(who, None, user.as_ref(), "/api/sessions").await?;
    Ok(user)
}

/// Way to start a session. Without any field, a new one in the server's folder.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BeginBody {
    /// Id of a new session, made by the client: a repeated request gives the same session.
    id: Option<SessionId>,
    /// Folder of a new session.
    place: Option<String>,
    /// Title of a new session.
    title: Option<String>,
    /// Name of a new session.
    name: Option<String>,
    /// Key of a channel: the session that has it, or a new one.
    key: Option<String>,
    /// Opens an existing session.
    resume: Option<SessionId>,
    /// Copies a session.
    fork: Option<SessionId>,
    /// Number of the last entry to copy.
    after: Option<u64>,
}

/// The session that was created or opened.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Begun {
    /// The session.
    session: SessionInfo,
}

pub(crate) async fn begin(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Body(body): Body<BeginBody>,
) -> Result<(StatusCode, Json<Begun>), Problem> {
    let ways = [body.key.is_some(), body.resume.is_some(), body.fork.is_some()];
    if ways.iter().filter(|way| **way).count() > 1 {
        return Err(Problem::field(
            "key",
            "only one of `key`, `resume` and `fork` can be given",
        ));
    }
    if let Some(id) = &body.id {
        if !id.is_uuid() {
            return Err(Problem::field("id", "a UUID in lower case"));
        }
        if app.ports.store.get(id).await?.is_some() {
            let session = app.own(&who, id).await?;
            return Ok((StatusCode::OK, Json(Begun { session })));
        }
    }
    check_names(&body.title, &body.name)?;
    let place = || match &body.place {
        None => Ok(app.config.place.clone()),
        Some(place) if place.is_empty() => Ok(app.config.place.clone()),
        Some(place) if place.starts_with('/') => Ok(place.clone()),
        Some(place) => Err(Problem::field(
            "place",
            format!("`{place}` is not an absolute path"),
        )),
    };
    let begin = if let Some(key) = &body.key {
        let key = key.parse::<SessionKey>();
        Begin::Keyed {
            key: key.map_err(|error| Problem::field("key", error.to_string()))?,
            place: place()?,
        }
    } else if let Some(session) = body.resume.clone() {
        Begin::Resume(session)
    } else if let Some(of) = body.fork.clone() {
        Begin::Fork {
            of,
            after: body.after,
            id: body.id.clone(),
            place: body.place.is_some().then(place).transpose()?,
        }
    } else {
        Begin::New {
            id: body.id.clone(),
            place: place()?,
            label: Label {
                title: body.title.clone(),
                name: body.name.clone(),
                key: None,
            },
            parent: None,
        }
    };
    if let Begin::New { place, .. }
    | Begin::Keyed { place, .. }
    | Begin::Fork {
        place: Some(place), ..
    } = &begin
    {
        let checked = app.ports.files.check(place).await;
        checked.map_err(|why| Problem::field("place", why))?;
    }
    let session = app.begin(&who, begin).await?;
    app.hubs.hub(&session.id).await?;
    Ok((StatusCode::CREATED, Json(Begun { session })))
}

pub(crate) async fn one(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<SessionRow>, Problem> {
    let info = app.info(&id).await?;
    Ok(Json(app.coarse.row(info).await))
}

/// New names of a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rename {
    /// New title.
    title: Option<String>,
    /// New name.
    name: Option<String>,
}

fn check_names(title: &Option<String>, name: &Option<String>) -> Result<(), Problem> {
    for (field, value) in [("title", title), ("name", name)] {
        let is_wrong = |value: &String| value.trim().is_empty() || value.len() > 500;
        if value.as_ref().is_some_and(is_wrong) {
            return Err(Problem::field(field, "between 1 and 500 bytes"));
        }
    }
    Ok(())
}

pub(crate) async fn rename(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Body(body): Body<Rename>,
) -> Result<Json<SessionRow>, Problem> {
    check_names(&body.title, &body.name)?;
    let label = Label {
        title: body.title,
        name: body.name,
        key: None,
    };
    app.ports.store.label(&id, &label).await?;
    one(State(app), Path(id)).await
}

pub(crate) async fn delete(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<StatusCode, Problem> {
    app.ports.backend.delete(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
