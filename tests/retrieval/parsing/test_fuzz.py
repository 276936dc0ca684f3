# ruff: noqa: E501
"""Whatever the bytes are, a parser returns a text or raises `Unreadable`, and its process lives on.

The parsers are called in this process, where an exception of another kind is seen; some mutated files go
through the parser process, too.
"""

import gzip
from collections.abc import Callable
from io import BytesIO
from zipfile import ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.parsing.file_type import detect_type
from engine.retrieval.parsing.parser_pool import ParserPool
from engine.retrieval.parsing.parsers import extract
from engine.retrieval.parsing.rows import rows_outline

from . import samples, workbooks
from .conftest import check
from .xls_sample import XLS

_TABLE = (
    '<table:table table:name="T"><table:table-column table:visibility="collapse"/><table:table-row>'
    + workbooks.ods_cell(
        "a", more=' table:number-rows-spanned="2" table:number-columns-repeated="3"'
    )
    + workbooks.ods_cell("3.6.26", "date", date="2026-06-03")
    + workbooks.ods_cell("", "time", time="PT07H45M00S")
    + "</table:table-row></table:table>"
)
_SEEDS = {
    "pdf": samples.pdf(["Some words", "More words"], bookmarks={"More": 1}),
    "html": samples.HTML,
    "mail": samples.MAIL,
    "mailbox": b"From a Mon Jan  1 10:00:00 2024\n" + samples.MAIL.replace(b"\r", b"") + b"\n",
    "page": b"https://example.org/\n" + samples.HTML,
    "notebook": samples.NOTEBOOK,
    "gzip": gzip.compress(b"some words\n" * 20),
    "zip": samples.epub(),
    "xls": XLS,
    "code/python": b"class A:\n    def f(self):\n        return 1\n",
    "code/yaml": b"a:\n  - b: 1\n    c: [2, 3]\n",
    "code/json": b'{"a": [1, {"b": null}]}',
}
_SHEET = workbooks.rows(("Fruit", "", "Price"), ("Apple", "", "2.5"), (), ("Pear", "x", "3"))
_WORKBOOK = workbooks.xlsx(
    f'<cols><col min="2" max="2" hidden="1"/></cols>{_SHEET}<mergeCells><mergeCell ref="A1:B2"/></mergeCells>',
    formats=["yyyy-mm-dd"],
    shared="<si><t>x</t></si>",
)
_ARCHIVES = [
    samples.xlsx(),
    _WORKBOOK,
    workbooks.ods(_TABLE),
    samples.pptx(),
    samples.odt(),
    samples.epub(),
    samples.docx("<w:p/>"),
]
_SHEET_PARTS = [
    "xl/workbook.xml",
    "xl/styles.xml",
    "xl/sharedStrings.xml",
    "xl/worksheets/sheet1.xml",
    "content.xml",
]
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
@given(part=st.sampled_from(_SHEET_PARTS), mutations=_MUTATIONS)
def test_workbooks_with_mutated_parts(part: str, mutations: list[tuple[float, str, bytes]]) -> None:
    with ZipFile(BytesIO(workbooks.ods(_TABLE) if part == "content.xml" else _WORKBOOK)) as archive:
        parts: dict[str, str | bytes] = {one: archive.read(one) for one in archive.namelist()}
    parts[part] = _mutated(bytes(parts[part]), mutations)
    _extract("zip", samples.zipped(parts))


@_SETTINGS
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["A1", "B2", "XFD1048576", "ZZZ9999999", "A0", "", "x"]),
            st.sampled_from(["n", "s", "str", "b", "e", "d", "inlineStr", ""]),
            st.one_of(
                st.sampled_from(["0", "1e308", "-1", "46176.5", "2026-06-03", "T", "nan"]),
                st.text("0a.-:T", max_size=9),
            ),
        ),
        max_size=8,
    ),
    code=st.text(max_size=20).filter(str.isprintable),
    merge=st.sampled_from(["A1:B2", "B2:A1", "A1", "XFD1048576:A1", "A1:XFD1048576", ""]),
)
def test_any_cells(cells: list[tuple[str, str, str]], code: str, merge: str) -> None:
    shown = "".join(
        f'<c r="{place}" t="{kind}" s="1"><v>{value}</v></c>' for place, kind, value in cells
    )
    sheet = f'<sheetData><row>{shown}</row></sheetData><mergeCells><mergeCell ref="{merge}"/></mergeCells>'
    _extract("zip", workbooks.xlsx(sheet, formats=[code], shared="<si><t>x</t></si>"))


@_SETTINGS
@given(text=st.text(st.sampled_from('ab,;\t|"\n\r1. é'), max_size=120))
def test_any_rows_have_at_most_one_header(text: str) -> None:
    outline = rows_outline(text, named=True)
    assert len(outline.row_headers) <= 1
    for one in outline.row_headers:
        assert one.start in outline.breaks
        assert "\n" not in one.text


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
