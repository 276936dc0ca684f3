from collections.abc import Callable, Sequence

import pytest

from benchmarks.office_cases import (
    cell,
    docx,
    odf,
    odf_table,
    par,
    pptx,
    row,
    slide,
    slide_table,
    table,
)
from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.table_header import (
    CellKind,
    column_names,
    header_rows,
    kind_of,
    spread_groups,
)

from .workbooks import rows, xlsx

Parse = Callable[[str, bytes], ParsedDocument]


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("empty", ["", " "]),
        ("text", ["Name", "Q1", "2nd quarter", "B2B", "x" * 80, "3.2.1 Scope"]),
        ("year", ["1999", "2026"]),
        ("date", ["2026-06-03", "2026-06", "3.6.2026", "6/3/26", "07:45", "2026-06-03 07:45", "7:45 AM"]),
        ("number", ["5", "-5", "1,234.50", "$5", "5 €", "(12.50)", "15%", "USD 5", "5 kg", "TRUE"]),
        ("number", ["1.2E+04", "#N/A", "#DIV/0!", "=SUM(A1), not calculated", "1 1/2", "€ 3.00", "-€ 3.00"]),
    ],
)  # fmt: skip
def test_kinds_of_cells(kind: CellKind, cells: Sequence[str]) -> None:
    assert {one: kind_of(one) for one in cells} == dict.fromkeys(cells, kind)


def test_names_of_groups_of_columns_are_a_second_row() -> None:
    table = [["", "2025", "2025"], ["Name", "Q1", "Q2"], ["Ada", "5", "6"]]
    assert header_rows(table) == 2
    assert header_rows([["Name", "City"], ["Ada", "Oslo"], ["Bo", "5"]]) == 1


def _headers(parse: Parse, *lines: Sequence[str]) -> dict[str, str]:
    """The header of each row, by its first cell."""
    document = parse("a.xlsx", xlsx(rows(*lines)))
    text, found, at = document.text, {}, 0
    for line in text.split("\n"):
        above = [one for one in document.table_rows if one.start <= at]
        if line:
            found[line.split(" | ")[0]] = above[-1].header
        at += len(line.encode()) + 1
    return found


class TestSheets:
    def test_titles_stand_above_the_header(self, parse: Parse) -> None:
        found = _headers(parse, ("Sales",), ("Fruit", "Price"), ("Apple", "2"), ("Pear", "3"))
        assert found["Sales"] == found["Fruit"] == ""
        assert found["Apple"] == found["Pear"] == "Fruit | Price"

    def test_each_table_has_its_own(self, parse: Parse) -> None:
        found = _headers(
            parse,
            ("Fruit", "Price"),
            ("Apple", "2"),
            (),
            ("Room", "Floor", "m²"),
            ("R1", "2", "30"),
        )
        assert found["Apple"] == "Fruit | Price"
        assert (found["Room"], found["R1"]) == ("", "Room | Floor | m²")

    def test_rows_behind_an_empty_one_belong_to_the_table(self, parse: Parse) -> None:
        found = _headers(
            parse,
            ("Fruit", "Price"),
            ("Apple", "2"),
            (),
            ("Pear", "3"),
            ("Fig", "4"),
            (),
            ("Total", "9"),
        )
        assert {found[one] for one in ("Apple", "Pear", "Fig", "Total")} == {"Fruit | Price"}

    def test_a_wider_table_without_names_has_none(self, parse: Parse) -> None:
        found = _headers(
            parse, ("Fruit", "Price"), ("Apple", "2"), (), ("1", "2", "3"), ("4", "5", "6")
        )
        assert found["1"] == found["4"] == ""

    def test_numbers_only_have_none(self, parse: Parse) -> None:
        assert set(_headers(parse, ("1", "2"), ("3", "4")).values()) == {""}

    def test_groups_of_columns_are_named_with_them(self, parse: Parse) -> None:
        sheet = rows(("", "2025", "", "2026"), ("Name", "Q1", "Q2", "Q1"), ("Ada", "5", "6", "7"))
        sheet += '<mergeCells><mergeCell ref="B1:C1"/></mergeCells>'
        assert (
            parse("a.xlsx", xlsx(sheet)).table_rows[-1].header
            == "Name | 2025 Q1 | 2025 Q2 | 2026 Q1"
        )


def test_names_of_columns_begin_with_their_groups() -> None:
    assert column_names([["Name", "City"]]) == ["Name", "City"]
    names = column_names([["", "2025", "2025"], ["Name", "Q1", "Q2"]])
    assert names == ["Name", "2025 Q1", "2025 Q2"]
    assert column_names([["Name", "2025"], ["Name", "Q1", "Note"]])[1:] == ["2025 Q1", "Note"]


def test_a_group_reaches_to_the_next_one() -> None:
    groups = spread_groups(["", "2025", "", "2026"], ["Name", "Q1", "Q2", "Q1", "Q2"])
    assert groups == ["", "2025", "2025", "2026", "2026"]
    assert spread_groups(["", "2025", "", ""], ["Name", "Q1", "", "x"]) == ["", "2025", "", ""]


def _spanning(*texts: str) -> list[str]:
    return [cell(par(one), properties='<w:gridSpan w:val="2"/>') for one in texts]


_NAMES = ("Name", "Q1", "Q2", "Q1", "Q2")
_VALUES = ("Ada", "5", "6", "7", "8")
_TWO = (
    '<table:table-cell table:number-columns-spanned="2"><text:p>{}</text:p></table:table-cell>'
    "<table:covered-table-cell/>"
)
_GROUPED = {
    "csv": b",2025,,2026,\nName,Q1,Q2,Q1,Q2\nAda,5,6,7,8\nBo,1,2,3,4\n",
    "docx": docx(
        table(
            row("", *_spanning("2025", "2026")),
            row(*_NAMES),
            row(*_VALUES),
        )
    ),
    "pptx": pptx(
        slide(
            slide_table(
                ("", '[gridSpan="2"]2025', '[hMerge="1"]', '[gridSpan="2"]2026', '[hMerge="1"]'),
                _NAMES,
                _VALUES,
            )
        )
    ),
    "odt": odf(odf_table(("", _TWO.format("2025"), _TWO.format("2026")), _NAMES, _VALUES)),
}


@pytest.mark.parametrize("kind", _GROUPED)
def test_groups_of_columns_are_named_in_every_format(parse: Parse, kind: str) -> None:
    header = parse(f"a.{kind}", _GROUPED[kind]).table_rows[0].header
    names = ["Name", "2025 Q1", "2025 Q2", "2026 Q1", "2026 Q2"]
    assert header.split("," if kind == "csv" else " | ") == names
