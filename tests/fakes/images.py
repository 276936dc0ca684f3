"""Headers of images of every type, and whole PNG files, without an imaging library."""

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """The header of a PNG file with pixels of 24 bits; its data is empty."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IEND", b"")


def whole_png(width: int, height: int, colour: tuple[int, int, int] = (255, 255, 255)) -> bytes:
    """A PNG file of one colour that every decoder opens."""
    rows = (b"\0" + bytes(colour) * width) * height
    return png(width, height)[:33] + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def jpeg(width: int, height: int, *, before: bytes = b"", frame: int = 0xC0) -> bytes:
    """The header of a JPEG file with three components.

    Args:
        width: in pixels.
        height: in pixels.
        before: what stands before the frame header.
        frame: its marker.
    """
    components = b"\1\x22\0\2\x11\1\3\x11\1"
    body = struct.pack(">BHHB", 8, height, width, 3) + components
    return b"\xff\xd8" + before + jpeg_segment(frame, body) + jpeg_segment(0xDA, bytes(10))


def jpeg_segment(marker: int, body: bytes) -> bytes:
    """A marker with its length."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def gif(width: int, height: int) -> bytes:
    """The header of a GIF file without a table of colours."""
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


def webp(width: int, height: int) -> bytes:
    """The header of an extended WebP file."""
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return _riff(b"VP8X", b"\0\0\0\0" + sides)


def lossy_webp(width: int, height: int) -> bytes:
    """The header of a lossy WebP file."""
    return _riff(b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height))


def lossless_webp(width: int, height: int) -> bytes:
    """The header of a lossless WebP file."""
    return _riff(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def _riff(kind: bytes, body: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
