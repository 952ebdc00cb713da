"""An MCP server over HTTP for tests, with an authorization server beside it. The path selects its behaviour.

Prints its port. Appends each request to the file that the first argument names."""
import base64
import hashlib
import http.server
import json
import queue
import socketserver
import sys
import threading
import time
import urllib.parse

LOG = open(sys.argv[1], "a")
SESSIONS, STREAMS, CODES, TOKENS = set(), {}, {}, {"access": set(), "refresh": set()}
LOCK = threading.Lock()
TOOLS = ["echo", "cut", "html", "huge", "flood", "fail", "login", "hang", "forget", "ask", "progress", "revoke"]
FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


def tool(name):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": "Repeats a text.", "inputSchema": schema}


def text(value):
    return {"content": [{"type": "text", "text": value}], "resultType": "complete"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def record(self, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        with LOCK:
            LOG.write(json.dumps({"verb": self.command, "path": self.path, "headers": headers, "body": body}) + "\n")
            LOG.flush()

    def answer(self, status, body=b"", kind="application/json", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, **headers):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        self.wfile.flush()

    @property
    def base(self):
        return "http://" + self.headers["host"]

    def do_DELETE(self):
        self.record(None)
        self.answer(204)

    def do_GET(self):
        self.record(None)
        url = urllib.parse.urlsplit(self.path)
        given = dict(urllib.parse.parse_qsl(url.query))
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            self.answer(200, {"resource": self.base + "/secure", "authorization_servers": [self.base], "scopes_supported": ["read"]})
        elif url.path.startswith("/.well-known/oauth-authorization-server"):
            at = lambda name: self.base + "/" + name
            self.answer(200, {
                "issuer": self.base, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
                "registration_endpoint": at("register"), "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": True,
            })
        elif url.path == "/authorize":
            code = "code-%d" % len(CODES)
            CODES[code] = given
            query = urllib.parse.urlencode({"code": code, "state": given["state"], "iss": self.base})
            self.answer(302, location=given["redirect_uri"] + "?" + query)
        elif url.path == "/old":
            number = str(len(STREAMS))
            STREAMS[number] = queue.Queue()
            self.stream()
            self.wfile.write(b"event: endpoint\ndata: /old/messages?id=" + number.encode() + b"\n\n")
            self.wfile.flush()
            while True:
                self.event(STREAMS[number].get())
        else:
            self.answer(405)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        self.record(body)
        url = urllib.parse.urlsplit(self.path)
        given = dict(urllib.parse.parse_qsl(url.query))
        mode = url.path.strip("/")
        if mode == "register":
            self.answer(201, {**json.loads(body), "client_id": "client-1"})
        elif mode == "token":
            self.token(dict(urllib.parse.parse_qsl(body)))
        elif mode == "old/messages":
            self.answer(202)
            request = json.loads(body)
            if "id" in request:
                STREAMS[given["id"]].put(self.result(request, "legacy"))
        elif mode == "old":
            self.answer(405)
        elif mode == "moved":
            self.answer(307, location="/modern")
        elif mode == "away":
            self.answer(307, location="http://localhost:%s/modern" % self.server.server_address[1])
        elif mode in ("401", "403", "500"):
            self.answer(int(mode), b"no cheese", "text/plain")
        elif mode == "hang":
            time.sleep(600)
        elif mode == "html":
            self.answer(200, b"<html>Welcome</html>", "text/html")
        elif mode == "huge":
            self.huge()
        elif mode == "secure":
            token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
            if token in TOKENS["access"]:
                self.mcp(json.loads(body), "modern")
            else:
                place = self.base + "/.well-known/oauth-protected-resource/secure"
                self.answer(401, www_authenticate='Bearer resource_metadata="%s", scope="read"' % place)
        else:
            self.mcp(json.loads(body), mode)

    def token(self, form):
        if form["grant_type"] == "authorization_code":
            asked = CODES.pop(form["code"], None)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            is_right = asked and asked["code_challenge"] == proof and asked["code_challenge_method"] == "S256"
            is_right = is_right and form.get("resource") == asked.get("resource") == self.base + "/secure"
        else:
            is_right = form["refresh_token"] in TOKENS["refresh"]
            TOKENS["refresh"].discard(form["refresh_token"])
        if not is_right:
            self.answer(400, {"error": "invalid_grant"})
            return
        number = str(time.time_ns())
        access, refresh = "access-" + number, "refresh-" + number
        TOKENS["access"].add(access)
        TOKENS["refresh"].add(refresh)
        self.answer(200, {"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": "read"})

    def huge(self):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(200):
                self.wfile.write(b" " * 1_000_000)
        except OSError:
            pass

    def mcp(self, request, mode):
        method = request.get("method")
        if mode == "legacy":
            session = self.headers.get("mcp-session-id")
            if method == "server/discover":
                return self.answer(400, b"no session", "text/plain")
            if method == "initialize":
                session = "session-%d" % time.time_ns()
                SESSIONS.add(session)
                return self.answer(200, self.result(request, mode), mcp_session_id=session)
            if session not in SESSIONS:
                return self.answer(404)
        elif method == "initialize" or self.headers.get("mcp-method") != method:
            error = {"code": -32022, "message": "only 2026-07-28", "data": {"supported": ["2026-07-28"], "requested": "?"}}
            return self.answer(400, {"jsonrpc": "2.0", "id": request.get("id"), "error": error})
        if "id" not in request or "method" not in request:
            return self.answer(202)
        if method == "tools/call":
            return self.call(request, mode)
        self.answer(200, self.result(request, mode))

    def call(self, request, mode):
        params = request["params"]
        name = params["name"]
        done = lambda value: {"jsonrpc": "2.0", "id": request["id"], "result": value}
        if name == "cut":
            self.stream()
            self.wfile.write(b"event: message\ndata: {\"jsonrpc\": ")
        elif name == "html":
            self.answer(200, b"<html>Welcome</html>", "text/html")
        elif name == "huge":
            self.huge()
        elif name == "flood":
            self.stream()
            note = {"level": "info", "data": "x" * 1_000_000}
            try:
                for _ in range(200):
                    self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": note})
            except OSError:
                pass
        elif name == "fail":
            self.answer(500, b"out of cheese", "text/plain")
        elif name == "login":
            self.answer(401)
        elif name == "hang":
            self.stream()
            try:
                while True:
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                    time.sleep(0.1)
            except OSError:
                self.record("hung up")
        elif name == "forget":
            SESSIONS.clear()
            self.answer(200, done(text("forgotten")))
        elif name == "revoke":
            TOKENS["access"].clear()
            self.answer(200, done(text("revoked")))
        elif name == "ask" and mode != "legacy":
            answers = params.get("inputResponses")
            asked = {"method": "elicitation/create", "params": {"mode": "form", "message": "Which colour?", "requestedSchema": FORM}}
            if answers is None:
                self.answer(200, done({"resultType": "input_required", "inputRequests": {"q": asked}, "requestState": "s1"}))
            else:
                self.answer(200, done(text("%s %s" % (json.dumps(answers["q"], sort_keys=True), params.get("requestState")))))
        else:
            self.stream()
            token = (params.get("_meta") or {}).get("progressToken")
            if token is not None:
                for step in (1, 2):
                    note = {"progressToken": token, "progress": step, "total": 2, "message": "step %d" % step}
                    self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": note})
            self.event(self.result(request, mode))

    def result(self, request, mode):
        method = request["method"]
        version = "2025-11-25" if mode == "legacy" else "2026-07-28"
        capabilities = {"tools": {}}
        about = {"name": "fake", "version": "1"}
        result = {"resultType": "complete"}
        if method == "initialize":
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}
        elif method == "server/discover":
            meta = {"io.modelcontextprotocol/serverInfo": about}
            result.update(supportedVersions=[version], capabilities=capabilities, ttlMs=0, cacheScope="private", _meta=meta)
        elif method == "tools/list":
            result.update(tools=[tool(name) for name in TOOLS], ttlMs=0, cacheScope="private")
        elif method == "tools/call":
            result = text("echo: %s" % request["params"].get("arguments", {}).get("text", ""))
        else:
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients that hang up are part of the tests."""


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
