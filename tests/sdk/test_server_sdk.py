"""SRV-5: OpenAI's official clients use sessions of `windlass serve --openai`."""

import json
import os
import pathlib
import re
import subprocess

import openai
import pytest

NPM_OPENAI = "openai@7.53.0"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with the simulated model, and a token for it."""
    program = os.environ.get("WINDLASS_BIN") or pytest.skip("set WINDLASS_BIN")
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("remember the milk\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    options = ["serve", "--openai", "--provider", "sim", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [program, *options], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    )
    url = process.stdout.readline().strip().removeprefix("listening on ")
    create = [program, "token", "create", "sdk", "--scope", "read", "--scope", "write"]
    token = subprocess.run(create, env=env, capture_output=True, text=True, check=True).stdout.strip()
    yield url, token
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture
def client(server):
    url, token = server
    return openai.OpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0)


def ask(client, text, **options):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="windlass", messages=messages, **options)


def test_models(client):
    """SRV-5: the model is listed."""
    assert [model.id for model in client.models.list()] == ["windlass"]


def test_whole_answer(client):
    """SRV-5: a turn with tools, as one answer."""
    answer = ask(client, "list the files here")
    assert "notes.txt" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens > 0


def test_stream(client):
    """SRV-5: the pieces of a stream make up the answer; the number of tokens comes last."""
    chunks = list(ask(client, "list the files here", stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "notes.txt" in text
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.completion_tokens > 0


def test_session_goes_on(client):
    """SRV-5: the header of the answer continues the session; so does the same `user`."""
    raw = client.chat.completions.with_raw_response
    messages = [{"role": "user", "content": "list the files here"}]
    first = raw.create(model="windlass", messages=messages)
    session = first.headers["x-windlass-session"]
    header = {"x-windlass-session": session}
    second = raw.create(model="windlass", messages=messages, extra_headers=header)
    assert second.headers["x-windlass-session"] == session
    users = [raw.create(model="windlass", messages=messages, user=user) for user in ("ann", "ann", "bob")]
    sessions = [answer.headers["x-windlass-session"] for answer in users]
    assert sessions[0] == sessions[1] != sessions[2]


def test_refusals(client, server):
    """SRV-5: unsupported fields are named; a wrong key is refused."""
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, "hi", tools=[{"type": "function", "function": {"name": "x"}}])
    assert refused.value.param == "tools"
    wrong = openai.OpenAI(base_url=f"{server[0]}/v1", api_key="wl_0_0", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        ask(wrong, "hi")


def test_responses(client):
    """SRV-5: a turn as a response, whole and streamed; the next response continues it."""
    first = client.responses.create(model="windlass", input="list the files here")
    assert first.status == "completed" and "notes.txt" in first.output_text
    assert first.usage.total_tokens == first.usage.input_tokens + first.usage.output_tokens > 0
    content = [{"type": "input_text", "text": "list the files here"}]
    second = client.responses.create(
        model="windlass",
        input=[{"role": "user", "content": content}],
        previous_response_id=first.id,
    )
    assert second.previous_response_id == first.id
    assert second.id.rsplit("_", 1)[0] == first.id.rsplit("_", 1)[0]


def test_responses_stream(client):
    """SRV-5: the client's own helper puts a stream together and checks the order of its events."""
    with client.responses.stream(model="windlass", input="list the files here") as stream:
        events = list(stream)
        final = stream.get_final_response()
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert "notes.txt" in text and text == final.output_text
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == list(
        range(len(events))
    )


def test_responses_refusals(client):
    """SRV-5: unsupported fields of a response are named; an unknown response is refused."""
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="windlass", input="hi", tools=[{"type": "web_search"}])
    assert refused.value.param == "tools"
    with pytest.raises(openai.APIStatusError) as refused:
        client.responses.create(model="windlass", input="hi", previous_response_id="resp_x")
    assert refused.value.status_code in (400, 404)


SCRIPT = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: process.argv[3], maxRetries: 0 });
const messages = [{ role: "user", content: "list the files here" }];
const whole = await client.chat.completions.create({ model: "windlass", messages });
let text = "";
for await (const chunk of await client.chat.completions.create({ model: "windlass", messages, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? "";
}
const response = await client.responses.create({ model: "windlass", input: "list the files here" });
let streamed = "";
const events = await client.responses.create({ model: "windlass", input: "list the files here", previous_response_id: response.id, stream: true });
for await (const event of events) {
  if (event.type === "response.output_text.delta") streamed += event.delta;
}
const models = [];
for await (const model of client.models.list()) models.push(model.id);
console.log(JSON.stringify({ whole: whole.choices[0].message.content, text, models, response: response.output_text, streamed }));
"""


def test_npm_client(server):
    """SRV-5: OpenAI's client for Node, whole and streamed."""
    folder = pathlib.Path(os.environ["WINDLASS_BIN"]).parents[1] / "sdk-node"
    folder.mkdir(exist_ok=True)
    installed = folder / "node_modules" / "openai" / "package.json"
    version = re.search(r"@(.*)", NPM_OPENAI).group(1)
    if not installed.exists() or json.loads(installed.read_text())["version"] != version:
        options = ["--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(["npm", "install", *options, NPM_OPENAI], check=True, capture_output=True)
    script = folder / "client.mjs"
    script.write_text(SCRIPT)
    ran = subprocess.run(["node", str(script), *server], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert "notes.txt" in said["whole"] and "notes.txt" in said["text"]
    assert "notes.txt" in said["response"] and "notes.txt" in said["streamed"]
    assert said["models"] == ["windlass"]
