"""`Assignment`: a change of one pointer or flag of a conversation."""

from dataclasses import dataclass
from typing import Literal

Target = Literal[
    "head", "checkout", "sources", "model", "title", "archived", "label", "rating", "pruned_at"
]  # fmt: skip
"""`head` is keyed by its name, `checkout` by the parent, `sources` and `model` by the node after which they
apply ('' for the root), `title` and `archived` by '' (the tree itself), the others by the node. The value
of `sources` is a JSON list of names, that of `model` a name."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Set one pointer or flag of a tree; None removes a pointer and clears a flag."""

    target: Target
    key: str
    value: str | int | float | None
