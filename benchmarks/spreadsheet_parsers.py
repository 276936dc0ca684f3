"""Compare parsers of spreadsheets: what each shows of small files with one difficulty each.

Prints a table of cases × parsers for XLSX, XLS and ODS, and the cells that each reads in a second of
processor time. Files are written by openpyxl, xlsxwriter and xlwt; parsers that are not installed are left
out:

    pip install openpyxl xlsxwriter xlwt python-calamine odfpy 'markitdown[xlsx,xls]'
    python benchmarks/spreadsheet_parsers.py [--why]
"""

import argparse
import datetime as dt
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.retrieval.parsing.parsers import extract

ACCOUNTING = '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)'
NUMBERS: Sequence[tuple[str, str, Any, str]] = (
    ("date", "dd/mm/yyyy", dt.date(2026, 6, 3), "2026-06-03"),
    ("month", "mmm-yy", dt.date(2026, 6, 1), "2026-06"),
    ("date and time", "d.m.yy hh:mm", dt.datetime(2026, 6, 3, 7, 45), "2026-06-03 07:45"),
    ("time", "h:mm", dt.time(7, 45), "07:45"),
    ("time of 12 hours", "h:mm AM/PM", dt.time(19, 45), "19:45"),
    ("duration", "[h]:mm", dt.timedelta(hours=26, minutes=30), "26:30"),
    ("percentage", "0.0%", 0.155, "15.5%"),
    ("sum of floats", "General", 0.1 + 0.2, "0.3"),
    ("1/3", "General", 1 / 3, "0.333333333"),
    ("two decimals", "0.00", 2.5, "2.50"),
    ("thousands", "#,##0", 46387, "46,387"),
    ("currency", '"$"#,##0.00', 1234.5, "$1,234.50"),
    ("currency behind", '#,##0.00\\ "€"', 1234.5, "1,234.50 €"),
    ("minus as brackets", "#,##0.00;(#,##0.00)", -12.5, "(12.50)"),
    ("accounting", ACCOUNTING, 1234.5, "$1,234.50"),
    ("fraction", "# ?/?", 1.5, "1 1/2"),
    ("power of ten", "0.00E+00", 12345, "1.23E+04"),
    ("millions", '0.0,,"M"', 12345678, "12.3M"),
    ("leading zeros", "00000", 123, "00123"),
    ("unit", '0" kg"', 5, "5 kg"),
    ("condition", '[<1]"low";"high"', 0.5, "low"),
    ("13 digits", "General", 4006381333931, "4006381333931"),
    ("truth value", "General", True, "TRUE"),
)
"""Case, format code, value, and what the sheet shows, dates in ISO 8601."""


@dataclass(frozen=True)
class Case:
    """A file with one difficulty.

    Attributes:
        name: what is difficult.
        path: the file.
        wanted: lines that its text must have.
        unwanted: what it must not have.
    """

    name: str
    path: Path
    wanted: tuple[str, ...]
    unwanted: tuple[str, ...] = ()


def xlsx_cases(folder: Path) -> Iterator[Case]:
    """The cases of XLSX."""
    import openpyxl
    import xlsxwriter

    def saved(name: str, fill: Callable[[Any, Any], object]) -> Path:
        book = openpyxl.Workbook()
        fill(book, book.active)
        path = folder / f"{name}.xlsx"
        book.save(path)
        return path

    for name, code, value, wanted in NUMBERS:

        def number(_: Any, sheet: Any, code: str = code, value: Any = value) -> None:
            sheet.append(["x", value])
            sheet["B1"].number_format = code

        yield Case(name, saved(name.replace("/", " "), number), (f"x | {wanted}",))

    def since_1904(book: Any, sheet: Any) -> None:
        book.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
        sheet.append(["x", dt.date(2026, 6, 3)])

    yield Case("1904 date system", saved("1904", since_1904), ("x | 2026-06-03",))
    rows = [("Customer", "Note", "Total"), ("Tesla Bakery", None, 46387), (None, "x", 1)]
    path = saved("empty", lambda _, sheet: [sheet.append(row) for row in rows])
    yield Case("empty cells", path, ("Tesla Bakery |  | 46387", " | x | 1"))

    def error(_: Any, sheet: Any) -> None:
        sheet.append(["x", "#N/A"])
        sheet["B1"].data_type = "e"

    yield Case("error", saved("error", error), ("x | #N/A",))
    path = saved("formula", lambda _, sheet: sheet.append(["x", "=SUM(A2:A3)"]))
    yield Case("formula without a value", path, ("x | =SUM(A2:A3), not calculated",))
    path = folder / "zero.xlsx"
    book = xlsxwriter.Workbook(path)
    book.add_worksheet().write_row(0, 0, ["x", "=SUM(A2:A3)"])
    book.close()
    yield Case("0 of a formula that was never calculated", path, (), ("x | 0", "x | 0.0"))

    def merged(_: Any, sheet: Any) -> None:
        for row in (("North", "Oslo"), (None, "Bergen")):
            sheet.append(row)
        sheet.merge_cells("A1:A2")

    yield Case("merged cells", saved("merged", merged), ("North | Oslo", "North | Bergen"))

    def hidden(book: Any, sheet: Any) -> None:
        for row in (("a", "secret column", "b"), ("secret row",), ("c",)):
            sheet.append(row)
        sheet.row_dimensions[2].hidden = sheet.column_dimensions["B"].hidden = True
        book.create_sheet("S").append(["secret sheet"])
        book["S"].sheet_state = "hidden"

    yield Case("hidden sheet, row, column", saved("hidden", hidden), ("c",), ("secret",))
    path = saved("lines", lambda _, sheet: sheet.append(["two\nlines", "p | q", "r"]))
    yield Case("line end and bar in a cell", path, (r"two lines | p \| q | r",))

    def comment(_: Any, sheet: Any) -> None:
        sheet.append(["x"])
        sheet["A1"].comment = openpyxl.comments.Comment("why so low?", "Ada")

    yield Case("comment", saved("comment", comment), ("Comment on A1 by Ada: why so low?",))


