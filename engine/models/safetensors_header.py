"""Names, shapes and element types of the tensors in a safetensors file, read from its header.

The header is a little-endian u64 length followed by that many bytes of JSON. It is read to inspect a
model before loading; the Rust reader validates byte ranges again before it maps them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from engine.api.errors import ModelError, UnsupportedByNativeError

_MAX_HEADER_BYTES = 100 << 20
NATIVE_DTYPES: Mapping[str, int] = {"F32": 4, "F16": 2, "BF16": 2}
"""Element types of the native executor, and their size in bytes."""

ALL_DTYPES: Mapping[str, int] = {
    **NATIVE_DTYPES,
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
    **dict.fromkeys(("U16", "I16"), 2),
    **dict.fromkeys(("U32", "I32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
"""Element types including those of quantised checkpoints, which torch reads."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor: its shape, slowest-varying dimension first, and element type."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def read_header(path: Path, *, known: Mapping[str, int] = NATIVE_DTYPES) -> dict[str, TensorEntry]:
    """The tensors of one file, by name.

    Args:
        path: the file.
        known: supported element types, and their size in bytes.

    Raises:
        UnsupportedByNativeError: a tensor has an element type that is not in `known`.
        ModelError: the file is missing or damaged.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
                raise ModelError(f"{path} is not a safetensors file, or is truncated.")
            header = orjson.loads(file.read(length))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{path} has a damaged safetensors header.") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path} has a damaged safetensors header.")
    return {
        name: _entry(name, value, data_bytes=size - 8 - length, path=path, known=known)
        for name, value in header.items()
        if name != "__metadata__"
    }


def _entry(
    name: str, value: object, *, data_bytes: int, path: Path, known: Mapping[str, int]
) -> TensorEntry:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(end)]}:
            if dtype not in known:
                raise UnsupportedByNativeError(
                    f"{path}: {name} has element type {dtype}, which is not supported "
                    f"(supported: {', '.join(known)})."
                )
            if all(type(extent) is int and 0 <= extent < 1 << 40 for extent in shape):
                entry = TensorEntry(tuple(shape), dtype)
                if 0 <= start <= end <= data_bytes and end - start == entry.elements * known[dtype]:
                    return entry
    raise ModelError(f"{path}: the header's entry for {name[:80]} is damaged.")
