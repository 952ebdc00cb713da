//! The methods of the protocol, for both eras and both transports.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::Backend;
use windlass_jsonrpc::RpcError;

use crate::McpHost;
use crate::protocol::{Request, SUBSCRIPTION_KEY, discovered};
use crate::resources;
use crate::tools::definitions;
use crate::turn::Turns;

/// Answers requests.
pub(crate) struct Desk {
    pub(crate) host: Arc<dyn McpHost>,
    pub(crate) turns: Arc<Turns>,
}

impl Desk {
    pub(crate) fn new(backend: Arc<dyn Backend>, host: Arc<dyn McpHost>, stop: CancellationToken) -> Self {
        let turns = Turns {
            backend,
            signer: Default::default(),
            background: TaskTracker::new(),
            stop,
        };
        Self {
            host,
            turns: Arc::new(turns),
        }
    }

    /// Answers a request whose era is known.
    pub(crate) async fn answer(
        &self,
        request: &Request,
        method: &str,
        params: &Value,
    ) -> Result<Value, RpcError> {
        let backend = &*self.turns.backend;
        let result = match (method, request.is_modern) {
            ("ping", false) => json!({}),
            ("server/discover", true) => discovered(),
            ("subscriptions/listen", true) => self.listen(request).await?,
            ("tools/list", _) => definitions(),
            ("tools/call", _) => self.call_tool(request, params).await?,
            // Clients ask for prompts without looking whether there are any.
            ("prompts/list", _) => json!({ "prompts": [] }),
            ("prompts/get", _) => return Err(RpcError::invalid_params("name: there are no prompts")),
            ("resources/list", _) => resources::list(backend, params).await?,
            ("resources/templates/list", _) => resources::templates(),
            ("resources/read", _) => resources::read(backend, params, request.is_modern).await?,
            _ => return Err(RpcError::unknown_method(method)),
        };
        Ok(request.complete(method, result))
    }

    /// Keeps a subscription open. Our lists do not change, so nothing follows its acknowledgement.
    async fn listen(&self, request: &Request) -> Result<Value, RpcError> {
        let params = json!({ "notifications": {}, "_meta": { SUBSCRIPTION_KEY: request.id } });
        let acknowledged = "notifications/subscriptions/acknowledged";
        if request.outbox.notify(acknowledged, params).await.is_ok() {
            tokio::select! {
                () = request.cancel.cancelled() => {}
                () = self.turns.stop.cancelled() => {}
            }
        }
        Ok(json!({ "_meta": { SUBSCRIPTION_KEY: request.id } }))
    }

    /// Ends everything that runs in the background.
    pub(crate) async fn end(&self) {
        self.turns.stop.cancel();
        self.turns.background.close();
        self.turns.background.wait().await;
    }
}
