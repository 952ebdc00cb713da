//! VOICE-1: `/voice`: prompts that an MCP speech server hears.

mod listening;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use windlass_api::SessionInputs;
use windlass_core::permission::Rule;
use windlass_mcp::{McpServer, Phase, plain_text, server_part};
use windlass_service::{ExtensionCommand, ExtensionReply};

use self::listening::{GET, Listening, START, STOP, SpeechSession};
use super::mcp::CurrentServers;
use super::{Connected, Extension, ExtensionHost, ExtensionOffer};

/// Sources of sound that a speech server listens to.
const SOURCES: [&str; 2] = ["microphone", "loopback"];
/// Time to wait for servers that start.
const STARTING: Duration = Duration::from_secs(15);
/// Time for a server to open a session, which may load a model.
const OPENING: Duration = Duration::from_secs(60);
/// Time for voice input to end after it was told to.
const ENDING: Duration = Duration::from_secs(15);
/// Time for voice input to end when the session is closed.
const CLOSING: Duration = Duration::from_secs(3);

/// Voice input of a session.
pub(super) struct VoiceExtension {
    servers: CurrentServers,
    host: ExtensionHost,
    inputs: Option<Arc<dyn SessionInputs>>,
    /// The last voice input, which may have ended.
    listening: Option<Listening>,
}

/// Arguments of `/voice start`.
struct Wanted<'a> {
    source: &'static str,
    server: Option<&'a str>,
    /// Further arguments for the server.
    arguments: Map<String, Value>,
}

impl<'a> Wanted<'a> {
    fn parse(words: &[&'a str]) -> Result<Self, String> {
        let mut wanted = Self {
            source: SOURCES[0],
            server: None,
            arguments: Map::new(),
        };
        for word in words {
            if let Some((name, value)) = word.split_once('=') {
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
                wanted.arguments.insert(name.to_owned(), value);
            } else if let Some(source) = SOURCES.iter().find(|source| *source == word) {
                wanted.source = source;
            } else if wanted.server.replace(word).is_some() {
                return Err(
                    "write /voice start [microphone|loopback] [SERVER] [NAME=VALUE…]; the sources are \
                            microphone and loopback"
                        .to_owned(),
                );
            }
        }
        Ok(wanted)
    }
}

impl VoiceExtension {
    pub(super) fn new(servers: CurrentServers, host: ExtensionHost) -> Self {
        Self {
            servers,
            host,
            inputs: None,
            listening: None,
        }
    }

    async fn start(&mut self, words: &[&str]) -> Result<String, String> {
        if self.listening.as_ref().is_some_and(Listening::is_on) {
            return Err("voice input is on already; /voice stop ends it".to_owned());
        }
        let wanted = Wanted::parse(words)?;
        let inputs = self.inputs.clone().ok_or("this session takes no voice input")?;
        let server = self.speech_server(wanted.server).await?;
        let name = server.config().name.clone();
        self.check_rules(&name)?;
        let mut arguments = wanted.arguments;
        arguments.insert("source".to_owned(), Value::String(wanted.source.to_owned()));
        let failed = |why: String| format!("voice input did not start: MCP server {name}: {why}");
        let opened = server.ask(START, arguments, OPENING).await;
        let opened = opened.map_err(|error| failed(error.to_string()))?;
        let id = opened.get("session_id").and_then(Value::as_str);
        let id = id.ok_or_else(|| failed(format!("{START} returned no session_id")))?;
        let session = SpeechSession {
            server,
            id: id.to_owned(),
            source: wanted.source,
        };
        let text = format!(
            "Listening to the {} through {name}. What you say becomes your prompts; /voice stop ends it.",
            wanted.source
        );
        self.listening = Some(Listening::start(session, inputs));
        Ok(text)
    }

