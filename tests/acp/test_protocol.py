"""The protocol: broken lines, wrong parameters, clients that leave, a standard output with nothing else."""

import asyncio
import json
import signal
import subprocess
from contextlib import contextmanager

import pytest
from acp.exceptions import RequestError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acp.editor import PATIENCE_S, open_editor
from tests.fakes.installation import PRAVAHA, own_installation

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


@contextmanager
def started(tmp_path, *options):
    """`pravaha acp` as an editor starts it, with an installation of its own."""
    process = subprocess.Popen(
        [*PRAVAHA, "acp", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=own_installation(tmp_path),
        cwd=tmp_path,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(process, *messages):
    for one in messages:
        process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
    process.stdin.flush()


def end_input(process):
    """The exit status of a process whose standard input ends."""
    process.stdin.close()
    process.stdin = None
    return process.wait(PATIENCE_S)


def answer_to(process, number):
    """The answer to a request; what comes before it is passed over."""
    while True:
        message = json.loads(process.stdout.readline())
        if message.get("id") == number and "method" not in message:
            return message


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


BROKEN = [
    (b"{\n", -32700, "no JSON"),
    (b"\xff\xfe\n", -32700, "no JSON"),
    (b'{"jsonrpc": "2.0", "id": 3, "method": 7}\n', -32600, "must be a string"),
    (b'{"jsonrpc": "2.0", "id": 3}\n', -32600, "method or a result"),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "no/such"}\n', -32601, "no method no/such"),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "session/new"}\n', -32602, "session/new: cwd"),
    (
        b'{"jsonrpc": "2.0", "id": 3, "method": "session/new", "params": []}\n',
        -32602,
        "session/new",
    ),
]


def test_each_broken_line_gets_one_error_and_the_next_is_answered(tmp_path):
    with started(tmp_path, "--attach", "http://127.0.0.1:1") as process:
        for line, code, words in BROKEN:
            send(process, line)
            error = json.loads(process.stdout.readline())["error"]
            assert (error["code"], words in error["message"]) == (code, True), error
        # What is no request gets no answer.
        send(process, b"\n", b'{"jsonrpc": "2.0", "method": "$/cancel_request", "params": 4}\n')
        send(process, b'{"jsonrpc": "2.0", "id": 99, "result": {}}\n', HELLO)
        assert json.loads(process.stdout.readline())["result"]["agentInfo"]["name"] == "pravaha"
        assert end_input(process) == 0


def test_members_that_are_no_parameters_change_nothing(tmp_path):
    with started(tmp_path, "--attach", "http://127.0.0.1:1") as process:
        params = {"cwd": str(tmp_path), "mcpServers": [], "_meta": {"note": "a b"}, "unknown": 1}
        send(process, HELLO, request(1, "session/new", **params))
        assert answer_to(process, 1)["result"]["sessionId"]


def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch):
    async def work():
        monkeypatch.setattr("app.acp.transport.MAX_LINE_BYTES", 1000)
        async with open_editor(tmp_path, initialized=False) as editor:
            writer = editor.agent._conn._transport._sender._writer
            writer.write(b'{"a": "' + b"x" * 5000 + b'"}\n')
            said = await editor.agent.initialize(protocol_version=1)
            assert said.protocol_version == 1

    asyncio.run(work())


def test_a_server_that_is_not_there_is_said_at_the_prompt(tmp_path):
    with started(tmp_path, "--attach", "http://127.0.0.1:1") as process:
        send(process, HELLO, request(1, "session/new", cwd=str(tmp_path), mcpServers=[]))
        session = answer_to(process, 1)["result"]["sessionId"]
        prompt = [{"type": "text", "text": "Hello?"}]
        send(process, request(2, "session/prompt", sessionId=session, prompt=prompt))
        message = answer_to(process, 2)["error"]["message"]
        assert "http://127.0.0.1:1" in message
        assert "\n" not in message


