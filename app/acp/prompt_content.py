"""`read_prompt`: what a person has sent: text, images, files and links, as one message.

```
Look at [link to a.py] and fix it.    →    Look at @a.py and fix it.

                                          a.py:
                                          ~~~ … ~~~
```

A file is named as in the screen's chat and its text is appended, so that both show the conversation alike.
Its text comes from the editor if that has it, otherwise from the disk.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from app.slash.attachments import MAX_FILES, is_image, mention
from app.slash.images import NamedImage, read_image
from app.slash.mentions import mentioned_words, spellings
from engine.api.errors import InvalidRequest
from engine.retrieval.parsing.attached_text import attached_text
from engine.retrieval.parsing.document_reader import MAX_TEXT_BYTES, DocumentReader, FileText
from engine.vision.opening import MAX_IMAGES, open_image

EditorText = Callable[[Path], Awaitable[str | None]]
"""The text of a file in the editor; None if it has none."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message.

    Attributes:
        typed: what the person wrote, with the names of files.
        files: the files that it names.
        images: its images.
    """

    typed: str
    files: tuple[FileText, ...] = ()
    images: tuple[NamedImage, ...] = ()

    @property
    def text(self) -> str:
        """The message with the texts of its files."""
        return "\n\n".join([self.typed, *map(attached_text, self.files)])


async def read_prompt(
    blocks: Sequence[Any],
    folder: Path,
    documents: DocumentReader,
    editor_text: EditorText,
) -> Prompt:
    """The message in the content of a prompt.

    Args:
        blocks: the content.
        folder: of the session, to which names are relative.
        documents: reads files of the disk.
        editor_text: reads those of the editor.

    Raises:
        InvalidRequest: it has content that is not read, or a file that cannot be.
    """
    reading = _Reading(folder, documents, editor_text)
    for block in blocks:
        await reading.add(block)
    await reading.add_typed_names()
    return reading.prompt()


class _Reading:
    def __init__(self, folder: Path, documents: DocumentReader, editor_text: EditorText) -> None:
        self._folder = folder
        self._documents = documents
        self._editor_text = editor_text
        self._words: list[str] = []
        self._files: dict[str, FileText] = {}
        self._images: list[NamedImage] = []

    def prompt(self) -> Prompt:
        if len(self._files) > MAX_FILES:
            raise InvalidRequest(f"The message has {len(self._files)} files; at most {MAX_FILES}.")
        if len(self._images) > MAX_IMAGES:
            raise InvalidRequest(
                f"The message has {len(self._images)} images; at most {MAX_IMAGES}."
            )
        return Prompt("".join(self._words), tuple(self._files.values()), tuple(self._images))

    async def add(self, block: Any) -> None:
        match block:
            case TextContentBlock(text=text):
                self._words.append(text)
            case ImageContentBlock(data=data, uri=uri):
                name = Path(unquote(urlsplit(uri).path)).name if uri else ""
                name = name or f"image {len(self._images) + 1}"
                self._images.append(NamedImage(name, open_image(_decoded(data, name), name=name)))
            case AudioContentBlock():
                raise InvalidRequest("The message has audio, which no model here understands.")
            case ResourceContentBlock(uri=uri, name=name):
                await self._add_link(uri, name)
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as blob):
                await self._add_blob(blob)
            case EmbeddedResourceContentBlock(resource=resource):
                self._add_file(self._name(resource.uri), resource.text)
            case _:
                raise InvalidRequest(f"The message has content of the type {block.type!r:.40}.")

    async def _add_link(self, uri: str, name: str) -> None:
        path = _path_of(uri)
        if path is None:
            self._words.append(f"[{name}]({uri})")
            return
        shown = self._shown(path)
        try:
            is_folder, is_picture = path.is_dir(), path.is_file() and is_image(path)
        except OSError as error:  # a name that no file can have
            raise InvalidRequest(f"There is no file {shown:.200}.") from error
        self._words.append(mention(shown))
        if is_picture:
            self._images.append(await asyncio.to_thread(read_image, path))
        elif not is_folder:
            self._files[shown] = await self._read(path, shown)

    async def _add_blob(self, blob: BlobResourceContents) -> None:
        name = self._name(blob.uri)
        data = _decoded(blob.blob, name)
        self._words.append(mention(name))
        if (blob.mime_type or "").startswith("image/"):
            self._images.append(NamedImage(name, open_image(data, name=name)))
        else:
            read = self._documents.read_bytes(Path(name).name, data)
            self._files[name] = await asyncio.wrap_future(read)

    def _add_file(self, name: str, text: str) -> None:
        self._words.append(mention(name))
        if text.strip():
            self._files[name] = FileText(Path(name).name, text)

    async def add_typed_names(self) -> None:
        """Read the files that the person has named after an `@`."""
        for _, _, word, _ in mentioned_words("".join(self._words)):
            for name in spellings(word):
                path = _file_named(self._folder, name)
                if path is None:
                    continue
                shown = self._shown(path)
                if shown in self._files or any(one.name == path.name for one in self._images):
                    break
                if is_image(path):
                    self._images.append(await asyncio.to_thread(read_image, path))
                else:
                    self._files[shown] = await self._read(path, shown)
                break

    async def _read(self, path: Path, shown: str) -> FileText:
        text = await self._editor_text(path)
        if text is not None and text.strip():
            if len(text) > MAX_TEXT_BYTES:
                raise InvalidRequest(f"{shown} is longer than {MAX_TEXT_BYTES // 1024**2} MiB.")
            return FileText(path.name, text)
        return await asyncio.wrap_future(self._documents.read(path))

    def _name(self, uri: str) -> str:
        path = _path_of(uri)
        return uri if path is None else self._shown(path)

    def _shown(self, path: Path) -> str:
        """The path within the session's folder, or the whole one."""
        try:
            return str(path.relative_to(self._folder)) or "."
        except ValueError:
            return str(path)


def _path_of(uri: str) -> Path | None:
    """The path of a file's URI, whose fragment (lines) is left out; None of another one."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme == "" and parts.path.startswith("/"):
        return Path(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return Path(path) if path.startswith("/") and "\0" not in path else None


def _file_named(folder: Path, name: str) -> Path | None:
    try:
        path = folder / Path(name).expanduser()
        return path if name and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _decoded(data: str, name: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest(f"{name} is no base64.") from error
