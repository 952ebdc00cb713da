//! A running server.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_core::log::LogError;

use crate::access::Access;
use crate::app::{App, Inputs, ServerPorts, Shared};
use crate::checks::outer;
use crate::coarse::Coarse;
use crate::connection;
use crate::credentials::{CredentialKind, Credentials, NewCredential, Scope};
use crate::hub::Hubs;
use crate::routes;

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Further host names under which the server is reached.
    pub names: Vec<String>,
    /// True if a proxy in front of the server speaks TLS.
    pub is_https: bool,
    /// Folder of new sessions that name none.
    pub place: String,
    /// Version to report.
    pub version: &'static str,
}

/// Reason a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be used.
    #[error("cannot listen on {addr}: {source}; choose another address with --listen")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// The credentials cannot be stored.
    #[error(transparent)]
    Store(#[from] LogError),
}

/// A server that has its address and waits to run.
pub struct Server {
    app: Shared,
    listener: TcpListener,
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is taken or not allowed.
    pub async fn bind(config: ServerConfig, ports: ServerPorts) -> Result<Self, ServerError> {
        let addr = config.listen;
        let failed = |source| ServerError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let listen = listener.local_addr().map_err(failed)?;
        let changed = Arc::new(Notify::new());
        let credentials = Credentials::new(Arc::clone(&ports.store) as _, Arc::clone(&ports.clock));
        let inputs = Inputs::default();
        let app = App {
            access: Access {
                listen,
                names: config.names,
                is_https: config.is_https,
            },
            place: config.place,
            version: config.version,
            epoch: uuid::Uuid::now_v7().to_string(),
            credentials,
            failures: Default::default(),
            hubs: Hubs::new(
                Arc::clone(&ports.backend),
                Arc::clone(&changed),
                Arc::clone(&inputs.carried),
            ),
            coarse: Arc::new(Coarse::new(
                Arc::clone(&ports.backend),
                Arc::clone(&ports.store),
                changed,
            )),
            inputs,
            uploads: Default::default(),
            stop: CancellationToken::new(),
            ports,
        };
        Ok(Self {
            app: Arc::new(app),
            listener,
        })
    }

    /// Returns the address and names of the server.
    pub fn access(&self) -> &Access {
        &self.app.access
    }

    /// Creates a login link that works once, for ten minutes.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn login_link(&self) -> Result<String, ServerError> {
        let new = NewCredential {
            kind: CredentialKind::Link,
            name: "login link".to_owned(),
            scopes: vec![Scope::Admin],
            term: None,
        };
        let (_, secret) = self.app.credentials.create(new).await?;
        Ok(format!("{}/#t={secret}", self.app.access.url()))
    }

    /// Serves until `stop` is cancelled. Event streams are told, and other requests may finish.
    pub async fn run(self, stop: CancellationToken) {
        let app = Arc::clone(&self.app);
        let router = router(&self.app);
        let stopping = async {
            stop.cancelled().await;
            app.stop.cancel();
        };
        let serving = connection::serve(self.listener, router, self.app.stop.clone());
        tokio::join!(stopping, serving);
    }
}

fn router(app: &Shared) -> Router {
    routes::router(app)
        .layer(from_fn_with_state(Arc::clone(app), outer))
        .with_state(Arc::clone(app))
}
