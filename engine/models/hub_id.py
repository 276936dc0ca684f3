"""`HubId`: the name of a model on a Hugging Face hub."""

import re
from dataclasses import dataclass

from engine.models.gguf_parts import model_stem, part_names

_ID = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?::(?P<choice>[\w.-]{1,200}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class HubId:
    """A repository, and optionally one of its GGUF files.

    Attributes:
        repository: `org/name`.
        choice: a file name (of a split model, the first part's) or a quantisation tag such as
            `Q4_K_M`; empty if none was given.
    """

    repository: str
    choice: str = ""

    def __str__(self) -> str:
        return f"{self.repository}:{self.choice}" if self.choice else self.repository

    @property
    def default_name(self) -> str:
        """The model's default name in the store."""
        name = self.repository.rsplit("/", 1)[-1]
        return f"{name}-{model_stem(self.choice)}" if self.choice else name


def parse_hub_id(text: str) -> HubId | None:
    """Parse `org/name` or `org/name:choice`; None for anything else."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    return HubId(match["repository"], part_names(match["choice"] or "")[0])
