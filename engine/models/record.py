"""What the store remembers of a model: one JSON file each."""

import os
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import orjson

from engine.api.errors import ModelError
from engine.files.json_file import read_json

Origin = Literal["package", "hub", "linked"]
"""Fetched with pip, fetched from a hub, or the user's own files, left where they are."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of a model: its name in the model's folder, digest and length."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that can be opened.

    Attributes:
        name: what commands call it.
        path: the GGUF file or the directory.
        origin: where its files came from, and so whose they are.
        source: what was asked for: a package release, a hub id or a path.
        revision: the hub commit, else empty.
        files: its files as they were when it was added.
        added_at: when, in ISO 8601 (UTC).
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
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def to_json(self) -> dict[str, object]:
        """The record as plain JSON values."""
        return asdict(self) | {"path": str(self.path)}


def check_name(name: str) -> str:
    """The name, if it is safe as a file name.

    Raises:
        ModelError: it is not.
    """
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"{name[:100]!r} cannot name a model: use up to 100 letters, digits, dots, "
            "dashes and underscores, with a letter or digit at both ends."
        )
    return name


def name_from(text: str) -> str:
    """A safe name made of a file's or a repository's."""
    return check_name(_UNSAFE.sub("-", text)[:100].strip("._-") or "model")


def read_record(path: Path) -> InstalledModel:
    """The record in a file.

    Raises:
        ModelError: it is damaged.
    """
    fields = read_json(path)
    origin = fields.text("origin")
    if origin not in ("package", "hub", "linked"):
        raise fields.wrong("origin", "package, hub or linked")
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
    """Write the record; readers see the old file or the new one, never a part."""
    raw = orjson.dumps(model.to_json(), option=orjson.OPT_INDENT_2)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
