"""How a model's control tokens are spelled, and telling written ones from the template's own.

A guard, a character that no text around it holds, is put inside every control token that a message
spells. It survives whatever a template does to contents (trim them, cut them at a mark), so after
rendering the control tokens without a guard are the template's own.
"""

import re
from collections.abc import Iterable, Mapping

_GUARDS = range(0xF0000, 0xFFFFE)
"""Plane 15, private use: characters no text needs."""


class ControlTokens:
    """The control tokens of one model.

    Attributes:
        spellings: token ids by what is written for them.
        ids: all of them.
    """

    def __init__(self, spellings: Mapping[str, int]) -> None:
        self.spellings = dict(spellings)
        self.ids = frozenset(self.spellings.values())
        longest_first = sorted(self.spellings, key=len, reverse=True)
        self._any = "|".join(map(re.escape, longest_first)) or r"(?!)"
        # Lookahead, so that spellings which overlap are all found.
        self._starts = re.compile(f"(?={self._any})")
        self._beginnings = {text[:end] for text in self.spellings for end in range(1, len(text))}
        self._longest = max(map(len, self.spellings), default=0)

    def among(self, token_ids: Iterable[int]) -> list[int]:
        """Those of the ids that are control tokens, in order."""
        return [token_id for token_id in token_ids if token_id in self.ids]

    def spelled_in(self, text: str) -> bool:
        """Whether the text spells a control token, or ends in what may become one."""
        return self._starts.search(text) is not None or bool(self._open_ends(text))

    def guard(self, text: str, guard: str) -> str:
        """The text with a guard after the first character of every spelling.

        Spellings that the text only begins count: what comes after it could complete them.
        """
        starts = {match.start() for match in self._starts.finditer(text)}
        pieces, last = [], 0
        for start in sorted(starts.union(self._open_ends(text))):
            pieces += [text[last : start + 1], guard]
            last = start + 1
        return "".join([*pieces, text[last:]])

    def cut(self, text: str, guard: str | None = None) -> list[tuple[str, str]]:
        """The text as (ordinary text, control token after it) pairs; the last has no token.

        Args:
            text: what to cut.
            guard: control tokens that hold it are ordinary text; it is removed from there.
        """
        if guard is None:
            parts = re.split(f"({self._any})", text)
        else:
            parts = re.split(f"({self._any})(?!{guard})", text)
            parts = [part.replace(guard, "") for part in parts]
        return list(zip(parts[::2], [*parts[1::2], ""], strict=True))

    def _open_ends(self, text: str) -> list[int]:
        """Where, at the text's end, a spelling begins that the text does not finish."""
        first = max(0, len(text) - self._longest + 1)
        return [at for at in range(first, len(text)) if text[at:] in self._beginnings]


def absent_character(text: str) -> str | None:
    """A character fit for a guard: private, and not in the text. None if it holds them all."""
    present = set(text)
    return next((chr(code) for code in _GUARDS if chr(code) not in present), None)
