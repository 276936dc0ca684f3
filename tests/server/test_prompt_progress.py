"""While a prompt is read, a stream of a chat says how much of it is."""

import json
import threading

import httpx
import pytest

from tests.server.byte_engine import byte_engine
from tests.server.live import live

BODY = {
    "model": "toy",
    "messages": [{"role": "user", "content": "x" * 400}],
    "max_tokens": 1,
    "stream": True,
}


@pytest.fixture
def gate():
    return threading.Semaphore(0)


@pytest.fixture
def client(gate):
    with (
        byte_engine(gate=gate, max_num_batched_tokens=64) as engine,
        live(engine, keep_alive_s=0.05) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        gate.release(3)  # of the steps that read the prompt
        yield http
        gate.release(1000)


def first_of(client, gate, body, wanted):
    """The first line that is wanted; then the answer may end."""
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        lines = response.iter_lines()
        found = next(line for line in lines if wanted(line))
        gate.release(1000)
        assert "data: [DONE]" in list(lines)
    return found


def test_a_comment_says_how_much_is_read(client, gate):
    line = first_of(client, gate, BODY, lambda line: "prompt tokens" in line)
    read, total = (int(word) for word in line.split() if word.isdigit())
    assert line.startswith(": ")
    assert 0 < read < total


def test_a_chunk_says_it_to_who_asks(client, gate):
    body = BODY | {"return_progress": True}
    line = first_of(client, gate, body, lambda line: "prompt_progress" in line)
    chunk = json.loads(line.removeprefix("data: "))
    progress = chunk["prompt_progress"]
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"] == []
    assert chunk["system_fingerprint"].startswith("fp_")
    assert 0 < progress["processed"] < progress["total"]
    assert progress["cache"] == 0
    assert progress["time_ms"] >= 0
