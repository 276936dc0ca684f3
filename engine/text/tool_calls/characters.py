"""`Characters`: the text of an answer, read character by character as it arrives.

The readers of this package are generators: a `yield` waits for the next character, so a reader is written
as if it had the whole text, and its result cannot depend on how the text is divided into pieces. An empty
string is sent for the end of the text, as often as a reader asks.
"""

from collections.abc import Generator, Iterable
from typing import TypeVar

Result = TypeVar("Result")

Reading = Generator[None, str, Result]
"""A reader: waits for characters, and returns a result."""

SPACES = " \t\r\n"


class Unreadable(Exception):
    """The text is not what a reader reads. The character that says so is unread."""


class Characters:
    """Characters that arrive, and those that were read too far.

    Attributes:
        back: those, the next one last. A hot loop reads by `back.pop() if back else (yield)`, which costs a
            fifth of `yield from read()`.
    """

    __slots__ = ("back",)

    def __init__(self) -> None:
        self.back: list[str] = []

    @property
    def unread_text(self) -> str:
        """What was put back and not read again."""
        return "".join(reversed(self.back))

    def unread(self, text: str) -> None:
        """Put text back, before what is unread already."""
        self.back.extend(reversed(text))

    def read(self) -> Reading[str]:
        """The next character; empty at the end of the text."""
        if self.back:
            return self.back.pop()
        return (yield)

    def peek(self) -> Reading[str]:
        """The next character, which stays unread."""
        character = yield from self.read()
        self.unread(character)
        return character

    def spaces(self) -> Reading[str]:
        """The run of spaces and line breaks that follows."""
        back = self.back
        run: list[str] = []
        while True:
            character = back.pop() if back else (yield)
            if not character or character not in SPACES:
                self.unread(character)
                return "".join(run)
            run.append(character)

    def literal(self, text: str, *, after_spaces: bool = False) -> Reading[bool]:
        """Read a text if it follows, otherwise nothing; `after_spaces` also the spaces before it."""
        spaces = (yield from self.spaces()) if after_spaces else ""
        for position, expected in enumerate(text):
            character = yield from self.read()
            if character != expected:
                self.unread(spaces + text[:position] + character)
                return False
        return True

    def longest(self, texts: Iterable[str]) -> Reading[str]:
        """Read the longest of some texts that follows; empty, and nothing is read, if none does."""
        candidates = list(texts)
        found, read = "", ""
        while True:
            candidates = [one for one in candidates if one.startswith(read) and one != read]
            if not candidates:
                break
            character = yield from self.read()
            read += character
            if read in candidates:
                found = read
            if not character:
                break
        self.unread(read[len(found) :])
        return found
