//! Uploads of session files.

use axum::Json;
use axum::extract::{Extension, FromRequest, Request, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::body::Body;
use crate::app::{ImportRefusal, ImportedSession, Shared, UploadedSession};
use crate::checks::Who;
use crate::problem::Problem;

/// Largest body, in bytes. `windlass sessions import` reads larger files.
pub(crate) const LARGEST: usize = 32 << 20;
/// Damaged places that an error names.
const MAX_NAMED: usize = 10;

/// Admits one upload at a time, because it is in memory as a whole.
pub(crate) struct Imports(Semaphore);

impl Default for Imports {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

/// A session file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportBody {
    /// Name of the file, for messages.
    name: String,
    /// Its content.
    text: String,
    /// True to import the part that can be read.
    #[serde(default)]
    lenient: bool,
}

pub(crate) async fn import(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    request: Request,
) -> Result<(StatusCode, Json<ImportedSession>), Problem> {
    let Ok(_alone) = app.inputs.imports.0.try_acquire() else {
        let text = "another file is being imported; try again when it is done";
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "import_busy", text));
    };
    let Body(body) = Body::<ImportBody>::from_request(request, &app)
        .await
        .map_err(larger)?;
    if body.name.trim().is_empty() || body.name.len() > 500 {
        return Err(Problem::field("name", "between 1 and 500 bytes"));
    }
    let upload = UploadedSession {
        name: body.name,
        text: body.text,
        lenient: body.lenient,
        user: who.user,
    };
    let imported = app.ports.imports.import(upload).await.map_err(refused)?;
    app.hubs.hub(&imported.id).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

/// Names the way to import a file that is too large.
fn larger(problem: Problem) -> Problem {
    match problem.status {
        413 => problem.fixed_by("windlass sessions import FILE"),
        _ => problem,
    }
}

fn refused(refusal: ImportRefusal) -> Problem {
    let of_text = |title, detail: String| {
        let mut problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, title, detail);
        problem.field = Some("text".into());
        problem
    };
    match refusal {
        ImportRefusal::Unknown(why) => of_text("not_a_session", why),
        ImportRefusal::Damaged(places) => {
            let mut named: Vec<&str> = places.iter().take(MAX_NAMED).map(String::as_str).collect();
            if places.len() > MAX_NAMED {
                named.push("…");
            }
            let detail = format!("{}\nnothing was imported", named.join("\n"));
            of_text("damaged", detail).fixed_by("\"lenient\": true imports what can be read")
        }
        ImportRefusal::Failed(why) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "store", why),
    }
}
