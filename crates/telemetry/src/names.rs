//! Names of attributes, spans and metrics: OpenTelemetry's semantic conventions for generative AI.
//!
//! They come from `open-telemetry/semantic-conventions-genai`, schema `gen-ai-dev/1.42.0-dev`, on version 1.44.0
//! of the general conventions. All of them are in development there, so they are in one place here: a test
//! checks that no other file contains such a name.

/// Schema of the names.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev";
/// Name of the instrumentation scope.
pub const SCOPE: &str = "windlass";

/// Kind of operation.
pub const OPERATION: &str = "gen_ai.operation.name";
/// The provider, by its name in the conventions.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// Id of the session.
pub const CONVERSATION: &str = "gen_ai.conversation.id";
/// True if the context was compacted.
pub const COMPACTED: &str = "gen_ai.conversation.compacted";
/// Name of the agent.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// Session of the agent.
pub const AGENT_ID: &str = "gen_ai.agent.id";
/// Version of the agent.
pub const AGENT_VERSION: &str = "gen_ai.agent.version";
/// Requested model.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// True if the reply was streamed.
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
/// Model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Reasons the reply ended.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Seconds until the first piece of the reply.
pub const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// Input tokens, cached ones included.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Output tokens.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Input tokens read from the provider's cache.
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Input tokens written to the provider's cache.
pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
/// Output tokens of reasoning.
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
/// Name of the tool.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// Type of the tool.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// Id of the call.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// Arguments of the call. Content.
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// Result of the call. Content.
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
/// Messages that are new in the request. Content.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The reply. Content.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// Kind of tokens: input or output.
pub const TOKEN_TYPE: &str = "gen_ai.token.type";

/// Kind of failure, as one word.
pub const ERROR_TYPE: &str = "error.type";
/// Purpose of a request that is not part of the conversation itself.
pub const CAUSE: &str = "windlass.request.cause";
/// Cost in US dollars.
pub const COST: &str = "windlass.cost_usd";
/// Pieces that the reply arrived in.
pub const CHUNKS: &str = "windlass.response.chunks";
/// Number of a retry.
pub const RETRY_ATTEMPT: &str = "windlass.retry.attempt";
/// Name of the event of a retry.
pub const RETRY_EVENT: &str = "windlass.retry";

/// Marks the values of all further sets of attributes of a metric.
pub const OVERFLOW: &str = "otel.metric.overflow";

/// Operation: a turn.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// Operation: a model request.
pub const CHAT: &str = "chat";
/// Operation: a tool call.
pub const EXECUTE_TOOL: &str = "execute_tool";

/// Tokens of a request, as dashboards know it.
pub const M_TOKENS: &str = "gen_ai.client.token.usage";
/// Duration of a request, as dashboards know it.
pub const M_DURATION: &str = "gen_ai.client.operation.duration";
/// Time to the first piece, as dashboards know it.
pub const M_FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
/// Time from one piece of a reply to the next, as dashboards know it.
pub const M_CHUNK: &str = "gen_ai.client.operation.time_per_output_chunk";
/// Duration of a turn.
pub const M_AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";
/// Requests of a turn.
pub const M_AGENT_CALLS: &str = "gen_ai.invoke_agent.inference_calls";
/// Tool calls of a turn.
pub const M_AGENT_TOOLS: &str = "gen_ai.invoke_agent.tool_calls";
/// Duration of a tool call.
pub const M_TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
/// Duration of a request, under its newer name.
pub const M_NEW_DURATION: &str = "gen_ai.client.inference.duration";
/// Time to the first piece, under its newer name.
pub const M_NEW_FIRST_CHUNK: &str = "gen_ai.client.inference.time_to_first_chunk";
/// Time from one piece of a reply to the next, under its newer name.
pub const M_NEW_CHUNK: &str = "gen_ai.client.inference.time_per_output_chunk";
/// Input tokens of a request, under its newer name.
pub const M_NEW_INPUT: &str = "gen_ai.client.inference.operation.input_tokens";
/// Output tokens of a request, under its newer name.
pub const M_NEW_OUTPUT: &str = "gen_ai.client.inference.operation.output_tokens";

/// Returns the name of a provider in the conventions. An unknown one keeps its configured name.
pub fn provider(configured: &str) -> String {
    let known = match configured {
        "gemini" | "google" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "moonshot" | "kimi" => "moonshot_ai",
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "sim" => "windlass.sim",
        other => other,
    };
    known.to_owned()
}
