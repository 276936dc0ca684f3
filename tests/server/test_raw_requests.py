"""Requests below HTTP: compressed bombs, two lengths, endless heads and chunks."""

import gzip
import json
import socket
import zlib

import pytest

from tests.server.live import live
from tests.server.scripted_engine import ScriptedEngine, words

BODY = json.dumps({"model": "toy", "prompt": "hi"}).encode()
HEAD = (
    b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    b"content-type: application/json\r\n"
)


@pytest.fixture(scope="module")
def server():
    with live(ScriptedEngine(words("ok"))) as running:
        yield running


def exchange(server, data, *, leaves=False):
    """Everything that the server sends until it closes the connection; `leaves` after all was sent."""
    with server.connect() as connection:
        try:
            connection.sendall(data)
            if leaves:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has seen enough
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass  # closed while it was being sent to
    return answer


def status(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else None


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        (b"gzip", gzip.compress(b"[" * 50_000_000, mtime=0)),
        (b"deflate", zlib.compress(b" " * 50_000_000)),
        (b"gzip, gzip", gzip.compress(gzip.compress(b" " * 50_000_000, mtime=0), mtime=0)),
        (b"zstd", b"\x28\xb5\x2f\xfd" + b"\x00" * 50),
        (b"br", b"\x00"),
        (b"x-unknown", BODY),
    ],
)
def test_a_compressed_body_is_never_decompressed(server, encoding, data):
    length = str(len(data)).encode()
    head = HEAD + b"content-encoding: " + encoding + b"\r\ncontent-length: " + length
    assert status(exchange(server, head + b"\r\n\r\n" + data)) == 415


def test_a_compressed_transfer_is_refused(server):
    head = HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n"
    assert status(exchange(server, head + b"0\r\n\r\n")) in (400, 501)


SMUGGLED = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "lengths",
    [
        b"content-length: %d\r\ncontent-length: 5\r\n" % len(BODY),
        b"content-length: 5, %d\r\n" % len(BODY),
        b"content-length: -1\r\n",
        b"content-length: +5\r\n",
        b"content-length: 0x10\r\n",
        b"content-length: 99999999999999999999999\r\n",
        b"content-length: \xd9\xa3\r\n",
        b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        b"transfer-encoding: xchunked\r\n",
        b"transfer-encoding : chunked\r\n",
        b"content-length: 5\r\n\tfolded: x\r\n",
    ],
)
def test_a_body_of_two_lengths_is_refused_and_nothing_after_it_is_answered(server, lengths):
    answer = exchange(server, HEAD + lengths + b"\r\n" + BODY + SMUGGLED)
    assert status(answer) in (400, 413, 501)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"pravaha_" not in answer


def test_a_length_beside_chunks_does_not_split_the_request(server):
    """RFC 9112 6.1: the chunks count, and the connection is closed afterwards."""
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    head = HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = exchange(server, head + chunks + SMUGGLED)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"pravaha_" not in answer


@pytest.mark.parametrize(
    "chunks",
    [
        b"fffffffffffffffffffffffffffffff\r\nx",
        b"-5\r\nhello",
        b"0x5\r\nhello",
        b"5;" + b"x" * 200_000 + b"\r\nhello",
        b"zz\r\n",
    ],
)
def test_a_chunk_that_is_none_is_refused(server, chunks):
    answer = exchange(server, HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks)
    assert status(answer) in (None, 400, 413)
    assert b"ok" not in answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"x" * 200_000,
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\nsmuggled: b\rc\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["many headers", "long line", "no line", "nul", "bare cr", "http/2", "tls"],
)
def test_a_head_that_is_none_or_too_long_is_refused(server, data):
    assert status(exchange(server, data, leaves=True)) in (None, 400, 403, 431)


def test_the_server_still_answers(server):
    length = str(len(BODY)).encode()
    answer = exchange(server, HEAD + b"content-length: " + length + b"\r\n\r\n" + BODY)
    assert status(answer) == 200
