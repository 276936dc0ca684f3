"""Plain words for nodes of a tree: who wrote a message, its first line, and the branch of a name."""

from engine.api.request import FinishReason
from engine.conversations.answer import CONTEXT_FULL
from engine.conversations.branch_tree import BranchTree
from engine.conversations.tree import NodeKind, NodeView

INCOMPLETE = {FinishReason.LENGTH.value: "max tokens reached", CONTEXT_FULL: "context full"}
"""Why an answer that was not stopped is incomplete, by `Node.finish`."""

ROLES = {
    NodeKind.USER: "You",
    NodeKind.ASSISTANT: "Pravāha",
    NodeKind.SYSTEM: "System",
    NodeKind.TOOL: "Tool",
    NodeKind.NOTE: "Note",
    NodeKind.SUMMARY: "Summary",
}
FILTERED = "ended by the guardrails"
"""Why an answer with the finish reason `content_filter` ended."""

_LENGTH = 80


def first_words(node: NodeView, length: int = _LENGTH) -> str:
    """The beginning of a message on one line; not sanitised."""
    line = " ".join(node.text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def find_branch(tree: BranchTree, name: str) -> str | None:
    """The node at the end of the branch of this name; case is ignored. None if there is none."""
    branches = tree.branches()
    if name in branches:
        return branches[name]
    return next((at for one, at in branches.items() if one.casefold() == name.casefold()), None)
