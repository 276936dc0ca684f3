"""`HubId`: the name of a model on a Hugging Face hub."""

import re
from dataclasses import dataclass

from engine.api.errors import ModelError
from engine.models.gguf_parts import model_stem, part_names
from engine.models.hub_path import path_problem, printable

_ID = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})"
    r"(?:@(?P<revision>[^:]*))?(?P<choice>:.*)?",
    re.ASCII | re.DOTALL,
)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubId:
    """A repository, and optionally one of its GGUF files.

    Attributes:
        repository: `org/name`.
        choice: a file, with or without its folders (of a split model, the first part), a quantisation tag
            such as `Q4_K_M`, or a folder; empty if none was given.
        revision: a branch, tag or commit; empty for the main branch.
    """

    repository: str
    choice: str = ""
    revision: str = ""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.repository}{revision}" + (f":{self.choice}" if self.choice else "")

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
    """Parse `org/name`, `org/name:choice` or `org/name@revision:choice`; None for anything else.

    Raises:
        ModelError: what follows the colon can be neither the path of a file nor a tag, or what follows the @
            no revision.
    """
    match = _ID.fullmatch(text)
    if match is None:
        return None
    revision = "" if match["revision"] is None else checked_revision(match["revision"])
    if match["choice"] is None:
        return HubId(match["repository"], revision=revision)
    choice = match["choice"][1:].removesuffix("/")
    if not choice:
        raise ModelError(
            f"No file follows the colon in {text!r}: remove it, or add the file's name."
        )
    return HubId(
        match["repository"],
        part_names(checked_choice(match["repository"], choice))[0],
        revision,
    )


def checked_choice(repository: str, choice: str) -> str:
    """A choice that can be the path of a file.

    Raises:
        ModelError: it cannot.
    """
    problem = path_problem(choice)
    if problem:
        raise ModelError(f"{printable(choice)} cannot be a file of {repository}: it {problem}.")
    return choice


def checked_revision(text: str) -> str:
    """The name of a branch or tag, or a commit.

    Raises:
        ModelError: it can be neither.
    """
    if _REVISION.fullmatch(text) is None or ".." in text:
        raise ModelError(f"{printable(text)} is neither a branch, a tag nor a commit.")
    return text
