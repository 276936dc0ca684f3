"""JSON form of the values that cross `EngineClient`: frozen dataclasses, enums, tuples and numpy arrays.

A value is decoded by its declared type, which the Protocol's annotations give, so a new field or method needs
no code here. A dataclass that may be a subclass of the declared one carries its name under `@`.
"""

import base64
import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from engine.text.control_tokens import ControlTokens

_CLASS = "@"


class CodecError(ValueError):
    """A value does not have its declared type; the message says where."""


def encode(value: object) -> Any:
    """The JSON form of a value."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": data}
    if isinstance(value, np.generic):
        return encode(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {_CLASS: type(value).__name__, **fields}
    if isinstance(value, ControlTokens):
        return dict(value.spellings)
    if isinstance(value, Mapping):
        return {str(key): encode(one) for key, one in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Sequence | frozenset | set):
        return [encode(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def decode(data: Any, kind: Any, where: str = "value") -> Any:
    """The value of a JSON form.

    Args:
        data: parsed JSON, untrusted.
        kind: the declared type.
        where: the place named in errors.

    Raises:
        CodecError: the data is not of that type.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return data
    if origin in (typing.Union, types.UnionType):
        return _decode_union(data, args, where)
    if origin is typing.Annotated:
        return decode(data, args[0], where)
    if origin is typing.Literal:
        if data in args:
            return data
        raise CodecError(f"{where}: {data!r:.60} is not one of {args}")
    if origin is np.ndarray or kind is np.ndarray:
        return _decode_array(data, where)
    if origin in (tuple, list, frozenset, set) or (
        isinstance(origin, type) and issubclass(origin, Sequence)
    ):
        return _decode_items(data, origin, args, where)
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(data, dict):
            raise _wrong(data, "an object", where)
        return {
            decode_key(key, args[0]): decode(one, args[1], f"{where}.{key}")
            for key, one in data.items()
        }
    if kind is ControlTokens:
        return ControlTokens(decode(data, dict[str, int], where))
    if isinstance(kind, type):
        return _decode_plain(data, kind, where)
    raise CodecError(f"{where}: cannot decode the type {kind!r:.80}")


def decode_key(key: str, kind: Any) -> Any:
    """A key of an object: numbers are written as text."""
    return int(key) if kind is int else key


def _decode_union(data: Any, kinds: Sequence[Any], where: str) -> Any:
    if data is None and type(None) in kinds:
        return None
    others = [one for one in kinds if one is not type(None)]
    for one in others[:-1]:
        try:
            return decode(data, one, where)
        except CodecError:
            continue
    return decode(data, others[-1], where)


def _decode_items(data: Any, origin: Any, args: Sequence[Any], where: str) -> Any:
    if not isinstance(data, list):
        raise _wrong(data, "a list", where)
    if origin is tuple and args and args[-1] is not Ellipsis:
        if len(data) != len(args):
            raise CodecError(f"{where}: {len(data)} items instead of {len(args)}")
        return tuple(
            decode(one, kind, f"{where}[{i}]")
            for i, (one, kind) in enumerate(zip(data, args, strict=True))
        )
    kind = args[0] if args else Any
    items = [decode(one, kind, f"{where}[{i}]") for i, one in enumerate(data)]
    return items if origin is list else frozenset(items) if origin is frozenset else tuple(items)


def _decode_array(data: Any, where: str) -> np.ndarray[Any, Any]:
    try:
        raw = base64.b64decode(data["data"], validate=True)
        kind = np.dtype(data["dtype"])
        if kind.hasobject:
            raise ValueError("objects")
        return np.frombuffer(raw, kind).reshape(data["shape"]).copy()
    except (TypeError, KeyError, ValueError, OverflowError, MemoryError) as error:
        raise CodecError(f"{where}: not an array") from error


def _decode_plain(data: Any, kind: type, where: str) -> Any:
    if issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise CodecError(f"{where}: {data!r:.60} is no {kind.__name__}") from error
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(data, kind, where)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _decode_named_tuple(data, kind, where)
    if kind is float:
        if isinstance(data, str) and data in ("nan", "inf", "-inf"):
            return float(data)
        if isinstance(data, int | float) and not isinstance(data, bool):
            return float(data)
    elif kind is int:
        if isinstance(data, int) and not isinstance(data, bool):
            return data
    elif kind is bytes:
        try:
            return base64.b64decode(data, validate=True)
        except (TypeError, ValueError) as error:
            raise _wrong(data, "bytes", where) from error
    elif kind is type(None):
        if data is None:
            return None
    elif isinstance(data, kind):
        return data
    raise _wrong(data, f"a value of type {kind.__name__}", where)


def _decode_named_tuple(data: Any, kind: Any, where: str) -> Any:
    names, hints = kind._fields, _hints(kind)
    if not isinstance(data, list) or len(data) != len(names):
        raise _wrong(data, f"a {kind.__name__}", where)
    return kind(
        *(
            decode(one, hints[name], f"{where}.{name}")
            for one, name in zip(data, names, strict=True)
        )
    )


def _decode_dataclass(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(data, f"a {kind.__name__}", where)
    found = _subclasses(kind).get(data.get(_CLASS, kind.__name__))
    if found is None:
        raise CodecError(f"{where}: {data.get(_CLASS)!r:.60} is no {kind.__name__}")
    hints = _hints(found)
    known = {f.name for f in dataclasses.fields(found) if f.init}
    values = {
        name: decode(one, hints[name], f"{where}.{name}")
        for name, one in data.items()
        if name in known
    }
    try:
        return found(**values)
    except (TypeError, ValueError) as error:
        raise CodecError(f"{where}: {error}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@functools.cache
def _subclasses(kind: Any) -> dict[str, type]:
    """The class and its subclasses by name."""
    found = {kind.__name__: kind}
    for child in kind.__subclasses__():
        found |= _subclasses(child)
    return found


def _wrong(data: Any, wanted: str, where: str) -> CodecError:
    return CodecError(f"{where}: {data!r:.60} is not {wanted}")
