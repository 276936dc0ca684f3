"""Text files in a message: `@path` names one, and on sending its text is appended in a fenced block."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from engine.api.errors import InvalidRequest

MAX_BYTES = 4 * 1024 * 1024
"""Largest file that is read to count its tokens."""
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]\S*))')
_OPEN = re.compile(r'(?<!\S)@"?([^\s"]*)$')
_MAX_NAMES = 200


def mention(path: str) -> str:
    """The text that names a file in a message."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def attach_files(text: str, *, count: Callable[[str], int], length: int) -> str:
    """The message with the text of every file that it names; names of no file stay as they are.

    Args:
        text: the message.
        count: returns the number of tokens of a text.
        length: the context length in tokens; 0 if it is not known yet.

    Raises:
        InvalidRequest: a file cannot be read, is not text, or is too large for the context.
    """
    blocks: list[str] = []
    for quoted, word in dict.fromkeys(_MENTION.findall(text)):
        path = Path(quoted or word).expanduser()
        try:
            found = path.is_file()
        except (OSError, ValueError):
            found = False
        if found:
            blocks.append(_block(path, count, length))
        elif quoted:
            raise InvalidRequest(f"There is no file {path}.")
    return "\n\n".join([text, *blocks])


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
    tokens = count(text)
    if length and tokens >= length:
        raise InvalidRequest(
            f"{path.name} has {tokens} tokens, and the context length is {length}: attach a part of it."
        )
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
