# ruff: noqa: E501
from collections.abc import Callable

import pytest

from engine.retrieval.api.errors import Unreadable
from engine.retrieval.api.parsed_document import ParsedDocument

from .samples import R, zipped
from .workbooks import relations, rows, xlsx

Parse = Callable[[str, bytes], ParsedDocument]


def _lines(document: ParsedDocument) -> list[str]:
    """The lines below the name of the first sheet."""
    return document.text.split("\n")[1:-1]


def _data(cells: str) -> str:
    return f'<sheetData><row r="1">{cells}</row></sheetData>'


class TestValues:
    def test_numbers_by_the_format_of_their_style(self, parse: Parse) -> None:
        formats = ["m/d/yy", "h:mm", "0%", "0.00", '"$"#,##0.00', "[h]:mm"]
        values = ["46176", "0.32291666666666669", "0.15", "2.5", "1234.5", "1.1041666666666667"]
        cells = "".join(f'<c s="{at}"><v>{value}</v></c>' for at, value in enumerate(values, 1))
        document = parse("a.xlsx", xlsx(_data(cells), formats=formats))
        assert _lines(document) == ["2026-06-03 | 07:45 | 15% | 2.50 | $1,234.50 | 26:30"]

    def test_a_number_without_a_format_is_rounded(self, parse: Parse) -> None:
        cells = '<c><v>1.1000000000000001</v></c><c s="99"><v>4.5E-2</v></c>'
        assert _lines(parse("a.xlsx", xlsx(_data(cells)))) == ["1.1 | 0.045"]

    def test_a_date_that_is_stored_as_text(self, parse: Parse) -> None:
        cells = "".join(
            f'<c t="d" s="{at}"><v>2026-06-03T07:45:00{zone}</v></c>'
            for at in (0, 1)
            for zone in ("", "Z")
        )
        document = parse("a.xlsx", xlsx(_data(cells), formats=["m/d/yy h:mm"]))
        shown = _lines(document)[0].split(" | ")
        assert shown == ["2026-06-03 07:45:00"] * 2 + ["2026-06-03 07:45"] * 2

    def test_a_sheet_that_shows_no_zeros(self, parse: Parse) -> None:
        view = '<sheetViews><sheetView showZeros="0" workbookViewId="0"/></sheetViews>'
        cells = '<c r="A1"><v>0</v></c><c r="B1"><v>5</v></c><c r="C1" t="str"><v>0</v></c>'
        assert _lines(parse("a.xlsx", xlsx(view + _data(cells)))) == [" | 5 | 0"]

    def test_the_1904_date_system(self, parse: Parse) -> None:
        data = xlsx(
            _data('<c s="1"><v>44714</v></c>'),
            formats=["yyyy-mm-dd"],
            workbook='<workbookPr date1904="1"/>',
        )
        assert _lines(parse("a.xlsx", data)) == ["2026-06-03"]

    def test_every_type_of_cell(self, parse: Parse) -> None:
        cells = (
            '<c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="e"><v>#N/A</v></c><c t="str"><f>A1</f><v>made</v></c>'
            '<c t="d" s="1"><v>2026-06-03T00:00:00</v></c><c t="d"><v>2026-06-03T07:45:00</v></c>'
            '<c t="s"><v>0</v></c><c t="s"><v>7</v></c><c t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r></is></c>'
        )
        document = parse(
            "a.xlsx", xlsx(_data(cells), formats=["d mmm yyyy"], shared="<si><t>shared</t></si>")
        )
        assert _lines(document) == [
            "TRUE | FALSE | #N/A | made | 2026-06-03 | 2026-06-03 07:45:00 | shared |  | inline"
        ]

    def test_runs_are_one_cell_and_pronunciation_is_left_out(self, parse: Parse) -> None:
        shared = (
            '<si><r><t>Tesla </t></r><r><rPr><b/></rPr><t xml:space="preserve">Bakery</t></r></si>'
            "<si><t>東京</t><rPh><t>トウキョウ</t></rPh></si><si><t>a_x000D_\nb_x005F_c</t></si>"
        )
        cells = "".join(f'<c t="s"><v>{at}</v></c>' for at in range(3))
        cells += '<c t="inlineStr"><is><r><t>京都</t></r><rPh><t>キョウト</t></rPh></is></c>'
        document = parse("a.xlsx", xlsx(_data(cells), shared=shared))
        assert _lines(document) == ["Tesla Bakery | 東京 | a b_c | 京都"]

    def test_texts_by_the_text_section_of_their_format(self, parse: Parse) -> None:
        cells = "".join(f'<c s="{at}" t="inlineStr"><is><t>x</t></is></c>' for at in range(1, 3))
        document = parse(
            "a.xlsx", xlsx(_data(cells + "<c><v>1</v></c>"), formats=[";;;", '0;0;0;"No. "@'])
        )
        assert _lines(document) == [" | No. x | 1"]

    def test_a_formula_that_was_never_calculated_is_shown(self, parse: Parse) -> None:
        cells = (
            '<c r="A1"><f>SUM(B2:B9)</f></c><c r="B1"><f>_xlfn.XLOOKUP(A1,B:B,C:C)</f><v/></c>'
            '<c r="C1"><f t="shared" si="0"/></c><c r="D1" t="str"><f>IF(A1,"","")</f><v></v></c><c r="E1"><f>1-1</f><v>0</v></c>'
        )
        document = parse("a.xlsx", xlsx(_data(cells)))
        assert _lines(document) == [
            "=SUM(B2:B9), not calculated | =XLOOKUP(A1,B:B,C:C), not calculated | formula, not calculated |  | 0"
        ]
        assert document.notes == (
            "3 formulas have no stored value: the file was never calculated.",
        )

    def test_zero_is_no_value_if_the_file_asks_for_a_calculation(self, parse: Parse) -> None:
        data = xlsx(
            _data("<c><f>SUM(A2:A3)</f><v>0</v></c><c><f>1+1</f><v>2</v></c>"),
            workbook='<calcPr calcId="1" fullCalcOnLoad="1"/>',
        )
        assert _lines(parse("a.xlsx", data)) == ["=SUM(A2:A3), not calculated | 2"]

    def test_numbers_that_are_none(self, parse: Parse) -> None:
        cells = "<c><v>1e999</v></c><c><v>nan</v></c><c><v>x y</v></c>"
        assert _lines(parse("a.xlsx", xlsx(_data(cells)))) == ["1e999 | nan | x y"]