def xls_cases(folder: Path) -> Iterator[Case]:
    """The cases of XLS."""
    import xlwt

    for name, code, value, wanted in NUMBERS:
        if code == ACCOUNTING:
            continue  # xlwt writes another format under its number
        book = xlwt.Workbook()
        sheet = book.add_sheet("S")
        sheet.write(0, 0, "x")
        days = value.total_seconds() / 86400 if isinstance(value, dt.timedelta) else value
        sheet.write(0, 1, days, xlwt.easyxf(num_format_str=code))
        path = folder / f"{name.replace('/', ' ')}.xls"
        book.save(str(path))
        yield Case(name, path, (f"x | {wanted}",))
    book = xlwt.Workbook()
    sheet, secret = book.add_sheet("S"), book.add_sheet("T")
    for row, cells in enumerate((("North", "", "Oslo"), ("", "", "Bergen"), ("secret",))):
        for column, value in enumerate(cells):
            if value:
                sheet.write(row, column, value)
    sheet.merged_ranges.append((0, 1, 0, 0))
    sheet.row(2).hidden = True
    secret.write(0, 0, "secret")
    secret.visibility = 1
    book.save(str(folder / "layout.xls"))
    wanted = ("North |  | Oslo", "North |  | Bergen")
    yield Case("empty, merged, hidden cells", folder / "layout.xls", wanted, ("secret",))


def ods_cases(folder: Path) -> Iterator[Case]:
    """The cases of ODS: what a cell holds, and the text that was shown."""

    def cell(kind: str, value: str, shown: str) -> str:
        given = f'office:value-type="{kind}" {value}' if kind else value
        return (
            f"<table:table-cell {given}>{shown and f'<text:p>{shown}</text:p>'}</table:table-cell>"
        )

    values = (
        ("date", cell("date", 'office:date-value="2026-06-03"', "03.06.26"), "2026-06-03"),
        ("date and time", cell("date", 'office:date-value="2026-06-03T07:45:00"', "3.6. 07:45"),
         "2026-06-03 07:45"),
        ("time", cell("time", 'office:time-value="PT07H45M00S"', "07:45"), "07:45"),
        ("duration", cell("time", 'office:time-value="PT26H30M00S"', "26:30"), "26:30"),
        ("percentage", cell("percentage", 'office:value="0.155"', "15,5 %"), "15,5 %"),
        ("currency", cell("currency", 'office:value="1234.5"', "1.234,50 €"), "1.234,50 €"),
        ("truth value", cell("boolean", 'office:boolean-value="true"', "WAHR"), "WAHR"),
        ("formula without a value", cell("", 'table:formula="of:=SUM([.B2:.B9])"', ""),
         "=SUM(B2:B9), not calculated"),
    )  # fmt: skip
    for name, made, wanted in values:
        yield Case(
            name, _ods(folder / f"{name}.ods", cell("string", "", "x") + made), (f"x | {wanted}",)
        )
    hidden = f'</table:table-row><table:table-row table:visibility="collapse">{cell("string", "", "secret")}'
    path = _ods(folder / "hidden.ods", cell("string", "", "x") + hidden)
    yield Case("hidden row", path, ("x",), ("secret",))
    note = "<office:annotation><text:p>why?</text:p></office:annotation>"
    made = cell("string", "", "x").replace("<text:p>", f"{note}<text:p>")
    yield Case("comment", _ods(folder / "note.ods", made), ("x", "Comment on A1: why?"))


def _ods(path: Path, cells: str) -> Path:
    base = "urn:oasis:names:tc:opendocument:xmlns:"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    names = " ".join(f'xmlns:{one}="{base}{one}:1.0"' for one in ("office", "table", "text"))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", kind)
        file.writestr(
            "content.xml",
            f'<office:document-content {names} office:version="1.3"><office:body><office:spreadsheet>'
            f'<table:table table:name="S"><table:table-row>{cells}</table:table-row></table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
        entries = "".join(
            f'<m:file-entry m:full-path="{name}" m:media-type="{media}"/>'
            for name, media in (("/", kind), ("content.xml", "text/xml"))
        )
        file.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{base}manifest:1.0">{entries}</m:manifest>',
        )
    return path


