"""Starts the simulated model for the SDK tests.

`WINDLASS_BIN` names the program (`windlass sim serve` is used), else `WINDLASS_SIM_EXAMPLE` names the `serve` example of
the sim crate. With `WINDLASS_SIM_URL` set, a server that already runs is used instead.
"""

import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
PREFIX = "listening on "


def command():
    if program := os.environ.get("WINDLASS_BIN"):
        return [program, "sim", "serve"]
    if example := os.environ.get("WINDLASS_SIM_EXAMPLE"):
        return [example]
    pytest.skip("set WINDLASS_BIN or WINDLASS_SIM_EXAMPLE to run the SDK tests")


def serve(*options):
    process = subprocess.Popen(
        [*command(), *options, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline().strip()
    assert line.startswith(PREFIX), f"unexpected first line: {line!r}"
    return process, line.removeprefix(PREFIX)


@pytest.fixture(scope="session")
def url():
    """The address of a server with the script of all conversations."""
    if running := os.environ.get("WINDLASS_SIM_URL"):
        yield running
        return
    process, address = serve("--script", str(HERE / "scripts" / "conversation.yaml"))
    yield address
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture(scope="session")
def guarded_url():
    """The address of a server that wants a key."""
    process, address = serve("--api-key", "the-right-key")
    yield address
    process.terminate()
    process.wait(timeout=10)


@pytest.fixture(scope="session")
def acp_url():
    """The address of a server with the script of the editors' tests."""
    process, address = serve("--script", str(HERE / "scripts" / "acp.yaml"))
    yield address
    process.terminate()
    process.wait(timeout=10)
