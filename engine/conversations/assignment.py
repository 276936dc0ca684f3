"""`Assignment`: a change of one pointer or flag of a conversation."""

from dataclasses import dataclass
from typing import Literal

Target = Literal["head", "checkout", "sources", "title", "archived", "label", "rating", "pruned_at"]
"""`head` is keyed by its name, `checkout` by the parent and `sources` by the node that they are attached
after ('' for the root), `title` and `archived` by '' (the tree itself), the others by the node. The value
of `sources` is a JSON list of names."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Set one pointer or flag of a tree; None removes a pointer and clears a flag."""

    target: Target
    key: str
    value: str | int | float | None
