"""A speech server for tests: each line of the file `heard` is an utterance; the file `die` ends the server."""
import json
import os
import sys

SESSIONS = {}


def note(text):
    with open("calls", "a") as file:
        file.write(text + "\n")


def lines():
    if not os.path.exists("heard"):
        return []
    with open("heard") as file:
        return [line.rstrip("\n") for line in file if line.endswith("\n")]


def event(number, line):
    kind, _, text = line.partition(" ") if line.startswith("!") else ("!utterance_final", "", line)
    return {"seq": number + 1, "type": kind[1:], "text": text, "message": text}


def start(arguments):
    note("start " + json.dumps(arguments, sort_keys=True))
    SESSIONS["s1"] = "running"
    return {"session_id": "s1", "status": "running"}


def updates(arguments):
    if os.path.exists("die"):
        sys.stderr.write("the microphone is gone\n")
        sys.stderr.flush()
        os._exit(3)
    since = arguments["since_seq"]
    events = [event(number, line) for number, line in enumerate(lines()) if number + 1 > since]
    events = events[: arguments["limit"]]
    status = "ended" if os.path.exists("end") else SESSIONS[arguments["session_id"]]
    return {"status": status, "events": events, "next_seq": events[-1]["seq"] if events else since}


def stop(arguments):
    note("stop " + arguments["session_id"])
    SESSIONS[arguments["session_id"]] = "stopped"
    return {"status": "stopped"}


TOOLS = {"stt_start_session": start, "stt_get_updates": updates, "stt_stop_session": stop}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    method = request["method"]
    if method == "initialize":
        info = {"name": "ears", "version": "1"}
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object"}
        answer["result"] = {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]}
    elif method == "tools/call":
        value = TOOLS[request["params"]["name"]](request["params"].get("arguments") or {})
        answer["result"] = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
