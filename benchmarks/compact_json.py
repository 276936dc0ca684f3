"""JSON text in which a record is one line, so that results stay readable and a diff of two is short."""

import json
from collections.abc import Iterable, Iterator, Mapping

WIDTH = 160


def compact_json(value: object, indent: int = 0, name: str | None = None) -> str:
    """The value as JSON text, without a newline at its end.

    An object or array that fits on a line of `WIDTH` is one line. A longer object has a line for each
    member, and a longer array as many members on a line as fit.

    Args:
        value: what `json.dumps` accepts.
        indent: columns before the text.
        name: the member's name in the object around it.
    """
    start = " " * indent + ("" if name is None else f"{_dumps(name)}: ")
    line = start + _dumps(value)
    if len(line) < WIDTH or not isinstance(value, (Mapping, list, tuple)):
        return line
    if isinstance(value, Mapping):
        members = ",\n".join(compact_json(one, indent + 1, str(key)) for key, one in value.items())
        return f"{start}{{\n{members}\n{' ' * indent}}}"
    members = ",\n".join(_filled([compact_json(one, indent + 1) for one in value], indent + 1))
    return f"{start}[\n{members}\n{' ' * indent}]"


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _filled(members: Iterable[str], indent: int) -> Iterator[str]:
    """The members of an array, those of one line joined into lines of at most `WIDTH`."""
    line = ""
    for member in members:
        joined = f"{line}, {member.strip()}" if line else member
        if line and (len(joined) >= WIDTH or "\n" in joined):
            yield line
            joined = member
        line = joined
    if line:
        yield line
