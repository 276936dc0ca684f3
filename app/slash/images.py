"""Images in a message: `@image.png` names one; what is said about how it was read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.slash.attachments import (
    SUFFIXES,
    check_fits,
    is_image,
    mentioned_files,
    mentions,
)
from app.slash.mentions import spellings
from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.api.snapshot import ModelInfo
from engine.retrieval.answering.image_text import image_text, images_read, shown_name
from engine.retrieval.parsing.image_reader import ImageReader
from engine.vision.opening import MAX_BYTES, MAX_IMAGES, open_image
from engine.vision.routing import Way, choose_way


@dataclass(frozen=True, slots=True)
class NamedImage:
    """An image and its name as people and the model see it."""

    name: str
    image: Image


@dataclass(frozen=True, slots=True)
class ImageReading:
    """How an image was read.

    Attributes:
        name: of the image.
        way: the way.
        text: what OCR has found; None where the model sees it.
    """

    name: str
    way: Way
    text: str | None = None

    @property
    def remark(self) -> str:
        """The same in words."""
        return build_remark(self.name, self.way)


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message whose images have been read.

    Attributes:
        text: the message; with the text of its images where the model does not see them.
        images: the images that the model sees.
        readings: how each of its images was read.
    """

    text: str
    images: tuple[Image, ...] = ()
    readings: tuple[ImageReading, ...] = ()


def named_images(text: str) -> tuple[NamedImage, ...]:
    """The images that a message names, but for those whose text it has already.

    Raises:
        InvalidRequest: one cannot be read, is damaged or too large, or there are too many.
    """
    if "@" not in text:
        return ()
    known = images_read(text)
    paths = [path for path in mentioned_files(text) if is_image(path)]
    if len(paths) > MAX_IMAGES:
        raise InvalidRequest(
            f"The message names {len(paths)} images; at most {MAX_IMAGES} are accepted."
        )
    return tuple(read_image(path) for path in paths if shown_name(path.name) not in known)


def read_image(path: Path) -> NamedImage:
    """The image in a file.

    Raises:
        InvalidRequest: it cannot be read, is damaged or too large.
    """
    name = shown_name(path.name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidRequest(f"{name} is larger than {MAX_BYTES // 1024**2} MiB.")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{name} can't be read: {error.strerror}.") from error
    return NamedImage(name, open_image(data, name=name))


def read_images(
    text: str,
    images: Sequence[NamedImage],
    model: ModelInfo,
    reader: ImageReader | None,
    *,
    attached: bool,
    count: Callable[[str], int] = len,
    length: int = 0,
) -> ReadMessage:
    """A message with its images, or with their text; waits until they are read.

    Args:
        text: the message.
        images: its images.
        model: the loaded model.
        reader: reads the text of images; None reads none.
        attached: as in `way_for`.
        count, length: as in `with_image_texts`.

    Raises:
        PravahaError: nothing here can read them, one has no text, or a text is too long for the context.
    """
    way = way_for(model, reader, attached=attached)
    if reader is None or way == "model":
        seen = tuple(ImageReading(one.name, way) for one in images)
        return ReadMessage(text, tuple(one.image for one in images), seen)
    waiting = [reader.read(one.image, name=one.name) for one in images]
    texts = [one.result() for one in waiting]
    message = with_image_texts(
        text, images, texts, small=model.is_small, count=count, length=length
    )
    read = (ImageReading(one.name, way, found) for one, found in zip(images, texts, strict=True))
    return ReadMessage(message, (), tuple(read))


def with_image_texts(
    text: str,
    images: Sequence[NamedImage],
    texts: Sequence[str],
    *,
    small: bool,
    count: Callable[[str], int] = len,
    length: int = 0,
) -> str:
    """A message with what OCR has found in its images, as quoted data behind it.

    Args:
        text: the message.
        images: its images.
        texts: what was found in each.
        small: whether a small model reads them.
        count: returns the number of tokens of a text.
        length: the context length in tokens; 0 if it is not known.

    Raises:
        InvalidRequest: a text is too long for the context.
    """
    blocks: list[str] = []
    for image, found in zip(images, texts, strict=True):
        check_fits(image.name, found, count, length)
        blocks.append(image_text(image.name, found, small=small))
    return "\n\n".join([text, *blocks])


def way_for(model: ModelInfo, reader: ImageReader | None, *, attached: bool) -> Way:
    """The way for the images of a message.

    Args:
        model: the loaded model.
        reader: reads the text of images; None reads none.
        attached: whether the model is that of a server, to which messages take no images.

    Raises:
        InvalidRequest: there is none; the sentence says what to do.
    """
    ocr = reader is not None and reader.installed
    if attached and model.sees_images and not ocr:
        raise InvalidRequest(
            "Images are not sent to an attached server: load the model in this process, or run "
            "`pip install 'pravaha[ocr]'` to have their text read."
        )
    sees = model.sees_images and not attached
    return choose_way(model=model.name, sees_images=sees, ocr=ocr)


def seen_names(text: str, count: int) -> tuple[str, ...]:
    """The names of the images that a message was sent with, as it says them; else their number."""
    named = ([Path(one) for one in spellings(word)] for word in mentions(text))
    images = (
        next((one for one in paths if one.suffix.lower() in SUFFIXES), None) for paths in named
    )
    names = tuple(shown_name(one.name) for one in images if one is not None)
    if len(names) == count:
        return names
    return (f"{count} image{'' if count == 1 else 's'}",)


def build_remark(name: str, way: Way) -> str:
    """How an image was read, in words."""
    if way == "ocr":
        return f"{name}: its text was read by OCR; the model does not see the image"
    return f"{name}: the model sees the image"
