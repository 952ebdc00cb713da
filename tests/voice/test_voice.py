"""Voice input from end to end: a synthesized voice, a real recognizer, and the binary. Needs WINDLASS_BIN."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import speech

HERE = pathlib.Path(__file__).parent
WINDLASS = os.environ["WINDLASS_BIN"]
LIMIT = 180
COMMANDS = ["list the files in this directory", "run the tests", "show me the log", "open the read me file"]


class Conversation:
    """A plain conversation with the binary over pipes."""

    def __init__(self, folder, environment):
        self.text = ""
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [WINDLASS, "--plain", "--provider", "sim"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.text += line
                self.changed.notify_all()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, *texts):
        deadline = time.monotonic() + LIMIT
        with self.changed:
            while not all(text in self.text for text in texts):
                rest = deadline - time.monotonic()
                assert rest > 0 and self.changed.wait(rest), f"{texts} did not appear in:\n{self.text}"

    def end(self):
        self.say("/exit")
        self.process.stdin.close()
        assert self.process.wait(LIMIT) == 0, self.text


def scene(folder, *options):
    """A folder with a recording and a speech server for it."""
    project = folder / "project"
    project.mkdir()
    (project / "log").write_text("a line\n")
    sound = project / "voice.wav"
    speech.write(COMMANDS, sound)
    home = folder / "windlass"
    (home / "config").mkdir(parents=True)
    server = {
        "command": sys.executable,
        "args": [str(HERE / "speech_server.py"), str(sound), str(HERE / "commands.gram"), *options],
        "devices": ["audio"],
    }
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"speech": server}}))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "WINDLASS_HOME": str(home)}
    return project, environment


def heard(text):
    return [line[2:] for line in text.splitlines() if line.startswith("> ")]


def servers():
    """The processes of speech servers."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(HERE / "speech_server.py").encode() in words:
            found.append(int(entry.name))
    return found


def test_four_commands_become_four_prompts(folder):
    """VOICE-1: four spoken commands become four prompts, in the order in which they were said."""
    project, environment = scene(folder)
    conversation = Conversation(project, environment)
    conversation.say("/voice start loopback")
    conversation.wait_for("Listening to the loopback through speech")
    conversation.wait_for(*(f"> {command}" for command in COMMANDS))
    assert heard(conversation.text) == COMMANDS, conversation.text
    conversation.say("/voice status")
    conversation.wait_for(f"4 utterances, the last: {COMMANDS[-1]}")
    conversation.say("/voice stop")
    conversation.wait_for("Voice input is off: stopped.")
    conversation.end()
    shown = subprocess.run(
        [WINDLASS, "exec", "--continue", "/session export json"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    places = [shown.stdout.find(command) for command in COMMANDS]
    assert -1 not in places and places == sorted(places), shown


def test_a_killed_server_is_reported(folder):
    """VOICE-1: a speech server that is killed while it listens is reported, and voice input stops."""
    project, environment = scene(folder, "--pace")
    conversation = Conversation(project, environment)
    conversation.say("/voice start")
    conversation.wait_for(f"> {COMMANDS[0]}")
    killed = servers()
    assert killed
    for process in killed:
        os.kill(process, signal.SIGKILL)
    conversation.wait_for("voice input stopped: MCP server speech: ")
    conversation.say("/voice status")
    conversation.wait_for("Voice input is off: MCP server speech: ")
    assert heard(conversation.text) in (COMMANDS[:1], COMMANDS[:2]), conversation.text
    conversation.end()
    assert not servers()


for test in (test_four_commands_become_four_prompts, test_a_killed_server_is_reported):
    with tempfile.TemporaryDirectory() as place:
        test(pathlib.Path(place).resolve())
    print(f"    ok  {test.__name__}")
