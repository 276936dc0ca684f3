"""Arguments of slash commands that both front ends read."""

from collections.abc import Sequence

from app.slash.names import beginning_with, meant
from app.text.safe_text import safe_line
from engine.api.errors import InvalidRequest
from engine.conversations.branch_tree import BranchTree
from engine.conversations.merging import MergeKind
from engine.conversations.node_words import find_branch
from engine.conversations.session import TreeSession
from engine.conversations.tree import TreeSummary

EXPANSION = 4
"""Number of answers that /expand generates without a number."""

_KINDS: dict[str, MergeKind] = {
    "graft": "graft",
    "summary": "summary",
    "summarise": "summary",
    "pick": "pick",
    "cherry-pick": "pick",
}


def read_expansion(argument: str) -> int:
    """How many answers /expand generates.

    Raises:
        InvalidRequest: the argument is no number.
    """
    if argument and not argument.isdecimal():
        raise InvalidRequest("/expand takes a number of answers.")
    return int(argument or EXPANSION)


def read_fork(argument: str) -> tuple[str, str]:
    """The number of the message that /fork begins a branch after, and the model; each may be missing."""
    first, _, rest = argument.partition(" ")
    return (first, rest.strip()) if first.isdecimal() else ("", argument)


def change_system(session: TreeSession, argument: str) -> str | None:
    """The system prompt, after /system has set or cleared it."""
    if argument:
        session.system_prompt = None if argument == "clear" else argument
    return session.system_prompt


def read_merge(argument: str) -> tuple[MergeKind | None, str]:
    """The kind of a merge, of which three letters suffice, and the branch; each may be missing."""
    word, _, rest = argument.partition(" ")
    kinds = {_KINDS[one] for one in _KINDS if len(word) > 2 and one.startswith(word.lower())}
    kind = kinds.pop() if len(kinds) == 1 else None
    return (kind, rest.strip()) if kind is not None else (None, argument)


def read_branch(tree: BranchTree, argument: str) -> str | None:
    """The node at the end of the branch that is meant; None for the number of a message, and for nothing.

    Raises:
        InvalidRequest: there is no such branch; the sentence names those that are near.
    """
    named = find_branch(tree, argument)
    if named is not None or not argument or argument.isdecimal():
        return named
    branches = tree.branches()
    return branches[meant(argument, branches, "branch")]


def find_title(trees: Sequence[TreeSummary], argument: str) -> TreeSummary | None:
    """The only conversation whose title is or begins with the argument; None if there are several or none."""
    titles = [safe_line(tree.title) for tree in trees]
    found = beginning_with(argument, titles) if argument else []
    return trees[titles.index(found[0])] if len(found) == 1 else None
