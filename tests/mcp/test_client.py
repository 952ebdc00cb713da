"""The MCP client against foreign servers. `cargo xtask test --only mcp-client` sets the variables that the scripts need."""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent


def run(script):
    subprocess.run(["node", str(HERE / script)], check=True)


def test_well_known_servers():
    """MCP-9, MCP-2: the servers everything, filesystem, memory, git, time and fetch start in the sandbox and are used."""
    run("servers.mjs")


def test_client_scenarios():
    """MCP-9, MCP-7: the client scenarios of the public conformance suite pass, those of OAuth with its authorization servers:
    discovery, PKCE, registration, resource indicators, `iss`, step-up, and a change of the authorization server."""
    run("client.mjs")


for test in (test_well_known_servers, test_client_scenarios):
    print(f"  {test.__name__}", flush=True)
    test()
