//! The embedding examples, run as tests.

#[path = "../../examples/forced_call.rs"]
mod forced_call;
#[path = "../../examples/own_tool.rs"]
mod own_tool;
#[path = "../../examples/stream_events.rs"]
mod stream_events;

/// LIB-1, TOOL-1: an agent with a custom tool, run to its answer.
#[test]
fn an_agent_with_a_tool_of_its_own() {
    own_tool::main().unwrap();
}

/// LIB-1, EVT-3: the same as a stream of events, with the built-in tools.
#[test]
fn an_agent_as_a_stream_of_events() {
    stream_events::main().unwrap();
}

/// LIB-1, PROV-3: a call that the request forces.
#[test]
fn a_forced_call() {
    forced_call::main().unwrap();
}
