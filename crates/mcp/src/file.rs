//! Files with servers in the `mcpServers` shape, which Claude, Cursor and others share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::config::{
    EraChoice, HttpEndpoint, McpServerConfig, McpTransport, SamplingLimits, StdioServer, ToolFilter,
};

/// Servers that one file may have.
const MAX_SERVERS: usize = 200;
/// Keys of a server that are read.
const KEYS: &[&str] = &[
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "headers",
    "network",
    "devices",
    "sandbox",
    "timeout",
    "startup_timeout",
    "enabled",
    "disabled",
    "enabled_tools",
    "disabled_tools",
    "era",
    "roots",
    "sampling",
    "sampling_requests",
    "sampling_tokens",
];

/// Reads the servers of a file. `expand` returns the value of a variable in `${NAME}`. A mistake is described with
/// the line and the key, and the file's name in front. Unknown keys are mistakes of their own, returned second.
///
/// # Errors
/// If the file is not valid, with its name, the line, the key and what would be right.
pub fn parse(
    text: &str,
    file: &str,
    expand: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<McpServerConfig>, Vec<String>), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        format!(
            "{file}:{}:{}: not valid JSON: {error}",
            error.line(),
            error.column()
        )
    })?;
    let root = value
        .as_object()
        .ok_or_else(|| format!("{file}:1: expected an object with the key \"mcpServers\""))?;
    // VS Code writes `servers`.
    let Some(servers) = root.get("mcpServers").or_else(|| root.get("servers")) else {
        return match root.is_empty() {
            true => Ok(Default::default()),
            false => Err(format!("{file}:1: the key \"mcpServers\" is missing")),
        };
    };
    let servers = servers.as_object().ok_or_else(|| {
        format!(
            "{file}:{}: mcpServers: expected an object of servers by name",
            line_of(text, &["mcpServers"])
        )
    })?;
    if servers.len() > MAX_SERVERS {
        return Err(format!("{file}: mcpServers: more than {MAX_SERVERS} servers"));
    }
    let mut configs = Vec::new();
    let mut warnings = Vec::new();
    for (name, entry) in servers {
        let at = |key: &str, problem: &str| {
            let path: Vec<&str> = if key.is_empty() {
                vec![name]
            } else {
                vec![name, key]
            };
            let dotted = if key.is_empty() {
                format!("mcpServers.{name}")
            } else {
                format!("mcpServers.{name}.{key}")
            };
            format!("{file}:{}: {dotted}: {problem}", line_of(text, &path))
        };
        let reader = Reader {
            entry: entry.as_object().ok_or_else(|| at("", "expected an object"))?,
            at: &at,
            expand,
        };
        if !is_name(name) {
            return Err(at("", "a name has 1 to 60 letters, digits, `-`, `_` and `.`"));
        }
        for key in reader.entry.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            warnings.push(at(key, "unknown key, ignored"));
        }
        configs.push(reader.server(name)?);
    }
    Ok((configs, warnings))
}

/// Returns true if a server may have this name.
pub fn is_name(name: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_. @/".contains(sign);
    !name.is_empty() && name.len() <= 60 && name.chars().all(is_plain)
}

