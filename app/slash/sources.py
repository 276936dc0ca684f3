"""`/sources`: its argument, and `@NAME`, which attaches a collection of documents to the branch."""

import difflib
import math
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from app.slash.attachments import split_attached
from app.slash.document_attributes import read_attribute, read_conditions
from app.slash.mentions import collection_names
from app.slash.names import beginning_with
from engine.api.errors import InvalidRequest
from engine.retrieval.api.passage import AttributeValue

Action = Literal[
    "create",
    "add",
    "refresh",
    "watch",
    "unwatch",
    "attach",
    "detach",
    "remove",
    "show",
    "evidence",
    "stop",
]
USAGE = (
    "/sources takes nothing, create NAME, add NAME PATH… [--exclude PATTERN] [--attribute KEY=VALUE], "
    "refresh, watch, unwatch or detach NAME, attach NAME [KEY=VALUE…], remove NAME [PATH], show N, "
    "evidence [X] or stop."
)
_COUNTS: dict[str, tuple[int, int | None]] = {
    "add": (2, None), "attach": (1, None), "remove": (1, 2), "evidence": (0, 1), "stop": (0, 0),
}  # fmt: skip
"""The least and the largest number of words behind an action; of the others it is one."""
NAMING: frozenset[Action | None] = frozenset(
    ("refresh", "watch", "unwatch", "attach", "detach", "remove")
)
"""The actions on a collection that there is, for which the beginning of only one name stands."""
_JOINT = re.compile(r"[ \t]*(?:,|&|\b(?:and|or|und|oder|et|y)\b)?[ \t]*")
"""Stands between neighbouring names, which are replaced as one."""
_PREPOSITION = re.compile(
    r"\b(?:in|from|of|to|by|with|within|using|about|at|on|and|or|per|via|through|into|against|see|search|read|use|"
    r"aus|im|von|mit|nach|laut|dans|de|en|selon)[ \t]+\Z",
    re.IGNORECASE,
)
_OPENS = re.compile(r"(?:\A|\n|[.!?:;,(])[ \t]*\Z")
_CLOSES = re.compile(r"[ \t]*(?:\Z|\n|[.!?:;,)])")
_VOCATIVE = re.compile(r"[ \t]*[,:;][ \t]*|[ \t]+")
_NEAR = 0.7
"""How similar a word must be to the name of a collection to be taken for it, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class SourcesCall:
    """What `/sources` is asked to do.

    Attributes:
        action: None lists the collections.
        name: the collection; for `show`, the number of a citation; for `evidence`, its number, or empty.
        paths: files and folders.
        exclude: patterns of files in these folders that are left out.
        attributes: of the documents that are added.
        conditions: which documents of the attached collection are searched, such as `year>=2025`.
    """

    action: Action | None = None
    name: str = ""
    paths: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()


def read_sources(argument: str) -> SourcesCall:
    """The call in the argument of `/sources`. Paths with spaces are written in quotes.

    Raises:
        InvalidRequest: it has another form.
    """
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise InvalidRequest(f"A quote in the paths is not closed. {USAGE}") from error
    if not words:
        return SourcesCall()
    action, *rest = words
    beginning = beginning_with(action, get_args(Action))
    if len(beginning) == 1:
        action = beginning[0]
    if action not in get_args(Action):
        raise InvalidRequest(USAGE)
    exclude: list[str] = []
    attributes: list[str] = []
    if action == "add":
        exclude, rest = _option("--exclude", rest)
        attributes, rest = _option("--attribute", rest)
        unknown = next((one for one in rest[1:] if one.startswith("--")), None)
        if unknown is not None:
            raise InvalidRequest(f"/sources add has no option {unknown}. {USAGE}")
    least, most = _COUNTS.get(action, (1, 1))
    if len(rest) < least or (most is not None and len(rest) > most):
        raise InvalidRequest(USAGE)
    if action == "show" and not rest[0].isdecimal():
        raise InvalidRequest("/sources show takes the number of a citation of the last answer.")
    name = rest[0] if rest else ""
    if action == "attach":
        conditions = tuple(rest[1:])
        read_conditions(conditions)
        return SourcesCall("attach", name, conditions=conditions)
    paths = tuple(os.path.expanduser(one) for one in rest[1:])
    return SourcesCall(
        action,  # type: ignore[arg-type]  # it is one of them
        name,
        paths,
        tuple(exclude),
        dict(map(read_attribute, attributes)),
    )


def read_evidence(word: str) -> float:
    """The number behind `/sources evidence`.

    Raises:
        InvalidRequest: it is none, or out of range.
    """
    try:
        number = float(word.replace(",", "."))
    except ValueError:
        number = math.nan
    if not -1 <= number <= 1:
        raise InvalidRequest(
            "/sources evidence takes a number from 0 to 1, or -1 to have every question answered."
        )
    return number


def _option(name: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values of an option, `--name VALUE` or `--name=VALUE`, and the other words."""
    values: list[str] = []
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == name:
            value = next(rest, None)
            if value is None:
                raise InvalidRequest(f"{name} lacks its value. {USAGE}")
            values.append(value)
        elif word.startswith(f"{name}="):
            values.append(word.partition("=")[2])
        else:
            others.append(word)
    return values, others


