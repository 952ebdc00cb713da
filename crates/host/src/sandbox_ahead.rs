//! Prepares a session while the model replies: its sandbox, and what its extensions ask for.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderEvent, Request};
use windlass_core::tool::ToolSpec;
use windlass_sandbox::CommandSandbox;

/// A provider that has the sandbox built once the model begins to reply: before that, it would only delay the
/// request, and the first command comes later.
pub(crate) struct SandboxAhead {
    pub(crate) provider: Arc<dyn Provider>,
    /// `None` if there are no commands to run.
    pub(crate) sandbox: Option<Arc<CommandSandbox>>,
    /// Further work.
    pub(crate) work: Vec<Arc<dyn Fn() + Send + Sync>>,
}

#[async_trait]
impl Provider for SandboxAhead {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn model(&self) -> &Model {
        self.provider.model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let mut sandbox = self.sandbox.clone();
        let mut work = self.work.clone();
        let events = self.provider.stream(request).inspect(move |_| {
            if let Some(sandbox) = sandbox.take() {
                CommandSandbox::prepare(&sandbox);
            }
            work.drain(..).for_each(|begin| begin());
        });
        events.boxed()
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.provider.convert_tools(tools)
    }

    fn layout(&self, request: &Request) -> Option<Layout> {
        self.provider.layout(request)
    }
}
