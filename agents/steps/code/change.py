"""`Change`: what a candidate's code does to the files, found by program."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from agents.edits import FileEdit, propose_edits
from agents.text.unified_diff import make_diff
from engine.text.fenced import fenced

_CACHED = 64


@dataclass(frozen=True, slots=True)
class Change:
    """A change.

    Attributes:
        edits: one per file; empty if the code fits nowhere or changes nothing.
        problem: why there are none, in a sentence.
    """

    edits: tuple[FileEdit, ...] = ()
    problem: str = ""

    @property
    def diff(self) -> str:
        """A unified diff of all files as they are stored, with their line ends."""
        return "".join(
            make_diff(one.path, _text(one.before), _text(one.after)) for one in self.edits
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The definitions that change, where that is known."""
        return tuple(name for one in self.edits for name in one.names)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that change."""
        return tuple(one.path for one in self.edits)


class Changes:
    """Makes changes of code for one task; the last ones are kept, because several checks ask for them."""

    def __init__(self, files: Mapping[str, bytes | None], *, creates: str = "") -> None:
        """Begin.

        Args:
            files: the files that were shown, as they are stored.
            creates: the path of a file that may be created, or empty.
        """
        self._files = {path: data for path, data in files.items() if data is not None}
        self._creates = creates
        self.of = functools.lru_cache(_CACHED)(self._of)

    def _of(self, code: str) -> Change:
        """What code changes. Its first line may be a comment that names the file."""
        if not code.strip():
            return Change(problem="There is no code.")
        made = propose_edits(fenced(code.rstrip(), "python"), self._files, find=self._find)
        if made.refused:
            return Change(problem=made.refused[0])
        if made.edits:
            return Change(made.edits)
        if made.unchanged:
            return Change(problem="The code is what the file has already.")
        return Change(problem="The code has no place in the files that were shown.")

    def _find(self, name: str) -> tuple[str, bytes | None] | None:
        wanted = self._creates
        return (
            (wanted, None) if wanted and (name == wanted or wanted.endswith(f"/{name}")) else None
        )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
