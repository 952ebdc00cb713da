//! Sessions of the protocol itself, which clients with a handshake have over HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_jsonrpc::OpenRequests;

use crate::protocol::Handshake;
use crate::stdio::OpenCalls;

/// Number of sessions that are kept. The oldest goes first.
const MOST: usize = 256;

/// A client that has shaken hands.
#[derive(Clone)]
pub(crate) struct HttpClient {
    pub(crate) id: String,
    /// Token that the client used. No other may use its session.
    pub(crate) token: String,
    pub(crate) handshake: Handshake,
    /// Questions to the client.
    pub(crate) asked: OpenRequests,
    /// Requests of the client.
    pub(crate) open: OpenCalls,
}

/// All clients with a session.
#[derive(Clone, Default)]
pub(crate) struct HttpClients(Arc<Mutex<VecDeque<HttpClient>>>);

impl HttpClients {
    fn lock(&self) -> MutexGuard<'_, VecDeque<HttpClient>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, token: &str, handshake: Handshake) -> HttpClient {
        let client = HttpClient {
            id: uuid::Uuid::new_v4().to_string(),
            token: token.to_owned(),
            handshake,
            asked: OpenRequests::default(),
            open: OpenCalls::default(),
        };
        let mut clients = self.lock();
        clients.push_back(client.clone());
        if clients.len() > MOST
            && let Some(oldest) = clients.pop_front()
        {
            oldest.open.cancel_all();
        }
        client
    }

    pub(crate) fn find(&self, id: &str, token: &str) -> Option<HttpClient> {
        let clients = self.lock();
        let found = clients
            .iter()
            .find(|client| client.id == id && client.token == token);
        found.cloned()
    }

    /// Ends a session, and withdraws its requests.
    pub(crate) fn remove(&self, client: &HttpClient) {
        client.open.cancel_all();
        self.lock().retain(|other| other.id != client.id);
    }
}
