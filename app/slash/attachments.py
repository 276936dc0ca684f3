"""Files in a message: `@path` names one, and on sending its text is appended in a fenced block.

Images are named in the same way and read elsewhere (`app.slash.images`).
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from engine.api.errors import InvalidRequest
from engine.retrieval.answering.image_text import own_words
from engine.vision.opening import image_type

MAX_BYTES = 4 * 1024 * 1024
"""Largest file that is read to count its tokens."""
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]\S*))')
_OPEN = re.compile(r'(?<!\S)@"?([^\s"]*)$')
_MAX_NAMES = 200
SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
"""Of the names of images."""


def mention(path: str) -> str:
    """The text that names a file in a message."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def attach_files(text: str, *, count: Callable[[str], int], length: int) -> str:
    """The message with the text of every file that it names; names of no file stay as they are.

    A file whose text the message has already, as one that is sent again from the history, is not added again.

    Args:
        text: the message.
        count: returns the number of tokens of a text.
        length: the context length in tokens; 0 if it is not known yet.

    Raises:
        InvalidRequest: a file cannot be read, is not text, or is too large for the context.
    """
    blocks = [
        _block(path, count, length)
        for path in mentioned_files(text)
        if not is_image(path) and f"\n{path.name}:\n```" not in text
    ]
    return "\n\n".join([text, *blocks])


def mentioned_files(text: str) -> list[Path]:
    """The files that a message names in its own words, in order, each once; not those in attached texts.

    Raises:
        InvalidRequest: a name in quotes is that of no file.
    """
    paths: list[Path] = []
    for quoted, word in mentions(text):
        path = Path(quoted or word).expanduser()
        try:
            found = path.is_file()
        except (OSError, ValueError):
            found = False
        if found:
            paths.append(path)
        elif quoted:
            raise InvalidRequest(f"There is no file {path}.")
    return paths


def mentions(text: str) -> list[tuple[str, str]]:
    """What stands behind `@` in a message's own words, each once: in quotes, or as a word."""
    return list(dict.fromkeys(_MENTION.findall(own_words(text))))


def is_image(path: Path) -> bool:
    """Whether a file is an image, by its content or else by its name."""
    try:
        with path.open("rb") as file:
            return image_type(file.read(12)) is not None or path.suffix.lower() in SUFFIXES
    except OSError:
        return False  # reading it says why


def check_fits(name: str, text: str, count: Callable[[str], int], length: int) -> None:
    """Refuse a text that is longer than the context; arguments as `attach_files`.

    Raises:
        InvalidRequest: it is.
    """
    tokens = count(text)
    if length and tokens >= length:
        raise InvalidRequest(
            f"{name} has {tokens} tokens, and the context length is {length}: attach a part of it."
        )


def complete_path(text: str) -> list[str]:
    """The texts that complete the file name at the end of a text; folders end with a slash."""
    found = _OPEN.search(text)
    if found is None:
        return []
    typed = found[1]
    folder, _, start = typed.rpartition("/")
    base = Path(f"{folder}/" if "/" in typed else ".").expanduser()
    try:
        with os.scandir(base) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(start) and (start or not entry.name.startswith("."))
            )
    except (OSError, ValueError):
        return []
    before = text[: found.start(1)].removesuffix('"')
    prefix = f"{folder}/" if "/" in typed else ""
    usable = [
        name for name in names[:_MAX_NAMES] if name.isprintable() and not re.search(r'[\s"]', name)
    ]
    return [f"{before}{prefix}{name}" for name in usable]


def _block(path: Path, count: Callable[[str], int], length: int) -> str:
    text = _read(path)
    check_fits(path.name, text, count, length)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{path.name}:\n{fence}\n{text.rstrip()}\n{fence}"


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidRequest(f"{path.name} is larger than {MAX_BYTES // 1024**2} MiB.")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path.name} can't be read: {error.strerror}.") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path.name} is not a text in UTF-8.") from error
    if "\0" in text:
        raise InvalidRequest(f"{path.name} is not a text file.")
    return text