def test_a_model_that_is_not_installed_is_said_at_the_prompt(tmp_path):
    with started(tmp_path, "--model", "no-such-model") as process:
        send(process, HELLO, request(1, "session/new", cwd=str(tmp_path), mcpServers=[]))
        session = answer_to(process, 1)["result"]["sessionId"]
        prompt = [{"type": "text", "text": "Hello?"}]
        send(process, request(2, "session/prompt", sessionId=session, prompt=prompt))
        assert "no-such-model" in answer_to(process, 2)["error"]["message"]
        assert end_input(process) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(tmp_path, number):
    with started(tmp_path, "--attach", "http://127.0.0.1:1") as process:
        send(process, HELLO)
        answer_to(process, 0)
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 128 + number


def test_a_client_that_closes_its_end_ends_the_process(tmp_path):
    with started(tmp_path, "--attach", "http://127.0.0.1:1") as process:
        send(process, HELLO)
        answer_to(process, 0)
        process.stdout.close()
        send(process, request(1, "session/new", cwd=str(tmp_path), mcpServers=[]))
        assert process.wait(PATIENCE_S) == 0
        process.stdout = None


def test_wrong_options_are_refused_in_a_sentence(tmp_path):
    with started(tmp_path, "--attach", "http://127.0.0.1:1", "--ctx", "512") as process:
        output, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, output) == (2, b"")
        assert b"--ctx cannot be set with --attach" in b" ".join(errors.split())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
METHODS = st.sampled_from([
    "initialize", "authenticate", "session/new", "session/load", "session/resume", "session/fork",
    "session/list", "session/close", "session/delete", "session/set_mode", "session/set_config_option",
    "session/cancel", "session/prompt",
])  # fmt: skip
NAMES = st.sampled_from(
    ["sessionId", "cwd", "mcpServers", "prompt", "modeId", "configId", "value", "cursor"]
)
BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=10)),
        st.builds(
            lambda uri, name: {"type": "resource_link", "uri": uri, "name": name},
            st.text(max_size=10)
            | st.sampled_from(["file:///", "file://x/y", "//[", "file:///%00"]),
            st.text(max_size=5),
        ),
        st.builds(
            lambda data: {"type": "image", "data": data, "mimeType": "image/png"},
            st.text(max_size=10),
        ),
        JSON,
    ),
    max_size=3,
)


@st.composite
def messages(draw):
    """Requests whose parameters are right, nearly right, or anything."""
    method = draw(METHODS)
    right = {
        "sessionId": draw(st.sampled_from(["SESSION", "none", ""])),
        "cwd": draw(st.sampled_from(["FOLDER", "/", "x", "/\0", ""])),
        "mcpServers": [],
        "prompt": draw(BLOCKS),
        "modeId": draw(st.sampled_from(["ask", "auto", "deny", "no"])),
        "configId": draw(st.sampled_from(["mode", "model", "no"])),
        "value": draw(st.sampled_from(["ask", "no"])),
        "protocolVersion": 1,
        "methodId": "x",
    }
    wrong = draw(st.dictionaries(NAMES, JSON, max_size=2))
    return method, draw(st.just({**right, **wrong}) | JSON)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(messages(), min_size=1, max_size=5))
def test_every_request_is_answered_and_the_server_goes_on(tmp_path_factory, given_messages):
    async def work(tmp_path):
        async with open_editor(tmp_path, *["Fine."] * 10) as editor:
            session = await editor.new()
            send_request = editor.agent._conn.send_request
            sentences = []

            async def sent(method, params):
                text = json.dumps(params).replace("SESSION", session)
                text = text.replace("FOLDER", str(editor.folder))
                try:
                    async with asyncio.timeout(PATIENCE_S):
                        await send_request(method, json.loads(text))
                except RequestError as error:
                    sentences.append(str(error))

            await asyncio.gather(*(sent(*one) for one in given_messages))
            said = await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[])
            assert said.session_id
            assert all(one and "\n" not in one for one in sentences)

    asyncio.run(work(tmp_path_factory.mktemp("fuzz")))
