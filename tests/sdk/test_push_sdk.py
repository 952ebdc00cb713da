"""WEB-6: what the server pushes can be read by a browser, and by nobody else.

The reader here follows RFC 8291 and RFC 8292 with another cryptographic library than the server, and is itself checked
with the example of RFC 8291.
"""

import base64
import http.server
import json
import os
import queue
import subprocess
import threading
import time
import urllib.request
import uuid

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def point(key):
    form = (serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    return key.public_bytes(*form)


def derived(length, salt, secret, info):
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def decrypted(body, private, auth):
    """Reads a message as a browser does."""
    salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
    sender, record = body[21 : 21 + length], body[21 + length :]
    assert len(record) <= size
    shared = private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
    info = b"WebPush: info\0" + point(private.public_key()) + sender
    secret = derived(32, auth, shared, info)
    key = derived(16, salt, secret, b"Content-Encoding: aes128gcm\0")
    nonce = derived(12, salt, secret, b"Content-Encoding: nonce\0")
    text = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
    assert text[-1] == 2, "the last record"
    return text[:-1]


def test_reader():
    """WEB-6: the reader of these tests reads the example in section 5 of RFC 8291."""
    private = ec.derive_private_key(
        int.from_bytes(decoded("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big"), ec.SECP256R1()
    )
    body = decoded(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    text = decrypted(body, private, decoded("BTBZMqHH6r4Tts7J_aSIgg"))
    assert text == b"When I grow up, I want to be a watermelon"


class Service(http.server.BaseHTTPRequestHandler):
    """A push service."""

    got = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.put((self.headers, body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def service():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A server with the simulated model, and a function that sends requests to it."""
    program = os.environ.get("WINDLASS_BIN") or pytest.skip("set WINDLASS_BIN")
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    options = ["--provider", "sim", "--listen", "127.0.0.1:0", "-c", "server.push_private=true"]
    process = subprocess.Popen(
        [program, "serve", *options], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    )
    url = process.stdout.readline().strip().removeprefix("listening on ")
    create = [program, "token", "create", "sdk", "--scope", "admin"]
    token = subprocess.run(create, env=env, capture_output=True, text=True, check=True).stdout.strip()

    def send(method, path, body=None):
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url + path, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.loads(opener.open(request, timeout=60).read() or b"null")

    yield send
    process.terminate()
    process.wait(timeout=20)


def check_signature(authorization, key, audience):
    scheme, rest = authorization.split(" ", 1)
    fields = dict(field.strip().split("=", 1) for field in rest.split(","))
    assert scheme == "vapid" and fields["k"] == key
    header, claims, signature = fields["t"].split(".")
    raw = decoded(signature)
    assert len(raw) == 64
    pair = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(key))
    public.verify(pair, f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(decoded(header)) == {"typ": "JWT", "alg": "ES256"}
    claims = json.loads(decoded(claims))
    assert claims["aud"] == audience
    assert time.time() < claims["exp"] <= time.time() + 24 * 60 * 60
    assert claims["sub"].startswith(("mailto:", "https:"))


def test_push(api, service):
    """WEB-6: a message is signed for the push service, encrypted for the browser, and says which session has news."""
    private, auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
    keys = {"p256dh": encoded(point(private.public_key())), "auth": encoded(auth)}
    key = api("GET", "/api/push/key")["key"]
    api("PUT", "/api/push/subscriptions", {"endpoint": f"{service}/browser", "keys": keys})
    session = api("POST", "/api/sessions", {})["session"]["id"]
    api("POST", f"/api/sessions/{session}/messages", {"id": str(uuid.uuid4()), "text": "list the files here"})
    headers, body = Service.got.get(timeout=60)
    assert headers["content-encoding"] == "aes128gcm" and int(headers["ttl"]) > 0
    check_signature(headers["authorization"], key, service)
    message = json.loads(decrypted(body, private, auth))
    assert message == {"kind": "finished", "session": session, "call": None}
    with pytest.raises(InvalidTag):
        decrypted(body, private, os.urandom(16))
    with pytest.raises(InvalidTag):
        decrypted(body, ec.generate_private_key(ec.SECP256R1()), auth)
