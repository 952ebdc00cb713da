"""An MCP speech server with a real recognizer. Its microphone is a WAV file.

Arguments: the WAV file (16 kHz, mono, 16 bits), a JSGF grammar, and `--pace` to listen at the pace of speech.
"""

import json
import sys
import threading
import time
import wave

from pocketsphinx import Decoder, Endpointer

SOUND, GRAMMAR = sys.argv[1:3]
HAS_PACE = "--pace" in sys.argv


class Session:
    def __init__(self):
        self.status = "running"
        self.events = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with wave.open(SOUND) as file:
            sound = file.readframes(file.getnframes())
        endpointer = Endpointer(sample_rate=16_000)
        decoder = Decoder(samprate=16_000, loglevel="FATAL", jsgf=GRAMMAR, lm=None)
        size = endpointer.frame_bytes
        for start in range(0, len(sound) - size + 1, size):
            if self.status != "running":
                return
            if HAS_PACE:
                time.sleep(endpointer.frame_length)
            was_speaking = endpointer.in_speech
            speech = endpointer.process(sound[start : start + size])
            if speech is None:
                continue
            if not was_speaking:
                decoder.start_utt()
            decoder.process_raw(speech)
            if not endpointer.in_speech:
                decoder.end_utt()
                heard = decoder.hyp()
                if heard and heard.hypstr:
                    self.add("utterance_final", text=heard.hypstr, reason="endpoint")
        self.add("info", message="end of the recording")

    def add(self, kind, **fields):
        self.events.append({"seq": len(self.events) + 1, "type": kind, **fields})


SESSIONS = {}


def start(_arguments):
    name = f"stt-{len(SESSIONS) + 1}"
    SESSIONS[name] = Session()
    return {"session_id": name, "status": "running"}


def updates(arguments):
    session, since = SESSIONS[arguments["session_id"]], arguments.get("since_seq", 0)
    events = [event for event in session.events if event["seq"] > since][: arguments.get("limit", 100)]
    return {"status": session.status, "events": events, "next_seq": events[-1]["seq"] if events else since}


def stop(arguments):
    SESSIONS[arguments["session_id"]].status = "stopped"
    return {"status": "stopped"}


TOOLS = {"stt_start_session": start, "stt_get_updates": updates, "stt_stop_session": stop}


def answer(method, params):
    if method == "initialize":
        info = {"name": "speech", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        value = TOOLS[params["name"]](params.get("arguments") or {})
        return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
