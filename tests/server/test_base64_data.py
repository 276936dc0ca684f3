"""`decode_base64` reads what one strict call of the standard library reads, with other calls in between."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from app.server.calls.base64_data import decode_base64


def _decoded(decode, *given):
    try:
        return decode(*given)
    except ValueError:
        return None


@given(st.text(alphabet="AQgw9+/=é \n", max_size=24), st.text(max_size=6))
def test_any_text_is_read_or_refused_as_by_the_library(text, head):
    strict = _decoded(lambda data: base64.b64decode(data, validate=True), text)
    assert _decoded(decode_base64, head + text, len(head)) == strict


@given(st.binary(max_size=64))
def test_bytes_come_back(data):
    assert decode_base64(base64.b64encode(data).decode()) == data


def test_what_is_decoded_in_pieces_comes_back_whole():
    data = bytes(range(256)) * 8192
    assert decode_base64(base64.b64encode(data).decode()) == data
