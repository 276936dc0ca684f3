from collections.abc import Callable, Sequence

import pytest

from engine.retrieval.api.parsed_document import ParsedDocument
from engine.retrieval.parsing.table_header import CellKind, header_rows, kind_of

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
