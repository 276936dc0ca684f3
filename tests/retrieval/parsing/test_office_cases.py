"""What a person sees in documents and slides is what is read: each thing once, in order, in its column."""

from collections.abc import Callable

import pytest

from benchmarks.office_cases import (
    Case,
    docx,
    failures,
    odf,
    odf_table,
    open_document_cases,
    pptx,
    row,
    slide,
    slide_cases,
    slide_table,
    table,
    word_cases,
)
from engine.retrieval.api.parsed_document import ParsedDocument

_CASES = [*word_cases(), *slide_cases(), *open_document_cases()]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case.kind}: {case.name}")
def test_a_person_sees_what_is_read(
    parse: Callable[[str, bytes], ParsedDocument], case: Case
) -> None:
    assert failures(case, parse(f"a.{case.kind}", case.data).text) == []


_HEADER_ROWS = [
    ("docx", docx(table(row("2024", "2025", properties="<w:tblHeader/>"), row("1", "2")))),
    (
        "pptx",
        pptx(
            slide(
                slide_table(("2024", "2025"), ("1", "2")).replace(
                    "<a:tblPr/>", '<a:tblPr firstRow="1"/>'
                )
            )
        ),
    ),
    (
        "odt",
        odf(
            odf_table(("2024", "2025"), ("1", "2"))
            .replace("<table:table-row>", "<table:table-header-rows><table:table-row>", 1)
            .replace("</table:table-row>", "</table:table-row></table:table-header-rows>", 1)
        ),
    ),
]


@pytest.mark.parametrize(("kind", "data"), _HEADER_ROWS, ids=[kind for kind, _ in _HEADER_ROWS])
def test_a_row_that_the_document_calls_a_header_names_the_columns(
    parse: Callable[[str, bytes], ParsedDocument], kind: str, data: bytes
) -> None:
    document = parse(f"a.{kind}", data)
    assert document.table_rows[0].header == "2024 | 2025"
    assert document.text.encode()[document.table_rows[0].start :].strip().startswith(b"1 | 2")
