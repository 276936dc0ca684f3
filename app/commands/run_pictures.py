"""The pictures of `pravaha run --image FILE`: opened, and read the way that the model allows."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from app.slash.pictures import NamedPicture, ReadMessage, read_picture, read_pictures
from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.snapshot import ModelInfo
from engine.retrieval.parsing import picture_reader
from engine.vision.opening import MAX_PICTURES


def open_pictures(paths: Sequence[Path]) -> tuple[NamedPicture, ...]:
    """The pictures in files.

    Raises:
        InvalidRequest: one cannot be read, or there are too many.
    """
    if len(paths) > MAX_PICTURES:
        raise InvalidRequest(f"--image is given {len(paths)} times; at most {MAX_PICTURES}.")
    return tuple(read_picture(path) for path in paths)


def read_question(
    question: str, pictures: Sequence[NamedPicture], model: ModelInfo | None, *, attached: bool
) -> ReadMessage:
    """A question with its pictures or their text; which it is, is said on standard error.

    Raises:
        PravahaError: nothing here can read them, one has no text, or no model is loaded.
    """
    if model is None:
        raise EngineUnavailable("No model is loaded that could read the pictures.")
    with closing(picture_reader.PictureReader()) as reader:
        read = read_pictures(question, pictures, model, reader, attached=attached)
    for one in read.pictures:
        print(f"pravaha: {one.remark}.", file=sys.stderr)
    return read
