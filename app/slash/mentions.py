"""Names after `@` in a message: which are meant, and which nobody knows.

A name stands for an agent or pipeline (at the beginning of a message only), a collection of documents, or a
file. What is no name: an `@` within a word, as in an e-mail address; code in backticks or a fence; a
decorator on a line of its own; the text of attached files.

A name that nobody knows is a mistake if the message begins with it, if it looks like the path of a file, or
if a known name is very near. Everything else is prose, such as `thanks to @somebody`, and is sent.
"""

import re
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path

from app.slash.names import beginning_with, did_you_mean, either, near_names
from app.text.safe_text import safe_line
from engine.retrieval.answering.image_text import own_words
from engine.retrieval.parsing.languages import language_of

_MENTION = re.compile(r"""(?<![^\s(\[{,"'“‘„])@(?:"([^"\n]+)"|((?:(?!,@)[^\s"])+))""")
"""A name after `@`: in quotes, or a word."""
DOCUMENT_SUFFIXES = frozenset((
    ".txt", ".md", ".rst", ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".html", ".htm", ".pdf",
    ".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp", ".epub", ".eml", ".ipynb", ".toml", ".yaml",
    ".yml", ".ini", ".cfg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tiff", ".svg", ".zip",
    ".gz",
))  # fmt: skip
"""Of names that are those of files, even if there is none."""

_CODE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?P<ticks>`+)(?!`)[^\n]{1,1000}?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_DECORATOR = re.compile(r"^[ \t]*@[A-Za-z_][\w.]*(?:\([^\n]*\))?[ \t]*$", re.MULTILINE)
_OPEN_QUOTE = re.compile(r"(?<![^\s(\[{])@\"[^\"\n]+(?:\n|\Z)")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_COLLECTION = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\.*[?!,;:)\]}'’”…].*|\.*)", re.DOTALL)
"""A word that can name a collection, with what is behind the name; `a.md` names a file."""
_QUOTES = "\"'“‘„"
_CLOSING = ".,;:!?)]}'’”…"
_BEHIND_NAME = re.compile(r"[:#,;'’…—–)\]}]")
_MOST_CUTS = 8
_NEAR_IN_PROSE = 0.8
"""How similar a word within a message must be to a name to be taken for a mistake."""
_NEAR_PATH = 0.65
"""The same for a word behind an agent's name and a name in the folder."""
_MOST_PATHS = 16
"""Words behind an agent's name from which on they are a task."""
_MOST_ENTRIES = 2_000
MAX_MENTIONS = 500
"""Further ones are text: each may be looked for on the disk."""
MIN_PREFIX = 3
"""Letters of a name within a message from which on its beginning stands for it."""


def mentioned_words(text: str) -> list[tuple[int, int, str, bool]]:
    """Start and end of each name behind its `@` in a message's own words, the name, and whether it is quoted.

    A point or comma behind a word is part of it; `trimmed` takes it away.
    """
    found = islice(_MENTION.finditer(without_code(text)), MAX_MENTIONS) if "@" in text else ()
    return [
        (one.start(1 if one[1] else 2), one.end(), one[1] or one[2], bool(one[1])) for one in found
    ]


def collection_names(text: str) -> list[tuple[int, int, str]]:
    """The words behind an `@` that can name a collection: start of the `@`, end of the name, and the name."""
    found = []
    for start, end, word, quoted in mentioned_words(text):
        if match := _COLLECTION.fullmatch(word):
            at = text.rfind("@", 0, start)
            found.append((at, end if quoted else start + match.end(1), match[1]))
    return found


def without_code(text: str) -> str:
    """A message with blanks in place of code and of texts that others wrote; every offset stays."""
    spaced = list(text)
    for one in _CODE.finditer(text):
        _blank(spaced, one.start(), one.end())
    own = own_words(text)
    if own != text:  # the texts of files and images come last: they begin where the own words end
        start = len(own.rstrip())
        if text[:start] == own[:start]:
            _blank(spaced, start, len(text))
    return "".join(spaced)


def trimmed(word: str) -> str:
    """A word without the punctuation behind it."""
    return word.rstrip(_CLOSING)


def spellings(word: str) -> tuple[str, ...]:
    """What a word may name, the longest first: itself, and it without what is behind the name.

    That is punctuation, a line (`notes.md:12`, `notes.md#L3`), a further name, or the `'s` of a genitive.
    """
    cuts = list(islice(_BEHIND_NAME.finditer(word), _MOST_CUTS))
    return (word, trimmed(word), *(word[: one.start()] for one in reversed(cuts) if one.start()))


def path_of(word: str) -> Path | None:
    """The file or folder that a word names; of a word with more behind the name a file. None for none."""
    whole = (word, trimmed(word))
    for one in dict.fromkeys(spellings(word)):
        try:
            path = Path(one).expanduser()
            if one and (path.exists() if one in whole else path.is_file()):
                return path
        except (OSError, ValueError, RuntimeError):
            continue
    return None


