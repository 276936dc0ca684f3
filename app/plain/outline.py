"""The branches of a conversation as numbered lines of plain words, for a screen reader."""

import difflib

from app.text.safe_text import safe_line
from engine.conversations.branch_tree import BranchTree
from engine.conversations.node_words import ROLES, first_words
from engine.conversations.tree import NodeStatus


class NodeNumbers:
    """Numbers of messages: each gets the next one when it is first seen and keeps it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, node_id: str) -> int:
        """The number of a message."""
        return self._numbers.setdefault(node_id, len(self._numbers) + 1)

    def find(self, number: str) -> str | None:
        """The id of the message of this number, or None."""
        wanted = int(number) if number.isdecimal() and len(number) < 10 else 0
        return next((one for one, at in self._numbers.items() if at == wanted), None)


def build_outline(tree: BranchTree, numbers: NodeNumbers) -> list[str]:
    """One line per message, parents before children; a line that does not follow the one above says so."""
    lines: list[str] = []
    above: str | None = None
    open_path = set(tree.path(tree.head))
    for root in tree.children(None):
        for node_id in tree.subtree(root):
            node = tree[node_id]
            parts = [f"{numbers.of(node_id)}. {ROLES[node.kind]}: {safe_line(first_words(node))}"]
            if node.parent_id is not None and node.parent_id != above:
                parts.append(f"after {numbers.of(node.parent_id)}")
            count = len(tree.children(node_id))
            if count > 1:
                parts.append(f"{count} branches follow")
            if (name := tree.branch_at(node_id)) is not None:
                parts.append(f"end of branch {safe_line(name)}")
            if node.label:
                parts.append(f"labelled {safe_line(node.label)}")
            if node.status is NodeStatus.STREAMING:
                parts.append("still being written")
            if node_id == tree.head:
                parts.append("you are here")
            elif count == 0 and node_id in open_path:
                parts.append("open")
            lines.append("; ".join(parts))
            above = node_id
    return lines


def build_comparison(one: str, other: str, names: tuple[str, str]) -> list[str]:
    """Where two texts differ, word by word, as sentences.

    Args:
        names: what the texts are called, such as `message 4`.
    """
    first, second = one.split(), other.split()
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    lines: list[str] = []
    for operation, a, b, c, d in matcher.get_opcodes():
        left, right = " ".join(first[a:b]), " ".join(second[c:d])
        if operation == "equal":
            continue
        place = f"After {' '.join(first[max(0, a - 3) : a])!r}" if a else "At the start"
        if operation == "replace":
            lines.append(f"{place}: {names[0]} says {left!r}, {names[1]} says {right!r}.")
        elif operation == "delete":
            lines.append(f"{place}: only {names[0]} says {left!r}.")
        else:
            lines.append(f"{place}: only {names[1]} says {right!r}.")
    if not lines:
        return ["Both messages have the same words."]
    ratio = round(100 * matcher.ratio())
    return [f"{ratio} % of the words are the same.", *lines]