    /// Returns the server with the speech tools. Waits a moment for servers that start.
    async fn speech_server(&self, name: Option<&str>) -> Result<Arc<McpServer>, String> {
        let set = self.servers.get();
        let starting: Vec<Arc<McpServer>> = set
            .servers()
            .into_iter()
            .filter(|server| name.is_none_or(|name| server.config().name == name))
            .collect();
        let settle = async {
            let mut waits: FuturesUnordered<_> = starting.iter().map(|server| server.settled()).collect();
            // One that never answers holds up nobody.
            while !starting.iter().any(can_hear) && waits.next().await.is_some() {}
        };
        // A server that takes longer is named below.
        let _ = tokio::time::timeout(STARTING, settle).await;
        let able: Vec<Arc<McpServer>> = starting
            .iter()
            .filter(|server| can_hear(server))
            .cloned()
            .collect();
        match (able.as_slice(), name) {
            ([server], _) => Ok(Arc::clone(server)),
            ([_, _, ..], _) => Err(format!(
                "several MCP servers can hear; name one, as in /voice start microphone {}",
                names(&able).first().copied().unwrap_or_default()
            )),
            ([], Some(name)) if starting.is_empty() => {
                let all = set.servers();
                let known = names(&all).join(", ");
                Err(format!(
                    "there is no MCP server {name}{}; the sources are microphone and loopback",
                    if known.is_empty() {
                        String::new()
                    } else {
                        format!(" (there are: {known})")
                    }
                ))
            }
            ([], _) => Err(unable(&starting)),
        }
    }

    /// The user asked for the calls by typing the command, so nothing is asked; denials apply all the same.
    fn check_rules(&self, server: &str) -> Result<(), String> {
        let Some(calls) = self.host.calls() else {
            return Ok(());
        };
        let denied = |tool: &str| -> Option<Rule> {
            let name = format!("mcp__{}__{tool}", server_part(server));
            calls
                .config
                .policy
                .rules
                .deny
                .iter()
                .find(|rule| rule.names(&name))
                .cloned()
        };
        match [START, GET, STOP].into_iter().find_map(denied) {
            Some(rule) => Err(format!("voice input did not start: the rule `{rule}` forbids it")),
            None => Ok(()),
        }
    }

    async fn stop(&mut self) -> Result<String, String> {
        match self.listening.as_mut().filter(|listening| listening.is_on()) {
            Some(listening) => {
                listening.end(ENDING).await;
                Ok(listening.describe())
            }
            None => Err("voice input is off".to_owned()),
        }
    }
}

#[async_trait]
impl Extension for VoiceExtension {
    fn name(&self) -> &'static str {
        "voice"
    }

    fn connect(&mut self, connected: &Connected) {
        self.inputs = Some(Arc::clone(&connected.inputs));
    }

    fn offer(&self) -> ExtensionOffer {
        ExtensionOffer::default()
    }

    async fn command(&mut self, command: &ExtensionCommand<'_>) -> Result<ExtensionReply, String> {
        let words: Vec<&str> = command.arguments.split_whitespace().collect();
        let text = match words.as_slice() {
            ["start", rest @ ..] => self.start(rest).await?,
            [] | ["status"] => match &self.listening {
                Some(listening) => listening.describe(),
                None => "Voice input is off. /voice start turns it on.".to_owned(),
            },
            ["stop"] => self.stop().await?,
            _ => {
                return Err(
                    "write /voice start [microphone|loopback], /voice status, or /voice stop".to_owned(),
                );
            }
        };
        Ok(ExtensionReply::text(text))
    }

    async fn close(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.end(CLOSING).await;
        }
    }
}

fn can_hear(server: &Arc<McpServer>) -> bool {
    server.phase() == Phase::Ready && [START, GET, STOP].into_iter().all(|tool| server.has_tool(tool))
}

fn names(servers: &[Arc<McpServer>]) -> Vec<&str> {
    servers
        .iter()
        .map(|server| server.config().name.as_str())
        .collect()
}

/// Says why none of these servers can be used.
fn unable(servers: &[Arc<McpServer>]) -> String {
    let mut text =
        "no MCP server can hear: voice input needs one with the tools stt_start_session, stt_get_updates and \
         stt_stop_session; docs/voice.md explains how to add one"
            .to_owned();
    for server in servers {
        let name = &server.config().name;
        match server.phase() {
            Phase::Starting => text.push_str(&format!("\n{name} is still starting")),
            Phase::Failed(error) => text.push_str(&format!("\n{name}: {error}")),
            Phase::Off if server.config().enabled => text.push_str(&format!("\n{name} is off")),
            Phase::Off | Phase::Ready => {}
        }
    }
    plain_text(&text, 2_000)
}
