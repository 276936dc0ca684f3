"""Files in a message: `@path` names one, and on sending its text is appended in a fenced block.

The text comes from `DocumentReader`, so that every format of the collections can be attached. Images are
named in the same way and read elsewhere (`app.slash.images`).

```
What is the rent? @lease.pdf

lease.pdf (12 pages):
~~~
…
~~~
```
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.slash.mentions import mentioned_words, near_files, path_of, spellings
from app.slash.names import did_you_mean
from app.text.safe_text import safe_line
from engine.api.errors import InvalidRequest
from engine.retrieval.parsing.attached_text import attached_text
from engine.retrieval.parsing.document_reader import FileText
from engine.vision.opening import image_type

SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
"""Of the names of images."""
MAX_FILES = 32
"""Files that a message may name."""

_BLOCK = re.compile(
    r"\n\n(?P<name>[^\n]+?)(?: \((?P<pages>\d+) pages?\))?:\n(?P<fence>`{3,})\n(?P<text>.*?)\n(?P=fence)"
    r"(?=\n\n|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class AttachedText:
    """A file in a message that was sent.

    Attributes:
        name: of the file.
        text: its text.
        pages: number of its pages; 0 if it has none.
    """

    name: str
    text: str
    pages: int = 0


def mention(path: str) -> str:
    """The text that names a file in a message."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def attach_files(text: str, files: Mapping[Path, FileText]) -> str:
    """The message with the text of every file that it names; names of no file stay as they are.

    Args:
        text: the message.
        files: the texts of its `unread_files`, in their order.
    """
    return "\n\n".join([text, *map(attached_text, files.values())])


def with_texts_of(text: str, before: str) -> str:
    """A changed message with the texts of those attached files that it still names.

    Args:
        text: the changed message, as it was typed.
        before: the message that was sent, with its attached files.
    """
    words = mentions(text)
    names = {Path(word).name for one in words for word in spellings(one)}
    kept = [
        attached_text(FileText(one.name, one.text, one.pages))
        for one in split_attached(before)[1]
        if one.name in names
    ]
    return "\n\n".join([text, *kept])


def unread_files(text: str) -> list[Path]:
    """The files that a message names, but for images, and for files whose text the message has already.

    Such a message is one that was edited, or taken back.

    Raises:
        InvalidRequest: a name in quotes is that of no file, or there are too many.
    """
    paths = [path for path in mentioned_files(text) if not is_image(path)]
    attached = {one.name for one in split_attached(text)[1]} if paths else set()
    if len(paths) > MAX_FILES:
        raise InvalidRequest(f"The message names {len(paths)} files; at most {MAX_FILES} are read.")
    return [path for path in paths if path.name not in attached]


def mentioned_files(text: str) -> list[Path]:
    """The files that a message names in its own words, in order, each once; not those in attached texts.

    Raises:
        InvalidRequest: a name in quotes is that of no file.
    """
    paths: list[Path] = []
    for _, _, word, quoted in mentioned_words(text):
        path = path_of(word)
        if path is not None and path.is_file():
            paths.append(path)
        elif quoted:
            hint = did_you_mean(near_files(word))
            raise InvalidRequest(f"There is no file {safe_line(word)}. {hint}".rstrip())
    return list(dict.fromkeys(paths))


def mentions(text: str) -> list[str]:
    """What stands behind `@` in a message's own words, each once."""
    return list(dict.fromkeys(word for _, _, word, _ in mentioned_words(text)))


def split_attached(text: str) -> tuple[str, tuple[AttachedText, ...]]:
    """A message as it was typed, and the files that were attached to it.

    What the user has written in the form of an attached file is no file, because no `@` names it.
    """
    if not text.endswith("```"):  # most messages: the last block is at the end
        return text, ()
    blocks = list(_BLOCK.finditer(text))
    last = len(text)
    found: list[re.Match[str]] = []
    for block in reversed(blocks):
        if block.end() != last:
            break
        found.insert(0, block)
        last = block.start()
    while found:
        typed = text[: found[0].start()]
        words = mentions(typed)
        names = {Path(word).name for one in words for word in spellings(one)}
        if all(block["name"] in names for block in found):
            return typed, tuple(
                AttachedText(block["name"], block["text"], int(block["pages"] or 0))
                for block in found
            )
        del found[0]  # it may be a part of what was typed
    return text, ()


def is_image(path: Path) -> bool:
    """Whether a file is an image, by its content or else by its name."""
    try:
        with path.open("rb") as file:
            return image_type(file.read(12)) is not None or path.suffix.lower() in SUFFIXES
    except OSError:
        return False  # reading it says why


def check_fits(
    name: str, text: str, count: Callable[[str], int], length: int, left: int | None = None
) -> None:
    """Refuse a text that is longer than the context.

    Args:
        name: of the file.
        text: its text.
        count: returns the number of tokens of a text.
        length: the context length in tokens; 0 if it is not known yet.
        left: tokens that the conversation has not used; None if that is not known.

    Raises:
        InvalidRequest: it is.
    """
    if not length:
        return
    tokens = count(text)
    if tokens >= length:
        free = "" if left is None else f", of which {max(left, 0):,} are free"
        raise InvalidRequest(
            f"{name} has {tokens:,} tokens, and the context of the model {length:,}{free}: attach a part of "
            "it, or ask about it with a collection (/sources)."
        )


def check_all_fit(
    files: Sequence[FileText], count: Callable[[str], int], length: int, left: int | None = None
) -> None:
    """`check_fits` for each of several files."""
    for file in files:
        check_fits(file.name, file.text, count, length, left)
