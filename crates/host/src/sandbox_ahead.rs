//! Builds the sandbox of a session while the model replies.

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
    pub(crate) sandbox: Arc<CommandSandbox>,
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
        let mut waiting = Some(Arc::clone(&self.sandbox));
        let events = self.provider.stream(request).inspect(move |_| {
            if let Some(sandbox) = waiting.take() {
                CommandSandbox::prepare(&sandbox);
            }
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
