//! Files of a session's folder, and uploaded images.

use std::collections::VecDeque;
use std::sync::Mutex;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::{Binary, SessionId, UserName};

use super::body::{Body, Query};
use crate::app::{App, Shared, lock};
use crate::checks::Who;
use crate::problem::Problem;

/// Names of one answer.
const NAMES: usize = 100;
/// Largest file that is shown, in bytes.
const LARGEST: u64 = 4 << 20;
/// Largest body of an upload, in bytes: 10 MB in base64.
pub(crate) const UPLOAD: usize = 14 << 20;
/// Uploads that wait for their message, in bytes.
const WAITING: usize = 64 << 20;

/// A search for files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindQuery {
    /// Session whose folder is meant; the server's folder if absent.
    session: Option<SessionId>,
    #[serde(default)]
    q: String,
    limit: Option<usize>,
}

/// Names of files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileNames {
    /// Relative to the folder, best match first.
    files: Vec<String>,
}

impl App {
    async fn place(&self, session: Option<&SessionId>) -> Result<String, Problem> {
        match session {
            Some(session) => Ok(self.info(session).await?.place),
            None => Ok(self.config.place.clone()),
        }
    }
}

pub(crate) async fn find(
    State(app): State<Shared>,
    Query(query): Query<FindQuery>,
) -> Result<Json<FileNames>, Problem> {
    let limit = query.limit.unwrap_or(NAMES);
    if !(1..=NAMES).contains(&limit) {
        return Err(Problem::field("limit", format!("a number from 1 to {NAMES}")));
    }
    let place = app.place(query.session.as_ref()).await?;
    let files = app.ports.files.find(&place, &query.q, limit).await;
    Ok(Json(FileNames { files }))
}

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentQuery {
    session: Option<SessionId>,
    path: String,
}

pub(crate) async fn content(
    State(app): State<Shared>,
    Query(query): Query<ContentQuery>,
) -> Result<Response, Problem> {
    let place = app.place(query.session.as_ref()).await?;
    let read = app.ports.files.read(&place, &query.path, LARGEST).await;
    let content = read.map_err(|why| {
        let mut problem = Problem::new(StatusCode::FORBIDDEN, "not_readable", why);
        problem.field = Some("path".into());
        problem
    })?;
    // Never as a page: a file of a project is foreign content.
    let kind = match image_kind(&content) {
        Some(kind) => kind,
        None if std::str::from_utf8(&content).is_ok() => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    let mut response = content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if !kind.starts_with("image/") {
        headers.insert(
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment"),
        );
    }
    Ok(response)
}

/// Detects the type of an image by its first bytes.
fn image_kind(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// An image for a message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upload {
    /// Name of the file.
    name: String,
    /// Bytes in base64.
    data: String,
}

/// An image that was uploaded.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Uploaded {
    /// Id for `uploads` of a message. It is forgotten when the server stops.
    id: String,
    /// Detected type.
    mime: String,
}

/// Images that wait for their message, oldest first, with their ids and users.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<VecDeque<((String, UserName), Binary)>>);

impl Uploads {
    fn add(&self, user: &UserName, image: Binary) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let mut waiting = lock(&self.0);
        waiting.push_back(((id.clone(), user.clone()), image));
        while waiting.iter().map(|(_, image)| image.data.len()).sum::<usize>() > WAITING {
            waiting.pop_front();
        }
        id
    }

    /// Returns an image. It stays, because the message may be sent again.
    pub(crate) fn get(&self, user: &UserName, id: &str) -> Option<Binary> {
        let waiting = lock(&self.0);
        waiting
            .iter()
            .find(|((known, owner), _)| known == id && owner == user)
            .map(|(_, image)| image.clone())
    }
}

pub(crate) async fn upload(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Body(upload): Body<Upload>,
) -> Result<(StatusCode, Json<Uploaded>), Problem> {
    let bytes = base64_start(&upload.data).ok_or_else(|| Problem::field("data", "not base64"))?;
    let Some(mime) = image_kind(&bytes) else {
        return Err(Problem::field(
            "data",
            "not an image: PNG, JPEG, GIF and WebP can be sent",
        ));
    };
    let name = upload.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|sign| !sign.is_control()).take(200).collect();
    let image = Binary {
        path: name,
        mime: mime.to_owned(),
        data: upload.data,
    };
    let id = app.inputs.uploads.add(&who.user, image);
    let mime = mime.to_owned();
    Ok((StatusCode::CREATED, Json(Uploaded { id, mime })))
}

/// Returns true if a file of a message can be sent to a model: base64, with a media type, and an image if it says so.
pub(crate) fn is_sendable(file: &Binary) -> bool {
    let is_type = file.mime.contains('/') && file.mime.bytes().all(|sign| sign.is_ascii_graphic());
    let is_image = file.mime.starts_with("image/");
    let start = base64_start(&file.data);
    is_type && start.is_some_and(|bytes| !is_image || image_kind(&bytes).is_some())
}

/// Checks that a text is base64, and returns its first bytes.
fn base64_start(text: &str) -> Option<Vec<u8>> {
    let value = |sign: u8| match sign {
        b'A'..=b'Z' => Some(sign - b'A'),
        b'a'..=b'z' => Some(sign - b'a' + 26),
        b'0'..=b'9' => Some(sign - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let body = text.trim_end_matches('=');
    let is_whole = text.len().is_multiple_of(4) && text.len() - body.len() <= 2;
    if !is_whole || !body.bytes().all(|sign| value(sign).is_some()) {
        return None;
    }
    let mut first = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for sign in body.bytes().take(32) {
        bits = (bits << 6) | u32::from(value(sign)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            first.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(first)
}
