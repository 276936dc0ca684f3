"""`pravaha mcp`: the server on standard input and output, as a host starts it."""

import asyncio
import json
import os
import pty
import signal
import subprocess
from contextlib import asynccontextmanager, contextmanager

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.fakes.installation import PRAVAHA, ROOT, own_installation
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.mcp_requests import LEGACY, OPENING, message, modern

PATIENCE_S = 60


@pytest.fixture
def environment(tmp_path):
    """An installation of its own."""
    return own_installation(tmp_path)


@asynccontextmanager
async def client_of(environment, *options, mode="auto"):
    program, *arguments = [*PRAVAHA, "mcp", *options]
    parameters = StdioServerParameters(
        command=program, args=arguments, env=dict(environment), cwd=ROOT
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


@contextmanager
def started(environment, *options):
    """The process, for messages written by hand."""
    process = subprocess.Popen(
        [*PRAVAHA, "mcp", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def write(process, *messages):
    for one in messages:
        process.stdin.write(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n")
    process.stdin.flush()


def read(process):
    return json.loads(process.stdout.readline())


def end_input(process):
    """Output and errors of a process whose standard input ends."""
    process.stdin.close()
    process.stdin = None
    return process.communicate(timeout=PATIENCE_S)


def text_of(result):
    (block,) = result.content
    return block.text


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", LEGACY)])
async def test_a_host_uses_the_model_of_a_server(server, environment, mode, revision):
    async with client_of(environment, "--attach", server.url, mode=mode) as client:
        assert client.protocol_version == revision
        assert "chat" in [one.name for one in (await client.list_tools()).tools]
        result = await client.call_tool("chat", {"message": "a", "max_tokens": 4, "seed": 4})
        assert result.structured_content["completion_tokens"] == 4
        wrong = await client.call_tool("chat", {"message": "a", "model": "other"})
        assert "no model 'other'" in text_of(wrong)


async def test_a_server_that_is_not_there_is_named(environment):
    async with client_of(environment, "--attach", "http://127.0.0.1:1") as client:
        result = await client.call_tool("chat", {"message": "a"})
        assert result.is_error
        assert "http://127.0.0.1:1" in text_of(result)
        assert "does not answer" in text_of(result)


async def test_a_key_is_sent(engine, environment):
    with live(engine, api_key="sk-1") as server:
        for key, fails in (("sk-1", False), ("sk-2", True)):
            options = ("--attach", server.url, "--api-key", key)
            async with client_of(environment, *options) as client:
                result = await client.call_tool("chat", {"message": "a", "max_tokens": 2})
                assert result.is_error is fails


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancelled_call_stops_its_request(environment, mode):
    with byte_engine(step_s=0.01) as engine, live(engine) as server:
        async with client_of(environment, "--attach", server.url, mode=mode) as client:
            given = {"prompt": "a", "max_tokens": 400, "seed": 4}
            running = asyncio.create_task(client.call_tool("complete", given))
            await asyncio.to_thread(wait_until, lambda: engine.snapshot().running > 0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await asyncio.to_thread(wait_until, lambda: is_quiet(engine))
            assert (await client.list_tools()).tools


def test_the_end_of_input_ends_the_process_and_what_runs(environment):
    with (
        byte_engine(step_s=0.01) as engine,
        live(engine) as server,
        started(environment, "--attach", server.url) as process,
    ):
        given = {"prompt": "a", "max_tokens": 400, "seed": 4}
        body, _ = modern("tools/call", {"name": "complete", "arguments": given})
        write(process, body)
        wait_until(lambda: engine.snapshot().running > 0)
        output, errors = end_input(process)
        assert (process.returncode, errors) == (0, b"")
        assert json.loads(output)["error"]["message"] == "Connection closed"
        wait_until(lambda: is_quiet(engine))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(server, environment, number):
    with started(environment, "--attach", server.url) as process:
        write(process, message("initialize", OPENING))
        assert read(process)["result"]["serverInfo"]["name"] == "pravaha"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 128 + number


def test_a_host_that_reads_no_more_ends_it(server, environment):
    with started(environment, "--attach", server.url) as process:
        write(process, message("initialize", OPENING))
        read(process)
        process.stdout.close()
        process.stdout = None
        write(process, message("tools/list"))
        _, errors = end_input(process)
        assert (process.returncode, errors) == (0, b"")


def test_lines_that_are_no_messages_change_nothing(server, environment):
    noise = [
        b"\n",
        b"nonsense\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"jsonrpc":"2.0"}\n',
        b"9" * 99999 + b"\n",
    ]
    with started(environment, "--attach", server.url) as process:
        write(process, *noise, message("initialize", OPENING), *noise, message("ping"))
        answers = [read(process), read(process)]
        assert "result" in answers[0]
        assert answers[1]["result"] == {}


def test_a_terminal_gets_help_and_no_protocol(environment):
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [*PRAVAHA, "mcp"], stdin=theirs, capture_output=True, text=True, env=environment, cwd=ROOT
    )
    os.close(ours)
    os.close(theirs)
    assert result.returncode == 2
    assert "a host starts `pravaha mcp`" in result.stderr
    assert "--attach" in result.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--attach", "http://localhost:1", "--ctx", "512"), "the server decides"),
        (("--attach", "http://localhost:1", "--agents-root", "."), "the server decides"),
        (("--api-key", "x"), "--api-key needs"),
        (("--ctx", "512", "list"), "no meaning for the command mcp list"),
    ],
)
def test_options_without_effect_are_refused(environment, options, reason):
    result = subprocess.run(
        [*PRAVAHA, "mcp", *options], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert result.returncode == 2
    assert reason in " ".join(result.stderr.split())


def test_the_model_is_loaded_while_the_host_is_answered(demo_model, environment):
    options = ("--model", str(demo_model), "--ctx", "512", "--kv-cache", "64MiB")
    with started(environment, *options) as process:
        write(process, message("initialize", OPENING))
        assert read(process)["result"]["protocolVersion"] == LEGACY
        write(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        given = {"message": "What is the capital of France?", "temperature": 0, "max_tokens": 12}
        write(process, message("tools/call", {"name": "chat", "arguments": given}))
        result = read(process)["result"]
        assert "Paris" in result["structuredContent"]["answer"]
        asked = {"question": "Is this about food?", "text": "Bread with butter is tasty."}
        write(process, message("tools/call", {"name": "decide", "arguments": asked}))
        assert set(read(process)["result"]["structuredContent"]["probabilities"]) == {"yes", "no"}
        write(process, message("tools/call", {"name": "list_agents", "arguments": {}}))
        assert read(process)["result"]["structuredContent"]["agents"]
        output, errors = end_input(process)
        assert (process.returncode, output) == (0, b"")
        assert b"KV pool" in errors


async def test_a_model_that_cannot_be_loaded_is_a_sentence(environment):
    async with client_of(environment, "--model", "no-such-model") as client:
        assert (await client.list_tools()).tools
        result = await client.call_tool("chat", {"message": "a"})
        assert result.is_error
        assert "no-such-model" in text_of(result)
