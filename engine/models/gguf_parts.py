"""The files of a model in GGUF: one, or the parts that llama.cpp's `gguf-split` made of it.

Parts are named `NAME-00001-of-00003.gguf` and so on, in one folder. The first one has the metadata.
"""

import re
from pathlib import Path

from engine.api.errors import ModelError

_PART = re.compile(
    r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})(?P<suffix>\.gguf)",
    re.ASCII | re.IGNORECASE,
)
_MAX_PARTS = 4096
"""As many as the reader of the files accepts."""


def part_names(name: str) -> tuple[str, ...]:
    """The names of all parts of which `name` is one, in order; only itself if it is not named like a part."""
    match = _PART.fullmatch(name)
    if match is None:
        return (name,)
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count <= _MAX_PARTS:
        return (name,)
    stem, suffix = match["stem"], match["suffix"]
    return tuple(f"{stem}-{part:05}-of-{count:05}{suffix}" for part in range(1, count + 1))


def model_stem(name: str) -> str:
    """The name of a GGUF file without its suffix and its place among the parts: that of the whole model."""
    parts = part_names(name)
    stem = re.sub(r"\.gguf$", "", name, flags=re.IGNORECASE)
    return stem if len(parts) == 1 else stem[: -len("-00001-of-00001")]


def part_paths(path: Path) -> tuple[Path, ...]:
    """The files of the model of which `path` is a file, the first one first.

    Reads the header of a file that is named like a part: a whole model may be named so, too.

    Raises:
        ModelError: a part does not exist, or the header is damaged.
    """
    names = part_names(path.name)
    if len(names) == 1 or not path.is_file():
        return (path,)
    from engine._core import GgufFile  # not needed for models in one file

    try:
        if GgufFile.split_of(path) is None:
            return (path,)
    except ValueError as error:
        raise ModelError(str(error)) from error
    paths = tuple(path.with_name(name) for name in names)
    for number, part in enumerate(paths, start=1):
        if not part.is_file():
            raise ModelError(
                f"{part} is missing, part {number} of {len(paths)} of the model: "
                "put it into the folder of the others."
            )
    return paths


def located(path: Path) -> Path:
    """The absolute path of a model's file or directory; for a part, of the first part.

    Symbolic links are followed, except that a part keeps its name, by which the others are found.

    Raises:
        ModelError: a part does not exist, or the header is damaged.
    """
    first = part_paths(path)[0]
    if len(part_names(first.name)) > 1:
        return first.parent.resolve() / first.name
    return first.resolve()
