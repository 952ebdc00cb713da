//! The carrier over NATS, for servers that cannot reach each other.
//!
//! Subjects of a cluster: `wl.<cluster>.ask.<server>` takes requests, `wl.<cluster>.live.<session>.<stream>` carries the
//! events of one stream and `wl.<cluster>.reply.<id>` one answer. Messages are sealed with the secret of the cluster,
//! because everybody with access to NATS can read and write subjects. NATS may lose messages: pieces are numbered, and
//! a stream that misses one ends, so that its reader begins again after the last event that it has.

mod link;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{ConnectErrorKind, ConnectOptions, Event, Message, ServerAddr};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream as streams;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, EventStream, SessionId};
use windlass_core::log::Holder;

use self::link::{Incoming, Link, Outgoing, Piece};
use crate::port::Answer;
use crate::seal::{Once, Seal, cluster_name};
use crate::state::lock;
use crate::wire::{ClusterWire, OwnerQuery, WireError, WireHandler};

/// Maximum time for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Maximum time to connect.
const CONNECT: Duration = Duration::from_secs(3);
/// Time between two signs of life of a connection.
const PING: Duration = Duration::from_secs(2);
/// Longest pause before a lost connection is made again.
const AGAIN: Duration = Duration::from_secs(1);
/// Events of a stream that its reader may be behind.
const BUFFER: usize = 64;
/// Longest answer.
const LONGEST: usize = 64 << 20;
/// Begin of the address of a server that is reached over NATS.
const ADDRESS: &str = "nats:";

/// Connection to NATS.
#[derive(Clone)]
pub struct NatsConfig {
    /// Addresses of the servers, separated by commas: `nats://HOST:PORT` or `tls://HOST:PORT`, with `USER:PASSWORD@` or
    /// `TOKEN@` if NATS asks for them.
    pub servers: String,
    /// `USER:PASSWORD` or a token, instead of those in the addresses.
    pub credentials: Option<String>,
}

/// Reason why a server cannot use NATS.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    /// The address is wrong.
    #[error(
        "`server.cluster_carrier` is not the address of a NATS server: {why}; use `nats://HOST:4222`, or `tls://HOST:4222` \
         for TLS"
    )]
    Address {
        /// Cause of the failure.
        why: String,
    },
    /// NATS does not let this server in.
    #[error(
        "NATS at {servers} refuses this server: {why}; check the user, the password or the token in \
         `server.cluster_carrier`, or in the file that `server.cluster_carrier_credentials_file` names"
    )]
    Refused {
        /// Its addresses.
        servers: String,
        /// Cause of the failure.
        why: String,
    },
    /// The connection cannot be encrypted.
    #[error(
        "the TLS connection to NATS at {servers} fails: {why}; check its certificate and the system's list of authorities"
    )]
    Tls {
        /// Its addresses.
        servers: String,
        /// Cause of the failure.
        why: String,
    },
    /// The system has no random numbers.
    #[error("the system has no random numbers for the keys between servers")]
    Random,
}

/// A message to a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// A question. The answer goes to the reply subject.
    Ask(OwnerQuery),
    /// The events of a session after a number, to the reply subject.
    Listen { session: SessionId, after: u64 },
}

/// Connects servers through NATS. They need a common NATS server, and share a secret.
pub struct NatsWire {
    link: Arc<Link>,
    cluster: String,
    server: String,
    shown: String,
}

impl NatsWire {
    /// Connects a server. If NATS is not there yet, that is tried again until it is, with a warning: all that must not be
    /// lost is in the store.
    ///
    /// # Errors
    /// When the address is wrong, or NATS refuses the credentials.
    pub async fn connect(
        config: &NatsConfig,
        (secret, server): (&str, &str),
        warn: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self, NatsError> {
        let (addresses, shown, own) = addresses(&config.servers)?;
        let seal = Seal::new(secret).ok_or(NatsError::Random)?;
        let (broken, breaks) = watch::channel(0);
        let told = Arc::new(Told::new(shown.clone(), warn, broken));
        let credentials = config.credentials.clone().or(own);
        let options = || options(server, credentials.as_deref(), &told);
        let client = match options().connect(addresses.as_slice()).await {
            Ok(client) => client,
            Err(error) => {
                let (servers, why) = (shown, error.to_string());
                match error.kind() {
                    ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                        return Err(NatsError::Refused { servers, why });
                    }
                    ConnectErrorKind::Tls => return Err(NatsError::Tls { servers, why }),
                    ConnectErrorKind::ServerParse => return Err(NatsError::Address { why }),
                    _ => told.gone(&why),
                }
                let connecting = options().retry_on_initial_connect().connect(addresses.as_slice());
                connecting.await.map_err(|error| NatsError::Address {
                    why: error.to_string(),
                })?
            }
        };
        Ok(Self {
            link: Arc::new(Link::new(client, seal, breaks)),
            cluster: cluster_name(secret),
            server: server.to_owned(),
            shown: told.shown.clone(),
        })
    }

    /// Returns the address under which other servers know this one.
    pub fn address(&self) -> String {
        format!("{ADDRESS}{}", self.cluster)
    }