class TestLayout:
    def test_empty_cells_keep_their_columns(self, parse: Parse) -> None:
        data = xlsx(
            rows(
                ("", "Since", "Note", "Total", "Rate"),
                ("Tesla Bakery", "", "", "46387", "3.3"),
                ("", "", "x"),
            )
        )
        assert _lines(parse("a.xlsx", data)) == [
            " | Since | Note | Total | Rate",
            "Tesla Bakery |  |  | 46387 | 3.3",
            " |  | x",
        ]

    def test_cells_without_places_follow_one_another(self, parse: Parse) -> None:
        sheet = '<sheetData><row><c><v>1</v></c><c/><c><v>2</v></c></row><row r="2"><c r="C2"><v>3</v></c><c><v>4</v></c></row></sheetData>'
        assert _lines(parse("a.xlsx", xlsx(sheet))) == ["1 |  | 2", " |  | 3 | 4"]

    def test_a_wide_gap_in_all_rows_is_one_column(self, parse: Parse) -> None:
        sheet = '<sheetData><row><c r="A1"><v>1</v></c><c r="ZZ1"><v>2</v></c></row><row><c r="A2"><v>3</v></c></row></sheetData>'
        assert _lines(parse("a.xlsx", xlsx(sheet))) == ["1 |  | 2", "3"]

    def test_empty_rows_are_one_blank_line(self, parse: Parse) -> None:
        document = parse("a.xlsx", xlsx(rows((), ("a", "b"), (), (), ("c",))))
        assert document.text == "Sheet1\na | b\n\nc\n"

    def test_line_ends_and_bars_in_a_cell(self, parse: Parse) -> None:
        document = parse("a.xlsx", xlsx(rows(("two\nlines", "p | q", "r|s", "t"))))
        assert _lines(document) == [r"two lines | p \| q | r|s | t"]

    def test_a_merged_cell_is_in_each_of_its_rows(self, parse: Parse) -> None:
        sheet = rows(
            ("Region", "City"), ("North", "Oslo"), ("", "Bergen"), ("", ""), ("South", "Rome")
        )
        sheet += '<mergeCells><mergeCell ref="A2:A4"/></mergeCells>'
        assert _lines(parse("a.xlsx", xlsx(sheet))) == [
            "Region | City", "North | Oslo", "North | Bergen", "", "South | Rome",
        ]  # fmt: skip

    def test_a_merged_title_stands_once(self, parse: Parse) -> None:
        sheet = rows(("Report", "", ""), ("Name", "Total", "x"), ("Ada", "5", "1"))
        sheet += '<mergeCells><mergeCell ref="A1:C1"/></mergeCells>'
        assert _lines(parse("a.xlsx", xlsx(sheet)))[0] == "Report"

    def test_a_merged_cell_above_names_is_above_each(self, parse: Parse) -> None:
        sheet = rows(("", "2025", "", "2026"), ("Name", "Q1", "Q2", "Q1"), ("Ada", "5", "6", "7"))
        sheet += '<mergeCells><mergeCell ref="B1:C1"/></mergeCells>'
        document = parse("a.xlsx", xlsx(sheet))
        assert _lines(document)[0] == " | 2025 | 2025 | 2026"

    def test_hidden_rows_columns_and_sheets_are_left_out_and_noted(self, parse: Parse) -> None:
        sheet = '<cols><col min="2" max="2" hidden="1"/><col min="4" max="4" width="0"/></cols><sheetData>'
        sheet += '<row r="1"><c><v>1</v></c><c><v>2</v></c><c><v>3</v></c><c><v>4</v></c></row>'
        sheet += '<row r="2" hidden="1"><c><v>5</v></c></row><row r="3" ht="0" customHeight="1"><c><v>6</v></c></row></sheetData>'
        secret = rows(("secret",))
        document = parse(
            "a.xlsx", xlsx(sheet, secret, secret, states=["visible", "hidden", "veryHidden"])
        )
        assert document.text == "Sheet1\n1 |  | 3\n"
        assert document.notes == (
            "2 hidden sheets were not read: Sheet2, Sheet3.",
            "2 hidden rows were not read in the sheet Sheet1.",
            "2 hidden columns were not read in the sheet Sheet1.",
        )

    def test_rows_of_a_filter_or_a_collapsed_group_are_read(self, parse: Parse) -> None:
        filtered = '<sheetData><row r="1"><c><v>1</v></c></row><row r="2" hidden="1"><c><v>2</v></c></row></sheetData>'
        filtered += '<autoFilter ref="A1:A2"><filterColumn colId="0"/></autoFilter>'
        grouped = (
            '<sheetData><row r="1" hidden="1" outlineLevel="1"><c><v>3</v></c></row></sheetData>'
        )
        document = parse("a.xlsx", xlsx(filtered, grouped))
        assert document.text == "Sheet1\n1\n2\n\nSheet2\n3\n"
        assert not document.notes

    def test_rows_that_a_table_filters_are_read(self, parse: Parse) -> None:
        sheet = '<sheetData><row r="1" hidden="1"><c><v>2</v></c></row></sheetData>'
        data = xlsx(
            sheet,
            **{
                "xl/worksheets/_rels/sheet1.xml.rels": relations(a="table ../tables/table1.xml"),
                "xl/tables/table1.xml": '<table><autoFilter><filterColumn colId="0"/></autoFilter></table>',
            },
        )
        assert _lines(parse("a.xlsx", data)) == ["2"]

    def test_a_sheet_without_anything_is_left_out(self, parse: Parse) -> None:
        assert parse("a.xlsx", xlsx("<sheetData/>", rows(("a",)))).text == "Sheet2\na\n"


