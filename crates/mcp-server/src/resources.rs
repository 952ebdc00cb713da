//! Sessions as resources: `windlass://sessions`, and `windlass://sessions/{id}` for a transcript.

use serde_json::{Value, json};
use windlass_api::{Backend, ClientError, Find, SessionId, SessionInfo};
use windlass_jsonrpc::RpcError;

use crate::transcript::transcript;

/// The list of sessions. The transcript of one is below it.
const SESSIONS: &str = "windlass://sessions";
/// Number of sessions on a page, and of all pages together.
const PAGE: usize = 50;
const MOST: usize = 10_000;
/// Number of entries in a transcript.
const ENTRIES: usize = 2_000;

/// Lists sessions, the last changed first.
pub(crate) async fn list(backend: &dyn Backend, params: &Value) -> Result<Value, RpcError> {
    let wrong = || RpcError::invalid_params("cursor: it is not from this server");
    let skip = match params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(Value::String(text)) => text
            .parse::<usize>()
            .ok()
            .filter(|skip| *skip < MOST)
            .ok_or_else(wrong)?,
        Some(_) => return Err(wrong()),
    };
    let find = Find {
        limit: skip + PAGE + 1,
        user: Some(windlass_api::UserName::default()),
        ..Find::default()
    };
    let found = backend.sessions(&find).await.map_err(failed)?;
    let mut resources = Vec::new();
    if skip == 0 {
        resources.push(json!({
            "uri": SESSIONS,
            "name": "sessions",
            "title": "Sessions",
            "description": "The latest sessions: id, title, folder, state, cost",
            "mimeType": "application/json",
        }));
    }
    resources.extend(found.iter().skip(skip).take(PAGE).map(|info| {
        json!({
            "uri": format!("{SESSIONS}/{}", info.id),
            "name": title(info).unwrap_or_else(|| info.id.to_string()),
            "description": format!("Transcript of a session in {}", info.place),
            "mimeType": "text/markdown",
        })
    }));
    let mut result = json!({ "resources": resources });
    if let (true, Some(result)) = (found.len() > skip + PAGE, result.as_object_mut()) {
        result.insert("nextCursor".to_owned(), json!((skip + PAGE).to_string()));
    }
    Ok(result)
}

/// Lists the templates of addresses.
pub(crate) fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": format!("{SESSIONS}/{{session_id}}"),
        "name": "session",
        "title": "Transcript of a session",
        "mimeType": "text/markdown",
    }] })
}

/// Reads a resource. `is_modern` decides the code for one that does not exist.
pub(crate) async fn read(backend: &dyn Backend, params: &Value, is_modern: bool) -> Result<Value, RpcError> {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("uri: it must be a string"))?;
    let missing = || RpcError {
        data: Some(json!({ "uri": uri })),
        ..RpcError::new(
            if is_modern { -32602 } else { -32002 },
            format!("there is no resource {uri}"),
        )
    };
    let (kind, text) = if uri == SESSIONS {
        let find = Find {
            limit: PAGE,
            user: Some(windlass_api::UserName::default()),
            ..Find::default()
        };
        let found = backend.sessions(&find).await.map_err(failed)?;
        let rows: Vec<Value> = found.iter().map(row).collect();
        ("application/json", Value::Array(rows).to_string())
    } else {
        let id = uri.strip_prefix(SESSIONS).and_then(|rest| rest.strip_prefix('/'));
        let session = SessionId::from(id.ok_or_else(missing)?);
        match backend.tail(&session, None, ENTRIES).await {
            Ok(entries) => ("text/markdown", transcript(&entries)),
            Err(ClientError::Unknown(_)) => return Err(missing()),
            Err(error) => return Err(failed(error)),
        }
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": kind, "text": text }] }))
}

/// Returns a session for programs.
pub(crate) fn row(info: &SessionInfo) -> Value {
    json!({
        "session_id": info.id,
        "title": title(info),
        "folder": info.place,
        "status": info.standing,
        "cost_usd": info.totals.cost_usd,
        "messages": info.totals.messages,
        "updated_at": info.updated_at,
    })
}

fn title(info: &SessionInfo) -> Option<String> {
    info.label.name.clone().or_else(|| info.label.title.clone())
}

fn failed(error: ClientError) -> RpcError {
    RpcError::internal(error.to_string())
}