    /// Returns a subject of this cluster. Names may contain what subjects must not.
    fn subject(&self, kind: &str, name: &str) -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = name.chars().map(|c| if is_plain(&c) { c } else { '_' }).collect();
        format!("wl.{}.{kind}.{name}", self.cluster)
    }

    /// Sends a request to a server, and returns what comes to the subject `to`.
    async fn request(&self, owner: &Holder, to: String, request: &Request) -> Result<Incoming, WireError> {
        let failed = |why: String| WireError {
            server: owner.owner.clone(),
            why,
        };
        if owner.address != self.address() {
            let why = "it does not use this carrier and secret; give all servers the same `server.cluster_carrier` and secret";
            return Err(failed(why.to_owned()));
        }
        if self.link.client().connection_state() != State::Connected {
            return Err(failed(format!("NATS at {} cannot be reached", self.shown)));
        }
        let text = serde_json::to_vec(request).map_err(|error| failed(error.to_string()))?;
        let asked = self.subject("ask", &owner.owner);
        self.link.request(&asked, to, text).await.map_err(failed)
    }

    /// Returns the next piece of an answer.
    async fn piece(&self, owner: &Holder, incoming: &mut Incoming) -> Result<(Vec<u8>, bool), WireError> {
        let why = match incoming.next().await {
            Piece::Text { text, is_last } => return Ok((text, is_last)),
            Piece::Nobody => "it is not connected to NATS".to_owned(),
            Piece::Lost => format!("the connection over NATS at {} broke", self.shown),
        };
        Err(WireError {
            server: owner.owner.clone(),
            why,
        })
    }
}

/// Reads addresses. Returns them and a text without secrets, and the credentials that they contain.
fn addresses(text: &str) -> Result<(Vec<ServerAddr>, String, Option<String>), NatsError> {
    let (mut addresses, mut shown, mut credentials) = (Vec::new(), Vec::new(), None);
    for one in text.split(',').map(str::trim) {
        let wrong = |why: String| NatsError::Address { why };
        let address: ServerAddr = one.parse().map_err(|error| wrong(format!("{error}")))?;
        if address.is_websocket() || address.host().is_empty() {
            return Err(wrong("it has no host, or another scheme".to_owned()));
        }
        shown.push(format!("{}:{}", address.host(), address.port()));
        // The client ignores what the address says.
        if let Some(user) = address.username() {
            let (user, password) = (decoded(user), address.password().map(decoded));
            credentials = Some(password.map_or(user.clone(), |password| format!("{user}:{password}")));
        }
        let mut bare = address.into_inner();
        let _ = (bare.set_username(""), bare.set_password(None));
        addresses.push(ServerAddr::from_url(bare).map_err(|error| wrong(error.to_string()))?);
    }
    Ok((addresses, shown.join(", "), credentials))
}

/// Returns a part of an address with its escapes, such as `%40`, replaced.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        rest = after;
        match code.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn options(server: &str, credentials: Option<&str>, told: &Arc<Told>) -> ConnectOptions {
    let told = Arc::clone(told);
    let options = ConnectOptions::new()
        .name(format!("windlass {server}"))
        .connection_timeout(CONNECT)
        .ping_interval(PING)
        .reconnect_delay_callback(|attempt| {
            let pause = 25_u64.saturating_mul(1 << attempt.min(10));
            Duration::from_millis(pause).min(AGAIN)
        })
        .event_callback(move |event| {
            let told = Arc::clone(&told);
            async move { told.event(&event) }
        });
    match credentials.map(|text| (text, text.split_once(':'))) {
        None => options,
        Some((_, Some((user, password)))) => options.user_and_password(user.to_owned(), password.to_owned()),
        Some((token, None)) => options.token(token.to_owned()),
    }
}

/// Tells whoever runs the server about the connection.
struct Told {
    shown: String,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
    /// Counts the breaks of the connection, which end the streams over it.
    broken: watch::Sender<u64>,
    /// The last trouble, which is told once. `None` while all is well.
    last: std::sync::Mutex<Option<String>>,
}

impl Told {
    fn new(shown: String, warn: Arc<dyn Fn(&str) + Send + Sync>, broken: watch::Sender<u64>) -> Self {
        Self {
            shown,
            warn,
            broken,
            last: std::sync::Mutex::default(),
        }
    }

    fn event(&self, event: &Event) {
        match event {
            Event::Connected => {
                if lock(&self.last).take().is_some() {
                    (self.warn)(&format!("NATS at {} is back", self.shown));
                }
            }
            Event::Disconnected | Event::Closed => {
                self.broken.send_modify(|breaks| *breaks += 1);
                self.gone("the connection broke");
            }
            Event::ServerError(error) => self.trouble(&error.to_string()),
            Event::ClientError(error) => self.trouble(&error.to_string()),
            // Numbers tell the reader of a stream.
            Event::SlowConsumer(_) | Event::LameDuckMode | Event::Draining => {}
        }
    }

    fn gone(&self, why: &str) {
        self.trouble(&format!(
            "{why}; until it is back, sessions of other servers show what is in the store, and questions about their state \
             have no answer"
        ));
    }