def _ours(path: Path) -> str:
    return extract("xls" if path.suffix == ".xls" else "zip", path.read_bytes(), 1 << 25).text


def _calamine(path: Path) -> str:
    import python_calamine

    book = python_calamine.CalamineWorkbook.from_path(path)
    return _text(row for one in book.sheet_names for row in book.get_sheet_by_name(one).to_python())


def _openpyxl(path: Path) -> str:
    import openpyxl

    book = openpyxl.load_workbook(path, data_only=True)
    return _text(row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True))


def _pandas_with_odfpy(path: Path) -> str:
    import pandas

    sheets = pandas.read_excel(path, sheet_name=None, header=None, engine="odf")
    return _text(row for sheet in sheets.values() for row in sheet.fillna("").values.tolist())


def _markitdown(path: Path) -> str:
    from markitdown import MarkItDown

    lines = MarkItDown().convert(path).text_content.splitlines()
    return "\n".join(
        line.removeprefix("| ").removesuffix(" |").replace("NaN", "") for line in lines
    )


def _value(value: Any) -> str:
    if type(value) is float and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).removesuffix(" 00:00:00")


def _text(rows: Any) -> str:
    """Rows of values as lines, as a program would write them that has values only."""
    lines = []
    for row in rows:
        cells = list(map(_value, row))
        while cells and not cells[-1]:
            cells.pop()
        lines.append(" | ".join(cells))
    return "\n".join(lines)


PARSERS: dict[str, tuple[Callable[[Path], str], str, frozenset[str]]] = {
    "Pravāha": (_ours, "", frozenset((".xlsx", ".xls", ".ods"))),
    "python-calamine": (_calamine, "python-calamine", frozenset((".xlsx", ".xls", ".ods"))),
    "openpyxl": (_openpyxl, "openpyxl", frozenset((".xlsx",))),
    "pandas, odfpy": (_pandas_with_odfpy, "odfpy", frozenset((".ods",))),
    "markitdown": (_markitdown, "markitdown", frozenset((".xlsx", ".xls"))),
}
"""Function, distribution and suffixes of each."""


def _failure(parse: Callable[[Path], str], case: Case) -> str:
    """Why a parser fails a case; empty if it does not."""
    try:
        text = parse(case.path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:100]
    lines = [line.rstrip(" |") for line in text.splitlines()]
    missing = [one for one in case.wanted if one not in lines]
    found = [one for one in case.unwanted if one in text]
    return f"{lines}"[:100] if missing or found else ""


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--why", action="store_true", help="print what was read where it is wrong")
    why = options.parse_args().why
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        for make, suffix in ((xlsx_cases, ".xlsx"), (xls_cases, ".xls"), (ods_cases, ".ods")):
            cases = list(make(Path(name)))
            parsers = {one: parse for one, (parse, package, read) in PARSERS.items()
                       if suffix in read and (not package or _version(package))}  # fmt: skip
            titles = [f"{one} {_version(PARSERS[one][1])}".strip() for one in parsers]
            print(f"\n| {suffix[1:].upper()}, {len(cases)} files | {' | '.join(titles)} |")
            print("|---" * (len(parsers) + 1) + "|")
            totals = dict.fromkeys(parsers, 0)
            for case in cases:
                failures = {one: _failure(parse, case) for one, parse in parsers.items()}
                for one, failure in failures.items():
                    totals[one] += not failure
                    if why and failure:
                        print(f"{one}: {case.name}: {failure}")
                print(
                    f"| {case.name} | {' | '.join('–' if one else '✓' for one in failures.values())} |"
                )
            print(f"| right | {' | '.join(map(str, totals.values()))} |")
        _measure(Path(name))


def _measure(folder: Path) -> None:
    import xlsxwriter

    path = folder / "large.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        formats = [
            book.add_format({"num_format": code}) for code in ("#,##0.00", "0%", "d mmm yyyy")
        ]
        for row in range(10_000):
            sheet.write_row(
                row, 0, [f"Customer {row}", row, f"note {row % 50}", row / 7, "yes", row * 3, "x"]
            )
            for column, value in enumerate((row * 1.1, row % 100 / 100, 46_000 + row % 700)):
                sheet.write_number(row, 7 + column, value, formats[column])
    print("\n| XLSX, cells a second of processor time | |\n|---|---|")
    for name, (parse, package, read) in PARSERS.items():
        if ".xlsx" in read and (not package or _version(package)):
            parse(path)  # imports what it needs
            begin = time.process_time()
            parse(path)
            print(f"| {name} | {100_000 / (time.process_time() - begin):,.0f} |")


def _version(package: str) -> str:
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
