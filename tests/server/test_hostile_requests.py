"""Requests that stopped, slowed or misled other servers: refused or answered, and nothing of them stays."""

import base64
import itertools
import json
import socket
import threading
from urllib.parse import quote

import httpx
import pytest

from app.server.app import create_app
from app.server.middleware.auth import walk_routes
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.faces import FACES, GENERATING, MESSAGES, body_of
from tests.server.files_server import files_server
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

GOOD = FACES["/v1/completions"] | {"seed": 5, "keep_alive": -1}


@pytest.fixture(scope="module")
def engine():
    with byte_engine(context=1024) as running:
        yield running


@pytest.fixture(scope="module")
def client(engine):
    with live(engine) as server, httpx.Client(base_url=server.url, timeout=90) as http:
        yield http


@pytest.fixture
def unharmed(client, engine):
    """Afterwards the server is ready, its memory free and its next answer the same."""
    before = client.post("/v1/completions", json=GOOD).json()["choices"]
    yield
    assert client.get("/ready").status_code == 200
    wait_until(lambda: is_quiet(engine))
    assert client.post("/v1/completions", json=GOOD).json()["choices"] == before


# Tensors in requests.

TENSOR = base64.b64encode(b"PK\x03\x04 archive/data.pkl").decode()  # as torch.save begins
EMBEDDED = ("prompt_embeds", "inputs_embeds", "image_embeds", "audio_embeds", "multi_modal_data")


@pytest.mark.parametrize("field", EMBEDDED)
@pytest.mark.parametrize("path", FACES)
def test_no_face_reads_a_tensor(client, path, field):
    answer = client.post(path, json=body_of(path, **{field: TENSOR}))
    if answer.status_code < 400:
        assert field in answer.headers["x-pravaha-ignored-fields"]
    else:
        assert answer.status_code in (400, 404)
    part = {"role": "user", "content": [{"type": field, field: TENSOR}]}
    if "messages" in FACES[path]:
        answer = client.post(path, json=body_of(path, messages=[part]))
        is_listed = "content" in answer.headers.get("x-pravaha-ignored-fields", "")
        assert answer.status_code == 400 or is_listed


# Schemas and patterns that take for ever, or are none.

