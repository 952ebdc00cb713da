//! The transport of 2024-11-05: answers arrive on one stream of events, requests go to an address that it names.

use futures_util::StreamExt;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use crate::config::HttpEndpoint;
use crate::content;
use crate::http::{EVENTS, Events, Headers, HttpClient, JSON, chain};

/// Bytes of messages between the two sides that may wait.
const BUFFER: usize = 64_000;

/// Opens the stream, and returns both directions as lines. `stop` closes it.
///
/// # Errors
/// If the server does not offer this transport.
pub(crate) async fn lines(
    client: &HttpClient,
    server: &HttpEndpoint,
    headers: Headers,
    stop: CancellationToken,
) -> Result<(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>), String> {
    let base = Url::parse(&server.url).map_err(|error| error.to_string())?;
    let mut request = client.inner.get(base.clone()).header("accept", EVENTS);
    for (name, value) in &headers {
        request = request.header(name, value);
    }
    let response = request.send().await.map_err(|error| chain(&error))?;
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS.as_bytes()));
    if !status.is_success() || !is_stream {
        return Err(format!("it offers no stream of events ({status})"));
    }
    let mut events = client.events(response);
    let address = address(&mut events, &base).await?;
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let bridge = Bridge {
        client: client.inner.clone(),
        address,
        headers,
    };
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = bridge.run(events, theirs) => {}
        }
    });
    Ok(tokio::io::split(ours))
}

/// Returns the address for requests, which the first event names. It must be on the same server.
async fn address(events: &mut Events, base: &Url) -> Result<Url, String> {
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| chain(&error))?;
        if event.event.as_deref() == Some("endpoint") {
            let named = event.data.unwrap_or_default();
            let address = base.join(named.trim()).map_err(|error| error.to_string())?;
            return match address.origin() == base.origin() {
                true => Ok(address),
                false => Err("it wants requests to be sent to another server".to_owned()),
            };
        }
    }
    Err("it closed the stream of events".to_owned())
}

struct Bridge {
    client: reqwest::Client,
    address: Url,
    headers: Headers,
}

impl Bridge {
    /// Passes messages on until one side ends.
    async fn run(self, mut events: Events, pipe: DuplexStream) {
        let (reader, mut writer) = tokio::io::split(pipe);
        let mut requests = BufReader::new(reader).lines();
        loop {
            tokio::select! {
                event = events.next() => {
                    let Some(Ok(event)) = event else { return };
                    let message = event.data.unwrap_or_default().replace('\n', " ");
                    if message.trim().is_empty() || event.event.as_deref().is_some_and(|name| name != "message") {
                        continue;
                    }
                    if writer.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
                request = requests.next_line() => {
                    let Ok(Some(request)) = request else { return };
                    if let Err(why) = self.send(request).await {
                        tracing::warn!("MCP server: {why}");
                        return;
                    }
                }
            }
        }
    }

    async fn send(&self, message: String) -> Result<(), String> {
        let mut request = self.client.post(self.address.clone()).header(CONTENT_TYPE, JSON);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request
            .body(message)
            .send()
            .await
            .map_err(|error| chain(&error))?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(content::line(&format!("it answered {}", response.status()), 100)),
        }
    }
}
