"""Passages and citations as they are stored with messages: JSON in the conversation database.

What is read may have been written by another version, or imported from a file of somebody else. An entry
that is not valid is left out.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage that a message was given.

    Attributes:
        n: its number in the prompt, by which the answer cites it.
        collection: the name of its collection.
        chunk_id: the chunk in the collection's database.
        file: absolute path of the document.
        title: the document's own title; empty without one.
        start: byte offset of `text`.
        end: byte offset behind it.
        spans_of: whether offsets refer to the file or to its extracted text.
        text: what the model read.
        tokens: its length in tokens of the embedding model.
        headings: the titles of the sections around it, outermost first.
        page: the page on which it begins, from 1; None without pages.
        line: the line on which it begins, from 1.
        rank: position in the result, from 1.
        score: what the result was ordered by.
        prompt_end: number of characters of the context up to the end of the passage.
        bridge: the name in another passage that led to this one; empty if the question did.
        link: the characters of `text`, half-open, by which it is in the chain of passages that support an
            answer together, which are in the order of their numbers; None if it is in none.
    """

    n: int
    collection: str
    chunk_id: int
    file: str
    title: str
    start: int
    end: int
    spans_of: Literal["file", "text"]
    text: str
    tokens: int
    headings: tuple[str, ...]
    page: int | None
    line: int
    rank: int
    score: float
    prompt_end: int
    bridge: str = ""
    link: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class StoredCitation:
    """One citation of an answer after its check.

    Attributes:
        n: the number of the passage.
        supported: whether the passage supports the sentence; if not, the citation is shown as dropped.
        start: byte offset of the words that support it, as in the passage; that of the passage if no
            particular words do.
        end: byte offset behind them.
    """

    n: int
    supported: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FoundFor:
    """What was found for a message, beside the passages.

    Attributes:
        names: the collections that were attached: no words of the question.
        declined: why the passages are taken not to answer it, in one sentence; empty if they are not.
    """

    names: tuple[str, ...] = ()
    declined: str = ""


def dump_passages(passages: Sequence[StoredPassage], found: FoundFor = FoundFor()) -> str:
    """The JSON of passages: a list, with what else was found as an entry of its own before them."""
    entries = [asdict(one) for one in passages]
    return _dump(entries if found == FoundFor() else [asdict(found), *entries])


def load_passages(text: str | None) -> tuple[StoredPassage, ...]:
    """The valid passages of a JSON text."""
    return tuple(one for one in map(_passage, _entries(text)) if one is not None)


def load_found_for(text: str | None) -> FoundFor:
    """What else was found, of a JSON text of passages."""
    for entry in _entries(text)[:1]:
        if isinstance(entry, dict) and isinstance(entry.get("names"), list):
            return FoundFor(tuple(map(str, entry["names"])), str(entry.get("declined") or ""))
    return FoundFor()


def dump_citations(citations: Sequence[StoredCitation]) -> str:
    """The JSON of citations."""
    return _dump([asdict(one) for one in citations])


def load_citations(text: str | None) -> tuple[StoredCitation, ...]:
    """The valid citations of a JSON text, in the order of the answer."""
    return tuple(one for one in map(_citation, _entries(text)) if one is not None)


def _dump(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def _entries(text: str | None) -> list[Any]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _passage(entry: Any) -> StoredPassage | None:
    try:
        spans_of = entry["spans_of"]
        if spans_of not in ("file", "text"):
            return None
        return StoredPassage(
            n=_integer(entry["n"]),
            collection=str(entry["collection"]),
            chunk_id=_integer(entry["chunk_id"]),
            file=str(entry["file"]),
            title=str(entry["title"]),
            start=_integer(entry["start"]),
            end=_integer(entry["end"]),
            spans_of=spans_of,
            text=str(entry["text"]),
            tokens=_integer(entry["tokens"]),
            headings=tuple(map(str, entry["headings"])),
            page=None if entry["page"] is None else _integer(entry["page"]),
            line=_integer(entry["line"]),
            rank=_integer(entry["rank"]),
            score=float(entry["score"]),
            prompt_end=_integer(entry["prompt_end"]),
            bridge=str(entry.get("bridge", "")),
            link=_span(entry.get("link")),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _citation(entry: Any) -> StoredCitation | None:
    try:
        return StoredCitation(
            n=_integer(entry["n"]),
            supported=bool(entry["supported"]),
            start=_integer(entry["start"]),
            end=_integer(entry["end"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _span(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    start, end = value
    return _integer(start), _integer(end)


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a natural number")
    return value