SCHEMAS = [
    {"type": "string", "pattern": "("},
    {"type": "string", "pattern": "(a+)+$"},
    {"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"},
    {"type": "string", "pattern": "(?<=a{999})b"},
    {"type": "something"},
    {"type": ["string", 5]},
    {"$ref": "#"},
    {"$ref": "#/properties/nowhere"},
    {"$ref": "http://127.0.0.1:1/schema.json"},
    {"$ref": "file:///etc/passwd"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"enum": []},
    {"properties": 5, "required": "x"},
    {"minLength": 10**9, "type": "string"},
    {"minItems": 10**9, "type": "array"},
    {"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 10**6},
]


def nested(schema):
    """The schema as a tool's argument."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


def with_tool(path, schema):
    """A request of a face whose tool has a schema."""
    function = {"name": "look", "description": "", "parameters": nested(schema)}
    if path == "/v1/responses":
        return body_of(path, tools=[{"type": "function", **function}], tool_choice="required")
    if path == "/v1/messages":
        tool = {"name": "look", "input_schema": nested(schema)}
        return body_of(path, tools=[tool], tool_choice={"type": "any"})
    choice = {} if path == "/api/chat" else {"tool_choice": "required"}
    return body_of(path, tools=[{"type": "function", "function": function}], **choice)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: json.dumps(one)[:40])
@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"]
)
def test_no_schema_of_a_tool_fails_a_request(client, unharmed, path, schema):
    answer = client.post(path, json=with_tool(path, schema))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda one: json.dumps(one)[:40])
def test_a_schema_of_an_answer_is_enforced_or_refused(client, unharmed, schema):
    named = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    flat = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
    for path, fields in (
        ("/v1/chat/completions", {"response_format": named, "tools": None}),
        ("/v1/chat/completions", {"guided_json": schema, "tools": None}),
        ("/v1/completions", {"guided_json": schema}),
        ("/v1/responses", {"text": flat, "tools": None}),
        ("/v1/messages", {"output_config": flat}),
        ("/api/chat", {"format": schema, "stream": False}),
        ("/completion", {"json_schema": schema}),
    ):
        answer = client.post(path, json=body_of(path, **fields))
        # A grammar that leads nowhere ends an answer that was begun: an error of that answer alone.
        assert answer.status_code in (200, 400), (path, answer.text)


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_regex": "(a+)+$"},
        {"guided_regex": "("},
        {"guided_regex": "(a{1,99}){1,99}"},
        {"guided_grammar": "start: start"},
        {"guided_grammar": "start: " + "(" * 5000},
        {"guided_choice": [""] * 1000},
        {"stop": ["x" * 5_000] * 500},
        {"logit_bias": {str(n): 1 for n in range(20_000)}},
        {"prompt": ""},
        {"prompt": "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace") * 9},
        {"n": 10**6},
        {"best_of": 10**6},
        {"dry_multiplier": 1, "dry_sequence_breakers": ["\n"] * 10**5},
    ],
    ids=lambda fields: json.dumps(fields)[:40],
)
def test_no_field_of_a_completion_stops_the_server(client, unharmed, fields):
    answer = client.post("/v1/completions", json=body_of("/v1/completions", **fields))
    # A grammar that cannot be followed ends its own answer in an error.
    too_costly = "grammar is too costly" in answer.text
    assert answer.status_code in (200, 400) or too_costly, answer.text[:300]


# Addresses in requests.


class Canary:
    """A listener of this machine that no request may reach."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def canary():
    listener = Canary()
    yield listener
    listener.close()


HOSTS = ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1")


def fetching_requests(url):
    """Requests of all faces that name an address where some server fetches one."""
    image = {"type": "image_url", "image_url": {"url": url}}
    yield "/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}]}
    for kind, member in (("input_image", "image_url"), ("input_file", "file_url")):
        part = {"type": kind, member: url}
        yield "/v1/responses", {"input": [{"role": "user", "content": [part]}]}
    mcp = {"type": "mcp", "server_label": "x", "server_url": url, "require_approval": "never"}
    yield "/v1/responses", {"tools": [mcp]}
    yield "/v1/messages", {"mcp_servers": [{"type": "url", "url": url, "name": "x"}]}
    for kind in ("image", "document"):
        block = {"type": kind, "source": {"type": "url", "url": url}}
        yield "/v1/messages", {"messages": [{"role": "user", "content": [block]}]}
    yield "/api/chat", {"messages": [MESSAGES[0] | {"images": [url]}]}
    yield "/api/generate", {"images": [url]}
    for path in ("/api/pull", "/api/show"):
        yield path, {"model": url}
    yield "/v1/completions", {"model": url}
    yield "/v1/completions", {"lora_path": url}
    yield "/v1/chat/completions", {"chat_template": url, "documents": [{"url": url}]}
    yield "/v1/chat/completions", {"metadata": {"webhook": url}, "user": url}


@pytest.mark.parametrize("host", HOSTS)
def test_no_request_makes_the_server_connect_somewhere(client, unharmed, canary, host):
    url = f"http://{host}:{canary.port}/x"
    for path, fields in fetching_requests(url):
        body = FACES.get(path, {}) | fields
        answer = client.post(path, json=body)
        assert answer.status_code < 500, (path, fields, answer.text)
    assert canary.connections == 0


# Names that are paths.

NAMES = (
    "../../../../etc/passwd", "/etc/passwd", "....//....//etc/passwd", "%2e%2e%2fetc%2fpasswd",
    "..\\..\\etc\\passwd", "file:///etc/passwd", "C:\\x", "~/x", "a\x00b", "sha256:../../etc/passwd",
    "x" * 5000, "-rf", "*", "\u202egnp.exe",
)  # fmt: skip
ABSENT = "/etc/there-is-no-such-file"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with files_server(tmp_path_factory.mktemp("files")) as running:
        yield running


def named_paths():
    """Routes with a name in their path, without those that change the served model."""
    for route in walk_routes(create_app(ScriptedEngine(words("ok"))).routes):
        if "{" in route.path:
            yield from ((method, route.path) for method in sorted(route.methods - {"HEAD"}))


@pytest.mark.parametrize(("method", "path"), named_paths())
def test_a_path_in_a_path_finds_nothing(served, method, path):
    parts = path.replace("{name:path}", "{name}").split("{")
    for name in NAMES:
        filled = parts[0] + "".join(
            quote(name, safe="") + part.partition("}")[2] for part in parts[1:]
        )
        answer = served.http.request(method, filled, json={} if method == "POST" else None)
        is_gone = method == "DELETE" and answer.status_code == 204  # nothing was there
        assert 400 <= answer.status_code < 500 or is_gone, (filled, answer.text)
        assert b"root:" not in answer.content


@pytest.mark.parametrize(
    "path", ["/api/show", "/api/delete", "/api/pull", "/v1/completions", "/v1/embeddings"]
)
def test_a_path_as_a_model_finds_nothing_and_tells_nothing(client, unharmed, path):
    def ask(name):
        method = "DELETE" if path == "/api/delete" else "POST"
        return client.request(method, path, json=FACES.get(path, {}) | {"model": name})

    for name in NAMES:
        answer = ask(name)
        if answer.status_code == 200:  # a stream of Ollama's that begins, and says the error in it
            assert '"error"' in answer.text, (name, answer.text)
        assert answer.status_code < 500
        assert "root:" not in answer.text
    present, absent = ask("/etc/passwd"), ask(ABSENT)
    assert present.status_code == absent.status_code
    assert present.text.replace("/etc/passwd", "X") == absent.text.replace(ABSENT, "X")


# One tenant's prompts.


@pytest.mark.parametrize("path", GENERATING)
def test_a_salt_keeps_prompts_apart_or_is_reported(client, engine, path):
    prompt = f"{path} " * 20  # whole blocks
    content = {"prompt": prompt} if "prompt" in FACES[path] else {}
    if "messages" in FACES[path]:
        content = {"messages": [{"role": "user", "content": prompt}]}
    if "input" in FACES[path]:
        content = {"input": prompt}
    content |= {"tools": None} if "tools" in FACES[path] else {}

    def hits(salt):
        before = engine.snapshot().totals.prefix_cache_hits
        answer = client.post(path, json=body_of(path, **content, cache_salt=salt))
        assert answer.status_code == 200, answer.text
        wait_until(lambda: is_quiet(engine))
        return engine.snapshot().totals.prefix_cache_hits - before, answer

    (cold, first), (own, _), (others, _) = hits("one"), hits("one"), hits("two")
    if "cache_salt" in first.headers.get("x-pravaha-ignored-fields", ""):
        return
    assert cold == others
    assert own > cold


# Names in logs and metrics.


def test_no_text_of_a_client_becomes_a_label(client):
    forged = 'x"} 1\npravaha_forged_total{a="b'
    for path, field in itertools.product(FACES, ("model", "user", forged)):
        client.post(path, json=body_of(path, **{field: forged}))
    client.get("/" + "forged-path")
    client.request("FORGED", "/v1/models")
    client.get("/v1/models", headers={"user-agent": "forged-agent", "x-request-id": "forged"})
    text = client.get("/metrics").text
    assert "forged" not in text.lower()
    assert text.count("\n") < 3000
