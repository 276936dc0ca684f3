"""`open_image` reads the header of an image, whatever bytes it is given."""

import struct
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_PIXELS
from engine.vision.opening import MAX_BYTES, open_image
from tests.fakes.images import gif, jpeg, jpeg_segment, lossless_webp, lossy_webp, png, webp

SIDES = st.integers(1, 6000)


def refused(data, **given):
    with pytest.raises(InvalidRequest) as error:
        open_image(data, **given)
    return str(error.value)


class TestSizes:
    @given(SIDES, SIDES)
    def test_every_type_has_its_size(self, width, height):
        for media_type, data in (
            ("image/png", png(width, height)),
            ("image/jpeg", jpeg(width, height)),
            ("image/gif", gif(width, height)),
            ("image/webp", lossy_webp(width, height)),
            ("image/webp", lossless_webp(width, height)),
            ("image/webp", webp(width, height)),
        ):
            found = open_image(data)
            assert (found.media_type, found.width, found.height) == (media_type, width, height)
            assert found.data == data

    def test_a_jpeg_may_have_segments_and_fill_bytes_before_its_size(self):
        before = jpeg_segment(0xE1, b"Exif\0\0" + b"\xff\xc0" * 50) + b"\xff\xff"
        found = open_image(jpeg(640, 480, before=before))
        assert (found.width, found.height) == (640, 480)

    def test_a_progressive_jpeg_has_another_frame_header(self):
        found = open_image(jpeg(640, 480, frame=0xC2))
        assert (found.width, found.height) == (640, 480)

    def test_the_real_library_agrees(self):
        pillow = pytest.importorskip("PIL.Image")
        from io import BytesIO

        for kind in ("PNG", "JPEG", "GIF", "WEBP"):
            file = BytesIO()
            pillow.new("RGB", (321, 123), "red").save(file, kind)
            found = open_image(file.getvalue())
            assert (found.width, found.height) == (321, 123)
            assert found.media_type == f"image/{kind.lower()}"


class TestLimits:
    def test_a_file_beyond_20_mib(self):
        data = png(1, 1)
        assert open_image(data + bytes(MAX_BYTES - len(data)))
        assert refused(data + bytes(MAX_BYTES), name="a.png") == "a.png is larger than 20 MiB."

    def test_40_million_pixels(self):
        assert open_image(png(8000, MAX_PIXELS // 8000))
        for data in (png(8000, 5001), jpeg(8000, 5001), gif(8000, 5001), webp(8000, 5001)):
            assert "8000 × 5001 pixels; at most 40 million" in refused(data, name="a.png")

    def test_the_largest_numbers_are_no_overflow(self):
        assert "pixels" in refused(png(2**32 - 1, 2**32 - 1))

    def test_a_image_without_pixels(self):
        for data in (png(0, 5), png(5, 0), jpeg(0, 5), jpeg(5, 0), gif(0, 0), lossy_webp(0, 4)):
            assert "damaged: it has no pixels" in refused(data)

    def test_a_jpeg_of_empty_segments_is_given_up(self):
        data = jpeg(5, 5, before=jpeg_segment(0xE1, b"") * 5000)
        assert "too many segments" in refused(data)

    def test_a_megabyte_of_fill_bytes_is_one_search(self):
        found = open_image(jpeg(5, 6, before=b"\xff" * 1_000_000))
        assert (found.width, found.height) == (5, 6)


class TestDamage:
    def test_other_files_are_named_as_such(self):
        for data in (b"hello", b"%PDF-1.4", b"BM" + bytes(60), b"II*\0" + bytes(60), b"RIFF"):
            assert refused(data, name="a.x") == "a.x is no PNG, JPEG, GIF or WebP image."
        assert refused(b"", name="a.x") == "a.x is empty."
        assert refused(b"hello").startswith("The image is no PNG")

    @pytest.mark.parametrize(
        ("whole", "signature", "header"),
        [
            (png(5, 6), 8, 33),
            (jpeg(5, 6), 3, 12),
            (gif(5, 6), 6, 10),
            (webp(5, 6), 12, 30),
            (lossy_webp(5, 6), 12, 30),
            (lossless_webp(5, 6), 12, 25),
        ],
    )
    def test_a_header_that_is_cut_off(self, whole, signature, header):
        for length in range(signature, header):
            assert refused(whole[:length]) == "The image is damaged: it ends within its header."
        assert open_image(whole[:header])

    def test_a_png_with_a_wrong_checksum(self):
        data = bytearray(png(5, 6))
        data[19] ^= 1
        assert "checksum" in refused(bytes(data))

    def test_a_png_with_impossible_fields(self):
        for fields in ((3, 2, 0, 0, 0), (8, 7, 0, 0, 0), (8, 2, 1, 0, 0), (8, 2, 0, 0, 2)):
            head = b"IHDR" + struct.pack(">II5B", 5, 6, *fields)
            data = png(5, 6)[:12] + head + struct.pack(">I", zlib.crc32(head))
            assert "values that no PNG file has" in refused(data)

    def test_a_png_that_begins_with_another_chunk(self):
        data = png(5, 6)
        assert "image header" in refused(data[:12] + b"IDAT" + data[16:])

    def test_a_jpeg_without_its_size(self):
        assert "its size" in refused(b"\xff\xd8\xff\xd9")
        assert "its size" in refused(b"\xff\xd8" + jpeg_segment(0xDA, b"\0" * 6))

    def test_a_jpeg_whose_segments_do_not_add_up(self):
        assert "impossible length" in refused(b"\xff\xd8\xff\xe0\0\1")
        assert "marker" in refused(b"\xff\xd8" + jpeg_segment(0xE0, b"abc") + b"abc")
        whole = jpeg(5, 6)
        assert "frame header" in refused(whole.replace(b"\xff\xc0\0\x11", b"\xff\xc0\0\x12"))

    def test_webp_frames_that_are_none(self):
        assert "key frame" in refused(lossy_webp(5, 6).replace(b"\x9d\x01\x2a", b"\x9d\x01\x2b"))
        assert "signature" in refused(lossless_webp(5, 6).replace(b"\x2f", b"\x2e"))
        assert "frame" in refused(webp(5, 6).replace(b"VP8X", b"ICCP"))


@settings(max_examples=400)
@given(
    st.sampled_from(
        [
            png(300, 200),
            jpeg(300, 200),
            gif(300, 200),
            webp(9, 9),
            lossy_webp(9, 9),
            lossless_webp(9, 9),
        ]
    ),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=5),
    st.floats(0, 1),
)
def test_mutated_files_open_or_are_refused_in_one_sentence(whole, changes, kept):
    data = bytearray(whole)
    for share, what in changes:
        at = int(share * len(data))
        data[at : at + len(what)] = what
    _check(bytes(data[: max(1, int(kept * len(data)) + 1)]))


@settings(max_examples=300)
@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP", b""]),
    st.binary(max_size=80),
)
@example(b"\xff\xd8\xff", b"\xff" * 70)
def test_any_bytes_behind_a_signature(signature, rest):
    _check(signature + rest)


def _check(data):
    refusal = found = None
    try:
        found = open_image(data, name="a.png")
    except InvalidRequest as error:
        refusal = str(error)
    if found is None:
        assert refusal.startswith("a.png ")
        assert refusal.endswith(".")
        assert "\n" not in refusal
    else:
        assert 0 < found.width * found.height <= MAX_PIXELS
