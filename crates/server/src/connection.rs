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
pub(crate) struct Guest {
    is_known: AtomicBool,
    /// Time at which it was accepted.
    since: Duration,
    end: CancellationToken,
}

impl Guest {
    fn new(since: Duration) -> Self {
        Self {
            is_known: AtomicBool::new(false),
            since,
            end: CancellationToken::new(),
        }
    }

    /// Notes that the connection has shown a valid credential.
    pub(crate) fn is_welcome(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }
}

/// The connections without a valid credential, oldest first.
#[derive(Default)]
struct Strangers(VecDeque<Weak<Guest>>);

impl Strangers {
    /// Makes room for another connection. If there are too many, the oldest one ends, but not before it had the time to
    /// show a credential: a crowd of clients that connect at once must not push each other out.
    async fn make_room(&mut self, clock: &dyn Clock) {
        for _ in 0..CHANCES {
            if self.0.len() < STRANGERS {
                return;
            }
            self.0.retain(|guest| {
                let guest = guest.upgrade();
                guest.is_some_and(|guest| !guest.is_known.load(Ordering::Relaxed))
            });
            let oldest = self.0.front().and_then(Weak::upgrade);
            let age = oldest.map_or(Duration::MAX, |oldest| {
                clock.elapsed().saturating_sub(oldest.since)
            });
            if self.0.len() < STRANGERS || age >= CHANCE * CHANCES {
                break;
            }
            clock.sleep(CHANCE).await;
        }
        if self.0.len() >= STRANGERS
            && let Some(oldest) = self.0.pop_front().and_then(|oldest| oldest.upgrade())
        {
            oldest.end.cancel();
        }
    }

    fn add(&mut self, guest: &Arc<Guest>) {
        self.0.push_back(Arc::downgrade(guest));
    }
}

/// Connections at a time. More wait in the system's queue.
const CONNECTIONS: usize = 4_096;
/// Connections at a time that have not shown a valid credential. The oldest of them makes room for a new one, so that
/// nobody can keep others out.
const STRANGERS: usize = 512;
/// Time between two looks whether a connection has shown a credential, and the number of looks before it has to make room.
const CHANCE: Duration = Duration::from_millis(10);
const CHANCES: u32 = 50;
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
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = strangers.make_room(clock) => {}
                }
                let guest = Arc::new(Guest::new(clock.elapsed()));
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use windlass_core::clock::Timestamp;

    use super::*;

    /// Time that passes only while somebody waits.
    #[derive(Default)]
    struct Hourglass {
        passed: Mutex<Duration>,
        guests: Mutex<Vec<Arc<Guest>>>,
    }

    #[async_trait]
    impl Clock for Hourglass {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn elapsed(&self) -> Duration {
            *self.passed.lock().expect("the time")
        }

        /// One guest shows a credential meanwhile.
        async fn sleep(&self, duration: Duration) {
            *self.passed.lock().expect("the time") += duration;
            if let Some(guest) = self.guests.lock().expect("the guests").pop() {
                guest.is_welcome();
            }
        }
    }

    fn crowd(clock: &Hourglass) -> (Strangers, Vec<Arc<Guest>>) {
        let mut strangers = Strangers::default();
        let guests: Vec<Arc<Guest>> = (0..STRANGERS)
            .map(|_| Arc::new(Guest::new(clock.elapsed())))
            .collect();
        guests.iter().for_each(|guest| strangers.add(guest));
        (strangers, guests)
    }

    /// SRV-3: clients that connect at once and show their credentials do not push each other out.
    #[tokio::test]
    async fn a_crowd_of_clients_is_served() {
        let clock = Hourglass::default();
        let (mut strangers, guests) = crowd(&clock);
        clock
            .guests
            .lock()
            .expect("the guests")
            .extend(guests.iter().cloned());
        for _ in 0..100 {
            strangers.make_room(&clock).await;
            strangers.add(&Arc::new(Guest::new(clock.elapsed())));
        }
        assert!(guests.iter().all(|guest| !guest.end.is_cancelled()));
    }

    /// SRV-3: a client that never shows a credential makes room for another one after half a second.
    #[tokio::test]
    async fn silent_connections_make_room() {
        let clock = Hourglass::default();
        let (mut strangers, guests) = crowd(&clock);
        strangers.make_room(&clock).await;
        assert!(guests[0].end.is_cancelled() && !guests[1].end.is_cancelled());
        assert_eq!(clock.elapsed(), CHANCE * CHANCES);
        let next = Arc::new(Guest::new(clock.elapsed()));
        strangers.add(&next);
        strangers.make_room(&clock).await;
        assert!(guests[1].end.is_cancelled(), "the next one had its time already");
        assert_eq!(clock.elapsed(), CHANCE * CHANCES);
    }
}