class TestBesideTheCells:
    def test_comments_and_threads(self, parse: Parse) -> None:
        data = xlsx(
            rows(("a",)),
            **{
                "xl/worksheets/_rels/sheet1.xml.rels": relations(
                    a="comments ../comments1.xml", b="threadedComment ../threadedComments/t1.xml"
                ),
                "xl/_rels/workbook.xml.rels": relations(
                    r1="worksheet worksheets/sheet1.xml", p="person persons/person.xml"
                ),
                "xl/persons/person.xml": '<personList><person displayName="Bo" id="{1}"/></personList>',
                "xl/comments1.xml": "<comments><authors><author>Ada</author></authors><commentList>"
                '<comment ref="B2" authorId="0"><text><r><t>Ada:</t></r><r><t>\nwhy so low?</t></r></text></comment>'
                '<comment ref="C3" authorId="0"><text><t>[Threaded comment] Your version…</t></text></comment>'
                "</commentList></comments>",
                "xl/threadedComments/t1.xml": '<ThreadedComments><threadedComment ref="C3" personId="{1}"><text>Agreed.'
                '</text></threadedComment><threadedComment ref="C3" personId="{9}"><text>Done.</text></threadedComment>'
                "</ThreadedComments>",
            },
        )
        assert parse("a.xlsx", data).text == (
            "Sheet1\na\n\nComment on C3 by Bo: Agreed.\nComment on C3: Done.\nComment on B2 by Ada: why so low?\n"
        )

    def test_a_text_box_stands_once(self, parse: Parse) -> None:
        box = "<sp><txBody><p><r><t>Prices </t></r><r><t>are net.</t></r></p></txBody></sp>"
        data = xlsx(
            rows(("a",)),
            **{
                "xl/worksheets/_rels/sheet1.xml.rels": relations(a="drawing ../drawings/d.xml"),
                "xl/drawings/d.xml": f"<wsDr><AlternateContent><Choice>{box}</Choice><Fallback>{box}</Fallback></AlternateContent></wsDr>",
            },
        )
        assert parse("a.xlsx", data).text == "Sheet1\na\n\nPrices are net.\n"


