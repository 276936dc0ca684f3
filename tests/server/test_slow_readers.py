"""A client that stops reading its stream delays nobody else and fills no memory."""

import json
import socket
from contextlib import closing

import httpx

from engine.api.request import FinishReason
from tests.server.byte_engine import byte_engine, is_quiet, wait_until
from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, ScriptedHandle, batch

CHUNK = "x" * 16_384
CHUNKS = 512  # 8 MiB
MOST_BUFFERED = (
    128  # 2 MiB: both kernel buffers, which may be larger than asked for, and the server's
)
FEW = 8
HEAD = "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


class LongAnswers(ScriptedEngine):
    """Answers of `CHUNKS` batches; counts those that the server has taken from its first request."""

    def __init__(self):
        super().__init__(lambda request: [])
        self.taken = 0

    def submit_all(self, requests):
        is_first = not self.requests
        super().submit_all(requests)
        return [LongAnswer(self, request, is_first=is_first) for request in requests]


class LongAnswer(ScriptedHandle):
    def __init__(self, engine, request, *, is_first):
        super().__init__(request, [], engine._on_abort)
        self._engine = engine
        self._is_first = is_first

    async def __aiter__(self):
        for left in reversed(range(CHUNKS if self._is_first else FEW)):
            self._engine.taken += self._is_first
            self.finished = not left
            yield batch(self.request, CHUNK, None if left else FinishReason.STOP)


def send(connection, path, body):
    data = json.dumps(body).encode()
    head = f"{HEAD.format(path=path)}content-length: {len(data)}\r\nconnection: close\r\n\r\n"
    connection.sendall(head.encode() + data)


def connect(server):
    """A connection for which the kernel keeps little; otherwise it may be 10 MB."""
    wait_until(lambda: server.server.started)
    listener = server.server.servers[0].sockets[0]
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)  # inherited by connections
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(server.address)
    return connection


def test_an_unread_stream_stops_at_the_kernels_buffers_and_resumes():
    engine = LongAnswers()
    body = {"model": "toy", "prompt": "x", "stream": True}
    with live(engine) as server, closing(connect(server)) as unread:
        send(unread, "/v1/completions", body)
        unread.recv(1)
        taken = -1
        while taken != engine.taken:  # until other streams find it where it was
            taken = engine.taken
            for _ in range(3):
                other = httpx.post(f"{server.url}/v1/completions", json=body, timeout=60)
                assert other.text.count(CHUNK) == FEW
                assert other.text.endswith("data: [DONE]\n\n")
        assert 0 < taken < MOST_BUFFERED
        with unread.makefile("rb") as stream:
            text = stream.read()
    assert engine.taken == CHUNKS
    assert text.count(CHUNK.encode()) == CHUNKS
    assert b"data: [DONE]\n\n" in text
    assert engine.aborted == []


def test_a_request_whose_stream_is_not_read_frees_its_blocks_when_it_finishes():
    body = {"model": "toy", "prompt": "x", "max_tokens": 400, "ignore_eos": True, "stream": True}
    many = body | {"n": 8, "logprobs": 20}  # about 2 MB of chunks
    with (
        byte_engine() as engine,
        live(engine) as server,
        closing(connect(server)) as unread,
    ):
        send(unread, "/v1/completions", many)
        wait_until(lambda: engine.snapshot().totals.finished.get("length", 0) == 8, seconds=120)
        wait_until(lambda: is_quiet(engine))
        assert server.context.drain.active == 1  # the stream itself still waits for its reader
        other = httpx.post(f"{server.url}/v1/completions", json=body, timeout=60)
        assert other.text.endswith("data: [DONE]\n\n")
        with unread.makefile("rb") as stream:
            text = stream.read()
        assert text.count(b'"finish_reason":"length"') == 8
        assert b"data: [DONE]\n\n" in text
