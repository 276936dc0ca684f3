"""Images are decoded within limits; whatever is in them, the refusal is one sentence."""

import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as PilImage

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_PIXELS, Image
from engine.executors.torch.image_decoding import decode_image
from tests.fakes.images import png
from tests.fakes.tiny_vision import random_image

KINDS = ["PNG", "JPEG", "GIF", "WEBP"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_decoded_as_rgb(kind):
    decoded = decode_image(random_image(1, kind=kind))
    assert (decoded.mode, decoded.size) == ("RGB", (40, 30))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_mode_becomes_rgb(mode):
    buffer = io.BytesIO()
    PilImage.new(mode, (8, 6)).save(buffer, "PNG")
    assert decode_image(Image(buffer.getvalue(), "image/png", 8, 6)).mode == "RGB"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_file_that_ends_early_is_refused(kind, share):
    whole = random_image(1, 200, 150, kind=kind)
    cut = Image(whole.data[: int(len(whole.data) * share)], whole.media_type, 200, 150)
    with pytest.raises(InvalidRequest, match="damaged or incomplete"):
        decode_image(cut)


def test_a_file_of_another_type_than_it_says_is_refused():
    with pytest.raises(InvalidRequest, match="damaged"):
        decode_image(Image(random_image(1, kind="PNG").data, "image/jpeg", 40, 30))


@pytest.mark.parametrize("size", [(30_000, 30_000), (MAX_PIXELS // 1000 + 1, 1000)])
def test_a_header_of_too_many_pixels_is_refused_before_decoding(size):
    with pytest.raises(InvalidRequest, match="40 million pixels"):
        decode_image(Image(png(*size), "image/png", 8, 8))  # the header lies to its reader


def test_a_small_file_of_many_pixels_is_refused():
    """A decompression bomb: 100 million equal pixels in 12 kB."""
    buffer = io.BytesIO()
    PilImage.fromarray(np.zeros((10_000, 10_000), np.uint8)).save(buffer, "PNG", compress_level=1)
    with pytest.raises(InvalidRequest, match="million pixels"):
        decode_image(Image(buffer.getvalue(), "image/png", 10_000, 10_000))


def test_a_line_of_pixels_is_refused():
    """Scaled to a shorter side of some hundred pixels it would have billions."""
    buffer = io.BytesIO()
    PilImage.new("RGB", (3000, 2)).save(buffer, "PNG")
    with pytest.raises(InvalidRequest, match="too narrow"):
        decode_image(Image(buffer.getvalue(), "image/png", 3000, 2))


@given(
    kind=st.sampled_from(KINDS),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=20),
)
def test_changed_bytes_are_decoded_or_refused(kind, changes):
    whole = random_image(1, 24, 20, kind=kind)
    data = bytearray(whole.data)
    for at, value in changes:
        data[at % len(data)] = value
    changed = Image(bytes(data), whole.media_type, 24, 20)
    with suppress(InvalidRequest):
        assert decode_image(changed).mode == "RGB"
