"""`SpecialIds`: the ids of special tokens as a model's files declare them."""

from collections.abc import Sequence

from engine.files.fields import Fields

_NO_TOKEN = frozenset({-1, 2**32 - 1, 2**64 - 1})
"""Ids by which converters say that there is no such token."""


class SpecialIds:
    """Reads ids by their keys. One outside the vocabulary is as if it were missing.

    Converters write ids of tokens that the model does not have (a padding token of the training, -1),
    and nothing needs any of them: without an end token answers end at their limit.

    Attributes:
        notes: a sentence for each id that was left out.
    """

    def __init__(self, fields: Fields, count: int, *, prefix: str = "") -> None:
        """Read from `fields`, whose keys begin with `prefix`; ids are in [0, count)."""
        self._fields = fields
        self._count = count
        self._prefix = prefix
        self.notes: list[str] = []

    def all(self, name: str) -> list[int]:
        """The ids under a key, which has one or a list.

        Raises:
            ModelError: the value is neither.
        """
        key = self._prefix + name
        if key not in self._fields:
            return []
        if self._fields.is_list(key):
            given = self._fields.integers(key)
        else:
            given = [self._fields.integer(key, low=-(2**63), high=2**64)]
        for one in given:
            if not 0 <= one < self._count and one not in _NO_TOKEN:
                note = f"{name} is {one}, outside the vocabulary of {self._count}: it is ignored."
                if note not in self.notes:
                    self.notes.append(note)
        return [one for one in given if 0 <= one < self._count]

    def first(self, name: str) -> int | None:
        """The id under a key, or the first of a list."""
        return next(iter(self.all(name)), None)


def without_rows(tokens: Sequence[str], rows: int) -> str:
    """The note about special tokens that have no row in the embedding."""
    names = ", ".join(tokens[:3]) + (", …" if len(tokens) > 3 else "")
    return f"The embedding has {rows} rows and none for {names}: they are ignored."
