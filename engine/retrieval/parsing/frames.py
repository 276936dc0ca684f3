"""Frames on the pipes between a parser process and its owner: a length of 4 bytes, then so many bytes."""

import struct
from typing import BinaryIO

_LENGTH = struct.Struct("<I")


def frame(*parts: bytes) -> bytes:
    """The frames of several parts, one after another."""
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame, or None at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    body = stream.read(length)
    return body if len(body) == length else None


def frame_length(header: bytes) -> int:
    """The length that a frame's first four bytes name."""
    return int(_LENGTH.unpack(header)[0])


HEADER_BYTES = _LENGTH.size