struct Reader<'a> {
    entry: &'a Map<String, Value>,
    at: &'a dyn Fn(&str, &str) -> String,
    expand: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn server(&self, name: &str) -> Result<McpServerConfig, String> {
        let url = match self.text("url")? {
            Some(url) => Some(url),
            None => self.text("httpUrl")?,
        };
        let kind = match self.text("type")? {
            Some(kind) => Some(kind),
            None => self.text("transport")?,
        };
        let transport = match (self.text("command")?, url, kind.as_deref()) {
            (Some(_), Some(_), _) => {
                return Err((self.at)("url", "a server has a command or a url, not both"));
            }
            (None, None, _) => return Err((self.at)("", "a server needs a \"command\" or a \"url\"")),
            (Some(command), None, None | Some("stdio" | "local")) => {
                McpTransport::Stdio(self.process(command)?)
            }
            (None, Some(url), None | Some("http" | "streamable-http" | "streamableHttp" | "remote")) => {
                McpTransport::Http(self.http(url, false)?)
            }
            (None, Some(url), Some("sse")) => McpTransport::Http(self.http(url, true)?),
            (_, _, Some(other)) => {
                return Err((self.at)(
                    "type",
                    &format!(
                        "expected \"stdio\", \"http\" or \"sse\", which fits the other keys, found \"{other}\""
                    ),
                ));
            }
        };
        let mut config = McpServerConfig::new(name, transport);
        if let Some(limit) = self.seconds("timeout")? {
            config.limits.call = limit;
        }
        if let Some(limit) = self.seconds("startup_timeout")? {
            config.limits.startup = limit;
        }
        config.enabled =
            self.switch("enabled")?.unwrap_or(true) && !self.switch("disabled")?.unwrap_or(false);
        config.tools = ToolFilter {
            only: self.list("enabled_tools")?,
            without: self.list("disabled_tools")?,
        };
        config.roots = self.switch("roots")?.unwrap_or(false);
        let requests = self.count("sampling_requests", 1_000)?;
        let tokens = self.count("sampling_tokens", 1_000_000)?;
        if self.switch("sampling")?.unwrap_or(false) {
            let mut limits = SamplingLimits::default();
            if let Some(requests) = requests {
                limits.requests = usize::try_from(requests).unwrap_or(usize::MAX);
            }
            limits.tokens = tokens.unwrap_or(limits.tokens);
            config.sampling = Some(limits);
        }
        config.era = match self.text("era")?.as_deref() {
            None | Some("auto") => EraChoice::Auto,
            Some("modern") => EraChoice::Modern,
            Some("legacy") => EraChoice::Legacy,
            Some(_) => return Err((self.at)("era", "expected \"auto\", \"modern\" or \"legacy\"")),
        };
        Ok(config)
    }

    fn process(&self, command: String) -> Result<StdioServer, String> {
        if command.trim().is_empty() {
            return Err((self.at)("command", "expected the name of a program"));
        }
        let mut server = StdioServer {
            command,
            args: self.list("args")?,
            env: self.table("env")?,
            cwd: self.text("cwd")?.map(PathBuf::from),
            ..StdioServer::default()
        };
        server.access.network = self.switch("network")?.unwrap_or(true);
        server.access.devices = self.list("devices")?;
        if let Some(device) = server.access.devices.iter().find(|device| *device != "audio") {
            return Err((self.at)(
                "devices",
                &format!("expected \"audio\", found \"{device}\""),
            ));
        }
        server.access.sandbox = match self.entry.get("sandbox") {
            None => true,
            Some(Value::Bool(on)) => *on,
            Some(Value::String(word)) if word == "on" => true,
            Some(Value::String(word)) if word == "off" => false,
            Some(_) => return Err((self.at)("sandbox", "expected \"on\" or \"off\"")),
        };
        Ok(server)
    }

    fn http(&self, url: String, sse: bool) -> Result<HttpEndpoint, String> {
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err((self.at)(
                "url",
                "expected an address that starts with https:// or http://",
            ));
        }
        Ok(HttpEndpoint {
            url,
            headers: self.table("headers")?,
            sse,
        })
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expanded(key, text).map(Some),
            Some(_) => Err((self.at)(key, "expected a text")),
        }
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(_) => Err((self.at)(key, "expected true or false")),
        }
    }

    fn seconds(&self, key: &str) -> Result<Option<Duration>, String> {
        let wrong = || (self.at)(key, "expected a number of seconds from 0.1 to 86400");
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let seconds = value
                    .as_f64()
                    .filter(|seconds| (0.1..=86_400.0).contains(seconds));
                seconds
                    .map(|seconds| Some(Duration::from_secs_f64(seconds)))
                    .ok_or_else(wrong)
            }
        }
    }

    fn count(&self, key: &str, max: u64) -> Result<Option<u64>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let count = value.as_u64().filter(|count| (1..=max).contains(count));
                let wrong = || (self.at)(key, &format!("expected a whole number from 1 to {max}"));
                count.map(Some).ok_or_else(wrong)
            }
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, String> {
        let wrong = || (self.at)(key, "expected a list of texts");
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .map(|item| self.expanded(key, item.as_str().ok_or_else(wrong)?))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn table(&self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let wrong = || (self.at)(key, "expected an object of texts");
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, value)| {
                    Ok((
                        name.clone(),
                        self.expanded(key, value.as_str().ok_or_else(wrong)?)?,
                    ))
                })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// Replaces `${NAME}` and `${NAME:-default}`.
    fn expanded(&self, key: &str, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                return Err((self.at)(key, "`${` without `}`"));
            };
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            match (self.expand)(name).or_else(|| default.map(str::to_owned)) {
                Some(value) => out.push_str(&value),
                None => {
                    return Err((self.at)(
                        key,
                        &format!("the environment variable {name} is not set"),
                    ));
                }
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Returns the line of a key below others, as far as the text shows it.
fn line_of(text: &str, path: &[&str]) -> usize {
    let mut from = 0;
    for key in path {
        let quoted = Value::String((*key).to_owned()).to_string();
        let rest = text.get(from..).unwrap_or_default();
        if let Some(found) = rest.find(&quoted) {
            from += found + quoted.len();
        }
    }
    text.get(..from).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<McpServerConfig>, Vec<String>), String> {
        parse(text, "m.json", &|name| {
            (name == "HOME").then(|| "/home/ann".to_owned())
        })
    }

    /// MCP-1: the shape that other programs write is read, with variables.
    #[test]
    fn the_common_shape_is_read() {
        let text = r#"{ "mcpServers": {
            "files": { "command": "npx", "args": ["-y", "pkg", "${HOME}/x", "${NO:-y}"], "env": { "A": "b" } },
            "web": { "type": "http", "url": "https://example.org/mcp", "headers": { "X": "1" }, "disabled": true } } }"#;
        let (servers, warnings) = read(text).expect("servers");
        assert!(warnings.is_empty());
        let McpTransport::Stdio(files) = &servers[0].transport else {
            panic!("a process")
        };
        assert_eq!(files.args, ["-y", "pkg", "/home/ann/x", "y"]);
        assert!(servers[0].enabled && !servers[1].enabled);
    }

    /// MCP-1: a mistake names the file, the line and the key.
    #[test]
    fn mistakes_are_located() {
        for (text, expected) in [
            ("{", "m.json:1:"),
            ("{\"mcpServers\": 1}", "m.json:1: mcpServers: expected an object"),
            (
                "{\"mcpServers\": {\n\"a\": {}}}",
                "m.json:2: mcpServers.a: a server needs",
            ),
            (
                "{\"mcpServers\": {\n\"a\": {\n\"command\": 1}}}",
                "m.json:3: mcpServers.a.command: expected a text",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"args\": [1]}}}",
                "m.json:2: mcpServers.a.args: expected a list",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"url\": \"ftp://x\"}}}",
                "expected an address",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"command\": \"${NO}\"}}}",
                "the environment variable NO is not set",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"timeout\": -1}}}",
                "expected a number of seconds",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"sandbox\": 3}}}",
                "expected \"on\" or \"off\"",
            ),
            (
                "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"sampling\": true, \"sampling_requests\": 0}}}",
                "mcpServers.a.sampling_requests: expected a whole number from 1 to 1000",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
