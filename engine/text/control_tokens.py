"""`ControlTokens`: the spellings of a model's control tokens, and a marker for those in contents.

A guard, a character that does not occur in the conversation, is inserted into every control token that
a message spells. It is kept by what templates do to contents (trim them, split them at a marker), so
after rendering the control tokens without a guard are those that the template wrote.
"""

import re
from collections.abc import Iterable, Mapping

_GUARDS = range(0xF0000, 0xFFFFE)
"""Private-use characters of plane 15, which do not occur in ordinary text."""


class ControlTokens:
    """The control tokens of one model.

    Attributes:
        spellings: text to token id.
        ids: all control token ids.
    """

    def __init__(self, spellings: Mapping[str, int]) -> None:
        self.spellings = dict(spellings)
        self.ids = frozenset(self.spellings.values())
        longest_first = sorted(self.spellings, key=len, reverse=True)
        self._any = "|".join(map(re.escape, longest_first)) or r"(?!)"
        # Lookahead, to find overlapping spellings.
        self._starts = re.compile(f"(?={self._any})")
        self._prefixes = {text[:end] for text in self.spellings for end in range(1, len(text))}
        self._longest = max(map(len, self.spellings), default=0)

    def select(self, token_ids: Iterable[int]) -> list[int]:
        """The ids that are control tokens, in order."""
        return [token_id for token_id in token_ids if token_id in self.ids]

    def is_spelled_in(self, text: str) -> bool:
        """Whether the text contains the spelling of a control token, or ends in a prefix of one."""
        return self._starts.search(text) is not None or bool(self._partial_starts(text))

    def insert_guard(self, text: str, guard: str) -> str:
        """The text with a guard after the first character of every spelling.

        This includes partial spellings at its end, which the following text could complete.
        """
        starts = {match.start() for match in self._starts.finditer(text)}
        pieces, last = [], 0
        for start in sorted(starts.union(self._partial_starts(text))):
            pieces += [text[last : start + 1], guard]
            last = start + 1
        return "".join([*pieces, text[last:]])

    def split(self, text: str, guard: str | None = None) -> list[tuple[str, str]]:
        """Split at control tokens, into (ordinary text, following token) pairs; the last token is empty.

        Args:
            text: the text to split.
            guard: control tokens that contain it are ordinary text; it is removed from the result.
        """
        if guard is None:
            parts = re.split(f"({self._any})", text)
        else:
            parts = re.split(f"({self._any})(?!{guard})", text)
            parts = [part.replace(guard, "") for part in parts]
        return list(zip(parts[::2], [*parts[1::2], ""], strict=True))

    def _partial_starts(self, text: str) -> list[int]:
        """Start positions of partial spellings at the end of the text."""
        first = max(0, len(text) - self._longest + 1)
        return [at for at in range(first, len(text)) if text[at:] in self._prefixes]


def absent_character(text: str) -> str | None:
    """A private-use character that is not in the text, for a guard; None if it contains all of them."""
    present = set(text)
    return next((chr(code) for code in _GUARDS if chr(code) not in present), None)
