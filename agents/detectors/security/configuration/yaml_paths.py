"""The entries of a YAML or JSON document with their key paths and lines."""

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from agents.workspace.source_file import SourceFile

MAX_BYTES = 300_000
"""PyYAML reads some 100 kB a second; longer files are data, not settings."""
_MAX_DEPTH = 40


class Entry(NamedTuple):
    """A scalar.

    Attributes:
        path: the keys that lead to it, outermost first; members of lists add no key.
        value: its text.
        line: its line, from 1.
        key_line: the line of its key, or its own in a list.
        in_list: whether it is a member of a list.
    """

    path: tuple[str, ...]
    value: str
    line: int
    key_line: int
    in_list: bool


def entries(file: SourceFile) -> tuple[Entry, ...]:
    """All scalars of all documents of a file, in order; empty if it does not parse. JSON is YAML, too."""
    return file.derived(_entries)


def _entries(file: SourceFile) -> tuple[Entry, ...]:
    if len(file.data) > MAX_BYTES:
        return ()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = file.text.replace("\t", "  ") if file.language == "json" else file.text
        documents = list(yaml.compose_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return ()
    seen: set[int] = set()
    return tuple(
        entry
        for document in documents
        if document is not None
        for entry in _walk(document, (), seen, 0, in_list=False)
    )


def _walk(
    node: yaml.Node, path: tuple[str, ...], seen: set[int], line: int, *, in_list: bool
) -> Iterator[Entry]:
    if isinstance(node, yaml.ScalarNode):
        own = node.start_mark.line + 1
        yield Entry(path, str(node.value), own, line or own, in_list)
        return
    # Aliases make a graph: without `seen`, a few lines of them take exponential time.
    if id(node) in seen or len(path) > _MAX_DEPTH:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            yield from _walk(value, (*path, name), seen, key.start_mark.line + 1, in_list=False)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _walk(value, path, seen, value.start_mark.line + 1, in_list=True)
