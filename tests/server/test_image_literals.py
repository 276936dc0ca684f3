import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.wire.image_literals import without_images


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        (b'{"url":"data:image/png;base64,AAAA"}', b'{"url":""}'),
        (b'{"data":"AAAA","type":"base64"}', b'{"data":"","type":"base64"}'),
        (b'{"data" :\n "QUJD+/8="}', b'{"data" :\n ""}'),
        (rb'{"data":"QU\/D"}', b'{"data":""}'),
        (b'[{"data":"AAAA"},{"data":"BBBB"}]', b'[{"data":""},{"data":""}]'),
        # Texts stay: their length counts.
        (b'{"data":"a text"}', b'{"data":"a text"}'),
        (rb'{"data":"AA\u0041"}', rb'{"data":"AA\u0041"}'),
        (rb'{"url":"data:image/png;\u0041"}', rb'{"url":"data:image/png;\u0041"}'),
        (b'{"data":"AAAA', b'{"data":"AAAA'),
        (b'{"data":{"data":"AAAA"}}', b'{"data":{"data":""}}'),
        (b'{"data":""}', b'{"data":""}'),
        (b"{}", b"{}"),
    ],
)
def test_only_images_are_left_out(body, rest):
    assert without_images(body) == rest


@given(st.lists(st.sampled_from([b'"data":"', b'"data:image/', b"AA", b'"', b"\\", b" ", b"{"])))
def test_any_bytes_are_accepted_and_nothing_is_added(pieces):
    body = b"".join(pieces)
    rest = without_images(body)
    assert len(rest) <= len(body)
    assert without_images(rest) == rest or b"data" in rest
