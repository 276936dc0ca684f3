"""What a safetensors file holds: names, shapes and types from its header, never its weights.

The header is a little-endian u64 length and that many bytes of JSON. The Rust reader checks byte
ranges before it maps them; this one answers questions about a model before it is loaded.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import orjson

from engine.errors import ModelError

_MAX_HEADER_BYTES = 100 << 20
_BYTES_PER_ELEMENT = {"F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor: its shape, slowest dimension first, and element type."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def read_header(path: Path) -> dict[str, TensorEntry]:
    """The tensors of one file, by name.

    Raises:
        ModelError: the file is missing, damaged or has an element type that is not supported.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
                raise ModelError(f"{path} is not a safetensors file, or is cut short.")
            header = orjson.loads(file.read(length))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{path} has a damaged safetensors header.") from error
    if not isinstance(header, dict):
        raise ModelError(f"{path} has a damaged safetensors header.")
    return {
        name: _entry(name, value, data_bytes=size - 8 - length, path=path)
        for name, value in header.items()
        if name != "__metadata__"
    }


def _entry(name: str, value: object, *, data_bytes: int, path: Path) -> TensorEntry:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(end)]}:
            if dtype not in _BYTES_PER_ELEMENT:
                raise ModelError(
                    f"{path}: {name} has element type {dtype}, which is not supported "
                    f"(known: {', '.join(_BYTES_PER_ELEMENT)})."
                )
            if all(type(extent) is int and 0 <= extent < 1 << 40 for extent in shape):
                entry = TensorEntry(tuple(shape), dtype)
                if (
                    0 <= start <= end <= data_bytes
                    and end - start == entry.elements * _BYTES_PER_ELEMENT[dtype]
                ):
                    return entry
    raise ModelError(f"{path}: the header's entry for {name[:80]} is damaged.")
