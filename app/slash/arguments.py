"""Arguments of slash commands that both front ends read."""

from engine.api.errors import InvalidRequest
from engine.conversations.merging import MergeKind

_KINDS: dict[str, MergeKind] = {
    "graft": "graft",
    "summary": "summary",
    "summarise": "summary",
    "pick": "pick",
    "cherry-pick": "pick",
}


def is_summary(argument: str) -> bool:
    """Whether the argument of /shorten asks for a summary.

    Raises:
        InvalidRequest: it is neither of the two.
    """
    if argument not in ("drop", "summarise"):
        raise InvalidRequest("/shorten takes drop or summarise.")
    return argument == "summarise"


def read_merge(argument: str) -> tuple[MergeKind | None, str]:
    """The kind of a merge and the branch, each may be missing."""
    word, _, rest = argument.partition(" ")
    kind = _KINDS.get(word.lower())
    return (kind, rest.strip()) if kind is not None else (None, argument)
