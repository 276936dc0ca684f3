"""Pictures in a message: `@picture.png` names one; what is said about how it was read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.slash.attachments import (
    SUFFIXES,
    check_fits,
    is_picture,
    mentioned_files,
    mentions,
)
from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.api.snapshot import ModelInfo
from engine.retrieval.answering.picture_text import picture_text, pictures_read, shown_name
from engine.retrieval.parsing.picture_reader import PictureReader
from engine.vision.opening import MAX_BYTES, MAX_PICTURES, open_image
from engine.vision.routing import Way, choose_way


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """A picture and its name as people and the model see it."""

    name: str
    image: Image


@dataclass(frozen=True, slots=True)
class ReadPicture:
    """How a picture was read.

    Attributes:
        name: of the picture.
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
    """A message whose pictures have been read.

    Attributes:
        text: the message; with the text of its pictures where the model does not see them.
        images: the pictures that the model sees.
        pictures: how each of its pictures was read.
    """

    text: str
    images: tuple[Image, ...] = ()
    pictures: tuple[ReadPicture, ...] = ()


def named_pictures(text: str) -> tuple[NamedPicture, ...]:
    """The pictures that a message names, but for those whose text it has already.

    Raises:
        InvalidRequest: one cannot be read, is damaged or too large, or there are too many.
    """
    if "@" not in text:
        return ()
    known = pictures_read(text)
    paths = [path for path in mentioned_files(text) if is_picture(path)]
    if len(paths) > MAX_PICTURES:
        raise InvalidRequest(
            f"The message names {len(paths)} pictures; at most {MAX_PICTURES} are accepted."
        )
    return tuple(read_picture(path) for path in paths if shown_name(path.name) not in known)


def read_picture(path: Path) -> NamedPicture:
    """The picture in a file.

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
    return NamedPicture(name, open_image(data, name=name))


def read_pictures(
    text: str,
    pictures: Sequence[NamedPicture],
    model: ModelInfo,
    reader: PictureReader | None,
    *,
    attached: bool,
    count: Callable[[str], int] = len,
    length: int = 0,
) -> ReadMessage:
    """A message with its pictures, or with their text; waits until they are read.

    Args:
        text: the message.
        pictures: its pictures.
        model: the loaded model.
        reader: reads the text of pictures; None reads none.
        attached: as in `way_for`.
        count, length: as in `with_picture_texts`.

    Raises:
        PravahaError: nothing here can read them, one has no text, or a text is too long for the context.
    """
    way = way_for(model, reader, attached=attached)
    if reader is None or way == "model":
        seen = tuple(ReadPicture(one.name, way) for one in pictures)
        return ReadMessage(text, tuple(one.image for one in pictures), seen)
    waiting = [reader.read(one.image, name=one.name) for one in pictures]
    texts = [one.result() for one in waiting]
    message = with_picture_texts(
        text, pictures, texts, small=model.is_small, count=count, length=length
    )
    read = (ReadPicture(one.name, way, found) for one, found in zip(pictures, texts, strict=True))
    return ReadMessage(message, (), tuple(read))


def with_picture_texts(
    text: str,
    pictures: Sequence[NamedPicture],
    texts: Sequence[str],
    *,
    small: bool,
    count: Callable[[str], int] = len,
    length: int = 0,
) -> str:
    """A message with what OCR has found in its pictures, as quoted data behind it.

    Args:
        text: the message.
        pictures: its pictures.
        texts: what was found in each.
        small: whether a small model reads them.
        count: returns the number of tokens of a text.
        length: the context length in tokens; 0 if it is not known.

    Raises:
        InvalidRequest: a text is too long for the context.
    """
    blocks: list[str] = []
    for picture, found in zip(pictures, texts, strict=True):
        check_fits(picture.name, found, count, length)
        blocks.append(picture_text(picture.name, found, small=small))
    return "\n\n".join([text, *blocks])


def way_for(model: ModelInfo, reader: PictureReader | None, *, attached: bool) -> Way:
    """The way for the pictures of a message.

    Args:
        model: the loaded model.
        reader: reads the text of pictures; None reads none.
        attached: whether the model is that of a server, to which messages take no pictures.

    Raises:
        InvalidRequest: there is none; the sentence says what to do.
    """
    ocr = reader is not None and reader.installed
    if attached and model.sees_images and not ocr:
        raise InvalidRequest(
            "Pictures are not sent to an attached server: load the model in this process, or run "
            "`pip install 'pravaha[ocr]'` to have their text read."
        )
    sees = model.sees_images and not attached
    return choose_way(model=model.name, sees_images=sees, ocr=ocr)


def seen_names(text: str, count: int) -> tuple[str, ...]:
    """The names of the pictures that a message was sent with, as it says them; else their number."""
    named = [Path(quoted or word) for quoted, word in mentions(text)]
    names = tuple(shown_name(one.name) for one in named if one.suffix.lower() in SUFFIXES)
    if len(names) == count:
        return names
    return (f"{count} picture{'' if count == 1 else 's'}",)


def build_remark(name: str, way: Way) -> str:
    """How a picture was read, in words."""
    if way == "ocr":
        return f"{name}: its text was read by OCR; the model does not see the picture"
    return f"{name}: the model sees the picture"