def with_whole_names(text: str, agents: Collection[str], collections: Collection[str]) -> str:
    """The message with the whole name in place of the beginning of only one.

    Within a message, beginnings of at least `MIN_PREFIX` letters stand for a collection.
    """
    for start, _, word, quoted in reversed(mentioned_words(text)):
        name = trimmed(word)
        first = _is_first(text, start)
        known = [*agents, *collections] if first else list(collections)
        if quoted or not _NAME.fullmatch(name) or (not first and len(name) < MIN_PREFIX):
            continue
        found = beginning_with(name, known)
        if len(found) == 1 and not _is_decorator(text, start) and path_of(word) is None:
            text = text[:start] + found[0] + text[start + len(name) :]
    return text


def unknown_name(text: str, agents: Collection[str], collections: Collection[str]) -> str:
    """Why a message is probably not what was meant, in one or two sentences; empty if nothing is wrong.

    Reads folders, for the names of files that are near. May block.
    """
    if "@" in text and _OPEN_QUOTE.search(without_code(text)):
        return "The quote behind an @ is not closed."
    for start, _, word, quoted in mentioned_words(text):
        if problem := _problem(text, start, word, quoted, agents, collections):
            return problem
    return ""


def _problem(
    text: str,
    start: int,
    word: str,
    quoted: bool,
    agents: Collection[str],
    collections: Collection[str],
) -> str:
    name = word if quoted else trimmed(word)
    first = _is_first(text, start)
    if not name or "@" in name or _is_decorator(text, start):
        return ""
    if first and name in agents:
        return _unknown_path(text[start + len(name) :])
    if name in collections:
        return ""
    path = path_of(word)
    if path is not None:
        if path.is_dir() and (first or "/" in name):
            return f"{safe_line(name)} is a folder: name its files, or add it to a collection with /sources."
        return ""
    if quoted or _looks_like_file(name):
        return _no_file(name)
    if not _NAME.fullmatch(name):
        return ""  # code, such as `@app.route("/")`
    known = [*agents, *collections] if first else list(collections)
    if not first and text[start - 2] in _QUOTES:
        return ""  # somebody else's words, or a key of JSON such as "@type"
    several = beginning_with(name, known)
    if len(several) > 1 and (first or len(name) >= MIN_PREFIX):
        return f"@{name} begins several names: {either(several)}."
    if first:
        near = near_names(name, [*known, *_beside(name)])
        what = "agent, collection or file" if agents else "collection or file"
        return f"There is no {what} {name}. {did_you_mean(near)}".rstrip()
    near = [
        one
        for one in near_names(name, collections, 1, near=_NEAR_IN_PROSE, parts=False)
        if one.casefold() != name.casefold()
    ]
    return f"There is no collection {name}. {did_you_mean(near)}" if near else ""


def _is_first(text: str, start: int) -> bool:
    """Whether the name at `start` is the first word of the message."""
    return not text[:start].strip().strip('@"')


def _is_decorator(text: str, start: int) -> bool:
    """Whether the line is `@name` or `@name(…)` alone, in a text of several lines."""
    if "\n" not in text.strip():
        return False
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return _DECORATOR.fullmatch(text[begin : len(text) if end < 0 else end]) is not None


def _looks_like_file(name: str) -> bool:
    if "://" in name:
        return False
    folder, slash, last = name.rpartition("/")
    dot = last.rfind(".")
    suffix = last[dot:].lower() if dot >= 0 else ""
    if suffix in DOCUMENT_SUFFIXES or (dot > 0 and language_of(last, "") is not None):
        return True
    try:
        return bool(slash) and (name[0] in "~./" or Path(folder).expanduser().is_dir())
    except (OSError, ValueError, RuntimeError):
        return False


def _no_file(name: str) -> str:
    return f"There is no file {safe_line(name)}. {did_you_mean(near_files(name))}".rstrip()


def near_files(name: str) -> list[str]:
    """Paths in the same folder whose names are near to that of a path that does not exist."""
    folder, slash, last = name.rpartition("/")
    return [f"{folder}{slash}{one}" for one in near_names(last, _beside(name))]


def _beside(name: str) -> Iterable[str]:
    """The names in the folder of a path, as far as they are not hidden."""
    folder = name.rpartition("/")[0]
    names: list[str] = []
    try:
        for at, entry in enumerate(
            Path(folder or ("/" if name[:1] == "/" else ".")).expanduser().iterdir()
        ):
            if at == _MOST_ENTRIES:
                break
            names.append(entry.name)
    except (OSError, ValueError, RuntimeError):
        return []
    return [one for one in names if one[0] != "." or name.rpartition("/")[2][:1] == "."]


def _unknown_path(rest: str) -> str:
    """Why a word behind an agent's name is probably a mistyped path; empty if none is.

    It is one if it looks like a file, or if it is the only word that is no path and a name is near. Several
    other words are a task.
    """
    words = rest.strip().partition(": ")[0].removesuffix(":").split()
    unknown = [word for word in words[:_MOST_PATHS] if path_of(word) is None]
    if not unknown or len(words) > _MOST_PATHS:
        return ""
    word = unknown[0]
    is_near = (
        len(unknown) == 1
        and len(word) >= MIN_PREFIX
        and near_names(word, _beside(word), 1, near=_NEAR_PATH, parts=False)
    )
    if not is_near and not _looks_like_file(word):
        return ""
    near = did_you_mean(near_files(word))
    return f"There is no file or folder {safe_line(word)}. {near}".rstrip()


def _blank(letters: list[str], start: int, end: int) -> None:
    letters[start:end] = [one if one == "\n" else " " for one in letters[start:end]]
