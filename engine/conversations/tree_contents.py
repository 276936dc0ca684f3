"""`TreeContents`: a whole conversation, as it is exported, imported and recorded."""

from dataclasses import dataclass

from engine.conversations.assignment import Assignment
from engine.conversations.tree import Node


@dataclass(frozen=True, slots=True)
class TreeContents:
    """A conversation with all branches and token data.

    Attributes:
        nodes: parents before children.
        pointers: the assignments of checkout and heads.
    """

    tree_id: str
    title: str
    nodes: tuple[Node, ...]
    pointers: tuple[Assignment, ...]
