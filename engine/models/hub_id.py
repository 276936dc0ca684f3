"""`HubId`: the name of a model on a Hugging Face hub."""

import re
from dataclasses import dataclass

from engine.api.errors import ModelError
from engine.models.gguf_parts import model_stem, part_names
from engine.models.hub_path import path_problem, printable

_ID = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?P<choice>:.*)?",
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class HubId:
    """A repository, and optionally one of its GGUF files.

    Attributes:
        repository: `org/name`.
        choice: a file, with or without its folders (of a split model, the first part), a quantisation tag
            such as `Q4_K_M`, or a folder; empty if none was given.
    """

    repository: str
    choice: str = ""

    def __str__(self) -> str:
        return f"{self.repository}:{self.choice}" if self.choice else self.repository

    @property
    def default_name(self) -> str:
        """The model's default name in the store, which may have slashes.

        Folders are left out that only repeat a piece of the file's name, as in `Q4_K_M/model-Q4_K_M.gguf`.
        """
        name = self.repository.rsplit("/", 1)[-1]
        if not self.choice:
            return name
        *folders, file = self.choice.split("/")
        stem = model_stem(file)
        return "-".join([name, *(folder for folder in folders if folder not in stem), stem])


def parse_hub_id(text: str) -> HubId | None:
    """Parse `org/name` or `org/name:choice`; None for anything else.

    Raises:
        ModelError: what follows the colon can be neither the path of a file nor a tag.
    """
    match = _ID.fullmatch(text)
    if match is None:
        return None
    if match["choice"] is None:
        return HubId(match["repository"])
    choice = match["choice"][1:].removesuffix("/")
    if not choice:
        raise ModelError(
            f"No file follows the colon in {text!r}: remove it, or add the file's name."
        )
    problem = path_problem(choice)
    if problem:
        raise ModelError(
            f"{printable(choice)} cannot be a file of {match['repository']}: it {problem}."
        )
    return HubId(match["repository"], part_names(choice)[0])