class TestParts:
    def test_parts_of_other_names_are_found_by_their_relations(self, parse: Parse) -> None:
        cells = '<c t="s"><v>0</v></c><c s="1"><v>46176</v></c><c s="2"><v>0.5</v></c>'
        data = zipped(
            {
                "_rels/.rels": relations(a="officeDocument xl/workbook2.xml"),
                "xl/workbook2.xml": f'<workbook {R}><sheets><sheet name="S" r:id="s"/></sheets></workbook>',
                "xl/_rels/workbook2.xml.rels": relations(
                    s="worksheet /xl/s.xml", t="styles st.xml", u="sharedStrings strings.xml"
                ),
                "xl/st.xml": '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="20"/></cellXfs></styleSheet>',
                "xl/strings.xml": "<sst><si><t>shared</t></si></sst>",
                "xl/s.xml": f"<worksheet>{_data(cells)}</worksheet>",
            }
        )
        assert parse("a.xlsx", data).text == "S\nshared | 2026-06-03 | 12:00\n"


class TestHostileFiles:
    def test_a_merged_cell_over_the_whole_sheet(self, parse: Parse) -> None:
        sheet = rows(*[("x", "1")] * 50)
        sheet += '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>' * 300
        assert parse("a.xlsx", xlsx(sheet)).text.count("\n") == 51

    def test_one_long_string_in_many_cells(self, parse: Parse) -> None:
        cells = '<c t="s"><v>0</v></c>' * 20_000
        with pytest.raises(Unreadable, match="characters of text"):
            parse("a.xlsx", xlsx(_data(cells), shared=f"<si><t>{'x' * 3000}</t></si>"))

    def test_places_outside_of_a_sheet(self, parse: Parse) -> None:
        sheet = (
            '<cols><col min="1" max="99999999999" hidden="0"/></cols><sheetData><row r="9999999"><c r="XFE1"><v>1</v></c>'
            '<c r="A0"><v>2</v></c><c r="ZZZZ1"><v>3</v></c></row><row r="0"><c s="-1"><v>4</v></c></row></sheetData>'
        )
        assert "2" in parse("a.xlsx", xlsx(sheet)).text

    def test_a_binary_workbook_is_named(self, parse: Parse) -> None:
        with pytest.raises(Unreadable, match="XLSB"):
            parse("a.xlsb", zipped({"xl/workbook.bin": "x"}))
