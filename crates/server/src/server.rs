//! A running server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_core::log::{LogError, UserName};

use crate::access::ServerAccess;
use crate::app::{App, Inputs, ServerPorts, Shared};
use crate::checks::outer;
use crate::coarse::Coarse;
use crate::connection;
use crate::credentials::{CredentialKind, Credentials, NewCredential, Scope};
use crate::exposure::Exposure;
use crate::hub::Hubs;
use crate::push::Push;
use crate::routes;
use crate::tls::{Tls, TlsError};

/// Time for running turns to end when the server stops.
const TURNS: Duration = Duration::from_secs(10);
/// Time between two looks at them.
const LOOK: Duration = Duration::from_millis(50);

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address, names, certificate and proxy.
    pub exposure: Exposure,
    /// Folder of new sessions that name none.
    pub place: String,
    /// True if OpenAI's routes, `/v1/…`, are on.
    pub openai: bool,
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
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The credentials cannot be stored.
    #[error(transparent)]
    Store(#[from] LogError),
}

/// A server that has its address and waits to run.
pub struct Server {
    app: Shared,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// When the certificate cannot be used, or the address is taken or not allowed.
    pub async fn bind(config: ServerConfig, ports: ServerPorts) -> Result<Self, ServerError> {
        let exposure = config.exposure.clone();
        let addr = exposure.listen;
        let mut names = exposure.names;
        let mut tls = None;
        if let Some(files) = exposure.tls {
            let (opened, own) = Tls::open(files, Arc::clone(&ports.clock), Arc::clone(&ports.warn))?;
            names.extend(own);
            tls = Some(Arc::new(opened));
        }
        let failed = |source| ServerError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let listen = listener.local_addr().map_err(failed)?;
        let changed = Arc::new(Notify::new());
        let credentials = Credentials::new(Arc::clone(&ports.store) as _, Arc::clone(&ports.clock));
        let inputs = Inputs::default();
        let hubs = Arc::new(Hubs::new(
            ports.clone(),
            Arc::clone(&changed),
            Arc::clone(&inputs.carried),
        ));
        let access = ServerAccess {
            listen,
            names,
            is_https: exposure.is_https || tls.is_some(),
            is_behind_proxy: exposure.is_https && tls.is_none(),
        };
        let contact = match access.is_https {
            true => access.url(),
            false => "mailto:windlass@example.com".to_owned(),
        };
        let push = Arc::new(Push::new(
            ports.push.clone(),
            credentials.clone(),
            exposure.proxy,
            Arc::clone(&ports.clock),
            contact,
        ));
        let app = App {
            access,
            config,
            epoch: uuid::Uuid::now_v7().to_string(),
            credentials,
            failures: Default::default(),
            coarse: Arc::new(Coarse::new(
                ports.clone(),
                Arc::clone(&hubs),
                changed,
                Arc::clone(&push),
            )),
            push,
            hubs,
            inputs,
            metrics: Default::default(),
            stop: CancellationToken::new(),
            ports,
        };
        Ok(Self {
            app: Arc::new(app),
            listener,
            tls,
        })
    }

    /// Returns the address and names of the server.
    pub fn access(&self) -> &ServerAccess {
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
            user: UserName::default(),
            term: None,
        };
        let (_, secret) = self.app.credentials.create(new).await?;
        Ok(format!("{}/#t={secret}", self.app.access.url()))
    }

    /// Serves until `stop` is cancelled. Then event streams are told, other requests may finish, and turns that do not
    /// wait for a person get a moment to end.
    pub async fn run(self, stop: CancellationToken) {
        let app = Arc::clone(&self.app);
        let router = router(&self.app);
        self.app.coarse.wake();
        let stopping = async {
            stop.cancelled().await;
            app.stop.cancel();
        };
        let serving = connection::serve(
            (self.listener, self.tls),
            router,
            &*self.app.ports.clock,
            self.app.stop.clone(),
        );
        tokio::join!(stopping, serving);
        let ended = async {
            while self.app.hubs.count_busy() > 0 {
                self.app.ports.clock.sleep(LOOK).await;
            }
        };
        // A turn that takes longer is canceled and recorded when the service closes.
        let _ = tokio::time::timeout(TURNS, ended).await;
    }
}

fn router(app: &Shared) -> Router {
    routes::router(app)
        .layer(from_fn_with_state(Arc::clone(app), outer))
        .with_state(Arc::clone(app))
}
