"""Limits on the number of JSON values in a body.

Parsing and validating a body are single calls that hold the GIL, in whatever thread they run: neither
the event loop nor another stream proceeds meanwhile. Their time depends on the number of values much
more than on the number of bytes: 4 MB of text take some milliseconds, 4 MB of `[],[],…` a second.
Counting costs 1 ms per megabyte, and it is done for large bodies only.
"""

import re
from typing import Any

from app.server.wire.errors import ApiError, bad_request

UNCOUNTED_BYTES = 64 * 1024
"""Smaller bodies are not counted: they cannot hold enough values."""
MAX_CONTAINERS = 10_000
"""Objects and arrays: 4,096 messages with a content part each have 8,194."""
MAX_STRINGS = 64 * 1024
"""Texts and names of members: 4,096 messages with a content part each have 28,672."""
MAX_VALUES = 512 * 1024
"""Items of arrays and members of objects: token ids of a batch of prompts."""

# The possessive quantifiers keep the time linear in the length of the text.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def check_json_size(text: bytes, *, param: str | None = None) -> None:
    """Refuse JSON of too many values; text in strings does not count.

    Args:
        text: the JSON.
        param: the field that holds it; None for the body.

    Raises:
        ApiError: 400.
    """
    if len(text) <= UNCOUNTED_BYTES:
        return
    # At least one for each string, at most two; escaped quotes do not count.
    quotes = text.count(b'"') - text.count(b'\\"')
    if quotes > 2 * MAX_STRINGS:
        raise _too_many("texts and names", MAX_STRINGS, param)
    # Upper limits, as if no string held brackets and commas.
    if (
        quotes <= MAX_STRINGS
        and _containers(text) <= MAX_CONTAINERS
        and _values(text) <= MAX_VALUES
    ):
        return
    outside, strings = _STRING.subn(b"", text)
    if strings > MAX_STRINGS:
        raise _too_many("texts and names", MAX_STRINGS, param)
    if _containers(outside) > MAX_CONTAINERS:
        raise _too_many("objects and arrays", MAX_CONTAINERS, param)
    if _values(outside) > MAX_VALUES:
        raise _too_many("values", MAX_VALUES, param)


def _containers(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _values(text: bytes) -> int:
    return text.count(b",")


def _too_many(what: str, limit: int, param: str | None) -> ApiError:
    return bad_request(
        f"{f'`{param}`' if param else 'The body'} has more than {limit:,} {what}.",
        param=param,
        code="too_many_values",
    )


def json_depth(value: Any) -> int:
    """How deep a parsed JSON value is nested; 0 for a text or a number. Without recursion."""
    depth, level = 0, [value]
    while level:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        depth += any(isinstance(one, dict | list) for one in level)
        level = inner
    return depth
