//! Revisions of the protocol, and the part of a request that names one.

use serde_json::{Map, Value, json};
use windlass_jsonrpc::{Outbox, RpcError};

use tokio_util::sync::CancellationToken;

/// The stateless revision.
pub(crate) const MODERN: &str = "2026-07-28";
/// Revisions with a handshake, newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Key of the subscription that a notification belongs to.
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Text that tells the client's model what this server is for.
pub(crate) const INSTRUCTIONS: &str = "Windlass runs coding agents. `start_session` gives a task to a new agent in a folder and \
     returns its answer; `continue_session` sends it another message. Long work: pass `wait: false`, then \
     `wait_for_session`. Results carry the session's id and cost.";

/// Client of a handshake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handshake {
    pub(crate) version: &'static str,
    pub(crate) can_ask: bool,
}

impl Handshake {
    /// Reads `initialize`. An unknown revision is answered with our newest.
    pub(crate) fn read(params: &Value) -> Result<Self, RpcError> {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        let asked = asked.ok_or_else(|| RpcError::invalid_params("protocolVersion: it must be a string"))?;
        let known = LEGACY.into_iter().find(|version| *version == asked);
        let version = known.unwrap_or(LEGACY[0]);
        // Elicitation came with 2025-06-18; dates compare as text.
        let can_ask = version >= "2025-06-18" && has_forms(params.get("capabilities"));
        Ok(Self { version, can_ask })
    }

    pub(crate) fn result(self) -> Value {
        json!({
            "protocolVersion": self.version,
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        })
    }
}

/// Returns true if a client shows forms. An empty object means forms; one with only `url` does not.
fn has_forms(capabilities: Option<&Value>) -> bool {
    let forms = capabilities.and_then(|all| all.get("elicitation"));
    match forms.and_then(Value::as_object) {
        Some(modes) => modes.is_empty() || modes.contains_key("form"),
        None => false,
    }
}

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {} })
}

fn server_info() -> Value {
    json!({ "name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION") })
}

/// Returns the revision that a request names in `_meta`.
pub(crate) fn named_version(params: &Value) -> Option<&str> {
    params.get("_meta")?.get(VERSION_KEY)?.as_str()
}

/// Reads `_meta` of a stateless request. Returns true if its client can be asked.
pub(crate) fn stateless(params: &Value) -> Result<bool, RpcError> {
    let missing = |key: &str| RpcError::invalid_params(format!("_meta.{key}: a stateless request needs it"));
    let version = named_version(params).ok_or_else(|| missing(VERSION_KEY))?;
    if version != MODERN {
        return Err(RpcError {
            data: Some(json!({ "supported": [MODERN], "requested": version })),
            ..RpcError::new(-32022, format!("the revision {version} is not supported"))
        });
    }
    let capabilities = params
        .pointer("/_meta")
        .and_then(|meta| meta.get(CAPABILITIES_KEY));
    match capabilities {
        Some(Value::Object(_)) => Ok(has_forms(capabilities)),
        _ => Err(missing(CAPABILITIES_KEY)),
    }
}

/// The error of headers that say something else than the body.
pub(crate) fn header_mismatch(message: impl Into<String>) -> RpcError {
    RpcError::new(-32020, message)
}

/// Result of `server/discover`.
pub(crate) fn discovered() -> Value {
    json!({ "supportedVersions": [MODERN], "capabilities": capabilities(), "instructions": INSTRUCTIONS })
}

/// A request, as the methods see it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) outbox: Outbox,
    /// True for a stateless request.
    pub(crate) is_modern: bool,
    /// True if the client shows forms to a person.
    pub(crate) can_ask: bool,
    /// Canceled when the client withdraws the request.
    pub(crate) cancel: CancellationToken,
}

impl Request {
    /// Completes a result for its era.
    pub(crate) fn complete(&self, method: &str, result: Value) -> Value {
        let Value::Object(mut result) = result else {
            return result;
        };
        if self.is_modern {
            let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(SERVER_KEY.to_owned(), server_info());
            }
            result.entry("resultType").or_insert_with(|| json!("complete"));
            // Lists of tools are the same for everybody; sessions are not, and change at any time.
            let (ttl, scope) = match method {
                "server/discover" | "tools/list" | "prompts/list" | "resources/templates/list" => {
                    (3_600_000, "public")
                }
                "resources/list" | "resources/read" => (0, "private"),
                _ => return Value::Object(result),
            };
            result.insert("ttlMs".to_owned(), json!(ttl));
            result.insert("cacheScope".to_owned(), json!(scope));
        }
        Value::Object(result)
    }
}
