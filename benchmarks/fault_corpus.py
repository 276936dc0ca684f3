"""`fault_projects`: small projects with one injected fault each (`tests/corpus/faults`).

The folder has each project as it should be; `faults.yaml` says which text of which file the fault replaces.
A project's `tests` see the fault; its `oracle` decides whether a patch is right, and no repair sees it.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus" / "faults"
Half = Literal["tuning", "held_out"]


@dataclass(frozen=True, slots=True)
class FaultProject:
    """One project.

    Attributes:
        name: its folder's name.
        half: whether it may be looked at while repair is improved.
        kind: of its fault, in words.
        file: where the fault is.
        right: the text without the fault; once in the file.
        wrong: what the fault puts in its place.
        refuted: another replacement that the project's own tests accept and `oracle` refutes, or empty.
    """

    name: str
    half: Half
    kind: str
    file: str
    right: str
    wrong: str
    refuted: str = ""

    @property
    def folder(self) -> Path:
        """The project as it should be."""
        return CORPUS / self.half / self.name

    def text(self, replacement: str) -> str:
        """The file with a text in the place of the right one."""
        before = (self.folder / self.file).read_text(encoding="utf-8")
        if before.count(self.right) != 1:
            raise ValueError(f"{self.name}: {self.right!r} is not there once")
        return before.replace(self.right, replacement)

    def write(self, root: Path, replacement: str | None = None) -> None:
        """Write the project without `oracle`, with the fault or another replacement.

        Args:
            root: a folder that does not exist.
            replacement: what stands in the place of the right text; the fault if None.
        """
        ignored = shutil.ignore_patterns("oracle", "__pycache__", ".pytest_cache")
        shutil.copytree(self.folder, root, ignore=ignored)
        text = self.text(self.wrong if replacement is None else replacement)
        (root / self.file).write_text(text, encoding="utf-8")

    def add_oracle(self, root: Path) -> None:
        """Put the held-back tests beside a project's files."""
        shutil.copytree(self.folder / "oracle", root / "oracle")


def fault_projects(*halves: Half) -> list[FaultProject]:
    """The projects of some halves, all if none is named."""
    listed = yaml.safe_load((CORPUS / "faults.yaml").read_text(encoding="utf-8"))
    return [
        FaultProject(name, half, **fields)
        for half in halves or ("tuning", "held_out")
        for name, fields in listed[half].items()
    ]
