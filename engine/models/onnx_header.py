"""What an ONNX file says of itself: inputs, outputs, weights and operators, without its weights.

A file is a protobuf message (`ModelProto` of onnx.proto). It is read field by field, lengths first, so that
weights in the file are skipped and the size of a model costs nothing; the time grows with the number of its
nodes, some microseconds each. Everything is untrusted: a length beyond its message, a nesting beyond
`_MAX_DEPTH` and a wrong wire type make the file damaged. Nothing is allocated by a number that the file
states.
"""

import math
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.api.errors import ModelError

_MAX_DEPTH = 16
"""Nesting of graphs in attributes of nodes; those of real models are two deep."""

ELEMENT_BITS: Mapping[int, int] = {
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((7, 11, 13, 14), 64),
    15: 128,
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((25, 26), 2),
}
"""Bits of an element by `TensorProto.DataType`; strings have none."""

ELEMENT_NAMES: Mapping[int, str] = {
    1: "F32", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 8: "STRING",
    9: "BOOL", 10: "F16", 11: "F64", 12: "UINT32", 13: "UINT64", 16: "BF16", 17: "F8_E4M3",
    18: "F8_E4M3", 19: "F8_E5M2", 20: "F8_E5M2", 21: "UINT4", 22: "INT4", 23: "F4_E2M1",
}  # fmt: skip
"""Names of the element types, as `models show` prints them."""


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """An input or output of the graph.

    Attributes:
        name: its name.
        dtype: `TensorProto.DataType`; 0 if it is no tensor.
        dims: its shape: a number where it is fixed, else the name of the dimension, which may be empty.
    """

    name: str
    dtype: int
    dims: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class ExternalData:
    """Where the bytes of a weight are: a file beside the model's, an offset, and a length if it is stated."""

    location: str
    offset: int
    length: int | None


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A weight or constant.

    Attributes:
        name: its name; empty for one in an attribute.
        dtype: `TensorProto.DataType`.
        dims: its shape.
        external: where its bytes are; None if they are in the file itself.
    """

    name: str
    dtype: int
    dims: tuple[int, ...]
    external: ExternalData | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return (self.elements * ELEMENT_BITS.get(self.dtype, 0) + 7) // 8


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """The weights of a `MatMulNBits`: the tensors that it is made of, its elements and the bits of each."""

    tensors: tuple[str, ...]
    elements: int
    bits: int


@dataclass(frozen=True, slots=True)
class OnnxHeader:
    """The parts of a model that decide whether and how it is run.

    Attributes:
        inputs: inputs without a stored value, in order.
        outputs: outputs, in order.
        tensors: all weights and constants, also of graphs and functions inside.
        packed: matrices whose elements have fewer bits than their tensors.
        operators: domain and name of each operator; the domain of ONNX's own is empty.
        own_domains: domains of functions that the model defines itself.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    tensors: tuple[StoredTensor, ...]
    packed: tuple[PackedMatrix, ...]
    operators: frozenset[tuple[str, str]]
    own_domains: frozenset[str]


class _Damaged(ValueError):
    """The bytes are no such message."""


_Value = int | memoryview


