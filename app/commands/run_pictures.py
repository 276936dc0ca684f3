"""The pictures of `pravaha run --image FILE`: opened, and read the way that the model allows."""

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.slash.pictures import (
    MAX_PICTURES,
    NamedPicture,
    build_remark,
    read_picture,
    way_for,
    with_picture_texts,
)
from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.api.snapshot import ModelInfo
from engine.retrieval.parsing import picture_reader


@dataclass(frozen=True, slots=True)
class ReadPictures:
    """A question with its pictures.

    Attributes:
        text: the question; with the text of the pictures where the model does not see them.
        images: the pictures that the model sees.
        report: what `--json` says about them.
    """

    text: str
    images: tuple[Image, ...] = ()
    report: tuple[dict[str, Any], ...] = ()


def open_pictures(paths: Sequence[Path]) -> tuple[NamedPicture, ...]:
    """The pictures in files.

    Raises:
        InvalidRequest: one cannot be read, or there are too many.
    """
    if len(paths) > MAX_PICTURES:
        raise InvalidRequest(f"--image is given {len(paths)} times; at most {MAX_PICTURES}.")
    return tuple(read_picture(path) for path in paths)


def read_pictures(
    question: str, pictures: Sequence[NamedPicture], model: ModelInfo, *, attached: bool
) -> ReadPictures:
    """A question with its pictures or their text; which it is, is said on standard error.

    Raises:
        PravahaError: nothing here can read them, or one has no text.
    """
    with closing(picture_reader.PictureReader()) as reader:
        way = way_for(model, reader, attached=attached)
        waiting = (
            [] if way == "model" else [reader.read(one.image, name=one.name) for one in pictures]
        )
        texts = [one.result() for one in waiting]
    for one in pictures:
        print(f"pravaha: {build_remark(one.name, way)}.", file=sys.stderr)
    if way == "model":
        report = [{"name": one.name, "read_by": way, "text": None} for one in pictures]
        return ReadPictures(question, tuple(one.image for one in pictures), tuple(report))
    report = [
        {"name": one.name, "read_by": way, "text": found}
        for one, found in zip(pictures, texts, strict=True)
    ]
    text = with_picture_texts(question, pictures, texts, small=model.is_small)
    return ReadPictures(text, (), tuple(report))
