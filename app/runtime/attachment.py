"""`Attachment`: a collection that a branch is answered from, and which of its documents.

The conversation stores it as one text, such as `docs` or `docs year>=2025`, and knows nothing of its parts.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from app.slash.document_attributes import read_conditions


@dataclass(frozen=True, slots=True)
class Attachment:
    """What is attached.

    Attributes:
        name: the collection.
        conditions: such as `year>=2025`; only documents that fulfil all of them are searched.
    """

    name: str
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, stored: str) -> Self:
        """The attachment of a stored text."""
        try:
            name, *conditions = shlex.split(stored)
        except ValueError:  # of a name that no collection can have
            return cls(stored)
        return cls(name, tuple(conditions))

    @property
    def stored(self) -> str:
        """The text that is stored."""
        return shlex.join((self.name, *self.conditions))

    @property
    def words(self) -> str:
        """The attachment as it is shown."""
        return f"{self.name} ({', '.join(self.conditions)})" if self.conditions else self.name

    @property
    def where(self) -> dict[str, Any] | None:
        """The filter of a search.

        Raises:
            InvalidRequest: a condition is malformed.
        """
        return read_conditions(self.conditions)


def attached(stored: Iterable[str]) -> dict[str, Attachment]:
    """The attachments of a branch, by the name of the collection."""
    return {one.name: one for one in map(Attachment.of, stored)}