def mentioned(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The collections that a message names, in order. A name that is also a file stands for the file."""
    return tuple(one for one in _words(text) if one in names and not _is_file(one))


def near_misses(text: str, names: Collection[str]) -> dict[str, str]:
    """Words after an `@` that are neither a collection nor a file, with the collection that is meant."""
    found: dict[str, str] = {}
    for word in _words(text):
        near = difflib.get_close_matches(word, names, 1, _NEAR)
        if word not in names and near and not _is_file(word):
            found[word] = near[0]
    return found


def unknown_mentions(text: str) -> tuple[str, ...]:
    """The words after an `@` that could be collections: none of them is a file."""
    return tuple(one for one in _words(text) if not _is_file(one))


def _words(text: str) -> tuple[str, ...]:
    """The words that can name collections, in order, each once."""
    return tuple(dict.fromkeys(name for *_, name in collection_names(text)))


def asked_text(text: str, names: Collection[str]) -> str:
    """A message as a model reads it: the names of these collections are no part of what is asked.

    At the beginning or the end of a line, and between punctuation, a name is left out, unless a preposition
    is before it. Elsewhere a sentence needs words in its place: "the documents". The name of an attached
    file stays.
    """
    pieces: list[str] = []
    at = 0
    for start, end in _spans(text, names):
        before, after = text[at:start], text[end:]
        in_sentence = _PREPOSITION.search(before) or not (
            _OPENS.search(before) or (_CLOSES.match(after) and at + len(before) > 0)
        )
        # "Who is it, @docs?" loses its comma, too.
        pieces.append(before if in_sentence else before.rstrip(" \t,"))
        at = end
        if in_sentence:
            pieces.append("the documents")
        elif not before.strip() or before.endswith("\n"):
            skipped = _VOCATIVE.match(text, at)
            at = skipped.end() if skipped else at
    pieces.append(text[at:])
    return "".join(pieces).strip() if at else text


def _spans(text: str, names: Collection[str]) -> list[tuple[int, int]]:
    """Start and end of each run of neighbouring names that are all of these collections."""
    files = {one.name for one in split_attached(text)[1]}
    runs: list[tuple[int, int, bool]] = []
    for start, end, name in collection_names(text):
        is_known = name in names and name not in files
        if runs and _JOINT.fullmatch(text, runs[-1][1], start):
            begin, _, were_known = runs.pop()
            runs.append((begin, end, were_known and is_known))
        else:
            runs.append((start, end, is_known))
    return [(start, end) for start, end, is_known in runs if is_known]


def without_mentions(text: str, names: Collection[str]) -> str:
    """The message without the names of these collections."""
    for start, end, name in reversed(collection_names(text)):
        if name in names:
            text = text[:start] + text[end:]
    return text.strip()


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:
        return False
