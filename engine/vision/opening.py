"""`open_image`: the type and size of an image, from the header of its file; nothing is decoded.

The bytes are untrusted. Only the first fields of the file are read, every one within the bytes that there
are, in time that does not grow with the file. A header can lie about what follows it: whatever decodes the
image has its own limits.
"""

import re
import struct
import zlib
from collections.abc import Callable

from engine.api.errors import InvalidRequest
from engine.api.image import MAX_PIXELS, Image, MediaType

MAX_BYTES = 20 * 1024 * 1024
"""Largest file of an image, which is also OpenAI's limit."""
MAX_IMAGES = 16
"""Most images of a message or a request."""

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_PNG_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
"""Bits of a sample by type of colour."""
_MAX_JPEG_SEGMENTS = 1_000
"""Segments before the one with the size. A colour profile is spread over at most 255."""
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of frame headers; the three others are tables and an extension."""
_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))
"""Markers without a length."""
_NOT_FILL = re.compile(rb"[^\xff]")


class _Damaged(Exception):
    """The header is not valid; the message completes "…, which is damaged: "."""


def open_image(data: bytes, *, name: str = "") -> Image:
    """The image in a file.

    Args:
        data: the file.
        name: what messages call it; empty for "the image".

    Raises:
        InvalidRequest: it is no PNG, JPEG, GIF or WebP, its header is damaged, or it is too large.
    """
    called = name or "The image"
    if not data:
        raise InvalidRequest(f"{called} is empty.")
    if len(data) > MAX_BYTES:
        raise InvalidRequest(f"{called} is larger than {MAX_BYTES // 1024**2} MiB.")
    media_type = image_type(data)
    if media_type is None:
        raise InvalidRequest(f"{called} is no PNG, JPEG, GIF or WebP image.")
    try:
        width, height = _SIZES[media_type](data)
        if not width or not height:
            raise _Damaged("it has no pixels")
    except _Damaged as error:
        raise InvalidRequest(f"{called} is damaged: {error}.") from error
    except struct.error as error:
        raise InvalidRequest(f"{called} is damaged: it ends within its header.") from error
    if width * height > MAX_PIXELS:
        raise InvalidRequest(
            f"{called} has {width} × {height} pixels; at most {MAX_PIXELS // 1_000_000} million are "
            "accepted: make it smaller."
        )
    return Image(data, media_type, width, height)


def image_type(data: bytes) -> MediaType | None:
    """The type of an image by its first 12 bytes; None if it is none that is accepted."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(_JPEG):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _png_size(data: bytes) -> tuple[int, int]:
    length, kind = struct.unpack_from(">I4s", data, 8)
    if (length, kind) != (13, b"IHDR"):
        raise _Damaged("it does not begin with an image header")
    width, height, depth, colour, compression, filtering, interlace = struct.unpack_from(
        ">IIBBBBB", data, 16
    )
    (checksum,) = struct.unpack_from(">I", data, 29)
    if zlib.crc32(data[12:29]) != checksum:
        raise _Damaged("the checksum of its header is wrong")
    if depth not in _PNG_DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise _Damaged("its header has values that no PNG file has")
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    for _ in range(_MAX_JPEG_SEGMENTS):
        marker, at = _jpeg_marker(data, at)
        if marker in _JPEG_ALONE:
            continue
        if marker in (0xD9, 0xDA):  # the end, or compressed data
            raise _Damaged("it does not say its size")
        (length,) = struct.unpack_from(">H", data, at)
        if marker in _JPEG_SIZES:
            _, _, height, width, components = struct.unpack_from(">HBHHB", data, at)
            if length != 8 + 3 * components:
                raise _Damaged("the length of its frame header is wrong")
            return width, height
        if length < 2:
            raise _Damaged("a segment has an impossible length")
        at += length
    raise _Damaged("its header has too many segments")


def _jpeg_marker(data: bytes, at: int) -> tuple[int, int]:
    """The marker at an offset, and the offset behind it. Any number of fill bytes may stand before it."""
    if data[at : at + 1] != b"\xff":
        raise _Damaged("a segment does not begin with a marker" if at < len(data) else _CUT)
    found = _NOT_FILL.search(data, at)
    if found is None:
        raise _Damaged(_CUT)
    if found[0] == b"\0":
        raise _Damaged("a segment does not begin with a marker")
    return found[0][0], found.end()


_CUT = "it ends within its header"


def _gif_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp_size(data: bytes) -> tuple[int, int]:
    (kind,) = struct.unpack_from("4s", data, 12)
    match kind:
        case b"VP8 ":
            return _lossy_webp_size(data)
        case b"VP8L":
            signature, bits = struct.unpack_from("<BI", data, 20)
            if signature != 0x2F:
                raise _Damaged("its frame does not begin with a signature")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
            return (high_width << 16 | low_width) + 1, (high_height << 16 | low_height) + 1
    raise _Damaged("it does not begin with a frame")


def _lossy_webp_size(data: bytes) -> tuple[int, int]:
    tag, start, width, height = struct.unpack_from("<B2x3sHH", data, 20)
    if tag & 1 or start != b"\x9d\x01\x2a":
        raise _Damaged("it does not begin with a key frame")
    return width & 0x3FFF, height & 0x3FFF  # the upper two bits are a scale for display


_SIZES: dict[MediaType, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
