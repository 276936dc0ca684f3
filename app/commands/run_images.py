"""The images of `pravaha run --image FILE`: opened, and read the way that the model allows."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from app.slash.images import NamedImage, ReadMessage, read_image, read_images
from engine.api.errors import EngineUnavailable, InvalidRequest
from engine.api.snapshot import ModelInfo
from engine.retrieval.parsing import image_reader
from engine.vision.opening import MAX_IMAGES


def open_images(paths: Sequence[Path]) -> tuple[NamedImage, ...]:
    """The images in files.

    Raises:
        InvalidRequest: one cannot be read, or there are too many.
    """
    if len(paths) > MAX_IMAGES:
        raise InvalidRequest(f"--image is given {len(paths)} times; at most {MAX_IMAGES}.")
    return tuple(read_image(path) for path in paths)


def read_question(
    question: str, images: Sequence[NamedImage], model: ModelInfo | None, *, attached: bool
) -> ReadMessage:
    """A question with its images or their text; which it is, is said on standard error.

    Raises:
        PravahaError: nothing here can read them, one has no text, or no model is loaded.
    """
    if model is None:
        raise EngineUnavailable("No model is loaded that could read the images.")
    with closing(image_reader.ImageReader()) as reader:
        read = read_images(question, images, model, reader, attached=attached)
    for one in read.readings:
        print(f"pravaha: {one.remark}.", file=sys.stderr)
    return read
