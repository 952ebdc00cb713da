//! ACP-2: servers that an editor hands over with a session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use windlass_core::id::SessionId;
use windlass_mcp::{McpServerConfig, ServerOrigin, file};

/// Sessions whose servers are remembered.
const MAX_SESSIONS: usize = 1_000;

/// Servers by session. A sub-agent has those of the session above, which is named.
static GIVEN: Mutex<Option<HashMap<SessionId, Given>>> = Mutex::new(None);

#[derive(Clone)]
struct Given {
    owner: SessionId,
    servers: Vec<McpServerConfig>,
}

/// Attaches servers in the editor's form to a session. Returns a line for each that cannot be used.
pub fn attach_servers(session: &SessionId, servers: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut configs = Vec::new();
    for server in servers {
        match config(server) {
            Ok(config) => configs.push(config),
            Err(why) => problems.push(why),
        }
    }
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    if given.len() >= MAX_SESSIONS {
        given.clear();
    }
    let own = Given {
        owner: session.clone(),
        servers: configs,
    };
    given.insert(session.clone(), own);
    problems
}

/// Gives a sub-agent the servers of the session above.
pub(super) fn inherit_servers(parent: &SessionId, child: &SessionId) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(given) = given.as_mut()
        && let Some(above) = given.get(parent).cloned()
    {
        given.insert(child.clone(), above);
    }
}

/// Returns the session that an editor attached the servers of this one to.
pub(super) fn owner(session: &SessionId) -> SessionId {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = given.as_ref().and_then(|given| given.get(session));
    found.map_or_else(|| session.clone(), |given| given.owner.clone())
}

/// Returns the servers that an editor attached to a session.
pub fn editor_servers(session: &SessionId) -> Vec<McpServerConfig> {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    given
        .as_ref()
        .and_then(|given| Some(given.get(session)?.servers.clone()))
        .unwrap_or_default()
}

/// Reads a server: variables and headers are lists of names and values.
fn config(server: &Value) -> Result<McpServerConfig, String> {
    let name = server.get("name").and_then(Value::as_str).unwrap_or("unnamed");
    let mut entry = server.as_object().cloned().unwrap_or_default();
    entry.shift_remove("name");
    entry.shift_remove("_meta");
    for key in ["env", "headers"] {
        if let Some(Value::Array(list)) = entry.get(key) {
            let pair =
                |item: &Value| Some((item.get("name")?.as_str()?.to_owned(), item.get("value")?.clone()));
            let map: Map<String, Value> = list.iter().filter_map(pair).collect();
            entry.insert(key.to_owned(), Value::Object(map));
        }
    }
    let mut servers = Map::new();
    servers.insert(name.to_owned(), Value::Object(entry));
    let mut root = Map::new();
    root.insert("mcpServers".to_owned(), Value::Object(servers));
    let text = Value::Object(root).to_string();
    // The editor's values are literal: `${…}` is text.
    let literal = |name: &str| Some(format!("${{{name}}}"));
    let (configs, _) = file::parse(&text, "the editor", &literal)?;
    let mut config = configs
        .into_iter()
        .next()
        .ok_or_else(|| format!("{name}: no server"))?;
    config.origin = ServerOrigin::Editor;
    Ok(config)
}
