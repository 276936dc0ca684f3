"""The bytes of a response are those of h11, whoever writes its chunks."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.process.connection import _Http

REQUESTS = {
    "1.1": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "1.0": b"GET / HTTP/1.0\r\n\r\n",
    "HEAD": b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n",
}


def written(connection, request, headers, parts):
    """The bytes of a response to a request."""
    connection.receive_data(request)
    while type(connection.next_event()) is not h11.EndOfMessage:
        pass
    sent = connection.send(h11.Response(status_code=200, headers=headers, reason=b"OK"))
    for part in parts:
        sent += connection.send(h11.Data(data=part)) or b""
    return sent + (connection.send(h11.EndOfMessage()) or b"")


@pytest.mark.parametrize("kind", list(REQUESTS))
@given(parts=st.lists(st.binary(max_size=300), max_size=6), is_long=st.booleans())
def test_a_response_has_the_bytes_that_h11_writes(kind, parts, is_long):
    parts = [b"" for _ in parts] if kind == "HEAD" else parts
    size = sum(map(len, parts))
    headers = [(b"content-length", str(size).encode())] if is_long else []
    theirs = written(h11.Connection(h11.SERVER), REQUESTS[kind], headers, parts)
    assert written(_Http(h11.SERVER), REQUESTS[kind], headers, parts) == theirs


def test_further_responses_of_a_connection_have_framings_of_their_own():
    ours, theirs = _Http(h11.SERVER), h11.Connection(h11.SERVER)
    for headers in ([], [(b"content-length", b"3")], []):
        sent = [written(one, REQUESTS["1.1"], headers, [b"abc"]) for one in (ours, theirs)]
        assert sent[0] == sent[1]
        ours.start_next_cycle()
        theirs.start_next_cycle()
