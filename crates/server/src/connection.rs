//! SRV-3: connections, with limits on their number, on the time of headers, and on the time to close.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;
use windlass_core::clock::Clock;

use crate::checks::Peer;
use crate::tls::Tls;

/// A connection, seen from outside.
#[derive(Default)]
pub(crate) struct Guest {
    is_known: AtomicBool,
    end: CancellationToken,
}

impl Guest {
    /// Notes that the connection has shown a valid credential.
    pub(crate) fn is_welcome(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// The connections without a valid credential, oldest first.
#[derive(Default)]
struct Strangers(VecDeque<Weak<Guest>>);

impl Strangers {
    /// Adds a connection, and ends the oldest one if there are too many.
    fn add(&mut self, guest: &Arc<Guest>) {
        let is_stranger = |guest: &Weak<Guest>| {
            let guest = guest.upgrade();
            guest.is_some_and(|guest| !guest.is_known.load(Ordering::Relaxed))
        };
        if self.0.len() >= STRANGERS {
            self.0.retain(is_stranger);
        }
        if self.0.len() >= STRANGERS
            && let Some(oldest) = self.0.pop_front().and_then(|oldest| oldest.upgrade())
        {
            oldest.end.cancel();
        }
        self.0.push_back(Arc::downgrade(guest));
    }
}

/// Connections at a time. More wait in the system's queue.
const CONNECTIONS: usize = 4_096;
/// Connections at a time that have not shown a valid credential. The oldest of them makes room for a new one, so that
/// nobody can keep others out.
const STRANGERS: usize = 512;
/// Time for the headers of a request, from the first byte or the end of the last answer.
const HEADERS: Duration = Duration::from_secs(15);
/// Largest headers, in bytes.
const HEADER_BYTES: usize = 32 << 10;
/// Delay after a failure to accept, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Time for connections to close when the server stops.
const GRACE: Duration = Duration::from_secs(3);

/// Serves connections until `stop`, and then waits for the open ones for a moment.
pub(crate) async fn serve(
    (listener, tls): (TcpListener, Option<Arc<Tls>>),
    router: Router,
    clock: &dyn Clock,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = TaskTracker::new();
    let mut strangers = Strangers::default();
    // Dropped connections end when this is cancelled.
    let end = CancellationToken::new();
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&room).acquire_owned() => match permit {
                Ok(permit) => permit,
                Err(_) => break,
            },
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let guest = Arc::new(Guest::default());
                strangers.add(&guest);
                let connection = Connection {
                    router: router.clone(),
                    peer: Peer(peer),
                    guest,
                    stop: stop.clone(),
                    end: end.clone(),
                };
                connections.spawn(connection.run(stream, tls.clone(), permit));
            }
            Err(_) => clock.sleep(ACCEPT_AGAIN).await,
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
        end.cancel();
        connections.wait().await;
    }
}

struct Connection {
    router: Router,
    peer: Peer,
    guest: Arc<Guest>,
    stop: CancellationToken,
    end: CancellationToken,
}

impl Connection {
    async fn run(self, stream: TcpStream, tls: Option<Arc<Tls>>, _permit: OwnedSemaphorePermit) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return self.serve(stream).await;
        };
        let handshake = tokio::time::timeout(HEADERS, secured(stream, &tls));
        let stream = tokio::select! {
            stream = handshake => stream,
            () = self.stop.cancelled() => return,
            () = self.guest.end.cancelled() => return,
        };
        if let Ok(Some(stream)) = stream {
            self.serve(stream).await;
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (router, peer, guest) = (self.router, self.peer, Arc::clone(&self.guest));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(Arc::clone(&guest));
            router.clone().call(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut is_stopping = false;
        loop {
            tokio::select! {
                _ = &mut connection => return,
                () = self.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.end.cancelled() => return,
                () = self.guest.end.cancelled() => return,
            }
        }
    }
}

/// First byte of a TLS connection.
const HANDSHAKE: u8 = 0x16;
/// Answer to a client that speaks HTTP where HTTPS is spoken.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n\
    this server speaks HTTPS: use https:// in the address\n";

/// Performs the TLS handshake. `None` if it fails, or if the client speaks plain HTTP, which is told.
async fn secured(mut stream: TcpStream, tls: &Tls) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    let length = stream.peek(&mut first).await.ok()?;
    if length == 1 && first != [HANDSHAKE] {
        let mut request = [0; 1024];
        // A connection that is closed with unread data is reset, and the client never sees the answer.
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(PLAIN).await;
        let _ = stream.shutdown().await;
        return None;
    }
    tls.acceptor().accept(stream).await.ok()
}
