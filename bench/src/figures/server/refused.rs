//! Requests that must be refused: no credential, a wrong, revoked or misplaced one, a wrong host, a wrong origin.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::{Address, Running};
use crate::lab::Lab;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Number of requests at a time.
const TOGETHER: usize = 16;

/// Routes that need a credential.
const ROUTES: &[(&str, &str)] = &[
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions"),
    ("GET", "/api/events"),
    ("GET", "/api/sessions/{id}"),
    ("GET", "/api/sessions/{id}/state"),
    ("GET", "/api/sessions/{id}/events"),
    ("POST", "/api/sessions/{id}/messages"),
    ("POST", "/api/sessions/{id}/cancel"),
    ("DELETE", "/api/sessions/{id}"),
    ("GET", "/metrics"),
];

/// Headers of an attempt. `{host}` is the server's own, `{token}` a valid token, `{revoked}` one that is not valid any
/// more.
const ATTEMPTS: &[&str] = &[
    "Host: {host}\r\n",
    "Host: {host}\r\nAuthorization: Bearer\r\n",
    "Host: {host}\r\nAuthorization: Bearer wl_000000000000_0000000000000000000000000000000000000000000000000000000000000000\r\n",
    "Host: {host}\r\nAuthorization: Bearer {revoked}\r\n",
    "Host: {host}\r\nAuthorization: Basic {token}\r\n",
    "Host: {host}\r\nAuthorization: Bearer {token}x\r\n",
    "Host: {host}\r\nAuthorization: Bearer {half}\r\n",
    "Host: {host}\r\nCookie: windlass={token}\r\n",
    "Host: {host}\r\nCookie: session={revoked}; token={token}\r\n",
    "Host: evil.example\r\nAuthorization: Bearer {token}\r\n",
    "Host: 127.0.0.1:1\r\nAuthorization: Bearer {token}\r\n",
    "Host: {host}.evil.example\r\nAuthorization: Bearer {token}\r\n",
    "Host: {host}\r\nAuthorization: Bearer {token}\r\nOrigin: https://evil.example\r\n",
    "Host: {host}\r\nAuthorization: Bearer {token}\r\nOrigin: null\r\n",
    "Host: {host}\r\nAuthorization: Bearer {token}\r\nSec-Fetch-Site: cross-site\r\n",
    "Host: {host}\r\nAuthorization: Bearer {token}\r\nSec-Fetch-Site: same-site\r\n",
];

#[allow(clippy::cast_precision_loss)]
pub(super) fn measure(lab: &Lab, runtime: &tokio::runtime::Runtime) -> Result<Figure> {
    let wanted = if lab.quick { 500 } else { 10_000 };
    let model = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let server = Running::start(lab, &model)?;
    let revoked = revoked_token(lab)?;
    let (sent, succeeded) = runtime.block_on(attempts(&server, &revoked, wanted))?;
    server.stop()?;
    model.finish()?;
    Ok(Figure {
        name: format!("{sent} requests that must be refused: succeeded"),
        agent: format!("{succeeded} requests"),
        floor: "–".to_owned(),
        value: succeeded as f64,
        unit: "requests",
        target: Target::AtMost(0.0),
    })
}

/// Creates a token and revokes it.
fn revoked_token(lab: &Lab) -> Result<String> {
    let mut create = lab.token();
    let output = create.output()?;
    let text = String::from_utf8(output.stdout)?;
    let token = text.split_ascii_whitespace().find(|word| word.starts_with("wl_"));
    let token = token.context("there is no token")?.to_owned();
    let number = token.split('_').nth(1).unwrap_or_default().to_owned();
    if !lab.revoke(&number).status()?.success() {
        bail!("the token {number} was not revoked");
    }
    Ok(token)
}

async fn attempts(server: &Running, revoked: &str, wanted: usize) -> Result<(usize, usize)> {
    let id = server.create().await?;
    let mut tasks: JoinSet<Result<u16>> = JoinSet::new();
    let (mut sent, mut succeeded) = (0, 0);
    for number in 0..wanted {
        let (method, path) = ROUTES.get(number % ROUTES.len()).context("no route")?;
        let headers = ATTEMPTS
            .get(number / ROUTES.len() % ATTEMPTS.len())
            .context("no attempt")?;
        let request = request(
            &server.address(),
            revoked,
            (method, &path.replace("{id}", &id)),
            headers,
        );
        tasks.spawn(send(server.address(), request));
        sent += 1;
        while tasks.len() >= TOGETHER {
            succeeded += is_success(tasks.join_next().await)?;
        }
    }
    while let Some(ended) = tasks.join_next().await {
        succeeded += is_success(Some(ended))?;
    }
    Ok((sent, succeeded))
}

fn is_success(ended: Option<Result<Result<u16>, tokio::task::JoinError>>) -> Result<usize> {
    let status = ended.context("no request runs")???;
    Ok(usize::from(status < 400))
}

fn request(address: &Address, revoked: &str, (method, path): (&str, &str), headers: &str) -> String {
    let host = address.socket.to_string();
    let half: String = address.token.chars().take(address.token.len() / 2).collect();
    let headers = headers
        .replace("{host}", &host)
        .replace("{token}", &address.token)
        .replace("{half}", &half)
        .replace("{revoked}", revoked);
    let body = if method == "GET" { "" } else { "{}" };
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a request and returns the status of the answer.
async fn send(address: Address, request: String) -> Result<u16> {
    let mut stream = TcpStream::connect(address.socket).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = head.get(9..).unwrap_or_default();
    Ok(String::from_utf8_lossy(status).parse()?)
}
