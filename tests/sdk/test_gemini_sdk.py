"""PROV-4: Google's own SDK takes the simulated model for the real service."""

import pytest
from google import genai
from google.genai import errors, types

HELLO = "Hello from the simulation, with an ümlaut and a 🙂."
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name="get_weather", description="Weather.", parameters_json_schema=SCHEMA
            )
        ]
    )
]


def client(url, key="any"):
    options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
    return genai.Client(api_key=key, http_options=options)


@pytest.fixture
def gemini(url):
    return client(url)


def ask(gemini, contents, stream, **config):
    """Returns the parts of the answer and the last response."""
    config = types.GenerateContentConfig(
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True), **config
    )
    options = {"model": "gemini-sim", "contents": contents, "config": config}
    if not stream:
        response = gemini.models.generate_content(**options)
        return response.candidates[0].content.parts or [], response
    parts = []
    for response in gemini.models.generate_content_stream(**options):
        parts += response.candidates[0].content.parts or []
    return parts, response


def said(parts):
    return "".join(part.text or "" for part in parts if not part.thought)


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_text(gemini, stream):
    """PROV-4: text, whole and streamed, with usage."""
    parts, response = ask(gemini, "say hello", stream)
    assert said(parts) == HELLO
    assert (len(parts) > 5) == stream
    assert response.candidates[0].finish_reason == types.FinishReason.STOP
    assert response.model_version == "gemini-sim"
    assert response.usage_metadata.candidates_token_count > 0


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_tool_round_trip(gemini, stream):
    """PROV-4: thoughts, a call with its id and signature, its response, and the answer that uses it."""
    contents = [types.Content(role="user", parts=[types.Part(text="think first")])]
    parts, _ = ask(gemini, contents, stream, tools=TOOLS)
    thoughts = "".join(part.text for part in parts if part.thought)
    assert thoughts == "The user wants the weather, so a call is needed."
    call = next(part for part in parts if part.function_call)
    assert (call.function_call.name, call.function_call.args) == ("get_weather", {"city": "Bern"})
    assert call.thought_signature
    response = types.FunctionResponse(
        id=call.function_call.id, name="get_weather", response={"output": "sunny"}
    )
    contents += [
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=[types.Part(function_response=response)]),
    ]
    parts, _ = ask(gemini, contents, stream, tools=TOOLS)
    assert said(parts) == "Thought and done."


def test_gemini_changed_signature(gemini):
    """PROV-4: a signature that was changed is refused."""
    contents = [types.Content(role="user", parts=[types.Part(text="think first")])]
    parts, _ = ask(gemini, contents, False, tools=TOOLS)
    call = next(part for part in parts if part.function_call)
    call.thought_signature = b"another one!"
    response = types.FunctionResponse(
        id=call.function_call.id, name="get_weather", response={"output": "sunny"}
    )
    contents += [
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=[types.Part(function_response=response)]),
    ]
    with pytest.raises(errors.ClientError, match="not a signature"):
        ask(gemini, contents, False, tools=TOOLS)


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_stops(gemini, stream):
    """PROV-4: a safety stop and an answer that was cut."""
    _, response = ask(gemini, "decline", stream)
    assert response.candidates[0].finish_reason == types.FinishReason.SAFETY
    _, response = ask(gemini, "run out of space", stream)
    assert response.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS


def test_gemini_cached_tokens(gemini):
    """PROV-4: usage has the cached tokens."""
    _, response = ask(gemini, "count tokens", False)
    assert response.usage_metadata.cached_content_token_count == 5
    assert response.usage_metadata.prompt_token_count == 19


def test_gemini_errors(gemini, guarded_url):
    """PROV-4: errors have the status and the shape of the service."""
    with pytest.raises(errors.ClientError) as limited:
        ask(gemini, "slow down", False)
    assert (limited.value.code, limited.value.status) == (429, "RESOURCE_EXHAUSTED")
    with pytest.raises(errors.ClientError) as wrong:
        ask(client(guarded_url, "wrong"), "hello", False)
    assert wrong.value.code == 401
    assert ask(client(guarded_url, "the-right-key"), "hello", False)
