"""JSON and YAML values with the line of each member.

Nothing raises on hostile input: what cannot be read gives None, and values beyond `MAX_NODES` have no line.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_NODES = 20_000
MAX_CHARS = 1_000_000
_MAX_DEPTH = 60
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Located:
    """A value and its lines.

    Attributes:
        value: what was read.
        lines: from 1, by path of keys and indices; the root's path is `()`.
    """

    value: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """The line of a member, or of its nearest container that has one; 1 if none has."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


def read_located(text: str) -> Located | None:
    """The JSON or YAML value of a text, or None if it is neither. JSON is tried first."""
    if len(text) > MAX_CHARS:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError):
            return None
    # YAML allows no tab in indentation, JSON does; a tab in a string does not change its line.
    return Located(value, _lines(text.replace("\t", " ")))


def leaves(value: Any) -> Iterator[tuple[Path, Any]]:
    """Paths and values of all members that are no containers, at most `MAX_NODES`."""
    stack: list[tuple[Path, Any]] = [((), value)]
    for _ in range(MAX_NODES):
        if not stack:
            return
        path, one = stack.pop()
        if isinstance(one, dict) and len(path) < _MAX_DEPTH:
            stack.extend(((*path, str(key)), member) for key, member in reversed(one.items()))
        elif isinstance(one, list) and len(path) < _MAX_DEPTH:
            stack.extend(((*path, i), one[i]) for i in range(len(one) - 1, -1, -1))
        elif not isinstance(one, dict | list):
            yield path, one


def _lines(text: str) -> dict[Path, int]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    if root is None:
        return {}
    lines: dict[Path, int] = {(): root.start_mark.line + 1}
    stack: list[tuple[Path, yaml.Node]] = [((), root)]
    while stack and len(lines) < MAX_NODES:
        path, node = stack.pop()
        if len(path) >= _MAX_DEPTH:
            continue
        members: list[tuple[str | int, yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            members = [(str(key.value), key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            members = [(i, one, one) for i, one in enumerate(node.value)]
        for name, mark, member in members:
            lines[(*path, name)] = mark.start_mark.line + 1
            stack.append(((*path, name), member))
    return lines
