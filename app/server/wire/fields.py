"""Rules for members of request bodies that no schema declares; none is dropped silently.

* *Without effect*: a known member that changes nothing on this engine. A response header lists it.
* *Unsupported*: a known member that is not implemented. A 400 names it, unless it carries the value that
  means "off" (many clients send defaults).
* *Unknown*: ignored, counted and listed in another response header; with `strict_fields` a 400. Inside an
  object that says how to answer, such as `response_format`, it is always a 400.

The class of a body, or of an object in one, is the table of its members (`Body`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args
from urllib.parse import quote

from pydantic import BaseModel

from app.server.wire.body import Body
from app.server.wire.errors import bad_request

IGNORED_HEADER = "x-pravaha-ignored-fields"
WITHOUT_EFFECT_HEADER = "x-pravaha-without-effect"
_LISTED_NAMES = 20
_LISTED_CHARS = 64


@dataclass(slots=True)
class Undeclared:
    """Paths of the undeclared members of a body.

    Attributes:
        unknown: those that are in no table.
        without_effect: those that are known to change nothing.
    """

    unknown: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)


def undeclared_fields(body: Body, *, strict: bool) -> Undeclared:
    """The undeclared members of a body, and of the objects in it.

    Raises:
        ApiError: 400 for an unsupported member, for an unknown one where none is ignored, or for any
            unknown one if `strict`.
    """
    found = Undeclared()
    for prefix, model in _models(body):
        for name, value in (model.model_extra or {}).items():
            if name in model.without_effect:
                if value is not None:
                    found.without_effect.append(prefix + name)
            elif _is_unknown(prefix, name, value, model):
                found.unknown.append(prefix + name)
    if found.unknown and strict:
        raise bad_request(
            f"No field is called {found.unknown[0]!r}; this server runs with --strict-fields.",
            param=found.unknown[0],
            code="unknown_parameter",
        )
    return found


def _is_unknown(prefix: str, name: str, value: Any, model: Body) -> bool:
    """Whether a member of a body (without a prefix), or of an object in one, is to be listed as unknown.

    Raises:
        ApiError: 400 for an unsupported member, or an unknown one where none is ignored.
    """
    path = prefix + name
    is_off = model.unsupported.get(name)
    if is_off is None:
        if not prefix or model.keeps_unknown:
            return True
        raise bad_request(f"There is no field `{path}`.", param=path, code="unknown_parameter")
    if not is_off(value):
        raise bad_request(
            f"This server does not support `{path}` yet.", param=path, code="unsupported_parameter"
        )
    return False


def discard_undeclared(body: Body) -> None:
    """Free the undeclared fields of a body, which it would hold until its answer is complete."""
    for _, model in _models(body):
        if model.model_extra:
            model.model_extra.clear()


def header_value(names: list[str]) -> str:
    """Field names, which a client chose, as one safe header value of bounded length."""
    listed = [quote(name[:_LISTED_CHARS], safe="[].:$") for name in names[:_LISTED_NAMES]]
    left_out = len(names) - len(listed)
    return ",".join(listed) + (f",+{left_out}" if left_out else "")


def _models(body: Body, prefix: str = "") -> Iterator[tuple[str, Body]]:
    """A model and the models inside it, each with the prefix of its fields' paths."""
    yield prefix, body
    for name in _nested_fields(type(body)):
        value = getattr(body, name)
        if isinstance(value, Body):
            yield from _models(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if not isinstance(item, Body):
                    break  # lists are homogeneous; token ids need no walk
                yield from _models(item, f"{prefix}{name}[{index}].")


@lru_cache
def _nested_fields(kind: type[BaseModel]) -> tuple[str, ...]:
    """Fields of a model that may hold models: a conversation can have thousands of parts without any."""
    return tuple(
        name for name, field in kind.model_fields.items() if _can_hold_model(field.annotation)
    )


def _can_hold_model(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_can_hold_model, get_args(annotation)))
