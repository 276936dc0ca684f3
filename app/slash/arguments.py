"""Arguments of slash commands that both front ends read."""

from engine.api.errors import InvalidRequest
from engine.conversations.merging import MergeKind
from engine.conversations.session import TreeSession

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


def change_system(session: TreeSession, argument: str) -> str | None:
    """The system prompt, after /system has set or cleared it."""
    if argument:
        session.system_prompt = None if argument == "clear" else argument
    return session.system_prompt


def read_merge(argument: str) -> tuple[MergeKind | None, str]:
    """The kind of a merge and the branch, each may be missing."""
    word, _, rest = argument.partition(" ")
    kind = _KINDS.get(word.lower())
    return (kind, rest.strip()) if kind is not None else (None, argument)
