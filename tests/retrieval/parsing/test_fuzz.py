# ruff: noqa: E501
"""Whatever the bytes are, a parser returns a text or raises `Unreadable`, and its process lives on.

The parsers are called in this process, where an exception of another kind is seen; some mutated files go
through the parser process, too.
"""

import gzip
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.file_type import detect_type
from engine.retrieval.parsing.parser_pool import ParserPool
from engine.retrieval.parsing.parsers import extract

from . import samples
from .conftest import check

_SEEDS = {
    "pdf": samples.pdf(["Some words", "More words"], bookmarks={"More": 1}),
    "html": samples.HTML,
    "mail": samples.MAIL,
    "mailbox": b"From a Mon Jan  1 10:00:00 2024\n" + samples.MAIL.replace(b"\r", b"") + b"\n",
    "page": b"https://example.org/\n" + samples.HTML,
    "notebook": samples.NOTEBOOK,
    "gzip": gzip.compress(b"some words\n" * 20),
    "zip": samples.epub(),
    "code/python": b"class A:\n    def f(self):\n        return 1\n",
    "code/yaml": b"a:\n  - b: 1\n    c: [2, 3]\n",
    "code/json": b'{"a": [1, {"b": null}]}',
}
_ARCHIVES = [samples.xlsx(), samples.pptx(), samples.odt(), samples.epub(), samples.docx("<w:p/>")]
_MUTATIONS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from(["set", "delete", "insert", "repeat"]),
        st.binary(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=6,
)
_SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _mutated(data: bytes, mutations: list[tuple[float, str, bytes]]) -> bytes:
    for share, kind, what in mutations:
        at = int(share * len(data))
        match kind:
            case "set":
                data = data[:at] + what + data[at + len(what) :]
            case "delete":
                data = data[:at] + data[at + 16 * len(what) :]
            case "insert":
                data = data[:at] + what + data[at:]
            case "repeat":
                data = data[:at] + data[max(0, at - 40) :]
    return data


def _reason(action: Callable[[], object]) -> str:
    """Why a file is unreadable; empty if it is not. Any other exception is raised."""
    try:
        action()
    except Unreadable as error:
        return str(error)
    return ""


def _extract(kind: str, data: bytes) -> None:
    reason = _reason(lambda: extract(kind, data, 1 << 20).text.encode())
    assert not reason or (reason.endswith(".") and "\n" not in reason)


@pytest.mark.parametrize("kind", list(_SEEDS))
@_SETTINGS
@given(mutations=_MUTATIONS)
def test_mutated_files(kind: str, mutations: list[tuple[float, str, bytes]]) -> None:
    data = _mutated(_SEEDS[kind], mutations)
    if kind.startswith("code/"):
        data = data.decode("utf-8", "replace").encode()
    _extract(kind, data)


@_SETTINGS
@given(seed=st.sampled_from(_ARCHIVES), mutations=_MUTATIONS)
def test_mutated_archives(seed: bytes, mutations: list[tuple[float, str, bytes]]) -> None:
    _extract("zip", _mutated(seed, mutations))


@_SETTINGS
@given(
    part=st.sampled_from(["word/document.xml", "word/styles.xml", "docProps/core.xml"]),
    mutations=_MUTATIONS,
)
def test_archives_with_mutated_parts(part: str, mutations: list[tuple[float, str, bytes]]) -> None:
    parts: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {samples.W}>{samples.paragraph('x', 'U1')}</w:document>",
        "word/styles.xml": f'<w:styles {samples.W}><w:style w:styleId="U1"><w:name w:val="heading 1"/></w:style>'
        "</w:styles>",
        "docProps/core.xml": "<c><title>t</title></c>",
    }
    parts[part] = _mutated(str(parts[part]).encode(), mutations)
    _extract("zip", samples.zipped(parts))


@_SETTINGS
@given(
    name=st.sampled_from(
        ["a", "a.pdf", "a.html", "a.md", "a.rst", "a.csv", "a.json", "a.eml", "a.py"]
    ),
    data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)),
)
def test_any_bytes_have_a_type_or_a_reason(name: str, data: bytes) -> None:
    reason = _reason(lambda: detect_type(name, data))
    assert not reason or reason.endswith(".")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.sampled_from(
        [
            ("a.pdf", _SEEDS["pdf"]),
            ("a.html", samples.HTML),
            ("a.eml", samples.MAIL),
            ("a.zip", _ARCHIVES[0]),
        ]
    ),
    mutations=_MUTATIONS,
)
def test_the_process_survives(
    pool: ParserPool, seed: tuple[str, bytes], mutations: list[tuple[float, str, bytes]]
) -> None:
    data = _mutated(seed[1], mutations)
    reason = _reason(lambda: check(pool.parse_bytes(seed[0], data), data))
    assert "survive" not in reason
