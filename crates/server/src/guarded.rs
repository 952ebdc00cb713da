//! Routes of another crate behind the checks of this server: peer, `Host`, `Origin`, `Sec-Fetch-Site`, token, content
//! type, with the same limits on connections.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_core::clock::Clock;
use windlass_core::log::{Store, UserName};

use crate::access::ServerAccess;
use crate::checks::{Failures, Peer, admitted, secrets};
use crate::connection::{self, Guest};
use crate::credentials::{CredentialKind, Credentials, Scope};
use crate::problem::Problem;
use crate::server::ServerError;

/// The token of a request, as an extension of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// Id of the token.
    pub id: String,
    /// True if the token may answer permission requests.
    pub can_approve: bool,
    /// User whose token it is.
    pub user: UserName,
}

/// A server for routes that only tokens with the scope `write` may use.
pub struct Guarded {
    store: Arc<dyn Store>,
    listener: TcpListener,
    gate: Arc<Gate>,
}

struct Gate {
    access: ServerAccess,
    credentials: Credentials,
    failures: Failures,
    clock: Arc<dyn Clock>,
}

impl Guarded {
    /// Binds the address. `names` are further names of the server.
    ///
    /// # Errors
    /// When the address is taken or not allowed.
    pub async fn bind(
        addr: SocketAddr,
        names: Vec<String>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let access = ServerAccess {
            listen: listener.local_addr().map_err(failed)?,
            names,
            is_https: false,
            is_behind_proxy: false,
        };
        let gate = Gate {
            access,
            credentials: Credentials::new(Arc::clone(&store) as _, Arc::clone(&clock)),
            failures: Failures::default(),
            clock,
        };
        Ok(Self {
            store,
            listener,
            gate: Arc::new(gate),
        })
    }

    /// Returns the address and names of the server.
    pub fn access(&self) -> &ServerAccess {
        &self.gate.access
    }

    /// Returns the store of the sessions.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Serves the routes until `stop` is canceled.
    pub async fn run(self, routes: Router, stop: CancellationToken) {
        let routes = routes.layer(from_fn_with_state(Arc::clone(&self.gate), check));
        connection::serve((self.listener, None), routes, &*self.gate.clock, stop).await;
    }
}

async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let is_admitted = admitted(&gate.access, &request);
    let (mut head, body) = request.into_parts();
    let checked = match is_admitted {
        Ok(()) => gate.holder(&head).await,
        Err(problem) => Err(problem),
    };
    let mut response = match checked {
        Ok(holder) => {
            if let Some(guest) = head.extensions.get::<Arc<Guest>>() {
                guest.is_welcome();
            }
            head.extensions.insert(holder);
            next.run(Request::from_parts(head, body)).await
        }
        Err(problem) => problem.into_response(),
    };
    let is_unknown = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if is_unknown {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    let never = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(never);
    let sniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, sniff);
    response
}

impl Gate {
    async fn holder(&self, head: &Parts) -> Result<TokenHolder, Problem> {
        // Cookies are not for programs.
        let secret = secrets(&head.headers, "")
            .into_iter()
            .find(|(_, is_cookie)| !is_cookie);
        let Some((secret, _)) = secret else {
            let text = "no token: send the header `Authorization: Bearer TOKEN`";
            let refused = Problem::refused(StatusCode::UNAUTHORIZED, "credential", text);
            return Err(refused.fixed_by(CREATE));
        };
        let found = self.credentials.find(&secret).await?;
        let Some(found) = found.filter(|found| found.kind == CredentialKind::Token) else {
            let peer = head.extensions.get::<Peer>().map(|Peer(peer)| peer.ip());
            if self.failures.add(peer, self.clock.elapsed()) {
                let text = "too many invalid tokens; a valid one still works";
                return Err(Problem::refused(
                    StatusCode::TOO_MANY_REQUESTS,
                    "credential",
                    text,
                ));
            }
            let text = "this token is unknown, revoked or expired";
            return Err(Problem::refused(StatusCode::UNAUTHORIZED, "credential", text).fixed_by(CREATE));
        };
        if !found.allows(Scope::Write) {
            let text = format!("`{}` has no scope `write`", found.name);
            return Err(Problem::refused(StatusCode::FORBIDDEN, "scope", text).fixed_by(CREATE));
        }
        let kind = head.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next());
        let is_json = kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        if head.method == Method::POST && !is_json {
            let text = "a message has the content type application/json";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Problem::refused(status, "content_type", text)
                .fixed_by("send the header `Content-Type: application/json`"));
        }
        Ok(TokenHolder {
            can_approve: found.allows(Scope::Approve),
            id: found.id,
            user: found.user,
        })
    }
}

/// Command that creates a token for a client.
const CREATE: &str = "windlass token create NAME --scope write --scope approve";
