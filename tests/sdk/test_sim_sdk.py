"""PROV-5: the official SDKs of both vendors take the simulated model for the real service."""

import json

import anthropic
import openai
import pytest

HELLO = "Hello from the simulation, with an ümlaut and a 🙂."
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
ANTHROPIC_TOOLS = [{"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA}]
CHAT_TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
RESPONSES_TOOLS = [
    {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}
]


@pytest.fixture
def claude(url):
    return anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)


@pytest.fixture
def gpt(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


# Anthropic Messages


def ask_claude(claude, messages, stream, **options):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    options = {"model": "claude-sim", "max_tokens": 4096, "messages": messages, **options}
    if not stream:
        return claude.messages.create(**options)
    with claude.messages.stream(**options) as events:
        for _ in events:
            pass
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_text(claude, stream):
    """PROV-5: text, whole and streamed."""
    message = ask_claude(claude, "say hello", stream)
    assert message.content[0].text == HELLO
    assert message.stop_reason == "end_turn"
    assert message.model == "claude-sim"
    assert message.usage.output_tokens > 0


def test_anthropic_text_stream_pieces(claude):
    """PROV-5: the pieces of a stream make up the text."""
    options = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "say hello"}]}
    with claude.messages.stream(**options) as events:
        pieces = list(events.text_stream)
    assert len(pieces) > 5
    assert "".join(pieces) == HELLO


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_tool_round_trip(claude, stream):
    """PROV-5: a call, its result, and the answer that uses it."""
    messages = [{"role": "user", "content": "weather in one place"}]
    first = ask_claude(claude, messages, stream, tools=ANTHROPIC_TOOLS)
    assert first.stop_reason == "tool_use"
    text, call = first.content
    assert text.text == "I will look."
    assert (call.name, call.input) == ("get_weather", {"city": "Łódź", "days": 3})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    messages += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
        {"role": "user", "content": [result]},
    ]
    second = ask_claude(claude, messages, stream, tools=ANTHROPIC_TOOLS)
    assert second.content[0].text == "The tool said: sunny"


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_parallel_calls(claude, stream):
    """PROV-5: two calls in one message, both answered in the next."""
    messages = [{"role": "user", "content": "weather in two places"}]
    first = ask_claude(claude, messages, stream, tools=ANTHROPIC_TOOLS)
    assert [call.input["city"] for call in first.content] == ["Oslo", "Rome"]
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"rain {number}"}
        for number, call in enumerate(first.content)
    ]
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": results},
    ]
    second = ask_claude(claude, messages, stream, tools=ANTHROPIC_TOOLS)
    assert second.content[0].text == "First: rain 0. Second: rain 1."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wish", ["think first", "think in secret"])
def test_anthropic_thinking_goes_back(claude, stream, wish):
    """PROV-5: signed and redacted thinking is accepted when sent back, and refused when changed."""
    options = {
        "tools": ANTHROPIC_TOOLS,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
    }
    messages = [{"role": "user", "content": wish}]
    first = ask_claude(claude, messages, stream, **options)
    thought, call = first.content[0], first.content[-1]
    assert thought.type == ("thinking" if wish == "think first" else "redacted_thinking")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    blocks = [block.model_dump(exclude_none=True) for block in first.content]
    messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    second = ask_claude(claude, messages, stream, **options)
    assert second.stop_reason == "end_turn"
    key = "thinking" if wish == "think first" else "data"
    blocks[0][key] += "a"
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
        ask_claude(claude, messages, stream, **options)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_usage(claude, stream):
    """PROV-5: usage with cached tokens."""
    usage = ask_claude(claude, "count tokens", stream).usage
    assert (usage.input_tokens, usage.output_tokens) == (11, 7)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (5, 3)


def test_anthropic_cache(claude):
    """PROV-5: a marked prefix is written once and read afterwards."""
    system = [{"type": "text", "text": "long " * 400, "cache_control": {"type": "ephemeral"}}]
    first = ask_claude(claude, "cache this", False, system=system).usage
    second = ask_claude(claude, "cache this, again", False, system=system).usage
    assert first.cache_creation_input_tokens >= 500 and first.cache_read_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0


@pytest.mark.parametrize("wish, reason", [("run out of space", "max_tokens"), ("decline", "refusal")])
def test_anthropic_stop_reasons(claude, wish, reason):
    """PROV-5: other reasons to stop."""
    assert ask_claude(claude, wish, True).stop_reason == reason


