"""`Value`: what is known about an expression: where its data comes from and what it was cleaned for."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from functools import cached_property

HOLE = "\0"
"""Stands in `Value.text` for a part that is not constant."""

_MAX_TEXT = 2_000
_MAX_ORIGINS = 6


class Trust(IntEnum):
    """Where data comes from, from harmless to hostile."""

    CONSTANT = 0
    OPAQUE = 1
    """Unknown: a global, or the result of a function that is not looked into."""
    PARAMETER = 2
    """A parameter of the function, whose caller is unknown."""
    LOCAL = 3
    """The person who starts the program: arguments, environment, standard input."""
    USER = 4
    """A remote client: requests, sockets, messages."""


class SinkKind(StrEnum):
    """A way in which data becomes dangerous, by the id of its rule; sanitizers remove some of them."""

    SQL = "sql-injection"
    COMMAND = "command-injection"
    CODE = "code-injection"
    DESERIALIZE = "unsafe-deserialization"
    TEMPLATE = "template-injection"
    HTML = "cross-site-scripting"
    XML = "xxe"
    PATH = "path-traversal"
    URL = "ssrf"
    REDIRECT = "open-redirect"
    LDAP = "ldap-injection"
    XPATH = "xpath-injection"
    LOG = "log-injection"
    REGEX = "regex-injection"
    NOSQL = "nosql-injection"
    REFLECTION = "unsafe-reflection"


EVERY_SINK = frozenset(SinkKind)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a part of a value comes from.

    Attributes:
        trust: how far it can be trusted.
        text: the source expression, or the parameter's name.
        line: its line, from 1.
        column: its column, from 0.
    """

    trust: Trust
    text: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Value:
    """An abstract value; a constant has no origins.

    Attributes:
        origins: where its parts come from.
        clean: the kinds of sinks that it is harmless for.
        built: whether it is a string put together from parts that are not all constant.
        text: its constant text with `HOLE` for other parts, or None if it is no known string.
        elements: the elements of a list or tuple display, or None.
        type: dotted name of its class where it is known, or empty.
    """

    origins: frozenset[Origin] = frozenset()
    clean: frozenset[SinkKind] = frozenset()
    built: bool = False
    text: str | None = None
    elements: "tuple[Value, ...] | None" = None
    type: str = ""

    @cached_property
    def trust(self) -> Trust:
        """The least trustworthy origin's."""
        return max((origin.trust for origin in self.origins), default=Trust.CONSTANT)

    @property
    def is_constant(self) -> bool:
        """Whether no part of it varies."""
        return not self.origins

    def cleaned(self, kinds: Iterable[SinkKind] = EVERY_SINK) -> "Value":
        """The same value, harmless for these kinds of sinks."""
        return replace(self, clean=self.clean | frozenset(kinds))

    def part(self, key: str = "") -> "Value":
        """An attribute or element of it; `key` tells parts of one source apart, where it is known."""
        origins = self.origins
        if key:
            origins = frozenset(
                replace(origin, text=f"{origin.text}{key}"[:80])
                if origin.trust >= Trust.LOCAL and len(origin.text) < 80
                else origin
                for origin in origins
            )
        return Value(origins, self.clean)

    @property
    def element(self) -> "Value":
        """What iterating over it yields."""
        return join(self.elements) if self.elements else self.part()

    def worst_origin(self) -> Origin | None:
        """The least trustworthy origin; None for a constant."""
        if not self.origins:
            return None
        return max(self.origins, key=lambda origin: (origin.trust, -origin.line, origin.text))


CONSTANT = Value()


def opaque(text: str, line: int = 0) -> Value:
    """An unknown value."""
    return Value(frozenset([Origin(Trust.OPAQUE, text, line)]))


def join(values: Iterable[Value]) -> Value:
    """A value that is one of several."""
    several = list(values)
    if not several:
        return CONSTANT
    if len(several) == 1 or all(one == several[0] for one in several):
        return several[0]
    varying = [one for one in several if one.origins]
    texts = [one.text for one in several if one.text is not None]
    types = {one.type for one in several}
    return Value(
        origins=_origins(varying),
        clean=_clean(varying),
        built=any(one.built for one in several),
        text=max(texts, key=len) if texts else None,
        elements=_elements(several),
        type=types.pop() if len(types) == 1 else "",
    )


def _elements(values: list[Value]) -> tuple[Value, ...] | None:
    """Tuples of one length joined element by element; None for anything else."""
    lengths = {None if one.elements is None else len(one.elements) for one in values}
    if len(lengths) != 1 or None in lengths:
        return None
    columns = zip(*(one.elements or () for one in values), strict=True)
    return tuple(join(column) for column in columns)


def concat(parts: Iterable[Value], *, text: str | None = None) -> Value:
    """A string that holds all parts, one after another."""
    several = list(parts)
    varying = [one for one in several if one.origins]
    if text is None:
        text = "".join(HOLE if one.text is None else one.text for one in several)
    return Value(
        origins=_origins(varying), clean=_clean(varying), built=bool(varying), text=text[:_MAX_TEXT]
    )


def _origins(values: list[Value]) -> frozenset[Origin]:
    found = frozenset(origin for value in values for origin in value.origins)
    if len(found) <= _MAX_ORIGINS:
        return found
    worst = sorted(found, key=lambda one: (-one.trust, one.line, one.column, one.text))
    return frozenset(worst[:_MAX_ORIGINS])


def _clean(values: list[Value]) -> frozenset[SinkKind]:
    """Cleaned only for what every varying part was cleaned for."""
    if not values:
        return frozenset()
    return frozenset.intersection(*(value.clean for value in values))
