"""`/sources`: its argument, and `@NAME`, which attaches a collection of documents to the branch."""

import os
import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from engine.api.errors import InvalidRequest

Action = Literal["create", "add", "attach", "detach", "remove", "show", "stop"]
USAGE = (
    "/sources takes nothing, create NAME, add NAME PATH…, attach NAME, detach NAME, remove NAME [PATH], "
    "show N or stop."
)
_MENTION = re.compile(r"(?<!\S)@([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?=[\s?!.,;:]|$)")
_OPEN = re.compile(r"(?<!\S)@([A-Za-z0-9_-]*)$")


@dataclass(frozen=True, slots=True)
class SourcesCall:
    """What `/sources` is asked to do.

    Attributes:
        action: None lists the collections.
        name: the collection; for `show`, the number of a citation.
        paths: files and folders.
    """

    action: Action | None = None
    name: str = ""
    paths: tuple[str, ...] = ()


def read_sources(argument: str) -> SourcesCall:
    """The call in the argument of `/sources`. Paths with spaces are written in quotes.

    Raises:
        InvalidRequest: it has another form.
    """
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise InvalidRequest(f"A quote in the paths is not closed. {USAGE}") from error
    if not words:
        return SourcesCall()
    action, *rest = words
    if action not in get_args(Action):
        raise InvalidRequest(USAGE)
    least, most = {"add": (2, None), "remove": (1, 2), "stop": (0, 0)}.get(action, (1, 1))
    if len(rest) < least or (most is not None and len(rest) > most):
        raise InvalidRequest(USAGE)
    if action == "show" and not rest[0].isdecimal():
        raise InvalidRequest("/sources show takes the number of a citation of the last answer.")
    paths = tuple(os.path.expanduser(one) for one in rest[1:])
    return SourcesCall(action, rest[0] if rest else "", paths)  # type: ignore[arg-type]


def mentioned(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The collections that a message names, in order. A name that is also a file stands for the file."""
    found = dict.fromkeys(_MENTION.findall(text))
    return tuple(one for one in found if one in names and not _is_file(one))


def without_mentions(text: str, names: Collection[str]) -> str:
    """The message without the names of these collections."""
    kept = _MENTION.sub(lambda match: "" if match[1] in names else match[0], text)
    return kept.strip()


def complete_source(text: str, names: Iterable[str]) -> list[str]:
    """The texts that complete the name of a collection after the `@` at the end of a text."""
    found = _OPEN.search(text)
    if found is None:
        return []
    before = text[: found.start(1)]
    return [f"{before}{name}" for name in sorted(names) if name.startswith(found[1])]


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:
        return False
