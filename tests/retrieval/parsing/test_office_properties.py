"""Properties of every Word document, not of chosen ones, and damaged files of each format."""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.office_cases import (
    Case,
    cell,
    docx,
    open_document_cases,
    par,
    row,
    run,
    slide_cases,
    table,
    word_cases,
)
from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.archive import extract_archive
from engine.retrieval.parsing.parsers import extract

from . import samples
from .test_fuzz import _MUTATIONS, _mutated, _reason

_HIDING = '<w:style w:type="character" w:styleId="C"><w:name w:val="C"/><w:rPr><w:vanish/></w:rPr></w:style>'
_WRAPPERS = ("ins", "moveTo", "hyperlink", "smartTag", "customXml", "sdt", "fldSimple", "bdo")
_REMOVERS = ("del", "moveFrom")


@dataclass
class _Words:
    """Counts words, so that each stands once in a document, and knows which of them a person sees."""

    count: int = 0

    def __post_init__(self) -> None:
        self.seen: list[str] = []
        self.unseen: list[str] = []

    def next(self, *, seen: bool) -> str:
        self.count += 1
        word = f"w{self.count}w"
        (self.seen if seen else self.unseen).append(word)
        return word


def _wrapped(name: str, inside: str) -> str:
    if name == "sdt":
        return f"<w:sdt><w:sdtPr/><w:sdtContent>{inside}</w:sdtContent></w:sdt>"
    return f'<w:{name} w:id="1" w:author="x">{inside}</w:{name}>'


def _runs(draw: st.DrawFn, words: _Words, *, seen: bool) -> str:
    kind = draw(st.sampled_from(("plain", "wrapped", "removed", "hidden", "style", "box", "two")))
    match kind:
        case "wrapped":
            return _wrapped(draw(st.sampled_from(_WRAPPERS)), _runs(draw, words, seen=seen))
        case "removed":
            return _wrapped(draw(st.sampled_from(_REMOVERS)), run(words.next(seen=False)))
        case "hidden":
            return run(words.next(seen=False), "<w:vanish/>")
        case "style":
            return run(words.next(seen=False), '<w:rStyle w:val="C"/>')
        case "two":
            return _runs(draw, words, seen=seen) + run(" ") + _runs(draw, words, seen=seen)
    return run(words.next(seen=seen) + " ")


def _block(draw: st.DrawFn, words: _Words, depth: int, *, seen: bool) -> str:
    if depth == 0 or draw(st.booleans()):
        return par(*(_runs(draw, words, seen=seen) for _ in range(draw(st.integers(1, 3)))))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        kept = draw(st.booleans())
        properties = "" if kept else draw(st.sampled_from(("<w:hidden/>", '<w:del w:id="1"/>')))
        cells = [
            cell(_block(draw, words, depth - 1, seen=seen and kept))
            for _ in range(draw(st.integers(1, 3)))
        ]
        rows.append(row(*cells, properties=properties))
    return table(*rows)


@st.composite
def _documents(draw: st.DrawFn) -> tuple[bytes, _Words]:
    words = _Words()
    blocks = [_block(draw, words, 2, seen=True) for _ in range(draw(st.integers(1, 4)))]
    return docx("".join(blocks), _HIDING), words


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=_documents())
def test_every_word_that_is_seen_stands_once_and_in_order(document: tuple[bytes, _Words]) -> None:
    data, words = document
    text = extract_archive(data, 1 << 20).text
    assert [one for one in text.replace(",", " ").replace(";", " ").split() if one != "|"] == (
        words.seen
    )


_CASES = [*word_cases(), *slide_cases(), *open_document_cases()]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    case=st.sampled_from(_CASES),
    which=st.integers(0, 100),
    mutations=_MUTATIONS,
    swap=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_damaged_parts(
    case: Case, which: int, mutations: list[tuple[float, str, bytes]], swap: tuple[float, float]
) -> None:
    """A part with other bytes, or, so that it is still XML, with one element in place of another."""
    parts = samples.unzipped(case.data)
    name = sorted(parts)[which % len(parts)]
    part = parts[name]
    parts[name] = _mutated(part, mutations)
    _readable_or_refused(samples.zipped(dict(parts)))
    tags = part.split(b"<")
    first, second = (int(share * (len(tags) - 1)) for share in swap)
    tags[first], tags[second] = tags[second], tags[first]
    parts[name] = b"<".join(tags)
    _readable_or_refused(samples.zipped(dict(parts)))


def _readable_or_refused(data: bytes) -> None:
    reason = _reason(lambda: extract("zip", data, 1 << 20).text.encode())
    assert not reason or (reason.endswith(".") and "\n" not in reason)


@pytest.mark.parametrize("case", _CASES[::9], ids=lambda case: f"{case.kind}: {case.name}")
def test_a_file_that_is_cut_is_refused(case: Case) -> None:
    for share in (0.2, 0.6, 0.95):
        with pytest.raises(Unreadable):
            extract("zip", case.data[: int(share * len(case.data))], 1 << 20)


def test_deep_nesting_needs_no_stack() -> None:
    deep = 20_000
    tags = ("w:ins", "w:sdt", "w:p", "w:tbl", "w:tr", "w:tc", "w:txbxContent")
    body = "".join(f"<{tag}>" for tag in tags) * deep
    body += "<w:r><w:t>x</w:t></w:r>" + "".join(f"</{tag}>" for tag in reversed(tags)) * deep
    assert extract_archive(docx(body), 1 << 20).text.strip() == "x"