def read_onnx_header(path: Path) -> OnnxHeader:
    """The header of an ONNX file.

    Raises:
        ModelError: the file cannot be read, or is no ONNX model.
    """
    try:
        with path.open("rb") as file:
            # Closed when its last slice is gone: an error's traceback may still hold some.
            return parse_onnx_header(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except _Damaged as error:
        raise ModelError(f"{path} is not an ONNX model, or is damaged: {error}.") from error
    except ValueError as error:  # an empty file cannot be mapped
        raise ModelError(f"{path} is empty.") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error


def parse_onnx_header(data: "bytes | mmap.mmap") -> OnnxHeader:
    """The header of a model in memory.

    Raises:
        ValueError: it is no ONNX model; the message says why.
    """
    found = _Found()
    graph: memoryview | None = None
    for number, value in _fields(memoryview(data)):
        if number == 7:
            graph = _message(value)
        elif number == 25:
            found.read_function(_message(value))
    if graph is None:
        raise _Damaged("it has no graph")
    found.read_graph(graph, depth=0)
    stored = {tensor.name for tensor in found.tensors}
    return OnnxHeader(
        inputs=tuple(one for one in found.inputs if one.name not in stored),
        outputs=tuple(found.outputs),
        tensors=tuple(found.tensors),
        packed=tuple(found.packed),
        operators=frozenset(found.operators),
        own_domains=frozenset(found.own_domains),
    )


@dataclass(slots=True)
class _Found:
    """What has been read so far."""

    inputs: list[ValueInfo] = field(default_factory=list)
    outputs: list[ValueInfo] = field(default_factory=list)
    tensors: list[StoredTensor] = field(default_factory=list)
    packed: list[PackedMatrix] = field(default_factory=list)
    operators: set[tuple[str, str]] = field(default_factory=set)
    own_domains: set[str] = field(default_factory=set)

    def read_graph(self, data: memoryview, *, depth: int) -> None:
        """A `GraphProto`; only the inputs and outputs of the outermost count."""
        if depth > _MAX_DEPTH:
            raise _Damaged("its graphs are nested too deep")
        for number, value in _fields(data):
            if number == 1:
                self._read_node(_message(value), depth)
            elif number == 5:
                self.tensors.append(_tensor(_message(value)))
            elif number == 15:
                self._read_sparse(_message(value))
            elif number == 11 and depth == 0:
                self.inputs.append(_value_info(_message(value)))
            elif number == 12 and depth == 0:
                self.outputs.append(_value_info(_message(value)))

    def read_function(self, data: memoryview) -> None:
        """A `FunctionProto`."""
        for number, value in _fields(data):
            if number == 7:
                self._read_node(_message(value), 1)
            elif number == 10:
                self.own_domains.add(_text(value))

    def _read_node(self, data: memoryview, depth: int) -> None:
        operator, domain = "", ""
        inputs: list[str] = []
        numbers: dict[str, int] = {}
        for number, value in _fields(data):
            if number == 1:
                inputs.append(_text(value))
            elif number == 4:
                operator = _text(value)
            elif number == 7:
                domain = _text(value)
            elif number == 5:
                self._read_attribute(_message(value), numbers, depth)
        domain = "" if domain == "ai.onnx" else domain
        self.operators.add((domain, operator))
        if operator == "MatMulNBits":
            elements = max(numbers.get("K", 0), 0) * max(numbers.get("N", 0), 0)
            bits = numbers.get("bits", 4)
            self.packed.append(PackedMatrix(tuple(inputs[1:]), elements, bits))

    def _read_attribute(self, data: memoryview, numbers: dict[str, int], depth: int) -> None:
        name = ""
        integer: int | None = None
        for number, value in _fields(data):
            if number == 1:
                name = _text(value)
            elif number == 3:
                integer = _signed(value)
            elif number in (5, 10):
                self.tensors.append(_tensor(_message(value)))
            elif number in (6, 11):
                self.read_graph(_message(value), depth=depth + 1)
            elif number in (22, 23):
                self._read_sparse(_message(value))
        if integer is not None:
            numbers[name] = integer

    def _read_sparse(self, data: memoryview) -> None:
        """A `SparseTensorProto`: values and indices."""
        for number, value in _fields(data):
            if number in (1, 2):
                self.tensors.append(_tensor(_message(value)))


def _tensor(data: memoryview) -> StoredTensor:
    name, dtype, is_external = "", 0, False
    dims: list[int] = []
    entries: dict[str, str] = {}
    for number, value in _fields(data):
        if number == 1:
            dims += [_signed(value)] if isinstance(value, int) else _packed_integers(value)
        elif number == 2:
            dtype = _signed(value)
        elif number == 8:
            name = _text(value)
        elif number == 13:
            pair = dict(_fields(_message(value)))
            entries[_text(pair.get(1, memoryview(b"")))] = _text(pair.get(2, memoryview(b"")))
        elif number == 14:
            is_external = _signed(value) == 1
    if any(size < 0 for size in dims):
        raise _Damaged(f"the shape of {name[:80]!r} has a negative number")
    external = _external(name, entries) if is_external else None
    return StoredTensor(name, dtype, tuple(dims), external)


def _external(name: str, entries: Mapping[str, str]) -> ExternalData:
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else None
    except ValueError as error:
        raise _Damaged(f"the place of {name[:80]!r} is no number") from error
    if offset < 0 or (length is not None and length < 0):
        raise _Damaged(f"the place of {name[:80]!r} is a negative number")
    return ExternalData(entries.get("location", ""), offset, length)


def _value_info(data: memoryview) -> ValueInfo:
    name, dtype = "", 0
    dims: list[int | str] = []
    for number, value in _fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            dtype, dims = _tensor_type(_message(value))
    return ValueInfo(name, dtype, tuple(dims))


def _tensor_type(data: memoryview) -> tuple[int, list[int | str]]:
    """Element type and shape of a `TypeProto`."""
    dtype, dims = 0, []
    for number, value in _fields(data):
        if number != 1:  # a sequence, a map or a sparse tensor
            continue
        for inner, part in _fields(_message(value)):
            if inner == 1:
                dtype = _signed(part)
            elif inner == 2:
                dims = [_dim(_message(one)) for at, one in _fields(_message(part)) if at == 1]
    return dtype, dims


def _dim(data: memoryview) -> int | str:
    for number, value in _fields(data):
        if number == 1:
            return _signed(value)
        if number == 2:
            return _text(value)
    return ""


def _fields(data: memoryview) -> Iterator[tuple[int, _Value]]:
    """The fields of a message: number, and the integer or the bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise _Damaged(f"a field has wire type {wire}")
        if number == 0 or size > end - at:
            raise _Damaged("a field is longer than its message")
        if wire == 2:
            yield number, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """An integer of at most 64 bits, and where the next field begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise _Damaged("a number is cut off or too long")


def _packed_integers(data: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(_signed(value))
    return values


def _signed(value: _Value) -> int:
    if not isinstance(value, int):
        raise _Damaged("a field that is a number has bytes")
    return value - (1 << 64) if value >> 63 else value


def _message(value: _Value) -> memoryview:
    if isinstance(value, int):
        raise _Damaged("a field that is a message has a number")
    return value


def _text(value: _Value) -> str:
    try:
        return bytes(_message(value)).decode()
    except UnicodeDecodeError as error:
        raise _Damaged("a name is not UTF-8") from error
