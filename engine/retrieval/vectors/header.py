"""`Header`: the first bytes of a vector file.

Layout, little-endian, 64 bytes: magic (8), version (u32), dimensions (u32), type code (u32), CRC-32 of
the bytes before (u32), reserved (8), number of rows (u64), zeros. Rows follow.

The number of rows is the only field that changes. It is at a multiple of 8, so that a reader in
another process never sees half of a new number.
"""

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from engine.retrieval.vectors.errors import DamagedVectors

VectorType = Literal["f32", "f16", "int8"]

HEADER_BYTES = 64
"""Offset of the first row."""

ROWS_OFFSET = 32
"""Offset of the number of rows."""

_MAGIC = b"PRAVAVEC"
_VERSION = 1
_TYPES: tuple[VectorType, ...] = ("f32", "f16", "int8")
_FIXED = struct.Struct("<8sIII")
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Header:
    """What never changes in a file.

    Attributes:
        dimensions: length of a vector.
        dtype: element type of the stored vectors.
    """

    dimensions: int
    dtype: VectorType

    def pack(self) -> bytes:
        """The header of a file without rows."""
        fixed = _FIXED.pack(_MAGIC, _VERSION, self.dimensions, _TYPES.index(self.dtype))
        return (fixed + _CHECKSUM.pack(zlib.crc32(fixed))).ljust(HEADER_BYTES, b"\0")

    @classmethod
    def unpack(cls, data: bytes, path: Path) -> "Header":
        """Read a header.

        Args:
            data: the first `HEADER_BYTES` bytes of the file.
            path: the file, for messages.

        Raises:
            DamagedVectors: the bytes are no header.
        """
        if len(data) < HEADER_BYTES or not data.startswith(_MAGIC):
            raise DamagedVectors(f"{path} is not a vector file.")
        _, version, dimensions, code = cast(tuple[bytes, int, int, int], _FIXED.unpack_from(data))
        if version != _VERSION:
            raise DamagedVectors(
                f"{path} has version {version} of the vector file format; this program reads "
                f"version {_VERSION}."
            )
        checksum = zlib.crc32(data[: _FIXED.size])
        if _CHECKSUM.unpack_from(data, _FIXED.size) != (checksum,) or code >= len(_TYPES):
            raise DamagedVectors(f"The header of the vector file {path} is damaged.")
        return cls(dimensions, _TYPES[code])