def test_anthropic_errors(claude, guarded_url):
    """PROV-5: errors arrive as the classes the SDK has for them."""
    orphan = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
    ]
    with pytest.raises(anthropic.BadRequestError, match="tool_use_id"):
        ask_claude(claude, orphan, False)
    with pytest.raises(anthropic.RateLimitError) as limited:
        ask_claude(claude, "slow down", True)
    assert limited.value.response.headers["retry-after"] == "7"
    assert limited.value.body["error"]["type"] == "rate_limit_error"
    with pytest.raises(anthropic.InternalServerError):
        ask_claude(claude, "break down", False)
    stranger = anthropic.Anthropic(base_url=guarded_url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        ask_claude(stranger, "hello", False)
    friend = anthropic.Anthropic(base_url=guarded_url, api_key="the-right-key", max_retries=0)
    assert "[simulated model]" in ask_claude(friend, "hello", False).content[0].text


def test_anthropic_mid_stream_error(claude):
    """PROV-5: an error in the middle of a stream is raised."""
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        ask_claude(claude, "fail halfway", True)


def test_anthropic_dropped_connection(claude):
    """PROV-5: a connection dropped in the middle of a stream does not look like its end."""
    with pytest.raises(Exception) as dropped:
        ask_claude(claude, "hang up", True)
    assert "RemoteProtocolError" in repr(dropped.value) or isinstance(
        dropped.value, anthropic.APIConnectionError
    )


def test_anthropic_framing_and_models(claude):
    """PROV-5: another legal framing, one byte at a time; the list of models."""
    assert ask_claude(claude, "odd framing", True).content[0].text == "The frame does not matter."
    assert [model.id for model in claude.models.list()] == ["sim-1"]


# OpenAI Chat Completions


def ask_chat(gpt, messages, stream, **options):
    """The message and the usage; a stream is put together as clients do."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    options = {"model": "gpt-sim", "messages": messages, **options}
    if not stream:
        whole = gpt.chat.completions.create(**options)
        choice = whole.choices[0]
        return choice.message.model_dump(exclude_none=True), choice.finish_reason, whole.usage
    with gpt.chat.completions.stream(**options, stream_options={"include_usage": True}) as events:
        for _ in events:
            pass
        whole = events.get_final_completion()
    choice = whole.choices[0]
    message = choice.message.model_dump(exclude_none=True)
    message.pop("parsed", None)
    for call in message.get("tool_calls", []):
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    return message, choice.finish_reason, whole.usage


@pytest.mark.parametrize("stream", [False, True])
def test_chat_text(gpt, stream):
    """PROV-5: text, whole and streamed."""
    message, reason, usage = ask_chat(gpt, "say hello", stream)
    assert (message["content"], reason) == (HELLO, "stop")
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_chat_tool_round_trip(gpt, stream):
    """PROV-5: a call, its result, and the answer that uses it."""
    messages = [{"role": "user", "content": "weather in one place"}]
    message, reason, _ = ask_chat(gpt, messages, stream, tools=CHAT_TOOLS)
    assert reason == "tool_calls"
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Łódź", "days": 3}
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
    message, reason, _ = ask_chat(gpt, messages, stream, tools=CHAT_TOOLS)
    assert (message["content"], reason) == ("The tool said: sunny", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_chat_parallel_calls(gpt, stream):
    """PROV-5: two calls in one message, both answered."""
    messages = [{"role": "user", "content": "weather in two places"}]
    message, _, _ = ask_chat(gpt, messages, stream, tools=CHAT_TOOLS)
    calls = message["tool_calls"]
    assert [json.loads(call["function"]["arguments"])["city"] for call in calls] == ["Oslo", "Rome"]
    messages.append(message)
    for number, call in enumerate(calls):
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"rain {number}"})
    message, _, _ = ask_chat(gpt, messages, stream, tools=CHAT_TOOLS)
    assert message["content"] == "First: rain 0. Second: rain 1."


@pytest.mark.parametrize("stream", [False, True])
def test_chat_usage(gpt, stream):
    """PROV-5: usage with cached tokens; the prompt counts all of them."""
    usage = ask_chat(gpt, "count tokens", stream)[2]
    assert (usage.prompt_tokens, usage.completion_tokens) == (19, 7)
    assert usage.prompt_tokens_details.cached_tokens == 5


def test_chat_cache(gpt):
    """PROV-5: an equal prefix is cached without being asked for."""
    messages = [
        {"role": "system", "content": "long " * 400},
        {"role": "user", "content": "cache this"},
    ]
    assert ask_chat(gpt, messages, False)[2].prompt_tokens_details.cached_tokens == 0
    assert ask_chat(gpt, messages, False)[2].prompt_tokens_details.cached_tokens >= 500


@pytest.mark.parametrize("wish, reason", [("run out of space", "length"), ("decline", "content_filter")])
def test_chat_finish_reasons(gpt, wish, reason):
    """PROV-5: other reasons to stop."""
    assert ask_chat(gpt, wish, False)[1] == reason


def test_openai_errors(gpt, guarded_url):
    """PROV-5: errors arrive as the classes the SDK has for them, on both OpenAI wires."""
    with pytest.raises(openai.BadRequestError, match="tool message must answer"):
        ask_chat(
            gpt,
            [
                {"role": "user", "content": "x"},
                {"role": "tool", "tool_call_id": "call_1", "content": "x"},
            ],
            False,
        )
    orphan = [
        {"role": "user", "content": "x"},
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
    ]
    with pytest.raises(openai.BadRequestError, match="no open function call"):
        gpt.responses.create(model="m", input=orphan)
    for ask in (
        lambda client, text: ask_chat(client, text, False),
        lambda client, text: client.responses.create(model="m", input=text),
    ):
        with pytest.raises(openai.RateLimitError) as limited:
            ask(gpt, "slow down")
        assert limited.value.response.headers["retry-after"] == "7"
        with pytest.raises(openai.InternalServerError):
            ask(gpt, "break down")
        stranger = openai.OpenAI(base_url=f"{guarded_url}/v1", api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            ask(stranger, "hello")


def test_chat_mid_stream_error(gpt):
    """PROV-5: an error in the middle of a stream is raised."""
    stream = gpt.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "fail halfway"}], stream=True
    )
    with pytest.raises(openai.APIError, match="middle of the stream"):
        list(stream)


def test_chat_framing_and_models(gpt):
    """PROV-5: another legal framing, one byte at a time; the list of models."""
    assert ask_chat(gpt, "odd framing", True)[0]["content"] == "The frame does not matter."
    assert [model.id for model in gpt.models.list()] == ["sim-1"]


# OpenAI Responses


def ask_responses(gpt, items, stream, **options):
    options = {"model": "gpt-sim", "input": items, **options}
    if not stream:
        return gpt.responses.create(**options)
    with gpt.responses.stream(**options) as events:
        numbers = [event.sequence_number for event in events]
        assert numbers == list(range(len(numbers)))
        return events.get_final_response()


def back(output):
    """Output items as input items."""
    items = [item.model_dump(exclude_none=True) for item in output]
    for item in items:
        item.pop("parsed_arguments", None)
        for part in item.get("content", []):
            part.pop("parsed", None)
    return items


@pytest.mark.parametrize("stream", [False, True])
def test_responses_text(gpt, stream):
    """PROV-5: text, whole and streamed."""
    response = ask_responses(gpt, "say hello", stream)
    assert (response.output_text, response.status) == (HELLO, "completed")
    assert response.model == "gpt-sim"


@pytest.mark.parametrize("stream", [False, True])
def test_responses_tool_round_trip(gpt, stream):
    """PROV-5: a call, its output, and the answer that uses it."""
    items = [{"role": "user", "content": "weather in one place"}]
    options = {"tools": RESPONSES_TOOLS, "store": False}
    first = ask_responses(gpt, items, stream, **options)
    call = first.output[-1]
    assert json.loads(call.arguments) == {"city": "Łódź", "days": 3}
    items += back(first.output)
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    second = ask_responses(gpt, items, stream, **options)
    assert second.output_text == "The tool said: sunny"


@pytest.mark.parametrize("stream", [False, True])
def test_responses_parallel_calls(gpt, stream):
    """PROV-5: two calls in one response, both answered."""
    items = [{"role": "user", "content": "weather in two places"}]
    first = ask_responses(gpt, items, stream, tools=RESPONSES_TOOLS)
    assert [json.loads(call.arguments)["city"] for call in first.output] == ["Oslo", "Rome"]
    items += back(first.output)
    for number, call in enumerate(first.output):
        output = {"type": "function_call_output", "call_id": call.call_id, "output": f"rain {number}"}
        items.append(output)
    second = ask_responses(gpt, items, stream, tools=RESPONSES_TOOLS)
    assert second.output_text == "First: rain 0. Second: rain 1."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wish", ["think first", "think in secret"])
def test_responses_reasoning_goes_back(gpt, stream, wish):
    """PROV-5: reasoning items are accepted when sent back, and refused when changed."""
    options = {
        "tools": RESPONSES_TOOLS,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
    }
    items = [{"role": "user", "content": wish}]
    first = ask_responses(gpt, items, stream, **options)
    reasoning, call = first.output[0], first.output[-1]
    assert reasoning.type == "reasoning" and reasoning.encrypted_content
    assert bool(reasoning.summary) == (wish == "think first")
    items += back(first.output)
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    assert ask_responses(gpt, items, stream, **options).status == "completed"
    items[1]["encrypted_content"] += "00"
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        ask_responses(gpt, items, stream, **options)


@pytest.mark.parametrize("stream", [False, True])
def test_responses_usage(gpt, stream):
    """PROV-5: usage with cached tokens."""
    usage = ask_responses(gpt, "count tokens", stream).usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (19, 7, 26)
    assert usage.input_tokens_details.cached_tokens == 5


@pytest.mark.parametrize("stream", [False, True])
def test_responses_incomplete_and_refusal(gpt, stream):
    """PROV-5: other ways to end."""
    response = ask_responses(gpt, "decline", stream)
    assert response.output[0].content[0].refusal == "I will not do that."
    if stream:
        kinds = [event.type for event in gpt.responses.create(model="m", input="run out of space", stream=True)]
        assert kinds[-1] == "response.incomplete"
    else:
        response = ask_responses(gpt, "run out of space", stream)
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"


def test_responses_mid_stream_error(gpt):
    """PROV-5: an error in the middle of a stream is an event of its own, and the last one."""
    events = list(gpt.responses.create(model="m", input="fail halfway", stream=True))
    assert (events[-1].type, events[-1].code) == ("error", "overloaded")
