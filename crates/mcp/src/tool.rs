//! A tool of a server, as the model sees it.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use serde_json::{Map, Value};
use windlass_core::permission::Escalation;
use windlass_core::tool::{
    AnyTool, Category, Judgement, Prepared, ToolContext, ToolError, ToolOutput, ToolSpec, ToolTraits,
    parse_strict,
};
use windlass_sandbox::sha256_hex;

use crate::client::CallLink;
use crate::config::McpError;
use crate::content;
use crate::server::McpServer;

/// Longest description of a tool, in characters.
const MAX_DESCRIPTION: usize = 2_000;
/// Time beyond the server's own limit before the loop ends the call.
const MARGIN: Duration = Duration::from_secs(5);

/// A tool of a server.
pub(crate) struct McpTool {
    spec: ToolSpec,
    /// Name that the server knows.
    remote: String,
    server: Weak<McpServer>,
    server_name: String,
    limit: Duration,
    /// Digest of everything that a person saw when they approved the tool.
    digest: String,
    output_schema: Option<Value>,
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl McpTool {
    pub(crate) fn new(
        server: &Arc<McpServer>,
        name: String,
        tool: &rmcp::model::Tool,
    ) -> Result<Self, String> {
        let config = server.config();
        let schema = crate::schema::bounded(&tool.input_schema)?;
        let described = tool.description.as_deref().unwrap_or_default();
        let description = content::plain(described, MAX_DESCRIPTION);
        // The command and the whole definition: annotations too, although they lower nothing.
        let seen = format!(
            "{}\n{}\n{}",
            config.line(),
            tool.name,
            serde_json::to_string(tool).unwrap_or_default()
        );
        let output_schema = tool.output_schema.as_ref();
        let output_schema = output_schema.and_then(|schema| crate::schema::bounded(schema).ok());
        Ok(Self {
            spec: ToolSpec {
                name,
                description,
                schema: Arc::new(schema),
            },
            remote: tool.name.to_string(),
            server: Arc::downgrade(server),
            server_name: config.name.clone(),
            limit: config.limits.call,
            digest: sha256_hex(seen.as_bytes()),
            output_schema,
            validator: OnceLock::new(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the number of bytes that the tool adds to every request.
    pub(crate) fn weight(&self) -> usize {
        self.spec.name.len() + self.spec.description.len() + self.spec.schema.to_string().len() + 60
    }

    async fn run(
        self: Arc<Self>,
        arguments: Map<String, Value>,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Some(server) = self.server.upgrade() else {
            return Err(ToolError::Permanent("The MCP server is gone.".to_owned()));
        };
        if cx.confirmed {
            server.accept(&self.spec.name, &self.digest);
        }
        let link = CallLink {
            progress: cx.progress,
            person: cx.person,
            model: cx.model,
            session: cx.execution.session.clone(),
            cancel: cx.cancel,
        };
        let called = server.call(&self.remote, arguments, link).await;
        let about = |error: &McpError| format!("MCP server {}: {error}", self.server_name);
        match called {
            Ok(result) => {
                let problem = self.problem(result.structured_content.as_ref());
                Ok(content::output(&self.server_name, &self.remote, result, problem))
            }
            Err(McpError::Canceled) => Err(ToolError::Canceled("The call was canceled.".to_owned())),
            Err(error @ McpError::Ended(_)) => Ok(ToolOutput {
                content: about(&error),
                failed: true,
                warning: Some(about(&error)),
                ..ToolOutput::default()
            }),
            Err(error) => Err(ToolError::Permanent(about(&error))),
        }
    }

    /// Checks structured content against the schema that the server declared.
    fn problem(&self, structured: Option<&Value>) -> Option<String> {
        let (value, schema) = structured.zip(self.output_schema.as_ref())?;
        let validator = self
            .validator
            .get_or_init(|| jsonschema::validator_for(schema).ok());
        let error = validator.as_ref()?.validate(value).err()?;
        Some(format!(
            "MCP server {}: the structured result of {} does not match its schema: {}",
            self.server_name,
            self.remote,
            content::line(&error.to_string(), 300)
        ))
    }
}

impl AnyTool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits {
            timeout: Some(self.limit + MARGIN),
            ..ToolTraits::default()
        }
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let text = if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        };
        let invalid =
            |why: String| ToolError::Invalid(format!("Invalid arguments for {}: {why}", self.spec.name));
        let value = parse_strict(text).map_err(|error| invalid(format!("not valid JSON ({error}).")))?;
        let Value::Object(map) = value.clone() else {
            return Err(invalid("they must be one JSON object.".to_owned()));
        };
        // SAFE-5: the effects of a foreign tool are unknown, whatever its hints say.
        let mut judgement = Judgement::of(Category::Admin);
        judgement
            .reasons
            .push(format!("it runs on the MCP server {}", self.server_name));
        let has_changed = self
            .server
            .upgrade()
            .is_some_and(|server| server.has_changed(&self.spec.name, &self.digest));
        if has_changed {
            judgement
                .reasons
                .push("the server changed the definition of this tool since it was last used".to_owned());
            // Not covered by any rule: a person has to see the new definition.
            judgement.escalation = Escalation {
                protected: true,
                ..Escalation::default()
            };
        }
        let this = Arc::clone(&self);
        let prepared = Prepared::new(Category::Admin, value, move |cx| Box::pin(this.run(map, cx)));
        let mut prepared = prepared.with_judgement(judgement);
        if has_changed {
            prepared = prepared.with_preview(format!(
                "{}\n{}\n{}",
                self.spec.name, self.spec.description, self.spec.schema
            ));
        }
        Ok(prepared)
    }

    fn definition(&self) -> Option<String> {
        Some(self.digest.clone())
    }
}
