"""`InstalledModel`: the store's record of a model, one JSON file per model."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import orjson

from engine.api.errors import ModelError
from engine.files.json_file import read_json
from engine.files.replaced_file import replace_file

Origin = Literal["package", "hub", "web", "linked"]
"""Downloaded with pip, from a hub, or from another web address, or the user's files, used in place."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a model: its name, SHA-256 in hexadecimal, and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that can be opened.

    Attributes:
        name: its name in commands.
        path: the GGUF file or the model directory.
        origin: how its files were obtained; files of a `linked` model are never deleted.
        source: the package release, hub id, address or path it was added from.
        revision: the hub commit, else empty.
        files: its files when it was added.
        added_at: ISO 8601 time (UTC); empty for a model opened by path.
    """

    name: str
    path: Path
    origin: Origin
    source: str
    revision: str
    files: tuple[FileRecord, ...]
    added_at: str

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values."""
        return asdict(self) | {"path": str(self.path)}


def check_name(name: str) -> str:
    """Return the name if it is safe as a file name.

    Raises:
        ModelError: the name is not safe.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"{name[:100]!r} cannot name a model: use up to 100 letters, digits, dots, "
            "dashes and underscores, with a letter or digit at both ends."
        )
    return name


def name_from(text: str) -> str:
    """A safe name derived from the name of a file or repository."""
    return check_name(_UNSAFE.sub("-", text)[:100].strip("._-") or "model")


def read_record(path: Path) -> InstalledModel:
    """Read a record.

    Raises:
        ModelError: the record is missing or damaged.
    """
    fields = read_json(path)
    origin = fields.text("origin")
    if origin not in ("package", "hub", "web", "linked"):
        raise fields.wrong("origin", "package, hub, web or linked")
    return InstalledModel(
        name=check_name(fields.text("name")),
        path=Path(fields.text("path")),
        origin=origin,  # type: ignore[arg-type]  # narrowed above
        source=fields.text("source"),
        revision=fields.text("revision"),
        files=tuple(
            FileRecord(file.text("name"), file.text("sha256"), file.integer("size", high=1 << 50))
            for file in fields.objects("files")
        ),
        added_at=fields.text("added_at"),
    )


def write_record(path: Path, model: InstalledModel) -> None:
    """Write the record atomically: readers see the old file or the new one."""
    replace_file(path, orjson.dumps(model.to_json(), option=orjson.OPT_INDENT_2))