    fn trouble(&self, why: &str) {
        let mut last = lock(&self.last);
        if last.as_deref() != Some(why) {
            *last = Some(why.to_owned());
            (self.warn)(&format!("NATS at {}: {why}", self.shown));
        }
    }
}

#[async_trait]
impl ClusterWire for NatsWire {
    async fn serve(&self, sessions: Arc<dyn WireHandler>, stop: CancellationToken) -> Result<(), WireError> {
        let own = self.subject("ask", &self.server);
        let requests = self.link.client().subscribe(own.clone()).await;
        let mut requests = requests.map_err(|error| WireError {
            server: "this one".to_owned(),
            why: error.to_string(),
        })?;
        let once = Once::default();
        loop {
            let message = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                message = requests.next() => message,
            };
            let Some(message) = message else {
                // The client is closed with the program.
                stop.cancelled().await;
                return Ok(());
            };
            if let Some((request, to)) = self.accepted(&message, &once) {
                let (link, sessions) = (Arc::clone(&self.link), Arc::clone(&sessions));
                tokio::spawn(carry_out(link, sessions, (request, to), stop.clone()));
            }
        }
    }

    async fn listen(
        &self,
        owner: &Holder,
        session: &SessionId,
        after: u64,
    ) -> Result<EventStream, WireError> {
        let to = format!("{}.{}", self.subject("live", session.as_str()), new_id());
        let session = session.clone();
        let request = Request::Listen { session, after };
        let mut incoming = self.request(owner, to, &request).await?;
        let failed = |why: String| WireError {
            server: owner.owner.clone(),
            why,
        };
        let first = timeout(ANSWER, self.piece(owner, &mut incoming)).await;
        let (text, _) = first.map_err(|_| failed("it does not answer".to_owned()))??;
        let answer = serde_json::from_slice::<Answer>(&text).map_err(|error| failed(error.to_string()))?;
        answer.into_result().map_err(|error| failed(error.to_string()))?;
        let (sender, receiver) = mpsc::channel(BUFFER);
        tokio::spawn(stream::follow(incoming, sender));
        Ok(EventStream::new(streams::unfold(
            receiver,
            async |mut receiver| receiver.recv().await.map(|event| (event, receiver)),
        )))
    }

    async fn ask(&self, owner: &Holder, ask: &OwnerQuery) -> Result<Result<Value, ClientError>, WireError> {
        let to = self.subject("reply", &new_id());
        let answered = async {
            let mut incoming = self.request(owner, to, &Request::Ask(ask.clone())).await?;
            let mut answer = Vec::new();
            loop {
                let (text, is_last) = self.piece(owner, &mut incoming).await?;
                answer.extend_from_slice(&text);
                if is_last || answer.len() > LONGEST {
                    return Ok(answer);
                }
            }
        };
        let failed = |why: String| WireError {
            server: owner.owner.clone(),
            why,
        };
        let answer = timeout(ANSWER, answered).await;
        let answer = answer.map_err(|_| failed("it does not answer in time".to_owned()))??;
        serde_json::from_slice::<Answer>(&answer)
            .map(Answer::into_result)
            .map_err(|error| failed(error.to_string()))
    }
}

impl NatsWire {
    /// Returns a request of a server of this cluster, and the subject for its answer. Others are left without one.
    fn accepted(&self, message: &Message, once: &Once) -> Option<(Request, String)> {
        let to = message.reply.as_ref()?.to_string();
        let own = format!("wl.{}.", self.cluster);
        let (mark, text) = self.link.open(&message.subject, &message.payload)?;
        let is_new = to.starts_with(&own) && once.is_new(mark);
        let request = serde_json::from_slice(&text).ok().filter(|_| is_new)?;
        Some((request, to))
    }
}

async fn carry_out(
    link: Arc<Link>,
    sessions: Arc<dyn WireHandler>,
    (request, to): (Request, String),
    stop: CancellationToken,
) {
    let refused = match request {
        Request::Ask(ask) => Answer::of(sessions.answer(ask).await),
        Request::Listen { session, after } => match sessions.events(&session, after).await {
            Ok(events) => return stream::publish(&link, to, events, &stop).await,
            Err(error) => Answer::Err(error),
        },
    };
    let text = serde_json::to_vec(&refused).unwrap_or_default();
    // Whoever asked does not wait for long.
    let _ = Outgoing::new(&link, to).send(&text, true).await;
}

fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DIST-4: addresses are shown without their secrets; a name without a password is a token.
    #[test]
    fn addresses_are_read_and_shown_without_secrets() {
        let read = |text| addresses(text).map(|(all, shown, own)| (all.len(), shown, own));
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("nats://t0ken@10.0.0.1").unwrap(),
            (1, "10.0.0.1:4222".to_owned(), own("t0ken"))
        );
        assert_eq!(
            read("nats://a:4223, tls://me:s%40cret%25@b").unwrap(),
            (2, "a:4223, b:4222".to_owned(), own("me:s@cret%"))
        );
        for wrong in ["", "nats://", "https://a", "ws://a", "nats://a:port"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("use `nats://HOST:4222`"), "{wrong}: {error}");
        }
    }
}
