//! Floods: thousands of connections that never finish a request, and bodies of a gigabyte. Other clients must still
//! be served, and memory must stay bounded.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::client::{Address, Running, request};
use super::quantile;
use crate::clock::now;
use crate::figures::milliseconds;
use crate::lab::Lab;
use crate::process;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Size of a body that is too large.
const BODY: usize = 1_000_000_000;
/// Maximum time for sending such a body.
const SENDING: Duration = Duration::from_secs(20);

#[allow(clippy::cast_precision_loss)]
pub(super) fn measure(lab: &Lab, runtime: &tokio::runtime::Runtime) -> Result<Vec<Figure>> {
    let connections = if lab.quick { 500 } else { 10_000 };
    raise_limit()?;
    let model = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let server = Running::start(lab, &model)?;
    let (opened, times) = runtime.block_on(async {
        let mut held = Vec::new();
        let mut times = Vec::new();
        for number in 0..connections {
            if let Ok(stream) = half_a_request(&server.address(), number).await {
                held.push(stream);
            }
            if number % (connections / 20) == 0 {
                times.push(served(&server.address()).await?);
            }
        }
        for with_token in [true, false] {
            body(&server.address(), with_token).await;
            times.push(served(&server.address()).await?);
        }
        anyhow::Ok((held.len(), times))
    })?;
    let peak = process::peak_memory(server.pid()).context("the server is gone")?;
    server.stop()?;
    model.finish()?;
    Ok(vec![
        Figure {
            name: format!("{connections} unfinished requests, bodies of 1 GB: peak memory"),
            agent: format!("{:.1} MB", peak as f64 / 1e3),
            floor: format!("{opened} connections"),
            value: peak as f64 / 1e3,
            unit: "MB",
            target: Target::AtMost(200.0),
        },
        Figure {
            name: "another client meanwhile: slowest answer".to_owned(),
            agent: format!("{:.2} ms at the median", quantile(times.clone(), 0.5)),
            floor: format!("{} requests", times.len()),
            value: quantile(times, 1.0),
            unit: "ms",
            target: Target::AtMost(1_000.0),
        },
    ])
}

/// Allows this process as many open files as it may have.
fn raise_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Opens a connection and sends a request that does not end.
async fn half_a_request(address: &Address, number: usize) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address.socket).await?;
    let text = match number % 3 {
        0 => String::new(),
        1 => format!(
            "GET /api/sessions HTTP/1.1\r\nHost: {}\r\nX-Slow: ",
            address.socket
        ),
        _ => format!(
            "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            address.socket
        ),
    };
    stream.write_all(text.as_bytes()).await?;
    Ok(stream)
}

/// Returns the time of a request that must be answered, in milliseconds.
async fn served(address: &Address) -> Result<f64> {
    let begun = now();
    let asked = tokio::time::timeout(SENDING, request(address, "GET", "/api/sessions", ""));
    let (status, _) = asked.await.context("the server does not answer")??;
    anyhow::ensure!(status == 200, "the server answers with {status}");
    Ok(milliseconds(begun, now()))
}

/// Sends a body that is too large, until the server closes the connection.
async fn body(address: &Address, with_token: bool) {
    let sending = async {
        let mut stream = TcpStream::connect(address.socket).await?;
        let token = if with_token {
            address.token.as_str()
        } else {
            "wl_none"
        };
        let head = format!(
            "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n",
            address.socket
        );
        stream.write_all(head.as_bytes()).await?;
        let piece = vec![b' '; 1 << 20];
        for _ in 0..BODY / piece.len() {
            stream.write_all(&piece).await?;
        }
        anyhow::Ok(())
    };
    // It fails as soon as the server refuses.
    let _ = tokio::time::timeout(SENDING, sending).await;
}
