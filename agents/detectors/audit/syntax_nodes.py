"""Iterating over tree-sitter trees without recursion."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NODES = 2_000_000
"""Nodes looked at in one file; a file of 1 MB has fewer."""


def walk(root: "Node", *kinds: str) -> Iterator["Node"]:
    """The nodes beneath and including `root` in the order of the text; of these types if any are given."""
    cursor = root.walk()
    for _ in range(MAX_NODES):
        node = cursor.node
        if node is None:
            return
        if not kinds or node.type in kinds:
            yield node
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def node_text(node: "Node | None") -> str:
    """The source text of a node; empty for None."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def line_of(node: "Node") -> int:
    """The first line of a node, from 1."""
    return int(node.start_point[0]) + 1


def ancestors(node: "Node") -> Iterator["Node"]:
    """From the parent to the root."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent
