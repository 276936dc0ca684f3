# ruff: noqa: E501
from collections.abc import Callable

import pytest

from engine.retrieval.api.parsed_document import ParsedDocument

from .workbooks import ods, ods_cell

Parse = Callable[[str, bytes], ParsedDocument]


def _table(*rows: str, name: str = "Prices", more: str = "", before: str = "") -> str:
    lines = "".join(f"<table:table-row>{one}</table:table-row>" for one in rows)
    return f'<table:table table:name="{name}"{more}>{before}{lines}</table:table>'


def _lines(document: ParsedDocument) -> list[str]:
    return document.text.split("\n")[1:-1]


def test_sheets_are_sections(parse: Parse) -> None:
    document = parse("a.ods", ods(_table(ods_cell("a")), _table(ods_cell("b"), name="Costs")))
    assert document.text == "Prices\na\n\nCosts\nb\n"
    assert [one.title for one in document.headings] == ["Prices", "Costs"]
    assert document.media_type == "application/vnd.oasis.opendocument.spreadsheet"


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (ods_cell("1.234,50 €", "currency"), "1.234,50 €"),
        (ods_cell("15 %", "percentage"), "15 %"),
        (ods_cell("", "percentage", ' office:value="0.155"'), "15.5%"),
        (ods_cell("", "currency", ' office:currency="EUR" office:value="1234.5"'), "1234.5 EUR"),
        (ods_cell("", "float", ' office:value="1.1000000000000001"'), "1.1"),
        (ods_cell("03.06.26", "date", date="2026-06-03"), "2026-06-03"),
        (ods_cell("03.06.26", "date", date="2026-06-03T00:00:00"), "2026-06-03"),
        (ods_cell("03.06.26 07:45", "date", date="2026-06-03T07:45:10"), "2026-06-03 07:45"),
        (ods_cell("3. Juni 7:45:10", "date", date="2026-06-03T07:45:10.5"), "2026-06-03 07:45:10"),
        (ods_cell("2026", "date", date="2026-06-03"), "2026"),
        (ods_cell("Mittwoch", "date", date="2026-06-03"), "Mittwoch"),
        (ods_cell("07:45 AM", "time", time="PT07H45M00S"), "07:45"),
        (ods_cell("7:45:30", "time", time="PT07H45M30S"), "07:45:30"),
        (ods_cell("26:30", "time", time="PT26H30M00S"), "26:30"),
        (ods_cell("WAHR", "boolean", boolean="true"), "WAHR"),
        (ods_cell("", "boolean", boolean="true"), "TRUE"),
        (ods_cell("", "string", string="kept"), "kept"),
        (ods_cell("", "float", more=' office:value="1.1000000000000001"'), "1.1"),
        (ods_cell("#DIV/0!", "string", more=' calcext:value-type="error"'), "#DIV/0!"),
        (ods_cell("a<text:s text:c='2'/>b<text:line-break/><text:span>c</text:span>"), "a b c"),
        (ods_cell("", more=' table:formula="of:=SUM([.B2:.B9])"'), "=SUM(B2:B9), not calculated"),
        (
            "<table:table-cell><text:p>one</text:p><text:p>two</text:p></table:table-cell>",
            "one two",
        ),
        (
            ods_cell(
                "<text:ruby><text:ruby-base>京都</text:ruby-base><text:ruby-text>きょうと</text:ruby-text></text:ruby>"
            ),
            "京都",
        ),
    ],
)
def test_cells_show_what_was_shown_and_dates_are_iso(parse: Parse, cell: str, shown: str) -> None:
    assert _lines(parse("a.ods", ods(_table(cell)))) == [shown]


def test_repeated_cells_and_rows(parse: Parse) -> None:
    empty = '<table:table-cell table:number-columns-repeated="2"/>'
    rest = '<table:table-cell table:number-columns-repeated="16380"/>'
    twice = ods_cell("x", more=' table:number-columns-repeated="2"')
    table = (
        f'<table:table table:name="T"><table:table-row>{ods_cell("a")}{empty}{twice}{rest}</table:table-row>'
        f'<table:table-row table:number-rows-repeated="2">{empty}{ods_cell("b")}</table:table-row>'
        f'<table:table-row table:number-rows-repeated="1048000">{rest}</table:table-row></table:table>'
    )
    assert _lines(parse("a.ods", ods(table))) == ["a |  |  | x | x", " |  | b", " |  | b"]


def test_a_merged_cell_is_in_each_of_its_rows(parse: Parse) -> None:
    merged = ods_cell(
        "North", more=' table:number-rows-spanned="2" table:number-columns-spanned="1"'
    )
    table = _table(merged + ods_cell("Oslo"), "<table:covered-table-cell/>" + ods_cell("Bergen"))
    assert _lines(parse("a.ods", ods(table))) == ["North | Oslo", "North | Bergen"]


def test_hidden_parts_are_left_out_and_groups_are_read(parse: Parse) -> None:
    styles = '<style:style style:name="h" style:family="table"><style:table-properties table:display="false"/></style:style>'
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/>'
    hidden = f'<table:table-row table:visibility="collapse">{ods_cell("gone")}</table:table-row>'
    filtered = f'<table:table-row table:visibility="filter">{ods_cell("c")}</table:table-row>'
    group = f"<table:table-row-group>{hidden.replace('gone', 'd')}</table:table-row-group>"
    table = (
        f'<table:table table:name="T">{columns}<table:table-row>{ods_cell("a")}{ods_cell("b")}</table:table-row>'
        f"{hidden}{filtered}{group}</table:table>"
    )
    secret = _table(ods_cell("secret"), name="S", more=' table:style-name="h"')
    document = parse("a.ods", ods(table, secret, styles=styles))
    assert document.text == "T\na\n\nc\nd\n"
    assert document.notes == (
        "The hidden sheet was not read: S.",
        "1 hidden row was not read in the sheet T.",
        "1 hidden column was not read in the sheet T.",
    )


def test_comments_and_text_boxes_stand_behind_the_rows(parse: Parse) -> None:
    comment = "<office:annotation><dc:creator>Ada</dc:creator><dc:date>2026</dc:date><text:p>why?</text:p></office:annotation>"
    cell = f'<table:table-cell office:value-type="string">{comment}<text:p>b</text:p></table:table-cell>'
    box = "<table:shapes><draw:frame><draw:text-box><text:p>Net prices</text:p></draw:text-box></draw:frame></table:shapes>"
    table = _table(ods_cell("a") + cell, before=box)
    assert _lines(parse("a.ods", ods(table))) == [
        "a | b", "", "Net prices", "Comment on B1 by Ada: why?",
    ]  # fmt: skip


def test_what_was_deleted_is_not_read(parse: Parse) -> None:
    deleted = f"<table:tracked-changes><table:deletion>{ods_cell('old')}</table:deletion></table:tracked-changes>"
    assert _lines(parse("a.ods", ods(deleted + _table(ods_cell("new"))))) == ["new"]


def test_a_table_in_a_cell_is_no_sheet(parse: Parse) -> None:
    inner = f"<table:table-cell><table:table>{ods_cell('inner')}</table:table></table:table-cell>"
    assert _lines(parse("a.ods", ods(_table(inner + ods_cell("a"), ods_cell("b")))))[-1] == "b"
